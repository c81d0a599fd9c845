"""Randomized answers: estimates are unbiased, thresholds keep their probability of a mistake."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from app.core.epsilon import MICRO
from app.mechanisms.randomized_response import KaryChannel
from app.sessions.response import (
    estimate_fraction,
    exact_count,
    hoeffding_threshold,
    paper_threshold,
    truth_probability,
)
from dither_research.seeded import seeded

EPSILONS = [1, 100_000, MICRO, 4 * MICRO, 12 * MICRO]
SIGMAS = 4.9
"""Two-sided, 1e-6."""


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_truth_is_told_e_to_the_epsilon_times_as_often_as_the_lie(epsilon):
    truth = truth_probability(epsilon)
    assert math.log(truth / (1 - truth)) == pytest.approx(epsilon / MICRO, rel=1e-6, abs=1e-12)
    assert truth == pytest.approx(KaryChannel(categories=2, epsilon=epsilon).truth)


@pytest.mark.parametrize("epsilon", [100_000, MICRO, 4 * MICRO])
@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 1.0])
def test_the_expected_answers_give_the_fraction_back(epsilon, fraction):
    """The estimate is linear, so the estimate of a mean is the mean of estimates: unbiased."""
    truth, answers = truth_probability(epsilon), 10**6
    expected = answers * (fraction * truth + (1 - fraction) * (1 - truth))
    found = [estimate_fraction(count, answers, epsilon) for count in (0, answers)]
    assert found[0] + (found[1] - found[0]) * expected / answers == pytest.approx(fraction)


def test_the_estimate_is_the_papers_with_its_coth():
    """Algorithm 2, line 6, for answers +1 and -1: coth(epsilon / 2) sum z / 2N + 1/2."""
    for positives in (0, 17, 100):
        signs = 2 * positives - 100
        paper = signs / (2 * 100 * math.tanh(0.5)) + 0.5
        assert estimate_fraction(positives, 100, MICRO) == pytest.approx(paper)


def test_control_raw_shares_are_biased():
    truth = truth_probability(MICRO)
    assert abs((0.01 * truth + 0.99 * (1 - truth)) - 0.01) > 0.2


# --------------------------------------------------------------------------------------- thresholds


@pytest.mark.parametrize("answers", [50, 1000, 2**16])
@pytest.mark.parametrize("epsilon", [200_000, MICRO, 4 * MICRO])
@pytest.mark.parametrize("failure", [0.2, 1e-3, 1e-7])
def test_the_exact_count_is_the_smallest_that_is_as_improbable(answers, epsilon, failure):
    """Sums of the probability function instead of scipy's tail."""
    lie = 1 - truth_probability(epsilon)
    count = exact_count(answers, epsilon, failure)
    law = binom.pmf(np.arange(answers + 1), answers, lie)
    assert math.fsum(law[count:]) <= failure * (1 + 1e-6)
    assert math.fsum(law[count - 1 :]) > failure * (1 - 1e-6)


def test_few_answers_are_never_improbable_enough():
    assert exact_count(0, MICRO, 0.01) == 1
    assert exact_count(3, MICRO, 1e-6) == 4
    assert exact_count(10, MICRO, 0.999999) == 1, "ten truths have a probability of 4 %"


@pytest.mark.parametrize("answers", [2**10, 2**20])
@pytest.mark.parametrize("epsilon", [50_000, MICRO, 4 * MICRO])
@pytest.mark.parametrize("h", [1.0, 6.93])
def test_the_papers_threshold_makes_its_exponent_exactly_h(answers, epsilon, h):
    """(e - 1)^2 gamma^2 N / (4 (e + 1) e) = h, the exponent of Lemma 2."""
    e = math.exp(epsilon / MICRO)
    gamma = paper_threshold(answers, epsilon, h)
    assert (e - 1) ** 2 * gamma**2 * answers / (4 * (e + 1) * e) == pytest.approx(h)


@pytest.mark.parametrize("epsilon", [1000, 200_000, MICRO, 4 * MICRO, 20 * MICRO])
def test_erratum_the_papers_lemma_is_loose_by_2_to_square_root_of_8(epsilon):
    """Hoeffding gives the same probability with a smaller threshold: the ratio is sqrt(8 e / (1 + e))."""
    ratio = paper_threshold(10**4, epsilon, 5.0) / hoeffding_threshold(10**4, epsilon, 5.0)
    e = math.exp(epsilon / MICRO)
    assert ratio == pytest.approx(math.sqrt(8 * e / (1 + e)))
    assert 2 < ratio < math.sqrt(8)


@pytest.mark.parametrize("per_round", [0.001, 0.05, 0.5, 2.0, 8.0])
def test_erratum_the_bound_for_small_epsilon_holds_for_no_epsilon(per_round):
    """Printed: e (1 + e) / (e - 1)^2 <= 2 L^2 / epsilon^2."""
    e = math.exp(per_round)
    assert e * (1 + e) / (e - 1) ** 2 > 2 / per_round**2


def test_a_large_epsilon_does_not_overflow():
    assert paper_threshold(100, 10**6 * MICRO, 1.0) == pytest.approx(0.2)
    assert hoeffding_threshold(100, 10**6 * MICRO, 1.0) == pytest.approx(math.sqrt(0.005))


@pytest.mark.parametrize("epsilon", [200_000, MICRO, 4 * MICRO])
def test_nobody_who_said_yes_is_believed_in_as_rarely_as_was_asked(epsilon):
    """Seeded; with fresh numbers it would fail with probability 1e-6 a case. Hoeffding's and the paper's
    thresholds are at least as strict as the exact one."""
    answers, failure, runs = 2000, 0.02, 50_000
    lie = 1 - truth_probability(epsilon)
    counts = seeded(f"all no {epsilon}").binomial(answers, lie, runs)
    exact = exact_count(answers, epsilon, failure)
    margin = SIGMAS * math.sqrt(failure / runs)
    assert np.mean(counts >= exact) <= failure + margin
    assert np.mean(counts >= exact - answers // 50) > failure + margin  # control: a laxer threshold
    estimates = estimate_fraction(0, answers, epsilon) + counts * (
        (estimate_fraction(answers, answers, epsilon) - estimate_fraction(0, answers, epsilon)) / answers
    )
    for threshold in (hoeffding_threshold, paper_threshold):
        assert np.mean(estimates >= threshold(answers, epsilon, -math.log(failure))) <= failure + margin
    assert exact <= answers
