"""What a round of K-means costs: the exact maximum over what one person can do, never less."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from app.accounting.clusters import clusters_cost, clusters_noise
from app.core.epsilon import MICRO, epsilon_cost
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace
from app.core.study import Relation
from app.sessions.kmeans import ClusterRules
from app.sessions.points import ClusterSums, to_widths

CENTERS = ((0, 0), (GRID_SIZE, GRID_SIZE), (GRID_SIZE, 0))
ENDS = [(a, b) for a in (0, 1, GRID_SIZE) for b in (0, GRID_SIZE - 1, GRID_SIZE)]


def queries(point: tuple[int, int] | None) -> list[int]:
    """The exact queries of a round with one person, or none."""
    sums = ClusterSums(CENTERS)
    if point is not None:
        sums.add(np.array([point]))
    return sums.queries()


def loss(one: list[int], other: list[int], noise: DiscreteLaplace) -> Fraction:
    moves = zip(one, other, noise.scales, strict=True)
    return sum((abs(a - b) / Fraction(scale) for a, b, scale in moves), Fraction(0))


@pytest.mark.parametrize("uneven", [False, True])
def test_the_price_is_the_largest_loss_of_real_people(uneven: bool) -> None:
    scales = tuple(GRID_SIZE * (1.5 + (number % 4 if uneven else 0)) for number in range(9))
    noise = DiscreteLaplace(scales=scales)
    replaced = max(loss(queries(a), queries(b), noise) for a, b in itertools.product(ENDS, ENDS))
    removed = max(loss(queries(a), queries(None), noise) for a in ENDS)
    price = {relation: clusters_cost(noise, relation, clusters=3, dimension=2) for relation in Relation}
    assert epsilon_cost(replaced) <= price[Relation.REPLACE_ONE] <= epsilon_cost(replaced * Fraction(11, 10))
    assert price[Relation.ADD_REMOVE_ONE] == epsilon_cost(removed)
    if not uneven:
        assert price[Relation.REPLACE_ONE] == epsilon_cost(replaced)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("dimension", [1, 2, 7, 64])
@pytest.mark.parametrize("epsilon", [1, 3, 333_333, MICRO, 7_000_001])
def test_the_noise_costs_what_it_may_cost(relation: Relation, dimension: int, epsilon: int) -> None:
    rules = ClusterRules(
        dimension=dimension, clusters=3, rounds=1, epsilon=max(epsilon, 2), relation=relation
    )
    shape = {"clusters": 3, "dimension": dimension}
    noise = clusters_noise(rules.cost_per_round, rules.sensitivity, **shape)
    assert clusters_cost(noise, relation, **shape) == rules.cost_per_round
    assert noise.scales[0] == pytest.approx((rules.central_variance / 2) ** 0.5 * GRID_SIZE)
    assert noise.scales[0] <= 2**56


def test_control_less_noise_costs_more() -> None:
    noise = clusters_noise(MICRO, Fraction(4), clusters=3, dimension=2)
    less = DiscreteLaplace(scales=tuple(0.999 * scale for scale in noise.scales))
    assert clusters_cost(less, Relation.REPLACE_ONE, clusters=3, dimension=2) > MICRO
    half = DiscreteLaplace(scales=tuple(scale / 2 for scale in noise.scales))
    assert clusters_cost(half, Relation.ADD_REMOVE_ONE, clusters=3, dimension=2) == MICRO
    assert clusters_cost(half, Relation.REPLACE_ONE, clusters=3, dimension=2) == 2 * MICRO


@pytest.mark.parametrize(
    ("scales", "shape"),
    [
        ((1.0,) * 8, {"clusters": 3, "dimension": 2}),
        ((1.0,) * 3, {"clusters": 1, "dimension": 2}),
        ((1.0,) * 2, {"clusters": 2, "dimension": 0}),
        ((1.0, 1.0, 1.0, 0.0), {"clusters": 2, "dimension": 1}),
        ((1.0, 1.0, 1.0, float("inf")), {"clusters": 2, "dimension": 1}),
        ((1.0, 1.0, 1.0, float("nan")), {"clusters": 2, "dimension": 1}),
    ],
)
def test_what_has_no_price_is_refused(scales: tuple[float, ...], shape: dict[str, int]) -> None:
    with pytest.raises(InternalFault):
        clusters_cost(DiscreteLaplace(scales=scales), Relation.REPLACE_ONE, **shape)


def test_sums_are_exact_and_about_the_middle() -> None:
    random = np.random.default_rng(5)
    points = random.integers(0, GRID_SIZE + 1, (3000, 2))
    together, apart = ClusterSums(CENTERS), ClusterSums(CENTERS)
    together.add(points)
    for part in np.array_split(points, 7):
        apart.add(part)
    assert together.queries() == apart.queries()
    centers = to_widths(CENTERS)
    named = ((to_widths(points)[:, np.newaxis] - centers) ** 2).sum(axis=2).argmin(axis=1)
    for cluster in range(3):
        mine = points[named == cluster].tolist()
        assert together.counts[cluster] == len(mine)
        assert together.sums[cluster] == [
            sum(point[axis] - GRID_SIZE // 2 for point in mine) for axis in (0, 1)
        ]


def test_where_somebody_belongs_does_not_depend_on_who_else_is_there() -> None:
    """Points on the border between two centers, where one rounding decides, alone and in a crowd."""
    random = np.random.default_rng(11)
    centers = [tuple(point) for point in random.integers(0, GRID_SIZE, (2, 5)).tolist()]
    middle = np.array(centers).mean(axis=0)
    crowd = np.clip(np.rint(middle + random.integers(-2, 3, (500, 5))), 0, GRID_SIZE).astype(np.int64)
    together = ClusterSums(centers)
    together.add(crowd)
    alone = [0, 0]
    for point in crowd:
        single = ClusterSums(centers)
        single.add(point[np.newaxis])
        alone = [total + count for total, count in zip(alone, single.counts, strict=True)]
    assert together.counts == alone
    assert min(alone) > 0
