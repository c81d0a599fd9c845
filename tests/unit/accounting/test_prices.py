"""Prices of Gaussian and hourglass noise: against brute force, and what must be refused."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.accounting import prices
from app.accounting.costs import group_costs
from app.accounting.gaussian import calibrated_sigma, gaussian_delta
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, Hourglass
from app.core.study import Relation
from app.estimators.interface import Query
from app.mechanisms.hourglass import hourglass
from tests.support.groups import central, local, public

REPLACE, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE
DELTA = 10**6


def query(sums: list[int], counts: list[int] | None = None) -> Query:
    return Query(sum_weights=tuple(sums), count_weights=tuple(counts or [0] * len(sums)))


def pair(weight: int = 1) -> list[Query]:
    """A sum and its complement."""
    return [query([weight]), query([-weight], [weight])]


# -- Gaussian


def test_a_calibrated_query_costs_what_it_was_made_for():
    sigma = calibrated_sigma(700_000, DELTA, 3 * GRID_SIZE)
    noise = DiscreteGaussian(sigmas=(sigma,), delta=DELTA)
    assert group_costs([query([3])], noise, REPLACE, [central(1)]) == [(700_000, DELTA)]
    assert group_costs([query([3], [-3])], noise, ADD_REMOVE, [central(1)]) == [(700_000, DELTA)]


def test_smaller_weights_cost_less_epsilon_at_the_same_delta():
    sigma = calibrated_sigma(700_000, DELTA, 3 * GRID_SIZE)
    noise = DiscreteGaussian(sigmas=(sigma,), delta=DELTA)
    groups = [central(1), central(1), public(3), central(1)]
    costs = group_costs([query([3, 1, 9, 0])], noise, REPLACE, groups)
    assert costs[0] == (700_000, DELTA)
    assert 0 < costs[1][0] < 234_000
    assert costs[1][1] == DELTA
    assert costs[2:] == [(0, 0), (0, 0)]


@settings(max_examples=30)
@given(
    weights=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=3),
    sigmas=st.lists(st.floats(1.0, 30.0), min_size=3, max_size=3),
)
def test_gaussian_prices_cover_the_worst_value_in_the_range(weights, sigmas):
    queries = [query([a], [b]) for a, b in weights]
    scaled = tuple(sigma * GRID_SIZE for sigma in sigmas[: len(queries)])
    noise = DiscreteGaussian(sigmas=scaled, delta=DELTA)
    ((cost, _),) = group_costs(queries, noise, ADD_REMOVE, [central(1e6)])
    squares = max(
        sum(((a * x + b) / s) ** 2 for (a, b), s in zip(weights, sigmas[: len(weights)], strict=True))
        for x in (step / 16 for step in range(17))
    )
    if squares == 0:
        assert cost == 0
        return
    mu = math.sqrt(squares)
    assert gaussian_delta(cost / 1e6, mu) <= DELTA / 1e12 * (1 + 1e-6)
    if cost > 2:
        assert gaussian_delta((cost - 2) / 1e6 * (1 - 1e-9), mu) > DELTA / 1e12 * (1 - 1e-6)


def test_two_gaussian_queries_compose_by_the_sum_of_squares():
    sigma = calibrated_sigma(10**6, DELTA, GRID_SIZE)
    both = DiscreteGaussian(sigmas=(sigma * math.sqrt(2),) * 2, delta=DELTA)
    ((cost, _),) = group_costs([query([1]), query([1])], both, REPLACE, [central(1)])
    assert cost == pytest.approx(10**6, abs=1)


@pytest.mark.parametrize("sigma", [0.0, -1.0, 10.0, math.inf, math.nan])
def test_an_impossible_sigma_is_refused(sigma):
    with pytest.raises(InternalFault):
        group_costs([query([1])], DiscreteGaussian(sigmas=(sigma,), delta=1), REPLACE, [central(1)])


@pytest.mark.parametrize("delta", [0, -1, 10**12])
def test_an_impossible_delta_is_refused(delta):
    noise = DiscreteGaussian(sigmas=(1e9,), delta=delta)
    with pytest.raises(InternalFault):
        group_costs([query([1])], noise, REPLACE, [central(1)])


# -- hourglass


@given(weight=st.integers(1, 10**6), epsilon=st.integers(1, 10**7))
def test_a_sum_and_its_complement_cost_one_epsilon_under_add_or_remove(weight, epsilon):
    noise = hourglass(weight * GRID_SIZE, epsilon)
    assert group_costs(pair(weight), noise, ADD_REMOVE, [central(1)]) == [(epsilon, 0)]


def test_the_same_pair_costs_twice_under_replacement():
    assert group_costs(pair(3), hourglass(3 * GRID_SIZE, 10), REPLACE, [central(1)]) == [(20, 0)]


def test_a_person_who_weighs_twice_pays_twice():
    noise = hourglass(GRID_SIZE, 250_000)
    queries = [query([1, 2, 0]), query([-1, -2, 0], [1, 2, 0])]
    groups = [central(1), central(1), central(1)]
    assert group_costs(queries, noise, ADD_REMOVE, groups) == [(250_000, 0), (500_000, 0), (0, 0)]


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
        patch.setattr(prices, "QUARTER", size // 4)
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
        assert price(columns) == (largest * 1000, 0)


def test_unsound_steps_are_refused():
    with pytest.raises(InternalFault):
        group_costs(pair(), Hourglass(sensitivity=GRID_SIZE, epsilon=0, step=1), ADD_REMOVE, [central(1)])


# -- all of them


@pytest.mark.parametrize(
    ("noise", "queries"),
    [
        (DiscreteGaussian(sigmas=(1e10,), delta=1), [query([1, 0])]),
        (hourglass(GRID_SIZE, 1), [query([1, 0]), query([-1, 0], [1, 0])]),
    ],
)
def test_local_people_and_others_left_out_are_refused_under_any_noise(noise, queries):
    assert group_costs(queries, noise, ADD_REMOVE, [public(), central(1)]) == [(0, 0)] * 2
    with pytest.raises(InternalFault):
        group_costs(queries, noise, ADD_REMOVE, [local(1, [3]), central(1)])
    with pytest.raises(InternalFault):
        group_costs(queries, noise, ADD_REMOVE, [central(1, participates=False), central(1)])
