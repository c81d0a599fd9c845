r"""Reading two noisy sums whose ratio is a mean.

Both sums are linear in the mean p: there is a combination of them, the pivot, that is noise alone if the mean
is p. An interval is the hull of all p whose pivot is not too large (Fieller). Nothing here depends on who is
there beyond the two noisy sums.

References:
    Fieller, J. R. Stat. Soc. B 16 (1954), doi:10.1111/j.2517-6161.1954.tb00159.x.
"""

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from app.core.cohort import Group
from app.core.grid import GRID_SIZE, Grid
from app.core.study import Trust
from app.estimators import confidence
from app.estimators.calibration import GAUSSIAN_UNIT
from app.estimators.deviations import uneven_at_most
from app.estimators.every_level import Ends, interval_of
from app.estimators.interface import UNIT_SCALE, Conclusion, Coverage, Interval
from app.estimators.quantiles import ErrorLaw, error_law
from app.estimators.roots import brentq
from app.estimators.together import together

_MASS_PART = 0.001 / (1 - confidence.LEVEL)
"""Part of the risk for the event that the noisy total weight, raised by its slack, is below the true one."""

_SCAN = 32
POINTS = [place / _SCAN for place in range(_SCAN + 1)]
"""Where is looked at least for what is not rejected."""

TOLERANCE = 2.0**-45
"""How exactly an end of an interval is found [part of the range]."""


class Pivot(Protocol):
    """What two noisy sums say about the mean. Sums are in units of one epsilon times one person."""

    def __hash__(self) -> int:
        """Of the noise that they have."""

    @property
    def unit(self) -> float:
        """One epsilon times one person [units of the queries]."""

    def position(self, first: int, second: int) -> Fraction:
        """The estimate in [0, 1], from the sums in the queries' units."""

    def value(self, p: float, first: float, second: float) -> float:
        """The pivot at p: with the mean p it is noise alone, of people who all weigh the same."""

    def laplaces(self, p: float) -> tuple[tuple[float, int], ...]:
        """(scale, how many) of Laplaces whose sum has, or nearly has, the law of the pivot's noise."""

    def normal(self, p: float) -> float:
        """Variance of a Normal part of that noise beside the Laplaces."""

    def spread(self) -> tuple[float, float, float] | None:
        """Of the variance of that noise what does not rise with p, what does with p and with its square.

        None where its law may not be log-concave, or where the pivot is not that of `Complements`.
        """

    def tail(self, p: float, x: float) -> float:
        """P(|noise of the pivot at p| > x), exact."""

    def mass(self, first: float, second: float) -> float:
        """The noisy total weight, any sign."""

    def mass_law(self) -> ErrorLaw:
        """The law of its noise."""


class Complements:
    """What sums of x and of 1 - x say, whatever noise they have."""

    __slots__ = ()

    def position(self, first: int, second: int) -> Fraction:
        """See `ratio`."""
        return ratio(first, second)

    def value(self, p: float, first: float, second: float) -> float:
        r"""(1 - p) s1 - p s2, where sums below 0 count as 0, since no true sum is negative.

        That moves no pivot away from 0: with :math:`s_1 < 0 \le s_2` it is :math:`-p s_2`, at most 0 and at
        least :math:`(1 - p) s_1 - p s_2`. So an interval holds what it held without it, and the estimate,
        whose pivot is 0; and its width shows how much noise there is also where that exceeds a sum. Where
        nothing is left of the weight, each p is as good as any other one: 0.
        """
        if self.mass(first, second) <= 0:
            return 0.0
        return (1 - p) * max(first, 0.0) - p * max(second, 0.0)

    def mass(self, first: float, second: float) -> float:
        """s1 + s2 is the total weight."""
        return first + second


