"""Queries on sums of squares: brute force over all pairs of neighbors of small grids, and the price."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.accounting.costs import group_costs
from app.accounting.gaussian import effective_variance, mu2_cost
from app.core.errors import InternalFault
from app.core.grid import GRID_BITS, GRID_SIZE, square
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation
from app.estimators.interface import UNIT_SCALE, Query
from app.estimators.moments import WITH_HALF
from app.mechanisms.hourglass import hourglass
from tests.support.groups import central

REPLACE, ADD_REMOVE = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE

MEAN = Query(sum_weights=(1,), count_weights=(0,))
MOMENT = Query(sum_weights=(0,), count_weights=(0,), square_weights=(1,))

SIZES = (4, 8, 64, 128)


def small_square(point: int, size: int, about: int | None = None) -> int:
    """`grid.square` on a grid of another size."""
    return (point - (size // 2 if about is None else about)) ** 2 // size


def joint_moves(size: int, about: int | None = None) -> set[tuple[int, int]]:
    """(move of the sum, move of the sum of squares) of all pairs of neighbors, replace_one."""
    values = [(point, small_square(point, size, about)) for point in range(size + 1)]
    return {(q - r, v - w) for (q, v), (r, w) in product(values, repeat=2)}


@pytest.mark.parametrize("size", SIZES)
def test_no_pair_of_neighbors_moves_mean_and_second_moment_further_than_the_mean_alone(size):
    assert max(abs(d) + abs(e) for d, e in joint_moves(size)) == size
    assert max(abs(e) for _, e in joint_moves(size)) == size // 4


@pytest.mark.parametrize("size", SIZES)
def test_about_the_end_of_the_range_they_would(size):
    assert max(abs(d) + abs(e) for d, e in joint_moves(size, about=0)) == 2 * size


@pytest.mark.parametrize("size", [64, 128, 256])
def test_gaussian_noise_of_a_third_of_the_size_is_free_too_and_of_a_quarter_is_not(size):
    moves = joint_moves(size)
    assert max(d * d + 9 * e * e for d, e in moves) == size * size
    assert max(d * d + 16 * e * e for d, e in moves) > size * size
    # On the corners that the price looks at; the truth would allow a little more, eleven.
    assert max(Fraction(25 + 9 * 4, 64), Fraction(49 + 9, 64)) < 1 < Fraction(25 + 16 * 4, 64)


@pytest.mark.parametrize("size", [16, 64, 128, 256])
def test_all_moves_of_small_grids_are_within_the_polygon_that_is_priced(size):
    """Every pair of neighbors; each edge is nearly reached by one of them."""
    moves = joint_moves(size)
    assert max(4 * e for _, e in moves) == size
    assert max(d + e for d, e in moves) == size
    assert -2 <= max(2 * e + d - 1 for d, e in moves) - 9 * size // 8 <= 0


@given(st.integers(0, GRID_SIZE), st.integers(0, GRID_SIZE))
# About where the second edge touches what a person can do, at odd moves, rounding lifts a move onto it.
@example(GRID_SIZE // 4 + 1, GRID_SIZE)
@example(GRID_SIZE // 4 - 9_999, GRID_SIZE)
@example(0, 3 * GRID_SIZE // 4 + 12_345)
def test_the_lemma_holds_on_the_real_grid(q, r):
    d, e = abs(q - r), abs(square(q) - square(r))
    assert d + e <= GRID_SIZE
    assert 4 * e <= GRID_SIZE
    assert 8 * (2 * e + d - 1) <= 9 * GRID_SIZE
    assert square(q) >= abs(q - GRID_SIZE // 2) - GRID_SIZE // 4


@given(st.integers(1, 10**12))
def test_the_second_moment_costs_nothing_beside_the_mean(weight):
    mean = Query(sum_weights=(weight,), count_weights=(0,))
    moment = Query(sum_weights=(0,), count_weights=(0,), square_weights=(weight,))
    noise = DiscreteLaplace(scales=(UNIT_SCALE, UNIT_SCALE))
    assert group_costs([mean, moment], noise, REPLACE, [central(1e6)]) == [weight]


@given(st.integers(1, 10**9))
def test_half_of_the_noise_of_squares_costs_an_eighth_more(weight):
    """The price of a description's moments; no pair of neighbors of a small grid loses more."""
    mean = Query(sum_weights=(weight,), count_weights=(0,))
    moment = Query(sum_weights=(0,), count_weights=(0,), square_weights=(weight,))
    noise = DiscreteLaplace(scales=(UNIT_SCALE, UNIT_SCALE / 2))
    (cost,) = group_costs([mean, moment], noise, REPLACE, [central(1e6)])
    assert 0 <= cost - math.ceil(WITH_HALF * weight) <= 1
    assert 0 <= max(d + 2 * e for d, e in joint_moves(256)) - WITH_HALF * 256 <= 1


def test_less_noise_or_a_larger_weight_is_paid_for():
    groups = [central(1e6)]
    noise = DiscreteLaplace(scales=(UNIT_SCALE, UNIT_SCALE / 2))
    mean = Query(sum_weights=(100,), count_weights=(0,))
    moment = Query(sum_weights=(0,), count_weights=(0,), square_weights=(100,))
    assert group_costs([mean, moment], noise, REPLACE, groups) == [113]
    heavy = Query(sum_weights=(0,), count_weights=(0,), square_weights=(300,))
    assert group_costs([mean, heavy], DiscreteLaplace(scales=(UNIT_SCALE,) * 2), REPLACE, groups) == [138]


