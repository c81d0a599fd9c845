"""The pure epsilon that mu^2 pays for: closed form, all tests of two values, and a planted bug."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dither.device.choices import ChoiceRandomizer, choice_points
from dither.device.gaussian import micro_mu2, pure_epsilon
from scipy.stats import norm

MICRO, DELTA = 1_000_000, 1_000_000
AMOUNTS = (1, 7, 1_000, 56_028, 419_549, 1_000_000, 4_001_782, 25_000_000, 400_000_000)


@pytest.mark.parametrize("mu2", AMOUNTS)
def test_it_is_where_the_two_trade_offs_meet_rounded_down(mu2: int) -> None:
    """The independent source is scipy's Normal law; 1e-9 are its digits."""
    mu = math.sqrt(mu2 / MICRO)
    exact = (norm.logcdf(mu / 2) - norm.logcdf(-mu / 2)) * MICRO
    assert pure_epsilon(mu2) <= exact * (1 + 1e-9) < pure_epsilon(mu2) + 1 + 2e-9 * exact


def test_nothing_buys_nothing_and_more_buys_more() -> None:
    assert pure_epsilon(0) == 0
    assert [pure_epsilon(mu2) for mu2 in AMOUNTS] == sorted({pure_epsilon(mu2) for mu2 in AMOUNTS})
    with pytest.raises(ValueError, match="not negative"):
        pure_epsilon(-1)


@pytest.mark.parametrize("mu2", AMOUNTS)
def test_it_is_at_most_the_epsilon_at_a_delta_that_bought_the_mu2(mu2: int) -> None:
    """A report at delta 0 promises more than the same epsilon at a delta, so it gets less of it."""
    for epsilon in (MICRO // 10, MICRO, 10 * MICRO):
        assert pure_epsilon(micro_mu2(epsilon, DELTA)) < epsilon


def best_tests(device: ChoiceRandomizer, epsilon: int) -> list[tuple[float, float]]:
    """Both error rates of every most powerful test of two choices, off the exact law of reports."""
    reports = device.range(epsilon)

    def law(true: int) -> list[Fraction]:
        odds = [reports.kept if place == true else reports.other for place in range(device.count)]
        if reports.is_single:
            return odds
        sets = range(1 << device.count)
        return [
            math.prod((p if code >> place & 1 else 1 - p for place, p in enumerate(odds)), start=Fraction(1))
            for code in sets
        ]

    one, other = law(0), law(1)
    order = sorted(range(len(one)), key=lambda report: one[report] / other[report])
    found, alpha, beta = [(0.0, 1.0)], Fraction(0), Fraction(1)
    for report in order:
        alpha, beta = alpha + one[report], beta - other[report]
        found.append((float(alpha), float(beta)))
    return found


def is_kept(device: ChoiceRandomizer, epsilon: int, mu2: int) -> bool:
    """Whether no test of two choices does better than the easiest one of mu^2."""
    mu = math.sqrt(mu2 / MICRO)
    # Between two of these tests the trade-off is a line, and that of mu^2 is convex: the corners decide.
    return all(beta >= norm.cdf(norm.isf(alpha) - mu) - 1e-12 for alpha, beta in best_tests(device, epsilon))


@pytest.mark.parametrize("count", [2, 3, 5, 9])
@pytest.mark.parametrize("mu2", [56_028, 419_549, 1_000_000, 4_001_782])
def test_no_test_of_two_choices_does_better_than_mu2_allows(count: int, mu2: int) -> None:
    device = ChoiceRandomizer(count)
    assert len(choice_points(count)) == count
    assert is_kept(device, pure_epsilon(mu2), mu2)


@pytest.mark.parametrize("mu2", [56_028, 419_549, 1_000_000, 4_001_782])
def test_a_hundredth_more_is_caught(mu2: int) -> None:
    """Randomized response of two choices is the easiest pure mechanism to tell apart."""
    assert not is_kept(ChoiceRandomizer(2), pure_epsilon(mu2) * 101 // 100, mu2)
    assert not is_kept(ChoiceRandomizer(2), int(np.sqrt(mu2 / MICRO) * MICRO), mu2)
