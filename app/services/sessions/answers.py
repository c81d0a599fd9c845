"""Answers to sessions: those that arrive together are stored together."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from app.core.errors import (
    AnswerExists,
    BudgetExhausted,
    InvalidRequest,
    NotYourRound,
    RoundClosed,
    RoundNotOpen,
    ServiceError,
    StudyClosed,
)
from app.core.session import Answer, AnswerOutcome, Given, SessionDefinition, Terms
from app.services.grouping import Grouper
from app.services.sessions.answer_intake import read_answer, take_answers
from app.services.sessions.round_closer import RoundCloser
from app.services.sessions.session_cache import Session
from app.services.sessions.waiting import Waiting
from app.services.subjects import SubjectKey
from app.store.contributions import Allowance
from app.store.database import Database

REFUSALS: Mapping[AnswerOutcome, tuple[type[ServiceError], str, str]] = {
    AnswerOutcome.ROUND_CLOSED: (RoundClosed, "round", "is closed, or the session has finished"),
    AnswerOutcome.ROUND_NOT_OPEN: (RoundNotOpen, "round", "is not open yet"),
    AnswerOutcome.NOT_YOUR_ROUND: (NotYourRound, "round", "is not the one in which this subject is asked"),
    AnswerOutcome.ANSWER_EXISTS: (
        AnswerExists,
        "answer",
        "is another one than this subject gave in this round",
    ),
    AnswerOutcome.BUDGET_EXHAUSTED: (
        BudgetExhausted,
        "epsilon",
        "is what taking part costs, and does not fit the subject's lifetime budget",
    ),
    AnswerOutcome.STUDY_CLOSED: (StudyClosed, "study", "is closed and takes no one else into its sessions"),
    AnswerOutcome.REPORT_MISSING: (InvalidRequest, "report", "is required with a person's first answer"),
}
"""For each refusal the error, the field that it names, and the reason."""


class Answers:
    """Takes the answers of all sessions.

    Args:
        database: An open pool.
        key: For the digests of external ids.
        allowance: Budget of subjects who are seen for the first time.
        closer: Closes rounds that have their answers.
        waiting: Who waits for a round to end is woken when an answer closes it.
    """

    def __init__(
        self,
        database: Database,
        key: SubjectKey,
        allowance: Allowance,
        closer: RoundCloser,
        waiting: Waiting,
    ) -> None:
        self._database = database
        self._key = key
        self._allowance = allowance
        self._closer = closer
        self._waiting = waiting
        self._groups: dict[UUID, Grouper[Answer, Given]] = {}

    def read(self, session: Session, record: Mapping[str, object], sender: UUID) -> Answer:
        """Validate the fields of an answer that came with a token.

        Raises:
            InvalidRequest: names every offending field.
        """
        return read_answer(record, session.definition, session.terms, self._key, sender)

    async def take(self, session: Session, answer: Answer) -> Given:
        """Store an answer and spend what it costs; a person's first one enrols them. After the commit.

        Raises:
            InvalidRequest: a person's first answer came without its report.
            RoundClosed, RoundNotOpen, NotYourRound, AnswerExists, BudgetExhausted, StudyClosed: nothing was
                stored.
        """
        session_id = session.definition.id
        group = self._groups.get(session_id)
        if group is None:
            group = self._groups[session_id] = self._group(session.definition, session.terms)
        given = await group.submit(answer)
        if given.outcome in REFUSALS:
            error, field, reason = REFUSALS[given.outcome]
            raise error.field(field, reason)
        return given

    def _group(self, definition: SessionDefinition, terms: Terms) -> Grouper[Answer, Given]:
        async def run(answers: Sequence[Answer]) -> Sequence[Given]:
            taken = await self._database.run_tx(
                "session.answer",
                lambda c: take_answers(
                    c, definition, terms, answers, rounds=self._closer.rounds, allowance=self._allowance
                ),
            )
            if taken.moved:
                self._waiting.wake(definition.id)
            if taken.closing:
                self._closer.start(definition)
            return taken.given

        return Grouper(run)
