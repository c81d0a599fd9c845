"""The minimum paper's searches, many at a time: the product's rules and thresholds on simulated answers."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln

from app.sessions.response import estimate_fraction, paper_threshold, truth_probability
from app.sessions.search import (
    MAX_ROUNDS,
    UNKNOWN_ALPHA_SIZE,
    Depth,
    Mode,
    Rules,
    Target,
    Threshold,
    least_positives,
    make_rules,
)
from dither_research.people import micro
from dither_research.seeded import Floats, Random

LOW, HIGH = -1.0, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaTail:
    """Data xmin + width X, X of law Beta(alpha, beta).

    Attributes:
        alpha, beta: Of the law; alpha is the fatness of the minimum's side.
        width: Of the support.
        minimum: xmin.
    """

    alpha: float
    beta: float
    width: float
    minimum: float

    def cumulative(self, points: Floats) -> Floats:
        """F at some points."""
        inside = np.clip((points - self.minimum) / self.width, 0.0, 1.0)
        found: Floats = betainc(self.alpha, self.beta, inside)
        return found

    @property
    def fatness(self) -> float:
        """C: F(x) >= C (x - xmin)^alpha on the support. The paper's Example 1 has max, which is false."""
        head = math.exp(gammaln(self.alpha + self.beta) - gammaln(self.alpha + 1) - gammaln(self.beta))
        return float(min(1.0, head) / self.width**self.alpha)


class Crowd(Protocol):
    """Knows how many people lie at or below a point, in many simulated runs."""

    def at_most(self, points: Floats, random: Random) -> Floats:
        """Counts, one a run, for one point a run."""


class FixedCrowd:
    """The same people in every run: x_(i) = F^-1((i - 1) / (N - 1)).

    Args:
        tail: Their law.
        people: N, at least 2.
    """

    def __init__(self, tail: BetaTail, people: int) -> None:
        self._tail = tail
        self._people = people

    def at_most(self, points: Floats, random: Random) -> Floats:
        """Counts of people at or below one point a run."""
        counts: Floats = np.floor(self._tail.cumulative(points) * (self._people - 1)) + 1
        return np.where(points >= self._tail.minimum, counts, 0.0)


class DrawnCrowd:
    """Fresh independent people in every run, found out about as the search goes on.

    Args:
        tail: Their law.
        people: N.
        runs: How many crowds.
    """

    def __init__(self, tail: BetaTail, people: int, runs: int) -> None:
        self._tail = tail
        self._low, self._high = np.zeros(runs), np.ones(runs)
        self._counts_low, self._counts_high = np.zeros(runs), np.full(runs, float(people))

    def at_most(self, points: Floats, random: Random) -> Floats:
        """Counts of people at or below one point a run; inside what is left of the search."""
        share = self._tail.cumulative(points)
        span = self._high - self._low
        odds = np.divide(share - self._low, span, out=np.zeros_like(span), where=span > 0)
        between = (self._counts_high - self._counts_low).astype(np.int64)
        counts = self._counts_low + random.binomial(between, np.clip(odds, 0.0, 1.0))
        self._asked = (share, counts)
        return counts

    def keep(self, lower: NDArray[np.bool_]) -> None:
        """Go on in the lower half, or in the upper one."""
        share, counts = self._asked
        self._high = np.where(lower, share, self._high)
        self._counts_high = np.where(lower, counts, self._counts_high)
        self._low = np.where(lower, self._low, share)
        self._counts_low = np.where(lower, self._counts_low, counts)


def paper_rules(
    people: int,
    epsilon: float,
    depth: Depth,
    *,
    mode: Mode = Mode.BUDGET_SPLIT,
    threshold: Threshold = Threshold.PAPER,
) -> Rules:
    """The rules of Corollary 1 (lower bound 1 on alpha) or 2 (alpha unknown), conclusive or not.

    `make_rules` refuses what cannot be conclusive; the paper runs it all the same.

    Args:
        people: N.
        epsilon: Of one person.
        depth: Which corollary.
        mode, threshold: The paper's by default.
    """
    logarithm, binary = math.log(people), math.log2(people)
    if depth is Depth.UNKNOWN_ALPHA:
        rounds = math.ceil(binary**2 / (2 * math.log2(UNKNOWN_ALPHA_SIZE)))
        exponent = logarithm**2 / (2 * math.log(UNKNOWN_ALPHA_SIZE))
    else:
        rounds, exponent = math.ceil(binary / 2), logarithm / 2
    return Rules(
        target=Target.MINIMUM,
        mode=mode,
        threshold=threshold,
        rounds=min(rounds, MAX_ROUNDS),
        epsilon=micro(epsilon),
        participants=people,
        failure_exponent=exponent,
    )


