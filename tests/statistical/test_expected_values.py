"""Do plans predict what variances and deviations, and means of a secret number of people, miss by?

Draws are vectorized; that answers are read so is checked on some of them. The mean square of DRAWS errors,
with the tails of Laplace noise, has a deviation of 1.6 %, and its root one of .8 %: it is off by 5 % less
than once in a million times, and all bounds here are further than that from what was seen. Of a hundred
predictions from one answer each at most about ten are outside of what is wanted: 31 are less than once in a
million times.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE, Grid, square
from app.core.noise import DiscreteLaplace
from app.core.study import Currency, Relation, Trust
from app.estimators import registry
from app.estimators.expected import GUESS, ExpectedValues, missed
from app.estimators.interface import Plan, Question
from app.estimators.moments import with_second_moment

pytestmark = pytest.mark.statistical

DRAWS, READ, PUBLISHED = 20_000, 12, 100
UNIT = Grid(Decimal(0), Decimal(1))
WANTED = (0.8, 1.3)

Floats = NDArray[np.float64]
KINDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "incomes": lambda random, n: np.minimum(random.lognormal(math.log(38_000), 0.7, n), 500_000) / 500_000,
    "minutes": lambda random, n: np.minimum(random.gamma(2.0, 18.0, n), 240) / 240,
    "uniform": lambda random, n: random.random(n),
}
RELATIONS = (Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """People who all offer the same, and what is asked of them."""

    values: Floats
    question: Question
    groups: list[Group]

    @classmethod
    def of(cls, kind: str, people: int, relation: Relation, share: float) -> "Study":
        secret, offer = relation is Relation.ADD_REMOVE_ONE, round(share * MICRO)
        return cls(
            values=KINDS[kind](np.random.default_rng(people), people),
            question=Question(
                relation=relation,
                grid=UNIT,
                cap=offer,
                floor=offer,
                people=None if secret else people,
                expected_size=float(people) if secret else None,
                tilt=1.0 if secret else 0.1,
                parameters={"moments": 2} if secret else {},
            ),
            groups=[Group(trust=Trust.CENTRAL, epsilon=offer, count=people)],
        )

    def plan(self, expected: ExpectedValues, *, of_mean: bool = False) -> Plan:
        question = replace(self.question, expected=expected)
        if question.relation is Relation.ADD_REMOVE_ONE:
            question = replace(question, parameters={}) if of_mean else question
            return registry.get("transformed", question.relation, Currency.LAPLACE).plan(
                self.groups, question
            )
        plan = registry.get("adpm", question.relation, Currency.LAPLACE).plan(self.groups, question)
        return with_second_moment(plan, self.groups, question)

    @property
    def known(self) -> ExpectedValues:
        return ExpectedValues(mean=float(self.values.mean()), variance=float(self.values.var()))

    def answers(self, plan: Plan, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Means and variances of DRAWS answers; the first of them are those that the plan reads."""
        points = [round(float(one) * GRID_SIZE) for one in self.values]
        totals = [sum(points)], [len(points) * GRID_SIZE], [sum(map(square, points))]
        exact = [query.value(*totals) for query in plan.queries]
        assert isinstance(plan.noise, DiscreteLaplace)
        noise = np.rint(random.laplace(size=(DRAWS, len(exact))) * np.array(plan.noise.scales))
        noisy = np.array([float(one) for one in exact]) + noise
        means, variances = (self._secret if len(exact) == 3 else self._public)(plan, noisy)
        for place in range(READ):
            read = plan.conclude([one + int(more) for one, more in zip(exact, noise[place], strict=True)])
            assert read.variance is not None
            assert read.estimate == pytest.approx(means[place], abs=1e-6)
            # Where noise hides it, the ends of its interval are in an estimate, too, which are left out here.
            if read.variance.interval.lower > 0 and read.variance.estimate > read.variance.standard_error / 2:
                assert read.variance.estimate == pytest.approx(variances[place], rel=1e-3, abs=1e-6)
        return means, variances

    def _public(self, plan: Plan, noisy: Floats) -> tuple[Floats, Floats]:
        weight = plan.queries[0].sum_weights[0] * len(self.values) * GRID_SIZE
        assert isinstance(plan.noise, DiscreteLaplace)
        law = 2 * (plan.noise.scales[0] / weight) ** 2
        means, moments = noisy[:, 0] / weight, noisy[:, 1] / weight
        about = means - 0.5
        stated = np.sqrt(law * (1 + 4 * np.minimum(about**2, 0.25)))
        return np.clip(means, 0, 1), _bounded(moments - about**2 + law, stated)

    def _secret(self, plan: Plan, noisy: Floats) -> tuple[Floats, Floats]:
        assert isinstance(plan.noise, DiscreteLaplace)
        squares, mixed, others = np.maximum(noisy / plan.noise.scales[0], 0).T
        whole = squares + mixed + others
        variances = np.clip((squares * others - mixed**2 / 4) / whole**2, 0, 0.25)
        p = (squares + mixed / 2) / whole
        scales = ((1 - p) ** 2 - variances, p * (1 - p) + variances, p**2 - variances)
        stated = np.minimum(0.25, np.sqrt(2 * sum(one**2 for one in scales)) / whole)
        first = 2 * noisy[:, 0] + noisy[:, 1]
        total = 2 * noisy.sum(axis=1)
        return np.clip(first / total, 0, 1), _bounded(variances, stated)


