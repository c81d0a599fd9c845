r"""Minimum, maximum and quantile: a noisy binary search over the grid.

Each round asks "is your value at most t?" for the middle t of the interval that is left, in a quantile's
search for the posterior median (`app.sessions.quantile`), and every answer is randomized on the device. In
the end a minimum is read off all rounds, too (`app.sessions.onset`).
`budget_split` asks all people in every round with epsilon / L (arXiv:1905.11067, Algorithm 2); `user_split`
asks each person once, with the whole epsilon. The server sees randomized answers only, so nothing here costs
privacy beyond them.

A maximum is the minimum of the reflected values. A search is frozen data: `advance` returns the next one.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from app.core.errors import InternalFault, InvalidRequest
from app.core.grid import GRID_BITS, GRID_SIZE
from app.sessions.onset import Seen, onset
from app.sessions.quantile import SearchReading
from app.sessions.response import (
    ClosedRound,
    Tally,
    estimate_fraction,
    exact_count,
    hoeffding_threshold,
    paper_threshold,
)

MAX_ROUNDS = GRID_BITS
"""After this many rounds the interval is one grid step."""

UNKNOWN_ALPHA_SIZE = 1000
"""The N0 of the paper's parameters for an unknown alpha."""

DEFAULT_ALPHA = 1.0
"""Lower bound on the fatness of the tail where none is given."""

MIN_PARTICIPANTS = 2
MAX_PARTICIPANTS = 2**40


class Target(StrEnum):
    """What is looked for."""

    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    QUANTILE = "quantile"


class Mode(StrEnum):
    """How a person's epsilon is used."""

    BUDGET_SPLIT = "budget_split"
    """Each person answers every round with an equal part of it."""

    USER_SPLIT = "user_split"
    """Each person answers one round with all of it."""


class Threshold(StrEnum):
    """When answers are believed."""

    PAPER = "paper"
    HOEFFDING = "hoeffding"
    EXACT_BINOMIAL = "exact_binomial"


class Depth(StrEnum):
    """What the number of rounds is derived from."""

    LOWER_ALPHA = "lower_alpha"
    UNKNOWN_ALPHA = "unknown_alpha"


DEFAULT_DEPTH = Depth.UNKNOWN_ALPHA
"""Measures best: over alphas from 1/2 to 4, `dither reproduce minimum-default`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is fixed, and announced, before the first answer.

    Attributes:
        target: What is looked for.
        mode: How each epsilon is used.
        threshold: When answers are believed; a quantile needs none.
        rounds: L.
        epsilon: What taking part costs a person in all, at most [micro-epsilon].
        participants: People who are expected to take part.
        failure_exponent: h: each search goes wrong with probability about exp(-h).
        quantile: The fraction that is looked for; None for minimum and maximum.
        posterior: Whether the estimate is read off all rounds, and a quantile's rounds are asked as in
            `app.sessions.quantile`. Searches that began before there was this rule halve the interval, and
            their estimate is its middle.
    """

    target: Target
    mode: Mode
    threshold: Threshold
    rounds: int
    epsilon: int
    participants: int
    failure_exponent: float
    quantile: float | None = None
    posterior: bool = False

    @property
    def epsilon_per_answer(self) -> int:
        """Of one answer, rounded down [micro-epsilon]."""
        return self.epsilon // self.rounds if self.mode is Mode.BUDGET_SPLIT else self.epsilon

    @property
    def answers_per_person(self) -> int:
        """Rounds in which a person answers."""
        return self.rounds if self.mode is Mode.BUDGET_SPLIT else 1

    @property
    def people_per_round(self) -> int:
        """People who are expected to answer in one round."""
        share = 1 if self.mode is Mode.BUDGET_SPLIT else self.rounds
        return self.participants // share

    @property
    def reading(self) -> SearchReading | None:
        """How a quantile is read; None where the interval is halved."""
        if self.quantile is None or not self.posterior:
            return None
        return SearchReading(quantile=self.quantile, epsilon=self.epsilon_per_answer, rounds=self.rounds)


