r"""Correlation and least-squares lines of two numbers, off noisy sums of them, of squares and of products.

With x and y about the middles of their ranges [range widths], means m, covariance C and variances V let
:math:`T(a, b, c) = a C + b V_x + c V_y`. Off noisy sums M, C and V are read, and with
:math:`\epsilon = M - m` and :math:`g = a (x - m_x)(y - m_y) + b (x - m_x)^2 + c (y - m_y)^2`, exactly, what
is read of T is off by

.. math:: \text{the noise of the sum of } g + \Big(\sum_i c_i g_i - \bar g\Big)
    - a \epsilon_x \epsilon_y - b \epsilon_x^2 - c \epsilon_y^2,

c_i being weights. Of the risk of 5 % a twentieth each bounds either :math:`|\epsilon|` by E; on that event
the coefficients of the noise are bounded, and :math:`|x - m_x| \le R_x`, so that g spans at most :math:`2 |a|
R_x R_y + |b| R_x^2 + |c| R_y^2`; a tilt, and a lattice, move its mean by parts of that. Its variance is at
most the square of half of it, and at most :math:`\max |g|\, (|a| \sqrt{U_x U_y} + |b| U_x + |c| U_y)`, U
being the most that V can be at that mean.

*Intervals* are the hulls of all numbers that T does not reject (Fieller). They are never empty or undefined:

- The slope of y on x is the root of :math:`T(1, -\beta, 0)`. No slope is larger than that between two people
  a step of the grid apart, so that an interval has ends also where x may not vary at all.
- The correlation has :math:`\rho \sqrt{V_x V_y} = \rho (k V_x + V_y / k) / 2` at :math:`k^2 = V_y / V_x`, so
  it is the root of :math:`T(1, -\rho k / 2, -\rho / 2 k)`; a fifth of the risk bounds k, which is the root of
  :math:`T(0, -k^2, 1)`. The hull is over all of its k.
- The line at x is :math:`m_y + \beta (x - m_x)`: 13 twentieths of the risk bound the slope, five the error of
  :math:`M_y - \beta M_x`. It holds at each x alone; between two points of the band the line between their
  ends holds, since the upper end is convex in x and the lower one concave.

References:
    Fieller, J. R. Stat. Soc. B 16 (1954), doi:10.1111/j.2517-6161.1954.tb00159.x.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from app.accounting.measurement import Workload
from app.accounting.pair_prices import BERNSTEIN, bernstein_cost, moments_cost
from app.accounting.price import Cost
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.estimators import confidence
from app.estimators.covariance import MIDDLE, PairReader, PublicPair, shown_interval
from app.estimators.interface import Coverage
from app.estimators.moments_secret import three_sums_pivot
from app.estimators.pivot import PivotReader, mass_risk, most_spread, noise_law, ratio
from app.estimators.quantiles import ErrorLaw
from app.estimators.roots import brentq
from app.estimators.weighing import Weighing

POINTS = 21
"""Of a band, over the whole range of the number that it is drawn on."""

NUMBERS = 2 * POINTS + 6
"""About how many numbers an answer has."""

OF_MEAN, _OF_RATIO, _OF_SLOPE, _OF_OFFSET = 0.05, 0.2, 0.65, 0.25
"""Parts of the risk: for either mean, the ratio of both spreads, and both parts of a line, which is off most
by its slope."""

_STEEPEST = float(GRID_SIZE)
_CLOSE = 2.0**-14
"""How exactly an end is found, outwards, as a part of it and of where it is looked for."""

_ROUNDING = 16 / GRID_SIZE
"""The most that a moment is off because sums were rounded down, and values moved to the grid."""

_EVEN = 1 / 12
"""The variance of numbers that are spread evenly over their range, for which predictions are."""

Ends = tuple[float, float]
OfMean = Callable[[float, float, float, float], Ends]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What noisy sums say of the moments of two numbers [range widths], for the dataset or the population.

    Attributes:
        means: About the middles.
        near: What these are off by at most.
        moments: Covariance and variances, any sign.
        spreads: The most that either variance can be.
        mass: The total weight in the sums; 1 where it is public.
        scatter: What the variance of a function of a person is multiplied by in that of its sum.
        beside: What its span is multiplied by in what weights can move its sum.
        risk: Of every interval.
        coverage: Of every interval.
        noises: The most that sizes of the noises of the sum of g can be, for a, b and c.
        of_line: The same of the sum of a (x - m_x) + b (y - m_y).
        law: Of noises of these sizes beside a Normal part of this variance.
    """

    means: Ends
    near: Ends
    moments: tuple[float, float, float]
    spreads: Ends
    mass: float
    scatter: float
    beside: float
    risk: float
    coverage: Coverage
    noises: Callable[[float, float, float], Sequence[float]]
    of_line: Callable[[float, float], Sequence[float]]
    law: Callable[[Sequence[float], float], ErrorLaw]

    @property
    def turned(self) -> "Seen":
        """The same with the numbers in the other order."""
        both, first, second = self.moments
        return replace(
            self,
            means=self.means[::-1],
            near=self.near[::-1],
            moments=(both, second, first),
            spreads=self.spreads[::-1],
            noises=lambda a, b, c: self.noises(a, c, b),
            of_line=lambda a, b: self.of_line(b, a),
        )

    @property
    def says_nothing(self) -> bool:
        """Whether nothing is left of the weight."""
        return self.mass <= 0

    def variances(self) -> Ends:
        """Both variances, at least the standard deviation of their noise: what may be divided by."""
        found = []
        for variance, of in zip(self.moments[1:], ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), strict=True):
            noise = math.sqrt(self.law(self.noises(*of), 0.0).variance) / self.mass
            found.append(max(variance, noise, 1 / GRID_SIZE**2))
        return found[0], found[1]

    def margin(self, a: float, b: float, c: float, part: float) -> float:
        """What T(a, b, c) is off by at most, but for a part of the risk: nearly a norm of them."""
        noises = self.noises(a, b, c)
        a, b, c = abs(a), abs(b), abs(c)
        x, y = (min(0.5, abs(mean) + near) + 0.5 for mean, near in zip(self.means, self.near, strict=True))
        of_x, of_y = self.spreads
        span = 2 * a * x * y + b * x * x + c * y * y
        most = (a * x * y + b * x * x + c * y * y) * (a * math.sqrt(of_x * of_y) + b * of_x + c * of_y)
        near = a * self.near[0] * self.near[1] + b * self.near[0] ** 2 + c * self.near[1] ** 2
        law = self.law(noises, self.scatter * min(span * span / 4, most))
        off = (law.quantile(1 - self.risk * part) + span * self.beside) / self.mass
        return off + near + _ROUNDING * (a + b + c)

    def offset(self, slope: float, part: float) -> float:
        """What M_y - slope M_x is off by at most, but for a part of the risk; it rises with |slope|."""
        slope = abs(slope)
        root = math.sqrt(self.spreads[1]) + slope * math.sqrt(self.spreads[0])
        law = self.law(self.of_line(slope, 1.0), self.scatter * root * root)
        off = (law.quantile(1 - self.risk * part) + (1 + slope) * self.beside) / self.mass
        return off + _ROUNDING * (1 + slope)

    def slope(self, part: float) -> Ends:
        """Ends of the slope of the second number on the first one."""
        if self.says_nothing:
            return -_STEEPEST, _STEEPEST
        both, first, _ = self.moments
        return fieller(
            both, first, lambda t: self.margin(1.0, -t, 0.0, part), self.margin(0.0, 1.0, 0.0, part)
        )

    def correlation(self) -> Ends:
        """Ends of the correlation."""
        if self.says_nothing:
            return -1.0, 1.0
        _, first, second = self.moments
        low, high = fieller(
            second,
            first,
            lambda t: self.margin(0.0, -t, 1.0, _OF_RATIO),
            self.margin(0.0, 1.0, 0.0, _OF_RATIO),
        )
        if low <= 0 or high >= _STEEPEST or min(first, second) <= 0:
            return -1.0, 1.0
        low, high = math.sqrt(low), math.sqrt(high)
        least = min(max(math.sqrt(second / first), low), high)
        return self._within(low, high, least, 1 - 2 * OF_MEAN - _OF_RATIO)

    def _within(self, low: float, high: float, least: float, part: float) -> Ends:
        """Correlations between -1 and 1 that are not rejected where k lies between two numbers."""
        both, first, second = self.moments
        spreads = [(k * first + second / k) / 2 for k in (low, high, least)]
        # 1 / k is convex, so (k, 1 / k) lies in the triangle of these three, and a norm is largest there.
        corners = ((low, 1 / low), (high, 1 / high), (low, 1 / high))

        def inside(place: float, sign: int) -> float:
            off = max(
                self.margin(1.0, -sign * place * k / 2, -sign * place * other / 2, part)
                for k, other in corners
            )
            return off + sign * both - place * (min(spreads) if place > 0 else max(spreads))

        def end(sign: int) -> float:
            if inside(1.0, sign) >= 0:
                return 1.0
            # At no correlation the largest spread and the least one are the same.
            if inside(0.0, sign) >= 0:
                return _edge(lambda place: inside(place, sign), 0.0, 1.0)
            return _edge(lambda place: inside(place, sign), -1.0, 0.0) if inside(-1.0, sign) >= 0 else -1.0

        return -end(-1), end(1)