@dataclass(frozen=True, slots=True)
class LinearPivot(Complements):
    """Sums with independent noises of one law: each has a factor that is linear in p.

    Attributes:
        first, second: How many noises are in s1, with the factor 1 - p, and in s2, with p.
        halved: How many are in both by half, as that of the sum of 2 x (1 - x): their factor is 1/2 - p.
        unit: One epsilon times one person [units of the queries].
        variance: Of each where they are Normal [`unit` squared]; 0 where they are Laplaces of scale 1.
    """

    first: int = 1
    second: int = 1
    halved: int = 0
    unit: float = UNIT_SCALE
    variance: float = 0.0

    def _factors(self, p: float) -> tuple[tuple[float, int], ...]:
        """Their sizes, and how many noises have each."""
        return ((1 - p, self.first), (abs(1 - 2 * p) / 2, self.halved), (p, self.second))

    def laplaces(self, p: float) -> tuple[tuple[float, int], ...]:
        """See `Pivot`."""
        return () if self.variance else tuple([part for part in self._factors(p) if part[0] > 0 < part[1]])

    def normal(self, p: float) -> float:
        """See `Pivot`."""
        if not self.variance:
            return 0.0
        return self.variance * sum(count * factor**2 for factor, count in self._factors(p))

    def spread(self) -> tuple[float, float, float]:
        """See `Pivot`."""
        each, first, second, halved = self.variance or NORMAL, self.first, self.second, self.halved
        return each * (first + halved / 4), -each * (2 * first + halved), each * (first + halved + second)

    def tail(self, p: float, x: float) -> float:
        """See `Pivot`."""
        return ErrorLaw(sigma=math.sqrt(self.normal(p)), laplaces=self.laplaces(p)).tail(x)

    def mass_law(self) -> ErrorLaw:
        """All noises, as they are."""
        count = self.first + self.halved + self.second
        laplaces = () if self.variance else ((1.0, count),)
        return ErrorLaw(sigma=math.sqrt(self.variance * count), laplaces=laplaces)


NORMAL = 2.0
"""Variance of Normal noise beside Laplace noise of scale 1: the same."""

HullOfMean = Callable[[float, float, float, float], Ends]
"""The interval of a mean, `PivotReader.dataset_hull` or `PivotReader.population_hull`."""


def two_sums_pivot(draws: int = 1, *, normal: bool = False) -> LinearPivot:
    """Of s1 = sum a x and s2 = sum a (1 - x).

    Args:
        draws: How many independent noises are in each sum.
        normal: Whether they are Normal.
    """
    unit, variance = (GAUSSIAN_UNIT * GRID_SIZE, NORMAL) if normal else (UNIT_SCALE, 0.0)
    return LinearPivot(first=draws, second=draws, unit=float(unit), variance=variance)


def offered_weight(group: Group, cap: int) -> int:
    """What one person of a group weighs where every person counts by their offer.

    Args:
        group: The group; its size is not looked at.
        cap: The most that any person may be charged [the study's currency].

    Returns:
        Central people: their offer, at most the cap; public ones: the cap; all others 0 [the same].

    Privacy: depends on a person's own offer and the question.
    """
    match group.trust:
        case Trust.CENTRAL:
            return min(group.epsilon, cap) if group.participates else 0
        case Trust.PUBLIC:
            return cap
        case _:
            return 0


def mass_risk() -> float:
    """Probability that the noisy total weight, raised by its slack, is still below the true one."""
    return _MASS_PART * confidence.risk()


