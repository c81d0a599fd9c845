"""Laws of errors against closed forms, quadrature, and each other."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

from app.estimators.quantiles import ErrorLaw, _inverted, error_law, two_laplace_tail


def normal_laplace_tail(x, sigma, scale):
    """Closed form of P(|N(0, sigma^2) + Lap(scale)| > x), in scaled complementary error functions."""
    damp = math.exp(-0.5 * (x / sigma) ** 2)
    left = sigma / scale - x / sigma
    if left > -8:
        near = 0.5 * special.erfcx(left / math.sqrt(2)) * damp
    else:
        near = math.exp(0.5 * (sigma / scale) ** 2 - x / scale)
    far = 0.5 * special.erfcx((x / sigma + sigma / scale) / math.sqrt(2)) * damp
    return 2 * (stats.norm.sf(x / sigma) + 0.5 * near - 0.5 * far)


@pytest.mark.parametrize("ratio", [0.001, 0.03, 0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("position", [0.01, 0.5, 1.0, 1.96, 3.0, 6.0])
def test_normal_plus_laplace_has_its_closed_form(ratio, position):
    law = ErrorLaw(sigma=ratio, laplaces=((1.0, 1),))
    x = position * math.sqrt(law.variance)
    assert law.tail(x) == pytest.approx(
        normal_laplace_tail(x, ratio, 1.0), abs=2e-5 if position < 0.5 else 5e-7
    )


@pytest.mark.parametrize("ratio", [0.001, 0.03, 0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.951, 0.999])
def test_the_quantile_of_normal_plus_laplace_solves_the_closed_form(ratio, level):
    expected = optimize.brentq(
        lambda x: normal_laplace_tail(x, ratio, 1.0) - (1 - level), 1e-9, 20 * (1 + ratio), xtol=1e-12
    )
    assert ErrorLaw(sigma=ratio, laplaces=((1.0, 1),)).quantile(level) == pytest.approx(expected, rel=2e-5)


@pytest.mark.parametrize("sigma", [0.001, 0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("second", [0.1, 0.5, 0.9985, 1.0, 1.001, 1.002, 3.0])
def test_a_normal_beside_two_laplaces_has_the_tail_that_the_inversion_gives(sigma, second):
    """A third Laplace, too small to matter, has the law inverted from its characteristic function."""
    laplaces = ((1.0, 2),) if second == 1 else ((1.0, 1), (second, 1))
    law = ErrorLaw(sigma=sigma, laplaces=laplaces)
    inverted = ErrorLaw(sigma=sigma, laplaces=(*laplaces, (1e-9, 1)))
    for position in (0.5, 1.0, 1.96, 4.0, 9.0):
        x = position * math.sqrt(law.variance)
        assert law.tail(x) == pytest.approx(inverted.tail(x), abs=5e-7)
    for level in (0.5, 0.95, 0.9996):
        assert law.tail(law.quantile(level)) == pytest.approx(1 - level, rel=1e-7)
        assert law.quantile(level) == pytest.approx(inverted.quantile(level), rel=2e-4)


@given(sigma=st.floats(0.05, 20), position=st.floats(0.01, 8))
def test_a_normal_beside_two_equal_laplaces_has_the_tail_that_quadrature_gives(sigma, position):
    """E[P(|N + A + B| > x | N)], with N integrated numerically."""
    law = ErrorLaw(sigma=sigma, laplaces=((1.0, 2),))
    x = position * math.sqrt(law.variance)

    def above(y):  # P(A + B > y)
        return (1 + abs(y) / 2) * math.exp(-abs(y)) / 2 if y > 0 else 1 - above(-y) if y else 0.5

    def given_n(n):
        return (above(x - n) + above(x + n)) * stats.norm.pdf(n, scale=sigma)

    cuts = sorted({-12 * sigma, 12 * sigma, *(cut for cut in (-x, 0.0, x) if abs(cut) < 12 * sigma)})
    expected = sum(integrate.quad(given_n, low, high, limit=200)[0] for low, high in pairwise(cuts))
    assert law.tail(x) == pytest.approx(expected, abs=1e-7)


@given(a=st.floats(1e-3, 1), b=st.floats(1e-3, 1), x=st.floats(0.001, 5))
def test_two_laplaces_have_the_tail_that_quadrature_gives(a, b, x):
    """P(|A + B| > x) = E[P(|A + B| > x | B)], with B integrated numerically piece by piece."""

    def given_b(y):
        beyond = 0.5 * math.exp(-abs(x - y) / a)
        above = beyond if y < x else 1 - beyond
        return above * math.exp(-abs(y) / b) / (2 * b)

    cuts = sorted({-40 * b, 0.0, x - 40 * a, x - a, x, x + a, x + 40 * a, x + 40 * b})
    expected = 2 * sum(integrate.quad(given_b, low, high, limit=200)[0] for low, high in pairwise(cuts))
    assert two_laplace_tail(x, a, b) == pytest.approx(expected, abs=1e-7)


@given(a=st.floats(1e-3, 1e3), x=st.floats(0, 10), shift=st.floats(-2e-6, 2e-6))
def test_two_nearly_equal_laplaces_join_the_limit_smoothly(a, x, shift):
    b = a * (1 + shift)
    with mpmath.workdps(50):
        p, q, y = mpmath.mpf(a), mpmath.mpf(b), mpmath.mpf(x * a)
        if p == q:
            expected = (1 + y / (2 * p)) * mpmath.exp(-y / p)
        else:
            expected = (p**2 * mpmath.exp(-y / p) - q**2 * mpmath.exp(-y / q)) / (p**2 - q**2)
    assert two_laplace_tail(x * a, a, b) == pytest.approx(float(expected), abs=1e-9)


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.0), (1.0, 1.0), (1.0, 0.999999999), (0.2, 0.8)])
def test_a_law_of_two_laplaces_takes_the_closed_form(first, second):
    law = error_law(normal_variance=0.0, laplaces=((first, 1), (second, 1)))
    assert law.tail(1.7) == two_laplace_tail(1.7, first, second)
    assert law.tail(law.quantile()) == pytest.approx(0.05, abs=1e-7)


def test_one_laplace_has_the_quantile_ln_20_and_not_1_96_deviations():
    law = error_law(normal_variance=0.0, laplaces=((3.0, 1),))
    assert law.quantile() == pytest.approx(3 * math.log(20), rel=1e-15)
    assert law.tail(3 * math.log(20)) == pytest.approx(0.05, rel=1e-12)
    assert law.tail(1.96 * math.sqrt(law.variance)) == pytest.approx(0.0625, abs=5e-4)


def test_a_normal_has_the_quantile_1_96():
    law = error_law(normal_variance=4.0, laplaces=())
    assert law.quantile() == pytest.approx(2 * 1.959963984540054, rel=1e-12)
    assert law.tail(law.quantile()) == pytest.approx(0.05, rel=1e-12)


@pytest.mark.parametrize("count", [3, 5, 40])
def test_many_equal_laplaces_have_the_tail_of_a_difference_of_gammas(count):
    """The sum of m Laplaces is G - G' with G, G' Gamma(m); integrate over G'."""
    law = ErrorLaw(sigma=0.0, laplaces=((1.0, count),))
    x = 1.9 * math.sqrt(law.variance)
    gamma = stats.gamma(count)
    expected, _ = integrate.quad(lambda g: 2 * gamma.sf(x + g) * gamma.pdf(g), 0, 40 * count, limit=500)
    assert law.tail(x) == pytest.approx(expected, abs=5e-7)