def fieller(above: float, below: float, margin: Callable[[float], float], at_most: float) -> Ends:
    """The hull of all t that |above - t below| <= margin(t) does not reject, between -2^30 and 2^30.

    Args:
        above, below: Whose ratio t is.
        margin: Convex; far out it rises by at most `at_most` times what |t| does.
        at_most: What `below` is off by at most.
    """
    if below <= at_most:
        return -_STEEPEST, _STEEPEST
    center = above / below

    def inside(step: float, sign: int) -> float:
        return margin(center + sign * step) - step * below

    def end(sign: int) -> float:
        near, far = 0.0, max(margin(center) / below, 1 / GRID_SIZE)
        while far < _STEEPEST and inside(far, sign) >= 0:
            near, far = far, 2 * far
        if far < _STEEPEST:
            far = _edge(lambda step: inside(step, sign), near, far)
        return min(max(center + sign * far, -_STEEPEST), _STEEPEST)

    return end(-1), end(1)


def _edge(inside: Callable[[float], float], near: float, far: float) -> float:
    """Where a number falls below 0 between two points, on the farther side."""
    found = brentq(inside, near, far, xtol=_CLOSE * abs(far - near), rtol=_CLOSE)
    return min(found + 2 * _CLOSE * (abs(found) + abs(far - near)), far)


