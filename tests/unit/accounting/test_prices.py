"""Prices of Gaussian and hourglass noise: against brute force, and what must be refused."""

import math
from fractions import Fraction

import pytest
from dither.device.gaussian import gaussian_sigma
from hypothesis import given, settings
from hypothesis import strategies as st

from app.accounting import prices
from app.accounting.costs import group_costs
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass
from app.core.study import Currency, Relation
from app.estimators.interface import Query
from app.mechanisms.hourglass import hourglass
from tests.support.groups import central, local, public

REPLACE, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE


def query(sums: list[int], counts: list[int] | None = None) -> Query:
    return Query(sum_weights=tuple(sums), count_weights=tuple(counts or [0] * len(sums)))


def pair(weight: int = 1) -> list[Query]:
    """A sum and its complement."""
    return [query([weight]), query([-weight], [weight])]


# -- Gaussian


GAUSSIAN = Currency.GAUSSIAN


def test_a_query_costs_what_its_noise_was_made_for():
    sigma = float(gaussian_sigma(700_000)) * 3
    noise = DiscreteGaussian(sigmas=(sigma,))
    assert group_costs([query([3])], noise, REPLACE, [central(1)], GAUSSIAN) == [700_000]
    assert group_costs([query([3], [-3])], noise, ADD_REMOVE, [central(1)], GAUSSIAN) == [700_000]


def test_a_third_of_the_weight_costs_a_ninth():
    noise = DiscreteGaussian(sigmas=(float(gaussian_sigma(900_000)) * 3,))
    groups = [central(1), central(1), public(3), central(1)]
    assert group_costs([query([3, 1, 9, 0])], noise, REPLACE, groups, GAUSSIAN) == [900_000, 100_000, 0, 0]