def make_rules(
    *,
    target: Target,
    epsilon: int,
    participants: int,
    mode: Mode = Mode.USER_SPLIT,
    threshold: Threshold = Threshold.EXACT_BINOMIAL,
    rounds: int | Depth = DEFAULT_DEPTH,
    alpha: float = DEFAULT_ALPHA,
    quantile: float | None = None,
) -> Rules:
    """Fix the rules of a search.

    Args:
        target: What is looked for.
        epsilon: Of one person, in all [micro-epsilon].
        participants: People who are expected to take part.
        mode, threshold: See there; the defaults measure best.
        rounds: Their number, or what to derive it from: a lower bound on alpha, or no knowledge.
        alpha: The lower bound on alpha.
        quantile: In (0, 1), for target quantile only.

    Raises:
        InvalidRequest: a parameter is not admissible, or there are too few people: then no answers,
            however they turn out, could be believed. The message says how many it would take.
    """
    check_participants(participants)
    if target is not Target.QUANTILE and quantile is not None:
        raise InvalidRequest.field("quantile", f"goes with protocol quantile, not with {target}")
    if target is Target.QUANTILE and quantile is None:
        raise InvalidRequest.field("quantile", "is needed with protocol quantile, between 0 and 1")
    if quantile is not None and not 0 < quantile < 1:
        raise InvalidRequest.field("quantile", "must be between 0 and 1")
    if not 0 < alpha < math.inf:
        raise InvalidRequest.field("alpha", "must be positive")
    count, exponent = _depth(rounds, participants, alpha)
    rules = Rules(
        target=target,
        mode=mode,
        threshold=threshold,
        rounds=count,
        epsilon=epsilon,
        participants=participants,
        failure_exponent=exponent,
        quantile=quantile,
        posterior=True,
    )
    if rules.epsilon_per_answer < 1:
        raise InvalidRequest.field("epsilon", "leaves nothing for a single answer")
    if not conclusive(rules):
        raise InvalidRequest.field("participants", f"too few: it takes at least {people_needed(rules)}")
    return rules


def check_participants(number: int) -> None:
    """Refuse a number of people that no session, of any protocol, can expect.

    Raises:
        InvalidRequest: it is out of range.
    """
    _check_range("participants", number, MIN_PARTICIPANTS, MAX_PARTICIPANTS)


def conclusive(rules: Rules) -> bool:
    """Whether the expected number of answers can be evidence at all (the paper's gamma is at most 1)."""
    people = rules.people_per_round
    if people < 1:
        return False
    return rules.quantile is not None or least_positives(rules, people) <= people


def people_needed(rules: Rules) -> int:
    """The smallest number of participants with which these rules are conclusive."""
    low, high = rules.participants, rules.participants
    while not conclusive(replace(rules, participants=high)):
        low, high = high, 2 * high
        if high > MAX_PARTICIPANTS:
            raise InvalidRequest.field("epsilon", "too small for a search among any number of people")
    while high - low > 1:
        middle = (low + high) // 2
        if conclusive(replace(rules, participants=middle)):
            high = middle
        else:
            low = middle
    return high


