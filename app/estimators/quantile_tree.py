r"""Quantiles read off noisy counts of cells, drawn level by level, each level's cells closer to them.

A level cuts the grid into cells and asks for the weight of the people in each, with noise. Its cells are
chosen from the noisy counts of the levels before it: most of them where a wanted quantile may lie, one for
all that lies below, one above. So the last level, which has most of the price, has a handful of cells of a
few people each, whatever the range; the first ones have little of the price and tell cells of very many
people apart.

*Privacy.* Each level's cells are a partition of the grid, so a person is in one cell a level. For fixed cells
a replaced person moves two counts by their weight W, and one who comes or goes moves one. The cells of level
l are a function of :math:`N_1, \dots, N_{l-1}`, the noisy counts of earlier levels, which is post-processing;
given these, the noise of level l is independent of everything else. So the density of all counts is the
product :math:`\prod_l p(N_l \mid x, N_1, \dots, N_{l-1})`, and for neighbors x, x' and every outcome each
factor's ratio is bounded by the price of one level's counts, whichever cells the outcome chose:
:math:`2 W / b_l` (`replace_one`) or :math:`W / b_l`. The price is their sum (adaptive sequential composition;
`app.accounting.shape_prices.tree_cost`); under Gaussian noise the same holds of mu^2 (Dong, Roth, Su,
arXiv:1905.02383, theorem 3.2 and corollary 3.3). Were cells chosen from exact counts, the factors would
compare laws of counts of different cells, and nothing would bound them: the privacy audit has that as a
planted bug.

*Noise.* The part :math:`p_l` of an offer buys the scale :math:`2 U / p_l`, or :math:`U / p_l`, U the weight
of an epsilon of 1; of mu^2 the standard deviation :math:`2 U / \sqrt{p_l}`, or
:math:`\sqrt 2 U / \sqrt{p_l}`, and a unit more.

*Least squares.* In replace_one the total is public, and counts are moved onto the plane on which they sum to
it (`app.estimators.shares`): the rank of the end of j of K cells then has j Laplaces of scale
:math:`(1 - j/K) b` and K - j of scale :math:`(j/K) b`, a variance of :math:`2 b^2 j (K - j) / K`. Where it is
secret, the rank is tested by :math:`(1 - q) s_1 - q s_2`, with s_1 the noisy weight of the j cells and s_2
that of the others, which is 0 but for noise where the rank is q.

*The interval.* Let :math:`e_1 < \dots < e_{K-1}` be where cells of a level begin, x the quantile, the least
value with :math:`F(x) \ge q`, and :math:`e_k` the first one above x, so that the rank below :math:`e_k` is at
least q. The lower end is where the cell begins that ends at the least :math:`e_j` whose rank is not rejected
to be at least q. Thus the interval begins above x only if the one test at :math:`e_k` rejects: there is no
union over cells, and :math:`e_k` does not depend on that level's noise. The upper end is the same upside
down. The interval is what those of all levels have in common: their risks add up to 5 %, nine tenths of it
for the last level. It is made of cells, so it is right for ties and whole numbers.

Where people weigh differently, or it is about the population, the rank of the weighted values is off by more
than noise: by q (1 - q) times :math:`\sum c_i^2` (population) or :math:`\sum (c_i - 1/n)^2` in variance, c_i
the weight over the total, half a step of their lattice, and the tilt's bias (`app.estimators.weighing`).
These are often wider than the last level's cells, so there the risk is shared by all levels. In
add_remove_one weights lie between a floor and a cap, r their quotient, and the variance is bounded as in
`app.estimators.pivot`; at a tilt of 1 it has no part in it: where :math:`F \ge q` the weighted rank is at
least :math:`r q / (1 - q + r q)`, and where F < q less than :math:`q / (q + r (1 - q))`.

*The estimate* is where a non-decreasing line through the ranks of the last level, beyond its outer cells
through those of earlier levels, reaches q, kept between the ends that earlier levels leave. Values in the
region that the last level divides are nearly evenly spread: m people at random places of C cells have a
variance of m/C a cell. So its counts are drawn to an even density by the part that noise has of their
variance, which is as seen where it is more than that of people at random places. Tests, and so the intervals,
look at counts as they are.

*Searches.* People who answered searches stand beside the others: their distribution function at the ends of
cells, an estimate or a bound that is published already, times their weight, is added to ranks. It is the same
for all neighbors. Tests for the lower end get the upper bound, those for the upper end the lower one; a
third of the risk is the bounds', which hold at all points together.

References:
    Hay, Rastogi, Miklau, Suciu, PVLDB 2010,
    doi:10.14778/1920841.1920970, least squares; Qardaji, Yang, Li, PVLDB 2013, doi:10.14778/2556549.2556576,
    few levels of many cells.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np
import scipy
from numpy.typing import NDArray

from app.core.epsilon import MAX_EPSILON, MICRO
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency
from app.estimators import confidence
from app.estimators.interface import Coverage, Interval
from app.estimators.quantiles import ErrorLaw, error_law
from app.estimators.weighing import Target, Weighing

PARTS = tuple(Fraction(part, 16) for part in (1, 1, 1, 4, 9))
"""What each level has of the price."""

LEVELS = len(PARTS)

FREE_LEVELS = 16
"""Where no one pays: until cells are single steps of the grid, of each other a fourth at most."""

_FIRST, _INNER = 14, (12, 8, 6, 4)
"""Cells of the first level, and two more for each quantile; of later ones, for each quantile, and two
beside."""

_RISKS = tuple(Fraction(one, 40) for one in (1, 1, 1, 1, 36))
"""What each level has of the risk of an interval that noise alone decides."""

_SPREAD_RISKS = tuple(Fraction(one, 10) for one in (1, 2, 2, 2, 3))
"""The same of one that is wider than that."""

_MISSED = 0.005
"""The risk, for each end, that the next level's cells leave a quantile in one of the two outer ones."""

