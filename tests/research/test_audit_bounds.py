"""Lower bounds on epsilon: they stay below the truth, and reach it where there is something to find."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from app.core.errors import InternalFault
from dither_research.audit_bounds import audited_epsilon, share_bounds

SIZE = 100_000


def answers(rng, epsilon, size=SIZE):
    """Binary randomized response about 0 and about 1."""
    lie = 1 / (1 + math.exp(epsilon))
    return (rng.random(size) < lie).astype(np.int64), (rng.random(size) >= lie).astype(np.int64)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (10, 10), (3, 50), (999, 1000), (5000, 10_000)])
def test_bounds_on_a_share_are_those_of_scipy(successes, trials):
    ours = share_bounds(successes, trials, 1e-6)
    theirs = binomtest(successes, trials).proportion_ci(confidence_level=1 - 2e-6, method="exact")
    assert ours == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_bound_stays_below_the_truth_and_comes_near(epsilon):
    rng = np.random.default_rng(20301121)
    for _ in range(10):
        found = audited_epsilon(*answers(rng, epsilon)).epsilon
        assert 0.9 * epsilon - 0.07 < found < epsilon


def test_ten_percent_too_much_is_caught():
    rng = np.random.default_rng(20301121)
    found = [audited_epsilon(*answers(rng, 1.1, 2 * SIZE)).epsilon for _ in range(10)]
    assert min(found) > 1.0


def test_delta_is_taken_off():
    """A mechanism that tells the truth outright with probability 1 % and nothing otherwise: (0, .01)."""
    rng = np.random.default_rng(20301121)
    told = rng.random(SIZE) < 0.01
    first, second = np.where(told, 1, 0), np.where(told, 2, 0)
    assert audited_epsilon(first, second).epsilon > 3
    assert audited_epsilon(first, second, delta=0.012).epsilon == 0
    assert audited_epsilon(first, second, delta=0.005).epsilon > 2


def test_equal_inputs_show_nothing():
    rng = np.random.default_rng(20301121)
    first, second = rng.integers(0, 500, (2, SIZE))
    assert audited_epsilon(first, second).epsilon == 0


@pytest.mark.long
def test_the_event_is_chosen_on_other_draws_than_the_bound():
    """Every output has a cell of its own: whatever looks likely on the first half tells nothing."""
    first, second = np.arange(SIZE), SIZE + np.arange(SIZE)
    found = audited_epsilon(first, second)
    assert found.epsilon == 0
    assert found.draws == SIZE // 2


def test_either_direction_is_found():
    rng = np.random.default_rng(20301121)
    told = np.where(rng.random(SIZE) < 0.2, 1, 0)
    silent = np.zeros(SIZE, dtype=np.int64)
    assert audited_epsilon(told, silent).epsilon > 5
    assert audited_epsilon(silent, told).epsilon > 5


@pytest.mark.parametrize(("first", "second"), [(1, 1), (4, 5)])
def test_too_few_or_unpaired_outputs_are_refused(first, second):
    with pytest.raises(InternalFault):
        audited_epsilon(np.zeros(first, dtype=np.int64), np.zeros(second, dtype=np.int64))