def _bounded(raw: Floats, stated: Floats) -> Floats:
    return np.minimum(np.maximum(raw, stated / 2), 0.25)


def realised(answers: Floats, truth: float) -> float:
    return math.sqrt(float(np.mean((answers - truth) ** 2)))


def within(planned: float, realised: float, bounds: tuple[float, float] = WANTED) -> bool:
    return bounds[0] <= planned / realised <= bounds[1]


@pytest.mark.parametrize("share", [0.1, 1.0])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("people", [1_000, 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_plans_predict_what_variances_and_deviations_miss_by(
    source, kind: str, people: int, relation: Relation, share: float
):
    study = Study.of(kind, people, relation, share)
    plan = study.plan(study.known)
    means, variances = study.answers(plan, source.people)
    real = (
        realised(variances, study.known.spread),
        realised(np.sqrt(variances), math.sqrt(study.known.spread)),
    )
    # Of the values that there are it is what is seen.
    assert plan.spread is not None
    assert within(plan.spread().error, real[0], (0.9, 1.15))
    assert within(plan.spread().root.error, real[1], (0.9, 1.2))
    # Of those of one answer before it: on average, and nine in ten of them by themselves.
    said = zip(means[:PUBLISHED].tolist(), variances[:PUBLISHED].tolist(), strict=True)
    spreads = [study.plan(ExpectedValues(mean=mean, variance=one)).spread for mean, one in said]
    planned = [(one.error, one.root.error) for one in (spread() for spread in spreads if spread is not None)]
    assert len(planned) == PUBLISHED
    for column, error in zip(zip(*planned, strict=True), real, strict=True):
        assert within(float(np.mean(column)), error)
        assert sum(within(one, error) for one in column) >= 0.7 * PUBLISHED
    # Without any, of a public number of people, a variance is within it, and a deviation is a guess.
    guessed = study.plan(GUESS).spread
    assert guessed is not None
    if relation is Relation.REPLACE_ONE:
        assert within(guessed().error, real[0])


@pytest.mark.parametrize("people", [1_000, 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_plans_predict_what_means_of_a_secret_number_miss_by(source, kind: str, people: int):
    study = Study.of(kind, people, Relation.ADD_REMOVE_ONE, 0.1)
    mean = study.known.place
    noise = source.people.laplace(size=(2, DRAWS)) / (0.1 * people)
    first, second = np.maximum(mean + noise[0], 0), np.maximum(1 - mean + noise[1], 0)
    real = realised(first / (first + second), mean)
    assert within(study.plan(study.known, of_mean=True).predicted_error, real, (0.9, 1.1))
    # Before one is published, of no mean by more than the fourth root of 2.
    assert within(study.plan(GUESS, of_mean=True).predicted_error, real)


def test_no_plan_can_predict_the_deviation_of_values_of_which_nothing_is_known():
    """Two kinds of values, one plan: their errors are further apart than any number is near to both."""
    for sigma in (0.001, 0.01, 0.1):
        of_equal, of_halves = (missed(variance, sigma, sigma)[1] for variance in (0.0, 0.25))
        assert of_equal / of_halves > WANTED[1] / WANTED[0]
