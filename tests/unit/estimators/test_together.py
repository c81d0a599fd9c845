"""Answers that are read together: their law, intervals that hold at once, small ones drawn to the whole."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from app.estimators.confidence import LEVEL
from app.estimators.together import ErrorBound, KnownError, drawn_to_whole, together


def laplace(scale: float, reach: float = 0.0) -> ErrorBound:
    return ErrorBound(laplaces=((scale, 1),), normal=0.0, reach=reach)


def test_a_difference_of_two_has_the_law_of_two_laplaces_and_both_reaches():
    found = ErrorBound.weighted([(1.0, laplace(2.0, 0.5)), (-1.0, laplace(2.0, 0.25))])
    margin = found.half_width() - 0.75
    assert (1 + margin / 4) * math.exp(-margin / 2) == pytest.approx(0.05, rel=1e-6), "the closed form"
    assert margin < 2 * laplace(2.0).half_width(together(LEVEL, 2)), "narrower than the union of both"


def test_variances_of_normal_parts_and_risks_add_up():
    one = ErrorBound(laplaces=(), normal=4.0, reach=0.0, risk=0.004)
    found = ErrorBound.weighted([(0.5, one), (0.5, one)])
    normal = NormalDist().inv_cdf((1 + LEVEL + 0.008) / 2)
    assert found.half_width() == pytest.approx(math.sqrt(2.0) * normal, rel=1e-9)


def test_what_a_release_says_is_what_it_was_made_of():
    known = KnownError(center=3.0, dataset=laplace(1.0), population=laplace(2.0, 1.0))
    bound = {"laplaces": [[1.0, 1]], "normal": 0.0, "reach": 0.0, "risk": 0.0}
    assert (
        KnownError.read(
            {"center": 3.0, "dataset": bound, "population": {**bound, "laplaces": [[2.0, 1]], "reach": 1.0}}
        )
        == known
    )


@pytest.mark.parametrize("labels", [2, 10, 50])
def test_intervals_of_all_labels_hold_at_once_and_plain_ones_do_not(labels: int):
    """A level below 95 % is seen with a false alarm below 1e-6: five standard deviations of 20,000 rounds."""
    random, rounds = np.random.default_rng(labels), 20_000
    law = laplace(1.0)
    worst = np.abs(random.laplace(size=(rounds, labels))).max(axis=1)
    slack = 5 * math.sqrt(0.95 * 0.05 / rounds)
    held = float(np.mean(worst <= law.half_width(together(LEVEL, labels))))
    assert LEVEL - slack <= held <= (1 - 0.05 / labels) ** labels + slack
    plain = float(np.mean(worst <= law.half_width()))
    assert plain == pytest.approx(LEVEL**labels, abs=slack)
    assert plain < LEVEL - slack, "the control fails"


def test_drawn_estimates_are_nearer_to_the_truth_where_labels_are_small():
    """The mean square error over all labels, which Stein's paradox lowers for every truth."""
    random = np.random.default_rng(7)
    for scatter in (0.0, 0.5, 3.0):
        plain = drawn = 0.0
        for _ in range(400):
            truths = random.normal(10.0, scatter, size=20)
            scales = random.uniform(0.5, 2.0, size=20)
            answers = truths + random.laplace(size=20) * scales
            found = drawn_to_whole(list(zip(answers, 2 * scales**2, strict=True)), 10.0)
            assert found is not None
            plain += float(np.sum((answers - truths) ** 2))
            drawn += float(np.sum((np.array(found) - truths) ** 2))
        assert drawn < plain * (0.25 if scatter == 0 else 0.95), scatter


def test_answers_without_error_stay_and_two_are_not_drawn():
    assert drawn_to_whole([(1.0, 1.0), (2.0, 1.0)], 1.5) is None
    assert drawn_to_whole([(1.0, 0.0), (2.0, 0.0), (9.0, 0.0)], 4.0) == [1.0, 2.0, 9.0]
    assert drawn_to_whole([(4.0, 0.0)] * 3, 4.0) == [4.0] * 3
    alike = drawn_to_whole([(4.1, 1.0), (3.9, 1.0), (4.0, 1.0)], 4.0)
    assert alike == pytest.approx([4.0] * 3), "less scatter than errors make: all of it is error"


def test_the_scatter_solves_its_equation():
    answers = [(0.0, 1.0), (5.0, 2.0), (-4.0, 0.5), (9.0, 1.0)]
    found = drawn_to_whole(answers, 1.0)
    assert found is not None
    # (drawn - answer) / (whole - drawn) = v / A, so each says what A is.
    scatters = [v * (1.0 - d) / (d - a) for (a, v), d in zip(answers, found, strict=True)]
    assert scatters == pytest.approx([scatters[0]] * 4)
    assert sum((a - 1.0) ** 2 / (v + scatters[0]) for a, v in answers) == pytest.approx(3.0)
