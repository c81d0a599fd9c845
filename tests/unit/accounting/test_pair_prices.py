"""What the sums of two numbers and of their products cost: all neighbors on a small grid, and corners."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from app.accounting.gaussian import effective_variance
from app.accounting.pair_prices import MOVES, PARTS, pair_cost
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Relation
from app.estimators.covariance_secret import SecretCovarianceReader

MORE, REPLACED = Relation.ADD_REMOVE_ONE, Relation.REPLACE_ONE
HALF = GRID_SIZE // 2
GRID = (-HALF, 1 - HALF, -HALF // 3, -1, 0, 7, HALF // 2 + 1, HALF - 1, HALF)
NEIGHBORS = list(product(product(GRID, GRID), product(GRID, GRID)))
SCALES = [(1.0, 1.0, 0.5), (1.0, 3.0, 0.25), (2.0, 1.0, 4.0)]


def moves(before: tuple[int, int], after: tuple[int, int]) -> tuple[int, int, int]:
    """What a person of weight 1 really moves the sums by."""
    products = [(x * y) >> 30 for x, y in (before, after)]
    return abs(before[0] - after[0]), abs(before[1] - after[1]), abs(products[0] - products[1])


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("weight", [1, 499_999])
def test_laplace_noise_costs_what_the_worst_neighbor_loses_and_at_most_a_micro_more(scales, weight: int):
    noise = DiscreteLaplace(scales=tuple(scale * MICRO * GRID_SIZE for scale in scales))
    worst = max(
        sum(
            Fraction(weight * move) / Fraction(scale)
            for move, scale in zip(moves(*pair), noise.scales, strict=True)
        )
        for pair in NEIGHBORS
    )
    cost = pair_cost(weight, noise, REPLACED)
    assert worst * MICRO <= cost <= worst * MICRO + 1 + weight * 2 / GRID_SIZE / min(scales)


@pytest.mark.parametrize("scales", SCALES)
def test_gaussian_noise_costs_the_largest_l2_norm(scales):
    weight = 700_000
    noise = DiscreteGaussian(sigmas=tuple(scale * 2 * MICRO * GRID_SIZE for scale in scales))
    worst = max(
        sum(
            (weight * move) ** 2 / effective_variance(sigma)
            for move, sigma in zip(moves(*pair), noise.sigmas, strict=True)
        )
        for pair in NEIGHBORS
    )
    assert worst * MICRO <= pair_cost(weight, noise, REPLACED) <= worst * MICRO + 2


def test_products_of_half_the_scale_cost_nothing_beside_both_sums():
    weight, scale = 250_000, float(MICRO * GRID_SIZE)
    three = pair_cost(weight, DiscreteLaplace(scales=(scale, scale, scale / 2)), REPLACED)
    assert 2 * weight <= three <= 2 * weight + 1
    sigma = 2 * scale
    both = 2 * Fraction(weight * GRID_SIZE) ** 2 / effective_variance(sigma) * MICRO
    with_products = pair_cost(weight, DiscreteGaussian(sigmas=(sigma, sigma, sigma / 2)), REPLACED)
    assert both <= with_products <= both + 2
    dearer = pair_cost(weight, DiscreteLaplace(scales=(scale, scale, scale / 3)), REPLACED)
    assert dearer > 1.2 * three, "the control: a third of the scale would show"


def test_no_inner_point_moves_the_sums_further_than_the_corners():
    """The real moves, at random inside: never above the largest of the three corners for any scales."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        x, y, u, v = rng.uniform(-0.5, 0.5, 4)
        rates = rng.exponential(size=3)
        real = np.array([abs(x - u), abs(y - v), abs(x * y - u * v)])
        corners = np.array(MOVES) / GRID_SIZE
        assert rates @ real <= (corners @ rates).max() + 1e-9
        assert rates @ real**2 <= (corners**2 @ rates).max() + 1e-9


# --------------------------------------------------------------------------- one person more


POINTS = sorted({0, 1, 2, 3, HALF - 1, HALF, HALF + 1, 2 * HALF // 3, *(GRID_SIZE - end for end in range(4))})
PEOPLE = [
    SecretCovarianceReader.parts(1, p, q, ((p - HALF) * (q - HALF)) >> 30) for p, q in product(POINTS, POINTS)
]
WEIGHTS = (0, 1, 499_999, 20 * MICRO)


def test_one_person_adds_the_same_in_all_whatever_the_numbers():
    assert {sum(parts) for parts in PEOPLE} == {2 * GRID_SIZE}
    assert min(min(parts) for parts in PEOPLE) == -1, "products are rounded down"
    assert max(sum(map(abs, parts)) for parts in PEOPLE) <= PARTS
    assert max(sum(part**2 for part in parts) for parts in PEOPLE) <= PARTS**2


def test_on_a_small_grid_no_person_adds_more():
    """All people at once: the same integers on a grid of 64 steps."""
    grid, half = 64, 32
    for p, q in product(range(grid + 1), repeat=2):
        both = 2 * ((p - half) * (q - half) // grid) + (p - half) + (q - half) + half
        parts = (both, 2 * p - both, 2 * q - both, 2 * (grid - p - q) + both)
        assert sum(parts) == 2 * grid
        assert sum(map(abs, parts)) <= 2 * grid + 4
        assert sum(part**2 for part in parts) <= (2 * grid + 4) ** 2


@pytest.mark.parametrize("weight", WEIGHTS)
def test_one_person_more_costs_what_the_worst_one_loses_and_at_most_a_micro_more(weight: int):
    noise = DiscreteLaplace(scales=(float(PARTS * MICRO),) * 4)
    worst = max(Fraction(weight * sum(map(abs, parts)), PARTS * MICRO) for parts in PEOPLE) * MICRO
    assert worst <= pair_cost(weight, noise, MORE) <= worst + 1
    assert pair_cost(weight, noise, MORE) == weight


@pytest.mark.parametrize("weight", WEIGHTS)
def test_with_gaussian_noise_it_costs_the_largest_l2_norm(weight: int):
    sigma = 2.0**55
    squares = max(sum((weight * part) ** 2 for part in parts) for parts in PEOPLE)
    worst = squares / effective_variance(sigma) * MICRO
    assert worst <= pair_cost(weight, DiscreteGaussian(sigmas=(sigma,) * 4), MORE) <= worst + 1


def test_of_unequal_noise_the_least_is_priced():
    scale = float(PARTS * MICRO)
    for sizes in ((scale, 2 * scale, 3 * scale, scale / 2), (scale / 2,) * 4):
        assert pair_cost(MICRO, DiscreteLaplace(scales=sizes), MORE) == 2 * MICRO


@pytest.mark.parametrize("scales", [(1.0,) * 3, (1.0, 1.0, 1.0, 0.0), (1.0, math.inf, 1.0, 1.0)])
def test_impossible_noise_of_four_sums_is_refused(scales):
    with pytest.raises(InternalFault):
        pair_cost(1, DiscreteLaplace(scales=scales), MORE)


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1.0, 1.0, 0.0), (1.0, 1.0, math.inf)])
def test_impossible_noise_is_refused(scales):
    with pytest.raises(InternalFault):
        pair_cost(1, DiscreteLaplace(scales=scales), REPLACED)


def test_a_weight_that_is_no_integer_is_refused():
    for weight in (-1, 1.0, True):
        for relation, sums in ((REPLACED, 3), (MORE, 4)):
            with pytest.raises(InternalFault):
                pair_cost(weight, DiscreteLaplace(scales=(1.0,) * sums), relation)  # type: ignore[arg-type]
