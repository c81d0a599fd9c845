"""Which integers a local report can be. Knowing that, the service refuses what no honest device sends."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import assert_never

from app.core.epsilon import MICRO, SIGNIFICANT, significant
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, REPORT_LIMIT
from app.core.study import LocalMechanism
from app.mechanisms.local_shapes import HALF, duchi_reach, hybrid_share, piecewise_shape, report_sigma

LAPLACE_TAIL = 64
"""Laplace reports lie within this many scales of the grid: more would have a probability below 2^-91."""

GAUSSIAN_TAIL = 12
"""Gaussian reports lie within this many sigmas of the grid: more would have a probability below 2^-102."""

BOUNDED = frozenset({LocalMechanism.DUCHI, LocalMechanism.PIECEWISE, LocalMechanism.HYBRID})
"""Mechanisms whose reports have a range that can be checked exactly.

A range belongs to an epsilon, so where these are used a person sends one local report: who comes back would
have to randomize with what is left.
"""


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


def report_range(
    mechanism: LocalMechanism, epsilon: int, delta: int = 0, *, dimension: int = 1
) -> ReportRange:
    r"""What a report can be, given what it was randomized with.

    Exact for the bounded randomizers. A Laplace or Gaussian report is a grid point q in 0..N plus exact
    discrete noise Z, which lies outside [-m, N + m] only where |Z| > m. With scale b, :math:`r = e^{-1/b}`,

    .. math:: P(|Z| > m) = \frac{2 r^{\lfloor m \rfloor + 1}}{1 + r} \le 2 e^{-m/b},

    because :math:`2 / (1 + r) \le 2` and the exponent exceeds m / b. With m = 64 b that is below 2^-91, and
    for all d <= 64 coordinates of a vector together below 2^-85. Discrete Gaussian noise is sub-Gaussian of
    its sigma [1], so :math:`P(|Z| > m) \le 2 e^{-m^2 / 2 \sigma^2}`, with m = 12 sigma below 2^-102. m is
    rounded up, in integers. `REPORT_LIMIT` cuts noise of a scale beyond 2^56 only; devices send no such
    report.

    Args:
        mechanism: The randomizer.
        epsilon: What the report was randomized with [micro-epsilon].
        delta: The same, Gaussian only [1e-12].
        dimension: Coordinates that share a Laplace report's epsilon.

    Returns:
        The range of a coordinate.

    Raises:
        InternalFault: epsilon is not positive, or delta is not where it must be.

    Privacy: public constants of the randomizer. A check of it depends on the report only, which is private
        already.

    References:
        [1] Canonne, Kamath, Steinke, arXiv:2004.00010, proposition 25 and corollary 26.
    """
    match mechanism:
        case LocalMechanism.LAPLACE:
            if epsilon <= 0:
                raise InternalFault("A local report needs a positive epsilon.")
            return _about_the_grid(-(-LAPLACE_TAIL * dimension * GRID_SIZE * MICRO // epsilon))
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


def drawn_at_most(mechanism: LocalMechanism, report: int, epsilon: int, delta: int = 0) -> int:
    """The largest epsilon, up to a given one, with which an honest device can have drawn a report.

    A device draws with what its owner has left in the study, which may be less than is offered. The range
    of a bounded mechanism belongs to the whole epsilon; the others' grows as epsilon falls. Of those only
    epsilons of three digits are tried, whose sigmas are all remembered: a forger gains a hundredth at most,
    and cannot make the service calculate one sigma after the other.

    Args:
        mechanism: The randomizer.
        report: The report [grid steps].
        epsilon: What is offered, at least 1 [micro-epsilon].
        delta: The same, Gaussian only [1e-12].

    Returns:
        At most `epsilon`; 0 where no device draws such a report [micro-epsilon].

    Privacy: depends on the report only, which is private already.
    """
    if report in report_range(mechanism, epsilon, delta):
        return epsilon
    if mechanism in BOUNDED:
        return 0

    def excluded(rank: int) -> bool:
        smaller = significant(rank)
        return smaller >= epsilon or report not in report_range(mechanism, smaller, delta)

    return min(significant(1 + bisect_left(range(1, SIGNIFICANT), 1, key=excluded)), epsilon) - 1


def _about_the_grid(margin: int) -> ReportRange:
    reach = min(margin, REPORT_LIMIT - GRID_SIZE)
    return ReportRange(lower=-reach, upper=GRID_SIZE + reach)
