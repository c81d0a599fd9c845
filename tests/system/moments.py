"""Moments of a transaction: a commit that waits until a test lets it go, so that a kill meets it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from app.postgres.embedded import EmbeddedPostgres
from tests.support.live import LiveService
from tests.system.load import PATIENCE

HELD = 4242
"""The advisory lock for which commits wait."""

HOLD = f"SELECT pg_advisory_lock({HELD})"
LET_GO = f"SELECT pg_advisory_unlock({HELD})"

WAITING = """SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1"""


@asynccontextmanager
async def connected(service: LiveService) -> AsyncIterator[asyncpg.Connection]:
    """A connection to the service's database."""
    url = service.database_url or EmbeddedPostgres(service.data_directory).url
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def hold_commits(connection: asyncpg.Connection, table: str) -> None:
    """Let each commit that inserts into a table wait as long as a connection holds the lock."""
    await connection.execute(f"""
        CREATE OR REPLACE FUNCTION hold_commit() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_advisory_xact_lock_shared({HELD}); RETURN NULL; END $$;
        DROP TRIGGER IF EXISTS hold_commit ON {table};
        CREATE CONSTRAINT TRIGGER hold_commit AFTER INSERT ON {table}
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hold_commit()
    """)


async def until(connection: asyncpg.Connection, least: int, query: str, *arguments: str) -> None:
    """Wait until a count is as large as that."""
    async with asyncio.timeout(PATIENCE):
        while await connection.fetchval(query, *arguments) < least:  # noqa: ASYNC110 (the database sets no event)
            await asyncio.sleep(0.01)
