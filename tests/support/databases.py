"""Fresh, migrated databases on one embedded server."""

import asyncio
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import psycopg
from sqlalchemy import make_url

from app.postgres.cluster import Cluster
from app.postgres.embedded import EmbeddedPostgres
from app.store import migrate
from app.store.tables import metadata

T = TypeVar("T")

DISCONNECT_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
ROWS_OVER = "SELECT count(*) > %(many)s FROM (SELECT 1 FROM contribution LIMIT %(many)s + 1) few"
MANY_ROWS = 20_000
APPEND_ONLY = ("release", "charge_block")
TABLES = [table.name for table in reversed(metadata.sorted_tables)]
FIRST_LINK = "INSERT INTO chain (id, number, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'))"
FILLED = f"SELECT ARRAY[{','.join(f'EXISTS (SELECT 1 FROM {table})' for table in TABLES)}]"
"""Which of the tables have rows: most tests fill few of them."""


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in a loop of its own, whether or not one runs here."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


async def execute(url: str, *statements: str) -> None:
    """Run statements one by one, each in its own transaction."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory with a short path, so that sockets fit, removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="dither-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def crash(server: EmbeddedPostgres | Cluster) -> None:
    """End a server whose data go with it.

    A server that is stopped first writes and syncs every file of every database: a quarter of a minute for
    twenty of them.
    """
    if (pid := server.postmaster_pid) is not None:
        os.kill(pid, signal.SIGQUIT)


class Server:
    """One PostgreSQL for a whole test session, with a migrated template to copy databases from.

    Args:
        url: Of a database on it.
        partitions: Of the tables of people; None: none.
    """

    TEMPLATE = "template_migrated"

    def __init__(self, url: str, *, partitions: int | None = None) -> None:
        self._partitions = partitions
        self._numbers = itertools.count(1)
        self._free: list[tuple[str, psycopg.Connection]] = []
        self.url = url
        self._make_template()

    def _make_template(self) -> None:
        run_apart(execute(self.url, f"CREATE DATABASE {self.TEMPLATE}"))
        run_apart(migrate.upgrade(self.url_of(self.TEMPLATE), partitions=self._partitions))

    def url_of(self, name: str) -> str:
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a migrated database without any rows.

        Making a database takes far longer than emptying one, so they are used again. So are the connections
        that empty them: each new one would read the whole catalog first.
        """
        if self._free:
            url, owner = self._free.pop()
        else:
            url = self.url_of(self._create(self.TEMPLATE))
            owner = psycopg.connect(url, autocommit=True)
        try:
            yield url
        finally:
            # One that is not used again goes with the server: dropping it would have to wait for autovacuum.
            if _empty(owner):
                self._free.append((url, owner))
            else:
                owner.close()

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """The URL of a fresh database without a schema."""
        yield self.url_of(self._create("template0"))

    def close(self) -> None:
        """Close the connections to databases that no test uses."""
        for _, owner in self._free:
            owner.close()

    def _create(self, template: str) -> str:
        name = self._next_name()
        run_apart(execute(self.url, f"CREATE DATABASE {name} TEMPLATE {template}"))
        return name

    def _next_name(self) -> str:
        return f"test_{next(self._numbers)}"


def _empty(connection: psycopg.Connection) -> bool:
    """Delete every row, also of the append-only tables.

    False where that would take long, and where the test ended this connection with all others.
    """
    try:
        connection.execute(DISCONNECT_OTHERS)
        if connection.execute(ROWS_OVER, {"many": MANY_ROWS}).fetchone() == (True,):
            return False
        [filled] = connection.execute(FILLED).fetchone() or ([],)
        connection.execute(_delete_all([table for table, rows in zip(TABLES, filled, strict=True) if rows]))
    except psycopg.OperationalError:
        return False
    return True


def _delete_all(tables: Sequence[str]) -> bytes:
    """Delete every row of these tables."""
    guarded = [table for table in APPEND_ONLY if table in tables]
    return ";".join(
        [
            *(f"ALTER TABLE {table} DISABLE TRIGGER append_only" for table in guarded),
            *(f"DELETE FROM {table}" for table in tables),
            *(f"ALTER TABLE {table} ENABLE TRIGGER append_only" for table in guarded),
            FIRST_LINK,
        ]
    ).encode()
