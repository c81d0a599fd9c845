"""Prices: against brute force, against dp-accounting, and everything that must be refused."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from dp_accounting.pld import privacy_loss_mechanism
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.costs import check_charges, group_costs
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, Noise, NoNoise
from app.core.study import Currency, Relation
from app.estimators.interface import UNIT_SCALE, Query
from app.mechanisms.hourglass import hourglass
from dither_research.staircase import staircase
from tests.support.groups import central, local, public

REPLACE, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE


def query(sums: list[int], counts: list[int] | None = None) -> Query:
    return Query(sum_weights=tuple(sums), count_weights=tuple(counts or [0] * len(sums)))


def unit(queries: int = 1) -> DiscreteLaplace:
    return DiscreteLaplace(scales=(UNIT_SCALE,) * queries)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=5))
def test_a_weight_under_unit_scale_costs_exactly_itself(weights):
    groups = [central(1e6) for _ in weights]
    assert group_costs([query(weights)], unit(), REPLACE, groups) == list(weights)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=5))
def test_a_sum_and_its_complement_cost_one_weight_under_add_or_remove(weights):
    groups = [central(1e6) for _ in weights]
    pair = [query(weights), query([-weight for weight in weights], weights)]
    assert group_costs(pair, unit(2), ADD_REMOVE, groups) == list(weights)


def test_the_same_pair_costs_twice_under_replacement():
    pair = [query([5]), query([-5], [5])]
    assert group_costs(pair, unit(2), REPLACE, [central(1)]) == [10]


def test_a_separate_count_is_paid_for_under_add_or_remove_and_free_under_replacement():
    queries = [query([7]), query([0], [3])]
    assert group_costs(queries, unit(2), ADD_REMOVE, [central(1)]) == [10]
    assert group_costs(queries, unit(2), REPLACE, [central(1)]) == [7]


@given(
    weights=st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=3),
    scales=st.lists(st.floats(1e3, 1e15), min_size=3, max_size=3),
)
def test_add_or_remove_costs_the_worst_value_in_the_range(weights, scales):
    queries = [query([a], [b]) for a, b in weights]
    scales = scales[: len(queries)]
    (cost,) = group_costs(queries, DiscreteLaplace(scales=tuple(scales)), ADD_REMOVE, [central(1)])
    worst = max(
        sum(abs(a * q + b * GRID_SIZE) / Fraction(s) for (a, b), s in zip(weights, scales, strict=True))
        for q in (GRID_SIZE * step // 16 for step in range(17))
    )
    assert cost == math.ceil(worst * 10**6)


@given(weight=st.integers(1, 10**9), scale=st.floats(1.0, 2.0**56))
def test_costs_are_rounded_up_to_the_next_micro_and_no_further(weight, scale):
    (cost,) = group_costs([query([weight])], DiscreteLaplace(scales=(scale,)), REPLACE, [central(1)])
    exact = Fraction(weight * GRID_SIZE) / Fraction(scale) * 10**6
    assert exact <= cost < exact + 1


@pytest.mark.parametrize(("first", "second"), [((1, 0), (-1, 1)), ((2, 1), (0, 3)), ((1, 1), (1, -1))])
def test_the_price_is_the_largest_log_likelihood_ratio(first, second):
    """Enumerated on a coarse stand-in: a person at q in {0..8} adds (a q + 8 b) to each of two sums."""
    size, scale = 8, 6.0
    columns = [first, second]
    largest = 0.0
    for q in range(size + 1):
        moves = [a * q + b * size for a, b in columns]
        for outcome in product(range(-60, 61, 4), repeat=2):
            loss = sum(abs(z - move) - abs(z) for z, move in zip(outcome, moves, strict=True)) / scale
            largest = max(largest, loss, -loss)
    queries = [query([a], [b]) for a, b in columns]
    noise = DiscreteLaplace(scales=(scale * GRID_SIZE / size,) * 2)
    (cost,) = group_costs(queries, noise, ADD_REMOVE, [central(1e3)])
    assert cost == pytest.approx(largest * 1e6, abs=1)


@pytest.mark.parametrize(("weight", "scale"), [(1, 2.0), (3, 2.5), (7, 40.0)])
def test_the_price_agrees_with_dp_accounting(weight, scale):
    """dp-accounting's delta is 0 at our epsilon and positive just below it."""
    (cost,) = group_costs(
        [query([weight])], DiscreteLaplace(scales=(scale * GRID_SIZE,)), REPLACE, [central(1e3)]
    )
    loss = privacy_loss_mechanism.DiscreteLaplacePrivacyLoss(1 / scale, sensitivity=weight)
    assert loss.get_delta_for_epsilon(cost / 1e6) == pytest.approx(0, abs=1e-12)
    assert loss.get_delta_for_epsilon(cost / 1e6 * 0.999) > 1e-6


