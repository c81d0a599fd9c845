"""Gaussian noise: mu^2 against the formula in high precision and dp-accounting, and discreteness."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dither.device.gaussian import (
    DISCRETE_LOSS,
    epsilon_at,
    gaussian_sigma,
    micro_mu2,
)
from dp_accounting.pld import privacy_loss_mechanism
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.accounting.gaussian import effective_variance, mu2_cost
from app.core.epsilon import amount_of, epsilon_of
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE

DELTA = 10**6


def exact_delta(epsilon, mu):
    """The formula itself, with digits to spare."""
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def is_kept(mu2, epsilon, delta):
    """Whether mu2 [1e-6] keeps epsilon [micro] at delta [1e-12]."""
    if mu2 == 0:
        return True
    # Both terms are below 1 and may differ by less than 1e-60 only where delta is far below 1e-12.
    with mpmath.workdps(90):
        mu = mpmath.sqrt(mpmath.mpf(mu2) / 10**6)
        return exact_delta(mpmath.mpf(epsilon) / 10**6, mu) * 10**12 <= delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "mu2"), [(1, 1e-6, 0.0560), (3, 1e-6, 0.4195), (10, 1e-5, 4.0018)]
)
def test_published_values(epsilon, delta, mu2):
    assert micro_mu2(epsilon * 10**6, round(delta * 1e12)) / 1e6 == pytest.approx(mu2, abs=5e-5)


@settings(max_examples=150, deadline=None)
@given(epsilon=st.floats(0, 9), delta=st.floats(0, 11.99))
@example(epsilon=0, delta=0)
@example(epsilon=9, delta=11.99)
def test_what_an_epsilon_buys_is_the_largest_mu2_that_keeps_delta(epsilon, delta):
    """Never above the exact value, and one millionth more is above it."""
    micro, units = int(10**epsilon), int(10**delta)
    mu2 = micro_mu2(micro, units)
    assert is_kept(mu2, micro, units)
    assert not is_kept(mu2 + 1, micro, units)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(mu2=st.floats(0, 9), delta=st.floats(0, 11.99))
@example(mu2=0, delta=11.99)
@example(mu2=9, delta=0)
def test_what_mu2_costs_is_the_least_epsilon_that_keeps_delta(mu2, delta):
    micro, units = int(10**mu2), int(10**delta)
    epsilon = epsilon_at(micro, units)
    assert is_kept(micro, epsilon, units)
    assert epsilon == 0 or not is_kept(micro, epsilon - 1, units)


@settings(max_examples=60, deadline=None)
@given(epsilon=st.integers(1, 10**9), delta=st.integers(1, 10**12 - 1))
def test_there_and_back_gains_nobody_anything(epsilon, delta):
    mu2 = micro_mu2(epsilon, delta)
    assert epsilon_at(mu2, delta) <= epsilon
    assert micro_mu2(epsilon_at(mu2, delta), delta) >= mu2


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1, 1e-6), (3, 1e-6), (10, 1e-5), (1, 1e-2)])
def test_dp_accounting_agrees(epsilon, delta):
    mu2 = micro_mu2(round(epsilon * 1e6), round(delta * 1e12)) / 1e6
    loss = privacy_loss_mechanism.GaussianPrivacyLoss(1 / math.sqrt(mu2))
    assert loss.get_delta_for_epsilon(epsilon) <= delta * (1 + 1e-9)
    more = privacy_loss_mechanism.GaussianPrivacyLoss(1 / math.sqrt(mu2 + 1e-6))
    assert more.get_delta_for_epsilon(epsilon) > delta * (1 - 1e-9)


def test_answers_add_up_as_dp_accounting_composes_them():
    """100 answers of a hundredth of (1, 1e-6) each are (1, 1e-6) together, by a composition of its own."""
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    each = micro_mu2(10**6, DELTA) // 100
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(1 / math.sqrt(each / 1e6)), 100))
    assert accountant.get_epsilon(1e-6) == pytest.approx(epsilon_at(100 * each, DELTA) / 1e6, rel=2e-3)
    # mu in place of mu^2 would let through ten times as many.
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(1 / math.sqrt(each / 1e6)), 900))
    assert accountant.get_epsilon(1e-6) > 3


def test_very_small_fractions_have_an_epsilon():
    """Weights of one person among millions: never less than the exact value."""
    for mu2 in (Fraction(1, 10**30), Fraction(1, 10**12), Fraction(7, 10**3)):
        epsilon = epsilon_at(mu2, 1000)
        assert is_kept(float(mu2), epsilon, 1000)


def test_delta_alone_may_pay_for_all():
    assert epsilon_at(0, 1) == 0
    mu = 2 * float(mpmath.erfinv(1e-6)) * math.sqrt(2)  # delta at epsilon 0 is 1e-6
    assert epsilon_at(Fraction(mu * mu) * 10**6, 1_000_010) == 0
    assert epsilon_at(Fraction(mu * mu) * 10**6, 999_990) > 0
    assert micro_mu2(0, 10**11) > 0


@given(mu2=st.integers(1, 10**12))
def test_a_report_costs_what_it_was_made_for(mu2):
    sigma = gaussian_sigma(mu2)
    assert mu2_cost(GRID_SIZE**2 / effective_variance(float(sigma))) <= mu2
    if sigma > 64:
        assert Fraction(GRID_SIZE**2 * 10**6, (sigma - 1) ** 2 - DISCRETE_LOSS) > mu2


def test_amounts_of_a_pure_study_are_epsilons():
    assert (amount_of(1_234_000, 0), epsilon_of(1_234_000, 0)) == (1_234_000, 1_234_000)
    assert amount_of(1_000_000, DELTA) == 56_028


@pytest.mark.parametrize(
    ("delta", "last"), [(1e-1, 5.74), (1e-2, 6.77), (1e-3, 7.46), (1e-5, 8.4), (1e-7, 9.1), (1e-9, 9.6)]
)
def test_the_classic_calibration_is_not_private_beyond_a_certain_epsilon(delta, last):
    """sqrt(2 ln(1.25 / delta)) / epsilon is proved up to epsilon = 1. It happens to hold a little longer."""

    def kept(epsilon):
        mu2 = epsilon**2 / (2 * math.log(1.25 / delta))
        return is_kept(mu2 * 10**6, epsilon * 10**6, round(delta * 10**12))

    assert kept(1.0)
    assert kept(last - 0.06)
    assert not kept(last + 0.06)
    assert not kept(2 * last)


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
    cost = mu2_cost(Fraction(move) ** 2 / effective_variance(sigma))
    assert discrete_delta(epsilon_at(cost, delta) / 1e6, [move], [sigma]) * 1e12 <= delta + 1e-2


@pytest.mark.long
@pytest.mark.parametrize("delta", [10**6, 10**9])
def test_the_cost_covers_discrete_noise_on_two_queries(delta):
    """Brute force over all moves of a pair: the price is that of the worst, and 2 % less is not enough."""
    sigmas = [70.0, 110.0]
    corners = list(itertools.product((-50, 0, 50), (-90, 0, 90)))
    costs = [
        mu2_cost(
            sum(
                (Fraction(m) ** 2 / effective_variance(s) for m, s in zip(corner, sigmas, strict=True)),
                Fraction(0),
            )
        )
        for corner in corners
    ]
    epsilon = epsilon_at(max(costs), delta) / 1e6
    losses = [discrete_delta(epsilon, [abs(m) for m in corner], sigmas) for corner in corners]
    assert max(losses) * 1e12 <= delta + 1e-2
    assert discrete_delta(epsilon * 0.98, [50, 90], sigmas) * 1e12 > delta


def test_discrete_noise_costs_more_than_without_the_correction():
    """What the proof takes off the variance is in every price, and no price leaves it out."""
    for sigma in (64.0, 100.0, 1e6):
        assert effective_variance(sigma) == Fraction(sigma) ** 2 - 9
        assert mu2_cost(Fraction(10**9) / effective_variance(sigma)) > 10**6 * 10**9 / sigma**2
    sigma = float(2**20)
    assert 1 - float(effective_variance(sigma)) / sigma**2 == pytest.approx(DISCRETE_LOSS / 2**40, rel=1e-3)


def test_the_cost_agrees_with_dp_accountings_discrete_gaussian():
    sigma, move, delta = 200.0, 150, 10**6
    epsilon = epsilon_at(mu2_cost(Fraction(move) ** 2 / effective_variance(sigma)), delta) / 1e6
    loss = privacy_loss_mechanism.DiscreteGaussianPrivacyLoss(sigma, sensitivity=move)
    assert loss.get_delta_for_epsilon(epsilon) <= delta * 1e-12
    assert loss.get_delta_for_epsilon(epsilon * 0.99) > delta * 1e-12


# -- refusals


@pytest.mark.parametrize("delta", [0, -1, 10**12])
def test_a_delta_that_is_none_is_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        micro_mu2(1, delta)
    with pytest.raises(ValueError, match="delta"):
        epsilon_at(1, delta)


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="negative"):
        micro_mu2(-1, 1)
    for mu2 in (-1, 10**19):
        with pytest.raises(ValueError, match="out of range"):
            epsilon_at(mu2, 1)
    with pytest.raises(ValueError, match="positive"):
        gaussian_sigma(0)
    with pytest.raises(InternalFault):
        mu2_cost(Fraction(-1))


@pytest.mark.parametrize("sigma", [0.0, 63.9, math.inf, math.nan, -100.0])
def test_a_sigma_without_a_price_is_refused(sigma):
    with pytest.raises(InternalFault):
        effective_variance(sigma)
