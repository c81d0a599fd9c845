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

Intervals are in `app.estimators.lines`.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from app.accounting.measurement import Workload
from app.accounting.pair_prices import BERNSTEIN
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.estimators import confidence
from app.estimators.covariance import MIDDLE, PairReader, PublicPair, SecretPair, shown_interval
from app.estimators.expected import GUESS
from app.estimators.lines import OF_MEAN, STEEPEST, Band, Ends, Seen, around
from app.estimators.moments_secret import three_sums_pivot
from app.estimators.pivot import HullOfMean, LinearPivot, mass_risk, most_spread, noise_law, ratio

_HALVES = np.array([0.0, 0.5, 1.0])
"""Where Bernstein's polynomials of degree 2 are largest."""

POINTS = 21
"""Of a band, over the whole range of the number that it is drawn on."""

AT_MEAN = (-1 / 40, -1 / 160, 0.0, 1 / 160, 1 / 40)
"""More of them, beside its mean, where the ends of a band are bent most [range widths]."""

NUMBERS = 2 * (POINTS + len(AT_MEAN)) + 6
"""About how many numbers an answer has."""


@dataclass(frozen=True, kw_only=True)
class MomentsReader(PairReader):
    """Reads the correlation and both lines off noisy sums of second moments.

    Attributes:
        expected: The variances of both numbers that predictions are for; no answer depends on them.
    """

    workload: ClassVar[Workload] = Workload.MOMENTS
    largest: ClassVar[float] = 1.0
    expected: Ends = (GUESS.spread_in_pair, GUESS.spread_in_pair)

    @property
    def deviations(self) -> float:
        """The product of both expected standard deviations, by which a covariance is divided."""
        return max(math.sqrt(math.prod(self.expected)), 1 / GRID_SIZE**2)

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
        ends, of_all = (around(one.correlation(), shown) for one in (dataset, population))
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
        slope = min(max(dataset.moments[0] / dataset.variances()[0], -STEEPEST), STEEPEST)
    part = 1 - 2 * OF_MEAN
    ends, of_all = (around(one.slope(part), slope) for one in (dataset, population))
    bands = [Band.of(one, slope) for one in (dataset, population)]

    def at(number: float) -> tuple[float, list[Ends]]:
        x = (number - float(on.lower)) / float(on.width) - 0.5
        middle = dataset.means[1] + slope * (x - dataset.means[0])
        found = [around(band.at(x), middle) for band in bands]
        return _place(of, middle), [(_place(of, low), _place(of, high)) for low, high in found]

    intercept, (own, others) = at(0.0)
    band = []
    numbers = {float(on.lower) + float(on.width) * point / (POINTS - 1) for point in range(POINTS)}
    beside = {_place(on, min(max(dataset.means[0] + away, -0.5), 0.5)) for away in AT_MEAN}
    for number in sorted(numbers | beside):
        middle, ((lower, upper), _) = at(number)
        band.append({"at": number, "estimate": middle, "lower": lower, "upper": upper})
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


def _squared(ends: Ends) -> Ends:
    squares = [end * end for end in ends]
    return 0.0 if ends[0] <= 0 <= ends[1] else min(squares), max(squares)


def _place(grid: Grid, place: float) -> float:
    """A place about the middle of the range [range widths] in the data's unit, also outside of it."""
    return float(grid.lower) + (place + 0.5) * float(grid.width)


def _around_mean(mean: float, near: float) -> Ends:
    """The ends of an interval for a mean, in the range from 0 to 1."""
    return max(0.0, mean - near), min(1.0, mean + near)


Noises = Callable[[float, float, float, float, float], Sequence[float]]
"""See `app.estimators.lines.Seen`."""


