"""The benchmark `accuracy`: how far off an answer is, and what errors are compared by."""

import math

import numpy as np
import pytest

from benchmarks import accuracy, peers, quantiles
from benchmarks.drafts import Crowd
from benchmarks.report import Ratio

FOUR = peers.People("four", 0, 10, np.array([1.0, 2.0, 3.0, 6.0]))


def test_every_quantile_of_the_values_is_right() -> None:
    assert FOUR.errors("median", [[2.0], [2.5], [3.0]]) == [0, 0, 0]
    assert FOUR.errors("median", [[1.0], [4.0]]) == pytest.approx([0.1, 0.1])
    assert FOUR.errors("quantile .9", [[6.0], [5.0]]) == pytest.approx([0, 0.1])
    assert FOUR.errors("quartiles", [[1.5, 2.5, 5.0]]) == [0, 0, 0]


def test_errors_are_in_ranges_or_parts_of_the_people() -> None:
    assert FOUR.errors("mean", [[4.0]]) == pytest.approx([0.1])
    assert FOUR.errors("variance", [[FOUR.values.var() + 1]]) == pytest.approx([0.01])
    shares = [0, 0.25, 0.25, 0.25, 0, 0, 0.25, 0, 0, 0]
    assert FOUR.errors("histogram", [shares]) == [0] * 10


def test_a_ratio_of_roots_has_the_root_of_the_interval() -> None:
    subject, baseline = [0.1, -0.3, 0.2], [0.1, -0.1, 0.2]
    squares = Ratio.of_mean_squares(subject, baseline, section="a", name="b")
    roots = Ratio.of_mean_squares(subject, baseline, section="a", name="b", root=True)
    assert roots.median == pytest.approx(math.sqrt(squares.median))
    assert roots.spread == pytest.approx([math.sqrt(end) for end in squares.spread])


def test_a_baseline_that_is_known_does_not_widen_the_interval() -> None:
    known = Ratio.of_mean_squares([0.1, -0.3, 0.2], [0.1], section="a", name="b")
    sample = Ratio.of_mean_squares([0.1, -0.3, 0.2], [0.1, 0.0, -0.15], section="a", name="b")
    assert known.spread[1] / known.median < sample.spread[1] / sample.median


def test_equal_offers_leave_nothing_but_noise_in_hindsight() -> None:
    """With one epsilon the best least weight is at most that one, and the half-width that of two sums."""
    crowd = Crowd(slug="even", lower=0, upper=100, epsilons=np.full(500, 4.0), values=np.full(500, 50.0))
    found = accuracy.best_half_width(crowd, 1.0, lambda _: [0.5], accuracy.of_mean)
    weight = accuracy.SHARE / 1_000_000 * 500 * 4
    assert found == pytest.approx(accuracy.of_mean(0.5) / weight)


def test_an_interval_of_a_quantile_covers_that_has_any_value_of_its_rank() -> None:
    def answer(lower: float, upper: float) -> dict[str, dict[str, float]]:
        return {"interval": {"lower": lower, "upper": upper}}

    inside, beside = answer(2.5, 2.7), answer(3.1, 9)
    assert quantiles.covered(FOUR, "median", [[inside], [answer(3, 4)], [answer(0, 2)]]) == 1
    assert quantiles.covered(FOUR, "median", [[inside], [beside]]) == 0.5
    ties = peers.People("ties", 0, 10, np.array([1.0, 4.0, 4.0, 4.0, 9.0]))
    assert ties.quantile(0.5) == (4, 4)
    assert quantiles.covered(ties, "quartiles", [[answer(3, 4), answer(4, 5), beside]]) == 1
    assert quantiles.covered(ties, "median", [[answer(4.1, 9)]]) == 0
