"""Sessions on the wire: what admins ask for, and what participants and analysts see of them."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue

from app.core.epsilon import epsilon_to_json
from app.core.errors import FieldError, InvalidRequest
from app.core.grid import GRID_BITS, NotANumber
from app.core.numbers import JsonNumber, to_integer
from app.core.session import Given, SessionProtocol, SessionState
from app.core.study import MAX_DIMENSION, Study
from app.services.session_cache import Session
from app.services.sessions import Schedule
from app.sessions.kmeans import MAX_CLUSTERS
from app.sessions.kmeans import MAX_ROUNDS as MAX_CLUSTER_ROUNDS
from app.sessions.protocols import SessionSpec
from app.sessions.search import (
    DEFAULT_ALPHA,
    DEFAULT_DEPTH,
    MAX_PARTICIPANTS,
    MAX_ROUNDS,
    MIN_PARTICIPANTS,
    Depth,
    Mode,
    Threshold,
)
from app.web.documents.types import Epsilon, Integer, WireIn, WireOut, decimal_number, schema
from app.web.validation_messages import Refused

MAX_SECONDS = 366 * 24 * 3600
"""The longest round, and the longest session."""

DAY_SECONDS = 24 * 3600.0

SHORTEST_SECONDS = Decimal("0.1")

EXAMPLE: dict[str, JsonValue] = {
    "protocol": "minimum",
    "epsilon": 1,
    "participants": 10000,
    "round_seconds": 3600,
    "deadline_seconds": 86400,
}


def _seconds(value: object) -> float:
    number = decimal_number(value)
    if not SHORTEST_SECONDS <= number <= MAX_SECONDS:
        raise Refused(f"must be at least {SHORTEST_SECONDS} and at most {MAX_SECONDS}")
    return float(number)


def _rounds(value: object) -> object:
    if type(value) is JsonNumber:
        with suppress(NotANumber):
            return to_integer(value)
    if type(value) is str and value in tuple(Depth):
        return Depth(value)
    raise Refused(f"must be an integer, or one of {', '.join(Depth)}")


def _alpha(value: object) -> float:
    number = decimal_number(value)
    if not Decimal("0.01") <= number <= 1000:
        raise Refused("must be at least 0.01 and at most 1000")
    return float(number)


def _quantile(value: object) -> float:
    number = decimal_number(value)
    if not 0 < float(number) < 1:
        raise Refused("must be between 0 and 1")
    return float(number)


Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    schema(type="number", minimum=float(SHORTEST_SECONDS), maximum=MAX_SECONDS),
]


class SessionIn(WireIn):
    """A new session."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    protocol: SessionProtocol = Field(description="What to look for.")
    epsilon: Epsilon = Field(description="What taking part costs a person in all, at most.")
    participants: (
        Annotated[
            Integer,
            Field(ge=MIN_PARTICIPANTS, le=MAX_PARTICIPANTS, json_schema_extra={"type": "integer"}),
        ]
        | None
    ) = Field(None, description="People who are expected to take part; for searches it is required.")
    mode: Mode = Field(
        Mode.USER_SPLIT,
        description="budget_split: every person answers every round with a part of epsilon. "
        "user_split: every person answers one round with all of it.",
    )
    threshold: Threshold = Field(
        Threshold.EXACT_BINOMIAL, description="From how many yes the answers of a round are believed."
    )
    rounds: Annotated[
        int | Depth,
        BeforeValidator(_rounds),
        schema(
            anyOf=[
                {"type": "integer", "minimum": 1, "maximum": max(MAX_ROUNDS, MAX_CLUSTER_ROUNDS)},
                {"type": "string", "enum": list(Depth)},
            ],
            description="Their number, or what to derive it from: a lower bound on alpha, or no knowledge. "
            "For kmeans a number.",
        ),
    ] = DEFAULT_DEPTH
    alpha: Annotated[float, BeforeValidator(_alpha), schema(type="number", minimum=0.01, maximum=1000)] = (
        Field(DEFAULT_ALPHA, description="Lower bound on the fatness of the tail, for lower_alpha.")
    )
    quantile: (
        Annotated[
            float,
            BeforeValidator(_quantile),
            schema(type="number", exclusiveMinimum=0, exclusiveMaximum=1),
        ]
        | None
    ) = Field(None, description="The fraction that is looked for; with protocol quantile only.")
    clusters: Annotated[Integer, schema(type="integer", minimum=2, maximum=MAX_CLUSTERS)] | None = Field(
        None, description="kmeans: how many; as many as there are centres if it is not given."
    )
    centres: (
        Annotated[
            tuple[tuple[Annotated[Decimal, BeforeValidator(decimal_number)], ...], ...],
            schema(
                type="array",
                minItems=2,
                maxItems=MAX_CLUSTERS,
                items={
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MAX_DIMENSION,
                    "items": {"type": "number"},
                },
            ),
        ]
        | None
    ) = Field(
        None,
        description="kmeans: the public points to start from, in the data's unit. They must not depend on "
        "any person's value.",
    )
    answers_per_round: (
        Annotated[Integer, Field(ge=1, le=MAX_PARTICIPANTS, json_schema_extra={"type": "integer"})] | None
    ) = Field(
        None,
        description="Number of answers that closes a round. If it is not given: participants, or for "
        "user_split somewhat less than participants / rounds. null: only time or an admin closes it.",
    )
    round_seconds: Seconds | None = Field(
        None, description="Seconds until a round closes; null: no time limit."
    )
    deadline_seconds: Seconds = Field(DAY_SECONDS, description="Seconds until the session ends.")

    def spec(self) -> SessionSpec:
        """What it asks for.

        Raises:
            InvalidRequest: it gives a field of another protocol, or a number of centres different from
                `clusters`.
        """
        kmeans = self.protocol is SessionProtocol.KMEANS
        others = self.model_fields_set & (_OF_SEARCHES if kmeans else _OF_KMEANS)
        errors = [
            FieldError(name, f"not for protocol {self.protocol.value}")
            for name in sorted(others)
            if getattr(self, name) is not None  # null is as good as not given
        ]
        if kmeans and self.centres is not None and self.clusters not in (None, len(self.centres)):
            errors.append(FieldError("clusters", "must be the number of centres"))
        if errors:
            raise InvalidRequest.naming(errors)
        return SessionSpec(
            protocol=self.protocol,
            epsilon=self.epsilon,
            mode=self.mode,
            threshold=self.threshold,
            rounds=self.rounds,
            alpha=self.alpha,
            quantile=self.quantile,
            participants=self.participants,
            centers=self.centres or (),
        )

    def schedule(self) -> Schedule:
        """When rounds close and when it ends."""
        given = "answers_per_round" in self.model_fields_set
        return Schedule(
            answers_per_round=self.answers_per_round if given else "default",
            round_seconds=self.round_seconds,
            deadline_seconds=self.deadline_seconds,
        )


