"""The price of an exponential draw in mu^2: high precision, all laws of a range, neighbors, dp-accounting."""

import itertools
import math
from fractions import Fraction
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from dither.device.gaussian import epsilon_at
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_ndtr, ndtr, ndtri

from app.accounting.bounded_range import ROOT_PI_8, range_mu2
from app.accounting.gaussian import mu2_cost
from app.core.errors import InternalFault


def exact(moved: Fraction) -> mpmath.mpf:
    """(2 Phi^-1(sigma(r / 2)))^2 by a root of the lower tail, to 60 digits."""
    half = mpmath.mpf(moved.numerator) / moved.denominator / 2
    if half < 20:
        return 8 * mpmath.erfinv(mpmath.tanh(half / 2)) ** 2
    tail = -mpmath.log1p(mpmath.exp(half))
    return (
        4
        * mpmath.findroot(
            lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2) - tail, mpmath.sqrt(2 * half)
        )
        ** 2
    )


@settings(max_examples=60, deadline=None)
@given(exponent=st.floats(-14, 4), digits=st.integers(10**6, 10**7))
@example(exponent=4, digits=10**6)
@example(exponent=-9, digits=10**6)
@example(exponent=math.log10(1200), digits=10**6)
def test_the_price_is_never_below_the_exact_one_and_less_than_a_micro_above(exponent: float, digits: int):
    moved = min(Fraction(round(10 ** (exponent + 20)) * digits, 10**27), Fraction(10_000))
    with mpmath.workdps(60):
        price, true = range_mu2(moved), exact(moved)
        above = mpmath.mpf(price.numerator) / price.denominator - true
        assert 0 <= above < mpmath.mpf(10) ** -18
        assert 0 <= mu2_cost(price) - mpmath.ceil(true * 10**6) <= 1
        assert price <= (ROOT_PI_8 * moved) ** 2 + Fraction(1, 10**18)


def test_no_law_of_the_same_range_costs_more_and_the_even_one_costs_as_much():
    """g(x + r) - g(x) for log-odds x from -40 to 40: the largest is at x = -r / 2."""

    def quantile(odds: np.ndarray) -> np.ndarray:
        return np.where(odds < 0, ndtri(expit(odds)), -ndtri(expit(-odds)))

    for moved in (0.01, 0.3, 1.0, 4.0, 20.0):
        x = np.linspace(-40, 40, 40_001) - moved / 2
        mu = math.sqrt(range_mu2(Fraction(moved)))
        found = quantile(x + moved) - quantile(x)
        assert found.max() <= mu + 1e-12
        assert found.max() == pytest.approx(mu, abs=1e-9)
        assert x[found.argmax()] == pytest.approx(-moved / 2, abs=0.01)


def trade_off(first: np.ndarray, second: np.ndarray) -> list[tuple[float, float]]:
    """Errors of the best tests: choices in the order of their likelihood ratio."""
    order = np.argsort(first / second)
    return list(zip(np.cumsum(first[order]), 1 - np.cumsum(second[order]), strict=True))


@pytest.mark.long
def test_every_trade_off_of_four_choices_lies_above_that_of_the_price_and_some_touch_it():
    """Scores of four choices, against all whose moves have a range of 2, 3 or 6 at a scale of 2."""
    least: dict[int, float] = {}
    normal = NormalDist()
    for moves in itertools.product(range(7), repeat=4):
        moved = max(moves) - min(moves)
        if moved not in (2, 3, 6) or min(moves):
            continue
        mu = math.sqrt(range_mu2(Fraction(moved, 2)))
        for scores in itertools.product((0, 3, 5), repeat=4):
            laws = [np.exp(np.array(s) / 2) for s in (scores, np.add(scores, moves))]
            first, second = (law / law.sum() for law in laws)
            for one, other in trade_off(first, second)[:-1]:
                allowed = normal.cdf(normal.inv_cdf(1 - one) - mu)
                least[moved] = min(least.get(moved, 1.0), other - allowed)
    assert all(gap >= -1e-12 for gap in least.values())
    assert all(gap < 0.01 for gap in least.values()), "a lower price would be below some of them"
    assert set(least) == {2, 3, 6}


def test_permute_and_flip_is_not_covered_by_the_price():
    """The control: its ratios have no bounded range, so draws of that law would be charged too little."""
    # Two choices; the better one of the first neighbor is the worse one of the second by the same.
    moved = 4.0
    worse = math.exp(-moved / 2) / 2
    assert (2 * ndtri(1 - worse)) ** 2 > 1.5 * range_mu2(Fraction(moved))


@pytest.mark.parametrize("moved", [0.05, 0.5, 2.0])
def test_dp_accounting_finds_no_more_than_the_price_of_many_draws(moved: float):
    """200 draws of the worst law: at most the epsilon of 200 times mu^2, which is exact for one draw alone.

    Losses of r / 2 either way add up to about a mu of r / 2 a draw, 0.8 of the price.
    """
    odds = math.exp(moved / 2)
    loss = privacy_loss_distribution.from_two_probability_mass_functions(
        {0: math.log(odds / (1 + odds)), 1: -math.log(1 + odds)},
        {0: -math.log(1 + odds), 1: math.log(odds / (1 + odds))},
        value_discretization_interval=moved / 1000,
    )
    draws = 200
    found = loss.self_compose(draws).get_epsilon_for_delta(1e-6)
    priced = epsilon_at(mu2_cost(draws * range_mu2(Fraction(moved))), 10**6) / 1e6
    assert found <= priced * (1 + 1e-3)
    assert found >= 0.6 * priced
    half = epsilon_at(mu2_cost(draws * range_mu2(Fraction(moved)) / 4), 10**6) / 1e6
    assert found > half, "the control: half of the range is caught"


def test_pure_epsilon_costs_as_much_as_twice_its_range():
    """The kink of an epsilon is that of the even law: 2 Phi^-1(e^eps / (1 + e^eps))."""
    for epsilon in (0.1, 1.0, 3.0):
        mu = 2 * NormalDist().inv_cdf(1 / (1 + math.exp(-epsilon)))
        assert float(range_mu2(2 * Fraction(epsilon))) == pytest.approx(mu**2, rel=1e-9)
        for x in np.linspace(1e-6, 1 - 1e-6, 1001):
            pure = max(0.0, 1 - math.exp(epsilon) * x, math.exp(-epsilon) * (1 - x))
            assert pure >= ndtr(ndtri(1 - x) - mu) - 1e-12
        assert log_ndtr(-mu / 2) == pytest.approx(-math.log1p(math.exp(epsilon)))


@pytest.mark.parametrize("moved", [Fraction(-1), Fraction(10_001)])
def test_a_range_without_a_price_is_refused(moved: Fraction):
    with pytest.raises(InternalFault):
        range_mu2(moved)
