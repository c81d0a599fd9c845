"""Moving all people from one subject key to another: new digests in every table, in one transaction."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from app.store.database import APPLICATION
from app.store.invitations import revoke_all
from app.store.outbox import delete_all
from app.store.sql import Connection, Sql, driver
from app.store.tables import metadata, subject

ROWS_AT_ONCE = 50_000

ENDED = ("link", "login", "idempotency")
"""Ways to a person's page, and responses to a person's requests, known by digests under the old key:
they hold no budget and do not last, so they end instead of moving."""

HOLDERS = tuple(
    table.name
    for table in metadata.sorted_tables
    if "subject_id" in table.columns and table.name not in ENDED
)
"""Every other table that says whose a row is."""

PERSONAL_ACTIONS = ("budget.set", "link.create")
"""What the audit trail notes with the hex of a person's digest as its target."""

DISTRIBUTED = ("contribution", "enrolment", "answer")
"""Of these a row may lie on the node of its person, so it moves as a new one."""

_OTHER_COLUMNS = ", ".join(column.name for column in subject.columns if column.name != "id")

LOCK = Sql(
    f"LOCK TABLE subject, installation, figure, invitation, {', '.join((*HOLDERS, *ENDED))}"
    " IN ACCESS EXCLUSIVE MODE"
)

SERVICES = Sql.of(int)("""
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE :name AND pid <> pg_backend_pid()
""")

TEMPORARY = Sql("CREATE TEMPORARY TABLE rekeyed (old bytea, new bytea) ON COMMIT DROP")

INDEX = Sql("CREATE UNIQUE INDEX ON rekeyed (old)")

ANALYZE = Sql("ANALYZE rekeyed")

# People that a link made have no external id: their receipts find them, under every key.
LEFT = Sql.of(int)(f"""
    SELECT count(*) FROM (
        SELECT id FROM subject {" ".join(f"UNION SELECT subject_id FROM {table}" for table in HOLDERS)}
    ) known WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM rekeyed WHERE rekeyed.old = known.id)
      AND NOT EXISTS (SELECT FROM ticket WHERE ticket.subject_id = known.id AND ticket.anonymous)
""")

END_LINKS = Sql("DELETE FROM ticket WHERE receipt IS NULL")
"""Links that were not used: their codes are digests under the old key, and find nothing any more."""

COPY_SUBJECTS = Sql.of(int)(f"""
    WITH moved AS (
        INSERT INTO subject (id, {_OTHER_COLUMNS})
        SELECT rekeyed.new, {_OTHER_COLUMNS} FROM subject JOIN rekeyed ON rekeyed.old = subject.id
        RETURNING id
    )
    SELECT count(*) FROM moved
""")


def _moving(table: str) -> tuple[Sql[Any], ...]:
    if table not in DISTRIBUTED:
        return (
            Sql(f"UPDATE {table} SET subject_id = rekeyed.new FROM rekeyed WHERE subject_id = rekeyed.old"),
        )
    columns = [column.name for column in metadata.tables[table].columns if column.name != "subject_id"]
    others = ", ".join(columns)
    return (
        Sql(
            f"INSERT INTO {table} (subject_id, {others})"
            f" SELECT rekeyed.new, {others} FROM {table} JOIN rekeyed ON subject_id = rekeyed.old"
        ),
        Sql(f"DELETE FROM {table} USING rekeyed WHERE subject_id = rekeyed.old"),
    )


MOVE = tuple(statement for table in HOLDERS for statement in _moving(table))

DROP_SUBJECTS = Sql("DELETE FROM subject USING rekeyed WHERE id = rekeyed.old")

END = tuple(Sql(f"DELETE FROM {table} WHERE subject_id IS NOT NULL") for table in ENDED)

MOVE_AUDIT = Sql("""
    UPDATE audit SET target = encode(rekeyed.new, 'hex') FROM rekeyed
    WHERE action = ANY(:actions) AND target = encode(rekeyed.old, 'hex')
""")

# Its examples are digests; the next pass makes them again.
CLEAR_FIGURES = Sql("DELETE FROM figure")

SET_KEY = Sql("UPDATE installation SET value = :fingerprint WHERE key = 'subject_key'")


async def services_connected(connection: Connection) -> int:
    """How many connections of running services there are."""
    return await SERVICES.one(connection, name=f"{APPLICATION} %")


async def lock_everybody(connection: Connection) -> None:
    """Lock out every other session from all that is about people, until this transaction ends."""
    await LOCK.run(connection)


async def end_links(connection: Connection, at: datetime) -> None:
    """Take no more answers by links and have no webhook: secrets are made of the key. Receipts stay good."""
    await END_LINKS.run(connection)
    await revoke_all(connection, at)
    await delete_all(connection)


async def load_digests(connection: Connection, digests: Mapping[bytes, bytes]) -> int:
    """Tell the database which digest becomes which.

    Returns:
        How many people it knows whose digest was not told.
    """
    await TEMPORARY.run(connection)
    rows: Iterable[tuple[bytes, bytes]] = iter(digests.items())
    while chunk := list(islice(rows, ROWS_AT_ONCE)):
        await driver(connection).copy_records_to_table("rekeyed", records=chunk, columns=["old", "new"])
    await INDEX.run(connection)
    await ANALYZE.run(connection)
    return await LEFT.one(connection)


async def move_people(connection: Connection, fingerprint: bytes) -> int:
    """Give each listed person the new digest, and the database the new key's fingerprint.

    The audit trail then names them by the new digest. Links, logins and idempotency keys of people end, and
    figures are gone.

    Returns:
        How many people have one now.
    """
    moved = await COPY_SUBJECTS.one(connection)
    for statement in MOVE:
        await statement.run(connection)
    await DROP_SUBJECTS.run(connection)
    for statement in END:
        await statement.run(connection)
    await MOVE_AUDIT.run(connection, actions=PERSONAL_ACTIONS)
    await CLEAR_FIGURES.run(connection)
    await SET_KEY.run(connection, fingerprint=fingerprint)
    return moved
