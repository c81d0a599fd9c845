"""Hourglass noise: its law, its loss, its moments, and the law of the pivot."""

import math
import random
from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InternalFault
from app.core.noise import Hourglass
from app.mechanisms import hourglass as module
from app.mechanisms.hourglass import (
    draw_hourglass,
    hourglass,
    hourglass_moments,
    hourglass_step,
    optimal_share,
)
from app.mechanisms.hourglass_law import pivot_tail
from dither_research.staircase import staircase, staircase_variance
from tests.support.decisions import one_round


def noise(half=2, epsilon=700_000, step=1):
    return Hourglass(sensitivity=2 * half, epsilon=epsilon, step=step)


def level(u, v, noise):
    """The definition of t."""
    t = abs(u)
    while abs(v) > t * noise.half + noise.step:
        t += 2
    return t


@pytest.mark.parametrize(("half", "step"), [(1, 0), (1, 1), (2, 1), (3, 3), (4, 2)])
def test_every_pair_has_its_place(half, step):
    shape = noise(half, 1, step)
    for t in range(7):
        places = Counter(module._place(index, t, half, step) for index in range(module._cells(shape, t)))
        reach = t * half + step + 3
        pairs = {
            (u, v) for u in range(-t - 2, t + 3) for v in range(-reach, reach + 1) if level(u, v, shape) == t
        }
        assert places == Counter(pairs)


@pytest.mark.parametrize(("half", "step"), [(1, 0), (2, 1), (2, 2)])
def test_a_draw_has_exactly_the_hourglass_law(monkeypatch, half, step):
    shape = noise(half, 1_500_000, step)
    monkeypatch.setattr("tests.support.decisions.MOST", 6)
    law = one_round(
        monkeypatch,
        module,
        lambda: draw_hourglass(shape, lambda count: 0),
        restarts=lambda before, request: request == ("below", (8 * half,)) and len(before) > 0,
    )
    b = math.exp(-1.5)
    weights = {
        (u, v): b ** level(u, v, shape) for u in range(-50, 51) for v in range(-50 * half, 50 * half + 1)
    }
    total = sum(weights.values())
    for u in range(-4, 5):
        for v in range(-4 * half, 4 * half + 1):
            if level(u, v, shape) <= 5:  # the script leaves out larger geometric numbers
                outcome = (half * u + v, half * u - v)
                assert law.probability(outcome) == pytest.approx(weights[u, v] / total, rel=1e-10)


@given(half=st.integers(1, 12), share=st.floats(0, 1), data=st.data())
def test_one_person_changes_the_level_by_exactly_one(half, share, data):
    shape = noise(half, 1, round(share * half))
    u = data.draw(st.integers(-30, 30))
    v = data.draw(st.integers(-30 * half, 30 * half))
    move = data.draw(st.integers(-half, half))
    for step in (1, -1):
        assert abs(level(u + step, v + move, shape) - level(u, v, shape)) == 1


def test_control_a_larger_move_changes_it_by_more():
    shape = noise(3, 1, 1)
    changes = {abs(level(u + 1, v + 4, shape) - level(u, v, shape)) for u in range(9) for v in range(30)}
    assert max(changes) > 1


@pytest.mark.parametrize(("half", "epsilon", "step"), [(1, 900_000, 0), (2, 700_000, 1), (5, 2_000_000, 5)])
def test_the_moments_equal_the_sums_that_define_them(half, epsilon, step):
    shape = noise(half, epsilon, step)
    b = math.exp(-epsilon / 1e6)
    mass = of_u = of_v = 0.0
    for u in range(-70, 71):
        for v in range(-70 * half, 70 * half + 1):
            weight = b ** level(u, v, shape)
            mass, of_u, of_v = mass + weight, of_u + weight * u * u, of_v + weight * v * v
    expected = (half**2 * of_u + of_v) / mass, (half**2 * of_u - of_v) / mass
    assert hourglass_moments(shape) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(1, 30_000_000))
def test_the_step_is_the_published_optimum(epsilon):
    """The printed formula needs many digits at small epsilon; ours does not."""
    with mpmath.workdps(80):
        b = mpmath.exp(-mpmath.mpf(epsilon) / 10**6)
        root = mpmath.cbrt(b - 2 * b**2 + 2 * b**4 - b**5)
        published = -b / (1 - b) + root / (mpmath.cbrt(2) * (1 - b) ** 2)
    assert optimal_share(epsilon) == pytest.approx(float(published), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1, 1000, 500_000, 2_000_000, 8_000_000])
def test_each_query_has_the_variance_of_the_best_staircase(epsilon):
    size = 2**30
    variance, covariance = hourglass_moments(hourglass(size, epsilon))
    assert variance == pytest.approx(staircase_variance(staircase(size, epsilon)), rel=1e-7)
    assert abs(covariance) < 1e-7 * variance


