"""What the database says of itself: its time, its copies, its size."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.store.database import Connection
from app.store.sql import Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """What a server says of itself.

    Attributes:
        now: Its clock.
        version: As it calls itself.
        is_standby: Whether it only follows another server and takes no writes.
        awaited: `synchronous_standby_names`; empty where a commit waits for no copy.
        connections: The most that it takes.
        bytes: Size of this database.
        directory: Where its data are, on its own machine; None where this role may not see it.
    """

    now: datetime
    version: str
    is_standby: bool
    awaited: str
    connections: int
    bytes: int
    directory: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standby:
    """A server that follows this one.

    Attributes:
        name: Its `application_name`.
        state: `streaming` once it has caught up; None where this role may not see it.
        sync_state: `sync` or `quorum` where commits wait for it.
        lag_bytes: How much of the log it has not applied yet.
    """

    name: str
    state: str | None
    sync_state: str | None
    lag_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receivers:
    """The addresses that learn what happens.

    Attributes:
        webhooks: How many there are.
        given_up: Events that they never took.
        urls: Of whom.
    """

    webhooks: int
    given_up: int
    urls: Sequence[str]


READ_SERVER = Sql.of(ServerFacts)("""
    SELECT clock_timestamp() AS now, current_setting('server_version') AS version,
           pg_is_in_recovery() AS is_standby, current_setting('synchronous_standby_names') AS awaited,
           CAST(current_setting('max_connections') AS integer) AS connections,
           pg_database_size(current_database()) AS bytes,
           CASE WHEN pg_has_role(current_user, 'pg_read_all_settings', 'MEMBER')
                THEN current_setting('data_directory') END AS directory
""")

READ_STANDBYS = Sql.of(Standby)("""
    SELECT application_name AS name, state, sync_state,
           CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) AS bigint) AS lag_bytes
    FROM pg_stat_replication ORDER BY application_name
""")


READ_RECEIVERS = Sql.of(Receivers)("""
    SELECT (SELECT count(*) FROM webhook) AS webhooks, count(*) AS given_up,
           array(SELECT url FROM webhook WHERE id IN (SELECT webhook_id FROM event WHERE due_at IS NULL)
                 ORDER BY url) AS urls
    FROM event WHERE due_at IS NULL
""")


async def read_server(connection: Connection) -> ServerFacts:
    """What the server says of itself now."""
    return await READ_SERVER.one(connection)


async def read_standbys(connection: Connection) -> list[Standby]:
    """The servers that follow this one; only for a server that is none itself."""
    return await READ_STANDBYS.all(connection)


async def read_receivers(connection: Connection) -> Receivers:
    """The addresses that learn what happens, and what they never took."""
    return await READ_RECEIVERS.one(connection)
