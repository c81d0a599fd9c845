"""The schema's version: bring a database up to date, or refuse one that this program does not know."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from app.core.errors import SchemaMismatch
from app.store.condition import POOLED, READ_BACKEND, unsafe_settings
from app.store.database import MIGRATION_LOCK, SHARED_SESSION, async_url, sql_state
from app.store.partitions import partition
from app.store.reader import grant_reader
from app.store.sql import Sql

MINIMUM_SERVER_VERSION = 15

ENCODING = "UTF8"
"""The only encoding in which a database can keep every text that requests may have."""


READ_ENCODING = Sql.of(str)("SELECT current_setting('server_encoding')")


class DatabaseUnreachable(SchemaMismatch):
    """No connection to the database; it may be starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What a migration did.

    Attributes:
        before: Revision that was found; None for an empty database.
        after: Revision now.
        partitioned: Whether it made partitions.
        reader: What is wrong with the role that reads answers by SQL; None: nothing.
    """

    before: str | None
    after: str
    partitioned: bool = False
    reader: str | None = None


@cache
def head_revision() -> str:
    """The revision of the schema that this program works on."""
    head = _scripts().get_current_head()
    assert head is not None, "there is at least one migration"
    return head


def check_revision(revision: str | None) -> None:
    """Refuse every revision but the head.

    Raises:
        SchemaMismatch: no schema, an old one, or one from another version of the service.
    """
    head = head_revision()
    if revision == head:
        return
    if revision is None:
        raise SchemaMismatch("the database has no schema yet: run `dither migrate`")
    if revision in _known_revisions():
        raise SchemaMismatch(f"the schema is at revision {revision}, {head} is needed: run `dither migrate`")
    raise SchemaMismatch(
        f"the schema is at revision {revision}, which this version of the service does not know: "
        "run the version that made it, or a newer one"
    )


async def current_revision(url: str) -> str | None:
    """The revision that a database is at; None where there is no schema.

    Raises:
        DatabaseUnreachable: no connection.
        SchemaMismatch: it is none that the service works on (`_check_server`).
    """
    async with _connection(url) as connection:
        return await _checked_revision(connection)


async def require_durable(url: str) -> None:
    """Refuse a server that may lose what it committed: the charge of an answer that was read.

    Raises:
        DatabaseUnreachable: no connection.
        SchemaMismatch: names the settings that are off.
    """
    async with _connection(url) as connection:
        await _check_durable(connection)


def unsafe_words(unsafe: Sequence[str]) -> str:
    """Why a server with these settings off is not used.

    >>> unsafe_words(["fsync"])
    'PostgreSQL runs with fsync = off: a crash would forget what answers cost people'
    """
    named = ", ".join(f"{name} = off" for name in unsafe)
    return f"PostgreSQL runs with {named}: a crash would forget what answers cost people"


async def require_head(
    database: str | AsyncEngine, *, durable: bool = False, patience_seconds: float = 10
) -> None:
    """Refuse a database whose schema is not the one this program works on.

    Args:
        database: Any postgresql:// URL; or a pool, which keeps the connection for what comes next.
        durable: Refuse a server that may lose what it committed, too.
        patience_seconds: How long to wait for a database that cannot be reached yet.

    Raises:
        SchemaMismatch: the message says whether to migrate or to upgrade the service.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            async with _connection(database) as connection:
                check_revision(await _checked_revision(connection))
                if durable:
                    await _check_durable(connection)
        except DatabaseUnreachable:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)
        else:
            return


async def upgrade(url: str, *, partitions: int | None = None) -> Migration:
    """Bring a database to the head, in one transaction; several may call this at once.

    Args:
        url: Any postgresql:// URL.
        partitions: How many hash partitions the tables of people get; None: they stay what they are.

    Raises:
        SchemaMismatch: the database cannot be reached, is too old, has an unknown revision, or cannot be
            partitioned.
    """
    async with _connection(url) as connection:
        await _check_server(connection)
    engine = create_async_engine(async_url(url), poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            # Services that start together take turns; this also keeps Alembic's global state to one of them.
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            before = await connection.run_sync(_revision)
            if before is not None and before not in _known_revisions():
                check_revision(before)
            if before != head_revision():
                await connection.run_sync(_upgrade)
            partitioned = partitions is not None and await connection.run_sync(partition, partitions)
            reader = await connection.run_sync(grant_reader)
            await connection.commit()
        return Migration(before=before, after=head_revision(), partitioned=partitioned, reader=reader)
    except (OSError, SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise SchemaMismatch(f"the database cannot be migrated: {_reason(error)}") from error
    finally:
        await engine.dispose()


@asynccontextmanager
async def _connection(database: str | AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """One connection without transactions, closed afterwards; that of a pool goes back to it.

    Raises:
        DatabaseUnreachable: none is to be had, or it breaks.
        SchemaMismatch: it is a pooler's, which gives its session away.
    """
    engine = database
    if isinstance(engine, str):
        engine = create_async_engine(async_url(engine), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            yield connection
    except (OSError, SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        if isinstance(error, DBAPIError | asyncpg.PostgresError) and sql_state(error) in SHARED_SESSION:
            raise SchemaMismatch(POOLED) from error
        raise DatabaseUnreachable(f"the database cannot be used: {_reason(error)}") from error
    finally:
        if engine is not database:
            await engine.dispose()


async def _checked_revision(connection: AsyncConnection) -> str | None:
    await _check_server(connection)
    return await connection.run_sync(_revision)


async def _check_durable(connection: AsyncConnection) -> None:
    if unsafe := await unsafe_settings(connection):
        raise SchemaMismatch(unsafe_words(unsafe))


async def _check_server(connection: AsyncConnection) -> None:
    """Refuse a server that the service cannot work on.

    Sessions are looked at from two connections: a pooler that has one session of the server for both gives
    them the same, one that has several gives the second connection another one each time.
    """
    version = connection.dialect.server_version_info
    if version is not None and int(version[0]) < MINIMUM_SERVER_VERSION:
        raise SchemaMismatch(
            f"PostgreSQL {MINIMUM_SERVER_VERSION} or newer is needed, this is {'.'.join(map(str, version))}"
        )
    encoding = await READ_ENCODING.one(connection)
    if encoding != ENCODING:
        raise SchemaMismatch(
            f"the database keeps text as {encoding}, which cannot hold all of it: "
            f"make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"
        )
    first = await READ_BACKEND.one(connection)
    # The driver's own is enough: one of an engine would first ask for what SQLAlchemy knows of its server.
    arguments, options = connection.dialect.create_connect_args(connection.engine.url)
    other = await asyncpg.connect(*arguments, **options)
    try:
        [second], [again] = [await READ_BACKEND.fetch(other, {}) for _ in range(2)]
    finally:
        await other.close()
    if first == second or second != again:
        raise SchemaMismatch(POOLED)


def _upgrade(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def _known_revisions() -> frozenset[str]:
    return frozenset(script.revision for script in _scripts().walk_revisions())


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_directory()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _directory() -> Path:
    """The migrations: inside the package in a wheel, at the root of a checkout."""
    package = Path(__file__).parent.parent
    packaged = package / "_migrations"
    return packaged if packaged.is_dir() else package.parent / "migrations"


def _reason(error: Exception) -> str:
    """The driver's words; never the URL, which may hold a password."""
    original = getattr(error, "orig", None) or error
    return str(original).strip().splitlines()[0] if str(original).strip() else type(original).__name__
