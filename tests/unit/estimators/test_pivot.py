"""The pivot's intervals for few people, by a closed form of its own.

Weights of people make sums lattices, so a Normal law is corrected by half of one person's move. Here the tail
of a Normal plus two Laplaces is written out instead of inverted, and every p is tried: with partial fractions

    P(|N + L_a + L_b| > x) = (a^2 T_a(x) - b^2 T_b(x)) / (a^2 - b^2),
    T_a(x) / 2 = Q(x/s) + (e^(s^2/2a^2 - x/a) Phi(x/s - s/a) - e^(s^2/2a^2 + x/a) Phi(-x/s - s/a)) / 2.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from app.estimators.interface import UNIT_SCALE
from app.estimators.pivot import LinearPivot, PivotReader, hull, two_sums_pivot
from app.estimators.transformed import Transformed
from tests.support.groups import UNIT_GRID, add_remove_one

CAP, FLOOR = 8.0, 2.0
RISK = 0.05 - 0.001
"""Of 5 %, 0.1 % is kept for a total weight that is larger than the noisy one and its slack."""

SLACK = brentq(lambda x: (1 + x / 2) * math.exp(-x) - 0.002, 1, 20)
"""What both noises together exceed with probability 0.1 %, on one side."""

P = (np.arange(20_001) + 0.5) / 20_001
TOLERANCE = 3e-4
"""The scan, and 0.05 % of a margin where a small Laplace is counted as Normal; half of one person's move is
1 / (2 n) or more than 0.04."""


def one_tail(x, s, a):
    """P(|N(0, s^2) + Lap(a)| > x)."""
    grown = s * s / (2 * a * a)
    near = np.exp(grown - x / a + log_ndtr(x / s - s / a))
    far = np.exp(grown + x / a + log_ndtr(-x / s - s / a))
    return 2 * ndtr(-x / s) + near - far


def tail(x, s, a, b):
    x = np.maximum(x, 0.0)
    return (a * a * one_tail(x, s, a) - b * b * one_tail(x, s, b)) / (a * a - b * b)


def accepted(first, second, variance, step):
    """The hull of the p that are not rejected, half a person's move granted."""
    distance = np.abs((1 - P) * first - P * second) - step
    with np.errstate(over="ignore", invalid="ignore"):
        kept = P[tail(distance, np.sqrt(variance), 1 - P, P + 1e-9) >= RISK]
    return float(kept[0]), float(kept[-1])


def concluded(ones, people):
    plan = Transformed().plan([], add_remove_one(cap=CAP, floor=FLOOR))
    sums = (CAP * ones, CAP * (people - ones))
    return sums, plan.conclude([round(total * UNIT_SCALE) for total in sums])


