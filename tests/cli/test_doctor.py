"""`dither doctor`: every failure and warning that it can find, on a real installation."""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from sqlalchemy import make_url

from app.cli import checkup
from app.core.clock import SystemClock
from app.core.errors import InternalFault
from app.services.subjects import SubjectKey
from app.settings import Settings
from app.store import condition
from app.store.checkup import ServerFacts, Standby
from benchmarks.services import free_port
from tests.api.test_no_room import NO_SPACE
from tests.support.pgbouncer import pgbouncer

KEY = "5a" * 32
CHECKS = {
    *("settings", "database", "schema", "subject key", "clock"),
    *("disk", "entropy", "replica", "webhooks", "audit", "backup"),
}

Look = Callable[..., dict[str, Any]]


def execute(url: str, statement: str, *values: Any) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement, *values)
        finally:
            await connection.close()

    asyncio.run(run())


def dump(directory: Path, hours: float, content: bytes = b"PGDMP...") -> None:
    path = directory / "dither-20300131T120000Z.dump"
    path.write_bytes(content)
    os.utime(path, (time.time() - hours * 3600,) * 2)


@pytest.fixture
def look(dither: Any, database_url: str, tmp_path: Path) -> Look:
    """Runs the doctor on an installation without a fault; gives the state and remedy of each check."""
    key = SubjectKey(bytes.fromhex(KEY)).fingerprint()
    execute(database_url, "INSERT INTO installation (key, value) VALUES ('subject_key', $1)", key)
    assert dither("audit", DITHER_DATABASE_URL=database_url).status == 0
    backups = tmp_path / "backups"
    backups.mkdir()
    dump(backups, 3)

    def run(*arguments: str, **variables: str) -> dict[str, Any]:
        given = {"DITHER_DATABASE_URL": database_url, "DITHER_SUBJECT_KEY": KEY, **variables}
        given = {name: value for name, value in given.items() if value}
        options = ("doctor", *(arguments or ("--backups", str(backups))))
        done = dither(*options, "--json", **given)
        document = json.loads(done.output)
        found = {line["check"]: line for line in document["checks"]}
        failed = [line for line in found.values() if line["state"] == "failure"]
        assert done.status == (1 if failed else 0) == (0 if document["healthy"] else 1)
        for line in found.values():
            assert line["found"]
            assert bool(line["remedy"]) == (line["state"] != "ok"), line
        text = dither(*options, **given)
        assert text.status == done.status
        assert all(line["remedy"][:30] in text.output for line in failed)
        return found

    run.backups = backups  # type: ignore[attr-defined]
    run.url = database_url  # type: ignore[attr-defined]
    return run


def states(found: dict[str, Any]) -> dict[str, str]:
    return {name: line["state"] for name, line in found.items() if line["state"] != "ok"}


def test_a_sound_installation_is_healthy(look: Any) -> None:
    found = look()
    assert set(found) == CHECKS
    assert states(found) == {}


def test_bad_settings_are_one_failure(look: Any) -> None:
    found = look(DITHER_LIFETIME_EPSILONS="3")
    assert states(found) == {"settings": "failure"}
    assert "did you mean DITHER_LIFETIME_EPSILON" in found["settings"]["found"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("DITHER_ALLOW_UNSAFE_DATABASE", "true"), ("DITHER_PUBLIC_URL", "http://dither.example")],
)
def test_settings_that_are_not_for_production_are_warnings(look: Any, name: str, value: str) -> None:
    assert states(look(**{name: value})) == {"settings": "warning"}


def test_no_database_is_a_failure_and_no_traceback(look: Any, tmp_path: Path) -> None:
    found = look(DITHER_DATABASE_URL="postgresql://dither@127.0.0.1:1/dither")
    assert states(found) == {"database": "failure"}
    found = look("--data-dir", str(tmp_path / "none"), DITHER_DATABASE_URL="")
    assert states(found) == {"database": "failure"}