_EVEN = 0.5
"""How much of the next level's cells are of equal length; the others are of equal noisy weight."""

_FAR = 10.0
"""Standard deviations beyond which everything is rejected: sums of Laplaces and Normals have log-concave
densities, of which less than e^-9 lies there."""

_LEAST_NOISE = 1e-9
"""Noise of a report, where a search has none: `AffineProblem` needs some."""

_MASS_PART = 0.1
"""What the bound on a secret total weight has of a test's risk."""

Floats = NDArray[np.float64]


def searched_risk() -> float:
    """What the bounds of searches have of the risk of each end."""
    return confidence.risk() / 6


def cells_of(level: int, quantiles: int) -> int:
    """The most cells that a level has, for that many quantiles."""
    return _FIRST + 2 * quantiles if level == 0 else _INNER[min(level, LEVELS - 1) - 1] * quantiles + 2


def target_of(tilt: float, currency: Currency = Currency.LAPLACE, quantiles: int = 1) -> Target:
    r"""What weights make small: :math:`\sum w_i^2 / 4`, noise of a middle rank, and the tilt's bias."""
    missed = _missed(currency, quantiles)
    return Target(variance=1 / (2 * missed) ** 2, tilt=tilt / missed)


def _missed(currency: Currency, quantiles: int) -> float:
    """The scale of Laplace noise like that of a rank, the weights of an offer of 1 being 1."""
    cells, part = cells_of(LEVELS - 1, quantiles), float(PARTS[-1])
    return math.sqrt(cells / part / 2) if currency is Currency.GAUSSIAN else math.sqrt(cells) / part


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The distribution of the values of people who answered searches, at some places.

    Attributes:
        parts: Of them below each place, estimated.
        least, most: Bounds that hold at all places together, each but for `searched_risk`.
    """

    parts: Floats
    least: Floats
    most: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The people who answered searches.

    Attributes:
        people: How many.
        noise: Variance of the estimated part at q, beyond that of drawing these people.
        below: Their distribution below grid steps.
    """

    people: int
    noise: float
    below: Callable[[Sequence[int]], Places]

    def report(self, currency: Currency) -> float:
        """The noise as that of one report of each of them, in the unit of `target_of`."""
        return max(self.people * self.noise / _missed(currency, 1) ** 2, _LEAST_NOISE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The noisy counts of a level.

    Attributes:
        starts: Where each cell but the first one begins, ascending [grid steps].
        counts: The weight of the people in each cell, noisy [units of the weights].
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """What an answer says.

    Attributes:
        estimate: [data's unit].
        interval: For the quantile of the dataset; add_remove_one: of those who take part [data's unit].
        population_interval: For that of the population [data's unit].
    """

    estimate: float
    interval: Interval
    population_interval: Interval


@dataclass(frozen=True, kw_only=True)
class TreePlan:
    """One release of quantiles.

    Attributes:
        quantiles: Each in (0, 1), ascending.
        weighing: What people count for.
        people: add_remove_one: the number of people to predict for; None: unknown.
        beside: replace_one: people who answered searches, for one quantile.
        free: replace_one: whether all who have a weight in it are public: no one pays.
    """

    quantiles: tuple[Fraction, ...]
    weighing: Weighing
    free: bool = False
    people: float | None = None
    beside: Beside | None = None

    @cached_property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of each count, one size a level [units of the weights]."""
        moves, unit = 2 if self.weighing.is_public else 1, self.weighing.unit
        if self.weighing.is_gaussian:
            return DiscreteGaussian(sigmas=tuple(math.sqrt(2 * moves / part) * unit + 1 for part in PARTS))
        return DiscreteLaplace(scales=tuple(float(math.ceil(moves * unit / part)) for part in PARTS))

    @property
    def levels(self) -> int:
        """How many there are."""
        return FREE_LEVELS if self.free else LEVELS

    def noise_of(self, level: int, cells: int) -> DiscreteLaplace | DiscreteGaussian:
        """Of all counts of a level."""
        size = (self._size(level),) * cells
        return DiscreteGaussian(sigmas=size) if self.weighing.is_gaussian else DiscreteLaplace(scales=size)

    @property
    def searched_weight(self) -> float:
        """The part of the whole weight that people who answered searches have."""
        return 0.0 if self.beside is None else 1 - self.weighing.private

    @property
    def predicted_error(self) -> float:
        """Root mean square error about the dataset, as a part of all people: how far from q the rank is."""
        return self._error(self.weighing.uneven)

    @property
    def interval_width(self) -> float:
        """How wide an answer counts where answers are compared, as a part of all people, at most 1."""
        squares = self.weighing.squares if self.weighing.is_public else self.weighing.uneven
        return min(1.0, 2 * NormalDist().inv_cdf((1 + confidence.level()) / 2) * self._error(squares))

    def _error(self, squares: float) -> float:
        """Of people with these squared weights.

        The noise is that of a rank in the middle of the last level; an answer is no worse than any rank.
        """
        mass = float(
            _mass(self.weighing, self.beside)
            if self.weighing.is_public
            else self.weighing.cap * (self.people or 0)
        )
        if not mass:
            return 1.0
        cells = cells_of(LEVELS - 1, len(self.quantiles))
        # Where the total is secret, at q = 1/2.
        noise = (1 if self.weighing.is_gaussian else 2) * cells / 4 * (self._size(LEVELS - 1) / mass) ** 2
        if self.beside is not None:
            noise += self.searched_weight**2 * self.beside.noise
        spread = max(float(q * (1 - q)) for q in self.quantiles)
        anywhere = max(_anywhere(float(q)) for q in self.quantiles)
        return min(
            1.0,
            math.sqrt(1 / (1 / max(noise, 1e-300) + 1 / anywhere) + spread * squares + self.weighing.bias**2),
        )

    def starts(self, drawn: Sequence[Drawn]) -> tuple[int, ...]:
        """Where the cells of the next level begin, all but the first one.

        Privacy: post-processing of the counts of earlier levels.
        """
        count, level = len(self.quantiles), len(drawn)
        cells = cells_of(level, count)
        if not drawn:
            return tuple(round(Fraction(cell * GRID_SIZE, cells)) for cell in range(1, cells))
        joined = self._regions(drawn)
        inner = cells - 1 - len(joined)
        places, ranks = self._rising(drawn)
        found: set[int] = set()
        for low, high, own in joined:
            points = np.array([low, *places[(places > low) & (places < high)], high])
            weights, lengths = np.interp(points, places, ranks), (points - low) / (high - low)
            weights = weights - weights[0]
            part = weights / weights[-1] if weights[-1] > 0 else lengths
            pieces = max(2, inner * own // count)
            cut = np.interp(np.arange(pieces + 1) / pieces, _EVEN * lengths + (1 - _EVEN) * part, points)
            found.update(round(place) for place in cut)
        # A region has at least one step in it, so one of its ends is inside of the grid.
        return tuple(sorted(place for place in found if 0 < place <= GRID_SIZE))

    def read(self, grid: Grid, drawn: Sequence[Drawn]) -> list[Quantile]:
        """What all levels say of each quantile; estimates rise.

        Args:
            grid: The study's grid.
            drawn: The counts of all levels.

        Privacy: post-processing of the counts.
        """
        estimates, ends = [], []
        places, ranks = self._rising(drawn if self.free else [*drawn[:-1], self._smooth(drawn)])
        for q in map(float, self.quantiles):
            low, high = self._region(q, drawn, bounded=False)
            # What earlier levels rule out has no part in a line through one of the two outer cells.
            within = np.clip(places, low, high)
            right = int(np.clip(np.searchsorted(ranks, q), 1, len(ranks) - 1))
            rise = ranks[right] - ranks[right - 1]
            part = (q - ranks[right - 1]) / rise if rise > 0 else 0.5
            steps = max(0.0, within[right] - within[right - 1] - 1)
            place = float(within[right - 1] + 0.5 + min(max(part, 0.0), 1.0) * steps)
            estimates.append(min(max(place, low + 0.5), high - 0.5))
            ends.append([self._interval(q, drawn, population=of) for of in (False, True)])
        found = []
        for place, (own, population) in zip(sorted(estimates), ends, strict=True):
            spread = self.weighing.is_public and not self._spread(population=False)
            coverage: Coverage = "at_least" if spread or self.weighing.is_equal else "worst_case"
            found.append(
                Quantile(
                    estimate=_value(grid, place),
                    interval=_interval(grid, own, place, coverage),
                    population_interval=_interval(grid, population, place, "worst_case"),
                )
            )
        return found

    def _size(self, level: int) -> float:
        noise, level = self.noise, min(level, LEVELS - 1)
        return noise.sigmas[level] if isinstance(noise, DiscreteGaussian) else noise.scales[level]

    def _rising(self, drawn: Sequence[Drawn]) -> tuple[Floats, Floats]:
        """Ends of cells [grid steps], and the part of people below each; never falling.

        A level has its say on all that lies between its starts. What is beyond is one cell to it, within
        which earlier levels tell how people are spread.
        """
        places, ranks = np.array([0.0, GRID_SIZE + 1.0]), np.array([0.0, 1.0])
        for level in drawn:
            below = self._below(level)
            if self.beside is not None:
                below = below + self.searched_weight * self.beside.below(level.starts).parts
            own = np.clip(scipy.optimize.isotonic_regression(below).x, 0.0, 1.0)
            starts = np.array(level.starts, dtype=np.float64)
            first, last = np.interp((starts[0], starts[-1]), places, ranks)
            left, right = places < starts[0], places > starts[-1]
            lower = ranks[left] * (own[0] / first if first > 0 else 0.0)
            upper = 1 - (1 - ranks[right]) * ((1 - own[-1]) / (1 - last) if last < 1 else 0.0)
            upper[-1:] = 1.0
            places = np.concatenate([places[left], starts, places[right]])
            ranks = np.concatenate([lower, own, upper])
        return places, ranks

    def _smooth(self, drawn: Sequence[Drawn]) -> Drawn:
        """The last level, each region's counts drawn to an even density; the module's docstring says how far.

        Privacy: post-processing of the counts.
        """
        last = drawn[-1]
        ends = np.array([0, *last.starts, GRID_SIZE + 1])
        counts = np.array([float(count) for count in last.counts])
        noise = (1 if self.weighing.is_gaussian else 2) * self._size(LEVELS - 1) ** 2
        person = float(max(self.weighing.weights, default=0))
        for low, high, _ in self._regions(drawn[:-1]):
            first, after = np.searchsorted(ends, (low, high))
            own, lengths = counts[first:after], np.diff(ends[first : after + 1])
            if len(own) < 3:  # The spread of two tells nothing of how far they differ.
                continue
            even = own.sum() * lengths / lengths.sum()
            off = own - even
            spread = max(
                person * float(even.mean()), float((off**2).sum()) / (len(own) - 1) - noise, person**2
            )
            counts[first:after] = even + off * spread / (spread + noise)
        return Drawn(starts=last.starts, counts=tuple(round(count) for count in counts))

    def _regions(self, drawn: Sequence[Drawn]) -> list[tuple[int, int, int]]:
        """What levels leave for quantiles, ascending: two ends, and for how many of them it is."""
        # The first levels serve the interval, too, which the bounds of searches widen.
        bounded = len(drawn) < LEVELS - 2
        joined: list[tuple[int, int, int]] = []
        for low, high in sorted(self._region(q, drawn, bounded=bounded) for q in map(float, self.quantiles)):
            if joined and low < joined[-1][1]:
                first, last, before = joined.pop()
                joined.append((first, max(last, high), before + 1))
            else:
                joined.append((low, high, 1))
        return joined

    def _below(self, level: Drawn) -> Floats:
        """The part of the weight of central and public people below each start, times what it is of all."""
        cells = len(level.counts)
        if not self.weighing.is_public:
            total = sum(level.counts)
            sums = np.cumsum(np.array(level.counts, dtype=object))[:-1]
            if total > 0:
                return np.array([float(Fraction(one, total)) for one in sums])
            return np.arange(1, cells) / cells
        if not self.weighing.mass:
            return np.zeros(cells - 1)
        raw = np.array([float(Fraction(count, self.weighing.mass)) for count in level.counts])
        return self.weighing.private * np.cumsum(raw + (1 - raw.sum()) / cells)[:-1]

    def _region(self, q: float, drawn: Sequence[Drawn], *, bounded: bool) -> tuple[int, int]:
        """What levels leave of the grid for the quantile of the weighted values, but for `_MISSED`.

        One that later and finer ones contradict was wrong, and only tells how far beyond it.
        """
        ends = (0, GRID_SIZE + 1)
        for place, level in reversed(list(enumerate(drawn))):
            ends = _both(self._hull((q, q), place, level, _MISSED, bounded=bounded), ends)
        return ends

    def _spread(self, *, population: bool) -> bool:
        """Whether ranks are off by more than noise."""
        weighing = self.weighing
        if self.weighing.is_public:
            return population or weighing.uneven > 0 or weighing.bias > 0 or self.beside is not None
        return population or not self.weighing.is_equal

    def _interval(self, q: float, drawn: Sequence[Drawn], *, population: bool) -> tuple[int, int]:
        """Ends of the interval [grid steps]."""
        spread = self._spread(population=population)
        risk = confidence.risk() / 2 - (0.0 if self.beside is None else searched_risk())
        ends = (0, GRID_SIZE + 1)
        risks = (
            (Fraction(1, FREE_LEVELS),) * FREE_LEVELS if self.free else _SPREAD_RISKS if spread else _RISKS
        )
        for place, (level, part) in enumerate(zip(drawn, risks, strict=True)):
            ends = _both(
                ends, self._level_interval(q, place, level, risk * float(part), population=population)
            )
        return ends

    def _level_interval(
        self, q: float, place: int, level: Drawn, risk: float, *, population: bool
    ) -> tuple[int, int]:
        weighing = self.weighing
        if self.weighing.is_public:
            squares = weighing.squares if population else weighing.uneven
            step = weighing.largest / 2 if population or weighing.uneven else 0.0
            aims = (q - weighing.bias, q + weighing.bias)
            return self._hull(aims, place, level, risk, squares, step)
        cap, floor = weighing.cap, weighing.floor
        if not population and (self.weighing.is_equal or weighing.tilt >= 1):
            ratio = floor / cap
            aims = (ratio * q / (1 - q + ratio * q), q / (q + ratio * (1 - q)))
            return self._hull(aims, place, level, risk)
        inequality = cap if population else (math.sqrt(cap) - math.sqrt(floor)) ** 2
        cells = len(level.counts)
        of_total = self._law(place, cells, cells, 0.0).quantile(1 - 2 * _MASS_PART * risk)
        most = inequality * (max(float(sum(level.counts)), 0.0) + of_total)
        half = cap / 2 if population else (cap - floor) / 2
        aims = (q - weighing.bias, q + weighing.bias)
        return self._hull(aims, place, level, (1 - _MASS_PART) * risk, most, half)

    def _law(self, place: int, cells: int, inside: int, aim: float, variance: float = 0.0) -> ErrorLaw:
        """The law of what tells whether the rank of the end of some cells is `aim`, see `_hull`."""
        parts = self._parts(place, cells, inside, aim)
        if self.weighing.is_gaussian:
            return error_law(
                normal_variance=variance + sum(scale**2 * times for scale, times in parts), laplaces=()
            )
        return error_law(normal_variance=variance, laplaces=parts)

    def _parts(self, place: int, cells: int, inside: int, aim: float) -> list[tuple[float, int]]:
        """The noises in it: (scale or standard deviation, how many)."""
        size = self._size(place)
        if self.weighing.is_public:
            size *= self.weighing.private / max(self.weighing.mass, 1)
            aim = inside / cells
        return [((1 - aim) * size, inside), (aim * size, cells - inside)]

    def _hull(
        self,
        aims: tuple[float, float],
        place: int,
        level: Drawn,
        risk: float,
        inequality: float = 0.0,
        step: float = 0.0,
        *,
        bounded: bool = True,
    ) -> tuple[int, int]:
        """What a level leaves of the grid; the module's docstring has the tests.

        Args:
            aims: Ranks: that of the weighted values is at least the first one above the quantile, and less
                than the second one below it.
            place: Number of the level.
            level: It.
            risk: That either end is wrong.
            inequality: Variance of a rank beside noise, over p (1 - p) [1; of a secret total weights,
            squared]. step: Half of a step of its lattice [1; weights]. bounded: Whether people who answered
            searches have their bounds in it, not what is estimated.

        Returns:
            Where it begins, and where the cell after it begins [grid steps].
        """
        cells, (low, high) = len(level.counts), aims
        public = self.weighing.is_public
        ends = (0, *level.starts, GRID_SIZE + 1)
        most = least = np.zeros(cells - 1)
        if self.beside is not None:
            own = self.beside.below(level.starts)
            most, least = (own.most, own.least) if bounded else (own.parts, own.parts)
            most, least = self.searched_weight * most, self.searched_weight * least

        def passes(off: float, inside: int, aim: float) -> bool:
            """Whether what lies so far from what is tested, on the wrong side of it, is not rejected."""
            if off <= step:
                return True
            variance = aim * (1 - aim) * inequality
            noise = sum(scale**2 * times for scale, times in self._parts(place, cells, inside, aim))
            deviation = math.sqrt(variance + (1 if self.weighing.is_gaussian else 2) * noise)
            if off - step > _FAR * deviation:
                return False
            return off - step <= self._law(place, cells, inside, aim, variance).quantile(1 - 2 * risk)

        first, last = 0, cells - 1
        if low > 0:
            below = (low - (self._below(level) + most)) if public else -self._pivots(level, low)
            aim = min(low, 1.0)
            kept = (place for place, off in enumerate(below.tolist()) if passes(off, place + 1, aim))
            first = next(kept, cells - 1)
        if high < 1:
            above = (self._below(level) + least - high) if public else self._pivots(level, high)
            aim = max(high, 0.0)
            offs = list(enumerate(above.tolist()))
            last = next((place + 1 for place, off in reversed(offs) if passes(off, place + 1, aim)), 0)
        first, last = min(first, last), max(first, last)
        return ends[first], ends[last + 1]

    def _pivots(self, level: Drawn, aim: float) -> Floats:
        """(1 - q) s1 - q s2 at the end of each cell but the last one [units of the weights]."""
        sums = np.cumsum(np.array([float(count) for count in level.counts]))
        return np.asarray(sums[:-1] - aim * sums[-1])


def _both(coarse: tuple[int, int], fine: tuple[int, int]) -> tuple[int, int]:
    """What two levels have in common; where that is nothing, of the fine one a width of the coarse one.

    One of the two is wrong then, which is in the risk of both. An outer cell of the fine one would reach to
    the end of the range.
    """
    low, high = max(coarse[0], fine[0]), min(coarse[1], fine[1])
    if low < high:
        return low, high
    width = coarse[1] - coarse[0]
    if fine[0] >= coarse[1]:
        return fine[0], min(fine[1], fine[0] + width)
    return max(fine[0], fine[1] - width), fine[1]


def _value(grid: Grid, place: float) -> float:
    """A place between grid steps: what is kept as a step lies up to half of one around it [data's unit]."""
    return grid.to_unit(min(max((Fraction(place) - Fraction(1, 2)) / GRID_SIZE, Fraction(0)), Fraction(1)))


def _interval(grid: Grid, ends: tuple[int, int], place: float, coverage: Coverage) -> Interval:
    low, high = min(ends[0], place), max(ends[1], place)
    return Interval(
        level=confidence.level(), lower=_value(grid, low), upper=_value(grid, high), coverage=coverage
    )


def _anywhere(q: float) -> float:
    """The mean square of how far from q a rank is that says nothing: any one."""
    return (q**3 + (1 - q) ** 3) / 3


def _mass(weighing: Weighing, beside: Beside | None) -> int:
    """The weights of all people, those who answered searches among them [as `Weighing.weights`].

    Where no other person weighs anything there is no noise that theirs must be compared with: they weigh as
    public people do.
    """
    if beside is None:
        return weighing.mass
    return (
        round(weighing.mass / weighing.private)
        if weighing.mass
        else MAX_EPSILON * weighing.unit // MICRO * beside.people
    )