@given(
    sigma=st.floats(0, 10),
    parts=st.lists(st.tuples(st.floats(1e-3, 10), st.integers(1, 1000)), max_size=4),
    level=st.floats(0.01, 0.999),
)
def test_tail_and_quantile_are_inverse(sigma, parts, level):
    law = ErrorLaw(sigma=sigma, laplaces=tuple(parts))
    if law.variance > 0:
        assert law.tail(law.quantile(level)) == pytest.approx(1 - level, abs=1e-4)


@given(
    sigma=st.floats(0.01, 10),
    scale=st.floats(0.01, 10),
    factor=st.floats(1e-6, 1e6),
    level=st.floats(0.5, 0.99),
)
def test_quantiles_scale_with_the_law(sigma, scale, factor, level):
    one = ErrorLaw(sigma=sigma, laplaces=((scale, 2),)).quantile(level)
    two = ErrorLaw(sigma=factor * sigma, laplaces=((factor * scale, 2),)).quantile(level)
    assert two == pytest.approx(factor * one, rel=1e-9)


def test_without_variance_everything_is_zero():
    law = error_law(normal_variance=0.0, laplaces=((0.0, 5), (1.0, 0)))
    assert law.quantile() == 0
    assert law.tail(0.5) == 0
    assert law.tail(0.0) == 1


@pytest.mark.parametrize("count", [257, 1000, 100_000])
def test_merging_small_laplaces_moves_the_quantile_by_less_than_a_promille(count):
    kept = ErrorLaw(sigma=0.0, laplaces=((1.0, count),)).quantile()
    merged = error_law(normal_variance=0.0, laplaces=((1.0, count),))
    assert merged.laplaces == ()
    assert merged.quantile() == pytest.approx(kept, rel=5e-4)
    assert merged.variance == pytest.approx(2 * count)


@given(
    sigma=st.floats(0, 3),
    scales=st.lists(st.floats(0.9, 1.1), min_size=5, max_size=60, unique=True),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]),
)
def test_scales_that_are_nearly_the_same_are_one(sigma, scales, level):
    each = ErrorLaw(sigma=sigma, laplaces=tuple((scale, 1) for scale in scales))
    law = error_law(normal_variance=sigma**2, laplaces=each.laplaces)
    assert len(law.laplaces) <= 1 + math.log(1.1 / 0.9) / math.log(1.01)
    assert law.variance == pytest.approx(each.variance, rel=1e-12)
    assert law.quantile(level) == pytest.approx(each.quantile(level), rel=1e-5)