@dataclass(frozen=True, kw_only=True)
class PublicMomentsReader(MomentsReader, PublicPair):
    """Reads second moments where the number of people is public."""

    of_products: ClassVar[tuple[float, ...]]
    """Of the noises in the mean of products about the middles, as multiples of `scales`."""

    far: ClassVar[float]
    """How far the places z of a line lie from the middle, see `app.estimators.lines`."""

    @property
    def predicted_error(self) -> float:
        """Root mean square error of a correlation of 0, where variances are as expected."""
        bias = 2 * self.weighing.bias / 4
        law = self.law(self.of_products, self.weighing.uneven * self.deviations**2)
        return min(1.0, math.sqrt(law.variance + bias**2) / self.deviations)

    @property
    def interval_width(self) -> float:
        """Of its interval for the dataset, where that is so and all sums have no error."""
        low, high = self._seen(
            (0.0, 0.0), (0.0, *self.expected), self.weighing.uneven, self.step
        ).correlation()
        return high - low

    @abstractmethod
    def means(self, averaged: Sequence[float]) -> tuple[float, float, float, float, float]:
        """The means of both numbers, of their products and of the squares of either [about the middles].

        Args:
            averaged: The noisy sums, see `PublicPair.averaged`.
        """

    @abstractmethod
    def noises(self, means: Ends, of_mean: float) -> Noises:
        """See `Seen`.

        Args:
            means: Of both numbers, about the middles.
            of_mean: What either is off by at most.
        """

    def seen(self, *drawn: Sequence[int]) -> tuple[Seen, Seen]:
        """See `MomentsReader.seen`."""
        x, y, products, *squares = self.means(self.averaged(drawn))
        moments = products - x * y, squares[0] - x * x, squares[1] - y * y
        weighing = self.weighing
        return (
            self._seen((x, y), moments, weighing.uneven, self.step),
            self._seen((x, y), moments, weighing.squares, weighing.largest / 2),
        )

    def _seen(self, means: Ends, moments: tuple[float, float, float], squares: float, step: float) -> Seen:
        of_mean = self.of_mean(squares, step, confidence.risk() * OF_MEAN)
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
            far=self.far,
            noises=self.noises(means, of_mean),
            law=self.law,
        )


