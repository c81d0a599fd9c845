"""Sessions on the wire: what every caller sees of them."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from app.core.epsilon import epsilon_to_json
from app.core.grid import GRID_BITS
from app.core.session import Given, SessionProtocol, SessionState
from app.core.study import Study
from app.services.sessions.session_cache import Session
from app.sessions.search import (
    Mode,
    Threshold,
)
from app.web.documents.types import WireOut


class BoundsOut(WireOut):
    """Where it may lie, in the data's unit; a quantile lies in it with probability 95 %."""

    lower: float
    upper: float


class StepOut(WireOut):
    """A closed round: the interval before it, what was asked, and what came of it."""

    round: int
    lower: float
    upper: float
    threshold: float
    answers: int
    fraction: float | None = Field(description="Estimated fraction of true yes; null without answers.")
    believed: bool = Field(description="Evidence that one person says yes; for a quantile, that it is there.")
    decided: bool = Field(description="Whether it narrowed the interval; else it left it.")


class ErrorOut(WireOut):
    """How far the estimate can be off, whatever the data look like."""

    resolution: float = Field(description="Width of the interval, in the data's unit.")
    missed_fraction: float = Field(
        description="At most this fraction of the people lies beyond the interval on the side that is looked "
        "for; for a quantile, how far the rank of the estimate can be off."
    )
    failure_probability: float = Field(description="This statement is wrong with at most this probability.")
    undecided_rounds: int = Field(description="Rounds with too few answers to decide anything.")


class ClusterStepOut(WireOut):
    """A closed round of K-means: what came out."""

    round: int
    centres: list[list[float]] = Field(description="In the data's unit.")
    noise_errors: list[float | None] = Field(
        description="For each centre how far a coordinate is off because of noise, as a standard deviation "
        "and as far as it is that of its sum; null where no person was counted and the centre stayed."
    )
    answers: int = Field(description="Local people who answered.")
    central: float | None = Field(
        description="Central and public people with noise, never exact; null where none took part."
    )
    release: str | None = Field(description="What was published about them.")


class SessionOut(WireOut):
    """A session. `estimate`, `interval` and `error` of a search come once it has finished.

    `mode`, `threshold` and `quantile` are those of a search; `dimension`, `clusters`, `report_epsilon`,
    `central_epsilon_per_round`, `centres` and `initial_centres` those of kmeans.
    """

    id: str
    study: str
    protocol: SessionProtocol
    mode: Mode | None = Field(
        None, description="Whether a person answers every round, or one round with all of the epsilon."
    )
    threshold: Threshold | None = Field(None, description="From how many yes answers are believed.")
    dimension: int | None = Field(None, description="Coordinates of a value.")
    clusters: int | None = Field(None, description="Centres.")
    state: SessionState
    rounds: int
    round: int | None = Field(description="The open one; null once finished.")
    answers: int = Field(description="In the open round so far.")
    epsilon_per_answer: float
    epsilon_total: float = Field(description="What taking part reserves, and can ever cost.")
    report_epsilon: float | None = Field(
        None, description="What the report beside a person's first answer costs, out of epsilon_total."
    )
    central_epsilon_per_round: float | None = Field(
        None,
        description="What a round costs a person whose central contribution takes part; with Gaussian noise "
        "at the study's delta, where rounds add up in mu^2.",
    )
    answers_per_person: int = Field(description="Rounds in which a person answers, at most.")
    participants: int | None = Field(description="How many people are expected.")
    quantile: float | None = Field(None, description="The fraction that is looked for.")
    answers_per_round: int | None = Field(description="How many close a round; null where none do.")
    round_seconds: float | None = Field(description="After which a round closes; null where it does not.")
    deadline: datetime = Field(description="When the session ends.")
    created_at: datetime
    finished_at: datetime | None
    lower: float = Field(description="Of the study's range.")
    upper: float
    grid_bits: int = Field(description="The range has 2^grid_bits steps.")
    assignment_key: str | None = Field(
        None, description="For user_split: from it a device computes its round; hexadecimal."
    )
    path: list[StepOut] | list[ClusterStepOut] = Field(description="The closed rounds.")
    centres: list[list[float]] | None = Field(None, description="As they stand, in the data's unit.")
    initial_centres: list[list[float]] | None = None
    estimate: float | None = Field(None, description="In the data's unit.")
    interval: BoundsOut | None = None
    error: ErrorOut | None = None