_OF_SEARCHES = frozenset({"mode", "threshold", "alpha", "quantile"})
_OF_KMEANS = frozenset({"clusters", "centres"})


class RoundCloseIn(WireIn):
    """Which round to close."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"round": 3}]})

    round: Annotated[Integer, schema(type="integer", minimum=1)]


class BoundsOut(WireOut):
    """What is left of the range, in the data's unit."""

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
    believed: bool
    decided: bool = Field(description="Whether it had the answers to halve the interval; else it left it.")


class ErrorOut(WireOut):
    """How far the estimate can be off, whatever the data look like."""

    resolution: float = Field(description="Width of the interval, in the data's unit.")
    missed_fraction: float = Field(
        description="At most this fraction of the people lies beyond the interval on the side that is looked "
        "for; for a quantile, how far its rank can be off."
    )
    failure_probability: float = Field(description="This statement is wrong with at most this probability.")
    undecided_rounds: int = Field(description="Rounds with too few answers to decide anything.")


class ClusterStepOut(WireOut):
    """A closed round of K-means: what came out."""

    round: int
    centres: list[list[float]] = Field(description="In the data's unit.")
    noise_errors: list[float | None] = Field(
        description="For each centre the standard deviation of the noise in a coordinate, as far as it is "
        "that of its sum; null where no person was counted and the centre stayed."
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
    mode: Mode | None = None
    threshold: Threshold | None = None
    dimension: int | None = None
    clusters: int | None = None
    state: SessionState
    rounds: int
    round: int | None = Field(description="The open one; null once finished.")
    answers: int = Field(description="In the open round so far.")
    epsilon_per_answer: float
    epsilon_total: float = Field(description="What taking part reserves.")
    report_epsilon: float | None = Field(
        None, description="What the report beside a person's first answer costs, out of epsilon_total."
    )
    central_epsilon_per_round: float | None = Field(
        None, description="What a round costs a person whose central contribution takes part."
    )
    answers_per_person: int
    participants: int | None
    quantile: float | None = None
    answers_per_round: int | None
    round_seconds: float | None
    deadline: datetime
    created_at: datetime
    finished_at: datetime | None
    lower: float = Field(description="Of the study's range.")
    upper: float
    grid_bits: int
    assignment_key: str | None = Field(None, description="Hexadecimal; for user_split only.")
    path: list[StepOut] | list[ClusterStepOut]
    centres: list[list[float]] | None = Field(None, description="As they stand, in the data's unit.")
    initial_centres: list[list[float]] | None = None
    estimate: float | None = None
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


ANSWER_SCHEMA: Mapping[str, Any] = {
    "title": "Answer",
    "type": "object",
    "properties": {
        "subject": {"type": "string", "minLength": 1, "maxLength": 256, "examples": ["alice"]},
        "round": {"type": "integer", "minimum": 1, "examples": [3]},
        "answer": {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_CLUSTERS - 1,
            "description": "Randomized on the device. 0 or 1, which is yes; kmeans: a centre, from 0.",
        },
        "report": {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 1,
            "maxItems": MAX_DIMENSION,
            "description": "kmeans, with a person's first answer: the value in grid steps, with discrete "
            "Laplace noise of scale dimension * 2^30 / report_epsilon on every coordinate.",
        },
    },
    "required": ["subject", "round", "answer"],
    "additionalProperties": False,
}
"""The JSON schema of an answer."""

ANSWER_EXAMPLE: Mapping[str, Any] = {"subject": "alice", "round": 3, "answer": 1}


def session_bytes(session: Session, study: Study) -> bytes:
    """The JSON of a session."""
    definition, head, terms = session.definition, session.head, session.terms
    grid = study.definition.grid
    document: dict[str, object] = {
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
    return _bytes(document)


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
