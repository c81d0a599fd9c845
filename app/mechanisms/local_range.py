"""Which integers a local report can be. Knowing that, the service refuses what no honest device sends."""

import math
from dataclasses import dataclass
from typing import assert_never

from app.core.grid import GRID_SIZE, REPORT_LIMIT
from app.core.study import LocalMechanism
from app.mechanisms.local_shapes import HALF, duchi_reach, hybrid_share, piecewise_shape, report_sigma
from app.mechanisms.local_variance import report_scale

LAPLACE_TAIL = 64
"""Laplace reports within this many scales of the range: all but e^-64 of the honest ones."""

GAUSSIAN_TAIL = 12
"""Gaussian reports within this many sigmas of the range: all but 4e-33 of the honest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRange:
    """What a report of one randomizer can be.

    Attributes:
        lower: Least report [grid steps].
        upper: Largest report [grid steps].
        ends_only: Whether nothing between the two is possible.
    """

    lower: int
    upper: int
    ends_only: bool = False

    def __contains__(self, report: int) -> bool:
        if self.ends_only:
            return report in (self.lower, self.upper)
        return self.lower <= report <= self.upper


def report_range(mechanism: LocalMechanism, epsilon: int, delta: int = 0) -> ReportRange:
    """What a report can be, given what it was randomized with.

    Args:
        mechanism: The randomizer.
        epsilon: What the report was randomized with [micro-epsilon].
        delta: The same, Gaussian only [1e-12].

    Returns:
        The range. Exact for the bounded randomizers; for Laplace and Gaussian so wide that no honest report
        will ever lie outside, and never beyond `REPORT_LIMIT`.

    Raises:
        InternalFault: epsilon is not positive, or delta is not where it must be.

    Privacy: public constants of the randomizer. A check of it depends on the report only, which is private
        already.
    """
    match mechanism:
        case LocalMechanism.LAPLACE:
            return _about_the_grid(LAPLACE_TAIL * report_scale(epsilon))
        case LocalMechanism.GAUSSIAN:
            return _about_the_grid(GAUSSIAN_TAIL * report_sigma(epsilon, delta))
        case LocalMechanism.DUCHI:
            reach = duchi_reach(epsilon)
            return ReportRange(lower=HALF - reach, upper=HALF + reach, ends_only=True)
        case LocalMechanism.HYBRID if hybrid_share(epsilon) == 0:
            return report_range(LocalMechanism.DUCHI, epsilon)
        case LocalMechanism.PIECEWISE | LocalMechanism.HYBRID:
            # Duchi's two points lie within, and are possible piecewise reports too.
            shape = piecewise_shape(epsilon)
            end = shape.drift + shape.reach
            return ReportRange(lower=HALF - end, upper=HALF + end)
        case _:
            assert_never(mechanism)


def _about_the_grid(margin: float) -> ReportRange:
    reach = min(math.ceil(margin), REPORT_LIMIT - GRID_SIZE)
    return ReportRange(lower=-reach, upper=GRID_SIZE + reach)
