"""The local mechanisms of a study: what each makes of a value, and what its reports are.

One class a mechanism. A device draws with it; a service reads from it which reports are possible and how
noisy they are. Every random decision compares integers made of random bits, so that any client which reads
the same bits in the same order makes the same report: tests/client/randomizer_vectors.json says how.
"""

import math
import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import ClassVar

from dither.device.exact import RandomBits, below, discrete_gaussian, discrete_laplace
from dither.device.gaussian import gaussian_sigma, micro_mu2
from dither.device.numbers import GRID_SIZE, MICRO, REPORT_LIMIT
from dither.device.optimal import UNIT, optimal_table
from dither.device.shapes import HALF, HYBRID_BITS, duchi_reach, hybrid_share, piecewise_shape

LAPLACE_TAIL = 64
"""Laplace reports lie within this many scales of the grid: more would have a probability below 2^-91."""

GAUSSIAN_TAIL = 12
"""Gaussian reports lie within this many sigmas of the grid: more would have a probability below 2^-102."""


class LocalMechanism(StrEnum):
    """The randomizer that devices of a study use for local reports."""

    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    DUCHI = "duchi"
    PIECEWISE = "piecewise"
    HYBRID = "hybrid"
    OPTIMAL = "optimal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRange:
    """What a report of one randomizer can be.

    Attributes:
        lower: Least report [grid steps].
        upper: Largest report [grid steps].
        only: All possible reports, where not every one between the two is; else empty [grid steps].
    """

    lower: int
    upper: int
    only: frozenset[int] = frozenset()

    def __contains__(self, report: int) -> bool:
        return report in self.only if self.only else self.lower <= report <= self.upper

    def nearest(self, report: int) -> int:
        """The report itself, or the end that it lies beyond."""
        return max(self.lower, min(report, self.upper))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNoise:
    """The noise of a report, as a function of the true value.

    A report about grid point q is unbiased, with variance constant + curvature (q - 2**29)^2; an `optimal`
    one with less than that by at most the `rounding` of its table. Averaged over people it
    is constant + curvature (their mean square about the middle of the range).

    Attributes:
        constant: Variance at the middle of the range [grid steps squared].
        curvature: At least -1; 0 for Laplace and Gaussian; -1 for Duchi, whose reports all lie equally far
            out and so say nothing about the variance of the data beside their mean.
        laplace: Scale, where the noise is discrete Laplace noise; else 0 [grid steps].
        gaussian: Sigma, where it is discrete Gaussian noise; else 0 [grid steps].
    """

    constant: float
    curvature: float = 0.0
    laplace: float = 0.0
    gaussian: float = 0.0

    def at(self, point: float) -> float:
        """Variance of a report about a grid point [grid steps squared]."""
        return self.constant + self.curvature * (point - HALF) ** 2

    @property
    def worst(self) -> float:
        """The largest variance over the range [grid steps squared]."""
        return max(self.at(HALF), self.at(0))


@dataclass(frozen=True, slots=True)
class Randomizer(ABC):
    """One local mechanism.

    Attributes:
        delta: Gaussian reports only: at which an epsilon is turned into mu^2 [1e-12]; 0: what stands below as
            epsilon is mu^2 already [1e-6], which is what the ledger of a Gaussian study holds.
        mechanism: Which one it is.
        has_delta: Whether it needs a delta.
        is_bounded: Whether its reports lie in a range that belongs to the whole epsilon they were made with.
            Who has spent some of it would have to randomize with what is left, so a person sends one such
            report.
    """

    delta: int
    mechanism: ClassVar[LocalMechanism]
    has_delta: ClassVar[bool] = False
    is_bounded: ClassVar[bool] = True

    def report(self, point: int, epsilon: int, bits: RandomBits = secrets.randbits) -> int:
        """The report for a grid point.

        It is epsilon-differentially private for its owner against every person, the service included; a
        Gaussian one (epsilon, delta).

        Args:
            point: Grid point in [0, 2**30].
            epsilon: What the report costs its owner, above 0 [micro-epsilon].
            bits: Source of random bits. The default is the operating system's.
        """
        if epsilon <= 0 or not 0 <= point <= GRID_SIZE:
            raise ValueError("a report needs a point on the grid and a positive epsilon")
        return HALF + self.draw(point - HALF, epsilon, bits)

    @abstractmethod
    def draw(self, offset: int, epsilon: int, bits: RandomBits) -> int:
        """A report about a value, both as distances from the middle of the grid."""

    @abstractmethod
    def range(self, epsilon: int) -> ReportRange:
        """What a report of an honest device can be, given what it was randomized with [micro-epsilon].

        Raises:
            ValueError: epsilon is not positive, or there is no delta where there must be one.
        """

    @abstractmethod
    def noise(self, epsilon: int) -> ReportNoise:
        """How noisy a report is, given what it was randomized with [micro-epsilon].

        Raises:
            ValueError: epsilon is not positive, or there is no delta where there must be one.
        """

    def quantile(self, epsilon: int, probability: float) -> int | None:
        """What the noise of a report exceeds upwards with a probability, and as rarely downwards.

        Args:
            epsilon: What the report was randomized with [micro-epsilon].
            probability: In (0, 1/2).

        Returns:
            Rounded up [grid steps]; None where reports have a range of their own.
        """
        return None


