"""The one way into the database: a named transaction, retried where the database asks for it."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import urlencode

import asyncpg
from sqlalchemy import URL, event, make_url
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_connection, AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.util import greenlet_spawn

from app.core.errors import InternalFault, Unavailable
from app.store.condition import BACKEND, POOLED, Condition, look_at
from app.store.sql import Connection as Connection
from app.store.sql import Row, Sql, driver

Result = TypeVar("Result")

RETRIED_STATES = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: the transaction did not happen and may be tried again."""

NOT_CONNECTED = AsyncAdapt_asyncpg_dbapi.Error
"""What SQLAlchemy raises, bare of its own `DBAPIError`, where the server refuses a new connection."""

BROKEN = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What the driver raises on a connection that breaks; the last where it breaks between two messages."""

SHARED_SESSION = frozenset({"26000", "42P05"})
"""A prepared statement is unknown, or known already: the connection has another session of the server than
the one that prepared it."""

SHARED_SECONDS = 60.0
"""How long the database counts as shared after such a failure: an idle connection may look well."""

NO_ROOM = "53"
"""Class of states of a server without disk, memory or connections to spare: it may have them again later."""

STOPPED = frozenset({"57014", "55P03", "25P03", "25P04"})
"""A statement, a lock, an idle or a whole transaction that took longer than the server's operator allows:
`statement_timeout`, `lock_timeout`, `idle_in_transaction_session_timeout`, `transaction_timeout`."""

TLS_PARAMETERS = ("sslmode", "sslrootcert", "sslcert", "sslkey")
"""Parameters of a URL, as libpq spells them, that say how to encrypt and whom to trust."""

TAKES_NO_CHANGES = "25006"
"""SQLSTATE of a change on a standby, or where an operator has made the database read-only."""

FAILED_WITHIN = "XX000"
"""An internal error: a node of a distributed database went away while it worked on the statement."""

SNAPSHOT = "REPEATABLE READ READ ONLY"
"""Isolation level of what reads several statements' rows as of one moment, and changes nothing."""

MAX_ATTEMPTS = 8

APPLICATION = "dither"
"""What connections are called in `pg_stat_activity`; those of a service go on with its key's fingerprint."""


MIGRATION_LOCK = 0x64697468
"""Advisory lock: alone by who migrates, shared by every transaction that knows the schema it works on."""

PLANNER = "SELECT pg_backend_pid() FROM set_config('enable_mergejoin', 'off', false)"
"""What every connection begins with; it says which process of the server it has. Until PostgreSQL has
statistics of a fold's new cohorts, it would join people and cohorts by merging them on two columns of their
key, which compares each person with each cohort of an epoch: a minute for 100,000 people in 4,500 cohorts.
Hashing the whole key takes a tenth of a second."""


def async_url(url: str | URL) -> URL:
    """Any postgresql:// URL, for the asyncpg driver.

    libpq's `host=/directory` for a Unix socket is understood, and its parameters for TLS: the driver reads
    them in a URL only, so they get one of their own beside the address.
    """
    parsed = make_url(url)
    tls = {name: parsed.query[name] for name in TLS_PARAMETERS if name in parsed.query}
    if tls:
        parsed = parsed.difference_update_query(tls).update_query_dict(
            {"dsn": f"postgresql://?{urlencode(tls)}"}
        )
    return parsed.set(drivername="postgresql+asyncpg")


def open_engine(url: str, **options: Any) -> AsyncEngine:
    """A pool of connections. Transactions are begun and ended by `run_tx`, in one message each.

    All `numeric` values of this schema are integers that outgrow `bigint`, and are read as such.
    """
    engine = create_async_engine(async_url(url), isolation_level="AUTOCOMMIT", **options)

    async def prepare(session: asyncpg.Connection) -> int:
        await session.set_type_codec("numeric", schema="pg_catalog", encoder=str, decoder=int, format="text")
        return int(await session.fetchval(PLANNER))

    def begin(connection: AsyncAdapt_asyncpg_connection, record: ConnectionPoolEntry) -> None:
        record.info[BACKEND] = connection.run_async(prepare)

    event.listen(engine.sync_engine, "connect", begin)
    return engine


def sql_state(error: DBAPIError | asyncpg.PostgresError) -> str | None:
    """The SQLSTATE of a driver error, as SQLAlchemy or the driver itself raises it."""
    return getattr(error.orig if isinstance(error, DBAPIError) else error, "sqlstate", None)


