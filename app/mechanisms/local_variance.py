"""How noisy local reports are. Public constants of the randomizers: no entropy here."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism
from app.mechanisms.local_shapes import (
    HALF,
    HYBRID_BITS,
    duchi_reach,
    hybrid_share,
    piecewise_shape,
    report_sigma,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNoise:
    """The variance of a report, as a function of the true value.

    A report about grid point q is unbiased, with variance constant + curvature (q - 2**29)^2. Averaged over
    people it is constant + curvature (their mean square about the middle of the range).

    Attributes:
        constant: Variance at the middle of the range [grid steps squared].
        curvature: At least -1; 0 for Laplace and Gaussian; -1 for Duchi, whose reports all lie equally far
            out and so say nothing about the variance of the data beside their mean [1].
    """

    constant: float
    curvature: float

    def at(self, point: float) -> float:
        """Variance of a report about a grid point [grid steps squared]."""
        return self.constant + self.curvature * (point - HALF) ** 2

    @property
    def worst(self) -> float:
        """The largest variance over the range [grid steps squared]."""
        return max(self.at(HALF), self.at(0))


def report_scale(epsilon: int) -> float:
    """Scale of the discrete Laplace noise in a Laplace report.

    Args:
        epsilon: What the report was randomized with, above 0 [micro-epsilon].

    Returns:
        2**GRID_BITS / epsilon [grid steps].

    Raises:
        InternalFault: epsilon is not positive.
    """
    if epsilon <= 0:
        raise InternalFault("A local report needs a positive epsilon.")
    return GRID_SIZE * MICRO / epsilon


def report_noise(mechanism: LocalMechanism, epsilon: int, delta: int = 0) -> ReportNoise:
    r"""The variance of one local report about the true value.

    - Laplace: :math:`2 e^{-1/b} / (1 - e^{-1/b})^2 = 1 / (2 \sinh^2(1 / 2b))`, b from `report_scale`.
    - Gaussian: sigma^2 from `report_sigma`.
    - Duchi: A^2 - x^2, x the distance from the middle, A from `duchi_reach`.
    - Piecewise: with h, w, D, I, O from `piecewise_shape`, R = D + h, and total weight t,

      .. math:: \frac{(I - O) w (w^2 - 1) / 12 + O R (R + 1)(2 R + 1) / 3}{t} + (2 D / N - 1) x^2,

      and at most 1/4 more for the rounding of the window's place.
    - Hybrid: the mixture of the last two, both unbiased; hardly any curvature is left by design.

    Args:
        mechanism: The randomizer.
        epsilon: What the report was randomized with [micro-epsilon].
        delta: The same, Gaussian only [1e-12].

    Returns:
        Constant and curvature.

    Raises:
        InternalFault: epsilon is not positive, or delta is not where it must be.

    Privacy: public constants of the randomizer.

    References:
        Wang et al., arXiv:1907.00782, lemma 1 and equation 8, in the limit of a fine grid.
    """
    match mechanism:
        case LocalMechanism.LAPLACE:
            return ReportNoise(constant=0.5 / math.sinh(0.5 / report_scale(epsilon)) ** 2, curvature=0.0)
        case LocalMechanism.GAUSSIAN:
            return ReportNoise(constant=float(report_sigma(epsilon, delta)) ** 2, curvature=0.0)
        case LocalMechanism.DUCHI:
            return ReportNoise(constant=float(duchi_reach(epsilon)) ** 2, curvature=-1.0)
        case LocalMechanism.PIECEWISE:
            return _piecewise_noise(epsilon)
        case LocalMechanism.HYBRID:
            return _hybrid_noise(epsilon)
        case _:
            assert_never(mechanism)


def report_variance(mechanism: LocalMechanism, epsilon: int, delta: int = 0) -> float:
    """Variance of one local report about the true value, at the worst value.

    Args:
        mechanism: The randomizer.
        epsilon: What the report was randomized with [micro-epsilon].
        delta: The same, Gaussian only [1e-12].

    Returns:
        Variance [grid steps squared].

    Raises:
        InternalFault: epsilon is not positive, or delta is not where it must be.

    Privacy: a public constant of the randomizer.
    """
    return report_noise(mechanism, epsilon, delta).worst


def _piecewise_noise(epsilon: int) -> ReportNoise:
    shape = piecewise_shape(epsilon)
    window, end = shape.window, shape.drift + shape.reach
    inner = Fraction((shape.inside - shape.outside) * window * (window * window - 1), 12)
    outer = Fraction(shape.outside * end * (end + 1) * (2 * end + 1), 3)
    constant = float((inner + outer) / shape.total)
    return ReportNoise(constant=constant, curvature=float(Fraction(shape.drift - HALF, HALF)))


def _hybrid_noise(epsilon: int) -> ReportNoise:
    share = hybrid_share(epsilon) / 2**HYBRID_BITS
    duchi = report_noise(LocalMechanism.DUCHI, epsilon)
    if share == 0:
        return duchi
    piecewise = _piecewise_noise(epsilon)
    return ReportNoise(
        constant=share * piecewise.constant + (1 - share) * duchi.constant,
        curvature=share * piecewise.curvature + (1 - share) * duchi.curvature,
    )