class Laplace(Randomizer):
    r"""The value plus discrete Laplace noise of scale b = 2^30 / epsilon.

    Two values of one person lie at most 2^30 apart: epsilon-private. The variance is
    :math:`2 e^{-1/b} / (1 - e^{-1/b})^2 = 1 / (2 \sinh^2(1 / 2b))`. A report lies further than m outside of
    the grid only where the noise exceeds m: with :math:`r = e^{-1/b}`,

    .. math:: P(|Z| > m) = \frac{2 r^{\lfloor m \rfloor + 1}}{1 + r} \le 2 e^{-m/b},

    below 2^-91 for m = 64 b, and for all d <= 64 coordinates of a vector together below 2^-85. m is rounded
    up, in integers. `REPORT_LIMIT` cuts noise of a scale beyond 2^56 only; devices send no such report.
    """

    __slots__ = ()
    mechanism = LocalMechanism.LAPLACE
    is_bounded = False

    def draw(self, offset: int, epsilon: int, bits: RandomBits) -> int:
        return offset + discrete_laplace(GRID_SIZE * MICRO, epsilon, bits)

    def range(self, epsilon: int) -> ReportRange:
        return laplace_range(epsilon)

    def noise(self, epsilon: int) -> ReportNoise:
        scale = GRID_SIZE * MICRO / _positive(epsilon)
        return ReportNoise(constant=0.5 / math.sinh(0.5 / scale) ** 2, laplace=scale)

    def quantile(self, epsilon: int, probability: float) -> int:
        return math.ceil(self.noise(epsilon).laplace * math.log(0.5 / probability))


class Gaussian(Randomizer):
    r"""The value plus discrete Gaussian noise of `gaussian_sigma`: (epsilon, delta)-private.

    What an epsilon buys is `micro_mu2`, rounded down; mu^2 adds up over all that a person gives, exactly. It
    is sub-Gaussian of its sigma [1], so :math:`P(|Z| > m) \le 2 e^{-m^2 / 2 \sigma^2}`, below 2^-102 for
    m = 12 sigma.

    References:
        [1] Canonne, Kamath, Steinke, arXiv:2004.00010, proposition 25 and corollary 26.
    """

    __slots__ = ()
    mechanism = LocalMechanism.GAUSSIAN
    has_delta = True

    def draw(self, offset: int, epsilon: int, bits: RandomBits) -> int:
        return offset + discrete_gaussian(self._sigma(epsilon), bits)

    def range(self, epsilon: int) -> ReportRange:
        return _about_the_grid(GAUSSIAN_TAIL * self._sigma(epsilon))

    def noise(self, epsilon: int) -> ReportNoise:
        sigma = float(self._sigma(epsilon))
        return ReportNoise(constant=sigma**2, gaussian=sigma)

    def quantile(self, epsilon: int, probability: float) -> int:
        return math.ceil(-self._sigma(epsilon) * NormalDist().inv_cdf(probability))

    def _sigma(self, epsilon: int) -> int:
        return gaussian_sigma(micro_mu2(_positive(epsilon), self.delta) if self.delta else epsilon)


class Duchi(Randomizer):
    """A or -A from the middle of the grid, on average the value. Variance A^2 - x^2; A from `duchi_reach`."""

    __slots__ = ()
    mechanism = LocalMechanism.DUCHI

    def draw(self, offset: int, epsilon: int, bits: RandomBits) -> int:
        reach = duchi_reach(epsilon)
        return reach if below(2 * reach, bits) < reach + offset else -reach

    def range(self, epsilon: int) -> ReportRange:
        reach = duchi_reach(epsilon)
        ends = HALF - reach, HALF + reach
        return ReportRange(lower=ends[0], upper=ends[1], only=frozenset(ends))

    def noise(self, epsilon: int) -> ReportNoise:
        return ReportNoise(constant=float(duchi_reach(epsilon)) ** 2, curvature=-1.0)


