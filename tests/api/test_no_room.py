"""A database without room: 503, and everything goes on when there is room again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

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


@pytest.mark.parametrize("state", ["53100", "53200"])
async def test_a_full_disk_is_a_503_and_passes(service: Service, state: str) -> None:
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