def test_a_database_that_forgets_is_a_failure(look: Any) -> None:
    name = look.url.partition("?")[0].rpartition("/")[2]
    execute(look.url, f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    try:
        found = look()
    finally:
        execute(look.url, f'ALTER DATABASE "{name}" RESET synchronous_commit')
    assert states(found) == {"database": "failure"}
    assert "synchronous_commit = off" in found["database"]["found"]


def test_a_read_only_database_is_a_failure(look: Any) -> None:
    name = look.url.partition("?")[0].rpartition("/")[2]
    execute(look.url, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    try:
        found = look()
    finally:
        reset = f'ALTER DATABASE "{name}" RESET default_transaction_read_only'
        execute(look.url, f"BEGIN READ WRITE; {reset}; COMMIT")
    assert states(found) == {"database": "failure"}
    assert found["database"]["found"] == "the database is read-only"


@pytest.fixture
def latin1_url(empty_database_url: str) -> Iterator[str]:
    """A database that keeps text as Latin-1."""
    name = "latin1"
    execute(
        empty_database_url,
        f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0",
    )
    try:
        yield make_url(empty_database_url).set(database=name).render_as_string(hide_password=False)
    finally:
        execute(empty_database_url, f"DROP DATABASE {name} WITH (FORCE)")


def test_a_database_that_is_not_utf8_is_refused_everywhere(look: Any, dither: Any, latin1_url: str) -> None:
    found = look(DITHER_DATABASE_URL=latin1_url)
    assert states(found) == {"database": "failure"}
    assert "LATIN1" in found["database"]["found"]
    for command in ("migrate", "serve", "audit"):
        given = {"DITHER_DATABASE_URL": latin1_url, "DITHER_SUBJECT_KEY": KEY}
        done = dither(command, *(("--port", str(free_port())) if command == "serve" else ()), **given)
        assert done.status == 1
        assert "ENCODING 'UTF8'" in " ".join(done.errors.split())
    # A division by zero, were nothing left as it was.
    execute(latin1_url, "SELECT 1 / (1 - count(*)) FROM pg_tables WHERE schemaname = 'public'")


def test_a_pooler_that_gives_sessions_away_is_refused_everywhere(look: Any, dither: Any) -> None:
    with pgbouncer(look.url) as pooler:
        pooler.start("transaction")
        asyncio.run(pooler.ready())
        found = look(DITHER_DATABASE_URL=pooler.url)
        assert states(found) == {"database": "failure"}
        assert "pool_mode = session" in found["database"]["found"]
        for command in ("migrate", "serve", "audit"):
            given = {"DITHER_DATABASE_URL": pooler.url, "DITHER_SUBJECT_KEY": KEY}
            done = dither(command, *(("--port", str(free_port())) if command == "serve" else ()), **given)
            assert done.status == 1
            assert "pool_mode = session" in " ".join(done.errors.split())


def test_an_estimator_that_is_not_installed_is_a_failure(look: Any) -> None:
    found = look(DITHER_ESTIMATORS="oracle")
    assert states(found) == {"settings": "failure"}
    assert "DITHER_ESTIMATORS" in found["settings"]["found"]


def test_no_schema_and_another_one_are_failures(look: Any, empty_database_url: str) -> None:
    assert states(look(DITHER_DATABASE_URL=empty_database_url)) == {"schema": "failure"}
    execute(empty_database_url, "CREATE TABLE alembic_version (version_num text)")
    execute(empty_database_url, "INSERT INTO alembic_version VALUES ('from the future')")
    found = look(DITHER_DATABASE_URL=empty_database_url)
    assert "from the future" in found["schema"]["found"]


def test_no_subject_key_another_one_and_a_readable_one_are_failures(look: Any, tmp_path: Path) -> None:
    assert states(look(DITHER_SUBJECT_KEY="ab" * 32)) == {"subject key": "failure"}
    backups = ("--backups", str(look.backups))
    assert states(look(*backups, DITHER_SUBJECT_KEY="")) == {"subject key": "failure"}
    here = ("--data-dir", str(tmp_path), *backups)
    (tmp_path / "subject.key").write_text(KEY)
    (tmp_path / "subject.key").chmod(0o644)
    assert states(look(*here, DITHER_SUBJECT_KEY="")) == {"subject key": "failure"}
    (tmp_path / "subject.key").chmod(0o600)
    assert states(look(*here, DITHER_SUBJECT_KEY="")) == {}


@pytest.mark.parametrize(("seconds", "state"), [(0, None), (-5, "warning"), (5, "warning"), (90, "failure")])
def test_a_clock_that_is_off_is_found(
    look: Any, monkeypatch: pytest.MonkeyPatch, seconds: int, state: str | None
) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _: datetime.now(UTC) + timedelta(seconds=seconds))
    assert states(look()).get("clock") == state


@pytest.mark.parametrize(("free", "state"), [(2**31, None), (2**29, "warning"), (2**20, "failure")])
def test_a_full_disk_is_found(
    look: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str | None
) -> None:
    monkeypatch.setattr("app.cli.checkup.shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    found = look("--data-dir", str(tmp_path), "--backups", str(look.backups))
    assert states(found) == ({} if state is None else {"disk": state})


def test_a_disk_that_takes_nothing_is_named(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition, "SPILL", NO_SPACE)
    found = look()
    assert states(found) == {"disk": "failure"}
    assert "the disk of the database's server is full" in found["disk"]["found"]
    seen = replace(SERVER, directory="/srv/postgres")
    assert "server with /srv/postgres is full" in checkup.check_disk(Settings(), seen, full=True).found


def test_no_entropy_and_repeated_bits_are_failures(look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> int:
        raise InternalFault("The noise source failed.")

    for source in (broken, lambda _: 7):
        monkeypatch.setattr(checkup, "system_bits", source)
        assert states(look()) == {"entropy": "failure"}


SERVER = ServerFacts(
    now=datetime(2030, 1, 31, tzinfo=UTC),
    version="18",
    is_standby=False,
    awaited="",
    connections=100,
    bytes=2**20,
    directory=None,
)
GOOD = Standby(name="b", state="streaming", sync_state="sync", lag_bytes=0)


@pytest.mark.parametrize(
    ("server", "standbys", "state"),
    [
        ({}, [], None),
        ({"is_standby": True}, [], "failure"),
        ({"awaited": "ANY 1 (b)"}, [], "failure"),
        ({"awaited": "ANY 1 (b)"}, [{}], None),
        ({"awaited": "ANY 1 (b)"}, [{"sync_state": "quorum"}], None),
        ({"awaited": "ANY 1 (b)"}, [{"sync_state": "async"}], "failure"),
        ({"awaited": "ANY 1 (b)"}, [{"lag_bytes": 2**30}], "warning"),
        ({"awaited": "ANY 1 (b)"}, [{"state": None, "sync_state": None, "lag_bytes": None}], "warning"),
        ({}, [{"sync_state": "async"}], "warning"),
    ],
)
def test_replicas_that_are_not_there_or_late_are_found(
    look: Any,
    monkeypatch: pytest.MonkeyPatch,
    server: dict[str, Any],
    standbys: list[dict[str, Any]],
    state: str | None,
) -> None:
    real = checkup._facts

    async def facts(database: Any) -> Any:
        own = {name: getattr(SERVER, name) for name in SERVER.__slots__} | server
        followers = [
            Standby(**({name: getattr(GOOD, name) for name in GOOD.__slots__} | one)) for one in standbys
        ]
        return (await real(database))._replace(server=ServerFacts(**own), standbys=followers)

    monkeypatch.setattr(checkup, "_facts", facts)
    assert states(look()) == ({} if state is None else {"replica": state})


def test_events_that_a_receiver_never_took_are_found(look: Any) -> None:
    owner = "gen_random_uuid(), 'owner', ARRAY['admin']::role[], sha256('owner'), now()"
    execute(look.url, f"INSERT INTO token (id, name, roles, hash, created_at) SELECT {owner}")
    for url in ("https://well.example/", "https://gone.example/hook"):
        execute(
            look.url,
            """INSERT INTO webhook (id, url, events, token_id, created_at)
            SELECT gen_random_uuid(), $1, '{released}', id, now() FROM token LIMIT 1""",
            url,
        )
    event = """INSERT INTO event (id, webhook_id, body, due_at)
        SELECT gen_random_uuid(), id, '{}', $2 FROM webhook WHERE url = $1"""
    execute(look.url, event, "https://well.example/", datetime.now(UTC))
    assert states(look()) == {}
    execute(look.url, event, "https://gone.example/hook", None)
    found = look()
    assert states(found) == {"webhooks": "warning"}
    assert "events given up after four days: 1, of https://gone.example/hook" in found["webhooks"]["found"]


@pytest.mark.long
def test_an_audit_that_is_missing_old_or_found_something_is_found(look: Any) -> None:
    execute(look.url, "UPDATE audit SET at = at - interval '3 days'")
    assert states(look()) == {"audit": "warning"}
    execute(
        look.url, """UPDATE audit SET detail = jsonb_set(detail, '{findings}', '["a rule that is broken"]')"""
    )
    found = look()
    assert states(found) == {"audit": "failure"}
    assert "a rule that is broken" in found["audit"]["found"]
    execute(look.url, "DELETE FROM audit")
    assert states(look()) == {"audit": "warning"}


@pytest.mark.long
def test_a_backup_that_is_missing_old_or_none_is_found(look: Any, tmp_path: Path) -> None:
    for hours, state in ((30, "warning"), (24 * 8, "failure")):
        dump(look.backups, hours)
        assert states(look()) == {"backup": state}
    dump(look.backups, 1, b"")
    assert states(look()) == {"backup": "failure"}
    empty = tmp_path / "empty"
    empty.mkdir()
    assert states(look("--backups", str(empty))) == {"backup": "failure"}
    assert states(look("--backups", str(tmp_path / "nowhere"))) == {"backup": "failure"}