class Piecewise(Randomizer):
    r"""An integer of the range, most likely in the window about the value; on average the value.

    With h, w, D, I, O from `piecewise_shape`, R = D + h, and total weight t, the variance is

    .. math:: \frac{(I - O) w (w^2 - 1) / 12 + O R (R + 1)(2 R + 1) / 3}{t} + (2 D / N - 1) x^2,

    and at most 1/4 more for the rounding of the window's place [1].

    References:
        [1] Wang et al., arXiv:1907.00782, lemma 1, in the limit of a fine grid.
    """

    __slots__ = ()
    mechanism = LocalMechanism.PIECEWISE

    def draw(self, offset: int, epsilon: int, bits: RandomBits) -> int:
        shape = piecewise_shape(epsilon)
        middle = (offset * shape.drift + bits((HALF - 1).bit_length())) // HALF
        ticket = below(shape.total, bits)
        inside = shape.window * shape.inside
        if ticket < inside:
            return middle - shape.reach + ticket // shape.inside
        # The other integers in order, as if the window were not there.
        report = (ticket - inside) // shape.outside - shape.drift - shape.reach
        return report if report < middle - shape.reach else report + shape.window

    def range(self, epsilon: int) -> ReportRange:
        shape = piecewise_shape(epsilon)
        end = shape.drift + shape.reach
        return ReportRange(lower=HALF - end, upper=HALF + end)

    def noise(self, epsilon: int) -> ReportNoise:
        shape = piecewise_shape(epsilon)
        window, end = shape.window, shape.drift + shape.reach
        inner = Fraction((shape.inside - shape.outside) * window * (window * window - 1), 12)
        outer = Fraction(shape.outside * end * (end + 1) * (2 * end + 1), 3)
        constant = float((inner + outer) / shape.total)
        return ReportNoise(constant=constant, curvature=float(Fraction(shape.drift - HALF, HALF)))


class Hybrid(Randomizer):
    """A piecewise report or one of Duchi's; where only the latter is used, no bits choose.

    Duchi's two points lie within the piecewise range, and are possible piecewise reports too. Hardly any
    curvature of the variance is left, by design of the share [1].

    References:
        [1] Wang et al., arXiv:1907.00782, equation 8.
    """

    __slots__ = ()
    mechanism = LocalMechanism.HYBRID

    def draw(self, offset: int, epsilon: int, bits: RandomBits) -> int:
        share = hybrid_share(epsilon)
        part = _PIECEWISE if share > 0 and bits(HYBRID_BITS) < share else _DUCHI
        return part.draw(offset, epsilon, bits)

    def range(self, epsilon: int) -> ReportRange:
        return (_PIECEWISE if hybrid_share(epsilon) else _DUCHI).range(epsilon)

    def noise(self, epsilon: int) -> ReportNoise:
        share = hybrid_share(epsilon) / 2**HYBRID_BITS
        duchi = _DUCHI.noise(epsilon)
        if share == 0:
            return duchi
        piecewise = _PIECEWISE.noise(epsilon)
        return ReportNoise(
            constant=share * piecewise.constant + (1 - share) * duchi.constant,
            curvature=share * piecewise.curvature + (1 - share) * duchi.curvature,
        )


class Optimal(Randomizer):
    """A report of `optimal_table`, of the least worst variance; a hybrid one between the tables."""

    __slots__ = ()
    mechanism = LocalMechanism.OPTIMAL

    def draw(self, offset: int, epsilon: int, bits: RandomBits) -> int:
        table = optimal_table(epsilon)
        return _HYBRID.draw(offset, epsilon, bits) if table is None else table.draw(offset, bits)

    def range(self, epsilon: int) -> ReportRange:
        table = optimal_table(epsilon)
        if table is None:
            return _HYBRID.range(epsilon)
        end = table.reports[-1] * UNIT
        return ReportRange(lower=HALF - end, upper=HALF + end, only=table.possible)

    def noise(self, epsilon: int) -> ReportNoise:
        table = optimal_table(epsilon)
        return _HYBRID.noise(epsilon) if table is None else ReportNoise(constant=table.variance)


_DUCHI, _PIECEWISE, _HYBRID = Duchi(0), Piecewise(0), Hybrid(0)
_KINDS = {kind.mechanism: kind for kind in (Laplace, Gaussian, Duchi, Piecewise, Hybrid, Optimal)}


@lru_cache(maxsize=256)
def randomizer(mechanism: str, delta: int = 0) -> Randomizer:
    """The randomizer of a study.

    Args:
        mechanism: Its name.
        delta: The study's delta, which only a mechanism that needs one keeps [1e-12]; see `Randomizer`.

    Raises:
        ValueError: there is no such mechanism.
    """
    kind = _KINDS[LocalMechanism(mechanism)]
    return kind(delta if kind.has_delta else 0)


def laplace_range(epsilon: int, *, dimension: int = 1) -> ReportRange:
    """What a coordinate of a Laplace report can be; see `Laplace`.

    Args:
        epsilon: What the whole report was randomized with [micro-epsilon].
        dimension: Coordinates that share it.

    Raises:
        ValueError: epsilon is not positive.
    """
    return _about_the_grid(-(-LAPLACE_TAIL * dimension * GRID_SIZE * MICRO // _positive(epsilon)))


def _positive(epsilon: int) -> int:
    if epsilon <= 0:
        raise ValueError("a report needs a positive epsilon")
    return epsilon


def _about_the_grid(margin: int) -> ReportRange:
    reach = min(margin, REPORT_LIMIT - GRID_SIZE)
    return ReportRange(lower=-reach, upper=GRID_SIZE + reach)