def least_positives(rules: Rules, answers: int) -> int:
    """The number of yes from which the answers of a round are believed.

    Args:
        rules: Of the search.
        answers: Answers in the round.

    Returns:
        The count; answers + 1 where no count would do.
    """
    epsilon = rules.epsilon_per_answer
    if rules.quantile is not None:
        return _count_for(rules.quantile, answers, epsilon)
    match rules.threshold:
        case Threshold.PAPER:
            gamma = paper_threshold(answers, epsilon, rules.failure_exponent) if answers else math.inf
            return _count_for(gamma, answers, epsilon)
        case Threshold.HOEFFDING:
            gamma = hoeffding_threshold(answers, epsilon, rules.failure_exponent) if answers else math.inf
            return _count_for(gamma, answers, epsilon)
        case Threshold.EXACT_BINOMIAL:
            # Split over the rounds: otherwise rare mistakes in the first round ruin the mean square.
            return exact_count(answers, epsilon, math.exp(-rules.failure_exponent) / rules.rounds)
        case _:
            assert_never(rules.threshold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search under way.

    Attributes:
        rules: Fixed at the start.
        lower, upper: The interval that is left [grid steps].
        steps: The closed rounds.
        asked: What the open round asks about; None: the middle of the interval. It is stored, so that no
            restart asks another question.
    """

    rules: Rules
    lower: int = 0
    upper: int = GRID_SIZE
    steps: tuple[ClosedRound, ...] = ()
    asked: int | None = None

    @property
    def round(self) -> int:
        """The round that is open, from 1; after the last one rounds + 1."""
        return len(self.steps) + 1

    @property
    def finished(self) -> bool:
        """Whether every round is closed."""
        return self.round > self.rules.rounds

    @property
    def threshold(self) -> int:
        """What the open round asks about [grid step]."""
        return (self.lower + self.upper) // 2 if self.asked is None else self.asked

    @property
    def estimate(self) -> float:
        """Read off all rounds [grid steps].

        A minimum is where `onset` says, and the middle of what is left where that is in it: among people who
        lie close together no error is more than half of the last interval.
        """
        middle = (self.lower + self.upper) / 2
        if not self.rules.posterior or not any(step.answers for step in self.steps):
            return middle
        if self.rules.reading is not None:
            return self.rules.reading.estimate(self.steps, self.lower, self.upper)
        found = self._onset()
        if self.rules.target is Target.MAXIMUM:
            return found if found > self.upper else middle
        return found if found < self.lower else middle

    @property
    def interval(self) -> tuple[int, int]:
        """What is stated with the estimate [grid steps].

        What is left of the range: a quantile is in it. Where a minimum lies below that, it begins at the last
        threshold below it that was not believed: no more people are below that than below what is left.
        """
        if self.rules.reading is not None:
            return self.lower, self.upper
        estimate = self.estimate
        return (
            max(end for end in (0, self.lower, *(step.lower for step in self.steps)) if end <= estimate),
            min(
                end
                for end in (GRID_SIZE, self.upper, *(step.upper for step in self.steps))
                if end >= estimate
            ),
        )

    def _onset(self) -> float:
        """Where the values of all rounds begin, from the side of the target [grid steps]."""
        maximum = self.rules.target is Target.MAXIMUM
        seen = tuple(
            Seen(
                threshold=(GRID_SIZE - step.threshold if maximum else step.threshold) / GRID_SIZE,
                positives=step.positives,
                answers=step.answers,
            )
            for step in self.steps
            if step.answers
        )
        found = onset(seen, self.rules.epsilon_per_answer) * GRID_SIZE
        return GRID_SIZE - found if maximum else found


def decisive(rules: Rules, answers: int) -> bool:
    """Whether a round with `answers` answers can decide anything: some outcome of it would be believed."""
    return answers > 0 and least_positives(rules, answers) <= answers


def advance(search: Search, tally: Tally) -> Search:
    """Close the open round.

    Args:
        search: An unfinished search.
        tally: The answers of the open round.

    Returns:
        The search with half the interval: the half at the side of the target if the answers were
        believed, the other half otherwise. Answers too few to be believed, whatever they are, decide
        nothing: the interval stays as it is. A quantile's interval loses what its answers are evidence
        against.

    Raises:
        InternalFault: the search is finished, or the tally is impossible.
    """
    if search.finished or not 0 <= tally.positives <= tally.answers:
        raise InternalFault("a round cannot be closed like this")
    # 1. Are the answers evidence for one side?
    rules, middle, reading = search.rules, search.threshold, search.rules.reading
    believed, decided = _verdict(rules, tally)
    step = ClosedRound(
        lower=search.lower,
        upper=search.upper,
        threshold=middle,
        answers=tally.answers,
        positives=tally.positives,
        fraction=estimate_fraction(tally.positives, tally.answers, rules.epsilon_per_answer)
        if tally.answers
        else None,
        believed=believed,
    )
    steps, lower, upper = (*search.steps, step), search.lower, search.upper
    # 2. Keep that side. Yes means below the threshold, and for a maximum above it.
    if decided:
        keeps_lower_part = believed != (rules.target is Target.MAXIMUM)
        lower, upper = (lower, middle) if keeps_lower_part else (middle, upper)
    asked = None if reading is None else reading.next_threshold(steps, lower, upper)
    return replace(search, lower=lower, upper=upper, steps=steps, asked=asked)


def decided(rules: Rules, step: ClosedRound) -> bool:
    """Whether a closed round moved an end of the interval."""
    return _verdict(rules, Tally(answers=step.answers, positives=step.positives))[1]


def _verdict(rules: Rules, tally: Tally) -> tuple[bool, bool]:
    """Whether a round is believed, and whether it decides anything."""
    if rules.reading is None:
        able = decisive(rules, tally.answers)
        return able and tally.positives >= least_positives(rules, tally.answers), able
    above = rules.reading.above(tally.positives, tally.answers)
    return above, above or rules.reading.below(tally.positives, tally.answers)


def truthful(target: Target, point: int, threshold: int) -> bool:
    """The true answer of a person at a grid point: a tie counts as yes."""
    return point >= threshold if target is Target.MAXIMUM else point <= threshold


def _count_for(fraction: float, answers: int, epsilon: int) -> int:
    """Smallest count whose estimated fraction reaches `fraction`; answers + 1 if none does."""
    if fraction > 1:
        return answers + 1
    if answers == 0:
        return 1
    low, high = 0, answers + 1
    while low < high:
        middle = (low + high) // 2
        if estimate_fraction(middle, answers, epsilon) >= fraction:
            high = middle
        else:
            low = middle + 1
    return low


def _depth(rounds: int | Depth, participants: int, alpha: float) -> tuple[int, float]:
    """Rounds and failure exponent: Corollaries 1 and 2 of arXiv:1905.11067."""
    logarithm = math.log(participants)
    if rounds is Depth.UNKNOWN_ALPHA:
        binary = math.log2(participants)
        count = math.ceil(binary**2 / (2 * math.log2(UNKNOWN_ALPHA_SIZE)))
        return max(1, min(count, MAX_ROUNDS)), logarithm**2 / (2 * math.log(UNKNOWN_ALPHA_SIZE))
    exponent = logarithm / (2 * alpha)
    if rounds is Depth.LOWER_ALPHA:
        count = math.ceil(math.log2(participants) / (2 * alpha))
        return max(1, min(count, MAX_ROUNDS)), exponent
    _check_range("rounds", rounds, 1, MAX_ROUNDS)
    return rounds, exponent


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidRequest.field(name, f"must be between {low} and {high}")
