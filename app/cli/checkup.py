"""The checks of `dither doctor`: each says what it found, and what to do about it."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from app.core.chain import RecordedAudit
from app.core.clock import SystemClock
from app.core.errors import InternalFault, SchemaMismatch, ServiceError
from app.mechanisms.entropy import system_bits
from app.services.admin.ledger import Ledger
from app.services.subjects import SubjectKey
from app.settings import Settings
from app.store.checkup import Receivers, ServerFacts, Standby, read_receivers, read_server, read_standbys
from app.store.database import Connection, Database
from app.store.journal import read_fact
from app.store.keyfile import KEY_FILE, KeyFileError, load_key
from app.store.migrate import (
    DatabaseUnreachable,
    check_revision,
    current_revision,
    head_revision,
    require_durable,
)

CLOCK_WARNING, CLOCK_FAILURE = timedelta(seconds=1), timedelta(seconds=30)
"""The latter is how far a provider's JWT may be off."""

DISK_WARNING, DISK_FAILURE = 2**30, 100 * 2**20
"""Bytes that are free."""

LAG_WARNING = 16 * 2**20
"""Bytes of the log that a copy has not applied: one segment."""

RECENT, OLD = timedelta(hours=26), timedelta(days=7)
"""Of something that is done every night: a night later, and far too late."""

DUMP_BEGINS = b"PGDMP"
"""The first bytes of what `pg_dump --format=custom` writes."""