@settings(max_examples=30)
@given(
    weights=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=3),
    sigmas=st.lists(st.floats(1.0, 30.0), min_size=3, max_size=3),
)
def test_gaussian_prices_are_those_of_the_worst_value_in_the_range(weights, sigmas):
    """Exact: never below the worst value's mu^2, and less than one millionth above it."""
    queries = [query([a], [b]) for a, b in weights]
    scaled = tuple(sigma * GRID_SIZE for sigma in sigmas[: len(queries)])
    (cost,) = group_costs(queries, DiscreteGaussian(sigmas=scaled), ADD_REMOVE, [central(1e6)], GAUSSIAN)
    squares = max(
        sum(
            Fraction(a * q + b * GRID_SIZE) ** 2 / (Fraction(s) ** 2 - 9)
            for (a, b), s in zip(weights, scaled, strict=True)
        )
        for q in (GRID_SIZE * step // 16 for step in range(17))
    )
    assert cost - 1 < squares * 10**6 <= cost


def test_two_gaussian_queries_add_up_by_squares():
    noise = DiscreteGaussian(sigmas=(float(gaussian_sigma(500_000)),) * 2)
    (both,) = group_costs([query([1]), query([1])], noise, REPLACE, [central(1)], GAUSSIAN)
    assert both == 1_000_000


@pytest.mark.parametrize("sigma", [0.0, -1.0, 10.0, math.inf, math.nan])
def test_an_impossible_sigma_is_refused(sigma):
    with pytest.raises(InternalFault):
        group_costs([query([1])], DiscreteGaussian(sigmas=(sigma,)), REPLACE, [central(1)], GAUSSIAN)


def test_a_noise_has_a_price_in_one_currency_only():
    """Laplace noise has no mu^2 that is worth its name, and Gaussian noise no pure epsilon."""
    gaussian = DiscreteGaussian(sigmas=(1e12,))
    laplace = DiscreteLaplace(scales=(1e12,))
    for noise, currency in ((gaussian, Currency.LAPLACE), (laplace, GAUSSIAN)):
        with pytest.raises(InternalFault, match="no price"):
            group_costs([query([1])], noise, REPLACE, [central(1)], currency)
    with pytest.raises(InternalFault, match="no price"):
        group_costs(pair(), hourglass(GRID_SIZE, 10), ADD_REMOVE, [central(1)], GAUSSIAN)


# -- hourglass


@given(weight=st.integers(1, 10**6), epsilon=st.integers(1, 10**7))
def test_a_sum_and_its_complement_cost_one_epsilon_under_add_or_remove(weight, epsilon):
    noise = hourglass(weight * GRID_SIZE, epsilon)
    assert group_costs(pair(weight), noise, ADD_REMOVE, [central(1)]) == [epsilon]


def test_the_same_pair_costs_twice_under_replacement():
    assert group_costs(pair(3), hourglass(3 * GRID_SIZE, 10), REPLACE, [central(1)]) == [20]


def test_a_person_who_weighs_twice_pays_twice():
    noise = hourglass(GRID_SIZE, 250_000)
    queries = [query([1, 2, 0]), query([-1, -2, 0], [1, 2, 0])]
    groups = [central(1), central(1), central(1)]
    assert group_costs(queries, noise, ADD_REMOVE, groups) == [250_000, 500_000, 0]


def test_a_person_who_weighs_a_part_of_a_unit_would_show_and_is_refused():
    noise = hourglass(2 * GRID_SIZE, 1_000_000)
    with pytest.raises(InternalFault):
        group_costs(pair(1), noise, ADD_REMOVE, [central(1)])


@pytest.mark.parametrize(
    "queries",
    [
        [query([1])],
        [query([1]), query([-1], [1]), query([0], [1])],
        [query([1]), query([1])],
        [query([1]), query([-2], [1])],
        [query([1]), query([0], [1])],
        [],
    ],
)
@pytest.mark.parametrize("relation", Relation)
def test_queries_that_do_not_complement_each_other_are_refused(queries, relation):
    with pytest.raises(InternalFault):
        group_costs(queries, hourglass(GRID_SIZE, 1_000_000), relation, [central(1)])


def _level(u: int, v: int, noise: Hourglass) -> int:
    t = abs(u)
    while abs(v) > t * noise.half + noise.step:
        t += 2
    return t


@settings(max_examples=60)
@given(
    a=st.integers(-6, 6),
    counts=st.tuples(st.integers(-6, 6), st.integers(-6, 6)),
    half=st.sampled_from([2, 4, 6]),
    data=st.data(),
)
def test_the_price_is_the_largest_log_likelihood_ratio(a, counts, half, data):
    """Enumerated on a grid of 0..4: every place of the noise and every value of the person."""
    size = 4
    noise = Hourglass(sensitivity=2 * half, epsilon=1000, step=data.draw(st.integers(0, half)))
    relation = data.draw(st.sampled_from(list(Relation)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prices, "GRID_SIZE", size)
        price = prices.hourglass_price(noise, relation, 2)
        columns = ((0, a, counts[0], 0), (1, -a, counts[1], 0))
        if relation is ADD_REMOVE:
            moves = [(a * q + counts[0] * size, -a * q + counts[1] * size) for q in range(size + 1)]
        else:
            moves = [(a * d, -a * d) for d in range(-size, size + 1)]
        if any((first + second) % (2 * half) for first, second in moves):
            with pytest.raises(InternalFault):
                price(columns)
            return
        largest = 0
        for first, second in moves:
            k, d = (first + second) // (2 * half), (first - second) // 2
            bases = [(u, v) for u in range(-3, 4) for v in range(-3 * half, 3 * half + 1)]
            largest = max(
                [largest, *(abs(_level(u + k, v + d, noise) - _level(u, v, noise)) for u, v in bases)]
            )
        assert price(columns) == largest * 1000


def test_unsound_steps_are_refused():
    with pytest.raises(InternalFault):
        group_costs(pair(), Hourglass(sensitivity=GRID_SIZE, epsilon=0, step=1), ADD_REMOVE, [central(1)])


# -- all of them


@pytest.mark.parametrize(
    ("noise", "queries"),
    [
        (DiscreteLaplace(scales=(1e10,)), [query([1, 0])]),
        (hourglass(GRID_SIZE, 1), [query([1, 0]), query([-1, 0], [1, 0])]),
    ],
)
def test_local_people_and_others_left_out_are_refused_under_any_noise(noise, queries):
    assert group_costs(queries, noise, ADD_REMOVE, [public(), central(1)]) == [0] * 2
    with pytest.raises(InternalFault):
        group_costs(queries, noise, ADD_REMOVE, [local(1, [3]), central(1)])
    with pytest.raises(InternalFault):
        group_costs(queries, noise, ADD_REMOVE, [central(1, participates=False), central(1)])
