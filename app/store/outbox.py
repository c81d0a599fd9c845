"""Webhooks and their outbox: an event is stored in the transaction that causes it, and sent afterwards."""

import json
from collections.abc import Mapping
from uuid import UUID

from app.core.webhook import Delivery, EventType, Webhook
from app.store.sql import Connection, Sql

ATTEMPTS = 28
"""Then an event is given up, after four days."""

FIRST_RETRY_SECONDS = 5
"""From the beginning of an attempt to that of the next one, which is twice as far off each time."""

LONGEST_RETRY_SECONDS = 6 * 60 * 60

LOW = 800_000
"""Part of what people offered from which on little is left [ppm]."""

INSERT = Sql("""
    INSERT INTO webhook (id, url, events, token_id, created_at)
    VALUES (:id, :url, :events, :token_id, :created_at)
""")

COLUMNS = """webhook.id, url, events, token_id, created_at,
    (SELECT count(*) FROM event WHERE webhook_id = webhook.id AND due_at IS NOT NULL) AS waiting,
    (SELECT count(*) FROM event WHERE webhook_id = webhook.id AND due_at IS NULL) AS given_up"""

READ = Sql.of(Webhook)(f"SELECT {COLUMNS} FROM webhook WHERE id = :id")

PAGE = Sql.of(Webhook)(f"SELECT {COLUMNS} FROM webhook WHERE id > :after ORDER BY id LIMIT :limit")

DELETE = Sql.of(UUID)("DELETE FROM webhook WHERE id = :id RETURNING id")

DELETE_ALL = Sql("DELETE FROM webhook")

_NOW = r"""to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24\:MI\:SS.US"Z"')"""
"""As all documents of the service write a moment."""

_EMIT = f"""
    INSERT INTO event (id, webhook_id, body, due_at)
    SELECT gen_random_uuid(), webhook.id, CAST(json_build_object(
        'type', CAST(:type AS text), 'timestamp', {_NOW},
        'data', jsonb_build_object('study', study.slug) || CAST(:data AS jsonb)
    ) AS text), clock_timestamp()
    FROM webhook JOIN study ON study.id = :study_id WHERE :type = ANY (webhook.events)
"""

EMIT = Sql(_EMIT)

# Only what was asked counts, not who is there.
EMIT_LOW = Sql(f"""{_EMIT} AND :low BETWEEN 1 + (
    SELECT coalesce(sum(share), 0) FROM usage WHERE study_id = :study_id AND release_id <> :release_id
) AND (SELECT sum(share) FROM usage WHERE study_id = :study_id)
""")

# An attempt makes the next one due before it begins: one that a process does not survive is made again.
CLAIM = Sql.of(Delivery)("""
    WITH due AS (
        SELECT id FROM event WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT :limit
        FOR UPDATE SKIP LOCKED
    )
    UPDATE event SET attempts = attempts + 1,
        due_at = clock_timestamp() + make_interval(secs => least(:first * power(2, attempts), :longest))
    FROM due, webhook WHERE event.id = due.id AND webhook.id = event.webhook_id
    RETURNING event.id, event.webhook_id, webhook.url, event.body
""")

TAKEN = Sql("DELETE FROM event WHERE id = :id")

NOT_TAKEN = Sql("UPDATE event SET due_at = NULL WHERE id = :id AND attempts >= :attempts")


async def insert_webhook(connection: Connection, webhook: Webhook) -> None:
    """Store a webhook."""
    await INSERT.run(connection, webhook)


async def read_webhook(connection: Connection, webhook_id: UUID) -> Webhook | None:
    """One webhook, or None."""
    return await READ.maybe(connection, id=webhook_id)


async def page_webhooks(connection: Connection, *, after: UUID, limit: int) -> list[Webhook]:
    """Webhooks in the order of their ids."""
    return await PAGE.all(connection, after=after, limit=limit)


async def delete_webhook(connection: Connection, webhook_id: UUID) -> bool:
    """Delete a webhook and what it was not told yet; False where there is none."""
    return await DELETE.maybe(connection, id=webhook_id) is not None


async def delete_all(connection: Connection) -> None:
    """Delete every webhook."""
    await DELETE_ALL.run(connection)


async def emit(connection: Connection, kind: EventType, study_id: int, data: Mapping[str, object]) -> None:
    """Have every webhook of this kind of event told, if this transaction commits.

    Args:
        connection: In the transaction that causes it.
        kind: What happened.
        study_id: In which study.
        data: More to say, nothing about people.
    """
    await EMIT.run(connection, type=kind, study_id=study_id, data=json.dumps(dict(data)))


async def emit_low(connection: Connection, study_id: int, release_id: UUID) -> None:
    """Have webhooks told if a release brings the shares of a study's answers to `LOW`; after its usage."""
    await EMIT_LOW.run(
        connection,
        type=EventType.BUDGET_LOW,
        study_id=study_id,
        data=json.dumps({"release": str(release_id)}),
        low=LOW,
        release_id=release_id,
    )


async def claim(connection: Connection, limit: int) -> list[Delivery]:
    """Events that are due, each for one caller; they are due again unless they are taken."""
    return await CLAIM.all(
        connection, limit=limit, first=float(FIRST_RETRY_SECONDS), longest=float(LONGEST_RETRY_SECONDS)
    )


async def settle(connection: Connection, event_id: UUID, *, taken: bool) -> None:
    """Note the end of an attempt: an event that was taken is forgotten, one that never is, given up."""
    if taken:
        await TAKEN.run(connection, id=event_id)
    else:
        await NOT_TAKEN.run(connection, id=event_id, attempts=ATTEMPTS)