class PivotReader:
    """Reads the two noisy sums. Knows the question, not the groups.

    Args:
        grid: The study's grid.
        cap: The most that any person's weight can be, above 0 [epsilon].
        floor: The least, at least 0 [epsilon].
        pivot: What the sums say.
        labels: Of how many labels, this one among them, the intervals hold at once.
        tilt: How far the values of people who weigh much may differ from the others', in [0, 1].

    Attributes:
        bias: The most that unequal weights move a mean of numbers in [0, 1], within the tilt.
    """

    __slots__ = ("_labels", "bias", "cap", "floor", "grid", "pivot", "tilt")

    def __init__(
        self,
        *,
        grid: Grid,
        cap: float,
        floor: float,
        pivot: Pivot,
        labels: int = 1,
        tilt: float = 0.0,
    ) -> None:
        self.grid = grid
        self.cap = cap
        self.floor = floor
        self.pivot = pivot
        self.tilt = tilt
        self.bias = tilt * uneven_at_most(cap, floor)
        self._labels = labels

    @property
    def _risk(self) -> float:
        """The probability that an interval does not hold."""
        return 1 - together(confidence.level(), self._labels)

    @property
    def _mass_risk(self) -> float:
        return mass_risk() / self._labels

    def conclude(self, values: Sequence[int]) -> Conclusion:
        """The conclusion from both noisy sums."""
        raw_first, raw_second = values
        position = self.pivot.position(raw_first, raw_second)
        first, second = raw_first / self.pivot.unit, raw_second / self.pivot.unit
        mass = max(self.pivot.mass(first, second), 0.0)
        p = float(position)
        spread = math.sqrt(
            ErrorLaw(sigma=math.sqrt(self.pivot.normal(p)), laplaces=self.pivot.laplaces(p)).variance
        )
        width = float(self.grid.width)
        interval, population = self._intervals(first, second, position)
        return Conclusion(
            estimate=self.grid.to_unit(position),
            standard_error=width * (min(0.5, spread / mass) if mass > 0 else 0.5),
            interval=interval,
            population_interval=population,
            details={"noisy_count": mass / self.cap},
        )

    def intervals(self, values: Sequence[int]) -> tuple[Interval, Interval]:
        """Those for the dataset and for the population alone."""
        first, second = values
        unit = self.pivot.unit
        return self._intervals(first / unit, second / unit, self.pivot.position(first, second))

    def _intervals(self, first: float, second: float, position: Fraction) -> tuple[Interval, Interval]:
        p = float(position)

        def both() -> tuple[tuple[float, float], tuple[float, float]]:
            risk = self._risk
            return self.dataset_hull(first, second, p, risk), self.population_hull(first, second, p, risk)

        dataset, population = zip(*confidence.at_each(both), strict=True)
        coverage: Coverage = "at_least" if self.floor == self.cap else "worst_case"
        return self._interval(dataset, coverage), self._interval(population, "worst_case")

    def mass_bound(self, first: float, second: float) -> float:
        """What the total weight exceeds with at most the part of the risk for it [epsilons times people]."""
        return max(self.pivot.mass(first, second), 0.0) + self.pivot.mass_law().quantile(
            1 - 2 * self._mass_risk
        )

    @property
    def inequality(self) -> float:
        """Bound on the sum of squares of (weight - a common weight), over the total weight [epsilon]."""
        return (math.sqrt(self.cap) - math.sqrt(self.floor)) ** 2

    def dataset_hull(self, first: float, second: float, center: float, risk: float) -> tuple[float, float]:
        """The interval for the mean of those who take part.

        At least its level where every person weighs the same: the pivot's law is exact, but the interval is
        the hull of all p that it does not reject, which is more than those where the sums are mostly noise.
        Otherwise widened by `bias`, and by the worst case of unequal weights: if their mean is p and weights
        do not go with values, sum a_i (x_i - p) has variance at most p (1 - p) (sqrt cap - sqrt floor)^2 A, A
        the total weight, since values in [0, 1] scatter by at most p (1 - p). A tilt of 1 has that in it: at
        the weighted mean the pivot is noise alone, and the mean is at most the bias off. It is never more
        than what `population_hull` allows for, so that this interval lies within the population's.

        Args:
            first, second: The noisy sums [epsilons times people].
            center: The estimate, kept inside whatever the test says [position in [0, 1]].
            risk: Probability that it does not hold the mean.

        Returns:
            Its ends [positions in [0, 1]].
        """
        if self.floor == self.cap or self.tilt >= 1:
            ends = hull(
                lambda p: self.pivot.tail(p, abs(self.pivot.value(p, first, second))),
                risk,
                center,
                self._within(first, second, risk),
            )
            return self._tilted(ends)
        step = (self.cap - self.floor) / 2
        return self._worst_case(first, second, center, self.inequality, step, risk)

    def population_hull(self, first: float, second: float, center: float, risk: float) -> tuple[float, float]:
        """The interval for the mean of the population.

        If that mean is p, sum a_i (x_i - p) has variance at most p (1 - p) cap A; it is the mean of those who
        could be drawn to take part, so that weights move it by at most `bias`.

        Args:
            first, second: The noisy sums [epsilons times people].
            center: The estimate [position in [0, 1]].
            risk: Probability that it does not hold the mean.

        Returns:
            Its ends [positions in [0, 1]].
        """
        return self._worst_case(first, second, center, self.cap, self.cap / 2, risk)

    def _worst_case(
        self,
        first: float,
        second: float,
        center: float,
        person: float,
        step: float,
        risk: float,
    ) -> tuple[float, float]:
        """Test inversion with a Normal part of variance p (1 - p) `person` times the total weight.

        `step` is half of what a person moves.
        """
        risk -= self._mass_risk
        if _least_at_ends(self.pivot, first, second, step) >= risk:
            return 0.0, 1.0
        scale = person * self.mass_bound(first, second)

        def tail(p: float) -> float:
            return _tail(self.pivot, p, first, second, scale, step)

        return self._tilted(hull(tail, risk, center, self._within(first, second, risk, scale, step)))

    def _within(
        self, first: float, second: float, risk: float, scale: float = 0.0, step: float = 0.0
    ) -> tuple[float, float]:
        """Beyond what every p is rejected; arguments as of `_worst_case`.

        Of a log-concave law less than e^(1 - x) is beyond x standard deviations [1]. Where their squares
        are the same there is the root of a parabola, on either side.

        References:
            [1] Lovasz, Vempala, "The geometry of logconcave functions and sampling algorithms", Random
                Structures & Algorithms 30 (2007), doi:10.1002/rsa.20135, lemma 5.17.
        """
        spread, mass = self.pivot.spread(), max(first, 0.0) + max(second, 0.0)
        if spread is None or risk <= 0 or self.pivot.mass(first, second) <= 0:
            return 0.0, 1.0
        far = (1 - math.log(risk)) ** 2
        steepest = mass * mass - far * (spread[2] - scale)
        if steepest <= 0:
            return 0.0, 1.0
        ends = []
        for sign in (-1, 1):
            # Up to here the pivot is within a step of 0, from here on it rises by `mass` times p.
            start = max(first, 0.0) + sign * step
            half = mass * start + far * (spread[1] + scale) / 2
            rest = half * half - steepest * (start * start - far * spread[0])
            end = start / mass
            ends.append(
                sign * max(sign * end, sign * (half + sign * math.sqrt(rest)) / steepest) if rest > 0 else end
            )
        return max(ends[0], 0.0), min(ends[1], 1.0)

    def _tilted(self, ends: tuple[float, float]) -> tuple[float, float]:
        return max(0.0, ends[0] - self.bias), min(1.0, ends[1] + self.bias)

    def _interval(self, ends: Sequence[Ends], coverage: Coverage) -> Interval:
        to = self.grid.to_unit
        return interval_of([(to(lower), to(upper)) for lower, upper in ends], coverage)


