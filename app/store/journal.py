"""The audit trail of what admins did, idempotency keys, and facts about the installation."""

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.core.records import TrailLine
from app.store.contributions import KEY_LOCK
from app.store.sql import Connection, Sql

WITHDRAWN = 409
"""Stored status of a key whose contribution was withdrawn."""

RECORD = Sql("""
    INSERT INTO audit (at, actor, action, target, detail)
    VALUES (:at, :actor, :action, :target, CAST(:detail AS jsonb))
""")

# Ids are compared as ids: a token is found by its key.
PAGE = Sql.of(TrailLine)("""
    WITH line AS (
        SELECT id, at, actor, action, target, detail,
               CASE WHEN actor ~ :uuid THEN CAST(actor AS uuid) END AS actor_id,
               CASE WHEN target ~ :uuid THEN CAST(target AS uuid) END AS target_id
        FROM audit
        WHERE id < :before AND (CAST(:action AS text) IS NULL OR action = :action)
          AND (CAST(:target AS text) IS NULL OR target = :target)
        ORDER BY id DESC LIMIT :limit
    )
    SELECT line.id, at, actor, actor_token.name AS actor_name, action, target,
           target_token.name AS target_name, detail
    FROM line LEFT JOIN token AS actor_token ON actor_token.id = actor_id
    LEFT JOIN token AS target_token ON target_token.id = target_id
    ORDER BY line.id DESC
""")

UUID_SHAPE = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"

# Keys that share a hash only wait for each other.
LOCK_KEY = Sql(f"""
    SELECT pg_advisory_xact_lock(
        {KEY_LOCK}, hashtext(CAST(CAST(:token_id AS uuid) AS text) || encode(:key, 'hex'))
    )
""")

STORE_KEY = Sql.of(bytes)("""
    INSERT INTO idempotency (token_id, key, request, status, body, study_id, subject_id, created_at)
    VALUES (:token_id, :key, :request, :status, :body, :study_id, :subject, :created_at)
    ON CONFLICT (token_id, key) DO UPDATE
    SET request = excluded.request, status = excluded.status, body = excluded.body,
        study_id = excluded.study_id, subject_id = excluded.subject_id, created_at = excluded.created_at
    WHERE idempotency.created_at <= :expired
    RETURNING key
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The stored first response to an idempotency key."""

    request: bytes
    status: int
    body: bytes


READ_KEY = Sql.of(Reply)("""
    SELECT request, status, body FROM idempotency
    WHERE token_id = :token_id AND key = :key AND created_at > :expired
""")

# What is left says of no person anything: a late retry must not bring back what was withdrawn.
FORGET_KEYS = Sql("""
    UPDATE idempotency SET request = '', body = '', status = :withdrawn, study_id = NULL, subject_id = NULL
    WHERE subject_id = :subject AND study_id = :study_id
""")

# Who holds a row is about to replace or to delete it.
PURGE_KEYS = Sql("""
    DELETE FROM idempotency WHERE (token_id, key) IN (
        SELECT token_id, key FROM idempotency WHERE created_at <= :expired FOR UPDATE SKIP LOCKED
    )
""")

READ_FACT = Sql.of(bytes)("SELECT value FROM installation WHERE key = :key")

CLAIM_FACT = Sql.of(bytes)("""
    INSERT INTO installation (key, value) VALUES (:key, :value)
    ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING value
""")


async def record(
    connection: Connection,
    at: datetime,
    actor: UUID | str,
    action: str,
    target: UUID | str,
    /,
    **detail: object,
) -> None:
    """Note what an admin did. Never with data values, secrets or external ids."""
    said = json.dumps(detail)
    await RECORD.run(connection, at=at, actor=str(actor), action=action, target=str(target), detail=said)


async def page(
    connection: Connection, *, before: int, action: str | None, target: str | None, limit: int
) -> list[TrailLine]:
    """What admins did before an entry, newest first; of one action or target only unless None."""
    return await PAGE.all(
        connection, before=before, action=action, target=target, limit=limit, uuid=UUID_SHAPE
    )


async def read_reply(
    connection: Connection, token_id: UUID, key: bytes, *, expired: datetime
) -> Reply | None:
    """The response to a key that was stored after `expired`, or None."""
    return await READ_KEY.maybe(connection, token_id=token_id, key=key, expired=expired)


async def lock_key(connection: Connection, token_id: UUID, key: bytes) -> None:
    """Wait until no other transaction has this key, and let none have it until this one ends."""
    await LOCK_KEY.run(connection, token_id=token_id, key=key)


async def store_reply(
    connection: Connection,
    token_id: UUID,
    key: bytes,
    reply: Reply,
    *,
    study_id: int | None,
    subject: bytes | None,
    created_at: datetime,
    expired: datetime,
) -> bool:
    """Store the response to a key, over one that was stored by `expired`; False where there is one."""
    stored = await STORE_KEY.maybe(
        connection,
        reply,
        token_id=token_id,
        key=key,
        study_id=study_id,
        subject=subject,
        created_at=created_at,
        expired=expired,
    )
    return stored is not None


async def forget_replies(connection: Connection, study_id: int, subject: bytes) -> None:
    """Leave of the responses to a person's requests in a study only that their keys are used up."""
    await FORGET_KEYS.run(connection, subject=subject, study_id=study_id, withdrawn=WITHDRAWN)


async def purge_replies(connection: Connection, expired: datetime) -> None:
    """Delete every response that was stored by then."""
    await PURGE_KEYS.run(connection, expired=expired)


async def claim_fact(connection: Connection, key: str, value: bytes) -> bytes:
    """Fix a fact about the installation the first time; returns the one that holds."""
    return await CLAIM_FACT.one(connection, key=key, value=value)


async def read_fact(connection: Connection, key: str) -> bytes | None:
    """A fact about the installation, or None."""
    return await READ_FACT.maybe(connection, key=key)
