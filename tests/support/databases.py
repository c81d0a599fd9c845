"""Fresh, migrated databases on one embedded server."""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import make_url

from app.store import migrate
from app.store.tables import metadata

T = TypeVar("T")

DISCONNECT_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
ROWS_OVER = "SELECT count(*) > $1 FROM (SELECT 1 FROM contribution LIMIT $1 + 1) few"
MANY_ROWS = 20_000
APPEND_ONLY = ("release", "charge")
FIRST_LINK = "INSERT INTO chain (id, number, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'))"


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


class Server:
    """One PostgreSQL for a whole test session, with a migrated template to copy databases from.

    Args:
        url: Of a database on it.
    """

    TEMPLATE = "template_migrated"

    def __init__(self, url: str) -> None:
        self._numbers = itertools.count(1)
        self._free: list[str] = []
        self.url = url
        self._make_template()

    def _make_template(self) -> None:
        run_apart(execute(self.url, f"CREATE DATABASE {self.TEMPLATE}"))
        run_apart(migrate.upgrade(self.url_of(self.TEMPLATE)))

    def url_of(self, name: str) -> str:
        return make_url(self.url).set(database=name).render_as_string(hide_password=False)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a migrated database without any rows.

        Making a database takes far longer than emptying one, so they are used again.
        """
        name = self._free.pop() if self._free else self._create(self.TEMPLATE)
        try:
            yield self.url_of(name)
        finally:
            # One that is not used again goes with the server: dropping it would have to wait for autovacuum.
            if run_apart(_empty(self.url_of(name))):
                self._free.append(name)

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """The URL of a fresh database without a schema."""
        yield self.url_of(self._create("template0"))

    def _create(self, template: str) -> str:
        name = self._next_name()
        run_apart(execute(self.url, f"CREATE DATABASE {name} TEMPLATE {template}"))
        return name

    def _next_name(self) -> str:
        return f"test_{next(self._numbers)}"


async def _empty(url: str) -> bool:
    """Delete every row, also of the append-only tables; False where that would take long."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(DISCONNECT_OTHERS)
        if await connection.fetchval(ROWS_OVER, MANY_ROWS):
            return False
        tables = [table.name for table in reversed(metadata.sorted_tables)]
        await connection.execute(
            ";".join(
                [
                    *(f"ALTER TABLE {table} DISABLE TRIGGER append_only" for table in APPEND_ONLY),
                    *(f"DELETE FROM {table}" for table in tables),
                    *(f"ALTER TABLE {table} ENABLE TRIGGER append_only" for table in APPEND_ONLY),
                    FIRST_LINK,
                ]
            )
        )
        return True
    finally:
        await connection.close()
