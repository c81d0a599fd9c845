"""Bearer tokens: random secrets of which only the hash is stored."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.errors import InvalidRequest, NotFound, Unauthenticated
from app.core.principal import Principal, Role
from app.services.grouping import Grouper
from app.services.paging import Page, decode_cursor, page_of
from app.store import journal
from app.store import tokens as store
from app.store.database import Connection, Database
from app.store.tokens import TokenRecord

PREFIX = "dither_"
"""Lets secret scanners recognize a token."""

SECRET_BYTES = 32

NOBODY = UUID(int=0)


def hash_secret(secret: str) -> bytes:
    """SHA-256 of a token. A secret of 256 random bits needs no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


class Tokens:
    """The tokens of one installation."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lookups = Grouper(self._find)

    async def authenticate(self, secret: str) -> Principal:
        """Who bears this token. Always asks the database, so a revocation holds at once everywhere.

        Raises:
            Unauthenticated: unknown, expired or revoked.
        """
        record = await self._lookups.submit(hash_secret(secret))
        now = self._clock.now()
        if record is None or record.revoked_at is not None:
            raise Unauthenticated("the token is unknown or revoked")
        if record.expires_at is not None and record.expires_at <= now:
            raise Unauthenticated("the token has expired")
        return Principal(
            token_id=record.id,
            name=record.name,
            role=record.role,
            studies=record.studies,
            subject=record.subject,
        )

    async def _find(self, hashes: Sequence[bytes]) -> Sequence[TokenRecord | None]:
        wanted = sorted(set(hashes))
        found = await store.read_tokens_by_hash(self._database, wanted)
        return [found.get(digest) for digest in hashes]

    async def create(
        self,
        *,
        name: str,
        role: Role,
        studies: frozenset[str] | None = None,
        subject: bytes | None = None,
        expires_at: datetime | None = None,
        actor: str,
    ) -> tuple[TokenRecord, str]:
        """Make a token; the secret is returned this once and never again.

        Args:
            name: For people.
            role: What it may do.
            studies: Slugs it is limited to; None for all.
            subject: The one subject (HMAC digest) it acts for; only for role contribute.
            expires_at: From then on it is refused.
            actor: Who makes it, for the audit trail.

        Raises:
            InvalidRequest: a subject with another role than contribute, or an expiry in the past.
        """
        now = self._clock.now()
        if subject is not None and role is not Role.CONTRIBUTE:
            raise InvalidRequest.field("subject", "only a contribute token can be limited to a subject")
        if expires_at is not None and expires_at <= now:
            raise InvalidRequest.field("expires_at", "must be in the future")
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        record = TokenRecord(
            id=uuid4(),
            name=name,
            role=role,
            studies=studies,
            subject=subject,
            expires_at=expires_at,
            revoked_at=None,
            created_at=now,
        )

        async def body(connection: Connection) -> None:
            await store.insert_token(connection, record, hash_secret(secret))
            await journal.record(
                connection,
                at=now,
                actor=actor,
                action="token.create",
                target=str(record.id),
                detail={"name": name, "role": role.value},
            )

        await self._database.run_tx("token.create", body)
        return record, secret

    async def page(self, limit: int, cursor: str | None) -> Page[TokenRecord]:
        """All tokens, without their secrets."""
        after = decode_cursor(cursor, UUID, NOBODY)
        items = await self._database.run_tx(
            "token.page", lambda c: store.page_tokens(c, after=after, limit=limit + 1)
        )
        return page_of(items, limit, lambda record: str(record.id))

    async def revoke(self, token_id: UUID, actor: str) -> None:
        """Refuse a token from now on; doing it twice is no error.

        Raises:
            NotFound: there is no such token.
        """

        async def body(connection: Connection) -> bool:
            now = self._clock.now()
            if not await store.revoke_token(connection, token_id, now):
                return False
            await journal.record(
                connection, at=now, actor=actor, action="token.revoke", target=str(token_id), detail={}
            )
            return True

        if not await self._database.run_tx("token.revoke", body):
            raise NotFound("there is no such token")
