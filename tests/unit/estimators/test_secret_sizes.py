"""`independent`, `shifted`, `hourglass`: formulas, prices, edges, and only noise about who is there."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.costs import check_charges, group_costs
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteLaplace
from app.core.noise import Hourglass as HourglassNoise
from app.core.study import Relation
from app.estimators import registry
from app.estimators.hourglass import Hourglass, parse_level
from app.estimators.interface import UNIT_SCALE
from app.estimators.quantiles import ErrorLaw
from app.estimators.transformed import Transformed
from app.mechanisms.hourglass import hourglass_moments
from app.mechanisms.laplace import MAX_SCALE
from dither_research.baselines.ratio import Independent, ReferencePivot, Shifted, zero_position
from dither_research.estimators import ESTIMATORS, applicable
from tests.support.groups import WIDE_GRID, add_remove_one, central, local, micro, public, query_values

ADD_REMOVE = Relation.ADD_REMOVE_ONE
EVERY = sorted(e.name for e in applicable(ADD_REMOVE))

decimals = st.decimals(-(10**6), 10**6, places=3)
grids = st.tuples(decimals, decimals).filter(lambda ends: ends[0] < ends[1]).map(lambda ends: Grid(*ends))


def plan_for(estimator, groups=(), **more):
    return estimator.plan(groups, add_remove_one(**more))


def worst_noise(plan):
    """Standard deviation of the pivot at the end of the range where it is larger [epsilons times people]."""
    pivot = plan.conclude.__self__.pivot
    laws = [ErrorLaw(sigma=math.sqrt(pivot.normal(p)), laplaces=pivot.laplaces(p)) for p in (0.0, 1.0)]
    return max(math.sqrt(law.variance) for law in laws)


def costs_of(plan, groups):
    return group_costs(plan.queries, plan.noise, ADD_REMOVE, groups)


# ------------------------------------------------------------------------------ what all four share


@pytest.mark.parametrize("name", EVERY)
def test_nothing_depends_on_how_many_there_are(name):
    """The same queries, noise, prediction and reading for one person, a million, and nobody."""
    estimator = ESTIMATORS[name]
    question = registry.for_estimator(estimator, add_remove_one(cap=1.0, floor=0.5, expected_size=100))
    plans = [
        estimator.plan([central(1.0, count), central(0.5, 3 * count)], question) for count in (0, 1, 10**6)
    ]
    assert len({(plan.queries, plan.noise, plan.predicted_error) for plan in plans}) == 1
    values = [5 << 52, 3 << 52]
    assert plans[0].conclude(values) == plans[1].conclude(values) == plans[2].conclude(values)
    assert estimator.plan([], question).predicted_error == plans[0].predicted_error


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_study_answers_like_any_other(name):
    estimator = ESTIMATORS[name]
    question = registry.for_estimator(estimator, add_remove_one(cap=1.0))
    plan = estimator.plan([], question)
    conclusion = plan.conclude([0, 0])
    assert conclusion.estimate == 0.5
    assert (conclusion.interval.lower, conclusion.interval.upper) == (0, 1)
    assert conclusion.details["noisy_count"] == 0


@pytest.mark.parametrize("name", EVERY)
@given(value=st.integers(0, GRID_SIZE), count=st.integers(1, 10**6))
def test_without_noise_they_all_answer_the_mean(name, value, count):
    """mu = l + W s / n on a range that starts at -20: neither end may be forgotten."""
    estimator = ESTIMATORS[name]
    groups = [central(1.0, count)]
    question = registry.for_estimator(estimator, add_remove_one(cap=1.0, grid=WIDE_GRID))
    plan = estimator.plan(groups, question)
    conclusion = plan.conclude(query_values(plan, groups, [count * value]))
    assert conclusion.estimate == pytest.approx(-20 + 80 * value / GRID_SIZE, abs=1e-4)
    assert conclusion.details["noisy_count"] == pytest.approx(count)
    assert conclusion.interval.lower <= conclusion.estimate <= conclusion.interval.upper


def test_the_predictions_stand_in_the_papers_order():
    """n^2 MSE at the worst mean: 16 M^2, 4 W^2 and 2 W^2 over epsilon^2, and less for the hourglass."""
    found = {
        e.name: 80 * worst_noise(plan_for(e, cap=0.5, grid=WIDE_GRID))
        for e in (Independent(), Shifted(), Transformed(), Hourglass())
    }
    assert found["independent"] == pytest.approx(4 * 60)
    assert found["shifted"] == pytest.approx(2 * 80)
    assert found["transformed"] == pytest.approx(math.sqrt(2) * 80)
    assert found["hourglass"] == pytest.approx(math.sqrt(2 * 0.990) * 80, rel=1e-3)


# --------------------------------------------------------------------------- independent and shifted


@given(grid=grids, offers=st.lists(st.integers(1, 10**9), min_size=1, max_size=5))
def test_nobody_pays_more_than_they_offer_wherever_zero_lies(grid, offers):
    groups = [central(e / 1e6, 3) for e in offers]
    for estimator in (Independent(), Shifted()):
        plan = plan_for(estimator, groups, cap=max(offers) / 1e6, floor=1e-6, grid=grid)
        check_charges(costs_of(plan, groups), groups)
        assert isinstance(plan.noise, DiscreteLaplace)
        assert max(plan.noise.scales) <= MAX_SCALE


@given(offer=st.integers(1, 10**9))
def test_the_whole_offer_is_spent_half_on_the_sum_and_half_on_the_count(offer):
    groups = [central(offer / 1e6, 3)]
    plan = plan_for(Shifted(), groups, cap=offer / 1e6)
    assert costs_of(plan, groups) == [offer]
    only_sum = group_costs(
        plan.queries[:1], DiscreteLaplace(scales=plan.noise.scales[:1]), ADD_REMOVE, groups
    )
    assert only_sum == [math.ceil(offer / 2)]


def test_zero_lies_where_the_range_puts_it():
    assert zero_position(WIDE_GRID) == Fraction(1, 4)
    assert zero_position(Grid(Decimal(1000), Decimal(1001))) == -1000


def test_a_range_far_from_zero_still_has_a_finite_answer():
    grid = Grid(Decimal("1e20"), Decimal("1e20") + 1)
    groups = [central(1.0, 5)]
    plan = plan_for(Independent(), groups, grid=grid)
    conclusion = plan.conclude([12345, 678])
    assert float(grid.lower) <= conclusion.estimate <= float(grid.upper)
    check_charges(costs_of(plan, groups), groups)


def test_a_count_that_is_not_positive_is_answered_with_the_middle():
    pivot = ReferencePivot(origin=Fraction(0), unit=1.0)
    assert pivot.position(5, 0) == pivot.position(5, -3) == Fraction(1, 2)
    assert pivot.position(5, 2) == 1
    assert pivot.position(-5, 2) == 0


def test_public_people_weigh_the_cap_and_local_ones_nothing():
    groups = [public(3), local(1.0, [5, 6]), central(0.2, 4, participates=False)]
    plan = plan_for(Shifted(), groups, cap=0.5, floor=0.1)
    assert plan.queries[1].count_weights[1:] == (0, 0)
    assert plan.queries[1].count_weights[0] > 0
    assert costs_of(plan, groups) == [0] * 3


# ------------------------------------------------------------------------------------------ hourglass


def test_everybody_pays_the_least_that_anybody_may_offer():
    groups = [central(0.1, 5), central(2.0, 5), public(2), local(1.0, [5])]
    plan = plan_for(Hourglass(), groups, cap=2.0, floor=0.1)
    assert costs_of(plan, groups) == [100_000, 100_000, 0, 0]
    assert isinstance(plan.noise, HourglassNoise)
    assert plan.noise.epsilon == 100_000


def test_a_level_leaves_out_who_offers_less_and_costs_nobody_more():
    groups = [central(0.1, 5), central(0.5, 5), central(2.0, 5)]
    question = replace(add_remove_one(cap=2.0, floor=0.1), parameters={"level": 0.5})
    plan = Hourglass().plan(groups, question)
    assert costs_of(plan, groups) == [0, 500_000, 500_000]
    beyond = replace(question, parameters={"level": 9.0})
    assert costs_of(Hourglass().plan(groups, beyond), groups) == [0, 0, 2_000_000]


@pytest.mark.parametrize(
    ("epsilon", "most"), [(0.5, 0.990), (1.0, 0.959), (2.0, 0.845), (4.0, 0.520), (8.0, 0.108)]
)
def test_its_variance_is_smaller_by_the_known_factor(epsilon, most):
    """Of one sum, over 2 / epsilon^2; within 2 %."""
    plan = plan_for(Hourglass(), cap=epsilon, expected_size=10**6)
    assert isinstance(plan.noise, HourglassNoise)
    variance, _ = hourglass_moments(plan.noise)
    ratio = variance / GRID_SIZE**2 * epsilon**2 / 2
    assert ratio == pytest.approx(most, rel=0.02)
    rival = plan_for(Transformed(), cap=epsilon, expected_size=10**6)
    assert (worst_noise(plan) / worst_noise(rival)) ** 2 == pytest.approx(ratio, rel=1e-9)
    assert plan.predicted_error < rival.predicted_error


def test_its_exact_interval_is_narrower_than_two_laplaces_at_a_large_epsilon():
    groups = [central(4.0, 1000)]
    widths = {}
    for estimator in (Hourglass(), Transformed()):
        plan = plan_for(estimator, groups, cap=4.0)
        interval = plan.conclude(query_values(plan, groups, [300 * GRID_SIZE])).interval
        assert interval.coverage == "at_least"
        widths[estimator.name] = interval.upper - interval.lower
    assert widths["hourglass"] < 0.85 * widths["transformed"]


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "nan", "0.0000001"])
def test_a_level_is_an_epsilon(text):
    with pytest.raises(ValueError, match="must"):
        parse_level(text)
    assert parse_level("0.5") == 0.5
    assert parse_level("floor") == "floor"


# ---------------------------------------------------------------------------- forms that are not private


def test_noise_in_the_datas_unit_on_scaled_sums_is_not_private():
    """Lap(w / epsilon) belongs to unscaled sums; on sums scaled to [0, 1] it costs 1 / w times as much."""
    groups = [central(1.0, 5)]
    plan = plan_for(Transformed(), groups)
    width = 0.5
    noise = DiscreteLaplace(scales=(UNIT_SCALE * width,) * 2)
    costs = group_costs(plan.queries, noise, ADD_REMOVE, groups)
    assert costs == [2 * micro(1.0)]
    with pytest.raises(InternalFault):
        check_charges(costs, groups)
