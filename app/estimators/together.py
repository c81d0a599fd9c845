r"""Several answers about disjoint people, read together. All of it is post-processing, and free.

An answer errs by at most :math:`|X_k| + r_k`: :math:`X_k`, noise and the people who happen to weigh more,
has a known law, or one with a bound on its variance, and :math:`r_k` is what a tilt and one person can move
it by (see `app.estimators.linear`). Answers for different labels have independent noise and are about
different people, so

.. math:: \Big|\sum_k a_k (\hat\mu_k - \mu_k)\Big| \le \Big|\sum_k a_k X_k\Big| + \sum_k |a_k| r_k,

and the law of :math:`\sum a_k X_k` is that of the Laplaces scaled by :math:`|a_k|` and a Normal of variance
:math:`\sum a_k^2 s_k`. The bounds on variances fail with risks that add up. A post-stratified mean has
:math:`a_k = \pi_k`, the known shares of the population [1]; a difference has 1 and -1.

Estimates for small labels are drawn to the whole as [2] does: where the means :math:`\mu_k` scatter about the
whole m with variance A, and the answer errs with variance :math:`v_k`, the best guess is
:math:`\hat\mu_k + (m - \hat\mu_k) v_k / (v_k + A)`. A solves
:math:`\sum (\hat\mu_k - m)^2 / (v_k + A) = K - 1`, and is 0 where there is no such A [3].

References:
    [1] Holt, Smith, "Post stratification", J. R. Statist. Soc. A 142 (1979), doi:10.2307/2344652.
    [2] Morris, "Parametric empirical Bayes inference", JASA 78 (1983), doi:10.1080/01621459.1983.10477920.
    [3] Paule, Mandel, "Consensus values and weighting factors", J. Res. NBS 87 (1982),
        doi:10.6028/jres.087.022.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.estimators import confidence
from app.estimators.anytime import Steps
from app.estimators.quantiles import ErrorLaw, error_law

FEWEST = 3
"""Answers that it takes to draw them to the whole: with fewer, drawn ones need not be better."""

_HALVINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBound:
    """What the error of an answer does not exceed: the size of a random variable, and a constant.

    Attributes:
        laplaces: (scale [data's unit], how many) of the Laplaces in the random variable.
        normal: Variance of its Normal part [data's unit squared].
        reach: The constant [data's unit].
        risk: That the variance is too low.
    """

    laplaces: tuple[tuple[float, int], ...]
    normal: float
    reach: float
    risk: float = 0.0

    @property
    def law(self) -> ErrorLaw:
        """Of the random variable."""
        return error_law(normal_variance=self.normal, laplaces=self.laplaces)

    def half_width(self, level: float | None = None) -> float:
        """Half of an interval of a level, if not of that of `confidence` [data's unit]."""
        asked = confidence.level() if level is None else level
        return self.law.quantile(asked + self.risk) + self.reach

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "ErrorBound":
        """As a release says it."""
        return cls(**{**document, "laplaces": tuple(map(tuple, document["laplaces"]))})

    @classmethod
    def weighted(cls, parts: Sequence[tuple[float, "ErrorBound"]]) -> "ErrorBound":
        """That of a weighted sum of answers about disjoint people.

        Args:
            parts: Weight of an answer, and the bound on its error.
        """
        return cls(
            laplaces=tuple(
                (abs(weight) * scale, count) for weight, one in parts for scale, count in one.laplaces
            ),
            normal=math.fsum(weight * weight * one.normal for weight, one in parts),
            reach=math.fsum(abs(weight) * one.reach for weight, one in parts),
            risk=math.fsum(one.risk for _, one in parts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnytimeBound:
    """What the error of an answer does not exceed at all steps of its question, see `app.estimators.anytime`.

    Attributes:
        steps: How its noisy sums were drawn.
        noises: What the scale or the standard deviation of each comes to in it [data's unit].
        rest: All else, of which a step has `steps.risk`.
    """

    steps: Steps
    noises: tuple[float, ...]
    rest: ErrorBound

    def half_width(self) -> float:
        """Half of the interval that holds at all steps [data's unit]."""
        law = self.rest.law
        return self.steps.always(self.noises) + law.quantile(1 - self.steps.risk) + self.rest.reach

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "AnytimeBound":
        """As a release says it."""
        return cls(
            steps=Steps(**document["steps"]),
            noises=tuple(document["noises"]),
            rest=ErrorBound.read(document["rest"]),
        )

    @classmethod
    def weighted(cls, parts: Sequence[tuple[float, "AnytimeBound"]]) -> "AnytimeBound":
        """That of a weighted sum of answers about disjoint people, the labels of one question.

        The j-th sum of the k-th of K labels has the place K (j - 1) + k: another one for each, at all steps.
        """
        each = [one.steps for _, one in parts]
        return cls(
            steps=Steps(
                firsts=[first for one in each for first in one.firsts],
                places=[
                    len(each) * (place - 1) + rank for rank, one in enumerate(each, 1) for place in one.places
                ],
                step=max(one.step for one in each),
                normal=any(one.normal for one in each),
            ),
            noises=tuple(abs(weight) * noise for weight, one in parts for noise in one.noises),
            rest=ErrorBound.weighted([(weight, one.rest) for weight, one in parts]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownError:
    """An answer before it is clipped to the range, and what is known of its error.

    Attributes:
        center: The answer; noise may have put it outside the range [data's unit].
        dataset, population: About the mean of the people who contributed, and of their population.
        anytime: About the first one at all steps; None of an answer without steps or of before.
    """

    center: float
    dataset: ErrorBound
    population: ErrorBound
    anytime: AnytimeBound | None = None

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "KnownError":
        """As a release says it."""
        always = document.get("anytime")
        return cls(
            center=document["center"],
            dataset=ErrorBound.read(document["dataset"]),
            population=ErrorBound.read(document["population"]),
            anytime=None if always is None else AnytimeBound.read(always),
        )

    @classmethod
    def weighted(cls, parts: Sequence[tuple[float, "KnownError"]]) -> "KnownError":
        """That of a weighted sum; see `ErrorBound.weighted`."""
        return cls(
            center=math.fsum(weight * one.center for weight, one in parts),
            dataset=ErrorBound.weighted([(weight, one.dataset) for weight, one in parts]),
            population=ErrorBound.weighted([(weight, one.population) for weight, one in parts]),
            anytime=None
            if not parts or any(one.anytime is None for _, one in parts)
            else AnytimeBound.weighted([(weight, one.anytime) for weight, one in parts if one.anytime]),
        )


def together(level: float, answers: int) -> float:
    """The level of each interval of which all hold at once with probability `level` (union bound)."""
    return 1 - (1 - level) / answers


def drawn_to_whole(answers: Sequence[tuple[float, float]], whole: float) -> list[float] | None:
    """Each answer drawn to the whole by as much as its error is more than the scatter of all.

    Args:
        answers: Each with the variance of its error [data's unit; squared].
        whole: The answer for all people [data's unit].

    Returns:
        The drawn answers, or None for fewer than `FEWEST`.

    Privacy: no data, no randomness.
    """
    if len(answers) < FEWEST:
        return None
    scatter = _scatter(answers, whole)
    return [
        answer + (whole - answer) * (variance / (variance + scatter) if variance else 0.0)
        for answer, variance in answers
    ]


def _scatter(answers: Sequence[tuple[float, float]], whole: float) -> float:
    """A, by bisection: the sum falls as A grows."""
    squares = [((answer - whole) ** 2, variance) for answer, variance in answers]

    def excess(scatter: float) -> bool:
        total = 0.0
        for square, variance in squares:
            if variance + scatter > 0:
                total += square / (variance + scatter)
            elif square:
                return True
        return total > len(squares) - 1

    lower, upper = 0.0, math.fsum(square for square, _ in squares)
    if not excess(lower):
        return 0.0
    for _ in range(_HALVINGS):
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if excess(middle) else (lower, middle)
    return upper
