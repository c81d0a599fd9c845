"""What holds for every estimator of the registry, whatever the groups."""

import math
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.costs import check_charges
from app.core.grid import GRID_SIZE
from app.core.noise import NoNoise
from app.core.study import Relation, Trust
from app.estimators import registry
from app.estimators.interface import NotApplicable
from dither_research.baselines.sampling import inclusion_of, plan_costs
from dither_research.estimators import ESTIMATORS
from tests.support.groups import WIDE_GRID, add_remove_one, central, local, public, query_values, replace_one

EVERY = sorted(ESTIMATORS)

epsilons = st.floats(1e-3, 1e3) | st.sampled_from([1e-6, 0.1, 1.0, 1e6])
any_group = (
    st.builds(central, epsilons, st.integers(0, 10**6), participates=st.booleans())
    | st.builds(public, st.integers(0, 10**4))
    | st.builds(local, epsilons, st.lists(st.integers(-(2**40), 2**40), max_size=4))
)
any_groups = st.lists(any_group, max_size=6)


def plan_or_none(name, groups):
    """The plan with default parameters; None where the estimator has no answer."""
    estimator = ESTIMATORS[name]
    if estimator.relation is Relation.REPLACE_ONE:
        question = replace_one(groups, grid=WIDE_GRID)
    else:
        cap = max((g.epsilon for g in groups if g.trust is Trust.CENTRAL), default=10**6) / 1e6
        question = add_remove_one(cap=cap, floor=1e-6, grid=WIDE_GRID)
    try:
        return estimator.plan(groups, registry.for_estimator(estimator, question))
    except NotApplicable:
        return None


@pytest.mark.parametrize("name", EVERY)
@given(groups=any_groups)
def test_nobody_is_ever_charged_more_than_they_offered(name, groups):
    plan = plan_or_none(name, groups)
    if plan is not None:
        relation = ESTIMATORS[name].relation
        costs = plan_costs(plan, relation, groups)
        check_charges(costs, groups)
        assert all(cost == 0 for cost, g in zip(costs, groups, strict=True) if g.trust is not Trust.CENTRAL)


@pytest.mark.parametrize("name", EVERY)
@given(groups=any_groups, noise=st.lists(st.integers(-(2**70), 2**70), min_size=2, max_size=2))
def test_every_conclusion_lies_in_the_range_and_is_finite(name, groups, noise):
    plan = plan_or_none(name, groups)
    if plan is None:
        return
    sums = [g.count * GRID_SIZE // 3 for g in groups]
    exact = query_values(plan, groups, sums)
    conclusion = plan.conclude([value + z for value, z in zip(exact, cycle(noise), strict=False)])
    assert math.isfinite(plan.predicted_error)
    assert plan.predicted_error > 0 or (plan.predicted_error == 0 and isinstance(plan.noise, NoNoise))
    assert math.isfinite(conclusion.standard_error)
    for part in (conclusion.interval, conclusion.population_interval):
        assert -20 <= part.lower <= conclusion.estimate <= part.upper <= 60


@pytest.mark.parametrize("name", EVERY)
@given(groups=any_groups, seed=st.randoms(use_true_random=False))
def test_the_order_of_groups_does_not_matter(name, groups, seed):
    order = list(range(len(groups)))
    seed.shuffle(order)
    one, two = plan_or_none(name, groups), plan_or_none(name, [groups[i] for i in order])
    assert (one is None) == (two is None)
    if one is None or two is None:
        return
    assert two.predicted_error == pytest.approx(one.predicted_error, rel=1e-9)
    # tau may cross a whole micro when a sum is added in another order.
    for query, shuffled in zip(one.queries, two.queries, strict=True):
        for place, index in enumerate(order):
            expected = query.sum_weights[index]
            assert abs(shuffled.sum_weights[place] - expected) <= 1 + 1e-9 * abs(expected)


@pytest.mark.parametrize("name", EVERY)
@given(value=st.integers(0, GRID_SIZE), sizes=st.lists(st.integers(1, 1000), min_size=3, max_size=3))
def test_if_all_say_the_same_the_noiseless_answer_is_that(name, value, sizes):
    reports = [value] * 3
    groups = [central(0.5, sizes[0]), central(3.0, sizes[1]), public(sizes[2])]
    if ESTIMATORS[name].relation is Relation.REPLACE_ONE:
        groups.append(local(1.0, reports))
    plan = plan_or_none(name, groups)
    assert plan is not None
    sums = [g.count * value if g.trust is not Trust.LOCAL else 0 for g in groups]
    conclusion = plan.conclude(query_values(plan, groups, sums))
    if inclusion_of(plan) is None and "midpoint" not in conclusion.details:
        shrinkage = conclusion.details.get("shrinkage", 1.0)
        assert isinstance(shrinkage, float)
        assert conclusion.estimate == pytest.approx(20 + shrinkage * (80 * value / GRID_SIZE - 40), abs=1e-9)


@pytest.mark.parametrize("name", [n for n in EVERY if ESTIMATORS[n].relation is Relation.REPLACE_ONE])
@given(groups=any_groups)
def test_auto_never_predicts_more_than_any_estimator(name, groups):
    plan = plan_or_none(name, groups)
    if plan is not None:
        _, best, _ = registry.choose(groups, replace_one(groups, grid=WIDE_GRID))
        # Two formulas for one error differ in their last digits.
        assert best.predicted_error <= plan.predicted_error * (1 + 1e-12)


@pytest.mark.parametrize("name", EVERY)
@given(groups=any_groups)
def test_a_plan_is_a_pure_function(name, groups):
    one, two = plan_or_none(name, groups), plan_or_none(name, groups)
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert (one.queries, one.noise, one.predicted_error) == (two.queries, two.noise, two.predicted_error)
        values = [12345 << 40] * len(one.queries)
        assert one.conclude(values) == two.conclude(values)
