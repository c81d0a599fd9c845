"""Counts off noisy sums at several roughnesses: against Bayes' rule by SciPy, and what each makes of sums."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from app.estimators import cell_counts
from app.estimators.cell_counts import CellCounts

PEOPLE, VARIANCE = 400.0, 30.0
STARTS = (100, 150, 180, 300)
ENDS = np.array([0.0, *STARTS, 400.0])


def counted(sums: Sequence[float]) -> CellCounts:
    """One level of five cells, each with a noisy count."""
    return CellCounts.of_all(400.0, PEOPLE, 0.0, 1.0).cut(STARTS).given(np.array(sums), np.eye(5), VARIANCE)


@pytest.mark.parametrize("sums", [(100, 50, 30, 120, 100), (90, 61, 22, 140, 88), (0, 0, 390, 0, 10)])
def test_an_estimate_is_that_of_bayes_rule_over_every_roughness(sums: tuple[float, ...]):
    """Laws of sums and counts together, conditioned one by one and mixed as they are likely."""
    parts, q, seen = np.diff(ENDS) / 400, 0.3, np.array(sums, dtype=float)
    chances, offs, squares = [], [], []
    weights = np.tril(np.ones((6, 5)), -1) - q
    for rough in cell_counts._ROUGH.tolist():
        law = (PEOPLE + ((rough + 1) * PEOPLE) ** 2) * (np.diag(parts) - np.outer(parts, parts))
        of_sums = law + VARIANCE * np.eye(5)
        chances.append(multivariate_normal(PEOPLE * parts, of_sums).logpdf(seen))
        gain = law @ np.linalg.inv(of_sums)
        offs.append(weights @ (PEOPLE * parts + gain @ (seen - PEOPLE * parts)))
        squares.append(np.diag(weights @ (law - gain @ law) @ weights.T) + offs[-1] ** 2)
    chance = np.exp(np.array(chances) - max(chances))
    chance /= chance.sum()
    off, variance = counted(sums).off(q, ENDS)
    assert off == pytest.approx(chance @ offs, rel=1e-9, abs=1e-9)
    assert variance == pytest.approx(chance @ squares - (chance @ offs) ** 2, rel=1e-6, abs=1e-6)


def test_a_cell_cut_into_even_parts_is_taken_for_smooth_and_one_of_coarse_values_for_rough():
    """A hundred people among 5,000, cut into ten cells, with noise of two people."""
    inner = list(range(105, 150, 5))

    def chances(counts: Sequence[int]) -> np.ndarray:
        known = CellCounts.of_all(5000.0, 5000.0, 0.0, 1.0).cut((100, 150))
        known = known.given(np.array([100.0, 100.0, 4800.0]), np.eye(3), 4.0).cut(inner)
        of = np.eye(12)[1:-1]
        before = known.likelihood
        known = known.given(np.array(counts, dtype=float), of, 4.0)
        return np.asarray(known.likelihood - before)

    even, coarse = chances([10] * 10), chances([0, 0, 50, 0, 0, 0, 0, 50, 0, 0])
    assert np.all(np.diff(even) < 0), "the smoothest is the likeliest"
    assert np.all(np.diff(coarse) > 0), "the roughest is"


def test_what_is_likely_does_not_move_a_public_total():
    for sums in ((100, 50, 30, 120, 100), (500, 0, 0, 0, 0)):
        off, variance = counted(sums).off(0.0, np.array([400.0]))
        assert off == pytest.approx([PEOPLE])
        assert variance == pytest.approx([0.0], abs=1e-6)