@dataclass(frozen=True, kw_only=True)
class FiveSumsReader(PublicMomentsReader):
    """Reads sums of both numbers, of their products and of the squares of either, with Gaussian noise."""

    sums: ClassVar[int] = 5
    of_products: ClassVar[tuple[float, ...]] = (0.5,)
    far: ClassVar[float] = 1.0

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Half of it on the products and squares: see `app.accounting.pair_prices`."""
        return self._noise(self.size, self.size, self.size / 2, self.size / 2, self.size / 2)

    @staticmethod
    def parts(people: int, *summed: int) -> tuple[int, ...]:
        """Both numbers about the middles, the products and the squares; see `PairReader.parts`."""
        first, second, *others = summed
        return first - MIDDLE * people, second - MIDDLE * people, *others

    def means(self, averaged: Sequence[float]) -> tuple[float, float, float, float, float]:
        """See `PublicMomentsReader`: the sums themselves."""
        x, y, products, of_x, of_y = averaged
        return x, y, products, of_x, of_y

    def noises(self, means: Ends, of_mean: float) -> Noises:
        """See `PublicMomentsReader`."""

        def sizes(a: float, b: float, c: float, u: float, v: float) -> Sequence[float]:
            x, y = (
                abs(line - a * other - 2 * of_own * own) + (abs(a) + 2 * abs(of_own)) * of_mean
                for own, other, of_own, line in ((means[0], means[1], b, u), (means[1], means[0], c, v))
            )
            return x, y, abs(a) / 2, abs(b) / 2, abs(c) / 2

        return sizes


@dataclass(frozen=True, kw_only=True)
class Blossom:
    r"""What noises of sums of Bernstein's polynomials add to that of g, where both means are nearly known.

    A sum of g over people who weigh a is, off the sums T of Bernstein's polynomials, sum g_ij T_ij: with
    :math:`q(m) = (m^2, -m (1 - m), (1 - m)^2)`, g_ij is :math:`a (i/2 - m_x)(j/2 - m_y) + b q_i(m_x) + c
    q_j(m_y)`, the blossom of g. At true means and numbers it is noise. Where these are at most d_x and d_y
    off, :math:`(i/2 - m_x)(j/2 - m_y)` is by at most :math:`d_x |j/2 - m_y| + d_y |i/2 - m_x| + d_x d_y`, and
    q_i(m), whose derivative is :math:`2 (m - i/2)`, by :math:`2 d |m - i/2| + d^2`.

    Attributes:
        x, y: Both means [positions in the ranges].
        off_x, off_y: What these are off by at most.
        near: What the first one is, at most, off the mean that was read.
    """

    x: float
    y: float
    off_x: float
    off_y: float
    near: float

    @classmethod
    def of(cls, means: Ends, ends: tuple[Ends, Ends], near: float) -> Self:
        """Of means that were read, and their intervals."""
        (x, off_x), (y, off_y) = (
            (place, max(high - place, place - low))
            for mean, (low, high) in zip(means, ends, strict=True)
            for place in (min(max(mean, low), high),)
        )
        return cls(x=x, y=y, off_x=off_x, off_y=off_y, near=near)

    @staticmethod
    def at(a: float, b: float, c: float, x: float, y: float) -> NDArray[np.float64]:
        """g_ij for these means, by i and j."""
        own, other = (np.array([one * one, one * (one - 1), (1 - one) ** 2]) for one in (x, y))
        return a * np.outer(_HALVES - x, _HALVES - y) + b * own[:, None] + c * other[None, :]

    def sizes(
        self, a: float, b: float, c: float, u: float, v: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of the noises of the sum of g + u (x - m_x) + v (y - m_y), and how far off they may be."""
        far_x, far_y = np.abs(_HALVES - self.x)[:, None], np.abs(_HALVES - self.y)
        off_x, off_y, near = self.off_x, self.off_y, self.near
        farther = abs(a) * (off_x * far_y + off_y * far_x + off_x * off_y)
        farther += abs(b) * off_x * (2 * far_x + off_x) + abs(c) * off_y * (2 * far_y + off_y)
        lines = u * (_HALVES - self.x)[:, None] + v * (_HALVES - self.y)
        if u or v:
            farther += (abs(u) + abs(b) * near) * off_x + (abs(v) + abs(a) * near) * off_y
            farther += near * (abs(b) * far_x + abs(a) * far_y)
        return self.at(a, b, c, self.x, self.y) + lines, farther


@dataclass(frozen=True, kw_only=True)
class NineSumsReader(PublicMomentsReader):
    r"""Reads sums of products of Bernstein's polynomials, with Laplace noise.

    Together they are the weight of all people, which is public: what they exceed it by is noise, and each has
    a ninth of that taken off. So a sum of coefficients k_ij has the noises of :math:`k_{ij} - ar k`, and
    constants have none.
    """

    sums: ClassVar[int] = BERNSTEIN
    of_number: ClassVar[tuple[float, ...]] = (0.5,) * 6
    of_products: ClassVar[tuple[float, ...]] = (0.25,) * 4
    far: ClassVar[float] = 0.5

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """The same on all: see `app.accounting.pair_prices`."""
        return self._noise(*(self.size,) * BERNSTEIN)

    @staticmethod
    def parts(people: int, *summed: int) -> tuple[int, ...]:
        """As they are, see `app.accounting.pair_prices`."""
        return summed

    def means(self, averaged: Sequence[float]) -> tuple[float, float, float, float, float]:
        """See `PublicMomentsReader`."""
        noisy = np.array(averaged).reshape(3, 3)
        parts = noisy + (1 - noisy.sum()) / BERNSTEIN
        about, square = _HALVES - 0.5, Blossom.at(0.0, 1.0, 0.0, 0.5, 0.5)[:, 0]
        by_x, by_y = parts.sum(axis=1), parts.sum(axis=0)
        return (
            float(by_x @ about),
            float(by_y @ about),
            float(about @ parts @ about),
            float(by_x @ square),
            float(by_y @ square),
        )

    def noises(self, means: Ends, of_mean: float) -> Noises:
        """See `PublicMomentsReader`."""
        places = means[0] + 0.5, means[1] + 0.5
        first, second = (_around_mean(one, of_mean) for one in places)
        blossom = Blossom.of(places, (first, second), of_mean)

        def sizes(a: float, b: float, c: float, u: float, v: float) -> Sequence[float]:
            each, farther = blossom.sizes(a, b, c, u, v)
            found: list[float] = (np.abs(each - each.mean()) + farther + farther.mean()).ravel().tolist()
            return found

        return sizes