def test_what_is_left_out_of_an_inversion_is_less_than_rounding():
    laws = [
        ErrorLaw(sigma=3.0, laplaces=((1.0, 1), (0.9, 1), (0.8, 1))),
        ErrorLaw(sigma=0.0, laplaces=tuple((1 + place / 50, 1) for place in range(50))),
    ]
    for law in laws:
        nodes = _inverted(law).nodes
        x = 1.9 * math.sqrt(law.variance)

        def inside(t, x=x, sigma=law.sigma, scales=law.laplaces):
            normal = math.exp(-((sigma * t) ** 2) / 2)
            return math.sin(x * t) / t * normal / math.prod(1 + (scale * t) ** 2 for scale, _ in scales)

        found, _ = integrate.quad(inside, 0, 50, limit=2000, epsabs=1e-12)
        assert len(nodes) == 64
        assert law.tail(x) == pytest.approx(1 - 2 / math.pi * found, abs=5e-7)
    assert len(_inverted(ErrorLaw(sigma=0.1, laplaces=((1.0, 3),))).nodes) > 64


def newton(law: ErrorLaw, level: float) -> float:
    """The quantile by the steps that need no start: Newton's from 0, with all nodes."""
    deviation = math.sqrt(law.variance)
    nodes = 2 * math.pi / 24 * np.arange(1, 769)
    log_phi = -((law.sigma / deviation * nodes) ** 2) / 2
    for scale, count in law.laplaces:
        log_phi -= count * np.log1p((scale / deviation * nodes) ** 2)
    phi, x = np.exp(log_phi), 0.0
    for _ in range(100):
        missing = level - (0.5 * x + np.sin(x * nodes) @ (phi / nodes)) / 6
        step = missing * 6 / (0.5 + np.cos(x * nodes) @ phi)
        x += step
        if abs(missing) < 1e-13 or abs(step) < 1e-12:
            break
    return float(x * deviation)


SIGMAS = st.just(0.0) | st.floats(1e-161, 10)
"""The root of a variance is not smaller: below 1e-308 a double has few digits, and its inverse is none."""

RISKS = st.sampled_from([0.5, 0.2, 0.1, 0.05, 0.01, 0.001, 2e-4])


@given(
    sigma=SIGMAS,
    parts=st.lists(st.tuples(st.floats(1e-2, 10), st.integers(1, 50)), min_size=1, max_size=4),
    risk=RISKS,
)
@settings(max_examples=300)
def test_a_quantile_is_the_one_that_the_plain_steps_come_to(sigma, parts, risk):
    """To more digits than what an inversion leaves out, and to which processors round alike."""
    law = ErrorLaw(sigma=sigma, laplaces=tuple(parts))
    if len(parts) == 1 and parts[0][1] == 1 and not sigma:
        return
    if law._fractions():
        x = law.quantile(1 - risk)
        scale = math.sqrt(law.variance)
        plain = optimize.brentq(lambda at: law.tail(at) - risk, 0, 12 * scale, xtol=1e-14 * scale)
        assert x == pytest.approx(plain, rel=1e-10)
    else:
        assert law.quantile(1 - risk) == pytest.approx(newton(law, 1 - risk), rel=1e-10)


@given(
    sigma=SIGMAS,
    parts=st.lists(st.tuples(st.floats(1e-2, 10), st.integers(1, 50)), max_size=4),
    risk=RISKS,
)
def test_what_is_not_beyond_a_quantile_has_a_tail_of_the_risk_and_the_other_way_round(sigma, parts, risk):
    """Tests look at tails, which are the same at every level."""
    law = error_law(normal_variance=sigma**2, laplaces=parts)
    if law.variance and not (len(law.laplaces) == 2 and not law.sigma):
        # Of two Laplaces alone the tail has a closed form, and the quantile is inverted.
        x = law.quantile(1 - risk)
        assert law.tail(x * (1 - 1e-9)) >= risk >= law.tail(x * (1 + 1e-9))


def test_a_large_laplace_among_small_ones_is_kept():
    law = error_law(normal_variance=1.0, laplaces=((5.0, 1), (0.01, 100), (5.0, 1)))
    assert law.laplaces == ((5.0, 2),)
    assert law.variance == pytest.approx(1 + 100 + 100 * 2e-4)


def test_far_tails_are_zero_and_never_negative():
    law = ErrorLaw(sigma=1.0, laplaces=((1.0, 1),))
    values = [law.tail(float(x)) for x in np.linspace(0, 60, 500)]
    assert all(value <= before + 5e-7 for before, value in pairwise(values))
    assert values[-1] == min(values) == 0
    assert max(values) == 1
