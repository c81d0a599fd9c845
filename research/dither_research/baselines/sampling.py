"""`sampling`, as a simulation: people enter by chance, those who offer less more rarely."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.accounting.costs import Cost, group_costs
from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace, NoNoise
from app.core.study import Currency, Relation, Trust
from app.estimators.accuracy import WORST_VARIANCE, PredictedErrors
from app.estimators.interface import UNIT_SCALE, NotApplicable, Parameter, Plan, Query, Question
from app.estimators.linear import participants
from dither_research.sampled_cost import sampled_costs

INCLUSION_BITS = 48
"""Probabilities are multiples of 2**-48: an event of 48 fair coins."""

_ALWAYS = 1 << INCLUSION_BITS
_MARGIN = 1e-12
"""Probabilities are lowered by this part: more than the error of the doubles they come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledPlan(Plan):
    """A plan on a Poisson sample.

    Attributes:
        inclusion: The probability with which each person of group g is used.
    """

    inclusion: tuple[Fraction, ...]


def inclusion_of(plan: Plan) -> tuple[Fraction, ...] | None:
    """With what probability a plan uses each person of each group; None for every person."""
    return plan.inclusion if isinstance(plan, SampledPlan) else None


def plan_costs(
    plan: Plan, relation: Relation, groups: Sequence[Group], currency: Currency = Currency.LAPLACE
) -> list[Cost]:
    """What a plan costs each person of each group; the service has no price for a sample.

    Args:
        plan: The plan.
        relation: The neighboring relation.
        groups: What it was made for.
        currency: Of the study.
    """
    if not isinstance(plan, SampledPlan) or isinstance(plan.noise, NoNoise):
        return group_costs(plan.queries, plan.noise, relation, groups, currency)
    return sampled_costs(plan.queries, plan.noise, relation, groups, plan.inclusion)


class Sampling:
    r"""The sampling mechanism, in a form that is private: sampled values about the middle, public size.

    The published form divides by the size of the sample and makes the noise depend on it, which leaks. Here
    the sum of the sampled :math:`x_i - 1/2` is divided by the expected size. Public people are always
    in. Local reports are not used.
    """

    name: ClassVar[str] = "sampling"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "A random sample, rarer for those who offer less, at the largest epsilon."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        With t the largest offer, a person is in the sample with the probability p at which a centered
        value under noise of 1 / t costs exactly their offer,

        .. math:: p_i = \frac{e^{\epsilon_i} - 1}{(e^{t/2} - 1)(1 + e^{\epsilon_i - t/2})},

        rounded down to a multiple of 2^-48; the paper's :math:`(e^{\epsilon_i} - 1) / (e^t - 1)` is
        smaller. The answer is :math:`1/2 + (\sum_{sample} (x_i - 1/2) + Lap(1/t)) / \sum p_i`.

        Args:
            groups: All groups of the study.
            question: What is asked.

        Returns:
            One query, its weights about the middle of the range, and the probability of each group.

        Raises:
            NotApplicable: no person is public, and no person central can take part.

        Privacy: at most epsilon_g for each central person; `dither_research.sampled_cost` has the proof and
            the exact price. Who was in the sample is never published, nor how many.

        References:
            Jorgensen, Yu, Cormode, ICDE 2015, doi:10.1109/ICDE.2015.7113353 (the sampling mechanism);
            Chaudhuri, Courtade, arXiv:2305.09668, section IV, SM.
        """
        central, public = participants(groups, Trust.CENTRAL), participants(groups, Trust.PUBLIC)
        if not central and not public:
            raise NotApplicable("No person central or public can take part.")
        half = max((groups[index].epsilon for index in central), default=2) // 2
        if half == 0:
            raise NotApplicable("No person offers enough to be sampled.")
        offers = np.array([groups[index].epsilon for index in central], dtype=np.float64) / MICRO
        thresholds = [0] * len(groups)
        weights = [0] * len(groups)
        for index, threshold in zip(central, inclusion_thresholds(offers, 2 * half / MICRO), strict=True):
            thresholds[index] = threshold
            weights[index] = half if threshold else 0
        for index in public:
            thresholds[index] = _ALWAYS
            weights[index] = half
        expected = Fraction(
            sum(k * group.count for k, group in zip(thresholds, groups, strict=True)), _ALWAYS
        )
        if expected == 0:
            raise NotApplicable("No person offers enough to be sampled.")
        size = float(expected)
        probabilities = np.array(thresholds, dtype=np.float64) / _ALWAYS
        sizes = np.array([group.count for group in groups], dtype=np.float64)
        divisor = expected * 2 * half * GRID_SIZE

        def read(values: Sequence[int]) -> Fraction:
            (value,) = values
            return Fraction(1, 2) + value / divisor

        variance = WORST_VARIANCE * float(sizes @ (probabilities * (1 - probabilities))) / size**2
        person = probabilities / size
        people = float(max(question.people or 0, sum(group.count for group in groups)))
        deviations = person - 1 / people
        populated = sizes > 0
        unweighted = people - float(sizes.sum())
        spread = WORST_VARIANCE * float(sizes @ person**2) + variance
        variation = (float(sizes @ np.abs(deviations)) + unweighted / people) / 2
        errors = PredictedErrors(
            grid=question.grid,
            laplaces=((MICRO / (2 * half) / size, 1),) if central else (),
            dataset_variance=WORST_VARIANCE * (float(sizes @ deviations**2) + unweighted / people**2)
            + variance,
            dataset_step=float(np.abs(deviations[populated]).max()) / 2,
            population_variance=spread,
            population_step=float(person[populated].max()) / 2,
            exact=not variance
            and not unweighted
            and float(np.abs(deviations[populated]).max()) * people <= 1e-9,
            bias=question.tilt * variation,
        )
        error = float(question.grid.width) * math.sqrt(spread + errors.noise_variance + errors.bias**2)
        return SampledPlan(
            queries=(
                Query(
                    sum_weights=tuple(2 * weight for weight in weights),
                    count_weights=tuple(-weight for weight in weights),
                ),
            ),
            noise=DiscreteLaplace(scales=(UNIT_SCALE,)) if central else NoNoise(),
            predicted_error=error,
            population_error=error,
            conclude=lambda values: errors.conclude(read(values)),
            interval_width=errors.interval_width,
            inclusion=tuple(Fraction(threshold, _ALWAYS) for threshold in thresholds),
        )


def inclusion_thresholds(offers: NDArray[np.float64], top: float) -> list[int]:
    """How often every person may be in the sample, in multiples of 2**-48.

    Args:
        offers: float64 array of shape (K,), what each may be charged, in (0, infinity) [1].
        top: t, what a person who is always in pays [1].

    Returns:
        K integers k in [0, 2**48]: p = k / 2**48 costs at most the offer; 2**48 where the offer is t or more.

    Privacy: offers are public under replace_one; no data, no randomness.
    """
    with np.errstate(over="ignore"):
        rarer = np.exp(top / 2 - offers)
    probabilities = -np.expm1(-offers) / (-np.expm1(-top / 2) * (1 + rarer))
    lowered = np.floor(probabilities * (1 - _MARGIN) * _ALWAYS)
    return [
        _ALWAYS if offer >= top else int(k)
        for offer, k in zip(offers.tolist(), lowered.tolist(), strict=True)
    ]
