"""A database or a machine without room or time: 503, and everything goes on when there is room again."""

import asyncio
import json
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.postgres.embedded import EmbeddedPostgres
from app.services.contributing.batches import BatchReader
from app.store import condition, migrate
from tests.api.service import VALUE, Service, assert_problem, open_service
from tests.cli.conftest import dither as dither
from tests.support.databases import scratch_directory


@asynccontextmanager
async def without_room(service: Service, state: str) -> AsyncIterator[None]:
    """Every new contribution fails on the server, as it does on a full disk."""
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute(
            f"""CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '{state}'; END $$;
                CREATE TRIGGER no_room BEFORE INSERT ON contribution EXECUTE FUNCTION no_room()"""
        )
        yield
    finally:
        await connection.execute("DROP FUNCTION no_room CASCADE")
        await connection.close()


STOPPED = ["57014", "55P03", "25P03", "25P04"]
"""What took longer than settings of the server's operator let it: nothing is wrong with the request."""


@pytest.mark.parametrize("state", ["53100", "53200", *STOPPED])
async def test_a_full_disk_or_a_limit_of_the_server_is_a_503_and_passes(service: Service, state: str) -> None:
    study = await service.study()
    path = f"/v1/studies/{study}/contributions"
    before = await service.rows()
    async with without_room(service, state):
        single = await service.call("POST", path, "contribute", json=VALUE)
        assert_problem(single, "unavailable", 503)
        assert "retry-after" in single.headers
        batch = await service.call("POST", f"{path}/batch", "contribute", json=[VALUE])
        assert_problem(batch, "unavailable", 503)
        assert await service.rows() == before
    assert (await service.call("POST", path, "contribute", json=VALUE)).status_code == 201


NO_SPACE = "DO $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$"
"""What the server says on a full disk."""


async def test_a_service_whose_disk_is_full_is_not_ready(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await service.call("GET", "/health/ready")).status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(condition, "SPILL", NO_SPACE)
        problem = assert_problem(await service.call("GET", "/health/ready"), "unavailable", 503)
        assert "disk" in problem["detail"]
        assert (await service.call("GET", "/metrics")).text.count("dither_up 0.0") == 1
        assert (await service.call("GET", "/health/live")).status_code == 200
    assert (await service.call("GET", "/health/ready")).status_code == 200


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A directory on a disk of its own, in memory; where none can be mounted, the test is skipped."""
    with scratch_directory() as directory:
        mount = ["mount", "-t", "tmpfs", "-o", "size=160m,mode=711", "tmpfs", str(directory)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            pytest.skip("this takes root, and leave to mount")
        try:
            yield directory
        finally:
            subprocess.run(["umount", "--lazy", directory], check=True)


@pytest.mark.system
async def test_a_full_disk_is_seen_and_named(small_disk: Path, dither: Any) -> None:
    with EmbeddedPostgres(small_disk) as embedded:
        await migrate.upgrade(embedded.url)
        async with open_service(embedded.url) as service:
            assert (await service.call("GET", "/health/ready")).status_code == 200
            filler = small_disk / "filler"
            filler.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 2**18))
            problem = assert_problem(await service.call("GET", "/health/ready"), "unavailable", 503)
            assert "disk" in problem["detail"]
            found = await asyncio.to_thread(dither, "doctor", "--data-dir", str(small_disk), "--json")
            [disk] = [line for line in json.loads(found.output)["checks"] if line["check"] == "disk"]
            assert disk["state"] == "failure"
            assert str(small_disk) in disk["found"]
            filler.unlink()
            assert (await service.call("GET", "/health/ready")).status_code == 200


@asynccontextmanager
async def read_only(service: Service) -> AsyncIterator[None]:
    """The database takes no changes any more, as a primary that has become a standby."""
    name = service.database_url.partition("?")[0].rpartition("/")[2]
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        yield
    finally:
        await connection.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        await connection.close()


async def test_a_read_only_database_is_a_503_and_passes(service: Service) -> None:
    study = await service.study()
    path = f"/v1/studies/{study}/contributions"
    assert (await service.call("POST", path, "contribute", json=VALUE)).status_code == 201
    async with read_only(service):
        refused = await service.call("POST", path, "contribute", json=VALUE | {"subject": "another"})
        assert_problem(refused, "unavailable", 503)
        answer = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.1})
        assert_problem(answer, "unavailable", 503)
        ready = await service.call("GET", "/health/ready")
        assert_problem(ready, "unavailable", 503)
    more = await service.call("POST", path, "contribute", json=VALUE | {"subject": "another"})
    assert more.status_code == 201
    assert (await service.call("GET", "/health/ready")).status_code == 200


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (RuntimeError("can't start new thread"), (threading.Thread, "start")),
        (MemoryError(), (BatchReader, "feed")),
    ],
    ids=["thread", "memory"],
)
async def test_a_machine_without_a_thread_or_memory_is_a_503_and_passes(
    service: Service, error: Exception, where: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first batch of a process starts the thread that reads them."""
    study = await service.study()
    path = f"/v1/studies/{study}/contributions/batch"
    before = await service.rows()

    def refuse(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*where, refuse)
        batch = await service.call("POST", path, "contribute", json=[VALUE])
        assert_problem(batch, "unavailable", 503)
        assert "retry-after" in batch.headers
    assert await service.rows() == before
    assert (await service.call("POST", path, "contribute", json=[VALUE])).json()["created"] == 1


async def test_any_other_error_of_a_thread_is_a_500(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = await service.study()

    def fail(*_: object) -> None:
        raise RuntimeError("anything else")

    monkeypatch.setattr(BatchReader, "feed", fail)
    batch = await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=[VALUE])
    assert_problem(batch, "internal_fault", 500)