@dataclass(frozen=True, kw_only=True)
class MomentsReader(PairReader):
    """Reads the correlation and both lines off noisy sums of second moments."""

    workload: ClassVar[Workload] = Workload.MOMENTS
    largest: ClassVar[float] = 1.0

    @property
    def unit(self) -> float:
        """A correlation has none."""
        return 1.0

    @abstractmethod
    def seen(self, *drawn: Sequence[int]) -> tuple[Seen, Seen]:
        """What the noisy sums say of the dataset, and of the population."""

    def read(self, *drawn: Sequence[int]) -> dict[str, object]:
        """See `PairReader.read`: lines are of the first number on the second one, and the other way round."""
        dataset, population = self.seen(*drawn)
        shown = 0.0
        if not dataset.says_nothing:
            first, second = dataset.variances()
            shown = min(max(dataset.moments[0] / math.sqrt(first * second), -1.0), 1.0)
        ends, of_all = (_around(one.correlation(), shown) for one in (dataset, population))
        return {
            "estimate": shown,
            "interval": shown_interval(*ends, dataset.coverage),
            "population_interval": shown_interval(*of_all, population.coverage),
            "r_squared": shown * shown,
            "r_squared_interval": shown_interval(*_squared(ends), dataset.coverage),
            "means": [
                _place(grid, min(max(mean, -0.5), 0.5))
                for grid, mean in zip(self.grids, dataset.means, strict=True)
            ],
            "lines": [
                _line(dataset.turned, population.turned, self.grids[::-1]),
                _line(dataset, population, self.grids),
            ],
        }


