"""A session: an interactive local protocol with rounds, as the ledger knows it."""

import math
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE


class SessionProtocol(StrEnum):
    """What a session looks for."""

    MINIMUM = "minimum"
    MAXIMUM = "maximum"
    QUANTILE = "quantile"
    KMEANS = "kmeans"

    @property
    def has_central_part(self) -> bool:
        """Whether a round closes with noisy sums over central people, too.

        These are made outside of the transaction that closes the round, so such a round does not close at
        once when it has its answers.
        """
        return self is SessionProtocol.KMEANS


class SessionState(StrEnum):
    """Life of a session."""

    OPEN = "open"
    """One of its rounds takes answers."""

    FINISHED = "finished"
    """The session takes no more answers; what was not spent is free again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is fixed, and announced, before the first answer, whatever the protocol.

    Attributes:
        rounds: Their number.
        epsilon_per_answer: Cost of one answer [micro-epsilon].
        epsilon_report: Cost of the report that comes with a person's first answer; 0 where there is none
            [micro-epsilon].
        answers_per_person: Answers that one person can give: `rounds`, or 1 where each is assigned a round.
        categories: An answer is one of 0..categories - 1.
        report_dimension: Coordinates of the report; None where there is none.
        takes_answers: Whether the study has people who answer.
    """

    rounds: int
    epsilon_per_answer: int
    answers_per_person: int
    epsilon_report: int = 0
    categories: int = 2
    report_dimension: int | None = None
    takes_answers: bool = True

    @property
    def report_beyond(self) -> int:
        """How far reports outside of the range are from it on average [grid steps]; 0 without reports.

        That is of discrete Laplace noise of the scale s = d 2^30 / epsilon, whatever the value: see
        `app.sessions.kmeans`.
        """
        if self.report_dimension is None:
            return 0
        scale = self.report_dimension * GRID_SIZE * MICRO / self.epsilon_report
        return round(-1 / math.expm1(-1 / scale))

    @property
    def epsilon_total(self) -> int:
        """What taking part in everything costs a person, and enrolling reserves [micro-epsilon]."""
        return self.epsilon_report + self.answers_per_person * self.epsilon_per_answer

    def cost(self, *, first: bool) -> int:
        """Of one answer; a person's first one has the report beside it [micro-epsilon]."""
        return self.epsilon_per_answer + (self.epsilon_report if first else 0)

    def answers_given(self, spent: int) -> int:
        """Answers of a person who has spent this much in the session [micro-epsilon]."""
        return max(spent - self.epsilon_report, 0) // self.epsilon_per_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDefinition:
    """What never changes about a session.

    Attributes:
        id: Random.
        study_id, study: The study, and its slug.
        protocol: What is looked for.
        assignment_key: Assigns each person a round; None where every person answers in every round. Public.
        answers_per_round: Number of answers that closes a round; None: no such limit.
        round_seconds: Seconds until a round closes; None: no time limit.
        deadline: The session ends then at the latest.
        created_at: When it was made.
    """

    id: UUID
    study_id: int
    study: str
    protocol: SessionProtocol
    assignment_key: bytes | None
    answers_per_round: int | None
    round_seconds: float | None
    deadline: datetime
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """Where a session stands.

    Attributes:
        state: Open or finished.
        round: The open round, from 1; None once finished.
        answers: In the open round so far.
        round_closes_at: When the open round closes by time; None: not by time.
    """

    state: SessionState
    round: int | None
    answers: int
    round_closes_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A stored session.

    Attributes:
        number: Grows from session to session.
        definition: What never changes.
        head: Where it stands.
        document: Rules and progress of its protocol, a JSON object.
        finished_at: When it ended; None while it is open.
    """

    number: int
    definition: SessionDefinition
    head: SessionHead
    document: str
    finished_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One validated answer.

    Attributes:
        subject: HMAC-SHA256 of the external id, 32 bytes.
        sender: The token that sent it.
        round: The round it answers.
        assigned: The round that this person is assigned; None where it is every round.
        answer: The randomized category.
        report: The randomized value beside a person's first answer, in grid steps; None without one.
    """

    subject: bytes
    sender: UUID
    round: int
    assigned: int | None
    answer: int
    report: tuple[int, ...] | None = None


class AnswerOutcome(StrEnum):
    """What became of an answer. The refusals have the codes of the matching errors."""

    CREATED = "created"
    UNCHANGED = "unchanged"
    ROUND_CLOSED = "round_closed"
    ROUND_NOT_OPEN = "round_not_open"
    NOT_YOUR_ROUND = "not_your_round"
    ANSWER_EXISTS = "answer_exists"
    REPORT_MISSING = "report_missing"
    BUDGET_EXHAUSTED = "budget_exhausted"
    STUDY_CLOSED = "study_closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer's outcome, with what its owner has spent in the session by now [micro-epsilon]."""

    outcome: AnswerOutcome
    spent: int
