"""The second moment: free, never NaN, and worth having."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.costs import group_costs
from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE, square
from app.core.noise import DiscreteGaussian, NoNoise
from app.core.study import Relation, Trust
from app.estimators import registry
from app.estimators.interface import NotApplicable, Plan, Query, Question
from app.estimators.linear import midpoint_plan
from app.estimators.moments import with_second_moment
from app.estimators.uniform import Uniform
from tests.support.groups import UNIT_GRID, add_remove_one, central, local, public, replace_one

LINEAR = ("uniform", "threshold", "adpm", "kvh", "pwh", "optimal")

PROFILES = 1_000


def profile(number: int) -> tuple[list[Group], Question]:
    """Random people: central ones of several offers in either currency, public ones and reports."""
    choice = random.Random(number)
    delta = choice.choice((0, 1_000_000))
    groups = [
        Group(
            trust=Trust.CENTRAL,
            epsilon=choice.randint(1, 5 * MICRO),
            count=choice.randint(1, 3_000),
            participates=choice.random() < 0.9,
        )
        for _ in range(choice.randint(1, 5))
    ]
    if choice.random() < 0.3:
        groups.append(public(choice.randint(1, 50)))
    if choice.random() < 0.3:
        groups.append(local(choice.choice((0.5, 1, 2)), [choice.randint(0, GRID_SIZE) for _ in range(9)]))
    question = Question(
        relation=Relation.REPLACE_ONE,
        grid=UNIT_GRID,
        cap=5 * MICRO,
        floor=1,
        delta=delta,
        people=sum(group.count for group in groups),
        tilt=choice.choice((0.0, 0.1)),
        parameters={},
    )
    return groups, question


def planned(name: str, groups: list[Group], question: Question) -> Plan | None:
    """The plan of an estimator, or None where it has none."""
    estimator = registry.get(name, Relation.REPLACE_ONE)
    try:
        return estimator.plan(groups, registry.for_estimator(estimator, question))
    except NotApplicable:
        return None


@pytest.mark.long
def test_the_mean_with_its_second_moment_costs_what_the_mean_costs():
    seen = gaussian = 0
    for number in range(PROFILES):
        groups, question = profile(number)
        plan = planned(LINEAR[number % len(LINEAR)], groups, question)
        if plan is None:
            continue
        both = with_second_moment(plan, groups, question)
        alone = group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, groups, question.currency)
        assert group_costs(both.queries, both.noise, Relation.REPLACE_ONE, groups, question.currency) == alone
        seen += both.has_variance and any(alone)
        gaussian += both.has_variance and isinstance(both.noise, DiscreteGaussian)
    assert seen > PROFILES / 2
    assert gaussian > 10


def test_control_a_second_moment_about_the_end_of_the_range_would_cost_more():
    for number in range(50):
        groups, question = profile(number)
        plan = planned("uniform", groups, question)
        if plan is None or isinstance(plan.noise, NoNoise):
            continue
        both = with_second_moment(plan, groups, question)
        mean, moment = both.queries
        about_the_end = Query(
            sum_weights=mean.sum_weights,
            count_weights=(0,) * len(groups),
            square_weights=tuple(squares for *_, squares in moment.terms),
        )
        dear = group_costs([mean, about_the_end], both.noise, Relation.REPLACE_ONE, groups, question.currency)
        free = group_costs(both.queries, both.noise, Relation.REPLACE_ONE, groups, question.currency)
        assert all(one > other for one, other in zip(dear, free, strict=True) if other != 0)


def widths(deviation: float, people: int) -> tuple[float, float]:
    """Widths of the population interval with and without a second moment, at values of this deviation."""
    groups = [central(1.0, people)]
    question = replace_one(groups)
    plan = Uniform().plan(groups, question)
    both = with_second_moment(plan, groups, question)
    (weights,) = {query.sum_weights for query in plan.queries}
    first, second = (
        people * weights[0] * GRID_SIZE // 2,
        round(people * weights[0] * deviation**2 * GRID_SIZE),
    )
    intervals = both.conclude([first, second]), plan.conclude([first])
    with_it, without = (one.population_interval.upper - one.population_interval.lower for one in intervals)
    return with_it, without


def test_population_intervals_of_narrow_data_are_at_most_a_third_as_wide():
    with_it, without = widths(0.1, 100_000)
    assert with_it <= without / 3


def test_control_those_of_two_valued_data_are_not():
    with_it, without = widths(0.5, 100_000)
    assert without < with_it <= 1.06 * without


WILD = st.integers(-(10**30), 10**30)


@given(st.lists(st.tuples(st.floats(0.001, 5), st.integers(1, 10**6)), min_size=1, max_size=4), WILD, WILD)
def test_there_is_always_an_interval_that_holds_the_estimate(people, first, second):
    groups = [central(epsilon, count) for epsilon, count in people]
    question = replace_one(groups)
    both = with_second_moment(Uniform().plan(groups, question), groups, question)
    found = both.conclude([first, second])
    check(found, 0.25)
    # Whatever the noise says, the interval is no wider than the plan said.
    assert both.spread is not None
    half = both.spread().half_width
    assert half is not None
    assert found.variance is not None
    assert (found.variance.interval.upper - found.variance.interval.lower) / 2 <= half + 1e-12


@given(st.floats(0.01, 1), WILD, WILD, WILD)
def test_so_there_is_where_the_number_of_people_is_secret(floor, first, second, third):
    plan = registry.get("transformed", Relation.ADD_REMOVE_ONE).plan(
        [central(1.0, 5)], secret(cap=1.0, floor=floor)
    )
    check(plan.conclude([first, second, third]), 0.25)


def check(conclusion, most):
    for statistic, limit in ((conclusion.variance, most), (conclusion.variance.root, math.sqrt(most))):
        assert statistic.standard_error >= 0
        for interval in (statistic.interval, statistic.population_interval):
            assert (statistic.estimate == 0) <= (interval.upper == 0)
            assert 0 <= interval.lower <= statistic.estimate <= interval.upper <= limit * (1 + 1e-9)


def secret(**changes: Any) -> Question:
    question = add_remove_one(**changes)
    return Question(
        **{name: getattr(question, name) for name in question.__slots__} | {"parameters": {"moments": 2}}
    )


def test_public_values_have_the_variance_that_they_have():
    points = [0, GRID_SIZE, GRID_SIZE // 4, GRID_SIZE // 4]
    groups = [public(4)]
    question = replace_one(groups)
    both = with_second_moment(Uniform().plan(groups, question), groups, question)
    weight = both.queries[0].sum_weights[0]
    made = both.conclude([weight * sum(points), weight * sum(square(point) for point in points)])
    assert both.noise == NoNoise()
    assert made.variance is not None
    assert made.variance.estimate == pytest.approx(0.140625, abs=1e-9)
    assert made.variance.interval.upper - made.variance.interval.lower <= 2 / GRID_SIZE


def test_three_sums_read_the_variance_without_noise():
    plan = registry.get("transformed", Relation.ADD_REMOVE_ONE).plan([central(1.0, 4)], secret())
    points = [0, GRID_SIZE, GRID_SIZE // 4, GRID_SIZE // 4] * 10_000
    total, squares = sum(points), sum(square(point) for point in points)
    values = [
        a * total + b * GRID_SIZE * len(points) + c * squares
        for query in plan.queries
        for _, a, b, c in query.terms
    ]
    made = plan.conclude(values)
    assert made.estimate == pytest.approx(0.375)
    assert made.variance is not None
    assert made.variance.estimate == pytest.approx(0.140625, abs=1e-8)
    assert made.details["noisy_count"] == pytest.approx(40_000)


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "public"])
def test_equal_values_are_no_spread_of_zero_and_their_estimate_is_no_larger_than_noise(noise):
    groups = [public(40)] if noise == "public" else [central(1.0, 40)]
    question = replace(replace_one(groups), delta=1_000_000 if noise == "gaussian" else 0)
    both = with_second_moment(Uniform().plan(groups, question), groups, question)
    weight = both.queries[0].sum_weights[0]
    for seen in (0, -40 * weight * GRID_SIZE // 50):
        if noise == "public" and seen:
            continue
        found = both.conclude([20 * weight * GRID_SIZE, seen]).variance
        assert found is not None
        assert found.interval.lower == 0 < found.estimate
        if noise == "public":
            assert found.estimate == found.interval.upper / 2 < 1e-8
        else:
            assert found.estimate == pytest.approx(min(found.standard_error, found.interval.upper) / 2)


def test_only_who_asks_for_a_variance_gets_the_mean_of_three_sums():
    transformed = registry.get("transformed", Relation.ADD_REMOVE_ONE)
    question = add_remove_one(expected_size=1_000)
    plain = transformed.plan([central(1.0, 5)], question)
    spread = transformed.plan([central(1.0, 5)], secret(expected_size=1_000))
    assert len(plain.queries) == 2
    assert spread.predicted_error / plain.predicted_error == pytest.approx((5 / 4) ** 0.25)
    groups = [central(1.0, 5)]
    assert group_costs(spread.queries, spread.noise, question.relation, groups) == [MICRO]


def test_what_is_not_linear_in_central_or_public_people_stays_as_it_is():
    groups = [local(1.0, [0, GRID_SIZE])]
    question = replace_one(groups)
    for plan in (midpoint_plan(groups, question), planned("optimal", groups, question)):
        assert plan is not None
        assert with_second_moment(plan, groups, question) is plan


def test_a_tilt_widens_the_interval_of_the_variance():
    groups = [central(0.1, 5_000), central(2.0, 5_000)]
    made = []
    for tilt in (0.0, 0.1, 1.0):
        question = replace_one(groups, tilt=tilt)
        plan = planned("adpm", groups, replace_one(groups))
        assert plan is not None
        both = with_second_moment(plan, groups, question)
        mass = sum(w * g.count for w, g in zip(both.queries[0].sum_weights, groups, strict=True))
        variance = both.conclude([mass * GRID_SIZE // 2, mass * GRID_SIZE // 12]).variance
        assert variance is not None
        made.append(variance.interval.upper - variance.interval.lower)
    assert made[0] < made[1] < made[2]


def test_the_published_variance_steers_weights_and_predictions_but_no_interval():
    groups = [central(0.1, 500), central(2.0, 500)]
    question = replace_one(groups)
    optimal = registry.get("optimal", Relation.REPLACE_ONE)
    steered = Question(**{name: getattr(question, name) for name in question.__slots__} | {"variance": 0.01})
    before, after = (
        optimal.plan(groups, registry.for_estimator(optimal, one)) for one in (question, steered)
    )
    assert after.predicted_error < before.predicted_error
    assert max(after.queries[0].sum_weights) > max(before.queries[0].sum_weights)
