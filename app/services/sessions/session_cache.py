"""Sessions as they are stored; what never changes, and the protocol of the open round, is read once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.core.errors import NotFound
from app.core.session import SessionDefinition, SessionHead, SessionRecord, Terms
from app.services.grouping import Grouper
from app.sessions.protocol import RunningProtocol
from app.sessions.protocols import restore_protocol
from app.store import sessions as store
from app.store.database import Database

MOST_CACHED = 1_000
"""Sessions of which this process remembers the protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session: what is stored, and its protocol restored from it."""

    record: SessionRecord
    running: RunningProtocol

    @classmethod
    def restore(cls, record: SessionRecord) -> "Session":
        """The session of a stored record.

        Raises:
            InternalFault: the record holds no protocol.
        """
        return cls(record=record, running=restore_protocol(record.definition.protocol, record.document))

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


class SessionCache:
    """Reads sessions. Heads are read every time, those of concurrent requests together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._heads: Grouper[UUID, SessionHead | None] = Grouper(self._read_heads)
        self._known: dict[UUID, Session] = {}

    async def find(self, session_id: UUID) -> Session:
        """A session's definition and terms, which never change; its progress may be stale.

        Raises:
            NotFound: there is none.
        """
        return self._known.get(session_id) or await self.read(session_id)

    async def read(self, session_id: UUID) -> Session:
        """A session as it is stored now; its protocol is read again only after the session has moved.

        Raises:
            NotFound: there is none.
        """
        head = await self._heads.submit(session_id)
        if head is None:
            raise NotFound("there is no such session")
        known = self._known.get(session_id)
        if known is not None and known.head.round == head.round:
            return replace(known, record=replace(known.record, head=head))
        records = await store.read_sessions(self._database, [session_id])
        known = Session.restore(records[session_id])
        if len(self._known) >= MOST_CACHED:
            self._known.pop(next(iter(self._known)))
        self._known[session_id] = known
        return known

    async def _read_heads(self, ids: Sequence[UUID]) -> Sequence[SessionHead | None]:
        found = await store.read_heads(self._database, list(set(ids)))
        return [found.get(session_id) for session_id in ids]
