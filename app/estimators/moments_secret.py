r"""Mean and variance where the number of people is secret: three noisy sums for one epsilon.

With p the position in the range, one person adds :math:`p^2`, :math:`2 p (1 - p)` and :math:`(1 - p)^2` to
the sums T11, T12 and T22: together exactly 1. The sums of p and of 1 - p are T11 + T12 / 2 and T22 + T12 / 2,
and for every m

.. math:: \sum a_i (p_i - m)^2 = (1 - m)^2 T_{11} - m (1 - m) T_{12} + m^2 T_{22},

smallest at the noisy mean M, and larger by (m - M)^2 times the noisy total weight N elsewhere. So with D its
value at M, what is seen of the variance v of people with the mean m is D + (m - M)^2 N - v N: noise whose
coefficients :math:`(1 - m)^2 - v`, :math:`-m (1 - m) - v` and :math:`m^2 - v` are bounded over an interval
for m, and of unequal or drawn people a part of bounded variance, as for the mean (`app.estimators.pivot`).
The interval is the hull of all v that this does not reject. Of its risk the mean has one part in five. Where
it rejects every v, the interval is that of the next higher level, see `app.estimators.pivot.fitting`.

Under Gaussian noise the same holds, with Normal laws of variance 2 in place of Laplaces of scale 1. The three
parts of a person, which sum to 1, have the largest L2 norm at the ends of the range: 1, that of two sums.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from app.core.grid import GRID_SIZE, Grid
from app.estimators import confidence
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.calibration import GAUSSIAN_UNIT
from app.estimators.every_level import Ends
from app.estimators.interface import UNIT_SCALE, Conclusion, Interval, Query, Statistic
from app.estimators.moments import MEAN_RISK, spread
from app.estimators.pivot import (
    NORMAL,
    HullOfMean,
    LinearPivot,
    PivotReader,
    accepted,
    fitting,
    mass_risk,
    most_spread,
    noise_law,
    ratio,
)

MOMENT_SCALE = 4 * UNIT_SCALE
"""Laplace scale at which four times a weight of W costs W micro-epsilon."""


def moment_queries(weights: tuple[int, ...]) -> tuple[Query, Query, Query]:
    r"""Four times the weighted sums of p^2, 2 p (1 - p) and (1 - p)^2.

    About the middle, :math:`p^2 = u^2 + p - 1/4`, :math:`2 p (1 - p) = 1/2 - 2 u^2` and
    :math:`(1 - p)^2 = u^2 - p + 3/4`; quarters are why there is a four.

    Args:
        weights: What one person of each group weighs.

    Returns:
        Three queries. With the square rounded down once for all of them, a person's parts are still at least
        0 and sum to 1 exactly, so that they cost one weight, as `app.accounting.prices` finds.
    """
    ones = [tuple(factor * weight for weight in weights) for factor in range(5)]
    minus = [tuple(-factor * weight for weight in weights) for factor in (1, 4, 8)]
    return (
        Query(sum_weights=ones[4], count_weights=minus[0], square_weights=ones[4]),
        Query(sum_weights=ones[0], count_weights=ones[2], square_weights=minus[2]),
        Query(sum_weights=minus[1], count_weights=ones[3], square_weights=ones[4]),
    )


def three_sums_pivot(draws: int = 1, *, normal: bool = False) -> LinearPivot:
    """The sums of p and of 1 - p with half of T12 in each: (1 - p) T11 + (1 - 2 p) / 2 T12 - p T22.

    Args:
        draws: How many independent noises are in each of the three.
        normal: Whether they are Normal.
    """
    unit, variance = (2.0 * GAUSSIAN_UNIT * GRID_SIZE, NORMAL) if normal else (2 * MOMENT_SCALE, 0.0)
    return LinearPivot(first=draws, second=draws, halved=draws, unit=float(unit), variance=variance)


class MomentReader:
    """Reads the three noisy sums. Knows the question, not the groups.

    Args:
        grid: The study's grid.
        cap, floor: The most and the least that any person's weight can be [epsilon, or mu].
        pivot: What noise is in the sums.
        labels, tilt: See `PivotReader`.
    """

    __slots__ = ("mean", "pivot")

    def __init__(
        self,
        *,
        grid: Grid,
        cap: float,
        floor: float,
        pivot: LinearPivot,
        labels: int = 1,
        tilt: float = 0.0,
    ) -> None:
        self.pivot = pivot
        self.mean = PivotReader(grid=grid, cap=cap, floor=floor, pivot=pivot, labels=labels, tilt=tilt)

    def intervals(self, values: Sequence[int]) -> tuple[Interval, Interval]:
        """See `PivotReader`."""
        return self.mean.intervals(_of_mean(values))

    def conclude(self, values: Sequence[int]) -> Conclusion:
        """The conclusion from the three noisy sums."""
        squares, mixed, others = values
        return replace(
            self.mean.conclude(_of_mean(values)),
            variance=self._variance([2 * value / self.pivot.unit for value in (squares, mixed, others)]),
        )

    def _variance(self, sums: Sequence[float]) -> Statistic:
        """The variance with both of its intervals; negative sums count as 0 in what is seen."""
        squares, mixed, others = (max(value, 0.0) for value in sums)
        mass = squares + mixed + others
        estimate = error = WORST_VARIANCE
        if mass > 0:
            estimate = min(max((squares * others - mixed**2 / 4) / mass**2, 0.0), WORST_VARIANCE)
            p = (squares + mixed / 2) / mass
            scales = ((1 - p) ** 2 - estimate, p * (1 - p) + estimate, p * p - estimate)
            error = min(error, math.sqrt(2 * self.pivot.halved * sum(scale**2 for scale in scales)) / mass)
        mean, cap = self.mean, self.mean.cap
        first, second = sums[0] + sums[1] / 2, sums[2] + sums[1] / 2
        center = float(ratio(round(first * GRID_SIZE), round(second * GRID_SIZE)))

        def interval(of_mean: HullOfMean, person: float, step: float) -> Ends:
            def ends() -> Ends | None:
                bound = mean.mass_bound(first, second)
                box = of_mean(first, second, center, confidence.risk() * MEAN_RISK)
                # Squares about a mean lie in [0, R^2], so weights move their sum by at most R^2 times the
                # bias of the total weight.
                return self._hull(sums, estimate, box, person * bound, step + mean.bias * bound)

            return fitting(ends, (0.0, WORST_VARIANCE))

        return spread(
            estimate,
            unit=float(mean.grid.width) ** 2,
            error=error,
            dataset=[interval(mean.dataset_hull, mean.inequality, (cap - mean.floor) / 2)],
            population=[interval(mean.population_hull, cap, cap / 2)],
            coverage="at_least" if mean.floor == cap else "worst_case",
        )

    def _hull(
        self, sums: Sequence[float], estimate: float, mean: Ends, scale: float, step: float
    ) -> Ends | None:
        """All variances that the sums do not reject, for a mean in an interval.

        Args:
            sums: T11, T12, T22 [epsilons times people].
            estimate: A variance that is kept inside.
            mean: Ends of the interval for the mean.
            scale: What :math:`v (R^2 - v)` is multiplied by in the variance of what is not noise.
            step: Half of one person's weight in it, and what a tilt moves.

        Returns:
            The ends of their hull; None where they reject all.
        """
        low, high = mean
        mass = sum(sums)
        if mass <= 0:
            return 0.0, WORST_VARIANCE
        first = sums[0] + sums[1] / 2
        least = sums[0] - first**2 / mass
        most = least + max(abs(low - first / mass), abs(high - first / mass)) ** 2 * mass
        reach = max(high, 1 - low) ** 2
        product = most_spread(low, high)

        def tail(place: float) -> float:
            v = place * WORST_VARIANCE
            scales = (
                max(abs((1 - low) ** 2 - v), abs((1 - high) ** 2 - v)),
                product + v,
                max(abs(low**2 - v), abs(high**2 - v)),
            )
            spread = min(v, reach / 2)
            drawn = scale * spread * (reach - spread)
            law = noise_law(scales, drawn, draws=self.pivot.halved, normal=self.pivot.variance > 0)
            return law.tail(max(least - v * mass, v * mass - most, 0.0) - reach * step)

        risk = confidence.risk() * (1 - MEAN_RISK) - mass_risk()
        ends = accepted(tail, risk, estimate / WORST_VARIANCE)
        if ends is None:
            return None
        return WORST_VARIANCE * ends[0], min(WORST_VARIANCE * ends[1] + 1 / GRID_SIZE, WORST_VARIANCE)


def _of_mean(values: Sequence[int]) -> tuple[int, int]:
    """The two sums whose ratio is the mean, off the three."""
    squares, mixed, others = values
    return 2 * squares + mixed, 2 * others + mixed
