"""Sessions as they stand: read, cached, waited for, and never later than the time they were due."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.core.clock import Clock
from app.core.errors import NotFound
from app.core.session import SessionDefinition, SessionHead, SessionRecord, Terms
from app.core.study import Study
from app.services.grouping import Grouper
from app.services.paging import Page, decode_cursor, page_of
from app.services.rounds import Rounds
from app.services.waiting import Waiting
from app.sessions.protocol import RunningProtocol
from app.sessions.protocols import restore_protocol
from app.store import sessions as store
from app.store.database import Connection, Database

MOST_CACHED = 1_000
"""Sessions of which this process remembers the protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as it stands: what is stored, and its protocol restored from it."""

    record: SessionRecord
    running: RunningProtocol

    @property
    def definition(self) -> SessionDefinition:
        """What never changes."""
        return self.record.definition

    @property
    def head(self) -> SessionHead:
        """Where it stands."""
        return self.record.head

    @property
    def terms(self) -> Terms:
        """What is asked of people, and what it costs them."""
        return self.running.terms


class SessionReader:
    """Looks at sessions. What is due by time is done first, so nobody sees a round that should be closed."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rounds = Rounds(clock)
        self._waiting = Waiting(lambda ids: store.read_heads(database, ids))
        self._heads: Grouper[UUID, SessionHead | None] = Grouper(self._read_heads)
        self._known: dict[UUID, Session] = {}

    async def get(self, session_id: UUID) -> Session:
        """A session as it stands now, after whatever is due by time was done.

        Raises:
            NotFound: there is none.
        """
        session = await self._read(session_id)
        if self._rounds.is_due(session.definition, session.head):
            await self._catch_up(session.definition)
            session = await self._read(session_id)
        return session

    async def find(self, session_id: UUID) -> Session:
        """A session's definition and terms, which never change; where it stands may be an old story.

        Raises:
            NotFound: there is none.
        """
        return self._known.get(session_id) or await self._read(session_id)

    async def page(self, study: Study, limit: int, cursor: str | None) -> Page[Session]:
        """A study's sessions, newest first."""
        before = decode_cursor(cursor, UUID, None)
        records = await self._database.run_tx(
            "session.page", lambda c: store.page_sessions(c, study.id, before=before, limit=limit + 1)
        )
        page = page_of([_restored(record) for record in records], limit, lambda item: str(item.definition.id))
        return page

    def stop_waiting(self) -> None:
        """Answer everybody who waits with the session as it stands, and whoever asks from now on too."""
        self._waiting.close()

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

    async def _catch_up(self, definition: SessionDefinition) -> None:
        async def body(connection: Connection) -> None:
            head = await store.lock_session(connection, definition.id)
            await self._rounds.catch_up(connection, definition, head)

        await self._database.run_tx("session.catch_up", body)
        self._waiting.wake(definition.id)

    async def _read(self, session_id: UUID) -> Session:
        """A session as it stands; its protocol is read again only after the session has moved."""
        head = await self._heads.submit(session_id)
        if head is None:
            raise NotFound("there is no such session")
        known = self._known.get(session_id)
        if known is None or known.head.round != head.round:
            records = await store.read_sessions(self._database, [session_id])
            known = _restored(records[session_id])
            if len(self._known) >= MOST_CACHED:
                self._known.pop(next(iter(self._known)))
            self._known[session_id] = known
            return known
        return replace(known, record=replace(known.record, head=head))

    async def _read_heads(self, ids: Sequence[UUID]) -> Sequence[SessionHead | None]:
        found = await store.read_heads(self._database, list(set(ids)))
        return [found.get(session_id) for session_id in ids]


def _restored(record: SessionRecord) -> Session:
    return Session(record=record, running=restore_protocol(record.definition.protocol, record.document))
