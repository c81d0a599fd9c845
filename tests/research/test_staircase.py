"""Staircase noise: its law, its loss, its variance and its best step."""

import math
import random

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InternalFault
from dither_research import staircase as module
from dither_research.staircase import (
    DiscreteStaircase,
    draw_staircase,
    staircase,
    staircase_step,
    staircase_variance,
)
from tests.support.decisions import one_round


def noise(sensitivity=4, epsilon=700_000, step=3):
    return DiscreteStaircase(sensitivity=sensitivity, epsilon=epsilon, step=step)


def level(z, noise):
    """The definition: how many steps down z lies."""
    return 0 if abs(z) < noise.step else 1 + (abs(z) - noise.step) // noise.sensitivity


@pytest.mark.parametrize(("sensitivity", "step"), [(1, 1), (4, 1), (4, 3), (5, 5)])
def test_a_draw_has_exactly_the_staircase_law(monkeypatch, sensitivity, step):
    shape = noise(sensitivity, 700_000, step)
    law = one_round(
        monkeypatch,
        module,
        lambda: draw_staircase(shape, lambda count: 0),
        restarts=lambda before, request: request[0] == "bernoulli_exp" and len(before) > 0,
    )
    b = math.exp(-0.7)
    total = 2 * step - 1 + 2 * sensitivity * b / (1 - b)
    for z in range(-5 * sensitivity, 5 * sensitivity + 1):
        assert law.probability(z) == pytest.approx(b ** level(z, shape) / total, rel=1e-12)


@given(sensitivity=st.integers(1, 40), share=st.floats(0, 1), data=st.data())
def test_any_move_up_to_the_sensitivity_costs_exactly_epsilon(sensitivity, share, data):
    shape = noise(sensitivity, 1, max(1, round(share * sensitivity)))
    move = data.draw(st.integers(1, 3 * sensitivity))
    reach = range(-6 * sensitivity, 6 * sensitivity + 1)
    largest = max(abs(level(z, shape) - level(z - move, shape)) for z in reach)
    assert largest == -(-move // sensitivity)


@pytest.mark.parametrize("epsilon", [100_000, 1_000_000, 3_000_000])
def test_no_other_step_has_a_smaller_variance(epsilon):
    variances = {step: staircase_variance(noise(200, epsilon, step)) for step in range(1, 201)}
    best = min(variances, key=variances.__getitem__)
    assert abs(best - staircase_step(200, epsilon)) <= 1


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "step"), [(1, 1_500_000, 1), (7, 300_000, 4), (50, 2_000_000, 9)]
)
def test_the_variance_equals_the_sum_that_defines_it(sensitivity, epsilon, step):
    shape = noise(sensitivity, epsilon, step)
    b = math.exp(-epsilon / 1e6)
    weights = {z: b ** level(z, shape) for z in range(-200 * sensitivity, 200 * sensitivity + 1)}
    second = sum(w * z * z for z, w in weights.items()) / sum(weights.values())
    assert staircase_variance(shape) == pytest.approx(second, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 2, 4, 8])
def test_the_variance_is_the_papers_in_the_limit_of_a_fine_grid(epsilon):
    """V* = (2^(-2/3) b^(2/3) (1 + b)^(2/3) + b) / (1 - b)^2."""
    size = 2**30
    with mpmath.workdps(40):
        b = mpmath.exp(-mpmath.mpf(epsilon))
        third = mpmath.mpf(2) / 3
        limit = (2**-third * b**third * (1 + b) ** third + b) / (1 - b) ** 2
    variance = staircase_variance(staircase(size, round(epsilon * 1e6)))
    assert variance / size**2 == pytest.approx(float(limit), rel=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "most"), [(1_000_000, 0.96), (2_000_000, 0.85), (4_000_000, 0.53), (8_000_000, 0.11)]
)
def test_it_beats_laplace_noise_of_the_same_price(epsilon, most):
    laplace = 2 * (2**30 / (epsilon / 1e6)) ** 2
    assert staircase_variance(staircase(2**30, epsilon)) / laplace < most


def test_the_step_never_gets_too_narrow_to_be_drawn():
    for epsilon in (12_000_000, 100_000_000, 10**12):
        shape = staircase(2**30, epsilon)
        assert shape.step == 2**24
        assert abs(draw_staircase(shape, random.Random(1).getrandbits)) < 2**24
    with pytest.raises(InternalFault):
        draw_staircase(noise(2**30, 10**12, 2**19), random.Random(1).getrandbits)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "step"), [(0, 1, 1), (4, 0, 1), (4, 1, 0), (4, 1, 5), (4, -1, 1), (-4, 1, -4)]
)
def test_impossible_parameters_are_refused(sensitivity, epsilon, step):
    shape = noise(sensitivity, epsilon, step)
    with pytest.raises(InternalFault):
        draw_staircase(shape, random.Random(1).getrandbits)
    with pytest.raises(InternalFault):
        staircase_variance(shape)
