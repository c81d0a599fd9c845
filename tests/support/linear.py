"""A linear plan taken apart, so that many releases can be simulated at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group, Reports
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace, NoNoise
from app.core.study import LocalMechanism
from app.estimators.interface import Conclusion, Estimator, Plan, Question
from dither_research.baselines.sampling import inclusion_of
from tests.support.groups import query_values
from tests.support.noise import NoiseSource
from tests.support.reports import report_scale

HALF = GRID_SIZE // 2
STEP = GRID_SIZE // 16


@dataclass(frozen=True)
class TakenApart:
    """What the answer of a linear plan is made of; range [0, 1], before clipping.

    Attributes:
        shares: How far the answer moves with the mean of each group.
        noise: How far it moves with the noise of each query.
        scales: Laplace scales of these noises.
        shrinkage: Of the answer about the middle.
        margins: Half widths of both intervals around the answer before shrinking.
    """

    plan: Plan
    groups: Sequence[Group]
    shares: NDArray[np.float64]
    noise: NDArray[np.float64]
    scales: tuple[float, ...]
    shrinkage: float
    margins: tuple[float, float]
    conclusion: Conclusion


def take_apart(estimator: Estimator, groups: Sequence[Group], question: Question) -> TakenApart:
    """Move each group and each noise a little and see what the answer does.

    Local groups are set to reports at the middle of the range; the variance must not be estimated.
    """
    groups = [_saying(group, HALF) for group in groups]
    plan = estimator.plan(groups, question)
    sums = [group.count * HALF for group in groups]
    values = query_values(plan, groups, sums)
    middle = plan.conclude(values)
    assert abs(middle.estimate - 0.5) < 1e-9
    shares = []
    for index, group in enumerate(groups):
        moved, other = list(sums), list(groups)
        if group.reports is None:
            moved[index] += group.count * STEP
        else:
            other[index] = _saying(group, HALF + STEP)
        after = estimator.plan(other, question).conclude(query_values(plan, other, moved))
        shares.append((after.estimate - middle.estimate) * 16)
    scales: tuple[float, ...] = ()
    match plan.noise:
        case DiscreteLaplace(scales=scales):
            pass
        case NoNoise():
            pass
        case _:
            raise NotImplementedError
    noise = []
    for number, scale in enumerate(scales):
        size, change = scale / 64, 0.0
        while not 1e-4 < abs(change) < 0.3:  # neither lost in rounding nor clipped
            size = size * (8 if abs(change) <= 1e-4 else 0.5)
            shifted = [value + round(size) * (index == number) for index, value in enumerate(values)]
            change = plan.conclude(shifted).estimate - middle.estimate
        noise.append(change / round(size))
    shrinkage = middle.details.get("shrinkage", 1.0)
    assert isinstance(shrinkage, float)
    return TakenApart(
        plan=plan,
        groups=groups,
        shares=np.array(shares),
        noise=np.array(noise),
        scales=scales,
        shrinkage=shrinkage,
        margins=(middle.interval.upper - 0.5, middle.population_interval.upper - 0.5),
        conclusion=middle,
    )


@dataclass(frozen=True)
class Outcomes:
    """Answers of many releases before clipping, and the truth of each dataset; positions in [0, 1]."""

    answers: NDArray[np.float64]
    means: NDArray[np.float64]


def simulate(parts: TakenApart, source: NoiseSource, *, p: float, runs: int) -> Outcomes:
    """Everybody says 1 with probability p and 0 otherwise, afresh in every run.

    Sums of m Laplace reports are differences of two Gamma(m) variables.
    """
    answers = np.full(runs, 0.5)
    totals = np.zeros(runs)
    inclusion = inclusion_of(parts.plan)
    for index, group in enumerate(parts.groups):
        ones = source.people.binomial(group.count, p, runs).astype(float)
        totals += ones
        if inclusion is not None:
            # The sampled ones among those who say 1 and those who say 0; the answer weighs x - 1/2.
            chance = float(inclusion[index])
            said = source.people.binomial(ones.astype(int), chance).astype(float)
            other = source.people.binomial((group.count - ones).astype(int), chance)
            answers += parts.shares[index] / group.count * (said - other) / 2
            continue
        mean = ones / group.count
        if group.reports is not None:
            assert group.reports.mechanism is LocalMechanism.LAPLACE
            scale = report_scale(group.epsilon) / GRID_SIZE
            first, second = (source.people.gamma(group.count, size=runs) for _ in range(2))
            mean = mean + scale * (first - second) / group.count
        answers += parts.shares[index] * (mean - 0.5)
    for factor, scale in zip(parts.noise, parts.scales, strict=True):
        answers += factor * source.laplace(scale, runs)
    return Outcomes(answers=answers, means=totals / sum(group.count for group in parts.groups))


def _saying(group: Group, value: int) -> Group:
    """A local group whose reports all say a value; any other group as it is."""
    if group.reports is None:
        return group
    reports = Reports(
        mechanism=group.reports.mechanism,
        total=value * group.count,
        total_squares=value * value * group.count,
    )
    return replace(group, reports=reports)
