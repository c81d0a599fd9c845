"""Sessions: start them, follow their rounds, close and end them."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.errors import InvalidRequest, RoundNotOpen, StudyClosed
from app.core.principal import Principal
from app.core.session import SessionDefinition, SessionRecord, SessionState
from app.core.study import Study, StudyState
from app.mechanisms.entropy import system_bits
from app.services.paging import Page, decode_cursor, page_of
from app.services.replies import Idempotency, Replies
from app.services.sessions.round_closer import Prepare, RoundCloser
from app.services.sessions.session_cache import Session, SessionCache
from app.services.sessions.waiting import Waiting
from app.sessions.protocol import RunningProtocol
from app.sessions.protocols import SessionSpec, protocol_document, start_protocol
from app.sessions.search_protocol import answers_needed_by_default
from app.store import journal
from app.store import sessions as store
from app.store.contributions import ENROL_LOCK, enter
from app.store.database import Connection, Database
from app.store.releases import CohortsChanged

CREATED = 201
"""Status that is stored with the response to an idempotency key."""

KEY_BITS = 128
"""Of an assignment key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When rounds close, and when the session ends.

    Attributes:
        answers_per_round: Number of answers that closes a round; None: never by their number.
        round_seconds: Seconds until a round closes; None: no time limit.
        deadline_seconds: Seconds until the session ends.
    """

    answers_per_round: int | Literal["default"] | None
    round_seconds: float | None
    deadline_seconds: float


class Sessions:
    """The sessions of one installation. What is due by time is done before a session is shown.

    Args:
        database: An open pool.
        clock: Where the time comes from.
        cache: Reads the sessions.
        closer: Closes rounds.
        waiting: Who waits for a round to end.
        replies: Responses to idempotency keys.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        cache: SessionCache,
        closer: RoundCloser,
        waiting: Waiting,
        replies: Replies,
    ) -> None:
        self._database = database
        self._clock = clock
        self._cache = cache
        self.closer = closer
        self._rounds = closer.rounds
        self._waiting = waiting
        self._replies = replies

    # ----------------------------------------------------------------------------------- looking

    async def get(self, session_id: UUID) -> Session:
        """A session as it stands now, after whatever is due by time was done.

        Raises:
            NotFound: there is none.
        """
        session = await self._cache.read(session_id)
        if self._rounds.is_due(session.definition, session.head):
            await self.closer.catch_up(session.definition)
            session = await self._cache.read(session_id)
        return session

    async def find(self, session_id: UUID) -> Session:
        """A session's definition and terms, which never change; its progress may be stale.

        Raises:
            NotFound: there is none.
        """
        return await self._cache.find(session_id)

    async def page(self, study: Study, limit: int, cursor: str | None) -> Page[Session]:
        """A study's sessions, newest first."""
        before = decode_cursor(cursor, UUID, None)
        records = await self._database.run_tx(
            "session.page", lambda c: store.page_sessions(c, study.id, before=before, limit=limit + 1)
        )
        sessions = [Session.restore(record) for record in records]
        return page_of(sessions, limit, lambda item: str(item.definition.id), behind=before)

    async def states(self) -> dict[str, int]:
        """The number of sessions in each state."""
        return await store.count_states(self._database)

    async def wait(self, session_id: UUID, after: int, seconds: float) -> Session:
        """The session as soon as its open round is later than `after` or it has finished.

        Args:
            session_id: The session.
            after: The last round that the caller knows of.
            seconds: How long to wait at most; then, or after `stop_waiting`, as it stands.

        Raises:
            NotFound: there is none.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            session = await self.get(session_id)
            round_number = session.head.round
            left = until - loop.time()
            if round_number is None or round_number > after or left <= 0 or self._waiting.closed:
                return session
            await self._waiting.wait(session_id, round_number, left)

    def stop_waiting(self) -> None:
        """Answer every request that waits with the session as it stands, and every later one too."""
        self._waiting.close()

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
        definition = self._definition(study, spec, schedule, running)
        head = self._rounds.first(running, schedule.round_seconds)

        async def body(connection: Connection) -> bytes:
            if idempotency is not None and (known := await self._replies.claim(connection, idempotency)):
                return known.body
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
            if idempotency is not None:
                await self._replies.store(
                    connection, idempotency, study_id=study.id, status=CREATED, body=content
                )
            return content

        return await self._database.run_tx("session.create", body)

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

        async def body(connection: Connection, prepare: Prepare) -> bool:
            """Whether the round has begun. What was due by time is kept, whichever."""
            head = await store.lock_session(connection, session_id)
            head = await self._rounds.catch_up(connection, definition, head)
            if head.round is None or head.round > round_number:
                return True
            if head.round < round_number:
                return False
            if await self._rounds.close(connection, definition, head, await prepare(connection)) == head:
                # The round opened after its central part was looked for.
                raise CohortsChanged
            await self._note(
                connection, principal, "session.close_round", session_id, {"round": round_number}
            )
            return True

        if not await self.closer.close(definition, round_number, body):
            raise RoundNotOpen.field("round", "is not open yet")
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

    async def _note(
        self,
        connection: Connection,
        principal: Principal,
        action: str,
        session_id: UUID,
        detail: Mapping[str, object],
    ) -> None:
        await journal.record(connection, self._clock.now(), principal.token_id, action, session_id, **detail)
