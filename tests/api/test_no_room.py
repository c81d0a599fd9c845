"""A database or a machine without room or time: 503, and everything goes on when there is room again."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from app.services.contributing.batches import BatchReader
from tests.api.service import VALUE, Service, assert_problem


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


@asynccontextmanager
async def read_only(service: Service) -> AsyncIterator[None]:
    """The database takes no changes any more, as a primary that has become a standby."""
    name = service.database_url.partition("?")[0].rpartition("/")[2]
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
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
