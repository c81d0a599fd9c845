r"""Quantiles read off noisy counts of cells, drawn level by level, each level's cells closer to them.

A level cuts the grid into cells and asks for the weight of the people in each, with noise. Its cells are
chosen from the noisy counts of the levels before it: most of them where a wanted quantile may lie, one for
all that lies below, one above. So the last level, which has most of the price, has a handful of cells of a
few people each, whatever the range; the first ones have little of the price and tell cells of very many
people apart.

*Sums.* In replace_one the weight M of all people is public. There, under Laplace noise, the outer cells are
drawn as one: noisy are the weight of the last cell less that of the first one, and that of each cell between
them. The outer two together weigh M less the others. So K cells have K - 1 noisy sums, and the rank of the
end of any cells is (M - difference + the cells between below it - those above it) / 2, with K - 1 Laplaces of
half of the scale: a variance of :math:`(K - 1) b^2 / 2`. Counts of all cells, moved onto the plane on which
they sum to M, have :math:`2 b^2 j (K - j) / K`, which is more in the middle, where quantiles are. Under
Gaussian noise that is :math:`\sigma^2 j (K - j) / K`, and no more than with a difference, whose move counts
squared. Where M is secret, the rank is tested by :math:`(1 - q) s_1 - q s_2`, with s_1 the noisy weight of
the j cells and s_2 that of the others, which is 0 but for noise where the rank is q.

*Privacy.* Each level's cells are a partition of the grid, so a person is in one cell a level. For fixed cells
one who comes or goes moves one count by their weight W, and a replaced person two. Where outer cells are
drawn as one a person who moves between these moves the difference by 2 W; between one of them and an inner
cell the difference and a count by W each; between inner cells two counts by W. These are all sums of a level,
and the largest L1 move is 2 W. The cells of level l are a function of :math:`N_1, \dots, N_{l-1}`, the noisy
sums of earlier levels, which is post-processing; given these, the noise of level l is independent of
everything else. So the density of all sums is the product :math:`\prod_l p(N_l \mid x, N_1, \dots, N_{l-1})`,
and for neighbors x, x' and every outcome each factor's ratio is bounded by the price of one level's sums,
whichever cells the outcome chose: :math:`2 W / b_l` (`replace_one`) or :math:`W / b_l`. The price is their
sum (adaptive sequential composition; `app.accounting.shape_prices.tree_cost`); under Gaussian noise the same
holds of mu^2, with counts of all cells (Dong, Roth, Su, arXiv:1905.02383, theorem 3.2 and corollary 3.3).
Were cells chosen from exact counts, the factors would compare laws of counts of different cells, and nothing
would bound them. Were the difference priced as one count, a person who moves from end to end would lose twice
the price. The privacy audit has both as planted bugs.

*Noise.* The part :math:`p_l` of an offer buys the scale :math:`2 U / p_l`, or :math:`U / p_l`, U the weight
of an epsilon of 1; of mu^2 the standard deviation :math:`2 U / \sqrt{p_l}`, or
:math:`\sqrt 2 U / \sqrt{p_l}`, and a unit more.

*Cells and the estimate* come from the best linear estimate of all counts off all levels
(`app.estimators.cell_counts`). For each place it tells how far its rank is expected to lie from q, and the
standard deviation of that. The last two levels have their cells at some of these deviations beside the
quantile. Earlier ones, to which the law of the values is unknown, divide what tests leave for it. Where the
last level but one leaves all to an end of the range, since its cells lie off, the last one has a cell more on
that side (`Layout.reach`): else, if it lies off as well, an interval goes on to the end of the range. The
estimate is where the expected rank is q, kept between the ends that tests leave. Tests, and so the intervals,
look at the sums of each level as they are.

*The interval.* Let :math:`e_1 < \dots < e_{K-1}` be where cells of a level begin, x the quantile, the least
value with :math:`F(x) \ge q`, and :math:`e_k` the first one above x, so that the rank below :math:`e_k` is at
least q. The lower end is where the cell begins that ends at the least :math:`e_j` whose rank is not rejected
to be at least q. Thus the interval begins above x only if the one test at :math:`e_k` rejects: there is no
union over cells, and :math:`e_k` does not depend on that level's noise. The upper end is the same upside
down. The interval is what those of all levels have in common: their risks add up to 5 %, four fifths of it
for the last level. It is made of cells, so it is right for ties and whole numbers.

Where people weigh differently, or it is about the population, the rank of the weighted values is off by more
than noise: by q (1 - q) times :math:`\sum c_i^2` (population) or :math:`\sum (c_i - 1/n)^2` in variance, c_i
the weight over the total, half a step of their lattice, and the tilt's bias (`app.estimators.weighing`).
These are often wider than the last level's cells, so there the risk is shared by all levels. In
add_remove_one weights lie between a floor and a cap, r their quotient, and the variance is bounded as in
`app.estimators.pivot`; at a tilt of 1 it has no part in it: where :math:`F \ge q` the weighted rank is at
least :math:`r q / (1 - q + r q)`, and where F < q less than :math:`q / (q + r (1 - q))`.

*Searches.* People who answered searches stand beside the others: their distribution function at the ends of
cells, an estimate or a bound that is published already, times their weight, is added to ranks. It is the same
for all neighbors. Tests for the lower end get the upper bound, those for the upper end the lower one; a
third of the risk is the bounds', which hold at all points together.

References:
    Hay, Rastogi, Miklau, Suciu, PVLDB 2010, doi:10.14778/1920841.1920970, noisy counts of a tree that agree;
    Qardaji, Yang, Li, PVLDB 2013, doi:10.14778/2556549.2556576, few levels of many cells.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import add
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from app.accounting.measurement import Workload
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.estimators import confidence, tree_levels
from app.estimators.cell_counts import CellCounts, Floats, WholeNumbers
from app.estimators.every_level import once
from app.estimators.interface import Coverage, Interval
from app.estimators.quantiles import ErrorLaw, error_law
from app.estimators.searched_ranks import Beside, mass_of, searched_risk
from app.estimators.tree_levels import Aim, Drawn, Layout
from app.estimators.weighing import Weighing

FREE_LEVELS = 16
"""Where no one pays: until cells are single steps of the grid, of each other a fourth at most."""

_UNKNOWN = 1e4
"""How much more than that of its noise the variance of a secret total is before the first level."""

_MISSED = 0.005
"""The risk, for each end, that an estimate is kept from where the quantile is."""

_FAR = 10.0
"""Standard deviations beyond which everything is rejected: sums of Laplaces and Normals have log-concave
densities, of which less than e^-9 lies there."""

_MASS_PART = 0.1
"""What the bound on a secret total weight has of a test's risk."""


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
        aim: What is to be as exact as it can be.
        people: add_remove_one: the number of people to predict for; None: unknown.
        beside: replace_one: people who answered searches, for one quantile.
        free: replace_one: whether all who have a weight in it are public: no one pays.
        whole: Where whole numbers lie in the range; None: there are none to speak of.
    """

    workload: ClassVar[Workload] = Workload.TREE

    quantiles: tuple[Fraction, ...]
    weighing: Weighing
    aim: Aim = Aim.INTERVAL
    free: bool = False
    people: float | None = None
    beside: Beside | None = None
    whole: WholeNumbers | None = None

    @cached_property
    def layout(self) -> Layout:
        """What levels it has."""
        return tree_levels.layout_of(self.weighing, self.aim)

    @cached_property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of each count, one size a level [units of the weights]."""
        moves, unit, parts = 2 if self.weighing.is_public else 1, self.weighing.unit, self.layout.parts
        if self.weighing.is_gaussian:
            return DiscreteGaussian(sigmas=tuple(math.sqrt(2 * moves / part) * unit + 1 for part in parts))
        return DiscreteLaplace(scales=tuple(float(math.ceil(moves * unit / part)) for part in parts))

    @property
    def levels(self) -> int:
        """How many there are."""
        return FREE_LEVELS if self.free else len(self.layout.parts)

    @property
    def by_difference(self) -> bool:
        """Whether the counts of the two outer cells of a level are drawn as one, their difference."""
        return self.weighing.is_public and not self.weighing.is_gaussian

    def sums(self, cells: int) -> int:
        """How many noisy sums a level of this many cells has."""
        return cells - self.by_difference

    def noise_of(self, level: int, cells: int) -> DiscreteLaplace | DiscreteGaussian:
        """Of the sums of a level of this many cells, which is two at least."""
        size = (self._size(level),) * self.sums(cells)
        return DiscreteGaussian(sigmas=size) if self.weighing.is_gaussian else DiscreteLaplace(scales=size)

    def drawn(self, starts: tuple[int, ...], counts: Sequence[int], noise: Sequence[int]) -> Drawn:
        """A level.

        Args:
            starts: Where its cells begin.
            counts: The weight of the people in each cell, exact [units of the weights].
            noise: Drawn from `noise_of` [the same].

        Privacy: the counts have their noise in `sums`, and all else is post-processing of these. Cells of all
        people together weigh what is public where the outer two are drawn as one.
        """
        if not self.by_difference:
            return Drawn(starts=starts, counts=tuple(map(add, counts, noise)))
        difference, *inner = map(add, (counts[-1] - counts[0], *counts[1:-1]), noise)
        outer = self.weighing.mass - sum(inner)
        first = (outer - difference) // 2
        return Drawn(starts=starts, counts=(first, *inner, outer - first))

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
            mass_of(self.weighing, self.beside)
            if self.weighing.is_public
            else self.weighing.cap * (self.people or 0)
        )
        if not mass:
            return 1.0
        last = self.layout.last
        sums = self.sums(self.layout.cells(last, len(self.quantiles)))
        # Where the total is secret, at q = 1/2.
        noise = self.weighing.currency.variance * sums / 4 * (self._size(last) / mass) ** 2
        if self.beside is not None:
            noise += self.searched_weight**2 * self.beside.noise
        spread = max(float(q * (1 - q)) for q in self.quantiles)
        # The mean square of how far from q a rank is that says nothing: any one.
        anywhere = max((q**3 + (1 - q) ** 3) / 3 for q in map(float, self.quantiles))
        return min(
            1.0,
            math.sqrt(1 / (1 / max(noise, 1e-300) + 1 / anywhere) + spread * squares + self.weighing.bias**2),
        )

    def starts(self, drawn: Sequence[Drawn]) -> tuple[int, ...]:
        """Where the cells of the next level begin, all but the first one.

        Privacy: post-processing of the counts of earlier levels.
        """
        level = len(drawn)
        if not drawn:
            cells = self.layout.cells(level, len(self.quantiles))
            return tuple(round(Fraction(cell * GRID_SIZE, cells)) for cell in range(1, cells))
        counts, found = self._counts(tuple(drawn)), set[int]()
        for q in map(float, self.quantiles):
            if level < self.layout.coarse or self.free:
                places = self._divided(q, drawn, counts)
            else:
                beside = self.layout.places[level - self.layout.coarse]
                places = self._near(q, counts, np.append(beside, self.beyond(q, drawn)))
            found.update(round(place) for place in places.tolist())
        inside = sorted(place for place in found if 0 < place <= GRID_SIZE)
        return tuple(inside) or (GRID_SIZE // 2,)

    def beyond(self, q: float, drawn: Sequence[Drawn]) -> list[float]:
        """Where the next level begins one cell more: how many standard deviations beside the quantile.

        Privacy: post-processing of the counts of earlier levels. A level has one price, however many cells.
        """
        reach, level = self.layout.reach, len(drawn) - 1
        if reach is None or level + 1 < self.layout.last:
            return []
        low, high = self._hull((q, q), level, drawn[-1], _MISSED)
        return [-reach] * (low == 0) + [reach] * (high > GRID_SIZE)

    def read(self, grid: Grid, drawn: Sequence[Drawn]) -> list[Quantile]:
        """What all levels say of each quantile; estimates rise.

        Args:
            grid: The study's grid.
            drawn: The counts of all levels.

        Privacy: post-processing of the counts.
        """
        ranks, found = list(map(float, self.quantiles)), []
        estimates = [self._estimate(q, tuple(drawn)) for q in ranks]
        ends = [[self._interval(q, drawn, population=of) for of in (False, True)] for q in ranks]
        for place, (own, population) in zip(sorted(estimates), ends, strict=True):
            spread = self.weighing.is_public and not self._spread(population=False)
            # Levels share its risk otherwise, so that it could be the narrower one.
            population = min(own[0], population[0]), max(own[1], population[1])
            coverage: Coverage = "at_least" if spread or self.weighing.is_equal else "worst_case"
            found.append(
                Quantile(
                    estimate=_told(grid, place, own),
                    interval=_interval(grid, own, place, coverage),
                    population_interval=_interval(grid, population, place, "worst_case"),
                )
            )
        return found

    def _size(self, level: int) -> float:
        noise, level = self.noise, min(level, self.layout.last)
        return noise.sigmas[level] if isinstance(noise, DiscreteGaussian) else noise.scales[level]

    @once
    def _estimate(self, q: float, drawn: tuple[Drawn, ...]) -> float:
        """Where the expected rank is q, within what tests leave [grid steps]."""
        (low, high), counts = self._region(q, drawn), self._counts(drawn)
        places = counts.places
        off = np.maximum.accumulate(self._off(q, counts, places)[0])
        right = int(np.clip(np.searchsorted(off, 0.0), 1, len(off) - 1))
        (under, over), (left, end) = off[right - 1 : right + 1], places[right - 1 : right + 1]
        part = -under / (over - under) if over > under else 0.5
        place = float(left + 0.5 + min(max(part, 0.0), 1.0) * (end - left - 1))
        return min(max(place, low + 0.5), high - 0.5)

    @once
    def _counts(self, drawn: tuple[Drawn, ...]) -> CellCounts:
        """The counts that all levels together tell, of one level at least.

        Privacy: post-processing of the counts; where presence is secret a person is taken to weigh the most
        that one can, in place of who is there.
        """
        *before, level = drawn
        counts = (self._counts(tuple(before)) if before else self._all(level)).cut(level.starts)
        place = np.searchsorted(level.starts, counts.ends[:-1], side="right")
        of = (np.arange(len(level.counts))[:, None] == place).astype(np.float64)
        sums = np.array(level.counts, dtype=np.float64)
        if self.by_difference:
            sums, of = (np.concatenate([one[-1:] - one[:1], one[1:-1]]) for one in (sums, of))
        return counts.given(sums, of, self._variance(len(before)))

    def _all(self, first: Drawn) -> CellCounts:
        """What is known of one cell of all people before the first level, but for a secret total."""
        weighing, end = self.weighing, GRID_SIZE + 1.0
        if weighing.is_public:
            return CellCounts.of_all(end, float(weighing.mass), 0.0, max(1.0, *weighing.weights), self.whole)
        noise = len(first.counts) * self._variance(0)
        # The values of hardly any people would count as spread evenly, whatever later levels say of them.
        total = max(float(sum(first.counts)), math.sqrt(noise) / 2)
        return CellCounts.of_all(end, total, _UNKNOWN * noise, float(weighing.cap), self.whole)

    def _variance(self, level: int) -> float:
        """Of the noise of each sum of a level [units of the weights, squared]."""
        return self.weighing.currency.variance * self._size(level) ** 2

    def _off(self, q: float, counts: CellCounts, places: Floats) -> tuple[Floats, Floats]:
        """How far the rank of places is expected to be above q, and the variance of that [any unit]."""
        own, variance = counts.off(q, places)
        if self.beside is None:
            return own, variance
        scale = self.weighing.private / max(self.weighing.mass, 1)
        parts = self.beside.below(places.tolist()).parts
        return (
            scale * own + self.searched_weight * (parts - q),
            scale**2 * variance + self.searched_weight**2 * self.beside.noise,
        )

    def _divided(self, q: float, drawn: Sequence[Drawn], counts: CellCounts) -> Floats:
        """What levels leave for the quantile, in cells half of equal length and half of equal rank."""
        # The first levels serve the interval, too, which the bounds of searches widen.
        low, high = self._region(q, drawn, bounded=len(drawn) < self.layout.coarse)
        places = np.array([low, *counts.ends[(counts.ends > low) & (counts.ends < high)], high])
        ranks = np.maximum.accumulate(self._off(q, counts, places)[0])
        lengths = (places - low) / (high - low)
        parts = (ranks - ranks[0]) / (ranks[-1] - ranks[0]) if ranks[-1] > ranks[0] else lengths
        pieces = tree_levels.inner_cells(len(drawn))
        return np.asarray(np.interp(np.arange(pieces + 1) / pieces, (lengths + parts) / 2, places))

    def _near(self, q: float, counts: CellCounts, deviations: Floats) -> Floats:
        """Places these standard deviations beside the quantile [grid steps]."""
        off, variance = self._off(q, counts, counts.places)
        beside = off / np.sqrt(variance + np.finfo(np.float64).tiny)
        return np.asarray(np.interp(deviations, np.maximum.accumulate(beside), counts.places))

    @once
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

    def _region(self, q: float, drawn: Sequence[Drawn], *, bounded: bool = False) -> tuple[int, int]:
        """What levels leave of the grid for the quantile of the weighted values, but for `_MISSED`.

        One that later and finer ones contradict was wrong, and only tells how far beyond it.
        """
        ends = (0, GRID_SIZE + 1)
        for place, level in reversed(list(enumerate(drawn))):
            ends = _both(self._hull((q, q), place, level, _MISSED, bounded=bounded), ends)
        return ends

    def _spread(self, *, population: bool) -> bool:
        """Whether ranks are off by more than noise."""
        if self.weighing.is_public:
            return population or self.weighing.uneven > 0 or self.weighing.bias > 0 or self.beside is not None
        return population or not self.weighing.is_equal

    def _interval(self, q: float, drawn: Sequence[Drawn], *, population: bool) -> tuple[int, int]:
        """Ends of the interval [grid steps]."""
        spread = self._spread(population=population)
        risk = confidence.risk() / 2 - (0.0 if self.beside is None else searched_risk())
        ends = (0, GRID_SIZE + 1)
        risks = self.layout.spread_risks if spread else self.layout.risks
        if self.free:
            risks = (Fraction(1, FREE_LEVELS),) * FREE_LEVELS
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
        if not population and (weighing.is_equal or weighing.tilt >= 1):
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
            variance, parts = variance + sum(scale**2 * times for scale, times in parts), []
        return error_law(normal_variance=variance, laplaces=parts)

    @once
    def _tail(self, place: int, cells: int, inside: int, aim: float, variance: float, off: float) -> float:
        """How likely what tells that is so far off, or further."""
        return self._law(place, cells, inside, aim, variance).tail(off)

    def _parts(self, place: int, cells: int, inside: Any, aim: float) -> list[tuple[Any, Any]]:
        """The noises in it: (scale or standard deviation, how many)."""
        size = self._size(place)
        if self.weighing.is_public:
            size *= self.weighing.private / max(self.weighing.mass, 1)
            aim = inside / cells
        if self.by_difference:
            return [(size / 2, self.sums(cells))]
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
            level: What was drawn there.
            risk: That either end is wrong.
            inequality: Variance of a rank beside noise, over p (1 - p) [1; secret: weights, squared].
            step: Half of a step of its lattice [1; weights].
            bounded: Whether people who answered searches have bounds in it, or what is estimated.

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

        def kept(offs: Floats, aim: float, *, backwards: bool = False) -> Iterator[int]:
            """The cells before ends that are not rejected, which lie so far on the wrong side of the test."""
            variance, beyond = aim * (1 - aim) * inequality, offs - step
            parts = self._parts(place, cells, np.arange(1, cells), aim)
            noise = sum(scale**2 * times for scale, times in parts)
            deviations = np.sqrt(variance + self.weighing.currency.variance * noise)
            near = np.flatnonzero(beyond <= _FAR * deviations).tolist()
            for cell in reversed(near) if backwards else near:
                off = float(beyond[cell])
                if off <= 0 or self._tail(place, cells, cell + 1, aim, variance, off) >= 2 * risk:
                    yield cell

        first, last = 0, cells - 1
        if low > 0:
            below = (low - (self._below(level) + most)) if public else -self._pivots(level, low)
            first = next(kept(below, min(low, 1.0)), cells - 1)
        if high < 1:
            above = (self._below(level) + least - high) if public else self._pivots(level, high)
            last = next((cell + 1 for cell in kept(above, max(high, 0.0), backwards=True)), 0)
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


def _told(grid: Grid, place: float, ends: tuple[int, int]) -> float:
    """The value of a place; a whole number where its step keeps one and lies between the ends."""
    value, inside = _value(grid, place), ends[0] + 0.5 <= place <= ends[1] - 0.5
    whole = inside and abs(value - round(value)) * GRID_SIZE <= grid.width / 2
    return float(round(value)) if whole else value


def _interval(grid: Grid, ends: tuple[int, int], place: float, coverage: Coverage) -> Interval:
    lower, upper = (_value(grid, one) for one in (min(ends[0], place), max(ends[1], place)))
    return Interval(level=confidence.level(), lower=lower, upper=upper, coverage=coverage)
