"""Bearer tokens: random secrets of which only the hash is stored."""

import hashlib
import secrets
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.errors import Conflict, FieldError, InvalidRequest, NotFound, Unauthenticated, Unavailable
from app.core.principal import Principal, Role, in_order
from app.core.quota import Quota
from app.core.records import Wanted
from app.services.grouping import Grouper
from app.services.paging import Page, decode_cursor, page_of
from app.store import journal, logins, quotas
from app.store import tokens as store
from app.store.database import Connection, Database
from app.store.quotas import StudyUsage
from app.store.tokens import TokenLine, TokenRecord

PREFIX = "dither_"
"""Lets secret scanners recognize a token."""

SECRET_BYTES = 32
CODE_BYTES = 16

LOWEST_ID = UUID(int=0)


def new_secret() -> str:
    """A secret of 256 random bits, for a cookie or a link."""
    return secrets.token_urlsafe(SECRET_BYTES)


def new_code() -> str:
    """A code of 128 random bits, for a link that people may have to type."""
    return secrets.token_urlsafe(CODE_BYTES)


def hash_secret(secret: str) -> bytes:
    """SHA-256 of a token. A secret of 256 random bits needs no slow hash."""
    return hashlib.sha256(secret.encode()).digest()


def principal_of(record: TokenRecord, now: datetime) -> Principal:
    """The bearer of a token.

    Raises:
        Unauthenticated: expired or revoked.
    """
    if record.revoked_at is not None:
        raise Unauthenticated("the token is unknown or revoked")
    if record.expires_at is not None and record.expires_at <= now:
        raise Unauthenticated("the token has expired")
    return Principal(
        token_id=record.id,
        name=record.name,
        roles=record.roles,
        studies=record.studies,
        subject=record.subject,
    )


