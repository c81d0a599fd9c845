"""What the sums of two numbers, of their products and squares cost: all neighbors on a small grid."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from app.accounting.gaussian import effective_variance
from app.accounting.measurement import Workload, priced_at
from app.accounting.pair_prices import (
    BERNSTEIN,
    MOMENTS,
    PARTS,
    moments_cost,
    pair_cost,
)
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation

MORE, REPLACED = Relation.ADD_REMOVE_ONE, Relation.REPLACE_ONE
HALF = GRID_SIZE // 2
GRID = (-HALF, 1 - HALF, -HALF // 2, -1, 0, HALF // 3, HALF // 2 + 1, HALF - 1, HALF)
SCALES = [(1.0, 1.0, 1.0, 2.0, 2.0), (1.0, 1.0, 2 / 3, 4.0, 4.0), (1.0, 3.0, 0.25, 0.5, 9.0)]


def parts(x: int, y: int) -> tuple[int, ...]:
    """What a person of weight 1 adds, about the middles."""
    return x, y, (x * y) >> 30, (x * x) >> 30, (y * y) >> 30


EVERYONE = np.array([parts(x, y) for x, y in product(GRID, GRID)], dtype=object)
MOVED = np.abs(EVERYONE[:, None, :] - EVERYONE[None, :, :]).reshape(-1, 5)


def worst(rates: list[Fraction], power: int) -> Fraction:
    return Fraction(max((MOVED**power) @ np.array(rates, dtype=object)))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("weight", [1, 499_999])
def test_laplace_noise_costs_no_less_than_the_worst_neighbor_loses(scales, weight: int):
    noise = DiscreteLaplace(scales=tuple(scale * MICRO * GRID_SIZE for scale in scales))
    loss = weight * worst([1 / Fraction(one) for one in noise.scales], 1) * MICRO
    cost = moments_cost(weight, noise, REPLACED)
    assert loss <= cost
    if scales in SCALES[:2]:
        assert cost <= loss + 1, "where the numbers' own moves are the worst it is exact"


def test_gaussian_noise_costs_the_largest_l2_norm():
    weight, sigma = 700_000, 2.0 * MICRO * GRID_SIZE
    for times in ((1, 1, 0.5, 0.5, 0.5), (1, 2, 0.25, 0.5, 3)):
        noise = DiscreteGaussian(sigmas=tuple(sigma * one for one in times))
        loss = weight**2 * worst([1 / effective_variance(one) for one in noise.sigmas], 2) * MICRO
        assert loss <= moments_cost(weight, noise, REPLACED)
        if times[1] == 1:
            assert moments_cost(weight, noise, REPLACED) <= loss + 1


@pytest.mark.parametrize("weight", [1, 250_000, 20 * MICRO])
def test_squares_cost_nothing_beside_a_covariance(weight: int):
    scale, sigma = float(MICRO * GRID_SIZE), 2.0 * MICRO * GRID_SIZE
    three = pair_cost(weight, DiscreteLaplace(scales=(scale, scale, scale / 2)), REPLACED)
    assert (
        moments_cost(weight, DiscreteLaplace(scales=(scale, scale, scale, 2 * scale, 2 * scale)), REPLACED)
        == three
    )
    assert 0 <= three - moments_cost(weight, DiscreteLaplace(scales=(scale,) * BERNSTEIN), REPLACED) <= 1
    half = sigma / 2
    assert moments_cost(weight, DiscreteGaussian(sigmas=(sigma, sigma, half, half, half)), REPLACED) == (
        pair_cost(weight, DiscreteGaussian(sigmas=(sigma, sigma, half)), REPLACED)
    )


def test_the_control_products_of_a_covariance_and_squares_beside_them_are_dearer():
    scale = float(MICRO * GRID_SIZE)
    dear = moments_cost(MICRO, DiscreteLaplace(scales=(scale, scale, scale / 2, scale, scale)), REPLACED)
    real = worst([Fraction(1), Fraction(1), Fraction(2), Fraction(1), Fraction(1)], 1) / GRID_SIZE
    assert dear >= real * MICRO > Fraction(22, 10) * MICRO


def test_no_inner_point_moves_the_sums_further_than_the_corners():
    rng = np.random.default_rng(3)
    corners = np.array(MOMENTS) / GRID_SIZE
    x, y, u, v = rng.uniform(-0.5, 0.5, (4, 2000))
    real = np.abs(np.stack([x - u, y - v, x * y - u * v, x * x - u * u, y * y - v * v]))
    for rates in rng.exponential(size=(200, 5)):
        assert (rates @ real).max() <= (corners @ rates).max() + 1e-9
        assert (rates @ real**2).max() <= (corners**2 @ rates).max() + 1e-9


# --------------------------------------------------------------------------- one person more


def bernstein(p: int, grid: int = GRID_SIZE) -> tuple[int, int, int]:
    square = p * p // grid
    return grid - 2 * p + square, 2 * (p - square), square


@pytest.mark.parametrize("grid", [64, GRID_SIZE])
def test_no_person_who_comes_adds_more_than_one_sum(grid: int):
    points = range(grid + 1) if grid == 64 else [one + HALF for one in GRID]
    for p, q in product(points, points):
        added = [one * other // grid for one in bernstein(p, grid) for other in bernstein(q, grid)]
        assert min(added) >= 0
        assert grid - BERNSTEIN < sum(added) <= grid
        assert sum(one**2 for one in added) <= grid**2


@pytest.mark.parametrize("weight", [0, 1, 499_999, 20 * MICRO])
def test_one_person_more_costs_what_a_covariance_does(weight: int):
    laplace = DiscreteLaplace(scales=(float(MICRO * GRID_SIZE),) * BERNSTEIN)
    assert moments_cost(weight, laplace, MORE) == weight
    assert moments_cost(weight, laplace, MORE) == pair_cost(
        weight, DiscreteLaplace(scales=(float(MICRO * PARTS),) * 4), MORE
    )
    sigma = 2.0**55
    loss = (weight * GRID_SIZE) ** 2 / effective_variance(sigma) * MICRO
    assert loss <= moments_cost(weight, DiscreteGaussian(sigmas=(sigma,) * BERNSTEIN), MORE) <= loss + 1


def replaced(grid: int) -> np.ndarray:
    """What each pair of people moves the nine sums by, shape (pairs, 9)."""
    points = range(0, grid + 1, 4) if grid == 64 else [one + HALF for one in GRID]
    added = [
        [one * other // grid for one in bernstein(p, grid) for other in bernstein(q, grid)]
        for p, q in product(points, points)
    ]
    everyone = np.array(added, dtype=object)
    return np.abs(everyone[:, None, :] - everyone[None, :, :]).reshape(-1, BERNSTEIN)


@pytest.mark.parametrize("weight", [0, 1, 499_999, 20 * MICRO])
def test_a_person_who_is_replaced_costs_two_sums_as_the_worst_neighbors_do(weight: int):
    moved = replaced(GRID_SIZE)
    laplace = DiscreteLaplace(scales=(float(MICRO * GRID_SIZE),) * BERNSTEIN)
    loss = Fraction(weight * int(moved.sum(axis=1).max()), MICRO * GRID_SIZE) * MICRO
    assert loss <= moments_cost(weight, laplace, REPLACED) <= loss + 1
    assert moments_cost(weight, laplace, REPLACED) == 2 * moments_cost(weight, laplace, MORE)
    sigma = 2.0**55
    squares = weight**2 * int((moved**2).sum(axis=1).max()) / effective_variance(sigma) * MICRO
    gaussian = DiscreteGaussian(sigmas=(sigma,) * BERNSTEIN)
    assert squares <= moments_cost(weight, gaussian, REPLACED) <= squares + 1
    if weight > 1:
        assert loss > moments_cost(weight, laplace, MORE), "the control: the price of who comes"


def test_of_unequal_noise_no_neighbors_on_a_small_grid_lose_more():
    moved, rng = replaced(64), np.random.default_rng(4)
    for scales in np.exp(rng.normal(size=(40, BERNSTEIN))):
        noise = DiscreteLaplace(scales=tuple(float(one) * MICRO * GRID_SIZE for one in scales))
        worst = max(moved @ (1 / scales)) / 64
        assert worst * MICRO <= moments_cost(MICRO, noise, REPLACED) * (1 + 1e-9)


def test_of_unequal_noise_the_least_is_priced():
    scale = float(MICRO * GRID_SIZE)
    assert moments_cost(MICRO, DiscreteLaplace(scales=(scale,) * 8 + (scale / 2,)), MORE) == 2 * MICRO


@pytest.mark.parametrize(("sums", "relation"), [(5, REPLACED), (BERNSTEIN, REPLACED), (BERNSTEIN, MORE)])
def test_impossible_noise_and_weights_are_refused(sums: int, relation: Relation):
    for scales in ((1.0,) * (sums - 1), (*[1.0] * (sums - 1), 0.0), (*[1.0] * (sums - 1), float("inf"))):
        with pytest.raises(InternalFault):
            moments_cost(1, DiscreteLaplace(scales=scales), relation)
    for weight in (-1, 1.0, True):
        with pytest.raises(InternalFault):
            moments_cost(weight, DiscreteLaplace(scales=(1.0,) * sums), relation)  # type: ignore[arg-type]


def test_five_sums_of_a_secret_number_of_people_have_no_price():
    with pytest.raises(InternalFault):
        moments_cost(1, DiscreteLaplace(scales=(1.0,) * 5), MORE)


def test_releases_of_before_and_now_are_priced_by_the_sums_that_they_have():
    """Those with five Laplace sums are audited as they were made."""
    scale, laplace, gaussian = float(MICRO * GRID_SIZE), Currency.LAPLACE, Currency.GAUSSIAN
    five, nine = (DiscreteLaplace(scales=(scale,) * sums) for sums in (5, BERNSTEIN))
    of_mu = DiscreteGaussian(sigmas=(scale,) * 5)
    for noise, relation, currency in (
        (five, REPLACED, laplace),
        (nine, REPLACED, laplace),
        (of_mu, REPLACED, gaussian),
        (nine, MORE, laplace),
    ):
        price = priced_at(Workload.MOMENTS, noise, relation, currency)(MICRO)
        assert price == moments_cost(MICRO, noise, relation)
