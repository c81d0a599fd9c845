"""Tokens, known only by the hash of their secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.principal import Role
from app.core.quota import Quota
from app.store.database import Database

COLUMNS = """id, name, role, studies, subject_id, {expires_at}, revoked_at, created_at, last_used_on,
    quota_share, quota_period, identity"""
OWN = COLUMNS.format(expires_at="expires_at")

INSERT = text("""
    INSERT INTO token (id, name, role, hash, studies, subject_id, expires_at, created_at)
    VALUES (:id, :name, CAST(:role AS role), :hash, CAST(:studies AS text[]), :subject, :expires_at,
            :created_at)
""")

# A secret that was rotated away is the same token, which expires when the time of grace is over.
READ_BY_HASH = f"""
    SELECT hash AS found, {OWN} FROM token WHERE hash = ANY($1)
    UNION ALL
    SELECT old_hash, {COLUMNS.format(expires_at="least(expires_at, old_expires_at)")} FROM token
    WHERE old_hash = ANY($1)
"""

READ_BY_IDENTITY = f"SELECT identity AS found, {OWN} FROM token WHERE identity = ANY($1)"

CLAIM_IDENTITY = text(f"""
    INSERT INTO token (id, name, role, identity, studies, created_at, last_used_on)
    VALUES (:id, :name, CAST(:role AS role), :identity, CAST(:studies AS text[]), :at, :day)
    ON CONFLICT (identity) DO UPDATE SET role = excluded.role, studies = excluded.studies
    WHERE (token.role, token.studies) IS DISTINCT FROM (excluded.role, excluded.studies)
    RETURNING {OWN}
""")

READ_IDENTITY = text(f"SELECT {OWN} FROM token WHERE identity = :identity")

READ = text(f"SELECT {OWN} FROM token WHERE id = :id")

LOCK = text(f"SELECT {OWN} FROM token WHERE id = :id FOR UPDATE")

ROTATE = text("""
    UPDATE token SET old_hash = CASE WHEN CAST(:until AS timestamptz) IS NULL THEN NULL ELSE hash END,
                     old_expires_at = :until, hash = :hash
    WHERE id = :id
""")

TOUCH = text("""
    UPDATE token SET last_used_on = :day
    WHERE id = ANY(CAST(:ids AS uuid[])) AND last_used_on IS DISTINCT FROM :day
""")

PAGE = text(f"SELECT {OWN} FROM token WHERE id > :after ORDER BY id LIMIT :limit")

REVOKE = text("UPDATE token SET revoked_at = coalesce(revoked_at, :at) WHERE id = :id RETURNING id")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token without its secret.

    Attributes:
        id, name, role: As created.
        studies: Slugs it is limited to; None for all.
        subject: The one subject it acts for (HMAC digest); None for all.
        expires_at, revoked_at: From then on it is refused; None for never.
        created_at: When.
        last_used_on: The last day (UTC) on which it was borne; None for never.
        quota: What it may use of each study; None for no limit of its own.
        by_provider: Whether it has no secret and stands for an identity of the OIDC provider.
    """

    id: UUID
    name: str
    role: Role
    studies: frozenset[str] | None
    subject: bytes | None
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    last_used_on: date | None = None
    quota: Quota | None = None
    by_provider: bool = False


async def insert_token(connection: AsyncConnection, record: TokenRecord, secret_hash: bytes) -> None:
    """Store a token."""
    await connection.execute(
        INSERT,
        {
            "id": record.id,
            "name": record.name,
            "role": record.role.value,
            "hash": secret_hash,
            "studies": None if record.studies is None else sorted(record.studies),
            "subject": record.subject,
            "expires_at": record.expires_at,
            "created_at": record.created_at,
        },
    )


async def read_tokens_by_hash(database: Database, hashes: Sequence[bytes]) -> dict[bytes, TokenRecord]:
    """The tokens with these hashes, by hash, as they are now. Every request waits for this."""
    rows = await database.fetch("token.find", READ_BY_HASH, hashes)
    return {row["found"]: token_record(row) for row in rows}


async def read_tokens_by_identity(
    database: Database, identities: Sequence[bytes]
) -> dict[bytes, TokenRecord]:
    """The rows of these identities of the OIDC provider, by identity, as they are now."""
    rows = await database.fetch("token.identities", READ_BY_IDENTITY, identities)
    return {row["found"]: token_record(row) for row in rows}


async def claim_identity(
    connection: AsyncConnection,
    identity: bytes,
    *,
    name: str,
    role: Role,
    studies: frozenset[str] | None,
    at: datetime,
) -> tuple[TokenRecord, bool]:
    """The row of an identity with this role, and whether it was made or changed for it."""
    values = {
        "id": uuid4(),
        "name": name,
        "role": role.value,
        "identity": identity,
        "studies": None if studies is None else sorted(studies),
        "at": at,
        "day": at.date(),
    }
    row = (await connection.execute(CLAIM_IDENTITY, values)).mappings().one_or_none()
    if row is not None:
        return token_record(row), True
    found = await connection.execute(READ_IDENTITY, {"identity": identity})
    return token_record(found.mappings().one()), False


async def read_token(connection: AsyncConnection, token_id: UUID) -> TokenRecord | None:
    """One token, or None."""
    row = (await connection.execute(READ, {"id": token_id})).mappings().one_or_none()
    return None if row is None else token_record(row)


async def lock_token(connection: AsyncConnection, token_id: UUID) -> TokenRecord | None:
    """One token, locked until this transaction ends; None where there is none."""
    row = (await connection.execute(LOCK, {"id": token_id})).mappings().one_or_none()
    return None if row is None else token_record(row)


async def rotate_token(
    connection: AsyncConnection, token_id: UUID, secret_hash: bytes, *, old_until: datetime | None
) -> None:
    """Give a token another secret.

    Args:
        connection: In a transaction.
        token_id: The token.
        secret_hash: Of the new secret.
        old_until: How long the old one is taken beside it; None: from now on not any more.
    """
    await connection.execute(ROTATE, {"id": token_id, "hash": secret_hash, "until": old_until})


async def touch_tokens(connection: AsyncConnection, ids: Sequence[UUID], day: date) -> None:
    """Note that tokens were borne on a day."""
    await connection.execute(TOUCH, {"ids": list(ids), "day": day})


async def page_tokens(connection: AsyncConnection, *, after: UUID, limit: int) -> list[TokenRecord]:
    """Tokens in the order of their ids."""
    rows = await connection.execute(PAGE, {"after": after, "limit": limit})
    return [token_record(row) for row in rows.mappings()]


async def revoke_token(connection: AsyncConnection, token_id: UUID, at: datetime) -> bool:
    """Refuse a token from now on; False where there is none."""
    return (await connection.execute(REVOKE, {"id": token_id, "at": at})).one_or_none() is not None


def token_record(row: Any) -> TokenRecord:
    """The token of a row."""
    studies = row["studies"]
    return TokenRecord(
        id=row["id"],
        name=row["name"],
        role=Role(row["role"]),
        studies=None if studies is None else frozenset(studies),
        subject=row["subject_id"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        created_at=row["created_at"],
        last_used_on=row["last_used_on"],
        quota=None
        if row["quota_share"] is None
        else Quota(share=row["quota_share"], period_seconds=row["quota_period"]),
        by_provider=row["identity"] is not None,
    )
