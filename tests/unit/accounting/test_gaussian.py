"""Gaussian noise: the analytic formula, its two readings, and what discreteness changes."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from app.accounting import gaussian
from app.accounting.gaussian import (
    DISCRETE_LOSS,
    calibrated_sigma,
    effective_variance,
    gaussian_cost,
    gaussian_delta,
    gaussian_epsilon,
)
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE


def exact_delta(epsilon, mu):
    """The formula itself, with digits to spare."""
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@settings(max_examples=60)
@given(log_mu=st.floats(-7, 2.5), quantile=st.floats(-6, 7))
def test_delta_equals_the_formula_in_high_precision(log_mu, quantile):
    mu = 10**log_mu
    epsilon = max(mu * mu / 2 + mu * quantile, 0.0)
    first, _ = gaussian._delta_terms(epsilon, mu)
    with mpmath.workdps(60):
        error = abs(gaussian_delta(epsilon, mu) - float(exact_delta(epsilon, mu)))
    assert error <= gaussian._error(epsilon, mu) * first


@pytest.mark.parametrize(("epsilon", "mu"), [(0.1, 0.1), (1, 0.25), (1, 1), (3, 1.5), (10, 4)])
def test_delta_agrees_with_dp_accounting(epsilon, mu):
    loss = privacy_loss_mechanism.GaussianPrivacyLoss(1 / mu)
    assert gaussian_delta(epsilon, mu) == pytest.approx(loss.get_delta_for_epsilon(epsilon), rel=1e-9)


@settings(max_examples=60)
@given(log_mu=st.floats(-6, 2.5), log_delta=st.floats(0, 11.9))
def test_the_cost_keeps_delta_and_a_little_less_would_not(log_mu, log_delta):
    mu, delta = 10**log_mu, int(10**log_delta)
    cost = gaussian_cost(Fraction(mu) ** 2, delta)
    with mpmath.workdps(60):
        assert exact_delta(mpmath.mpf(cost) / 10**6, mu) * 10**12 <= delta
        less = mpmath.mpf(cost - 2) / 10**6 * (1 - mpmath.mpf(10) ** -10)
        if less > 0:
            assert exact_delta(less, mu) * 10**12 > delta


def test_a_cost_may_be_nothing_where_delta_pays_for_all():
    assert gaussian_cost(Fraction(0), 1) == 0
    mu = 2 * float(mpmath.erfinv(1e-6)) * math.sqrt(2)  # delta at epsilon 0 is 1e-6
    assert gaussian_cost(Fraction(mu) ** 2, 1_000_010) == 0
    assert gaussian_cost(Fraction(mu) ** 2, 999_990) > 0


@given(epsilon=st.integers(1, 10**9), delta=st.integers(1, 10**12 - 1))
@settings(max_examples=60)
def test_a_calibrated_sigma_costs_no_more_than_asked_and_hardly_less(epsilon, delta):
    sigma = calibrated_sigma(epsilon, delta, GRID_SIZE)
    squares = Fraction(GRID_SIZE) ** 2 / effective_variance(sigma)
    assert gaussian_cost(squares, delta) <= epsilon
    # Hardly less, where sigma is not a few grid steps and delta is not all but certain: a double next to 1
    # knows the small probability that is left to few digits only.
    if sigma > 1e4 and delta < 9 * 10**11:
        assert gaussian_cost(squares * Fraction(1.0001) ** 2, delta) > epsilon * (1 - 1e-9)
        assert gaussian_epsilon(math.sqrt(float(squares)), delta / 1e12) == pytest.approx(
            epsilon / 1e6, rel=1e-6, abs=1.1e-6
        )


@pytest.mark.parametrize(("delta", "ratio"), [(1e-7, 0.818), (1e-5, 0.770)])
def test_the_analytic_sigma_is_a_fraction_of_the_classic_one_at_epsilon_one(delta, ratio):
    classic = math.sqrt(2 * math.log(1.25 / delta))
    sigma = calibrated_sigma(1_000_000, round(delta * 1e12), GRID_SIZE) / GRID_SIZE
    assert sigma / classic == pytest.approx(ratio, abs=0.001)


@pytest.mark.parametrize(
    ("delta", "last"), [(1e-1, 5.74), (1e-2, 6.77), (1e-3, 7.46), (1e-5, 8.4), (1e-7, 9.1), (1e-9, 9.6)]
)
def test_the_classic_calibration_is_not_private_beyond_a_certain_epsilon(delta, last):
    """sqrt(2 ln(1.25 / delta)) / epsilon is proved up to epsilon = 1. It happens to hold a little longer."""

    def kept(epsilon):
        return gaussian_delta(epsilon, epsilon / math.sqrt(2 * math.log(1.25 / delta))) <= delta

    assert kept(1.0)
    assert kept(last - 0.06)
    assert not kept(last + 0.06)
    assert not kept(2 * last)
    ours = calibrated_sigma(round((last + 0.06) * 1e6), round(delta * 1e12), GRID_SIZE) / GRID_SIZE
    assert ours > math.sqrt(2 * math.log(1.25 / delta)) / (last + 0.06)


# -- discrete noise


def test_a_discrete_gaussian_of_parameter_three_is_normalized_alike_about_every_point():
    """The argument for sigma^2 - 9: this sum does not depend on x, so rounding with it changes no ratio."""
    with mpmath.workdps(100):
        sums = [
            mpmath.fsum(mpmath.exp(-((z - mpmath.mpf(x)) ** 2) / 18) for z in range(-80, 81))
            for x in (0, 0.1, 0.25, 0.5, 0.77)
        ]
        assert max(sums) / min(sums) - 1 < mpmath.mpf(10) ** -76


def discrete_delta(epsilon, moves, sigmas):
    """Exact up to double precision: sum over integers of max(0, P(y) - e^epsilon P(y - move))."""
    reach = [np.arange(-12 * int(s), 12 * int(s) + d + 1) for s, d in zip(sigmas, moves, strict=True)]
    density, shifted = np.ones(1), np.ones(1)
    for y, s, d in zip(reach, sigmas, moves, strict=True):
        norm = np.exp(-(y**2) / (2 * s * s)).sum()
        density = np.multiply.outer(density, np.exp(-(y**2) / (2 * s * s)) / norm).ravel()
        shifted = np.multiply.outer(shifted, np.exp(-((y - d) ** 2) / (2 * s * s)) / norm).ravel()
    return float(np.maximum(shifted - math.exp(epsilon) * density, 0.0).sum())


@pytest.mark.parametrize("delta", [10, 10**6, 10**9])
@pytest.mark.parametrize("move", [1, 40, 300])
def test_the_cost_covers_discrete_noise_on_one_query(move, delta):
    sigma = 70.0
    cost = gaussian_cost(Fraction(move) ** 2 / effective_variance(sigma), delta)
    assert discrete_delta(cost / 1e6, [move], [sigma]) * 1e12 <= delta + 1e-2


@pytest.mark.parametrize("delta", [10**6, 10**9])
def test_the_cost_covers_discrete_noise_on_two_queries(delta):
    moves, sigmas = [50, 90], [70.0, 110.0]
    squares = sum(
        (Fraction(m) ** 2 / effective_variance(s) for m, s in zip(moves, sigmas, strict=True)), Fraction(0)
    )
    cost = gaussian_cost(squares, delta)
    assert discrete_delta(cost / 1e6, moves, sigmas) * 1e12 <= delta + 1e-2
    too_little = cost / 1e6 * 0.98
    assert discrete_delta(too_little, moves, sigmas) * 1e12 > delta


def test_what_discreteness_costs_is_negligible_on_the_grid():
    sigma = float(2**20)
    assert 1 - float(effective_variance(sigma)) / sigma**2 == pytest.approx(DISCRETE_LOSS / 2**40, rel=1e-3)


def test_the_cost_agrees_with_dp_accountings_discrete_gaussian():
    sigma, move, delta = 200.0, 150, 10**6
    cost = gaussian_cost(Fraction(move) ** 2 / effective_variance(sigma), delta)
    loss = privacy_loss_mechanism.DiscreteGaussianPrivacyLoss(sigma, sensitivity=move)
    assert loss.get_delta_for_epsilon(cost / 1e6) <= delta * 1e-12
    assert loss.get_delta_for_epsilon(cost / 1e6 * 0.99) > delta * 1e-12


# -- refusals


@pytest.mark.parametrize("delta", [0, -1, 10**12])
def test_a_delta_that_is_none_is_refused(delta):
    with pytest.raises(InternalFault):
        gaussian_cost(Fraction(1), delta)
    with pytest.raises(InternalFault):
        calibrated_sigma(1_000_000, delta, 1)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0, 1), (-1, 1), (1, 0)])
def test_no_sigma_is_made_for_an_impossible_price(epsilon, sensitivity):
    with pytest.raises(InternalFault):
        calibrated_sigma(epsilon, 1, sensitivity)


@pytest.mark.parametrize("sigma", [0.0, 63.9, math.inf, math.nan, -100.0])
def test_a_sigma_without_a_price_is_refused(sigma):
    with pytest.raises(InternalFault):
        effective_variance(sigma)


def test_noise_too_small_to_price_is_refused():
    with pytest.raises(InternalFault):
        gaussian_cost(Fraction(10) ** 13, 1)
    with pytest.raises(InternalFault):
        gaussian_cost(Fraction(-1), 1)