def test_squares_about_another_point_than_the_middle_cost_more():
    """x^2 = (x - 1/2)^2 + x - 1/4: what it is about is in the weights, and they are what is priced."""
    about_the_end = Query(sum_weights=(100,), count_weights=(0,), square_weights=(100,))
    mean = Query(sum_weights=(100,), count_weights=(0,))
    noise = DiscreteLaplace(scales=(UNIT_SCALE, UNIT_SCALE))
    assert group_costs([mean, about_the_end], noise, REPLACE, [central(1e6)]) == [200]


def test_the_second_moment_alone_costs_a_quarter():
    noise = DiscreteLaplace(scales=(UNIT_SCALE,))
    alone = Query(sum_weights=(0,), count_weights=(0,), square_weights=(100,))
    assert group_costs([alone], noise, REPLACE, [central(1e6)]) == [25]
    assert group_costs([alone], noise, ADD_REMOVE, [central(1e6)]) == [25]


WEIGHTS = st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(-9, 9))


@given(
    st.lists(WEIGHTS, min_size=1, max_size=3),
    st.lists(st.floats(1e3, 1e15), min_size=3, max_size=3),
    st.sampled_from(Relation),
)
# A person a quarter of the range from the middle moves these the most, on either side.
@example([(1, 0, -2)], [1e9] * 3, ADD_REMOVE)
@example([(-1, 1, -2)], [1e9] * 3, ADD_REMOVE)
def test_the_price_is_never_below_what_any_pair_of_neighbors_loses(weights, scales, relation):
    points = [GRID_SIZE * step // 32 for step in range(33)]
    queries = [Query(sum_weights=(a,), count_weights=(b,), square_weights=(c,)) for a, b, c in weights]
    scales = tuple(scales[: len(weights)])

    def values(point: int) -> list[int]:
        return [a * point + b * GRID_SIZE + c * square(point) for a, b, c in weights]

    pairs = product(points, points) if relation is REPLACE else ((point, None) for point in points)
    worst = max(
        sum(
            abs(v - w) / Fraction(scale)
            for v, w, scale in zip(
                values(one), [0] * len(weights) if other is None else values(other), scales, strict=True
            )
        )
        for one, other in pairs
    )
    (epsilon,) = group_costs(queries, DiscreteLaplace(scales=scales), relation, [central(1e9)])
    assert epsilon >= worst * 1_000_000


def three_sums(weight: int) -> list[Query]:
    """The sums of p^2, 2 p (1 - p) and (1 - p)^2, about the middle of the range, in quarters of a weight."""
    return [
        Query(sum_weights=(4 * weight,), count_weights=(-weight,), square_weights=(4 * weight,)),
        Query(sum_weights=(0,), count_weights=(2 * weight,), square_weights=(-8 * weight,)),
        Query(sum_weights=(-4 * weight,), count_weights=(3 * weight,), square_weights=(4 * weight,)),
    ]


@given(st.integers(1, 10**9))
def test_three_sums_cost_one_weight_under_add_or_remove(weight):
    noise = DiscreteLaplace(scales=(4 * UNIT_SCALE,) * 3)
    assert group_costs(three_sums(weight), noise, ADD_REMOVE, [central(1e6)]) == [weight]


@given(st.integers(1, 10**9))
def test_three_sums_under_gaussian_noise_cost_the_largest_norm_which_is_one_weight(weight):
    sigma = 8.0 * GRID_SIZE * weight
    (cost,) = group_costs(
        three_sums(weight),
        DiscreteGaussian(sigmas=(sigma,) * 3),
        ADD_REMOVE,
        [central(1e6)],
        Currency.GAUSSIAN,
    )
    norms = [
        sum(
            (a * point + b * GRID_SIZE + c * square(point)) ** 2
            for query in three_sums(weight)
            for _, a, b, c in query.terms
        )
        for point in (GRID_SIZE * step // 64 for step in range(65))
    ]
    assert max(norms) == norms[0] == norms[-1] == (4 * weight * GRID_SIZE) ** 2
    assert cost == mu2_cost(max(norms) / effective_variance(sigma))


def test_gaussian_noise_prices_the_pair_as_the_mean():
    sigma = 8.0 * GRID_SIZE
    alone = group_costs([MEAN], DiscreteGaussian(sigmas=(sigma,)), REPLACE, [central(1e6)], Currency.GAUSSIAN)
    # Half the sigma is what versions up to 1.0 had.
    for part in (2, 3):
        both = DiscreteGaussian(sigmas=(sigma, sigma / part))
        assert group_costs([MEAN, MOMENT], both, REPLACE, [central(1e6)], Currency.GAUSSIAN) == alone
    less = DiscreteGaussian(sigmas=(sigma, sigma / 4))
    assert group_costs([MEAN, MOMENT], less, REPLACE, [central(1e6)], Currency.GAUSSIAN) > alone


def test_squares_under_hourglass_noise_are_refused():
    with pytest.raises(InternalFault):
        group_costs([MOMENT, MOMENT], hourglass(GRID_SIZE, 1_000_000), ADD_REMOVE, [central(1)])


def test_a_square_fits_the_range():
    assert square(GRID_SIZE) == square(0) == GRID_SIZE // 4
    assert math.log2(GRID_SIZE) == GRID_BITS
