"""The embedded PostgreSQL: found again, restarted after crashes, shared, stopped by the last user."""

import multiprocessing
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from app.postgres import service_user
from app.postgres.embedded import EmbeddedPostgres, EmbeddedPostgresError
from tests.support.databases import run_apart, scratch_directory
from tests.support.debian_postgres import debian_binaries

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
AS_ROOT = os.geteuid() == 0


async def note(url: str, text: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        # IF NOT EXISTS alone fails where two processes create the table at the same time.
        await connection.execute("SELECT pg_advisory_lock(1)")
        await connection.execute("CREATE TABLE IF NOT EXISTS note (text text)")
        await connection.execute("INSERT INTO note VALUES ($1)", text)
        return [row["text"] for row in await connection.fetch("SELECT text FROM note ORDER BY text")]
    finally:
        await connection.close()


async def show(url: str, *names: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        return [await connection.fetchval(f"SHOW {name}") for name in names]
    finally:
        await connection.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    with scratch_directory() as scratch:
        yield scratch / "data"


@pytest.fixture
def embedded(directory: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(directory)
    yield server
    server.stop()


def kill_postmaster(server: EmbeddedPostgres) -> None:
    pid = server.postmaster_pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    # A child that was being forked holds the socket a moment longer than the postmaster.
    while server.postmaster_pid is not None:
        time.sleep(0.01)


def test_data_survive_a_stop_a_kill_and_a_restart(embedded, directory):
    url = embedded.start()
    assert run_apart(note(url, "a")) == ["a"]
    embedded.stop()
    assert embedded.postmaster_pid is None

    assert embedded.start() == url
    assert run_apart(note(url, "b")) == ["a", "b"]
    kill_postmaster(embedded)
    assert embedded.ensure_running()
    assert not embedded.ensure_running()
    assert run_apart(note(url, "c")) == ["a", "b", "c"]

    kill_postmaster(embedded)
    other = EmbeddedPostgres(directory)
    assert other.start() == url
    assert run_apart(note(url, "d")) == ["a", "b", "c", "d"]
    other.stop()
    assert embedded.postmaster_pid is not None, "the first user is still there"


def test_durability_is_the_default_of_postgresql(embedded):
    url = embedded.start()
    names = ("fsync", "synchronous_commit", "full_page_writes", "listen_addresses", "server_version_num")
    values = run_apart(show(url, *names))
    assert values[:4] == ["on", "on", "on", ""]
    assert int(values[4]) // 10_000 == 18


def test_the_cluster_is_private_to_its_user(embedded, directory):
    embedded.start()
    status = (directory / "postgres").stat()
    assert stat.S_IMODE(status.st_mode) == 0o700
    assert (status.st_uid != 0) == AS_ROOT or not AS_ROOT
    assert stat.S_IMODE((directory / "users.lock").stat().st_mode) == 0o600


def test_the_service_role_is_no_superuser(embedded):
    url = embedded.start()
    assert run_apart(show(url, "is_superuser")) == ["off"]


def test_a_process_that_was_killed_leaves_a_server_that_is_used_again(embedded, directory):
    script = f"""
        import os, signal, sys
        from pathlib import Path
        from app.postgres.embedded import EmbeddedPostgres
        server = EmbeddedPostgres(Path({str(directory)!r}))
        server.start()
        print(server.postmaster_pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    orphan = int(done.stdout.split()[-1])
    embedded.start()
    assert embedded.postmaster_pid == orphan
    embedded.stop()
    assert embedded.postmaster_pid is None, "the process that died is no user any more"


def use(directory: Path, barrier, results) -> None:
    server = EmbeddedPostgres(directory)
    barrier.wait()
    try:
        url = server.start()
        results.put(run_apart(note(url, str(os.getpid())))[0] != "")
        barrier.wait()
        results.put(server.postmaster_pid)
        barrier.wait()
    finally:
        server.stop()


def test_two_processes_that_start_at_once_share_one_server(directory):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2, timeout=60), context.Queue()
    processes = [context.Process(target=use, args=(directory, barrier, results)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0]
    found = [results.get(timeout=60) for _ in range(4)]
    assert found.count(True) == 2
    pids = {item for item in found if item is not True}
    assert len(pids) == 1
    pid = pids.pop()
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_pid_file_that_names_a_stranger_is_not_believed(embedded, directory):
    embedded.start()
    embedded.stop()
    # What a container leaves: the id now belongs to a process of the same user that is no postmaster.
    owner = (directory / "postgres").stat()
    lines = [str(os.getpid()), str(directory / "postgres"), "1", "5432", ".", "", "0 0", "ready"]
    pid_file = directory / "postgres" / "postmaster.pid"
    pid_file.write_text("\n".join(lines) + "\n")
    os.chown(pid_file, owner.st_uid, owner.st_gid)
    assert run_apart(note(embedded.start(), "a")) == ["a"]


def test_a_long_path_gets_a_short_private_socket(directory):
    server = EmbeddedPostgres(directory / ("long" * 30))
    try:
        url = server.start()
        assert "long" not in url
        assert run_apart(note(url, "a")) == ["a"]
        socket_directory = Path(url.split("host=")[1].split("&")[0])
        assert stat.S_IMODE(socket_directory.stat().st_mode) == 0o700
        assert EmbeddedPostgres(directory / ("long" * 30)).url == url
    finally:
        server.stop()
    assert not socket_directory.exists()


def test_an_interrupted_initdb_is_started_over(embedded, directory):
    leftover = directory / "postgres.new"
    leftover.mkdir(parents=True)
    (leftover / "PG_VERSION").write_text("18\n")
    assert run_apart(note(embedded.start(), "a")) == ["a"]
    assert not leftover.exists()


def test_another_major_version_is_refused_with_a_way_out(embedded, directory):
    (directory / "postgres").mkdir(parents=True)
    (directory / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedPostgresError, match=r"made by PostgreSQL 16.*DITHER_DATABASE_URL"):
        embedded.start()


def test_a_directory_of_something_else_is_left_alone(embedded, directory):
    (directory / "postgres").mkdir(parents=True)
    (directory / "postgres" / "thesis.txt").write_text("final")
    with pytest.raises(EmbeddedPostgresError, match="not a PostgreSQL data directory"):
        embedded.start()
    assert (directory / "postgres" / "thesis.txt").read_text() == "final"


def test_a_removed_database_is_not_replaced_by_an_empty_one(embedded, directory):
    embedded.start()
    kill_postmaster(embedded)
    shutil.rmtree(directory / "postgres")
    with pytest.raises(EmbeddedPostgresError, match="is gone"):
        embedded.ensure_running()


def test_another_installed_postgresql_can_be_the_embedded_one(directory):
    binaries = debian_binaries()
    if AS_ROOT and service_user.major_version(binaries) == 15:
        with pytest.raises(EmbeddedPostgresError, match="may not traverse"):
            EmbeddedPostgres(directory, binaries).start()
    directory.parent.chmod(0o711)
    with EmbeddedPostgres(directory, binaries) as server:
        major, jit = run_apart(show(server.url, "server_version_num", "jit"))
        assert (int(major) // 10_000, jit) == (service_user.major_version(binaries), "off")
        assert run_apart(note(server.url, "a")) == ["a"]
    with pytest.raises(EmbeddedPostgresError, match=r"was made by PostgreSQL .* DITHER_POSTGRES_BIN"):
        EmbeddedPostgres(directory).start()


@pytest.mark.parametrize(
    ("version", "reason"),
    [("14.2", "PostgreSQL 15 to 18 are supported"), ("", "no PostgreSQL server")],
)
def test_programs_that_will_not_do_are_refused(directory, version, reason):
    directory.mkdir(parents=True)
    if version:
        program = directory / "postgres"
        program.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        program.chmod(0o755)
    with pytest.raises(EmbeddedPostgresError, match=reason):
        EmbeddedPostgres(directory / "data", directory).start()
    with pytest.raises(EmbeddedPostgresError, match="is no directory"):
        EmbeddedPostgres(directory / "data", directory / "missing").start()


def test_a_directory_that_cannot_be_used_is_a_clear_error(directory):
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.write_text("a file")
    with pytest.raises(EmbeddedPostgresError, match="cannot use the data directory"):
        EmbeddedPostgres(directory).start()


@pytest.mark.skipif(not AS_ROOT, reason="about what root does")
def test_root_needs_no_permissions_on_the_directories_above(directory):
    directory.mkdir(parents=True)
    directory.parent.chmod(0o700)
    directory.chmod(0o700)
    with EmbeddedPostgres(directory) as server:
        assert run_apart(note(server.url, "a")) == ["a"]
        kill_postmaster(server)
        assert server.ensure_running()
        assert run_apart(note(server.url, "b")) == ["a", "b"]
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


@pytest.mark.skipif(not AS_ROOT, reason="about what root does")
def test_binaries_out_of_reach_are_copied_to_a_public_place(directory, monkeypatch):
    monkeypatch.setattr(service_user, "SHARED_BINARIES", directory.parent / "shared")
    directory.parent.chmod(0o711)
    monkeypatch.setattr(service_user, "can_reach", lambda path, user: "site-packages" not in str(path))
    installed = service_user.postgres_binaries(None)
    binaries = service_user.within_reach(installed, pwd.getpwnam("nobody"))
    assert binaries.is_relative_to(directory.parent / "shared")
    done = subprocess.run(
        [binaries / "postgres", "--version"], user="nobody", capture_output=True, text=True, check=True
    )
    assert "18." in done.stdout
    assert service_user.within_reach(installed, pwd.getpwnam("nobody")) == binaries


@pytest.mark.skipif(not AS_ROOT, reason="the other tests run as an ordinary user already")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_an_ordinary_user_runs_it_too(directory):
    nobody = pwd.getpwnam("nobody")
    if not service_user.can_reach(Path(sysconfig.get_path("purelib")), nobody):
        pytest.skip("this installation is in a directory that only root may enter")
    directory.mkdir(parents=True)
    directory.parent.chmod(0o711)
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    report = directory / "report"
    # A fork, since the interpreter itself may lie where an ordinary user cannot read it.
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(nobody.pw_gid)
            os.setuid(nobody.pw_uid)
            with EmbeddedPostgres(directory) as server:
                report.write_text("/".join(run_apart(note(server.url, "a"))))
        except BaseException as error:
            report.write_text(repr(error))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert report.read_text() == "a"
    assert (directory / "postgres").stat().st_uid == nobody.pw_uid