def _tail(pivot: Pivot, p: float, first: float, second: float, scale: float, step: float) -> float:
    """The probability of what was seen or worse if p is the truth; see `PivotReader`."""
    law = error_law(normal_variance=p * (1 - p) * scale + pivot.normal(p), laplaces=pivot.laplaces(p))
    return law.tail(abs(pivot.value(p, first, second)) - step)


@lru_cache(maxsize=64)
def _least_at_ends(pivot: Pivot, first: float, second: float, step: float) -> float:
    """The smaller of the tails at both ends of the range, where values do not scatter.

    It is the same at every level. Where it is not rejected, the interval is the whole range.
    """
    return min(_tail(pivot, p, first, second, 0.0, step) for p in (0.0, 1.0))


def noise_at(pivot: Pivot, p: float) -> float:
    """Standard deviation of the pivot's noise where the mean is p."""
    return math.sqrt(error_law(normal_variance=pivot.normal(p), laplaces=pivot.laplaces(p)).variance)


def usual_noise(pivot: Pivot) -> float:
    """Standard deviation of the pivot's noise, whatever the mean is: the geometric mean of two.

    Of sums of x and of 1 - x it is convex and symmetric in the mean, so no mean has more than the ends of the
    range, or less than the middle. With Laplaces the true one is within a factor of 2^(1/4) of it.
    """
    return math.sqrt(noise_at(pivot, 0.0) * noise_at(pivot, 0.5))


def most_spread(low: float, high: float) -> float:
    """The largest p (1 - p), which values in [0, 1] of mean p scatter by at most, of all p in an interval."""
    return 0.25 if low <= 0.5 <= high else max(low * (1 - low), high * (1 - high))


