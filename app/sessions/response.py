"""What the server may conclude from randomized yes/no answers.

An answer is binary randomized response: the truth with probability q = e^epsilon / (1 + e^epsilon). All
of this is post-processing: it costs no privacy.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

import scipy

from app.core.epsilon import MICRO


def truth_probability(epsilon: int) -> float:
    """Probability that an answer of this epsilon [micro-epsilon] is the truth."""
    return 1 / (1 + math.exp(-epsilon / MICRO))


def estimate_fraction(positives: int, answers: int, epsilon: int) -> float:
    r"""Unbiased estimate of the fraction of people whose true answer is yes.

    :math:`\Phi' = (z / n - (1 - q)) / (2 q - 1)`, which may lie outside [0, 1].

    Args:
        positives: Answers 1.
        answers: All answers, at least 1.
        epsilon: Of one answer [micro-epsilon].

    References:
        Fukuchi, Yu, Haishima, Sakuma, "Locally Differentially Private Minimum Finding",
        arXiv:1905.11067, Algorithm 2, line 6.

    Examples:
        >>> round(estimate_fraction(731, 1000, 1_000_000), 3)
        0.999
    """
    truth = truth_probability(epsilon)
    return (positives / answers - (1 - truth)) / (2 * truth - 1)


def paper_threshold(answers: int, epsilon: int, failure_exponent: float) -> float:
    r"""Fraction from which the paper believes that a person said yes.

    :math:`\gamma = \sqrt{4 e (1 + e) h / ((e - 1)^2 N)}` with e = exp(epsilon of one answer), so that a
    mistake has probability at most exp(-h).

    References:
        arXiv:1905.11067, Theorem 1 and Lemma 2.
    """
    exponential = math.exp(-epsilon / MICRO)
    # Divided by e^2 throughout, so that a large epsilon does not overflow.
    numerator = 4 * (1 + exponential) * failure_exponent
    return math.sqrt(numerator / ((1 - exponential) ** 2 * answers))


def hoeffding_threshold(answers: int, epsilon: int, failure_exponent: float) -> float:
    r"""The same with Hoeffding's inequality: :math:`\coth(\epsilon / 2) \sqrt{h / (2 N)}`.

    Two to three times smaller than the paper's at the same probability of a mistake.

    References:
        Hoeffding, JASA 1963, doi:10.1080/01621459.1963.10500830, Theorem 1.
    """
    return math.sqrt(failure_exponent / (2 * answers)) / math.tanh(epsilon / MICRO / 2)


def exact_count(answers: int, epsilon: int, failure: float) -> int:
    """Smallest number of yes that all-no people produce with at most this probability.

    With no one truly saying yes the number of yes is Binomial(answers, 1 - q), whose tail is computed,
    not bounded.

    Args:
        answers: All answers, at least 0.
        epsilon: Of one answer [micro-epsilon].
        failure: Admissible probability, in (0, 1).

    Returns:
        The count; answers + 1 where no count is that improbable.
    """
    lie = 1 - truth_probability(epsilon)
    return bisect_left(
        range(answers + 2), True, key=lambda count: at_least_probability(count, answers, lie) <= failure
    )


def at_least_probability(count: int, trials: int, probability: float) -> float:
    """Probability that a Binomial(trials, probability) is at least `count`.

    The regularized incomplete beta function is the tail; `scipy.stats`, which would call the same function,
    takes longer to load than most commands run.

    References:
        NIST Digital Library of Mathematical Functions, 8.17.5.

    Examples:
        >>> [round(at_least_probability(count, 2, 0.5), 12) for count in range(4)]
        [1.0, 0.75, 0.25, 0.0]
    """
    if count <= 0:
        return 1.0
    return float(scipy.special.betainc(count, trials - count + 1, probability)) if count <= trials else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The answers of one round.

    Attributes:
        answers: How many.
        positives: How many said yes.
    """

    answers: int
    positives: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRound:
    """One closed round.

    Attributes:
        lower, upper: The interval before it [grid steps].
        threshold: What was asked: is your value at most this (maximum: at least this) [grid step].
        answers, positives: How many answered, and how many of them yes.
        fraction: Estimated fraction of people who truly say yes; None without answers.
        believed: Whether the answers were evidence that a person does; for a quantile, that it lies at or
            below the threshold.
    """

    lower: int
    upper: int
    threshold: int
    answers: int
    positives: int
    fraction: float | None
    believed: bool