@pytest.mark.parametrize(
    ("epsilon", "most"), [(1_000_000, 0.96), (2_000_000, 0.85), (4_000_000, 0.53), (8_000_000, 0.11)]
)
def test_its_variance_against_independent_laplace_noise_on_both_queries(epsilon, most):
    """What `transformed` adds at the same price: discrete Laplace of scale 2^30 / epsilon on either query."""
    scale = 2**30 / (epsilon / 1e6)
    laplace = 0.5 / math.sinh(0.5 / scale) ** 2
    variance, _ = hourglass_moments(hourglass(2**30, epsilon))
    assert variance / laplace <= most
    assert variance / laplace == pytest.approx(most, rel=0.02)


@pytest.mark.parametrize("epsilon", [300_000, 2_000_000])
def test_no_other_step_has_a_smaller_variance(epsilon):
    variances = {step: hourglass_moments(noise(150, epsilon, step))[0] for step in range(151)}
    best = min(variances, key=variances.__getitem__)
    assert abs(best - hourglass_step(300, epsilon)) <= 2


@pytest.mark.parametrize("tilt", [-1.0, -0.3, 0.0, 0.4, 1.0])
@pytest.mark.parametrize("epsilon", [400_000, 3_000_000])
def test_the_pivots_tail_equals_its_sum(epsilon, tilt):
    """On a grid of half = 400, where the law of v as a continuous number is off by half a cell of 1/400."""
    shape = noise(400, epsilon, hourglass_step(800, epsilon))
    b = math.exp(-epsilon / 1e6)
    v = np.arange(-60_000, 60_001)
    mass, tails = 0.0, np.zeros(4)
    thresholds = np.array([0.3, 1.0, 2.0, 4.0]) * 400 / min(epsilon / 1e6, 1.0)
    for u in range(101):
        blocks = np.maximum(np.ceil((np.abs(v) - shape.step - u * 400) / 800), 0)
        # The law is symmetric: (u, v) and (-u, -v) have one weight and one pivot.
        weights = b ** (u + 2 * blocks) * (1 if u == 0 else 2)
        mass += weights.sum()
        pivot = np.abs(tilt * 400 * u + v)
        tails += [weights[pivot > x].sum() for x in thresholds]
    for x, tail in zip(thresholds, tails / mass, strict=True):
        assert pivot_tail(shape, tilt, float(x)) == pytest.approx(tail, abs=2e-3)


def test_the_pivots_tail_is_a_tail():
    shape = hourglass(2**30, 1_000_000)
    assert pivot_tail(shape, 0.3, 0.0) == pytest.approx(1.0)
    values = [pivot_tail(shape, 0.3, x * 2**28) for x in range(60)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1e-4


def test_the_pivots_variance_is_that_of_its_noise():
    shape = hourglass(2**30, 1_500_000)
    variance, _ = hourglass_moments(shape)
    for p in (0.0, 0.2, 0.5):
        x = np.linspace(0, 40 * 2**30, 4001)
        tail = np.array([pivot_tail(shape, 1 - 2 * p, value) for value in x])
        second = np.trapezoid(2 * x * tail, x)
        assert second == pytest.approx(((1 - p) ** 2 + p**2) * variance, rel=1e-3)


def test_small_epsilons_have_the_same_pivot_stretched():
    wide, narrow = hourglass(2**30, 10_000), hourglass(2**30, 40_000)
    for tilt in (0.0, 0.5, 1.0):
        for x in (0.5, 1.0, 3.0):
            first = pivot_tail(wide, tilt, x * 2**30 / 0.01)
            assert first == pytest.approx(pivot_tail(narrow, tilt, x * 2**30 / 0.04), abs=3e-4)


@pytest.mark.parametrize(("tilt", "x"), [(1.1, 1.0), (-1.1, 1.0), (0.0, -1.0)])
def test_a_pivot_that_is_none_is_refused(tilt, x):
    with pytest.raises(InternalFault):
        pivot_tail(hourglass(2**30, 1_000_000), tilt, x)


def test_the_step_never_gets_too_narrow_to_be_drawn():
    bits = random.Random(1).getrandbits
    for epsilon in (12_000_000, 10**12):
        shape = hourglass(2**30, epsilon)
        assert shape.step == 2**24
        first, second = draw_hourglass(shape, bits)
        assert first + second == 0
        assert abs(first) <= 2**24
    with pytest.raises(InternalFault):
        draw_hourglass(noise(2**29, 10**12, 2**18), bits)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "step"), [(0, 1, 0), (3, 1, 1), (4, 0, 1), (4, 1, 3), (4, 1, -1), (-2, 1, 0)]
)
def test_impossible_parameters_are_refused(sensitivity, epsilon, step):
    shape = Hourglass(sensitivity=sensitivity, epsilon=epsilon, step=step)
    with pytest.raises(InternalFault):
        draw_hourglass(shape, random.Random(1).getrandbits)
    with pytest.raises(InternalFault):
        hourglass_moments(shape)
    with pytest.raises(InternalFault):
        pivot_tail(shape, 0.0, 1.0)