def _line(dataset: Seen, population: Seen, grids: tuple[Grid, Grid]) -> dict[str, object]:
    """The line of the second number on the first one, as JSON."""
    on, of = grids
    unit = float(of.width) / float(on.width)
    slope = 0.0
    if not dataset.says_nothing:
        slope = min(max(dataset.moments[0] / dataset.variances()[0], -_STEEPEST), _STEEPEST)
    part = 1 - 2 * OF_MEAN
    ends, of_all = (_around(one.slope(part), slope) for one in (dataset, population))
    bands = [_Band.of(one, slope) for one in (dataset, population)]

    def at(number: float) -> tuple[float, list[Ends]]:
        x = (number - float(on.lower)) / float(on.width) - 0.5
        middle = dataset.means[1] + slope * (x - dataset.means[0])
        found = [_around(band.at(x), middle) for band in bands]
        return _place(of, middle), [(_place(of, low), _place(of, high)) for low, high in found]

    intercept, (own, others) = at(0.0)
    band = []
    for point in range(POINTS):
        number = float(on.lower) + float(on.width) * point / (POINTS - 1)
        middle, (around, _) = at(number)
        band.append({"at": number, "estimate": middle, "lower": around[0], "upper": around[1]})
    return {
        "slope": {
            "estimate": unit * slope,
            "interval": shown_interval(unit * ends[0], unit * ends[1], dataset.coverage),
            "population_interval": shown_interval(unit * of_all[0], unit * of_all[1], population.coverage),
        },
        "intercept": {
            "estimate": intercept,
            "interval": shown_interval(*own, dataset.coverage),
            "population_interval": shown_interval(*others, population.coverage),
        },
        "band": band,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Band:
    """Where a line can be.

    Attributes:
        means: Through which it goes, but for `offset`.
        slopes: Ends of its slope, about the one that is shown.
        offset: What is off beside the slope.
    """

    means: Ends
    slopes: Ends
    offset: float

    @classmethod
    def of(cls, seen: Seen, slope: float) -> "_Band":
        slopes = _around(seen.slope(_OF_SLOPE), slope)
        offset = _STEEPEST if seen.says_nothing else max(seen.offset(one, _OF_OFFSET) for one in slopes)
        return cls(means=seen.means, slopes=slopes, offset=offset)

    def at(self, x: float) -> Ends:
        places = [self.means[1] + slope * (x - self.means[0]) for slope in self.slopes]
        return min(places) - self.offset, max(places) + self.offset


def _around(ends: Ends, shown: float) -> Ends:
    """An interval with what is shown in it."""
    return min(ends[0], shown), max(ends[1], shown)


def _squared(ends: Ends) -> Ends:
    squares = [end * end for end in ends]
    return 0.0 if ends[0] <= 0 <= ends[1] else min(squares), max(squares)


def _place(grid: Grid, place: float) -> float:
    """A place about the middle of the range [range widths] in the data's unit, also outside of it."""
    return float(grid.lower) + (place + 0.5) * float(grid.width)


def _around_mean(mean: float, near: float) -> Ends:
    """The ends of an interval for a mean, in the range from 0 to 1."""
    return max(0.0, mean - near), min(1.0, mean + near)


@dataclass(frozen=True, kw_only=True)
class PublicMomentsReader(MomentsReader, PublicPair):
    """Reads five noisy sums, where the number of people is public."""

    sums: ClassVar[int] = 5

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of the sums of both numbers, of their products and of the squares of either, see `moments_cost`."""
        size = self.of_number
        if self.normal:
            return DiscreteGaussian(sigmas=(size, size, size / 2, size / 2, size / 2))
        return DiscreteLaplace(scales=(size, size, size, 2 * size, 2 * size))

    def price(self, weight: int) -> Cost:
        """See `PairReader`."""
        return moments_cost(weight, self.noise)

    @property
    def predicted_error(self) -> float:
        """Root mean square error of a correlation of 0, where both numbers are spread evenly."""
        bias = 2 * self.weighing.bias / 4
        law = self.law([self._of_products], self.weighing.uneven * _EVEN**2)
        return min(1.0, math.sqrt(law.variance + bias**2) / _EVEN)

    @property
    def interval_width(self) -> float:
        """Of its interval for the dataset, where both numbers are spread evenly."""
        seen = self._seen((0.0, 0.0), (0.0, _EVEN, _EVEN), self.weighing.uneven, self.step)
        return 2 * min(1.0, seen.margin(1.0, 0.0, 0.0, 1 - 2 * OF_MEAN - _OF_RATIO) / _EVEN)

    @staticmethod
    def parts(people: int, *summed: int) -> tuple[int, ...]:
        """Both numbers about the middles, the products and the squares; see `PairReader.parts`."""
        first, second, *others = summed
        return first - MIDDLE * people, second - MIDDLE * people, *others

    def seen(self, *drawn: Sequence[int]) -> tuple[Seen, Seen]:
        """See `MomentsReader.seen`."""
        x, y, products, *squares = self.averaged(drawn)
        moments = products - x * y, squares[0] - x * x, squares[1] - y * y
        weighing = self.weighing
        return (
            self._seen((x, y), moments, weighing.uneven, self.step),
            self._seen((x, y), moments, weighing.squares, weighing.largest / 2),
        )

    @property
    def _of_products(self) -> float:
        return 0.5 if self.normal else 1.0

    def _seen(self, means: Ends, moments: tuple[float, float, float], squares: float, step: float) -> Seen:
        of_mean = self.of_mean(squares, step, confidence.risk() * OF_MEAN)
        of_products, of_squares = self._of_products, 0.5 if self.normal else 2.0

        def noises(a: float, b: float, c: float) -> Sequence[float]:
            x, y = (
                abs(a * other + 2 * of_own * own) + (abs(a) + 2 * abs(of_own)) * of_mean
                for own, other, of_own in ((means[0], means[1], b), (means[1], means[0], c))
            )
            return x, y, abs(a) * of_products, abs(b) * of_squares, abs(c) * of_squares

        exact = not self.weighing.uneven and squares == self.weighing.uneven
        return Seen(
            means=means,
            near=(of_mean, of_mean),
            moments=moments,
            spreads=(
                most_spread(*_around_mean(means[0] + 0.5, of_mean)),
                most_spread(*_around_mean(means[1] + 0.5, of_mean)),
            ),
            mass=1.0,
            scatter=squares,
            beside=step + self.weighing.bias,
            risk=confidence.risk(),
            coverage="at_least" if exact else "worst_case",
            noises=noises,
            of_line=lambda a, b: (abs(a), abs(b)),
            law=self.law,
        )


@dataclass(frozen=True, kw_only=True)
class SecretMomentsReader(MomentsReader):
    """Reads nine noisy sums. Knows the question, not who is there.

    A sum of g over people who weigh a is, off the sums T of Bernstein's polynomials, sum g_ij T_ij: with
    :math:`q(m) = (m^2, -m (1 - m), (1 - m)^2)`, g_ij is :math:`a (i/2 - m_x)(j/2 - m_y) + b q_i(m_x) + c
    q_j(m_y)`, the blossom of g. At true means and numbers it is noise. Where these are at most d_x and d_y
    off, :math:`(i/2 - m_x)(j/2 - m_y)` is by at most :math:`d_x |j/2 - m_y| + d_y |i/2 - m_x| + d_x d_y`, and
    q_i(m), whose derivative is :math:`2 (m - i/2)`, by :math:`2 d |m - i/2| + d^2`.

    Attributes:
        people: The number of people to predict for; None: unknown.
        labels: Of how many labels there are sums.
    """

    people: float | None
    labels: int = 1

    sums: ClassVar[int] = BERNSTEIN

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of the nine sums of a label, or of all people: what an offer pays for."""
        if self.normal:
            return DiscreteGaussian(sigmas=((math.sqrt(2) * self.weighing.unit + 1) * GRID_SIZE,) * BERNSTEIN)
        return DiscreteLaplace(scales=(float(self.weighing.unit * GRID_SIZE),) * BERNSTEIN)

    def price(self, weight: int) -> Cost:
        """See `PairReader`."""
        return bernstein_cost(weight, self.noise)

    @property
    def predicted_error(self) -> float:
        """As where the number is public; four coefficients are 1/4. Where no size is expected it is 1."""
        if not self.people or self.people <= 0:
            return 1.0
        noise = math.sqrt(self.labels / 2) / (self._mean.cap * self.people)
        return min(1.0, math.hypot(noise, self._mean.bias / 2) / _EVEN)

    @property
    def interval_width(self) -> float:
        """Nothing is predicted of it."""
        return 2.0

    @staticmethod
    def parts(people: int, *summed: int) -> tuple[int, ...]:
        """As they are, see `app.accounting.pair_prices`."""
        return summed

    def of_labels(self, labels: Sequence[tuple[int, Weighing]], people: int, tilt: float) -> Self:
        """See `PairReader.of_labels`: weights are the same in all labels."""
        return replace(self, labels=len(labels))

    def read(self, *drawn: Sequence[int]) -> dict[str, object]:
        """See `MomentsReader.read`."""
        noisy = max(self._summed(drawn).sum(), 0.0) / self._mean.cap
        return {**super().read(*drawn), "noisy_count": float(noisy)}

    def seen(self, *drawn: Sequence[int]) -> tuple[Seen, Seen]:
        """See `MomentsReader.seen`."""
        sums, mean = self._summed(drawn), self._mean
        cap, bound = mean.cap, mean.mass_bound(float(sums.sum()), 0.0)
        moved = mean.bias * bound
        return (
            self._seen(sums, mean.dataset_hull, mean.inequality * bound, (cap - mean.floor) / 2 + moved),
            self._seen(sums, mean.population_hull, cap * bound, cap / 2 + moved),
        )

    def _summed(self, drawn: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """The sums by i and j [epsilons times people]."""
        unit = self.weighing.unit * GRID_SIZE
        return np.array([sum(column) / unit for column in zip(*drawn, strict=True)]).reshape(3, 3)

    @property
    def _mean(self) -> PivotReader:
        # Of p there are three sums of three noises each, for every label.
        pivot = three_sums_pivot(3 * self.labels, normal=self.normal)
        unit, weighing = self.weighing.unit, self.weighing
        return PivotReader(
            grid=self.grids[0],
            cap=weighing.cap / unit,
            floor=weighing.floor / unit,
            pivot=pivot,
            tilt=weighing.tilt,
        )

    def _seen(self, sums: NDArray[np.float64], of_mean: OfMean, scatter: float, beside: float) -> Seen:
        mass = float(sums.sum())
        halves = np.array([0.0, 0.5, 1.0])
        means, ends = [], []
        for axis in (1, 0):
            own = sums.sum(axis=axis)
            first, second = float(own @ halves), float(own @ halves[::-1])
            center = float(ratio(round(first * GRID_SIZE), round(second * GRID_SIZE)))
            ends.append(of_mean(first, second, center, confidence.risk() * OF_MEAN))
            means.append(first / mass if mass > 0 else 0.5)
        (low_x, high_x), (low_y, high_y) = ends
        near = max(means[0] - low_x, high_x - means[0]), max(means[1] - low_y, high_y - means[1])
        x, y = min(max(means[0], low_x), high_x), min(max(means[1], low_y), high_y)

        def of(a: float, b: float, c: float, x: float, y: float) -> NDArray[np.float64]:
            own, other = (np.array([one * one, one * (one - 1), (1 - one) ** 2]) for one in (x, y))
            return a * np.outer(halves - x, halves - y) + b * own[:, None] + c * other[None, :]

        off_x, off_y = max(high_x - x, x - low_x), max(high_y - y, y - low_y)
        far_x, far_y = np.abs(halves - x)[:, None], np.abs(halves - y)

        def noises(a: float, b: float, c: float) -> Sequence[float]:
            farther = abs(a) * (off_x * far_y + off_y * far_x + off_x * off_y)
            farther += abs(b) * off_x * (2 * far_x + off_x) + abs(c) * off_y * (2 * far_y + off_y)
            sizes: list[float] = (np.abs(of(a, b, c, x, y)) + farther).ravel().tolist()
            return sizes

        def of_line(a: float, b: float) -> Sequence[float]:
            own = abs(a) * np.maximum(high_x - halves, halves - low_x)
            other = abs(b) * np.maximum(high_y - halves, halves - low_y)
            sizes: list[float] = (own[:, None] + other[None, :]).ravel().tolist()
            return sizes

        moments = (0.0, 0.0, 0.0)
        if mass > 0:
            read = [
                float((of(*one, means[0], means[1]) * sums).sum()) / mass
                for one in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
            ]
            moments = read[0], read[1], read[2]
        return Seen(
            means=(means[0] - 0.5, means[1] - 0.5),
            near=near,
            moments=moments,
            spreads=(most_spread(low_x, high_x), most_spread(low_y, high_y)),
            mass=mass,
            scatter=scatter,
            beside=beside,
            risk=confidence.risk() - mass_risk(),
            coverage="at_least" if self._mean.floor == self._mean.cap and not scatter else "worst_case",
            noises=noises,
            of_line=of_line,
            law=lambda sizes, drawn: noise_law(sizes, drawn, draws=self.labels, normal=self.normal),
        )
