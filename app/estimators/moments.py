r"""The second moment beside a mean: what it says of the variance of the values.

A linear release of a replace_one study asks for :math:`\sum W_i y_i` and, at no price
(`app.accounting.prices`), for :math:`\sum W_i y_i^2`, where y is the distance from the middle of the range in
range widths. With :math:`c_i = W_i / \sum W`, the noisy values are :math:`M_1 = m + e` and
:math:`M_2 = m^2 + v + f`, and :math:`V = M_2 - M_1^2` errs by

.. math:: V - v = A - e^2, \qquad A = f - 2 m e = \sum_i d_i ((y_i - m)^2 - v) + Z_2 - 2 m Z_1,

where d is c about the population, and c - 1/n about the dataset. With R the largest distance from m that the
range has, :math:`(y - m)^2 \le R^2`, so for independent people the sum has a variance of at most
:math:`v (R^2 - v) \sum d_i^2`, and v is bounded by a fixed point: on the event that A and e are within their
quantiles :math:`a(v)` and :math:`r(v)`,

.. math:: V - a(v) \le v \le V + a(v) + r(v)^2,

and both rise with v, so what starts at 1/4 and replaces v by the right side stays above the truth. Of the
risk of 5 %, A has four parts in five and e one. A tilt t moves e by at most t TV, and A by at most R^2 t TV:
it bounds the difference of the mean squares, in parts of the largest one, as it does that of the means.

The second moment rests on central and public people. Reports carry squares too, but what is known of the
fourth moments of their noise bounds no interval, and Duchi's carry none. Its population is that of all.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from operator import mul

import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group, Groups
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise, NoNoise
from app.estimators import confidence
from app.estimators.accuracy import HALF_STEP, WORST_VARIANCE
from app.estimators.deviations import Deviations
from app.estimators.every_level import Ends, interval_of
from app.estimators.expected import ExpectedValues, missed
from app.estimators.interface import (
    Accuracy,
    Conclusion,
    Coverage,
    Interval,
    Plan,
    Query,
    Question,
    Statistic,
)
from app.estimators.linear import sizes_of
from app.estimators.quantiles import ErrorLaw, error_law, laplace_variance

MEAN_RISK = 0.2
"""Part of an interval's risk for the error of each mean in it; the rest is for mean squares and products."""

POPULATION_RISK = 0.2
"""Part of the risk of a mean's population interval for the bound on the variance: 95 % are 4 % and 1 %. Of
answers that are read together each has its part of that part."""

WITH_HALF = Fraction(9, 8)
"""What a mean and squares with half of its Laplace noise cost, in prices of the mean alone: at the corners of
`app.accounting.prices` 5/8 + 2/4 and 7/8 + 2/8."""

_STEPS = 12

_ROUNDING = 1 / GRID_SIZE
"""The most that squares were rounded down by [range width squared]."""


def spread(
    estimate: float,
    *,
    unit: float,
    error: float,
    dataset: Sequence[Ends],
    population: Sequence[Ends],
    coverage: Coverage,
) -> Statistic:
    """A variance with both of its intervals [data's unit squared].

    Where the interval for the dataset begins at 0, noise hides the variance, and all that is known is that it
    is at most the other end. An estimate of 0 would say that all values are equal: there it is at least the
    middle of what the noise's standard error may hide, without noise of what the grid may. That errs by no
    more than was predicted. The middle of the whole interval would not do: an interval may be as wide as the
    range where the noise is far below, and its middle, an eighth of the range squared, errs by far more.

    Args:
        estimate: What is seen, within the interval for the dataset [range width squared].
        unit: Of the data: the square of the range's width.
        error: Standard deviation of the noise [range width squared].
        dataset, population: Ends of the intervals at each of the levels that are asked for [range width
            squared].
        coverage: Of the one for the dataset.

    Privacy: post-processing.
    """
    held = [estimate if lower else max(estimate, min(error or upper, upper) / 2) for lower, upper in dataset]

    def interval(ends: Sequence[Ends], coverage: Coverage) -> Interval:
        return interval_of(
            [
                (unit * min(lower, own), unit * max(upper, own))
                for (lower, upper), own in zip(ends, held, strict=True)
            ],
            coverage,
        )

    return Statistic(
        estimate=unit * held[0],
        standard_error=unit * error,
        interval=interval(dataset, coverage),
        population_interval=interval(population, "worst_case"),
    )