FEW = [(people, ones) for people in range(3, 11) for ones in (people // 3, people // 2, people - 1)]


@pytest.mark.parametrize(("people", "ones"), FEW)
def test_the_datasets_interval_grants_half_of_what_weights_differ_by(people, ones):
    sums, conclusion = concluded(ones, people)
    mass = CAP * people + SLACK
    variance = P * (1 - P) * mass * (math.sqrt(CAP) - math.sqrt(FLOOR)) ** 2
    lower, upper = accepted(sums[0], sums[1], variance, (CAP - FLOOR) / 2)
    assert conclusion.interval.lower == pytest.approx(max(lower, 0), abs=TOLERANCE)
    assert conclusion.interval.upper == pytest.approx(min(upper, 1), abs=TOLERANCE)


@pytest.mark.parametrize(("people", "ones"), FEW)
def test_the_populations_interval_grants_half_a_person(people, ones):
    sums, conclusion = concluded(ones, people)
    lower, upper = accepted(sums[0], sums[1], P * (1 - P) * CAP * (CAP * people + SLACK), CAP / 2)
    assert conclusion.population_interval.lower == pytest.approx(max(lower, 0), abs=TOLERANCE)
    assert conclusion.population_interval.upper == pytest.approx(min(upper, 1), abs=TOLERANCE)


@given(
    first=st.floats(-5, 500),
    second=st.floats(-5, 500),
    cap=st.floats(0.01, 50),
    part=st.floats(0, 0.999),
)
@settings(max_examples=60)
def test_the_datasets_interval_lies_within_the_populations(first, second, cap, part):
    reader = PivotReader(grid=UNIT_GRID, cap=cap, floor=part * cap, pivot=LinearPivot())
    center = max(first, 0.0) / max(max(first, 0.0) + max(second, 0.0), 1e-300)
    dataset, population = (
        hull(first, second, center, 0.05) for hull in (reader.dataset_hull, reader.population_hull)
    )
    assert population[0] - 1e-9 <= dataset[0] <= center <= dataset[1] <= population[1] + 1e-9


def test_the_step_shows_in_each_of_these_intervals():
    """The control: without it, or with half of it, no bound inside the range is where it should be."""
    for people, ones in FEW:
        sums, _ = concluded(ones, people)
        variance = P * (1 - P) * CAP * (CAP * people + SLACK)
        right = accepted(sums[0], sums[1], variance, CAP / 2)
        for step in (0.0, CAP / 4):
            wrong = accepted(sums[0], sums[1], variance, step)
            for one, other in zip(right, wrong, strict=True):
                assert abs(one - other) > 10 * TOLERANCE or one in (P[0], P[-1])


def plain_hull(tail, risk, center):
    """Every point of the scan, and no logarithm."""
    points = sorted({center, *(index / 32 for index in range(33))})
    kept = [place for place, p in enumerate(points) if tail(p) >= risk]
    if not kept:
        return 0.0, 1.0

    def edge(inside, outside):
        return brentq(lambda p: tail(p) - risk, inside, outside, xtol=2.0**-45, rtol=2.0**-45)

    lower = edge(points[kept[0]], points[kept[0] - 1]) if kept[0] else 0.0
    upper = edge(points[kept[-1]], points[kept[-1] + 1]) if kept[-1] < len(points) - 1 else 1.0
    return min(lower, center), max(upper, center)


@given(
    first=st.floats(-5, 500),
    second=st.floats(-5, 500),
    cap=st.floats(0.01, 50),
    part=st.sampled_from([0.0, 0.3, 1.0]),
    draws=st.integers(1, 12),
    normal=st.booleans(),
    risk=st.sampled_from([0.2, 0.05, 0.01, 0.001]),
)
@settings(max_examples=100)
def test_points_that_are_rejected_unseen_leave_the_hull_where_a_plain_scan_has_it(
    first, second, cap, part, draws, normal, risk
):
    pivot = LinearPivot(first=1, second=draws, variance=2.0 if normal else 0.0)
    reader = PivotReader(grid=UNIT_GRID, cap=cap, floor=part * cap, pivot=pivot)
    center = max(first, 0.0) / max(max(first, 0.0) + max(second, 0.0), 1e-300)
    seen = []

    def both(tail, *more):
        seen.append((hull(tail, *more), plain_hull(tail, *more[:2])))
        return seen[-1][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.estimators.pivot.hull", both)
        patch.setattr("app.estimators.pivot._least_at_ends", lambda *_: -1.0)
        searched = [of(first, second, center, risk) for of in (reader.dataset_hull, reader.population_hull)]
    assert len(seen) == 2
    # Where neither end is rejected nothing is searched, and found is the same.
    assert searched == [
        of(first, second, center, risk) for of in (reader.dataset_hull, reader.population_hull)
    ]
    for found, plain in seen:
        # Ends are moved outwards by up to twice the tolerance.
        assert found == pytest.approx(plain, abs=2.0**-42)


def test_sums_below_zero_count_as_zero():
    """No true sum is negative, so noise that took one below 0 must not make an interval narrower."""
    pivot = two_sums_pivot()
    assert pivot.value(0.25, -4.0, 8.0) == -0.25 * 8
    assert pivot.value(0.25, 8.0, -4.0) == 0.75 * 8
    assert pivot.value(0.25, 3.0, 8.0) == 0.75 * 3 - 0.25 * 8
    assert pivot.value(0.25, -4.0, 4.0) == pivot.value(0.25, -1.0, -1.0) == 0


@pytest.mark.parametrize("kind", ["dataset_hull", "population_hull"])
def test_a_tilt_widens_both_ends_by_the_most_that_weights_can_move_a_mean(kind: str):
    tilt = 0.1
    ends = [
        getattr(PivotReader(grid=UNIT_GRID, cap=CAP, floor=FLOOR, pivot=two_sums_pivot(), tilt=one), kind)(
            CAP * 4000, CAP * 6000, 0.4, RISK
        )
        for one in (0.0, tilt)
    ]
    # A part of the people weighs the most that one can, the others the least: by how much more they count.
    part = np.linspace(0, 1, 100_001)
    moved = float((part * CAP / (part * CAP + (1 - part) * FLOOR) - part).max())
    (low, high), (lower, higher) = ends
    assert (low - lower, higher - high) == pytest.approx((tilt * moved, tilt * moved), rel=1e-6)
    assert moved == pytest.approx(1 / 3)