@dataclass(frozen=True, kw_only=True)
class SecretMomentsReader(MomentsReader, SecretPair):
    """Reads nine noisy sums. Knows the question, not who is there; see `Blossom`."""

    sums: ClassVar[int] = BERNSTEIN
    moved: ClassVar[int] = GRID_SIZE

    @property
    def predicted_error(self) -> float:
        """As where the number is public; four coefficients are 1/4. Where no size is expected it is 1."""
        if not self.people or self.people <= 0:
            return 1.0
        noise = math.sqrt(self.labels / 2) / (self.mean.cap * self.people)
        return min(1.0, math.hypot(noise, self.mean.bias / 2) / self.deviations)

    @staticmethod
    def parts(people: int, *summed: int) -> tuple[int, ...]:
        """As they are, see `app.accounting.pair_prices`."""
        return summed

    def read(self, *drawn: Sequence[int]) -> dict[str, object]:
        """See `MomentsReader.read`."""
        noisy = max(self._summed(drawn).sum(), 0.0) / self.mean.cap
        return {**super().read(*drawn), "noisy_count": float(noisy)}

    def seen(self, *drawn: Sequence[int]) -> tuple[Seen, Seen]:
        """See `MomentsReader.seen`."""
        sums, mean = self._summed(drawn), self.mean
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

    @cached_property
    def pivot(self) -> LinearPivot:
        """See `SecretPair`: of p there are three sums of three noises each, for every label."""
        return three_sums_pivot(3 * self.labels, normal=self.normal)

    def _seen(self, sums: NDArray[np.float64], of_mean: HullOfMean, scatter: float, beside: float) -> Seen:
        mass = float(sums.sum())
        means, ends = [], []
        for axis in (1, 0):
            own = sums.sum(axis=axis)
            first, second = float(own @ _HALVES), float(own @ _HALVES[::-1])
            center = float(ratio(round(first * GRID_SIZE), round(second * GRID_SIZE)))
            ends.append(of_mean(first, second, center, confidence.risk() * OF_MEAN))
            means.append(first / mass if mass > 0 else 0.5)
        (low_x, high_x), (low_y, high_y) = ends
        near = max(means[0] - low_x, high_x - means[0]), max(means[1] - low_y, high_y - means[1])
        blossom = Blossom.of((means[0], means[1]), (ends[0], ends[1]), near[0])

        def noises(a: float, b: float, c: float, u: float, v: float) -> Sequence[float]:
            each, farther = blossom.sizes(a, b, c, u, v)
            sizes: list[float] = (np.abs(each) + farther).ravel().tolist()
            return sizes

        moments = (0.0, 0.0, 0.0)
        if mass > 0:
            read = [
                float((Blossom.at(*one, means[0], means[1]) * sums).sum()) / mass
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
            coverage="at_least" if self.mean.floor == self.mean.cap and not scatter else "worst_case",
            far=0.5,
            noises=noises,
            law=lambda sizes, drawn: noise_law(sizes, drawn, draws=self.labels, normal=self.normal),
        )
