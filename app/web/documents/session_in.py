"""What is asked for in sessions: a new one, the end of a round, an answer."""

from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue

from app.core.errors import FieldError, InvalidRequest
from app.core.grid import NotANumber
from app.core.numbers import JsonNumber, to_integer
from app.core.session import SessionProtocol
from app.core.study import MAX_DIMENSION
from app.services.sessions.sessions import Schedule
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
from app.web.documents.types import Epsilon, Integer, Number, WireIn, decimal_in, finite, json_number, schema
from app.web.validation_messages import InvalidValue

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


def _rounds(value: object) -> object:
    if type(value) is JsonNumber:
        with suppress(NotANumber):
            return to_integer(value)
    if type(value) is str and value in tuple(Depth):
        return Depth(value)
    raise InvalidValue(f"must be an integer, or one of {', '.join(Depth)}")


def _between(number: float) -> float:
    if not 0 < number < 1:
        raise InvalidValue("must be between 0 and 1")
    return number


Seconds = Annotated[
    float,
    json_number(lambda text: float(decimal_in(text, SHORTEST_SECONDS, MAX_SECONDS))),
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
    alpha: Annotated[
        float,
        json_number(lambda text: float(decimal_in(text, Decimal("0.01"), 1000))),
        schema(type="number", minimum=0.01, maximum=1000),
    ] = Field(DEFAULT_ALPHA, description="Lower bound on the fatness of the tail, for lower_alpha.")
    quantile: (
        Annotated[
            float,
            json_number(finite),
            AfterValidator(_between),
            schema(type="number", exclusiveMinimum=0, exclusiveMaximum=1),
        ]
        | None
    ) = Field(None, description="The fraction that is looked for; with protocol quantile only.")
    clusters: Annotated[Integer, schema(type="integer", minimum=2, maximum=MAX_CLUSTERS)] | None = Field(
        None, description="kmeans: how many; as many as there are centres if it is not given."
    )
    centres: (
        Annotated[
            tuple[tuple[Number, ...], ...],
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