def _kept(variance: float) -> float:
    """The most that a variance is off since values are kept to half a step h: 2 h sd + h^2."""
    return HALF_STEP * (2 * math.sqrt(variance) + HALF_STEP)


def with_second_moment(
    plan: Plan, groups: Sequence[Group], question: Question, *, halved: bool = False
) -> Plan:
    """A plan that asks for the second moment too, where that is free.

    Args:
        plan: Of a replace_one estimator.
        groups: What it was made for.
        question: What it answers.
        halved: Whether Laplace noise of squares has half of the scale, which is not free: both cost
            `WITH_HALF` times what the mean does.

    Returns:
        The plan with a second query of the same weights, under independent noise of the same scale (Gaussian:
        a third of the sigma), whose conclusion has a variance, and a population interval that rests on it.
        The plan itself where it is not linear, has several queries, or weighs neither central nor public
        people.

    Privacy: what it costs is decided by the queries and the noise, and is what the first query costs.
    """
    if plan.conclude_within is None or len(plan.queries) != 1:
        return plan
    weights, conclude = plan.queries[0].sum_weights, plan.conclude_within
    noise = _doubled(plan.noise, halved=halved)
    groups = Groups.of(groups)
    mass = sum(map(mul, weights, groups.column("count")))
    if noise is None or mass == 0 or any(plan.queries[0].count_weights):
        return plan
    scales: tuple[float, ...] = (0.0, 0.0)
    sigmas: tuple[float, ...] = (0.0, 0.0)
    match noise:
        case DiscreteLaplace():
            scales = tuple(scale / mass / GRID_SIZE for scale in noise.scales)
        case DiscreteGaussian():
            sigmas = tuple(sigma / mass / GRID_SIZE for sigma in noise.sigmas)
        case _:
            pass
    squares = Query(
        sum_weights=(0,) * len(groups), count_weights=(0,) * len(groups), square_weights=tuple(weights)
    )

    def moments(values: Sequence[int]) -> tuple[float, float]:
        first, second = values
        return float(Fraction(first, mass) / GRID_SIZE - Fraction(1, 2)), float(
            Fraction(second, mass) / GRID_SIZE
        )

    return with_both(
        replace(plan, queries=(*plan.queries, squares), noise=noise),
        lambda values, bounds: conclude(values[:1], bounds),
        groups,
        question,
        person=np.array([weight / mass for weight in weights]),
        laplaces=((scales[0], 1),),
        of_squares=((scales[1], 1),),
        normals=(sigmas[0] ** 2, sigmas[1] ** 2),
        moments=moments,
    )


def with_both(
    plan: Plan,
    conclude: Callable[[Sequence[int], Sequence[Ends]], Conclusion],
    groups: Sequence[Group],
    question: Question,
    *,
    person: NDArray[np.float64],
    laplaces: tuple[tuple[float, int], ...],
    moments: Callable[[Sequence[int]], tuple[float, float]],
    of_squares: tuple[tuple[float, int], ...] | None = None,
    normals: tuple[float, float] = (0.0, 0.0),
    absent: NDArray[np.bool_] | None = None,
) -> Plan:
    """A plan that reads a mean and its second moment.

    Args:
        plan: Of both.
        conclude: `Plan.conclude_within` of the mean; it gets all noisy values.
        groups: All groups of the study, length G.
        question: What is asked.
        person: Weight of one person of each group in both moments, shape (G,); they sum to one.
        laplaces: (scale, how many) of the Laplaces in the first one [range widths].
        of_squares: Those in the second one, at most; None: the same [range widths squared].
        moments: The mean about the middle, and the mean square about it, from the noisy values.
        normals: Variances of normal noise in the two [range width squared; to the fourth].
        absent: Groups of people who have left.
    """

    @cache
    def found() -> _Moments:
        noise = laplaces, laplaces if of_squares is None else of_squares
        return _Moments.of(groups, question, person, noise, normals, absent)

    def concluded(values: Sequence[int]) -> Conclusion:
        mean, square = moments(values)
        risks = [risk * POPULATION_RISK / question.together for risk in confidence.risks()]
        bounds = [(found().upper_bound(mean, square, risk), risk) for risk in risks]
        conclusion = conclude(values, bounds)
        return replace(conclusion, variance=found().statistic(mean, square, question.grid))

    return replace(plan, conclude=concluded, spread=lambda: found().planned(question.grid, question.expected))


