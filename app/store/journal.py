"""The audit trail of what admins did, idempotency keys, and facts about the installation."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

WITHDRAWN = 409
"""Stored status of a key whose contribution was withdrawn."""

RECORD = text("""
    INSERT INTO audit (at, actor, action, target, detail)
    VALUES (:at, :actor, :action, :target, CAST(:detail AS jsonb))
""")

CLAIM_KEY = text("""
    INSERT INTO idempotency (token_id, key, request, status, body, study_id, subject_id, created_at)
    VALUES (:token_id, :key, :request, :status, :body, :study_id, :subject, :created_at)
    ON CONFLICT (token_id, key) DO UPDATE
    SET request = excluded.request, status = excluded.status, body = excluded.body,
        study_id = excluded.study_id, subject_id = excluded.subject_id, created_at = excluded.created_at
    WHERE idempotency.created_at <= :expired
    RETURNING key
""")

READ_KEY = text("""
    SELECT request, status, body FROM idempotency
    WHERE token_id = :token_id AND key = :key AND created_at > :expired
""")

# What is left says of no person anything: a late retry must not bring back what was withdrawn.
FORGET_KEYS = text("""
    UPDATE idempotency SET request = '', body = '', status = :withdrawn, study_id = NULL, subject_id = NULL
    WHERE subject_id = :subject AND study_id = :study_id
""")

# Who holds a row is about to replace or to delete it.
PURGE_KEYS = text("""
    DELETE FROM idempotency WHERE (token_id, key) IN (
        SELECT token_id, key FROM idempotency WHERE created_at <= :expired FOR UPDATE SKIP LOCKED
    )
""")

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


async def read_reply(
    connection: AsyncConnection, token_id: UUID, key: bytes, *, expired: datetime
) -> Reply | None:
    """The response to a key that was stored after `expired`, or None."""
    parameters = {"token_id": token_id, "key": key, "expired": expired}
    row = (await connection.execute(READ_KEY, parameters)).one_or_none()
    return None if row is None else Reply(request=row.request, status=row.status, body=row.body)


async def store_reply(
    connection: AsyncConnection,
    token_id: UUID,
    key: bytes,
    reply: Reply,
    *,
    study_id: int,
    subject: bytes | None,
    created_at: datetime,
    expired: datetime,
) -> bool:
    """Store the response to a key, over one that was stored by `expired`.

    Waits for a transaction that is storing it; False where one has.
    """
    row = await connection.execute(
        CLAIM_KEY,
        {
            "token_id": token_id,
            "key": key,
            "request": reply.request,
            "status": reply.status,
            "body": reply.body,
            "study_id": study_id,
            "subject": subject,
            "created_at": created_at,
            "expired": expired,
        },
    )
    return row.one_or_none() is not None


async def forget_replies(connection: AsyncConnection, study_id: int, subject: bytes) -> None:
    """Leave of the responses to a person's requests in a study only that their keys are used up."""
    parameters = {"study_id": study_id, "subject": subject, "withdrawn": WITHDRAWN}
    await connection.execute(FORGET_KEYS, parameters)


async def purge_replies(connection: AsyncConnection, expired: datetime) -> None:
    """Delete every response that was stored by then."""
    await connection.execute(PURGE_KEYS, {"expired": expired})


async def claim_fact(connection: AsyncConnection, key: str, value: bytes) -> bytes:
    """Fix a fact about the installation the first time; returns the one that holds."""
    return bytes((await connection.execute(CLAIM_FACT, {"key": key, "value": value})).scalar_one())


async def read_fact(connection: AsyncConnection, key: str) -> bytes | None:
    """A fact about the installation, or None."""
    value = (await connection.execute(READ_FACT, {"key": key})).scalar_one_or_none()
    return None if value is None else bytes(value)
