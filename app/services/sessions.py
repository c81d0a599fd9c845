"""Sessions: start them, take answers, follow their rounds, end them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from uuid import UUID, uuid4

from app.core.clock import Clock
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
from app.core.principal import Principal
from app.core.session import (
    Answer,
    AnswerOutcome,
    Given,
    SessionDefinition,
    SessionRecord,
    SessionState,
    Terms,
)
from app.core.study import Study, StudyState
from app.mechanisms.entropy import system_bits
from app.services.answers import read_answer, take_answers
from app.services.grouping import Grouper
from app.services.replies import Idempotency, Replayed, Replies
from app.services.session_closer import Prepare, SessionCloser
from app.services.session_reader import Session
from app.services.subjects import SubjectKey
from app.sessions.protocol import RunningProtocol
from app.sessions.protocols import SessionSpec, protocol_document, start_protocol
from app.sessions.search_protocol import answers_needed_by_default
from app.store import journal
from app.store import sessions as store
from app.store.contributions import ENROL_LOCK, Allowance, enter
from app.store.database import Connection, Database
from app.store.releases import CohortsChanged

CREATED = 201
"""Status that is stored with the response to an idempotency key."""

KEY_BITS = 128
"""Of an assignment key."""

WATCH_SECONDS = 0.5
"""Time between two looks for sessions of which something is due."""

DUE_AT_ONCE = 100

REFUSALS: Mapping[AnswerOutcome, tuple[type[ServiceError], str]] = {
    AnswerOutcome.ROUND_CLOSED: (RoundClosed, "the round is closed, or the session has finished"),
    AnswerOutcome.ROUND_NOT_OPEN: (RoundNotOpen, "the round is not open yet"),
    AnswerOutcome.NOT_YOUR_ROUND: (NotYourRound, "this subject is asked in another round"),
    AnswerOutcome.ANSWER_EXISTS: (AnswerExists, "this subject gave another answer in this round"),
    AnswerOutcome.BUDGET_EXHAUSTED: (
        BudgetExhausted,
        "what taking part costs does not fit the subject's lifetime budget",
    ),
    AnswerOutcome.STUDY_CLOSED: (StudyClosed, "the study is closed and takes nobody else into its sessions"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When rounds close, and when the session ends.

    Attributes:
        answers_per_round: A round closes with so many answers; None: never by their number.
        round_seconds: A round closes after so long; None: not by time.
        deadline_seconds: The session ends after so long.
    """

    answers_per_round: int | Literal["default"] | None
    round_seconds: float | None
    deadline_seconds: float


