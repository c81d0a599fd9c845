"""The audit trail of what admins did, idempotency keys, and facts about the installation."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

RECORD = text("""
    INSERT INTO audit (at, actor, action, target, detail)
    VALUES (:at, :actor, :action, :target, CAST(:detail AS jsonb))
""")

CLAIM_KEY = text("""
    INSERT INTO idempotency (token_id, key, request, status, body, created_at)
    VALUES (:token_id, :key, :request, :status, :body, :created_at)
    ON CONFLICT (token_id, key) DO NOTHING RETURNING key
""")

READ_KEY = text("SELECT request, status, body FROM idempotency WHERE token_id = :token_id AND key = :key")

READ_FACT = text("SELECT value FROM installation WHERE key = :key")

CLAIM_FACT = text("""
    INSERT INTO installation (key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING value
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The stored first response to an idempotency key."""

    request: bytes
    status: int
    body: bytes


async def record(
    connection: AsyncConnection,
    *,
    at: datetime,
    actor: str,
    action: str,
    target: str,
    detail: Mapping[str, object],
) -> None:
    """Note what an admin did. Never with data values, secrets or external ids."""
    await connection.execute(
        RECORD, {"at": at, "actor": actor, "action": action, "target": target, "detail": json.dumps(detail)}
    )


async def read_reply(connection: AsyncConnection, token_id: UUID, key: str) -> Reply | None:
    """The stored response to a key, or None."""
    row = (await connection.execute(READ_KEY, {"token_id": token_id, "key": key})).one_or_none()
    return None if row is None else Reply(request=row.request, status=row.status, body=row.body)


async def store_reply(
    connection: AsyncConnection, token_id: UUID, key: str, reply: Reply, *, created_at: datetime
) -> bool:
    """Store the response to a key; waits for a transaction that is storing it; False where one has."""
    row = await connection.execute(
        CLAIM_KEY,
        {
            "token_id": token_id,
            "key": key,
            "request": reply.request,
            "status": reply.status,
            "body": reply.body,
            "created_at": created_at,
        },
    )
    return row.one_or_none() is not None


async def claim_fact(connection: AsyncConnection, key: str, value: bytes) -> bytes:
    """Fix a fact about the installation the first time; returns the one that holds."""
    return bytes((await connection.execute(CLAIM_FACT, {"key": key, "value": value})).scalar_one())


async def read_fact(connection: AsyncConnection, key: str) -> bytes | None:
    """A fact about the installation, or None."""
    value = (await connection.execute(READ_FACT, {"key": key})).scalar_one_or_none()
    return None if value is None else bytes(value)