def default_rules(people: int, epsilon: float) -> Rules:
    """The rules of a minimum for which nothing was chosen.

    Args:
        people: N.
        epsilon: Of one person.

    Raises:
        InvalidRequest: there are too few people.
    """
    return make_rules(target=Target.MINIMUM, epsilon=micro(epsilon), participants=people)


def search(rules: Rules, crowd: FixedCrowd | DrawnCrowd, runs: int, random: Random) -> Floats:
    """Estimated minima of many searches.

    Args:
        rules: Of a minimum.
        crowd: The people.
        runs: Searches.
        random: The source.

    Returns:
        float64 array of shape (runs,), in [-1, 1]: the middle of what is left, not what the product reads off
        all rounds (`app.sessions.onset`). What `app.sessions.search.advance` makes of the same tallies:
        randomized answers are binomial given how many people would truly say yes. Under the paper's threshold
        it is the paper's algorithm also where gamma exceeds 1 and the product refuses: an estimated fraction
        can exceed 1 too.
    """
    people = rules.participants if rules.mode is Mode.BUDGET_SPLIT else rules.people_per_round
    needed = _least_positives(rules, people)
    truth = truth_probability(rules.epsilon_per_answer)
    lower, upper = np.full(runs, LOW), np.full(runs, HIGH)
    for _ in range(rules.rounds):
        middle = (lower + upper) / 2
        yes = crowd.at_most(middle, random).astype(np.int64)
        if rules.mode is Mode.USER_SPLIT:
            yes = random.hypergeometric(yes, rules.participants - yes, people)
        positives = random.binomial(yes, truth) + random.binomial(people - yes, 1 - truth)
        believed = positives >= needed
        if isinstance(crowd, DrawnCrowd):
            crowd.keep(believed)
        upper = np.where(believed, middle, upper)
        lower = np.where(believed, lower, middle)
    found: Floats = (lower + upper) / 2
    return found


def _least_positives(rules: Rules, people: int) -> int:
    """The number of yes that is believed; of the paper's threshold also where no true fraction reaches it."""
    if rules.threshold is not Threshold.PAPER:
        return least_positives(rules, people)
    epsilon = rules.epsilon_per_answer
    least = paper_threshold(people, epsilon, rules.failure_exponent)
    return bisect_left(
        range(people + 1), least, key=lambda positives: estimate_fraction(positives, people, epsilon)
    )


def naive_minimum(tail: BetaTail, people: int, epsilon: float, runs: int, random: Random) -> Floats:
    """The smallest x + Lap(2 / epsilon) over all people, from the exact law of that minimum.

    Args:
        tail: Law of the data.
        people: N.
        epsilon: Of one person.
        runs: Minima.
        random: The source.
    """
    scale = 2 / epsilon
    quantiles = (np.arange(128) + 0.5) / 128
    fine = np.linspace(0, 1, 4097)
    values = tail.minimum + tail.width * np.interp(quantiles, betainc(tail.alpha, tail.beta, fine), fine)
    points = np.linspace(LOW - scale * (math.log(people) + 25), HIGH, 1501)
    distance = (points[:, np.newaxis] - values) / scale
    below = np.where(distance < 0, 0.5 * np.exp(np.minimum(distance, 0)), 1 - 0.5 * np.exp(-np.abs(distance)))
    hazard = -np.log1p(-np.minimum(below, 1 - 1e-15)).mean(axis=1) * people
    return np.interp(random.standard_exponential(runs), hazard, points)


def gamma(rules: Rules) -> float:
    """The paper's threshold on the estimated fraction; it can exceed 1."""
    return paper_threshold(rules.participants, rules.epsilon_per_answer, rules.failure_exponent)


def fixed_bound(rules: Rules, tail: BetaTail) -> float:
    """Theorem 4: a bound on the mean error for fixed people; infinite where it says nothing."""
    threshold = gamma(rules)
    if 2 * threshold >= tail.fatness * tail.width**tail.alpha:
        return math.inf
    return float(2 * (2 * threshold / tail.fatness) ** (1 / tail.alpha)) + _rest(rules)


def drawn_bound(rules: Rules, tail: BetaTail) -> float:
    """Theorem 5: a bound on the mean error for independent people; infinite where it says nothing."""
    threshold = gamma(rules)
    if 2 * threshold >= tail.fatness * tail.width**tail.alpha:
        return math.inf
    power = 1 / tail.alpha
    k = math.ceil(2 * threshold * rules.participants)
    rising = gammaln(k + power) - gammaln(k)
    rising -= gammaln(rules.participants + 1 + power) - gammaln(rules.participants + 1)
    return float(2 * tail.fatness**-power * math.exp(rising)) + _rest(rules)


def _rest(rules: Rules) -> float:
    return math.exp(-rules.failure_exponent) + 0.5**rules.rounds