class RoundOut(WireOut):
    """What is asked now. What stands below `epsilon_per_answer` is there while a round is open."""

    session: str
    state: SessionState
    round: int | None
    rounds: int
    answers: int
    closes_at: datetime | None = Field(description="null where it closes by no time.")
    epsilon_per_answer: float
    threshold: int | None = Field(None, description="A grid point: is yours at most, or at least, this?")
    threshold_value: float | None = Field(None, description="The same in the data's unit.")
    direction: Literal["at_most", "at_least"] | None = None
    centres: list[list[int]] | None = Field(
        None, description="kmeans: grid points. Which one is nearest to yours, counted from 0?"
    )


class SessionAnswerOut(WireOut):
    """A stored answer."""

    session: str
    subject: str
    round: int
    answers_given: int = Field(description="Answers of this person in this session so far.")
    epsilon_spent: float = Field(description="What they have spent in this session so far.")


def session_bytes(session: Session, study: Study) -> bytes:
    """The JSON of a session."""
    return _bytes(session_document(session, study))


def session_document(session: Session, study: Study) -> dict[str, Any]:
    """A session as it is shown."""
    definition, head, terms = session.definition, session.head, session.terms
    grid = study.definition.grid
    document: dict[str, Any] = {
        "id": str(definition.id),
        "study": definition.study,
        "protocol": definition.protocol.value,
        **session.running.announcement(),
        "state": head.state.value,
        "rounds": terms.rounds,
        "round": head.round,
        "answers": head.answers,
        "epsilon_per_answer": epsilon_to_json(terms.epsilon_per_answer),
        "epsilon_total": epsilon_to_json(terms.epsilon_total),
        "answers_per_person": terms.answers_per_person,
        "answers_per_round": definition.answers_per_round,
        "round_seconds": definition.round_seconds,
        "deadline": definition.deadline.isoformat(),
        "created_at": definition.created_at.isoformat(),
        "finished_at": None if session.record.finished_at is None else session.record.finished_at.isoformat(),
        "lower": float(study.definition.lower),
        "upper": float(study.definition.upper),
        "grid_bits": GRID_BITS,
        **session.running.progress(grid),
    }
    if definition.assignment_key is not None:
        document["assignment_key"] = definition.assignment_key.hex()
    if head.state is SessionState.FINISHED:
        document |= session.running.result(grid)
    return document


def round_bytes(session: Session, study: Study) -> bytes:
    """The JSON of what is asked now."""
    definition, head = session.definition, session.head
    document: dict[str, object] = {
        "session": str(definition.id),
        "state": head.state.value,
        "round": head.round,
        "rounds": session.terms.rounds,
        "answers": head.answers,
        "closes_at": None if head.round_closes_at is None else head.round_closes_at.isoformat(),
        "epsilon_per_answer": epsilon_to_json(session.terms.epsilon_per_answer),
    }
    if head.round is not None:
        document |= session.running.question(study.definition.grid)
    return _bytes(document)


def answer_bytes(session: Session, subject: str, round_number: int, given: Given) -> bytes:
    """The JSON of a stored answer."""
    return _bytes(
        {
            "session": str(session.definition.id),
            "subject": subject,
            "round": round_number,
            "answers_given": session.terms.answers_given(given.spent),
            "epsilon_spent": epsilon_to_json(given.spent),
        }
    )


def _bytes(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
