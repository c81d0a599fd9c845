"""Tokens, known only by the hash of their secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.principal import Role
from app.store.database import Database

COLUMNS = "id, name, role, studies, subject_id, expires_at, revoked_at, created_at"

INSERT = text("""
    INSERT INTO token (id, name, role, hash, studies, subject_id, expires_at, created_at)
    VALUES (:id, :name, CAST(:role AS role), :hash, CAST(:studies AS text[]), :subject, :expires_at,
            :created_at)
""")

READ_BY_HASH = f"SELECT hash, {COLUMNS} FROM token WHERE hash = ANY($1)"

READ = text(f"SELECT {COLUMNS} FROM token WHERE id = :id")

PAGE = text(f"SELECT {COLUMNS} FROM token WHERE id > :after ORDER BY id LIMIT :limit")

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
    """

    id: UUID
    name: str
    role: Role
    studies: frozenset[str] | None
    subject: bytes | None
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime


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
    return {row["hash"]: _record(row) for row in rows}


async def read_token(connection: AsyncConnection, token_id: UUID) -> TokenRecord | None:
    """One token, or None."""
    row = (await connection.execute(READ, {"id": token_id})).mappings().one_or_none()
    return None if row is None else _record(row)


async def page_tokens(connection: AsyncConnection, *, after: UUID, limit: int) -> list[TokenRecord]:
    """Tokens in the order of their ids."""
    rows = await connection.execute(PAGE, {"after": after, "limit": limit})
    return [_record(row) for row in rows.mappings()]


async def revoke_token(connection: AsyncConnection, token_id: UUID, at: datetime) -> bool:
    """Refuse a token from now on; False where there is none."""
    return (await connection.execute(REVOKE, {"id": token_id, "at": at})).one_or_none() is not None


def _record(row: Any) -> TokenRecord:
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
    )
