"""First responses to idempotency keys: kept for a while, without a word of the request."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

import structlog

from app.core.clock import Clock
from app.core.errors import IdempotencyKeyReused, InternalFault
from app.services.background import running
from app.services.subjects import SubjectKey
from app.store import journal
from app.store.database import Connection, Database
from app.store.journal import Reply

PURGE_SECONDS = 3600.0
"""Time between two looks for replies that have expired."""

FIRST_PURGE_SECONDS = 60.0
"""Time before the first one: a service that starts has its connections for those who ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """A client's key for one request.

    Attributes:
        token_id: Keys of different tokens are different keys.
        key: Digest of the Idempotency-Key, in which a client may have written whom it is about.
        request: Digest of the request.
        subject: Whom the request is about (HMAC digest); None: no person.
    """

    token_id: UUID
    key: bytes
    request: bytes
    subject: bytes | None = None

    @classmethod
    def about_nobody(cls, token_id: UUID, key: str, *request: bytes) -> Self:
        """A request that holds nothing of a person: SHA-256, which outlives a change of the subject key."""
        return cls(token_id=token_id, key=_sha256(key.encode()), request=_sha256(*request))

    @classmethod
    def about(cls, subject: bytes, secret: SubjectKey, token_id: UUID, key: str, *request: bytes) -> Self:
        """A person's request: HMAC, so that a dump does not let its reader try which value was in it."""
        return cls(
            token_id=token_id,
            key=secret.request_digest(_sha256(key.encode())),
            request=secret.request_digest(_sha256(*request)),
            subject=subject,
        )


def _sha256(*parts: bytes) -> bytes:
    """SHA-256 of parts, none of which can be taken for a piece of another."""
    digest = hashlib.sha256()
    for part in parts[:-1]:
        digest.update(len(part).to_bytes(4, "big") + part)
    digest.update(parts[-1])
    return digest.digest()


class Replies:
    """What was answered to the requests that came with a key."""

    def __init__(self, database: Database, clock: Clock, *, days: int) -> None:
        """Args: as for the services; `days`: how long a key is remembered."""
        self._database = database
        self._clock = clock
        self._kept = timedelta(days=days)
        self._log = structlog.get_logger("dither.replies")

    def _expired(self) -> datetime:
        """What was stored by then is forgotten."""
        return self._clock.now() - self._kept

    async def read(self, connection: Connection, idempotency: Idempotency) -> Reply | None:
        """The first response to a key; None where there is none yet.

        Raises:
            IdempotencyKeyReused: the key belongs to another request, or to a contribution that was withdrawn.
        """
        reply = await journal.read_reply(
            connection, idempotency.token_id, idempotency.key, expired=self._expired()
        )
        if reply is not None and reply.status == journal.WITHDRAWN:
            raise IdempotencyKeyReused("what was sent with this Idempotency-Key was withdrawn since")
        if reply is not None and reply.request != idempotency.request:
            raise IdempotencyKeyReused("this Idempotency-Key was used for another request")
        return reply

    async def claim(self, connection: Connection, idempotency: Idempotency) -> Reply | None:
        """`read`, and where there is no response yet, keep the key for this transaction until it ends.

        Another request with the key waits here, so a transaction that claims it before it writes anything
        has nothing to undo, and may `store` its response last.
        """
        await journal.lock_key(connection, idempotency.token_id, idempotency.key)
        return await self.read(connection, idempotency)

    async def store(
        self,
        connection: Connection,
        idempotency: Idempotency,
        *,
        study_id: int | None,
        status: int,
        body: bytes,
    ) -> None:
        """Store the first response in the transaction of what it tells of.

        Args:
            connection: That transaction, which has claimed the key.
            idempotency: The client's key.
            study_id: The study of the request; None: no single one.
            status: Its status.
            body: What the response is made of again; never of a person.

        Raises:
            InternalFault: there is one: the key was not claimed.
        """
        stored = await journal.store_reply(
            connection,
            idempotency.token_id,
            idempotency.key,
            Reply(request=idempotency.request, status=status, body=body),
            study_id=study_id,
            subject=idempotency.subject,
            created_at=self._clock.now(),
            expired=self._expired(),
        )
        if not stored:
            raise InternalFault("a key has two responses")

    async def purge(self) -> None:
        """Delete what has expired."""
        expired = self._expired()
        await self._database.run_tx("idempotency.purge", lambda c: journal.purge_replies(c, expired))

    @asynccontextmanager
    async def purged(self) -> AsyncIterator[None]:
        """While this is open, replies that have expired are deleted: soon after the start, and every hour."""
        async with running(self._purge_for_ever()):
            yield

    async def _purge_for_ever(self) -> None:
        await asyncio.sleep(FIRST_PURGE_SECONDS)
        while True:
            try:
                await self.purge()
            except Exception:
                self._log.warning("replies_not_purged", exc_info=True)
            await asyncio.sleep(PURGE_SECONDS)
