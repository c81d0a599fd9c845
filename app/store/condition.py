"""How a database is: whether it takes changes, keeps them, has room, and whose its sessions are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from app.store.sql import Connection, Sql

DURABLE = ("fsync", "full_page_writes", "synchronous_commit")
"""Settings of PostgreSQL without which a commit that was acknowledged may be lost in a crash."""

READ_UNSAFE = Sql.of(str)("""
    SELECT name FROM unnest(CAST(:names AS text[])) AS name WHERE current_setting(name) = 'off' ORDER BY name
""")

READ_ONLY = Sql.of(bool)("SELECT current_setting('transaction_read_only') = 'on'")

READ_BACKEND = Sql.of(int)("SELECT pg_backend_pid()")
"""The process of the server that a session is."""

BACKEND = "backend"
"""Key of a connection's `info`: the process of the server that it began with."""

POOLED = (
    "a pooler gives the connection another session after each transaction; the service keeps statements and "
    "settings in its sessions: let it pool by session (PgBouncer: pool_mode = session), or leave it out"
)

SPILL = """
    SET LOCAL work_mem = '64kB'; SET LOCAL temp_tablespaces = '';
    SELECT count(*) FROM (
        WITH filler AS MATERIALIZED (SELECT repeat('x', 100000) AS x FROM generate_series(1, 10)) TABLE filler
    ) AS filled
"""
"""Writes a megabyte to the disk of the database, and leaves nothing there."""

READ_SCHEMA = Sql.of(str)("SELECT version_num FROM alembic_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How a database is.

    Attributes:
        read_only: Whether it takes no changes, as a standby.
        shared: Whether a pooler has given the session away (`POOLED`).
        full: Whether its disk takes nothing any more.
        unsafe: What a crash could undo (`unsafe_settings`).
        revisions: Of the schema, as applied.
    """

    read_only: bool
    shared: bool
    full: bool
    unsafe: Sequence[str]
    revisions: Sequence[str]


async def look_at(session: asyncpg.Connection, info: Mapping[str, Any]) -> Condition:
    """How the database is, by a session and the `info` of its connection."""
    full = False
    try:
        await session.execute(SPILL)
    except asyncpg.DiskFullError:
        full = True
    [read_only] = await READ_ONLY.fetch(session, {})
    [backend] = await READ_BACKEND.fetch(session, {})
    return Condition(
        read_only=read_only,
        shared=backend != info[BACKEND],
        full=full,
        unsafe=await READ_UNSAFE.fetch(session, {"names": DURABLE}),
        revisions=await READ_SCHEMA.fetch(session, {}),
    )


async def unsafe_settings(connection: Connection) -> list[str]:
    """The settings of `DURABLE` that are off in this very session: a crash could undo what was committed.

    Roles and databases have settings of their own, so the server's configuration would not tell.
    """
    return await READ_UNSAFE.all(connection, names=DURABLE)
