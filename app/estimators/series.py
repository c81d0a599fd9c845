r"""Means of the studies of a series, read together. All of it is post-processing, and free.

A change is a mean less the one before it. A trend is the slope of the line through the means by least
squares, per study: :math:`\sum_k a_k \mu_k` with :math:`a_k = (k - \bar k) / \sum_j (j - \bar k)^2`. Its
weights are no draw's, so it is the same sum of what was published, and is about the line through the true
means, whether or not these lie on it.

Each mean errs by at most :math:`|X_k + Y_k| + r_k`, see `app.estimators.together`: noise :math:`X_k` of a
known law, and people who happen to weigh more, :math:`Y_k`, Normal with a variance of at most :math:`s_k`.
Noise of different studies is independent. People may be the same ones, and stay as they are: of :math:`Y_k`
nothing is known together. In any case

.. math:: \operatorname{sd} \sum_k a_k Y_k \le \sum_k |a_k| \sqrt{s_k}.

So the error is at most that of the Laplaces scaled by :math:`|a_k|`, of a Normal whose variance is
:math:`\sum a_k^2 v_k + (\sum |a_k| \sqrt{s_k})^2`, :math:`v_k` being that of all other noise, and
:math:`\sum |a_k| r_k`.

*Answers that say an interval alone* (the number of people is secret, or they were made before answers said
what their error is made of) miss theirs with a risk of 5 % each. That one of K does has at most K times the
risk, so between the ends that the sum has with all of them it lies with 1 - .05 K, the level that is said
then. Bounds on variances that may be too low have risks that add up, too: what these leave is the level of
the interval for the population.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.estimators import confidence
from app.estimators.interface import Coverage, Interval
from app.estimators.quantiles import laplace_variance
from app.estimators.together import ErrorBound, KnownError

LEAST = 0.5
"""A smaller level is said of no interval."""

_HIGHEST = 0.995
"""The level of a law beside risks that are no part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """The answer of one study of a series.

    Attributes:
        estimate: The mean [data's unit].
        noise: Standard deviation of all noise in it, before it was drawn to the middle of the range.
        lower, upper: The ends of its range.
        interval, population_interval: As published.
        error: What they are made of; None of an answer that does not say it.
    """

    estimate: float
    noise: float
    lower: float
    upper: float
    interval: Interval
    population_interval: Interval
    error: KnownError | None

    @property
    def clipped(self) -> bool:
        """Whether noise carried it out of its range, so that less of it is shown than is combined."""
        return self.error is not None and not self.lower <= self.error.center <= self.upper


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """A weighted sum of the means of a series [data's unit].

    Attributes:
        estimate: The sum.
        standard_error: Standard deviation of its noise.
        interval: For the people of these studies.
        population_interval: For the populations that they were drawn from; None where no level is left.
    """

    estimate: float
    standard_error: float
    interval: Interval
    population_interval: Interval | None


def slope(waves: int) -> list[float]:
    """The weights of the slope by least squares, per study.

    >>> slope(3)
    [-0.5, 0.0, 0.5]
    """
    middle = (waves - 1) / 2
    squares = math.fsum((place - middle) ** 2 for place in range(waves))
    return [(place - middle) / squares for place in range(waves)]


def combined(parts: Sequence[tuple[float, Wave]], level: float | None = None) -> Combined:
    """A weighted sum of means, with intervals; no wider than all that it can be.

    Args:
        parts: Weight of each mean, not all 0, and the mean.
        level: Of intervals, if not that of `confidence`; of answers that say their interval alone it is what
            is left of theirs.

    Raises:
        ValueError: nothing is left of the level.
    """
    asked = confidence.level() if level is None else level
    known = [(weight, one, one.error) for weight, one in parts if one.error is not None]
    centers = [one.estimate if one.error is None else one.error.center for _, one in parts]
    middle = math.fsum(weight * center for (weight, _), center in zip(parts, centers, strict=True))
    ends = [sorted((weight * one.lower, weight * one.upper)) for weight, one in parts]
    least, most = (math.fsum(end[place] for end in ends) for place in (0, 1))
    estimate = min(max(middle, least), most)

    def interval(name: str, said: str) -> Interval | None:
        if len(known) < len(parts):
            return _between([(weight, getattr(one, said)) for weight, one in parts], least, most, estimate)
        bounds = [(weight, getattr(error, name), one.noise) for weight, one, error in known]
        bound = _bound(bounds)
        own = round(min(asked, _HIGHEST - bound.risk), 9)
        if own < LEAST:
            return None
        half = bound.half_width(own)
        exact = all(getattr(one, said).coverage == "exact" for _, one in parts)
        coverage: Coverage = "exact" if exact else "worst_case"
        lower, upper = (min(max(estimate + sign * half, least), most) for sign in (-1, 1))
        return Interval(level=own, lower=lower, upper=upper, coverage=coverage)

    these = interval("dataset", "interval")
    if these is None:
        raise ValueError("nothing is left of the level")
    return Combined(
        estimate=estimate,
        standard_error=math.hypot(*(weight * one.noise for weight, one in parts)),
        interval=these,
        population_interval=interval("population", "population_interval"),
    )


def _bound(parts: Sequence[tuple[float, ErrorBound, float]]) -> ErrorBound:
    """What the error of a weighted sum does not exceed, also of people who are in several studies."""
    independent, together = [], []
    for weight, one, noise in parts:
        drawn = min(one.normal, max(0.0, noise**2 - laplace_variance(one.laplaces)))
        independent.append(weight**2 * drawn)
        together.append(abs(weight) * math.sqrt(one.normal - drawn))
    summed = ErrorBound.weighted([(weight, one) for weight, one, _ in parts])
    return ErrorBound(
        laplaces=summed.laplaces,
        normal=math.fsum(independent) + math.fsum(together) ** 2,
        reach=summed.reach,
        risk=summed.risk,
    )


def _between(
    parts: Sequence[tuple[float, Interval]], least: float, most: float, estimate: float
) -> Interval | None:
    """Between the sums of the ends of intervals, with the level that is left by the risks of all of them."""
    level = round(1 - math.fsum(1 - one.level for weight, one in parts if weight), 9)
    if level < LEAST:
        return None
    sides = [sorted((weight * one.lower, weight * one.upper)) for weight, one in parts]
    lower, upper = (math.fsum(side[place] for side in sides) for place in (0, 1))
    return Interval(
        level=level,
        lower=max(least, min(lower, estimate)),
        upper=min(most, max(upper, estimate)),
        coverage="worst_case" if any(one.coverage == "worst_case" for _, one in parts) else "at_least",
    )
