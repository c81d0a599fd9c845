"""The price of a found range and its mean, against brute force over neighbors on a small grid.

Three bins, a grid of six steps, two people; all noisy counts of a box, noisy sums at all ends of pieces. What
reads the range off the counts is the service's own rule, with a threshold that fits few people.
"""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product

import pytest

from app.accounting.costs import group_costs
from app.accounting.shape_prices import bins_cost
from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.noise import DiscreteLaplace
from app.core.study import Relation, Trust
from app.estimators import found_range
from app.estimators.found_range import narrowed
from app.estimators.interface import UNIT_SCALE, Query
from app.estimators.transformed import complementary_queries

EDGES = (0, 2, 4, 6)
STEPS = range(7)
People = tuple[tuple[int, ...], ...]
"""The values of the people of each label."""

BOX = range(-2, 5)
"""Noisy counts that are looked at; a loss is the same or less further out."""

CLEAR = 0.2 * math.log(len(EDGES[1:]) / (2 * found_range.RISK))
OF_BINS, OF_SUM = 2.0, 3.0
"""Scales of noise, in people for the counts, and in ranges for the sums."""


def log_laplace(z: float, scale: float) -> float:
    """Up to a constant that neighbors share."""
    return -abs(z) / scale


def counts_of(people: People) -> list[int]:
    values = [value for label in people for value in label]
    inside = [sum(low <= value < high for value in values) for low, high in pairwise(EDGES)]
    inside[-1] += sum(value == EDGES[-1] for value in values)
    return inside


def sums_of(people: People, low: int, width: int, relation: Relation) -> list[int]:
    """The queries of the second part, of each label: the sum from the lower end on, and its complement."""
    found = []
    for values in people:
        total = sum(min(max(value, low), low + width) - low for value in values)
        found += [total] if relation is Relation.REPLACE_ONE else [total, len(values) * width - total]
    return found


def loss(first: People, second: People, relation: Relation, *, exact_range: bool = False) -> float:
    """The largest log ratio of the densities of all noisy counts and sums of two datasets."""
    worst = 0.0
    for noisy in product(BOX, repeat=3):
        of_counts = sum(
            log_laplace(z - a, OF_BINS) - log_laplace(z - b, OF_BINS)
            for z, a, b in zip(noisy, counts_of(first), counts_of(second), strict=True)
        )
        ranges = []
        for values in (first, second):
            seen = counts_of(values) if exact_range else noisy
            start, end = found_range.outermost(
                0.2, CLEAR, seen, 2 if relation is Relation.REPLACE_ONE else sum(seen)
            )
            ranges.append((EDGES[start], EDGES[end + 1] - EDGES[start]))
        if ranges[0] != ranges[1]:
            return math.inf if exact_range else pytest.fail("the range depends on more than the counts")
        low, width = ranges[0]
        places = [sums_of(values, low, width, relation) for values in (first, second)]
        # The ratio of two Laplaces is monotone between their centers and constant beyond: ends are enough.
        for ends in product(*map(set, zip(*places, strict=True))):
            of_sums = sum(
                log_laplace(z - a, OF_SUM * width) - log_laplace(z - b, OF_SUM * width)
                for z, a, b in zip(ends, *places, strict=True)
            )
            worst = max(worst, abs(of_counts + of_sums))
    return worst


def neighbors(relation: Relation, beside: People = ()) -> list[tuple[People, People]]:
    """Two people of a label of whom one changes the value, or one who comes; beside other labels."""
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]
    if relation is Relation.REPLACE_ONE:
        pairs = [
            ((one, x), (one, y)) for one in (0, 3, 6) for x, y in combinations_with_replacement(STEPS, 2)
        ]
    else:
        around: People = ((0,), (3,), (1, 6))
        pairs = [(others, (*others, x)) for others in around for x in STEPS]
    return [((one, *beside), (other, *beside)) for one, other in pairs]


def price(relation: Relation) -> Fraction:
    """What the service charges for both parts [epsilon]."""
    bins = DiscreteLaplace(scales=(OF_BINS * MICRO,) * 3)
    group = [Group(trust=Trust.CENTRAL, epsilon=10 * MICRO, count=2)]
    queries = (
        (Query(sum_weights=(MICRO,), count_weights=(0,)),)
        if relation is Relation.REPLACE_ONE
        else complementary_queries((MICRO,))
    )
    noise = DiscreteLaplace(scales=(OF_SUM * UNIT_SCALE,) * len(queries))
    (cost,) = group_costs(queries, noise, relation, group)
    return Fraction(bins_cost(MICRO, bins, relation) + cost, MICRO)


@pytest.mark.long
@pytest.mark.parametrize("beside", [(), ((6,), ())], ids=["all", "by label"])
@pytest.mark.parametrize("relation", Relation)
def test_no_neighbors_lose_more_than_the_price_and_some_lose_all_of_it(relation: Relation, beside: People):
    """By labels the price is the same: two other ones stand beside, one of them empty."""
    worst = max(loss(*pair, relation) for pair in neighbors(relation, beside))
    assert worst <= price(relation) + Fraction(1, 10**9)
    assert worst >= price(relation) - Fraction(2, MICRO), "at most 1 micro above, for each part"


@pytest.mark.parametrize("relation", Relation)
def test_control_a_person_who_moves_to_another_label_loses_more(relation: Relation):
    """That is no neighbor: labels are public and stay, or it is two neighbors, of twice the price."""
    found = loss(((3, 6), (6,)), ((3,), (6, 3)), relation)
    assert price(relation) < found <= 2 * price(relation) + Fraction(1, 10**9)


@pytest.mark.parametrize("relation", Relation)
def test_control_a_range_from_exact_counts_has_no_price(relation: Relation):
    assert any(loss(*pair, relation, exact_range=True) == math.inf for pair in neighbors(relation))


def test_the_noise_of_the_second_part_is_that_of_the_declared_range_times_the_width():
    """What `loss` above draws, and what the service does, are one scale."""
    for width in (1, 2**29, 3 * 2**20):
        noise = narrowed(DiscreteLaplace(scales=(UNIT_SCALE,)), width)
        assert noise == DiscreteLaplace(scales=(float(MICRO * width),))