class Overtaken(Exception):
    """What a transaction decided on changed meanwhile. It is rolled back and runs again."""


class Run(Protocol):
    """Runs a body in a transaction: each in one of its own (`Database.run_tx`), or all in one (`within`)."""

    def __call__(
        self,
        name: str,
        body: Callable[[Connection], Awaitable[Result]],
        /,
        *,
        isolation_level: str | None = None,
    ) -> Awaitable[Result]:
        """The result of the body of the transaction of this name; one for all keeps its isolation level."""


def within(connection: Connection) -> Run:
    """Run bodies in a transaction that is open; it commits them all, later."""

    def run(
        _: str, body: Callable[[Connection], Awaitable[Result]], /, *, isolation_level: str | None = None
    ) -> Awaitable[Result]:
        return body(connection)

    return run


class Database:
    """A pool of connections to one PostgreSQL database."""

    def __init__(self, engine: AsyncEngine, schema: str | None = None) -> None:
        self._engine = engine
        self._lost = 0.0
        self._shared = -math.inf
        event.listen(engine.sync_engine, "checkout", self._require_fresh)
        # In the message that begins a transaction: no round trip of its own. A division by zero refuses it.
        self._check = (
            ""
            if schema is None
            else (
                f"; SELECT pg_advisory_xact_lock_shared({MIGRATION_LOCK})"
                f"; SELECT 1 / count(*) FROM alembic_version WHERE version_num = '{schema}'"
            )
        )

    @classmethod
    def open(
        cls, url: str, *, pool_size: int = 10, subject_key: bytes | None = None, schema: str | None = None
    ) -> Self:
        """Make the pool; no connection is opened before it is used.

        Args:
            url: Any postgresql:// URL.
            pool_size: Most connections this process holds.
            subject_key: Fingerprint of the key under which this process knows people. It stands in the name
                of every connection, and the database refuses new subjects under another one.
            schema: Revision that this process works on: no transaction runs on another one. None: any.
        """
        name = APPLICATION if subject_key is None else f"{APPLICATION} {subject_key.hex()[:16]}"
        engine = open_engine(
            url,
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=30,
            # The connection that was used last has its statements prepared.
            pool_use_lifo=True,
            pool_pre_ping=False,
            connect_args={"server_settings": {"application_name": name}},
        )
        return cls(engine, schema)

    @property
    def pool(self) -> AsyncEngine:
        """The pool itself, for what is no transaction of this program."""
        return self._engine

    async def close(self) -> None:
        """Close every connection."""
        await self._engine.dispose()

    async def __aenter__(self) -> Self:
        """The pool itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.close()

    async def run_tx(
        self,
        name: str,
        body: Callable[[Connection], Awaitable[Result]],
        *,
        isolation_level: str | None = None,
    ) -> Result:
        """Run `body` in one transaction and commit it before returning.

        The body may run more than once, so nothing in it may leave the process; what it returns is
        final only because this returns after the commit.

        Args:
            name: Name of the transaction, for errors.
            body: Gets the connection; never commits.
            isolation_level: Other than READ COMMITTED; READ ONLY may follow.

        Raises:
            Unavailable: no connection, the connection broke, the schema is not this program's any more, or
                the retries are used up. Whether a commit whose acknowledgment was lost took place is
                unknown then, so the caller of the service retries with the same key.
        """
        begin = f"BEGIN ISOLATION LEVEL {isolation_level or 'READ COMMITTED'}{self._check}"

        async def transaction() -> Result:
            async with self._engine.connect() as connection:
                return await _committed(connection, begin, body)

        return await self._retried(name, transaction)

    async def fetch(self, name: str, statement: Sql[Row], /, **given: object) -> list[Row]:
        """Every row of a statement that is its own transaction.

        Args:
            name: Name of the transaction, for errors.
            statement: What is read with.
            given: Its parameters.

        Raises:
            Unavailable: as for `run_tx`.
        """
        return await self._alone(name, lambda session, _: statement.fetch(session, given))

    async def _alone(
        self, name: str, work: Callable[[asyncpg.Connection, Mapping[str, Any]], Awaitable[Result]]
    ) -> Result:
        """Work on a connection, and what is known of it, outside of a transaction."""

        async def alone() -> Result:
            checked_out = await self._engine.raw_connection()
            session: asyncpg.Connection = checked_out.driver_connection
            try:
                return await work(session, checked_out.info)
            except BaseException as error:
                if session.is_closed() or isinstance(error, BROKEN):
                    checked_out.invalidate()
                raise
            finally:
                await greenlet_spawn(checked_out.close)

        return await self._retried(name, alone)

    async def _retried(self, name: str, attempt: Callable[[], Awaitable[Result]]) -> Result:
        for number in range(MAX_ATTEMPTS):
            try:
                return await attempt()
            except (Overtaken, DBAPIError, asyncpg.PostgresError) as error:
                if isinstance(error, Overtaken) or sql_state(error) in RETRIED_STATES:
                    await asyncio.sleep(0.002 * 2**number)
                    continue
                if sql_state(error) == TAKES_NO_CHANGES:
                    # Another server may be the primary by now, which a new connection finds.
                    self._lost = time.monotonic()
                    raise Unavailable(f"the database is read-only, and takes no {name}") from error
                if is_disconnect(error):
                    self._lost = time.monotonic()
                    raise Unavailable(f"the database went away during {name}") from error
                if sql_state(error) == FAILED_WITHIN:
                    raise Unavailable(f"the database failed within {name}") from error
                if sql_state(error) in STOPPED:
                    raise Unavailable(f"the database stopped {name}, which took too long") from error
                if sql_state(error) in SHARED_SESSION:
                    self._shared = time.monotonic()
                    raise Unavailable(f"no {name}: {POOLED}") from error
                if (sql_state(error) or "").startswith(NO_ROOM):
                    raise Unavailable(f"the database has no room for {name}") from error
                if isinstance(error, DBAPIError):
                    raise
                raise DBAPIError(name, None, error) from error
            except (PoolTimeout, NOT_CONNECTED, *BROKEN) as error:
                if not isinstance(error, PoolTimeout):
                    self._lost = time.monotonic()
                raise Unavailable(f"no database connection for {name}") from error
        raise Unavailable(f"{name} met too many concurrent changes")

    def _require_fresh(self, _: object, record: ConnectionPoolEntry, *__: object) -> None:
        """Have a connection replaced that is older than the last loss: it is likely to be lost, too."""
        if record.info.setdefault("opened", time.monotonic()) < self._lost:
            raise DisconnectionError

    def _is_shared(self) -> bool:
        """Whether a request has met another session a short time ago."""
        return time.monotonic() - self._shared < SHARED_SECONDS

    async def ping(self) -> Condition:
        """How the database is.

        Raises:
            Unavailable: it does not answer, takes no changes, as a standby does, or its sessions are given
                away by a pooler.
        """
        try:
            condition = await self._alone("ping", look_at)
        except (Unavailable, SQLAlchemyError) as error:
            raise Unavailable(POOLED if self._is_shared() else "the database does not answer") from error
        if condition.shared or self._is_shared():
            raise Unavailable(POOLED)
        if condition.read_only:
            self._lost = time.monotonic()
            raise Unavailable("the database is read-only")
        return condition


def is_disconnect(error: DBAPIError | asyncpg.PostgresError) -> bool:
    """Whether the connection is gone or the server is starting or stopping."""
    state = sql_state(error) or ""
    if state.startswith(("08", "57P")):
        return True
    if not isinstance(error, DBAPIError):
        return False
    return error.connection_invalidated or isinstance(error, InterfaceError | OperationalError)


async def _committed(
    connection: Connection, begin: str, body: Callable[[Connection], Awaitable[Result]]
) -> Result:
    """The result of a body whose transaction is committed; rolled back where anything goes wrong."""
    session = driver(connection)
    try:
        try:
            await session.execute(begin)
        except (asyncpg.DivisionByZeroError, asyncpg.UndefinedTableError):
            raise Unavailable("The database has another schema than this version of the service.") from None
        result = await body(connection)
        # A transaction that failed unnoticed answers COMMIT with ROLLBACK.
        if await session.execute("COMMIT") != "COMMIT":
            raise InternalFault("a transaction was not committed")
    except Exception as error:
        await _abandon(connection, session, broken=isinstance(error, BROKEN))
        raise
    except BaseException:
        # Cancelled: it is unknown which statement the session was at, so no other task may have it.
        await connection.invalidate()
        raise
    return result


async def _abandon(connection: Connection, session: asyncpg.Connection, *, broken: bool) -> None:
    """Roll back, or give the connection up where that is not possible any more."""
    if not broken and not session.is_closed():
        with suppress(asyncpg.PostgresError, *BROKEN):
            if session.is_in_transaction():
                await session.execute("ROLLBACK")
            return
    await connection.invalidate()