def test_public_people_pay_nothing():
    groups = [public(5), central(1)]
    assert group_costs([query([9, 4])], unit(), REPLACE, groups) == [0, 4]
    assert group_costs([query([9, 0])], NoNoise(), REPLACE, groups) == [0, 0]


def test_local_people_have_no_place_in_a_query():
    groups = [local(1, [3, 4]), central(1)]
    assert group_costs([query([0, 4])], unit(), REPLACE, groups) == [0, 4]
    for relation in Relation:
        with pytest.raises(InternalFault):
            group_costs([query([1, 4])], unit(), relation, groups)
        with pytest.raises(InternalFault):
            group_costs([query([0, 4], [1, 0])], unit(), relation, groups)


def test_a_group_that_does_not_take_part_must_not_be_weighed():
    groups = [central(1, participates=False), central(1)]
    assert group_costs([query([0, 4])], unit(), REPLACE, groups) == [0, 4]
    with pytest.raises(InternalFault):
        group_costs([query([1, 4])], unit(), REPLACE, groups)
    with pytest.raises(InternalFault):
        group_costs([query([0, 4], [1, 0])], unit(), REPLACE, groups)


def test_raw_data_without_noise_is_refused():
    for weighed in (query([1]), query([0], [1])):
        with pytest.raises(InternalFault):
            group_costs([weighed], NoNoise(), REPLACE, [central(1)])
    assert group_costs([query([0])], NoNoise(), REPLACE, [central(1)]) == [0]


@pytest.mark.parametrize(
    ("noise", "currency"),
    [
        (unit(), Currency.GAUSSIAN),
        (DiscreteGaussian(sigmas=(UNIT_SCALE,)), Currency.LAPLACE),
        (hourglass(GRID_SIZE, 1_000_000), Currency.GAUSSIAN),
    ],
)
def test_noise_of_another_currency_is_refused(noise: Noise, currency: Currency):
    queries = [query([1]), query([-1], [1])] if isinstance(noise, Hourglass) else [query([1])]
    for relation in Relation:
        with pytest.raises(InternalFault, match="no price for this noise"):
            group_costs(queries, noise, relation, [central(1)], currency)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_an_impossible_scale_is_refused(scale):
    with pytest.raises(InternalFault):
        group_costs([query([1])], DiscreteLaplace(scales=(scale,)), REPLACE, [central(1)])


def test_noise_for_another_number_of_queries_is_refused():
    with pytest.raises(InternalFault):
        group_costs([query([1]), query([1])], unit(), REPLACE, [central(1)])


def test_weights_for_another_number_of_groups_are_refused():
    with pytest.raises(InternalFault):
        group_costs([query([1])], unit(), REPLACE, [central(1), central(1)])
    with pytest.raises(InternalFault):
        group_costs([query([1, 2])], unit(), REPLACE, [central(1)])


def test_noise_without_a_price_is_refused():
    """Staircase noise, which two papers recommend, costs twice on a sum and its complement."""
    noise: Any = staircase(GRID_SIZE, 1)
    pair = [query([1]), query([-1], [1])]
    for queries in ([query([1])], pair):
        with pytest.raises(InternalFault):
            group_costs(queries, noise, ADD_REMOVE, [central(1)])
    with pytest.raises(InternalFault):
        group_costs([query([1])], DiscreteGaussian(sigmas=(1.0,)), REPLACE, [central(1)])


def test_charges_up_to_the_offer_are_accepted_and_one_more_is_not():
    groups = [central(0.5), public(3)]
    check_charges([500_000, 0], groups)
    for costs in (
        [500_001, 0],
        [0, 1],
        [-1, 0],
        [0],
    ):
        with pytest.raises(InternalFault):
            check_charges(costs, groups)
