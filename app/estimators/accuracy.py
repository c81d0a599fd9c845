"""What is known of the error of an estimate, and the conclusion that follows from it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from app.core.grid import GRID_SIZE, Grid
from app.estimators import confidence
from app.estimators.anytime import Steps
from app.estimators.every_level import Ends, bound_of, interval_of
from app.estimators.expected import WORST_VARIANCE as WORST_VARIANCE
from app.estimators.interface import Conclusion, Coverage, Interval
from app.estimators.quantiles import ErrorLaw, error_law, laplace_variance
from app.estimators.together import AnytimeBound, ErrorBound, KnownError

HALF_STEP = 1 / (2 * GRID_SIZE)
"""The most that the mean of values as they were given differs from that of the points on the grid that are
kept of them [range widths]."""

_FINEST_NOISE = 1024 * HALF_STEP
"""Noise of a smaller standard deviation does not hide the grid, and none does not at all: half a step is a
part of the error then, and less than a thousandth of it elsewhere [range widths]."""

_EXACT: Coverage = "exact"
_AT_LEAST: Coverage = "at_least"
_WORST_CASE: Coverage = "worst_case"
_MIDDLE = Fraction(1, 2)


def clip(position: Fraction) -> Fraction:
    """A position moved into [0, 1]. Free: post-processing, and the mean is known to lie there."""
    if 0 <= position.numerator <= position.denominator:
        return position
    return Fraction(position > 0)


def interval(
    grid: Grid,
    position: Fraction,
    margins: Sequence[float],
    coverage: Coverage,
    *,
    holding: Fraction | None = None,
) -> Interval:
    """The interval position +- margin, position and ends clipped to the range.

    The truth is in the range, so it is no further from the clipped position: the interval holds it where that
    without clipping does, and is no point where noise takes the position out of the range.

    Args:
        grid: The study's grid.
        position: Center [range widths from the lower end].
        margins: Half width at each of the levels that are asked for [range widths].
        coverage: What is promised of it.
        holding: A point in [0, 1] that it is extended to, where it does not hold it already.

    Returns:
        The interval [data's unit].
    """
    center = clip(position)
    middle, kept = float(center), None if holding is center else holding
    # A double is on the same side of a fraction as of the nearest double: comparing these is quicker.
    near = 0.0 if kept is None else float(kept)

    def ends(margin: float) -> Ends:
        lower: Fraction | float = center
        upper: Fraction | float = center
        if margin:
            lower, upper = max(middle - margin, 0.0), min(middle + margin, 1.0)
        if kept is not None:
            lower = lower if lower < near else min(lower, kept)
            upper = upper if upper > near else max(upper, kept)
        return grid.to_unit(lower), grid.to_unit(upper)

    return interval_of([ends(margin) for margin in margins], coverage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anytime:
    """What an interval is made of that holds at all steps of a question, see `app.estimators.anytime`.

    Attributes:
        steps: How the noise that is lowered was drawn.
        noises: What the scale or the standard deviation of each of these sums comes to [range widths].
        laplaces, normal: All other noise, see `PredictedErrors`.
    """

    steps: Steps
    noises: tuple[float, ...]
    laplaces: tuple[tuple[float, int], ...]
    normal: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedErrors:
    """The error of a weighted mean, in units of the range's width.

    Attributes:
        grid: The study's grid.
        laplaces: (scale, how many) of the Laplaces in the estimate.
        normal: Variance of all other noise in it.
        dataset_variance, population_variance: Bounds on the variance of what is not noise, about the mean
            of the dataset and of the population.
        dataset_step, population_step: Half of what one person can move them by.
        exact: Whether nothing but noise of an exactly known law is in the error about the mean of what is
            kept of the dataset.
        bias: The most that unequal weights move the mean by, within the question's tilt; see
            `app.estimators.linear`.
        shrinkage: What the distance from the middle of the range is multiplied by, in [0, 1].
        anytime: Of an answer that sharpens another one or can be sharpened.
    """

    grid: Grid
    laplaces: tuple[tuple[float, int], ...]
    normal: float = 0.0
    dataset_variance: float
    dataset_step: float
    population_variance: float
    population_step: float
    exact: bool
    bias: float = 0.0
    shrinkage: float = 1.0
    anytime: Anytime | None = None

    @property
    def noise_variance(self) -> float:
        """Variance of the noise before shrinking."""
        return self.normal + laplace_variance(self.laplaces)

    @property
    def kept(self) -> float:
        """What the grid adds to the error where noise does not hide it."""
        return HALF_STEP if self.noise_variance < _FINEST_NOISE**2 else 0.0

    def law(self, variance: float) -> ErrorLaw:
        """The noise plus a Normal part of some variance."""
        return error_law(normal_variance=variance + self.normal, laplaces=self.laplaces)

    def dataset_margins(self) -> list[float]:
        """Half of the interval for the mean of the dataset, before it is clipped [range widths].

        As every list here of one for each level that is asked for.
        """
        kept = self.kept
        if self.exact:
            law = self.law(0.0)
            return [law.quantile(level) + kept for level in confidence.levels()]
        law, step, bias = self.law(self.dataset_variance), self.dataset_step, self.bias
        return [law.quantile(level) + step + bias + kept for level in confidence.levels()]

    def population_margins(self, bounds: Sequence[Ends]) -> list[float]:
        """Half of the interval for the mean of the population, before it is clipped [range widths].

        Args:
            bounds: See `conclude`.
        """
        step, bias, kept = self.population_step, self.bias, self.kept
        # Where noise hides the variance, its bounds are the same at all levels.
        laws = {variance: self.law(variance) for variance in {variance for variance, _ in bounds}}
        return [
            laws[variance].quantile(level + risk) + step + bias + kept
            for level, (variance, risk) in zip(confidence.levels(), bounds, strict=True)
        ]

    def anytime_margins(self, always: AnytimeBound, margins: Sequence[float]) -> list[float]:
        """Half of the interval for the mean of the dataset that holds at all steps [range widths].

        Args:
            always: What it is made of.
            margins: Half of the one that holds at this step; it has them in it.
        """
        width, halves = float(self.grid.width), confidence.at_each(always.half_width)
        return [max(margin, half / width) for margin, half in zip(margins, halves, strict=True)]

    def anytime_bound(self) -> AnytimeBound | None:
        """What that interval is made of [data's unit]; None of an answer without steps."""
        if self.anytime is None:
            return None
        one, width, variance, reach = self.anytime, float(self.grid.width), 0.0, self.kept
        if not self.exact:
            variance, reach = self.dataset_variance + one.normal, reach + self.dataset_step + self.bias
        laplaces = () if self.exact else one.laplaces
        return AnytimeBound(
            steps=one.steps,
            noises=tuple(width * noise for noise in one.noises),
            rest=bound_of(self._scaled(laplaces), _at_all_levels(width * width * variance), width * reach),
        )

    def anytime_width(self) -> float:
        """Width of the interval that holds at all steps, at most that of the range [data's unit]."""
        margins, always = self.dataset_margins(), self.anytime_bound()
        if always is not None:
            margins = self.anytime_margins(always, margins)
        return float(self.grid.width) * min(1.0, 2 * margins[0])

    def interval_width(self) -> float:
        """Width of the interval for the mean of the dataset, at most that of the range [data's unit]."""
        return float(self.grid.width) * min(1.0, 2 * self.dataset_margins()[0])

    def conclude(
        self,
        position: Fraction,
        details: Mapping[str, object] | None = None,
        *,
        bounds: Sequence[Ends] = (),
    ) -> Conclusion:
        """The conclusion from the weighted mean before clipping, 0 and 1 being the ends of the range.

        Shrinking is undone for the intervals, which it could only bias; they are extended to the estimate
        where they do not hold it.

        Args:
            position: That mean.
            details: Of the conclusion.
            bounds: In place of `population_variance`, for each of the levels that are asked for: a bound, and
                the risk that it is too low. The population interval is made for a level higher by that risk.
        """
        dataset, coverage = self.dataset_margins(), _EXACT if self.exact else _WORST_CASE
        if self.exact and not self.noise_variance:
            coverage = _AT_LEAST
        bounds, always = bounds or _at_all_levels(self.population_variance), self.anytime_bound()
        estimate = clip(position)
        facts = dict(details or {})
        if self.shrinkage < 1:
            estimate = clip(_MIDDLE + Fraction(self.shrinkage) * (position - _MIDDLE))
            facts["shrinkage"] = self.shrinkage
            coverage = _WORST_CASE
        return Conclusion(
            estimate=self.grid.to_unit(estimate),
            standard_error=float(self.grid.width) * self.shrinkage * math.sqrt(self.noise_variance),
            interval=interval(self.grid, position, dataset, coverage, holding=estimate),
            population_interval=interval(
                self.grid, position, self.population_margins(bounds), _WORST_CASE, holding=estimate
            ),
            anytime=None
            if always is None
            else interval(
                self.grid,
                position,
                self.anytime_margins(always, dataset),
                _AT_LEAST if coverage == _EXACT else coverage,
                holding=estimate,
            ),
            details=facts,
            error=KnownError(
                center=float(self.grid.lower) + float(self.grid.width) * float(position),
                dataset=self.dataset_bound(),
                population=self.population_bound(bounds),
                anytime=always,
            ),
        )

    def dataset_bound(self) -> ErrorBound:
        """What the interval for the mean of the dataset is made of [data's unit]."""
        if self.exact:
            return self._bound(_at_all_levels(0.0), 0.0)
        return self._bound(_at_all_levels(self.dataset_variance), self.dataset_step + self.bias)

    def population_bound(self, bounds: Sequence[Ends] = ()) -> ErrorBound:
        """What the interval for the mean of the population is made of [data's unit].

        Args:
            bounds: See `conclude`.
        """
        variances = bounds or _at_all_levels(self.population_variance)
        return self._bound(variances, self.population_step + self.bias)

    def _bound(self, variances: Sequence[Ends], reach: float) -> ErrorBound:
        width, normal = float(self.grid.width), self.normal
        ends = [(width * width * (variance + normal), risk) for variance, risk in variances]
        return bound_of(self._scaled(self.laplaces), ends, width * (reach + self.kept))

    def _scaled(self, laplaces: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
        """Laplaces in the data's unit."""
        width = float(self.grid.width)
        return tuple((width * scale, count) for scale, count in laplaces if scale and count)


def _at_all_levels(variance: float) -> list[Ends]:
    """A variance, which is known, for each of the levels that are asked for."""
    return [(variance, 0.0)] * len(confidence.levels())


def worst_square_error(
    moved: NDArray[np.float64] | float,
    noise: float,
    variances: NDArray[np.float64] | float,
    *,
    shrinkage: float = 1.0,
    bias: float = 0.0,
    tilt: float = 0.0,
) -> float:
    r"""The largest mean square error of a shrunk mean, over all means of the data.

    The estimate is :math:`1/2 + a \sum c_i (x_i - 1/2)` + a noise. Its error about the mean of the dataset is
    :math:`\sum (a c_i - 1/n)(x_i - 1/2)` + a noise, and about that of the population the same with 0 in place
    of 1/n, less the population's mean: let :math:`q_g` be the sum of the squares of these factors over group
    g. A mean at distance d from the middle costs :math:`(1 - a)^2 d^2` in bias and leaves the data a variance
    of at most :math:`\min(s_g, 1/4 - d^2)`: the sum is concave in d^2 and straight between the points
    1/4 - s_g, so its maximum is at one of those or at 1/4. With one bound s2 that is

    .. math:: \max\{s2 q + a^2 N + (1 - a)^2 (1/4 - s2),\; a^2 N + (1 - a)^2 / 4\}.

    Where the means of any two people may differ by a tilt t, a person's own mean is at least d - t from the
    middle, and unequal weights move the mean of the answer by up to B, away from the truth in the direction
    in which shrinking moves it:

    .. math:: \max_d\; \sum_g q_g \min(s_g, 1/4 - (d - t)_+^2) + a^2 N + (a B + (1 - a) d)^2,

    a parabola in d between the points :math:`t + \sqrt{1/4 - s_g}`: its maximum is at one of those, at 1/2,
    or at the vertex of a piece that is concave. Without shrinking it is :math:`\sum s_g q_g + N + B^2`.
    Equal weights (B = 0) with one bound need no t: :math:`\min(s2, 1/4 - x^2)` is concave in x.

    Args:
        moved: q_g, with the shrinkage in it, shape (G,).
        noise: N, variance of the noise before shrinking [range width squared].
        variances: s_g, bound on the variance of each group, at most 1/4, shape (G,), or one for all [range
            width squared].
        shrinkage: a, in [0, 1].
        bias: B, at least 0 [range widths].
        tilt: t, in [0, 1] [range widths].

    Returns:
        The error [range width squared].

    Privacy: no data, no randomness.
    """
    # People by their bounds: there are few, so that plain numbers are quicker than arrays.
    if isinstance(variances, float):
        kinds, sums = [variances], [float(np.sum(moved))]
    else:
        places = np.unique(variances, return_inverse=True)
        kinds = places[0].tolist()
        sums = np.bincount(places[1].ravel(), weights=np.ravel(moved)).tolist()
    rest, noisy = 1 - shrinkage, shrinkage * shrinkage * noise

    def spread(left: float) -> float:
        """Variance of data and noise where people's own means leave at most this to each value."""
        return noisy + sum(min(kind, left) * weight for kind, weight in zip(kinds, sums, strict=True))

    if rest == 0:
        return spread(WORST_VARIANCE) + bias**2
    if bias == 0 and (tilt == 0 or len(kinds) == 1):
        return max(spread(left) + rest * rest * (WORST_VARIANCE - left) for left in (*kinds, 0.0))

    def tilted(distance: float) -> float:
        left = WORST_VARIANCE - max(distance - tilt, 0.0) ** 2
        return spread(left) + (shrinkage * bias + rest * distance) ** 2

    # From the k-th point on, the variances of the kinds k and larger fall with the distance.
    points = [min(tilt + math.sqrt(max(WORST_VARIANCE - kind, 0.0)), 0.5) for kind in kinds[::-1]]
    worst, falling = tilted(0.5), 0.0
    for low, high, weight in zip(points, (*points[1:], 0.5), sums[::-1], strict=True):
        falling += weight
        curvature = falling - rest * rest
        vertex = low
        if curvature > 0:
            vertex = (falling * tilt + rest * shrinkage * bias) / curvature
        worst = max(worst, tilted(low), tilted(min(max(vertex, low), high)))
    return worst


def noise_shrinkage(noise: float) -> float:
    r"""The a in [0, 1] that minimizes :math:`a^2 N + (1 - a)^2 / 4`: shrinks by what the noise warrants.

    Args:
        noise: N, variance of all noise [range width squared].

    Returns:
        (1/4) / (1/4 + N).

    Privacy: no data, no randomness.

    >>> noise_shrinkage(0.25)
    0.5
    """
    return WORST_VARIANCE / (WORST_VARIANCE + noise)
