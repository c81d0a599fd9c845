"""Permute-and-flip: its law by enumeration and by noisy maxima, its price, and that it draws no float."""

import itertools
import math
import secrets
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from app.core.errors import InternalFault
from app.mechanisms.permute_and_flip import choose

SCORES, SCALE = (0, -3, -1, -7, 0), 4


def enumerated(scores: tuple[int, ...], scale: float) -> list[float]:
    """The law from its definition: every order of the choices, every coin."""
    best = max(scores)
    chance = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for index in order:
            heads = math.exp(-(best - scores[index]) / scale)
            chance[index] += left * heads / len(orders)
            left *= 1 - heads
    return chance


def integrated(scores: tuple[int, ...], scale: float) -> list[float]:
    """The law from the integral that the docstring states; Gauss-Legendre is exact for its polynomial."""
    p = np.exp(-(max(scores) - np.array(scores)) / scale)
    nodes, weights = np.polynomial.legendre.leggauss(len(scores))
    t = (nodes + 1) / 2
    return [
        float(p[j] * np.dot(weights / 2, np.prod(1 - np.delete(p, j)[:, None] * t, axis=0)))
        for j in range(p.size)
    ]


def drawn(scores: tuple[int, ...], scale: int, draws: int) -> list[int]:
    counted = Counter(choose(scores, scale) for _ in range(draws))
    return [counted[index] for index in range(len(scores))]


def test_the_stated_law_is_that_of_all_orders_and_coins():
    for scores in (SCORES, (5,), (-2, -2), (0, -40, -1)):
        assert integrated(scores, SCALE) == pytest.approx(enumerated(scores, SCALE), abs=1e-12)


def test_the_law_is_that_of_the_largest_score_with_exponential_noise():
    """An independent source: report-noisy-max, its law by quadrature over the winner's noise."""
    noise = np.linspace(0, 60, 600_001)[1:]
    step = noise[1] - noise[0]
    for place, score in enumerate(SCORES):
        beaten = np.ones_like(noise)
        for other, against in enumerate(SCORES):
            if other != place:
                beaten *= 1 - np.exp(-np.maximum(noise * SCALE + score - against, 0) / SCALE)
        chance = float(np.sum(np.exp(-noise) * beaten) * step)
        assert chance == pytest.approx(integrated(SCORES, SCALE)[place], abs=2e-4)


@pytest.mark.statistical
def test_draws_have_the_law():
    """Chi-square at 1e-6; the control, draws at another scale, must be refused."""
    draws = 20_000
    expected = np.array(enumerated(SCORES, SCALE)) * draws
    assert chisquare(drawn(SCORES, SCALE, draws), expected).pvalue > 1e-6
    assert chisquare(drawn(SCORES, SCALE + 2, draws), expected).pvalue < 1e-6


@pytest.mark.statistical
def test_the_gap_exceeds_its_bound_no_more_often_than_stated():
    """The bound (m - 1) e^(-g/scale) / 2 on 20,000 draws, at five standard deviations."""
    scores = (0, *(-gap for gap in range(1, 200)))
    gap, draws = 40, 20_000
    bound = (len(scores) - 1) * math.exp(-gap / 6) / 2
    seen = sum(-scores[choose(scores, 6)] >= gap for _ in range(draws))
    assert seen <= draws * bound + 5 * math.sqrt(draws * bound)


def test_a_constant_in_all_scores_changes_nothing_and_the_order_of_cells_neither():
    bits = [secrets.randbits(1) for _ in range(5000)]

    def source() -> "itertools.chain[int]":
        return itertools.chain(bits)

    def drawing(scores: tuple[int, ...]) -> int:
        stream = source()
        return choose(scores, 3, lambda count: int("".join(str(next(stream)) for _ in range(count)), 2))

    assert drawing(SCORES) == drawing(tuple(score + 10**30 for score in SCORES))


def test_huge_integers_are_compared_exactly():
    best = 10**40
    assert choose((best, best - 10**39, 0), 10**36) == 0, "wrong once in e^1000 draws"
    assert choose((7,), 1) == 0


@pytest.mark.parametrize(
    ("scores", "scale"), [((), 1), ((1, 2), 0), ((1, 2.5), 1), ((1, 2), 1.5), ((1, True), 1)]
)
def test_what_is_no_choice_by_integers_is_refused(scores, scale):
    with pytest.raises(InternalFault):
        choose(scores, scale)


def test_the_privacy_of_the_law_is_the_range_over_the_scale():
    """All integer scores of three choices in a cube against all others: never above the range of moves."""
    for first in itertools.product(range(3), repeat=3):
        for second in itertools.product(range(3), repeat=3):
            d = [b - a for a, b in zip(first, second, strict=True)]
            price = Fraction(max(d) - min(d), 2)
            one, other = enumerated(first, 2), enumerated(second, 2)
            loss = max(abs(math.log(a / b)) for a, b in zip(one, other, strict=True))
            assert loss <= float(price) + 1e-12
