"""`transformed`: secrecy of the size, the corrected ratio, and its intervals."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.costs import group_costs
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace
from app.core.study import Relation
from app.estimators.interface import UNIT_SCALE
from app.estimators.pivot import ratio
from app.estimators.quantiles import two_laplace_tail
from app.estimators.transformed import Transformed
from tests.support.groups import WIDE_GRID, add_remove_one, central, local, public, query_values

noisy_sums = st.integers(-(10**20), 10**20)
UNIT = int(UNIT_SCALE)


def plan_for(groups=(), **question):
    return Transformed().plan(groups, add_remove_one(**question))


# ---------------------------------------------------------------------------------------- price


@given(st.lists(st.integers(0, 3_000_000), min_size=1, max_size=6))
def test_everybody_pays_exactly_what_they_offer_up_to_the_cap(offers):
    groups = [central(offer / 1e6, 3) for offer in offers]
    plan = plan_for(groups, cap=2.0, floor=0.0)
    costs = group_costs(plan.queries, plan.noise, Relation.ADD_REMOVE_ONE, groups)
    assert costs == [min(offer, 2_000_000) for offer in offers]


def test_who_cannot_pay_drops_out_public_people_count_at_the_cap_and_reports_do_not_count():
    groups = [central(1.0, 3, participates=False), public(2), local(1.0, [5]), central(0.5, 4)]
    plan = plan_for(groups, cap=1.0, floor=0.5)
    assert plan.queries[0].sum_weights == (0, 1_000_000, 0, 500_000)
    assert plan.queries[1].sum_weights == (0, -1_000_000, 0, -500_000)
    assert plan.queries[1].count_weights == (0, 1_000_000, 0, 500_000)
    costs = group_costs(plan.queries, plan.noise, Relation.ADD_REMOVE_ONE, groups)
    assert costs == [0, 0, 0, 500_000]


def test_the_range_does_not_change_the_noise_on_the_grid():
    """Noise belongs to sums scaled to one person = 1: W / epsilon there would be too little for W < 1."""
    narrow, wide = plan_for(cap=1.0), plan_for(cap=1.0, grid=WIDE_GRID)
    assert narrow.noise == wide.noise == DiscreteLaplace(scales=(UNIT_SCALE, UNIT_SCALE))
    assert WIDE_GRID.width != 1


# -------------------------------------------------------------------------------------- secrecy


@given(
    groups=st.lists(
        st.builds(
            central, st.sampled_from([0.25, 0.5, 1.0]), st.integers(0, 10**6), participates=st.booleans()
        )
        | st.builds(public, st.integers(0, 50)),
        max_size=5,
    ),
    values=st.tuples(noisy_sums, noisy_sums),
    size=st.none() | st.floats(1, 1e6),
)
def test_everything_but_the_noisy_sums_depends_on_the_question_alone(groups, values, size):
    plan = plan_for(groups, cap=1.0, floor=0.25, expected_size=size)
    empty = plan_for([], cap=1.0, floor=0.25, expected_size=size)
    assert plan.noise == empty.noise
    assert len(plan.queries) == len(empty.queries)
    assert plan.predicted_error == empty.predicted_error
    assert plan.conclude(values) == empty.conclude(values)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.8, 1.0])
def test_the_predicted_error_is_near_the_leading_term_at_any_mean(p):
    predicted = plan_for(cap=0.5, expected_size=1000, grid=WIDE_GRID).predicted_error
    leading = 80 * math.sqrt(2 * ((1 - p) ** 2 + p**2)) / 500
    assert 2**-0.25 - 1e-9 < predicted / leading < 2**0.25 + 1e-9


def test_a_prediction_has_what_unequal_weights_may_move_the_mean_by():
    """(sqrt 4 - sqrt 1) / (sqrt 4 + sqrt 1) is a third."""
    question = replace(add_remove_one(cap=4.0, floor=1.0, expected_size=10**9), tilt=1.0)
    assert Transformed().plan([], question).predicted_error == pytest.approx(1 / 3, rel=1e-6)
    half = replace(question, tilt=0.5)
    assert Transformed().plan([], half).predicted_error == pytest.approx(1 / 6, rel=1e-6)


@pytest.mark.parametrize("size", [None, 0.0, -3.0, 1.0])
def test_without_a_useful_size_the_prediction_is_the_error_of_the_midpoint(size):
    assert plan_for(cap=1.0, expected_size=size, grid=WIDE_GRID).predicted_error == 40


# ---------------------------------------------------------------------------------------- ratio


@given(noisy_sums, noisy_sums)
def test_the_ratio_lies_in_the_range_and_equals_the_papers_where_that_is_right(first, second):
    value = ratio(first, second)
    assert 0 <= value <= 1
    if first + second > 0:
        assert value == min(max(Fraction(first, first + second), Fraction(0)), Fraction(1))


def test_a_negative_denominator_does_not_turn_the_answer_round():
    """clip(s1 / (s1 + s2)) of s1 = 1, s2 = -3 is 0, the wrong end."""
    assert ratio(1, -3) == 1
    assert ratio(-3, 1) == 0
    assert ratio(-1, -3) == ratio(0, 0) == ratio(-1, 0) == Fraction(1, 2)
    assert ratio(0, 5) == 0


def test_without_noise_the_answer_is_the_mean_in_the_datas_unit():
    """lower + W s1 / n: neither lower nor the width may be forgotten."""
    groups = [central(1.0, 8)]
    plan = plan_for(groups, grid=WIDE_GRID)
    conclusion = plan.conclude(query_values(plan, groups, [3 * GRID_SIZE]))
    assert conclusion.estimate == -20 + 80 * 3 / 8
    assert conclusion.details["noisy_count"] == pytest.approx(8, rel=1e-12)


def test_unequal_offers_weigh_people_by_their_offer():
    groups = [central(1.0, 10), central(0.25, 20)]
    plan = plan_for(groups, cap=1.0, floor=0.25)
    conclusion = plan.conclude(query_values(plan, groups, [10 * GRID_SIZE, 0]))
    assert conclusion.estimate == pytest.approx(10 / 15)
    assert conclusion.details["noisy_count"] == pytest.approx(15)


@given(noisy_sums, noisy_sums)
def test_exchanging_the_sums_mirrors_the_answer(first, second):
    plan = plan_for(cap=1.0, floor=0.5)
    one, two = plan.conclude([first, second]), plan.conclude([second, first])
    assert one.estimate == pytest.approx(1 - two.estimate, abs=1e-12)
    assert one.interval.lower == pytest.approx(1 - two.interval.upper, abs=1e-6)
    assert one.population_interval.upper == pytest.approx(1 - two.population_interval.lower, abs=1e-6)
    assert one.standard_error == pytest.approx(two.standard_error, rel=1e-9)


@given(noisy_sums, noisy_sums)
def test_a_conclusion_is_always_within_the_range_and_in_order(first, second):
    conclusion = plan_for(cap=1.0, floor=0.5, grid=WIDE_GRID).conclude([first, second])
    for interval in (conclusion.interval, conclusion.population_interval):
        assert -20 <= interval.lower <= conclusion.estimate <= interval.upper <= 60
        assert interval.level == 0.95
    assert 0 <= conclusion.standard_error <= 40
    mass = max(first + second, 0) / UNIT
    assert conclusion.details["noisy_count"] == pytest.approx(mass, rel=1e-9, abs=1e-9)


# ------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize(("first", "second"), [(250, 750), (5, 995), (500, 500), (0, 40), (3, 3), (90, 10)])
def test_the_exact_interval_is_the_set_the_pivot_does_not_reject(first, second):
    conclusion = plan_for(cap=1.0).conclude([first * UNIT, second * UNIT])
    assert conclusion.interval.coverage == "at_least"
    accepted = [
        p
        for p in (step / 20_000 for step in range(20_001))
        if two_laplace_tail(abs((1 - p) * first - p * second), 1 - p, p) >= 0.05
    ]
    assert conclusion.interval.lower == pytest.approx(accepted[0], abs=6e-5)
    assert conclusion.interval.upper == pytest.approx(accepted[-1], abs=6e-5)


def test_with_many_people_the_exact_interval_is_as_wide_as_two_laplaces_say():
    """At p = 1/2: |Z1 - Z2| / 2 <= x with (1 + x) exp(-2x) = 0.05."""
    conclusion = plan_for(cap=1.0).conclude([500_000 * UNIT, 500_000 * UNIT])
    half = (conclusion.interval.upper - conclusion.interval.lower) / 2
    root = half * 1_000_000
    assert (1 + root) * math.exp(-2 * root) == pytest.approx(0.05, rel=1e-5)


def test_unequal_offers_make_the_interval_wider_and_worst_case():
    values = [250 * UNIT, 750 * UNIT]
    exact = plan_for(cap=1.0).conclude(values).interval
    wider = plan_for(cap=1.0, floor=0.5).conclude(values).interval
    widest = plan_for(cap=1.0, floor=0.1).conclude(values).interval
    assert exact.coverage == "at_least"
    assert wider.coverage == widest.coverage == "worst_case"
    assert widest.lower < wider.lower < exact.lower < exact.upper < wider.upper < widest.upper


def test_the_population_interval_contains_the_datasets():
    for values in ([250 * UNIT, 750 * UNIT], [3 * UNIT, UNIT], [500 * UNIT, 0]):
        conclusion = plan_for(cap=1.0).conclude(values)
        assert conclusion.population_interval.lower <= conclusion.interval.lower
        assert conclusion.population_interval.upper >= conclusion.interval.upper
        assert conclusion.population_interval.coverage == "worst_case"


@pytest.mark.parametrize("values", [(0, 0), (1, -1), (UNIT // 2, -UNIT), (5 * UNIT, -9 * UNIT)])
def test_next_to_nothing_says_next_to_nothing(values):
    """An empty study answers like any other: no sum below the noise shrinks an interval to a point."""
    conclusion = plan_for(cap=1.0).conclude(list(values))
    assert conclusion.population_interval.upper - conclusion.population_interval.lower == 1
    assert 0.4 <= conclusion.standard_error <= 0.5
