"""Ranges read off noisy counts: the ladder, the rule, what lies outside, noise for a part of a range."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from app.accounting.gaussian import effective_variance
from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, NoNoise
from app.core.study import Relation, Trust
from app.estimators import shares
from app.estimators.found_range import EQUAL, RISK, FoundRange, find, ladder, narrowed
from app.estimators.shares import SharesPlan
from app.estimators.weighing import weigh_public, weigh_secret
from tests.support.found_ranges import FoundCase

RANGES = [("0", "1e9"), ("-5000", "5000"), ("0", "1"), ("-1e-6", "3"), ("100", "200"), ("-7", "-6.5")]


@pytest.mark.parametrize(("lower", "upper"), RANGES)
def test_the_ladder_rises_from_end_to_end_and_has_enough_bins(lower: str, upper: str):
    edges = ladder(Grid(Decimal(lower), Decimal(upper)))
    assert edges[0] == 0
    assert edges[-1] == GRID_SIZE
    assert all(a < b for a, b in pairwise(edges))
    assert EQUAL <= len(edges) - 1 <= 80


def test_the_ladder_has_round_numbers_on_both_sides_of_zero():
    grid = Grid(Decimal(-500), Decimal(500))
    found = {round(grid.to_unit(Fraction(edge, GRID_SIZE)), 6) for edge in ladder(grid)}
    assert {-500, -300, -1.5, -0.2, 0, 0.01, 7, 20, 150, 500} <= found
    assert ladder(Grid(Decimal(100), Decimal(200)))[1] == GRID_SIZE // EQUAL, "equal parts where it is coarse"


def plan_of(people: int, bins: int, relation: Relation = Relation.REPLACE_ONE) -> SharesPlan:
    group = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)]
    if relation is Relation.REPLACE_ONE:
        return SharesPlan(bins=bins, weighing=weigh_public(group, people, shares.target_of(bins, 0), 0.0))
    return SharesPlan(bins=bins, weighing=weigh_secret(group, cap=MICRO, floor=MICRO))


def found_bins(counts: list[float], people: int = 10_000) -> tuple[int, int]:
    """The first and the last bin, from noisy counts in scales of their noise."""
    plan = plan_of(people, len(counts))
    found = find(plan, range(len(counts) + 1), [round(one * plan.scale) for one in counts])
    return found.low, found.high - 1


CLEAR = math.log(8 / (2 * RISK))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([0, 0, 0, 5000, 0, 0, 0, 0], (2, 4)),
        ([0, 0, 0, 5000, 1.1, 0, 0, 0], (2, 5)),
        ([0, 0, 1.1, 5000, 1.1, 1.1, 0.9, 0], (1, 6)),
        ([0, 0, 0, 5000, 0, CLEAR - 0.1, 0, 0], (2, 4)),
        ([0, 0, 0, 5000, 0, CLEAR + 0.1, 0, 0], (2, 6)),
        ([5000, 0, 0, 0, 0, 0, 0, 0], (0, 1)),
        ([0, 0, 0, 0, 0, 0, 0, 5000], (6, 7)),
        ([0.5] * 8, (0, 7)),
        ([0, 0, 0, 4400, 0, 0, 0, 0], (0, 7)),
    ],
)
def test_the_range_goes_from_bins_that_hold_people_over_neighbors_that_may(
    counts: list[float], expected: tuple[int, int]
):
    """10,000 people at epsilon 1 weigh 5,000 scales; less than nine tenths of these keep the whole range."""
    assert found_bins(counts) == expected


@pytest.mark.parametrize("relation", Relation)
def test_what_lies_outside_is_at_most_the_band_of_the_distribution(relation: Relation):
    rng, bins = np.random.default_rng(), 9
    plan = plan_of(5000, bins, relation)
    counts = (rng.multinomial(5000, np.full(bins, 1 / bins)) * MICRO).tolist()
    cumulative = plan.read(counts).cumulative
    for first, last in ((0, 5), (2, 8), (3, 4)):
        band = (cumulative[first - 1].interval.upper if first else 0) + (
            1 - cumulative[last].interval.lower if last < bins - 1 else 0
        )
        assert plan.outside(counts, first, last) == pytest.approx(min(1, band), abs=1e-6)
    assert plan.outside(counts, 0, bins - 1) == 0


@pytest.mark.parametrize("scale", [1.0, 1e6 / 3, float(2**50 + 1), 2.0**30 * 10**6])
@pytest.mark.parametrize("width", [1, 3, 12_345_678, GRID_SIZE])
def test_noise_for_a_part_of_the_range_is_never_less_than_its_part(scale: float, width: int):
    noise = narrowed(DiscreteLaplace(scales=(scale,)), width)
    assert isinstance(noise, DiscreteLaplace)
    part = Fraction(scale) * width / GRID_SIZE
    assert part <= Fraction(noise.scales[0]) <= part * (1 + Fraction(1, 2**52))


@pytest.mark.parametrize("sigma", [2.0**40 / 3, 2.0**56])
@pytest.mark.parametrize("width", [1_000, 12_345_678, GRID_SIZE])
def test_gaussian_noise_for_a_part_of_the_range_costs_no_more_than_that_for_all_of_it(
    sigma: float, width: int
):
    """What a person moves the sum by is in steps of the range: mu^2 is (steps)^2 over what sigma is worth."""
    noise = narrowed(DiscreteGaussian(sigmas=(sigma,)), width)
    assert isinstance(noise, DiscreteGaussian)
    price, whole = (
        Fraction(steps) ** 2 / effective_variance(size)
        for steps, size in ((width, noise.sigmas[0]), (GRID_SIZE, sigma))
    )
    assert price <= whole
    assert noise.sigmas[0] <= (sigma * width / GRID_SIZE + 3) * (1 + 2**-52)


def test_other_noise_is_not_narrowed():
    assert narrowed(NoNoise(), 7) == NoNoise()
    with pytest.raises(InternalFault):
        narrowed(Hourglass(sensitivity=2, epsilon=1, step=0), 7)


@pytest.mark.parametrize("relation", Relation)
def test_the_plan_of_the_mean_is_the_same_for_every_part_of_the_range(relation: Relation):
    """What people weigh, and the noise, must not depend on the range that is found."""
    rng = np.random.default_rng()
    case = FoundCase.of(
        [rng.random(300), rng.random(200)], upper=1000, epsilons=(0.5, 2), tilt=0.1, relation=relation
    )
    made = case.plan
    for width in (7, 2**20, GRID_SIZE):
        found = FoundRange(low=0, high=width, outside=0.0)
        assert found.grid(made.study.grid).width == made.study.grid.width * Fraction(width, GRID_SIZE)
        (again,), (first,) = made.asked.over(found, made.means.sums).sums, made.means.sums
        assert again.plan is not None
        assert first.plan is not None
        assert (again.plan.queries, again.plan.noise) == (first.plan.queries, first.plan.noise)
