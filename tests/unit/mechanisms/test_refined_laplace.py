"""Refined Laplace noise: bounds of exponentials, the law of a stage, and the joint law of two."""

import math
import random
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InternalFault
from app.estimators.interface import UNIT_SCALE
from app.mechanisms.refined_laplace import _piece, _weights, exp_bounds, refine_laplace

mpmath.mp.dps = 80


def law(p, z):
    return (1 - p) / (1 + p) * p ** abs(z)


def exact(x):
    return mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)


@given(st.fractions(min_value=0, max_value=2000), st.integers(1, 200))
def test_bounds_of_an_exponential_hold_it_and_are_close(x, width):
    bounds = exp_bounds(x, width)
    value = exact(x) * mpmath.mpf(2) ** width
    assert bounds.lower <= value <= bounds.upper
    assert bounds.upper - bounds.lower <= 3


def test_bounds_are_close_where_a_scale_is_as_large_as_it_may_be():
    bounds = exp_bounds(1 / Fraction(2.0**56), 192)
    assert bounds.lower <= exact(Fraction(1, 2**56)) * mpmath.mpf(2) ** 192 <= bounds.upper
    assert bounds.upper - bounds.lower <= 3


@pytest.mark.parametrize("noise", [0, 1, 4, 60])
@pytest.mark.parametrize(("scale", "finer"), [(3.0, 1.5), (2.0, 1.999), (40.0, 0.25), (0.5, 0.1)])
def test_the_pieces_weigh_what_bayes_says(noise, scale, finer):
    """By brute force: P(Z2 = u) P(V = z - u) over P(Z1 = z), summed over each piece."""
    rate, finer_rate = 1 / Fraction(scale), 1 / Fraction(finer)
    p1, p2 = exact(rate), exact(finer_rate)
    atom = p2 / p1 * ((1 - p1) / (1 - p2)) ** 2

    def joint(u):
        return law(p2, u) * (1 - atom) * law(p1, noise - u)

    reach = 300  # What is left out is below e^-200 of what is summed.
    sums = [
        mpmath.fsum(joint(u) for u in range(-reach, 0)),
        mpmath.fsum(joint(u) for u in range(noise + 1)),
        mpmath.fsum(joint(u) for u in range(noise + 1, reach)),
    ]
    pieces, total = _weights(noise, rate, finer_rate, 240)
    shares = [mpmath.mpf(piece.lower) / total.lower for piece in pieces]
    assert shares == pytest.approx([piece / law(p1, noise) for piece in sums], rel=1e-30, abs=1e-50)
    rest = law(p2, noise) * atom / law(p1, noise)
    assert 1 - sum(shares) == pytest.approx(rest, rel=1e-25, abs=1e-50)


@pytest.mark.parametrize(("scale", "finer"), [(3.0, 1.5), (5.0, 4.9), (0.7, 0.2)])
def test_the_two_draws_together_are_the_second_and_something_independent(scale, finer):
    """Exactly: P(Z1 = z) P(Z2 = u | z) = P(Z2 = u) P(V = z - u) on a grid, from the pieces' own laws."""
    rate, finer_rate = 1 / Fraction(scale), 1 / Fraction(finer)
    p1, p2 = exact(rate), exact(finer_rate)
    q, r = p1 * p2, p2 / p1
    atom = r * ((1 - p1) / (1 - p2)) ** 2
    for z in range(7):
        pieces, total = _weights(z, rate, finer_rate, 240)
        below, inside, beyond = (mpmath.mpf(piece.lower) / total.lower for piece in pieces)
        for u in range(-9, 16):
            if u < 0:
                given_z = below * (1 - q) * q ** (-u - 1)
            elif u <= z:
                given_z = inside * (1 - r) * r**u / (1 - r ** (z + 1))
            else:
                given_z = beyond * (1 - q) * q ** (u - z - 1)
            if u == z:
                given_z += 1 - below - inside - beyond
            v = (1 - atom) * law(p1, z - u) + (atom if u == z else 0)
            assert law(p1, z) * given_z == pytest.approx(law(p2, u) * v, rel=1e-25)


def test_a_piece_is_decided_by_as_many_bits_as_it_takes():
    """On the edge of two pieces the first bits leave it open; more are asked for, and nothing is rounded."""
    rate, finer_rate = Fraction(1, 3), Fraction(2, 3)
    pieces, total = _weights(2, rate, finer_rate, 600)
    edge = (pieces[0].lower << 600) // total.lower  # The first 600 bits of where the second piece begins.
    asked: list[int] = []

    def bits(count):
        place = 600 - 64 * (len(asked) + 1)
        asked.append(count)
        return edge >> place & (1 << 64) - 1 if place >= 0 else 0

    assert _piece(2, rate, finer_rate, bits) in (0, 1)
    assert len(asked) > 5


def test_a_draw_is_mirrored_with_the_noise():
    for noise in (1, 7, 30):
        first, second = random.Random(noise), random.Random(noise)
        draws = [refine_laplace(noise, 9.0, 4.0, first.getrandbits) for _ in range(50)]
        mirrored = [refine_laplace(-noise, 9.0, 4.0, second.getrandbits) for _ in range(50)]
        assert mirrored == [-draw for draw in draws]


def test_scales_of_the_service_are_refined_many_times():
    """Ten steps of a tenth each, at the service's own scale: no stage is far larger than its scale."""
    source = random.Random(5)
    scales = [UNIT_SCALE / step for step in range(1, 11)]
    noise = int(source.expovariate(1 / scales[0]))
    for scale, finer in pairwise(scales):
        noise = refine_laplace(noise, scale, finer, source.getrandbits)
        assert abs(noise) < 60 * finer


@pytest.mark.parametrize(
    ("scale", "finer"),
    [(1.0, 1.0), (1.0, 2.0), (1.0, 0.0), (1.0, -1.0), (math.inf, 1.0), (math.nan, 1.0), (2.0**57, 1.0)],
)
def test_scales_that_do_not_fall_are_refused(scale, finer):
    with pytest.raises(InternalFault):
        refine_laplace(0, scale, finer, random.Random(1).getrandbits)