class Sessions(SessionCloser):
    """The sessions of one installation: everything that makes, moves and ends them."""

    def __init__(
        self, database: Database, clock: Clock, key: SubjectKey, allowance: Allowance, replies: Replies
    ) -> None:
        super().__init__(database, clock)
        self._key = key
        self._allowance = allowance
        self._replies = replies
        self._groups: dict[UUID, Grouper[Answer, Given]] = {}

    # ------------------------------------------------------------------------------------ making

    async def create(
        self,
        study: Study,
        spec: SessionSpec,
        schedule: Schedule,
        principal: Principal,
        *,
        render: Callable[[Session], bytes],
        idempotency: Idempotency | None = None,
    ) -> bytes:
        """Start a session; its first round is open at once.

        Args:
            study: Whose question it is about.
            spec, schedule: What to look for, and when rounds close.
            principal: Who starts it, for the audit trail.
            render: The response for a new session.
            idempotency: The client's key; the response is stored under it.

        Returns:
            The response; the first one to this key.

        Raises:
            InvalidRequest: the spec is not admissible.
            StudyClosed: the study takes nothing more.
            IdempotencyKeyReused: the key belongs to another request.
        """
        running = start_protocol(spec, study.definition)
        if idempotency is not None:
            known = await self._replies.find(idempotency)
            if known is not None:
                return known.body
        definition = self._definition(study, spec, schedule, running)
        head = self._rounds.first(running, schedule.round_seconds)

        async def body(connection: Connection) -> bytes:
            if (await enter(connection, study.id, locks=(ENROL_LOCK,))).state is not StudyState.OPEN:
                raise StudyClosed("the study is closed and takes no more sessions")
            document = protocol_document(running)
            number = await store.insert_session(connection, definition, running.terms, head, document)
            detail = {"study": definition.study}
            await self._note(connection, principal, "session.create", definition.id, detail)
            record = SessionRecord(
                number=number, definition=definition, head=head, document=document, finished_at=None
            )
            content = render(Session(record=record, running=running))
            if idempotency is not None and not await self._replies.store(
                connection, idempotency, study_id=study.id, status=CREATED, body=content
            ):
                raise Replayed
            return content

        try:
            return await self._database.run_tx("session.create", body)
        except Replayed:
            assert idempotency is not None, "only a key is replayed"
            return (await self._replies.replayed(idempotency)).body

    def _definition(
        self, study: Study, spec: SessionSpec, schedule: Schedule, running: RunningProtocol
    ) -> SessionDefinition:
        now = self._clock.now()
        answers = schedule.answers_per_round
        if answers == "default":
            expected = running.people_per_round
            answers = (
                None if expected is None else answers_needed_by_default(expected, assigned=running.assigns)
            )
        return SessionDefinition(
            id=uuid4(),
            study_id=study.id,
            study=study.definition.slug,
            protocol=spec.protocol,
            assignment_key=system_bits(KEY_BITS).to_bytes(KEY_BITS // 8, "big") if running.assigns else None,
            answers_per_round=answers,
            round_seconds=schedule.round_seconds,
            deadline=now + timedelta(seconds=schedule.deadline_seconds),
            created_at=now,
        )

    # --------------------------------------------------------------------------------- answering

    def read_answer(self, session: Session, record: Mapping[str, object], sender: UUID) -> Answer:
        """Validate the fields of an answer that came with a token.

        Raises:
            InvalidRequest: names every offending field.
        """
        return read_answer(record, session.definition, session.terms, self._key, sender)

    async def answer(self, session: Session, answer: Answer) -> Given:
        """Store an answer and spend what it costs; a person's first one enrols them. After the commit.

        Raises:
            RoundClosed, RoundNotOpen, NotYourRound, AnswerExists, BudgetExhausted, StudyClosed: nothing was
                stored.
        """
        session_id = session.definition.id
        group = self._groups.get(session_id)
        if group is None:
            group = self._groups[session_id] = self._group(session.definition, session.terms)
        given = await group.submit(answer)
        if given.outcome is AnswerOutcome.REPORT_MISSING:
            raise InvalidRequest.field("report", "is required with a person's first answer")
        if given.outcome in REFUSALS:
            error, detail = REFUSALS[given.outcome]
            raise error(detail)
        return given

    def _group(self, definition: SessionDefinition, terms: Terms) -> Grouper[Answer, Given]:
        async def run(answers: Sequence[Answer]) -> Sequence[Given]:
            taken = await self._database.run_tx(
                "session.answer",
                lambda c: take_answers(
                    c, definition, terms, answers, rounds=self._rounds, allowance=self._allowance
                ),
            )
            if taken.moved:
                self._waiting.wake(definition.id)
            if taken.closing:
                self._start_closing(definition)
            return taken.given

        return Grouper(run)

    # --------------------------------------------------------------------------------- moving on

    async def close_round(self, session_id: UUID, round_number: int, principal: Principal) -> Session:
        """Close a round if it is still open; one that was closed before stays as it is.

        Raises:
            NotFound: there is no such session.
            InvalidRequest: it has no such round.
            RoundNotOpen: the round has not begun.
        """
        session = await self.get(session_id)
        definition = session.definition
        if not 1 <= round_number <= session.terms.rounds:
            raise InvalidRequest.field("round", f"must be between 1 and {session.terms.rounds}")

        async def body(connection: Connection, prepare: Prepare) -> None:
            head = await store.lock_session(connection, session_id)
            head = await self._rounds.catch_up(connection, definition, head)
            if head.round is None or head.round > round_number:
                return
            if head.round < round_number:
                raise RoundNotOpen("the round is not open yet")
            if await self._rounds.close(connection, definition, head, await prepare(connection)) == head:
                # The round opened after its central part was looked for.
                raise CohortsChanged
            await self._note(
                connection, principal, "session.close_round", session_id, {"round": round_number}
            )

        await self._close_prepared(definition, round_number, body)
        return await self.get(session_id)

    async def finish(self, session_id: UUID, principal: Principal) -> Session:
        """End a session now, with what there is; doing it again changes nothing.

        Raises:
            NotFound: there is no such session.
        """
        definition = (await self.get(session_id)).definition

        async def body(connection: Connection) -> None:
            head = await store.lock_session(connection, session_id)
            head = await self._rounds.catch_up(connection, definition, head)
            if head.state is SessionState.FINISHED:
                return
            await self._rounds.finish(connection, definition, head)
            await self._note(connection, principal, "session.finish", session_id, {"round": head.round})

        await self._database.run_tx("session.finish", body)
        self._waiting.wake(session_id)
        return await self.get(session_id)

    async def states(self) -> dict[str, int]:
        """How many sessions are in each state."""
        return await store.count_states(self._database)

    async def close_due(self) -> int:
        """Do whatever is due by time, in any session; returns of how many sessions something was due."""
        due = await store.due_sessions(self._database, self._clock.now(), DUE_AT_ONCE)
        for session_id in due:
            try:
                await self._catch_up((await self.find(session_id)).definition)
            except Exception:
                # What is wrong with one session must not keep the others from closing.
                self._log.exception("session_not_closed", session=str(session_id))
        return len(due)

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """While this is open, rounds close and sessions end by time even if nobody asks for them.

        Every process does it: closing is safe to try at once, and whoever is started next goes on with what
        a process that died left open.
        """
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self._stop_closing()

    async def _watch(self) -> None:
        while True:
            try:
                await self.close_due()
            except Exception:
                self._log.warning("session_watch_failed", exc_info=True)
            await asyncio.sleep(WATCH_SECONDS)

    async def _note(
        self,
        connection: Connection,
        principal: Principal,
        action: str,
        session_id: UUID,
        detail: Mapping[str, object],
    ) -> None:
        await journal.record(
            connection,
            at=self._clock.now(),
            actor=str(principal.token_id),
            action=action,
            target=str(session_id),
            detail=detail,
        )