def _doubled(noise: Noise, *, halved: bool) -> Noise | None:
    """Independent noise on a second moment beside that on a mean, or None where there is none."""
    match noise:
        case NoNoise():
            return noise
        case DiscreteLaplace(scales=(scale,)):
            return DiscreteLaplace(scales=(scale, scale / 2 if halved else scale))
        case DiscreteGaussian(sigmas=(sigma,)):
            return DiscreteGaussian(sigmas=(sigma, sigma / 3))
        case _:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """Weights d about one thing: the sum of squares, half the largest, and what a tilt moves A or e by."""

    squares: float
    step: float
    bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moments:
    """Noise of the two moments, and their weights about the dataset and the population [range widths].

    Bounds at all levels begin with the same laws, and go on with the same where noise hides all else: these
    are made once.
    """

    laplaces: tuple[tuple[tuple[float, int], ...], tuple[tuple[float, int], ...]]
    normals: tuple[float, float]
    dataset: _About
    population: _About
    laws: dict[tuple[float, float | None], ErrorLaw] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        groups: Sequence[Group],
        question: Question,
        person: NDArray[np.float64],
        laplaces: tuple[tuple[tuple[float, int], ...], tuple[tuple[float, int], ...]],
        normals: tuple[float, float],
        absent: NDArray[np.bool_] | None,
    ) -> "_Moments":
        weighed = Deviations.of(
            sizes_of(groups), person, people=question.people or 0, tilt=question.tilt, absent=absent
        )
        return cls(
            laplaces=laplaces,
            normals=normals,
            dataset=_About(squares=weighed.about_dataset(), step=weighed.farthest / 2, bias=weighed.bias),
            population=_About(
                squares=weighed.about_population(), step=weighed.largest / 2, bias=weighed.bias
            ),
        )

    @property
    def _noise(self) -> list[float]:
        """The variances of the noise in both moments."""
        return [
            laplace_variance(laplaces) + normal
            for laplaces, normal in zip(self.laplaces, self.normals, strict=True)
        ]

    def statistic(self, mean: float, square: float, grid: Grid) -> Statistic:
        """The variance with both of its intervals [data's unit squared]."""
        raw = square - mean * mean
        noise = self._noise
        estimate = min(max(raw + noise[0], 0.0), WORST_VARIANCE)
        unit = float(grid.width) ** 2
        # No variance is less than 0 or more than 1/4: what is read off moments is no further from it there.
        moved = min(max(raw, 0.0), WORST_VARIANCE)

        def ends(about: _About, risk: float) -> Ends:
            upper = self._upper(mean, moved, about, risk * (1 - MEAN_RISK), risk * MEAN_RISK)
            below, _ = self._errors(mean, upper, about, risk * (1 - MEAN_RISK), risk * MEAN_RISK)
            return min(max(moved - below - _kept(upper), 0.0), estimate), max(upper, estimate)

        return spread(
            estimate,
            unit=unit,
            error=math.sqrt(noise[1] + 4 * min(mean * mean, WORST_VARIANCE) * noise[0]),
            dataset=[ends(self.dataset, risk) for risk in confidence.risks()],
            population=[ends(self.population, risk) for risk in confidence.risks()],
            coverage="worst_case" if self.dataset.squares else "at_least",
        )

    def planned(self, grid: Grid, expected: ExpectedValues) -> Accuracy:
        r"""What `statistic` is expected to err by, and the most that its interval can be.

        The error is that of A and of the :math:`e^2` that its mean is corrected for, whose variance is at
        most 5 times the square of that of e, about the dataset, for values that are as expected and vary
        about their variance as Normal ones at most; what bounds leave of it is seen, see
        `app.estimators.expected`.

        Every bound in an interval rises with the variance and with the distance of the mean from the middle,
        so it is no wider than at the largest of both: from :math:`V - a` to :math:`V + a + r^2`.

        Args:
            grid: The study's.
            expected: What values are expected to be like.
        """
        unit, risk = float(grid.width) ** 2, confidence.risk()
        distance = abs(expected.place - 0.5)
        reach = (0.5 + distance) ** 2
        of_square, of_mean = self._errors(
            0.5, WORST_VARIANCE, self.dataset, risk * (1 - MEAN_RISK), risk * MEAN_RISK
        )
        noise, spread = self._noise, expected.spread
        scatter = min(2 * spread**2, spread * (reach - spread)) * self.dataset.squares
        stated = noise[1] + 4 * distance**2 * noise[0]
        drawn = scatter + stated + 5 * noise[0] ** 2 + (reach * self.dataset.bias) ** 2
        error, root_error = missed(spread, math.sqrt(drawn), math.sqrt(stated))
        half = of_square + (of_mean**2 + _ROUNDING) / 2 + _kept(WORST_VARIANCE)
        return Accuracy(
            error=unit * error,
            half_width=unit * min(half, WORST_VARIANCE / 2),
            root_error=math.sqrt(unit) * root_error,
        )

    def upper_bound(self, mean: float, square: float, risk: float) -> float:
        """What the population's variance exceeds with a probability of at most `risk`."""
        split = 2 * risk * (1 - MEAN_RISK), risk * MEAN_RISK
        return self._upper(mean, square - mean * mean, self.population, *split)

    def _upper(self, mean: float, raw: float, about: _About, risk: float, mean_risk: float) -> float:
        """The fixed point of the upper bound, from above."""
        upper = WORST_VARIANCE
        for _ in range(_STEPS):
            above, of_mean = self._errors(mean, upper, about, risk, mean_risk)
            found = min(upper, max(raw + above + of_mean**2 + _ROUNDING + _kept(upper), 0.0))
            if found > upper * 0.999:
                return found
            upper = found
        return upper

    def _errors(
        self, mean: float, variance: float, about: _About, risk: float, mean_risk: float
    ) -> tuple[float, float]:
        """Bounds on A and on e, for a variance of at most this."""
        law = self._law(variance * about.squares + self.normals[0])
        of_mean = law.quantile(1 - mean_risk) + about.step + about.bias
        distance = min(abs(mean) + of_mean, 0.5)
        reach = (0.5 + distance) ** 2
        spread = min(variance, reach / 2)
        law = self._law(
            spread * (reach - spread) * about.squares
            + self.normals[1]
            + (2 * distance) ** 2 * self.normals[0],
            2 * distance,
        )
        return law.quantile(1 - risk) + reach * (about.step + about.bias), of_mean

    def _law(self, normal: float, beside: float | None = None) -> ErrorLaw:
        """Of a Normal part, and of the noise of a mean; or of squares, and this many times that of a mean."""
        asked = normal, beside
        found = self.laws.get(asked)
        if found is None:
            noise, of_squares = self.laplaces
            if beside is not None:
                again = ((beside * scale, count) for scale, count in noise) if beside else ()
                noise = (*of_squares, *again)
            found = error_law(normal_variance=normal, laplaces=noise)
            self.laws[asked] = found
        return found