def noise_law(scales: Sequence[float], drawn: float, *, draws: int = 1, normal: bool) -> ErrorLaw:
    """Laplaces of these scales, or Normal noise of their variances, beside a Normal part.

    Args:
        scales: Of the noises [any unit].
        drawn: Variance of the Normal part [unit squared].
        draws: How many independent noises there are of each scale.
        normal: Whether noise is Normal.
    """
    if normal:
        return error_law(normal_variance=drawn + 2 * draws * sum(scale**2 for scale in scales), laplaces=())
    return error_law(normal_variance=drawn, laplaces=[(scale, draws) for scale in scales])


def hull(
    tail: Callable[[float], float],
    risk: float,
    center: float,
    within: tuple[float, float] = (0.0, 1.0),
) -> tuple[float, float]:
    """The hull of `center` and all p in [0, 1] with tail(p) >= risk; the whole range where there is none.

    Args:
        tail: Probability of what was seen or worse, if p is the truth.
        risk: The least probability that is not rejected.
        center: A point that the hull holds in any case.
        within: Beyond these ends every p is rejected: no tail need be computed there.

    Returns:
        Its ends.
    """
    return accepted(tail, risk, center, within) or (0.0, 1.0)


def accepted(
    tail: Callable[[float], float],
    risk: float,
    center: float,
    within: tuple[float, float] = (0.0, 1.0),
) -> Ends | None:
    """See `hull`; None where every p is rejected."""
    place = bisect_left(POINTS, center)
    points = POINTS if POINTS[place] == center else [*POINTS[:place], center, *POINTS[place:]]
    near = range(bisect_left(points, within[0]), bisect_right(points, within[1]))
    first = next((index for index in near if tail(points[index]) >= risk), None)
    if first is None:
        return None
    lower, upper = 0.0, 1.0
    last = next(index for index in reversed(near) if index == first or tail(points[index]) >= risk)
    if first > 0:
        lower = _edge(tail, risk, points[first], points[first - 1])
    if last < len(points) - 1:
        upper = _edge(tail, risk, points[last], points[last + 1])
    return min(lower, center), max(upper, center)


def fitting(ends: Callable[[], Ends | None], whole: Ends) -> Ends:
    r"""An interval that is no wider than that of a higher level, also where every value is rejected.

    Where the mean of people has its part of the risk, the rest may reject every value of what is tested: more
    noise was seen than that level allows for. The whole range in its place would be wider than what a higher
    level says. With :math:`C_L` all that is not rejected at a level L, what is reported is :math:`C_K` of the
    least K of `confidence.LEVELS` from L on at which it is not empty. It holds the truth whenever
    :math:`C_L` does: then :math:`C_L` is not empty, and K is L. So it covers L as :math:`C_L` does. Where
    :math:`C_L` lies within those of higher levels, so does what is reported.

    Args:
        ends: The hull of all that is not rejected, at `confidence.level`; None where that is nothing.
        whole: What is said where no level leaves anything.

    Returns:
        The ends.
    """
    asked = confidence.level()
    for level in confidence.LEVELS:
        if level < asked:
            continue
        with confidence.at(level):
            found = ends()
        if found is not None:
            return found
    return whole


def _edge(tail: Callable[[float], float], risk: float, inside: float, outside: float) -> float:
    """Where tail falls below risk between two points, on the outer side."""

    def above(p: float) -> float:
        # Of a log-concave law the logarithm is almost a line.
        return math.log(max(tail(p), sys.float_info.min) / risk)

    found = brentq(above, inside, outside, xtol=TOLERANCE, rtol=TOLERANCE)
    if outside < inside:
        return max(found - 2 * TOLERANCE, outside)
    return min(found + 2 * TOLERANCE, outside)


def ratio(first: int, second: int) -> Fraction:
    """The mean's position from the two noisy sums.

    Args:
        first: T1, noisy; any sign.
        second: T2, noisy; any sign, same unit.

    Returns:
        max(T1, 0) / (max(T1, 0) + max(T2, 0)), in [0, 1]; 1/2 where both are 0.

    Privacy: post-processing.

    >>> ratio(1, -3), ratio(-2, -1), ratio(1, 3)
    (Fraction(1, 1), Fraction(1, 2), Fraction(1, 4))
    """
    first, second = max(first, 0), max(second, 0)
    return Fraction(first, first + second) if first + second else Fraction(1, 2)
