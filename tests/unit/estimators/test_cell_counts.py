"""Counts off noisy sums at several roughnesses: against Bayes' rule by SciPy, and what each makes of sums."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from app.core.grid import GRID_SIZE, Grid
from app.estimators import cell_counts
from app.estimators.cell_counts import CellCounts, WholeNumbers

PEOPLE, VARIANCE = 400.0, 30.0
STARTS = (100, 150, 180, 300)
ENDS = np.array([0.0, *STARTS, 400.0])


TENTHS = WholeNumbers(first=20.0, apart=40.0)
"""Ten of them: 2, 2, 0, 3 and 3 in the cells."""


def counted(sums: Sequence[float], whole: WholeNumbers | None = None) -> CellCounts:
    """One level of five cells, each with a noisy count."""
    known = CellCounts.of_all(400.0, PEOPLE, 0.0, 1.0, whole)
    return known.cut(STARTS).given(np.array(sums), np.eye(5), VARIANCE)


@pytest.mark.parametrize("whole", [None, TENTHS], ids=["any", "whole too"])
@pytest.mark.parametrize("sums", [(100, 50, 30, 120, 100), (90, 61, 22, 140, 88), (0, 0, 390, 0, 10)])
def test_an_estimate_is_that_of_bayes_rule_over_every_case(
    sums: tuple[float, ...], whole: WholeNumbers | None
):
    """Laws of sums and counts together, conditioned one by one and mixed as they are likely."""
    q, seen = 0.3, np.array(sums, dtype=float)
    chances, offs, squares = [], [], []
    weights = np.tril(np.ones((6, 5)), -1) - q
    cases = [np.diff(ENDS) / 400] + ([np.array([2, 2, 0, 3, 3]) / 10] if whole else [])
    for parts, rough in product(cases, cell_counts._ROUGH.tolist()):
        law = (PEOPLE + ((rough + 1) * PEOPLE) ** 2) * (np.diag(parts) - np.outer(parts, parts))
        of_sums = law + VARIANCE * np.eye(5)
        chances.append(multivariate_normal(PEOPLE * parts, of_sums).logpdf(seen))
        gain = law @ np.linalg.inv(of_sums)
        offs.append(weights @ (PEOPLE * parts + gain @ (seen - PEOPLE * parts)))
        squares.append(np.diag(weights @ (law - gain @ law) @ weights.T) + offs[-1] ** 2)
    chance = np.exp(np.array(chances) - max(chances))
    chance /= chance.sum()
    off, variance = counted(sums, whole).off(q, ENDS)
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


@pytest.mark.parametrize(("lower", "upper"), [("1", "5"), ("-0.5", "7.25"), ("0", "120"), ("0.3", "3.1")])
def test_whole_numbers_lie_where_the_grid_keeps_them(lower: str, upper: str):
    grid = Grid(Decimal(lower), Decimal(upper))
    whole, points = WholeNumbers.of(grid), [grid.point(number, 0) for number in range(-1, 200)]
    assert whole is not None
    kept = [point for point in points if point is not None]
    assert whole.steps(np.arange(len(kept), dtype=float)).tolist() == kept
    places = np.array([0, *(point + beside for point in kept for beside in (-1, 0, 1)), GRID_SIZE + 1.0])
    assert whole.below(places).tolist() == [sum(point < place for point in kept) for place in places]


@pytest.mark.parametrize(("lower", "upper"), [("0", "1"), ("0.5", "2.9"), ("0", "1000000000")])
def test_a_range_of_two_whole_numbers_or_of_more_than_the_grid_tells_apart_has_none_to_speak_of(
    lower: str, upper: str
):
    assert WholeNumbers.of(Grid(Decimal(lower), Decimal(upper))) is None


def test_ranks_rise_at_whole_numbers_alone_where_sums_say_that_values_are_whole():
    """Fifty people at each of 20 and 60, none between; then all four cases of whole numbers are likelier."""
    whole = WholeNumbers(first=20.0, apart=40.0)
    known = CellCounts.of_all(80.0, 100.0, 0.0, 1.0, whole).cut(range(5, 80, 5))
    counts = [50.0 if start in (20, 60) else 0.0 for start in range(0, 80, 5)]
    known = known.given(np.array(counts), np.eye(16), 0.01)
    places = np.array([0.0, 19, 20, 21, 40, 60, 61, 80])
    assert known.likelihood[4:].min() > known.likelihood[:4].max() + 20
    assert known.off(0.0, places)[0] == pytest.approx([0, 0, 0, 50, 50, 50, 100, 100], abs=0.1)
    found = known.places.tolist()
    assert {20.0, 21.0, 60.0, 61.0} <= set(found)
    assert all(low < high for low, high in pairwise(found))


def test_control_without_whole_numbers_ranks_rise_within_the_cell():
    known = CellCounts.of_all(80.0, 100.0, 0.0, 1.0).cut(range(5, 80, 5))
    counts = [50.0 if start in (20, 60) else 0.0 for start in range(0, 80, 5)]
    known = known.given(np.array(counts), np.eye(16), 0.01)
    assert known.off(0.0, np.array([21.0]))[0] == pytest.approx([10], abs=0.1)
