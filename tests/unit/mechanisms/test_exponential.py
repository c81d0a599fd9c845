"""The exponential mechanism: its law by statistics, exact comparisons, refusals."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from app.core.errors import InternalFault
from app.mechanisms.exponential import choose_exponential

SCORES, SCALE = (0, -3, -1, -7, 0), 4


@pytest.mark.statistical
def test_draws_have_the_law():
    """Chi-square at 1e-6; the control, draws at another scale, must be refused."""
    draws = 20_000
    law = np.exp(np.array(SCORES) / SCALE)

    def pvalue(scale: int) -> float:
        counted = Counter(choose_exponential(SCORES, scale) for _ in range(draws))
        return float(
            chisquare([counted[place] for place in range(len(SCORES))], law / law.sum() * draws).pvalue
        )

    assert pvalue(SCALE) > 1e-6
    assert pvalue(SCALE + 2) < 1e-6


@pytest.mark.statistical
def test_the_gap_exceeds_its_bound_no_more_often_than_stated():
    """The bound (m - 1) e^(-g/scale), that of permute-and-flip times two, at five standard deviations."""
    scores = (0, *[-30] * 19)
    draws, bound = 10_000, 19 * math.exp(-30 / 6)
    seen = sum(choose_exponential(scores, 6) > 0 for _ in range(draws))
    assert seen <= draws * bound + 5 * math.sqrt(draws * bound)
    assert seen > draws * bound / 2 + 5 * math.sqrt(draws * bound), "half of it would not hold"


def test_huge_integers_are_compared_exactly():
    best = 10**40
    assert choose_exponential((best, best - 10**39, 0), 10**36) == 0, "wrong once in e^1000 draws"
    assert choose_exponential((7,), 1) == 0


@pytest.mark.parametrize(
    ("scores", "scale"), [((), 1), ((1, 2), 0), ((1, 2.5), 1), ((1, 2), 1.5), ((1, True), 1)]
)
def test_what_is_no_choice_by_integers_is_refused(scores, scale):
    with pytest.raises(InternalFault):
        choose_exponential(scores, scale)