class State(StrEnum):
    """What a check found."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Line:
    """One check.

    Attributes:
        check: Its name.
        state: How bad it is.
        found: What is the case.
        remedy: What to do; empty where nothing is to be done.
    """

    check: str
    state: State
    found: str
    remedy: str = ""


class Snapshot(NamedTuple):
    """What one snapshot of the database says."""

    server: ServerFacts
    standbys: Sequence[Standby]
    receivers: Receivers
    subject_key: bytes | None
    apart: timedelta


def check_settings(settings: Settings) -> Line:
    """Settings that a service may have and should not."""
    if settings.allow_unsafe_database:
        return Line(
            "settings",
            State.WARNING,
            "DITHER_ALLOW_UNSAFE_DATABASE is set",
            "unset it: it is for tests only, and a crash may forget what answers cost people",
        )
    address = urlsplit(settings.public_url or "")
    if address.scheme == "http" and address.hostname not in ("localhost", "127.0.0.1", "::1"):
        return Line(
            "settings",
            State.WARNING,
            f"people reach the service by {settings.public_url}, without TLS",
            "put TLS in front of it, and set DITHER_PUBLIC_URL to its https:// address",
        )
    return Line("settings", State.OK, "every variable is known and admissible")


async def check_database(settings: Settings, url: str, backups: Path | None) -> list[Line]:
    """Everything that takes a database; no more than the first lines, and the disk, where there is none."""
    try:
        revision = await current_revision(url)
    except DatabaseUnreachable as error:
        remedy = "start it, or correct DITHER_DATABASE_URL; its own log says more"
        return [Line("database", State.FAILURE, str(error), remedy), check_disk(settings)]
    except SchemaMismatch as error:
        remedy = "let DITHER_DATABASE_URL name a database of which this is not so"
        return [Line("database", State.FAILURE, str(error), remedy), check_disk(settings)]
    async with Database.open(url, pool_size=1) as database:
        lines = [await _durable(url), _schema(revision)]
        if lines[-1].state is State.FAILURE:
            return [*lines, check_disk(settings)]
        try:
            condition = await database.ping()
            facts = await _facts(database)
            head = await Ledger(database).head()
        except ServiceError as error:
            remedy = "look into the log of PostgreSQL; the service needs the primary"
            others = [line for line in lines if line.check != "database"]
            return [*others, Line("database", State.FAILURE, error.detail, remedy), check_disk(settings)]
    now = SystemClock().now()
    return [
        *lines,
        _subject_key(settings, facts.subject_key),
        _clock(facts.apart),
        check_disk(settings, facts.server, full=condition.full),
        _replicas(facts.server, facts.standbys),
        _webhooks(facts.receivers),
        _audit(head.last_audit, now),
        _backup(backups, now),
    ]


async def _facts(database: Database) -> Snapshot:
    async def body(connection: Connection) -> Snapshot:
        before = SystemClock().now()
        server = await read_server(connection)
        between = before + (SystemClock().now() - before) / 2
        standbys = [] if server.is_standby else await read_standbys(connection)
        key = await read_fact(connection, "subject_key")
        receivers = await read_receivers(connection)
        return Snapshot(server, standbys, receivers, key, abs(server.now - between))

    return await database.run_tx("doctor", body)


async def _durable(url: str) -> Line:
    try:
        await require_durable(url)
    except SchemaMismatch as error:
        return Line("database", State.FAILURE, str(error), "switch it on in postgresql.conf, and reload")
    return Line("database", State.OK, "it answers, and keeps what it commits")


def _schema(revision: str | None) -> Line:
    try:
        check_revision(revision)
    except SchemaMismatch as error:
        return Line("schema", State.FAILURE, str(error), "dither migrate, or the version that it names")
    return Line("schema", State.OK, f"at revision {head_revision()}, as this version needs it")


def _subject_key(settings: Settings, kept: bytes | None) -> Line:
    try:
        key = settings.subject_key_bytes
        if key is None and settings.data_dir is not None:
            key = load_key(settings.data_dir / KEY_FILE)
    except KeyFileError as error:
        return Line("subject key", State.FAILURE, str(error), "put the key of your backup there, mode 0600")
    if key is None:
        remedy = "set DITHER_SUBJECT_KEY, or give --data-dir"
        return Line("subject key", State.FAILURE, "there is none", remedy)
    if kept is None:
        return Line("subject key", State.OK, "there is one; the database knows no people yet")
    if SubjectKey(key).fingerprint() != kept:
        return Line(
            "subject key",
            State.FAILURE,
            "the database was filled under another one: under this one every person would be new",
            "give the service the key that the database was filled with",
        )
    return Line("subject key", State.OK, "it is the one that the database was filled with")


def _clock(apart: timedelta) -> Line:
    found = f"{apart.total_seconds():.3f} s from the clock of the database"
    state = State.OK
    if apart > CLOCK_WARNING:
        state = State.FAILURE if apart > CLOCK_FAILURE else State.WARNING
    remedy = "" if state is State.OK else "run chrony or systemd-timesyncd on both machines"
    return Line("clock", state, found, remedy)


def check_disk(settings: Settings, server: ServerFacts | None = None, *, full: bool = False) -> Line:
    """The disk of the data directory, and that of the database.

    Args:
        settings: Say where the data directory is.
        server: What the database's server says; None where it says nothing.
        full: Whether the database could not write to its disk.
    """
    size = "" if server is None else f"; the database has {server.bytes / 2**20:,.0f} MiB"
    remedy = "make room: without it, requests are answered 503"
    data_dir = settings.data_dir
    found, state = "no data directory here, so watch the disk of the database's server", State.OK
    if data_dir is not None and data_dir.exists():
        free = shutil.disk_usage(data_dir).free
        found = f"{free / 2**20:,.0f} MiB free in {data_dir}"
        if free < DISK_WARNING:
            state = State.FAILURE if free < DISK_FAILURE else State.WARNING
    if full and state is not State.FAILURE:
        place = "" if server is None or server.directory is None else f" with {server.directory}"
        found, state = f"the disk of the database's server{place} is full", State.FAILURE
    return Line("disk", state, found + size, "" if state is State.OK else remedy)


def check_entropy() -> Line:
    """Whether the operating system gives random bits, and not the same ones again."""
    try:
        repeats = system_bits(256) == system_bits(256)
    except InternalFault as error:
        return Line("entropy", State.FAILURE, error.detail, "give the process /dev/urandom and getrandom")
    if repeats:
        remedy = "stop the service: noise would be predictable"
        return Line("entropy", State.FAILURE, "the operating system gives the same bits again", remedy)
    return Line("entropy", State.OK, "the operating system gives random bits")


def _replicas(server: ServerFacts, standbys: Sequence[Standby]) -> Line:
    if server.is_standby:
        remedy = "let DITHER_DATABASE_URL name the primary, or promote this one"
        return Line("replica", State.FAILURE, "this server is itself a standby and takes no writes", remedy)
    if not standbys and not server.awaited:
        return Line("replica", State.OK, "none is set: backups are all there is if this server is lost")
    waited = [one for one in standbys if one.sync_state in ("sync", "quorum")]
    if server.awaited and standbys and all(one.state is None for one in standbys):
        remedy = "GRANT pg_read_all_stats to the role of the service"
        return Line("replica", State.WARNING, "this role may not see how replicas do", remedy)
    if server.awaited and not waited:
        return Line(
            "replica",
            State.FAILURE,
            f"commits wait for {server.awaited}, and none of them is connected",
            "start the standby; until then every write waits",
        )
    named = "; ".join(f"{one.name} is {(one.lag_bytes or 0) / 2**20:,.1f} MiB behind" for one in standbys)
    if any((one.lag_bytes or 0) > LAG_WARNING for one in standbys):
        return Line("replica", State.WARNING, named, "look at the standby's disk and at the network between")
    if not server.awaited:
        remedy = "name it in synchronous_standby_names: it may lack the last charges otherwise"
        return Line("replica", State.WARNING, f"{named}, and no commit waits for it", remedy)
    return Line("replica", State.OK, named)


def _webhooks(receivers: Receivers) -> Line:
    if not receivers.webhooks:
        return Line("webhooks", State.OK, "there are none")
    if not receivers.given_up:
        return Line("webhooks", State.OK, f"{receivers.webhooks}: each event was taken, or is tried again")
    remedy = "mend the receiver, and read what it missed with a token: it is not sent again"
    found = f"events given up after four days: {receivers.given_up}, of {', '.join(receivers.urls)}"
    return Line("webhooks", State.WARNING, found, remedy)


def _audit(last: RecordedAudit | None, now: datetime) -> Line:
    if last is None:
        return Line("audit", State.WARNING, "the ledger was never audited", "dither audit, every night")
    found = f"{last.rules} rules, {_age(now - last.at)}"
    if last.findings:
        remedy = "stop making releases, and compare with a backup; dither audit shows the rows"
        return Line("audit", State.FAILURE, f"{found}: {'; '.join(last.findings)}", remedy)
    state = State.OK if now - last.at <= RECENT else State.WARNING
    return Line("audit", state, f"{found}, clean", "" if state is State.OK else "dither audit, every night")


def _backup(directory: Path | None, now: datetime) -> Line:
    remedy = "deploy/backup.sh DIRECTORY, every night"
    if directory is None:
        return Line("backup", State.WARNING, "it is not known where backups are", "give --backups DIRECTORY")
    dumps = sorted(_dumps(directory))
    if not dumps:
        return Line("backup", State.FAILURE, f"there is no backup in {directory}", remedy)
    at, path = dumps[-1]
    found = f"{path.name}, {_age(now - at)}"
    try:
        with path.open("rb") as file:
            whole = file.read(len(DUMP_BEGINS)) == DUMP_BEGINS
    except OSError as error:
        return Line("backup", State.FAILURE, f"{path}: {error.strerror}", "let this account read backups")
    if not whole:
        return Line("backup", State.FAILURE, f"{found}, is no dump of PostgreSQL", remedy)
    if now - at > RECENT:
        state = State.FAILURE if now - at > OLD else State.WARNING
        return Line("backup", state, found, f"{remedy}: charges made since are not in it")
    return Line("backup", State.OK, found)


def _dumps(directory: Path) -> Iterator[tuple[datetime, Path]]:
    for path in directory.glob("dither-*.dump"):
        yield datetime.fromtimestamp(path.stat().st_mtime, UTC), path


def _age(passed: timedelta) -> str:
    hours = passed / timedelta(hours=1)
    return f"{hours:.0f} h ago" if hours < 48 else f"{hours / 24:.0f} days ago"
