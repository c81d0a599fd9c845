"""Minimum, maximum and quantile as the protocol of a session."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from app.core.grid import GRID_SIZE, Grid
from app.core.session import Terms
from app.sessions.accuracy import accuracy
from app.sessions.documents import from_document, to_document
from app.sessions.protocol import RoundAnswers
from app.sessions.response import Tally
from app.sessions.search import Mode, Search, Target, advance, decided, decisive, least_positives

YES = 1


@dataclass(frozen=True, slots=True)
class RunningSearch:
    """A noisy binary search: is your value at most (for a maximum: at least) the middle of what is left?

    Attributes:
        search: Where it stands.
        stopped: Whether it was ended before its last round.
    """

    search: Search
    stopped: bool = False

    @classmethod
    def restore(cls, document: Mapping[str, Any]) -> Self:
        """The protocol that a document was made from.

        Raises:
            InternalFault: it was not made by `document`.
        """
        return cls(from_document(Search, document), bool(document.get("stopped", False)))

    @property
    def terms(self) -> Terms:
        """Binary answers; the mode sets their number for each participant."""
        rules = self.search.rules
        return Terms(
            rounds=rules.rounds,
            epsilon_per_answer=rules.epsilon_per_answer,
            answers_per_person=rules.answers_per_person,
        )

    @property
    def assigns(self) -> bool:
        """Whether each person answers in one round only."""
        return self.search.rules.mode is Mode.USER_SPLIT

    @property
    def people_per_round(self) -> int:
        """People who are expected to answer in one round."""
        return self.search.rules.people_per_round

    @property
    def round(self) -> int | None:
        """The open round, from 1; None once all are closed."""
        return None if self.stopped or self.search.finished else self.search.round

    def close(self, answers: RoundAnswers) -> "RunningSearch":
        """Narrow the interval by the answers of the open round."""
        return RunningSearch(advance(self.search, _tally(answers)))

    def stop(self, answers: RoundAnswers) -> "RunningSearch":
        """End early. The open round counts if it has the people that were expected, or is believed.

        To be believed is evidence with any number of answers; not to be believed is evidence only among as
        many as were expected.
        """
        rules, tally = self.search.rules, _tally(answers)
        complete = tally.answers >= rules.people_per_round
        believed = (
            rules.quantile is None
            and decisive(rules, tally.answers)
            and tally.positives >= least_positives(rules, tally.answers)
        )
        search = advance(self.search, tally) if complete or believed else self.search
        return RunningSearch(search, stopped=True)

    def announcement(self) -> Mapping[str, object]:
        """How the search is made."""
        rules = self.search.rules
        return {
            "mode": rules.mode.value,
            "threshold": rules.threshold.value,
            "participants": rules.participants,
            "quantile": rules.quantile,
        }

    def question(self, grid: Grid) -> Mapping[str, object]:
        """The threshold, and which side of it counts as yes."""
        maximum = self.search.rules.target is Target.MAXIMUM
        return {
            "threshold": self.search.threshold,
            "threshold_value": _value(grid, self.search.threshold),
            "direction": "at_least" if maximum else "at_most",
        }

    def progress(self, grid: Grid) -> Mapping[str, object]:
        """The closed rounds: the interval before each, what was asked, and what came of it."""
        return {
            "path": [
                {
                    "round": number,
                    "lower": _value(grid, step.lower),
                    "upper": _value(grid, step.upper),
                    "threshold": _value(grid, step.threshold),
                    "answers": step.answers,
                    "fraction": step.fraction,
                    "believed": step.believed,
                    "decided": decided(self.search.rules, step),
                }
                for number, step in enumerate(self.search.steps, start=1)
            ]
        }

    def result(self, grid: Grid) -> Mapping[str, object]:
        """The estimate with its interval, and how far both can be off."""
        search = self.search
        statement = accuracy(search)
        low, high = search.interval
        return {
            "estimate": grid.to_unit(Fraction(search.estimate) / GRID_SIZE),
            "interval": {"lower": _value(grid, low), "upper": _value(grid, high)},
            "error": {
                "resolution": float(grid.width * statement.resolution / GRID_SIZE),
                "missed_fraction": statement.missed_fraction,
                "failure_probability": statement.failure_probability,
                "undecided_rounds": statement.undecided_rounds,
            },
        }

    def document(self) -> dict[str, object]:
        """The search, to be stored."""
        return {**to_document(self.search), "stopped": self.stopped}


def interval_after(step: Mapping[str, Any], *, maximum: bool) -> tuple[float, float]:
    """What is left of the range after a closed round, in the data's unit.

    Args:
        step: The round, as `RunningSearch.progress` tells it.
        maximum: Whether "at least" was asked, so that who is believed is above the threshold.
    """
    if not step["decided"]:
        return float(step["lower"]), float(step["upper"])
    above = step["believed"] is maximum
    ends = (step["threshold"], step["upper"]) if above else (step["lower"], step["threshold"])
    return float(ends[0]), float(ends[1])


def answers_needed_by_default(people_per_round: int, *, assigned: bool) -> int:
    """Answers with which a round closes unless an admin says otherwise.

    Where all are asked in every round, all who are expected. Where each person is assigned a round by a hash,
    a round has Binomial(people, 1 / rounds) of them, and half of the rounds would wait for ever for their
    mean; so it closes 3.5 standard deviations below, but not below half.
    """
    if not assigned:
        return people_per_round
    shortfall = math.ceil(3.5 * math.sqrt(people_per_round))
    return max(people_per_round - shortfall, (people_per_round + 1) // 2, 1)


def _tally(answers: RoundAnswers) -> Tally:
    return Tally(answers=answers.total, positives=answers.counts.get(YES, 0))


def _value(grid: Grid, point: int) -> float:
    return grid.to_unit(Fraction(point, GRID_SIZE))
