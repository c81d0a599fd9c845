"""The error of a plan: exact from its own numbers, or simulated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.core.cohort import Group
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, square
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.interface import Plan
from dither_research.baselines.sampling import inclusion_of
from dither_research.estimators import ESTIMATORS
from dither_research.people import Law, ask, draw_sample
from dither_research.seeded import Floats, Random, draw_noise

_MIDDLE = 0.5
_BESIDE = 0.5 + 2**-12
"""Near enough to the middle that no estimate is clipped, also where few are sampled."""


def plan_of(name: str, groups: Sequence[Group], **parameters: object) -> Plan:
    """The product's plan for the mean of these groups on [0, 1].

    Args:
        name: Of an estimator of replace_one studies.
        groups: The groups.
        parameters: Of the estimator, parsed.
    """
    return ESTIMATORS[name].plan(groups, ask(groups, parameters=parameters))


def square_error_of(plan: Plan) -> float:
    """The mean square error about the population's mean that a plan predicts, as papers state it.

    Raises:
        InternalFault: it predicts none, since the number of people is secret.
    """
    if plan.population_error is None:
        raise InternalFault("This plan predicts nothing about a population.")
    return plan.population_error**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The mean square error of a weighted mean about the population's: v q + N, v the data's variance.

    Attributes:
        squares: q, the sum of squared weights.
        noise: N, variance of the noise [range width squared].
        sampling: Further part, times the data's mean square about the middle of the range.
    """

    squares: float
    noise: float
    sampling: float = 0.0

    def square_error(self, law: Law) -> float:
        """Mean square error about the population's mean, before clipping to the range."""
        about_middle = law.variance + (law.mean - _MIDDLE) ** 2
        return self.squares * law.variance + self.noise + self.sampling * about_middle

    def with_variance(self, variance: float) -> float:
        """The same for data of some variance."""
        return self.squares * variance + self.noise


def moments(plan: Plan, groups: Sequence[Group]) -> Moments:
    """What a plan that does not shrink says of its error, taken apart.

    Args:
        plan: Made for the worst-case variance 1/4, on the range [0, 1].
        groups: What it was made for.
    """
    conclusion = plan.conclude(_at(plan, groups, _MIDDLE))
    if "shrinkage" in conclusion.details:
        raise InternalFault("This plan shrinks: it errs in other ways, too.")
    noise = conclusion.standard_error**2
    rest = (square_error_of(plan) - noise) / WORST_VARIANCE
    inclusion = inclusion_of(plan)
    if inclusion is None:
        return Moments(squares=rest, noise=noise)
    probabilities = np.array([float(p) for p in inclusion])
    sizes = np.array([group.count for group in groups], dtype=np.float64)
    squares = float(sizes @ probabilities**2) / float(sizes @ probabilities) ** 2
    return Moments(squares=squares, noise=noise, sampling=rest - squares)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a plan reads its noisy values, before clipping: intercept + slopes . values.

    Attributes:
        intercept: Of the estimate [range widths].
        slopes: float64 array of shape (queries,).
    """

    intercept: float
    slopes: Floats

    def __call__(self, values: Floats) -> Floats:
        """Estimates from noisy values of shape (queries, runs)."""
        return self.intercept + self.slopes @ values


def reading(plan: Plan, groups: Sequence[Group]) -> Reading:
    """Ask a plan how it reads, by concluding from values well inside the range.

    Args:
        plan: Of an affine estimator, on the range [0, 1].
        groups: What it was made for.
    """
    center, shifted = _at(plan, groups, _MIDDLE), _at(plan, groups, _BESIDE)
    base = plan.conclude(center).estimate
    slopes = np.zeros(len(center))
    for index, (here, there) in enumerate(zip(center, shifted, strict=True)):
        if here != there:
            probe = [*center[:index], there, *center[index + 1 :]]
            slopes[index] = (plan.conclude(probe).estimate - base) / (there - here)
    return Reading(intercept=base - float(slopes @ np.array(center, dtype=np.float64)), slopes=slopes)


def query_values(plan: Plan, counts: Floats, sums: Floats) -> Floats:
    """The queries, without noise.

    Args:
        plan: The plan.
        counts: float64 array of shape (G, runs), people who are used.
        sums: float64 array of shape (G, runs), the sum of their values [range widths].

    Returns:
        float64 array of shape (queries, runs) [query units].
    """
    values = np.zeros((len(plan.queries), sums.shape[1]))
    for row, query in enumerate(plan.queries):
        for index, weight, of_count, _ in query.terms:
            if weight or of_count:
                values[row] += weight * sums[index] + of_count * counts[index]
    return values * GRID_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Simulated releases of one plan.

    Attributes:
        estimates: Before clipping, shape (runs,).
        people: The true mean of the people in each run, shape (runs,).
    """

    estimates: Floats
    people: Floats

    def square_error(self, mean: float) -> tuple[float, float]:
        """Mean square error about a mean, and its standard error."""
        return average((self.estimates - mean) ** 2)

    def excess(self, mean: float) -> tuple[float, float]:
        """What it has over the plain mean without privacy, with standard error: that errs by v / n."""
        return average((self.estimates - mean) ** 2 - (self.people - mean) ** 2)


def simulate(plan: Plan, groups: Sequence[Group], law: Law, runs: int, random: Random) -> Simulated:
    """Fresh people and fresh noise for every release; no local reports.

    Args:
        plan: Of an affine estimator, on the range [0, 1].
        groups: What it was made for.
        law: Of each person's value.
        runs: Releases.
        random: The source.
    """
    inclusion = inclusion_of(plan)
    shares = [1.0] * len(groups) if inclusion is None else [float(p) for p in inclusion]
    drawn = [
        draw_sample(law, group.count, share, runs, random)
        for group, share in zip(groups, shares, strict=True)
    ]
    people = sum((sample.whole for sample in drawn), np.zeros(runs)) / sum(g.count for g in groups)
    values = query_values(
        plan, np.stack([sample.count for sample in drawn]), np.stack([sample.total for sample in drawn])
    )
    values += draw_noise(plan.noise, queries=len(plan.queries), runs=runs, random=random)
    return Simulated(estimates=reading(plan, groups)(values), people=people)


def average(values: Floats) -> tuple[float, float]:
    """Mean and its standard error; the latter 0 for a single value."""
    if values.size < 2:
        return float(values.mean()), 0.0
    return float(values.mean()), float(values.std(ddof=1)) / math.sqrt(values.size)


def _at(plan: Plan, groups: Sequence[Group], position: float) -> list[int]:
    """The queries' exact values where all people sit at one place of the range."""
    point = round(position * GRID_SIZE)
    return [
        sum(
            (weight * point + of_count * GRID_SIZE + of_squares * square(point)) * groups[index].count
            for index, weight, of_count, of_squares in query.terms
        )
        for query in plan.queries
    ]