class Tokens:
    """The tokens of one installation."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lookups = Grouper(self._find)
        self._identities = Grouper(self._find_identities)

    async def authenticate(self, secret: str) -> Principal:
        """Who bears this token. Always asks the database, so a revocation holds at once everywhere.

        Raises:
            Unauthenticated: unknown, expired or revoked.
        """
        record = await self._lookups.submit(hash_secret(secret))
        if record is None:
            raise Unauthenticated("the token is unknown or revoked")
        return principal_of(record, self._clock.now())

    async def identify(
        self, identity: bytes, *, name: str | None, roles: frozenset[Role], studies: frozenset[str] | None
    ) -> Principal:
        """Who an identity of the OIDC provider is here. It gets a row at its first use, without a secret.

        The row is what quotas, idempotency keys and the audit trail refer to, and revoking it locks the
        identity out.

        Args:
            identity: SHA-256 of issuer and subject.
            name: What to call it, for people; None: as it is called, or by the digest.
            roles, studies: What the provider's claims allow at this moment.

        Raises:
            Unauthenticated: an admin revoked it.
        """
        record = await self._identities.submit(identity)
        if record is None or (name or record.name, roles, studies) != (
            record.name,
            record.roles,
            record.studies,
        ):
            record = await self._remember(identity, name, roles, studies)
        if record.revoked_at is not None:
            raise Unauthenticated("the identity was revoked")
        return Principal(token_id=record.id, name=record.name, roles=roles, studies=studies, subject=None)

    async def _remember(
        self, identity: bytes, name: str | None, roles: frozenset[Role], studies: frozenset[str] | None
    ) -> TokenRecord:
        """The row of an identity, as its claims are now."""

        async def body(connection: Connection) -> TokenRecord:
            now = self._clock.now()
            record, changed = await store.claim_identity(
                connection, identity, name=name, roles=roles, studies=studies, at=now
            )
            if changed:
                await journal.record(
                    connection,
                    now,
                    record.id,
                    "token.identity",
                    record.id,
                    roles=in_order(roles),
                    studies=None if studies is None else sorted(studies),
                )
            return record

        return await self._database.run_tx("token.identity", body)

    async def _find_identities(self, identities: Sequence[bytes]) -> Sequence[TokenRecord | None]:
        found = await store.read_tokens_by_identity(self._database, sorted(set(identities)))
        await self._touch(found.values())
        return [found.get(identity) for identity in identities]

    async def _find(self, hashes: Sequence[bytes]) -> Sequence[TokenRecord | None]:
        wanted = sorted(set(hashes))
        found = await store.read_tokens_by_hash(self._database, wanted)
        await self._touch(found.values())
        return [found.get(digest) for digest in hashes]

    async def _touch(self, records: Iterable[TokenRecord]) -> None:
        """Note once a day that tokens are in use. A failure to write that refuses no request."""
        today = self._clock.now().date()
        ids = sorted(record.id for record in records if record.last_used_on != today)
        if ids:
            with suppress(Unavailable):
                await self._database.run_tx("token.touch", lambda c: store.touch_tokens(c, ids, today))

    async def create(
        self,
        *,
        name: str,
        roles: Set[Role],
        studies: frozenset[str] | None = None,
        subject: bytes | None = None,
        expires_at: datetime | None = None,
        actor: str,
    ) -> tuple[TokenRecord, str]:
        """Make a token; the secret is returned this once and never again.

        Args:
            name: For people.
            roles: What it may do: all that one of them may.
            studies: Slugs it is limited to; None for all.
            subject: The one subject (HMAC digest) it acts for; only for role contribute alone.
            expires_at: From then on it is refused.
            actor: Who makes it, for the audit trail.

        Raises:
            InvalidRequest: no role, a subject with another one than contribute, studies with the role
                observe, or an expiry in the past.
        """
        now = self._clock.now()
        if not roles:
            raise InvalidRequest.field("role", "give one role, or several as roles")
        if subject is not None and roles != {Role.CONTRIBUTE}:
            raise InvalidRequest.field("subject", "only a contribute token can be limited to a subject")
        if studies is not None and Role.OBSERVE in roles:
            raise InvalidRequest.field("studies", "a token that watches the service sees no study")
        if expires_at is not None and expires_at <= now:
            raise InvalidRequest.field("expires_at", "must be in the future")
        secret = PREFIX + new_secret()
        record = TokenRecord(
            id=uuid4(),
            name=name,
            roles=frozenset(roles),
            studies=studies,
            subject=subject,
            expires_at=expires_at,
            revoked_at=None,
            created_at=now,
        )

        async def body(connection: Connection) -> None:
            await store.insert_token(connection, record, hash_secret(secret))
            await journal.record(
                connection, now, actor, "token.create", record.id, name=name, roles=in_order(roles)
            )

        await self._database.run_tx("token.create", body)
        return record, secret

    async def page(self, limit: int, cursor: str | None) -> Page[TokenRecord]:
        """All tokens, without their secrets."""
        after = decode_cursor(cursor, UUID, LOWEST_ID)
        items = await self._database.run_tx(
            "token.page", lambda c: store.page_tokens(c, after=after, limit=limit + 1)
        )
        return page_of(items, limit, lambda record: str(record.id))

    async def listing(self, limit: int, cursor: str | None, wanted: Wanted) -> Page[TokenLine]:
        """Tokens as people look for them (`app.store.tokens.list_tokens`)."""
        behind, now = decode_cursor(cursor, UUID, None), self._clock.now()
        items = await self._database.run_tx(
            "token.list",
            lambda c: store.list_tokens(c, wanted, now=now, behind=behind, limit=limit + 1),
        )
        return page_of(items, limit, lambda line: str(line.token.id), behind=behind)

    async def get(self, token_id: UUID) -> TokenRecord:
        """One token, without its secret.

        Raises:
            NotFound: there is no such token.
        """
        record = await self._database.run_tx("token.read", lambda c: store.read_token(c, token_id))
        if record is None:
            raise NotFound("there is no such token")
        return record

    async def rotate(self, token_id: UUID, grace_seconds: int, actor: str) -> tuple[TokenRecord, str]:
        """Give a token another secret; its id, limits, quota and idempotency keys stay.

        Args:
            token_id: The token.
            grace_seconds: How long the present secret is taken beside the new one; one from an earlier
                rotation is refused from now on.
            actor: Who does it, for the audit trail.

        Returns:
            The token, and the new secret, this once.

        Raises:
            NotFound: there is no such token.
            Conflict: it is revoked or has expired, or it has no secret.
        """
        secret = PREFIX + new_secret()

        async def body(connection: Connection) -> TokenRecord:
            now = self._clock.now()
            record = await _locked(connection, token_id)
            if record.by_provider:
                raise Conflict("this token stands for an identity of the provider and has no secret")
            if record.revoked_at is not None or (record.expires_at is not None and record.expires_at <= now):
                raise Conflict("the token is revoked or has expired; make a new one")
            until = now + timedelta(seconds=grace_seconds) if grace_seconds else None
            await store.rotate_token(connection, token_id, hash_secret(secret), old_until=until)
            # A login with the old secret may be the reason for the new one.
            await logins.delete_logins_of(connection, token_id)
            await journal.record(
                connection, now, actor, "token.rotate", token_id, grace_seconds=grace_seconds
            )
            return record

        return await self._database.run_tx("token.rotate", body), secret

    async def set_quota(self, token_id: UUID, quota: Quota | None, actor: str) -> TokenRecord:
        """Limit what a token may use of each study, or lift that limit. What it used already counts.

        Raises:
            NotFound: there is no such token.
            InvalidRequest: the token does not ask questions.
        """

        async def body(connection: Connection) -> TokenRecord:
            record = await _locked(connection, token_id)
            if Role.ANALYSE not in record.roles:
                raise InvalidRequest(
                    "only a token with the role analyse has a quota",
                    fields=[FieldError("token", "must have the role analyse")],
                )
            await quotas.set_quota(connection, token_id, quota)
            await journal.record(
                connection,
                self._clock.now(),
                actor,
                "token.quota",
                token_id,
                **({} if quota is None else asdict(quota)),
            )
            return replace(record, quota=quota)

        return await self._database.run_tx("token.quota", body)

    async def usage(self, token_id: UUID, limit: int, cursor: str | None) -> Page[StudyUsage]:
        """What a token used of each study in its quota's period, or ever where it has no quota.

        Raises:
            NotFound: there is no such token.
        """
        after = decode_cursor(cursor, str, "")
        await self.get(token_id)
        items = await self._database.run_tx(
            "token.usage", lambda c: quotas.page_usage(c, token_id, after=after, limit=limit + 1)
        )
        return page_of(items, limit, lambda entry: entry.study)

    async def revoke(self, token_id: UUID, actor: str) -> None:
        """Refuse a token from now on; doing it twice is no error.

        Raises:
            NotFound: there is no such token.
        """

        async def body(connection: Connection) -> bool:
            now = self._clock.now()
            if not await store.revoke_token(connection, token_id, now):
                return False
            await journal.record(connection, now, actor, "token.revoke", token_id)
            return True

        if not await self._database.run_tx("token.revoke", body):
            raise NotFound("there is no such token")


async def _locked(connection: Connection, token_id: UUID) -> TokenRecord:
    record = await store.lock_token(connection, token_id)
    if record is None:
        raise NotFound("there is no such token")
    return record
