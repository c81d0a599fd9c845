"""What the SDK gives back of sessions, the interactive local protocols."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

Protocol = Literal["minimum", "maximum", "quantile", "kmeans"]
Mode = Literal["budget_split", "user_split"]
Threshold = Literal["paper", "hoeffding", "exact_binomial"]
Depth = Literal["lower_alpha", "unknown_alpha"]
SessionState = Literal["open", "finished"]

EnrolmentState = Literal["open", "finished", "refused"]
"""Life of a session in the device's ledger. Finished: nothing more will be drawn, the rest is free again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """An interval, in the data's unit."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An interactive local protocol: what it asks, what taking part costs, and what came out so far.

    Attributes:
        id, study: Its address, and the study whose range it uses.
        protocol: `minimum`, `maximum`, `quantile` or `kmeans`.
        mode: `budget_split` (each person answers every round) or `user_split` (each answers one round).
        threshold: The service's rule for believing answers.
        state: `open` or `finished`.
        rounds, round: How many there are, and the one that is open; None when finished.
        epsilon_per_answer, epsilon_total: What an answer costs, and all that taking part can ever cost.
        answers_per_person: Rounds in which a person answers, at most.
        participants, answers_per_round, round_seconds, deadline: When rounds close, and the session ends.
        created_at: When it was opened.
        lower, upper, grid_bits: The grid: range in the data's unit, and 2**grid_bits steps.
        quantile: The fraction that protocol quantile looks for.
        assignment_key: user_split only: from it a device computes the round in which it is asked; hex.
        dimension, clusters, report_epsilon: kmeans only: coordinates, centres, and the epsilon of the report.
        estimate, interval: Of a finished search, in the data's unit; a quantile lies in the interval with
            probability 95 %.
        centres: kmeans only: the current ones, in the data's unit.
        path: One document a closed round.
    """

    id: str
    study: str
    protocol: str
    mode: str | None
    threshold: str | None
    state: SessionState
    rounds: int
    round: int | None
    epsilon_per_answer: Decimal
    epsilon_total: Decimal
    answers_per_person: int
    participants: int | None
    answers_per_round: int | None
    round_seconds: float | None
    deadline: datetime | None
    created_at: datetime | None
    lower: Decimal
    upper: Decimal
    grid_bits: int
    quantile: Decimal | None
    assignment_key: str | None = field(repr=False)
    dimension: int = 1
    clusters: int | None
    report_epsilon: Decimal | None
    estimate: float | None
    interval: Bounds | None
    centres: tuple[tuple[float, ...], ...] | None = field(repr=False)
    path: tuple[Mapping[str, object], ...] = field(default=(), repr=False)
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Participation:
    """What a person gave to a session, and what came out of it.

    Attributes:
        session, subject: Which session, and who.
        rounds: Rounds whose answers the service took.
        late: Rounds whose answers came when the round was closed already. They count as given.
        epsilon: What this device gave away in this session.
        finished: Whether the session is finished.
        estimate: Of a finished search, in the data's unit.
        centres: Of a finished kmeans session, in the data's unit.
    """

    session: str
    subject: str
    rounds: tuple[int, ...]
    late: tuple[int, ...]
    epsilon: Decimal
    finished: bool
    estimate: float | None = None
    centres: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """A session in which this device takes part for a person.

    Attributes:
        session, study, subject: Which session, of which study, and for whom.
        epsilon: The most that taking part costs.
        given: What was given away so far: every answer that was drawn, whatever became of it.
        counted: What it brings to the subject's total: `epsilon` until nothing more will be drawn.
        answers: How many answers were drawn.
        state: Whether more may follow.
        made_at: When the device enrolled.
    """

    session: str
    study: str
    subject: str
    epsilon: Decimal
    given: Decimal
    counted: Decimal
    answers: int
    state: EnrolmentState
    made_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpending:
    """What the service reserved for a subject in a session, and what is spent of it."""

    session: str
    study: str
    epsilon: Decimal
    spent: Decimal
