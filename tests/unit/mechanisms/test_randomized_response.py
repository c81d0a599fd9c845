"""Randomized response: its channel, its sampler, and counting through it."""

import math

import mpmath
import numpy as np
import pytest
from dither.device import response as module
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InternalFault
from app.mechanisms.randomized_response import KaryChannel, response_variance
from tests.support.decisions import one_round


@given(categories=st.integers(2, 50), epsilon=st.integers(1, 40_000_000))
def test_the_channel_sums_to_one_and_costs_epsilon(categories, epsilon):
    channel = KaryChannel(categories=categories, epsilon=epsilon)
    assert channel.truth + (categories - 1) * channel.lie == pytest.approx(1)
    assert math.log(channel.truth / channel.lie) == pytest.approx(epsilon / 1e6, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("epsilon", [1, 1000, 1_000_000, 30_000_000])
def test_the_channel_equals_the_textbook_form_in_high_precision(epsilon):
    with mpmath.workdps(60):
        power = mpmath.exp(mpmath.mpf(epsilon) / 10**6)
        expected = [power / (power + 3), 1 / (power + 3), (power - 1) / (power + 3)]
    channel = KaryChannel(categories=4, epsilon=epsilon)
    for ours, theirs in zip((channel.truth, channel.lie, channel.contrast), expected, strict=True):
        assert ours == pytest.approx(float(theirs), rel=1e-12)


@pytest.mark.parametrize(("categories", "category"), [(2, 0), (2, 1), (3, 1), (6, 5)])
def test_a_draw_has_exactly_the_channels_law(monkeypatch, categories, category):
    channel = KaryChannel(categories=categories, epsilon=1_300_000)
    law = one_round(
        monkeypatch,
        module,
        lambda: module.respond(category, categories, 1_300_000, lambda count: 0),
        restarts=lambda before, request: request[0] == "below" and len(before) > 0,
    )
    for answer in range(categories):
        expected = channel.truth if answer == category else channel.lie
        assert law.probability(answer) == pytest.approx(expected, rel=1e-12)


def test_the_variance_is_that_of_the_coins():
    """20,000 worlds of 50 answers; the mean square of 20,000 estimates has a standard error of 1 %."""
    rng = np.random.default_rng(20301121)
    channel = KaryChannel(categories=3, epsilon=1_000_000)
    true, people = 20, 50
    observed = rng.binomial(true, channel.truth, 20_000) + rng.binomial(people - true, channel.lie, 20_000)
    estimates = (observed - channel.lie * people) / channel.contrast
    expected = people * response_variance(channel, true / people)
    assert float(np.mean((estimates - true) ** 2)) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("categories", "epsilon"), [(1, 1), (0, 1), (2, 0), (2, -1)])
def test_a_channel_needs_two_categories_and_some_epsilon(categories, epsilon):
    with pytest.raises(InternalFault):
        KaryChannel(categories=categories, epsilon=epsilon)
