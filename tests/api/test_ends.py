"""What ends while it is under way: a batch with its token, and an old process with its schema."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from app.services.contributing import contributions
from app.store.database import MIGRATION_LOCK
from tests.api.service import VALUE, Service, assert_problem

PEOPLE = [{"subject": f"p{n}", "value": n % 100, "epsilon": 1, "trust": "central"} for n in range(60)]


@asynccontextmanager
async def connected(service: Service) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(service.database_url)
    try:
        yield connection
    finally:
        await connection.close()


async def test_a_batch_that_arrives_ends_with_its_token(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.formats.compression.Identity.piece", 100)
    study = await service.study()
    document = json.dumps(PEOPLE).encode()

    async def parts() -> AsyncIterator[bytes]:
        yield document[:500]
        async with connected(service) as connection:
            await connection.execute("UPDATE token SET revoked_at = now() WHERE 'contribute' = ANY(roles)")
        yield document[500:]

    response = await service.call(
        "POST",
        f"/v1/studies/{study}/contributions/batch",
        "contribute",
        content=parts(),
        headers={"Content-Type": "application/json"},
    )
    assert_problem(response, "unauthenticated", 401)
    assert (await service.rows())["contribution"] == 0


async def test_a_batch_that_is_being_stored_ends_with_its_token(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first value that is stored revokes the token of its sender."""
    monkeypatch.setattr(contributions, "CHUNK", 5)
    study = await service.study()
    async with connected(service) as connection:
        await connection.execute(
            """CREATE FUNCTION revoke_all() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN UPDATE token SET revoked_at = now() WHERE revoked_at IS NULL; RETURN NULL; END $$;
               CREATE TRIGGER revoke_all AFTER INSERT ON contribution EXECUTE FUNCTION revoke_all()"""
        )
        try:
            response = await service.call(
                "POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=PEOPLE
            )
        finally:
            await connection.execute("DROP FUNCTION revoke_all CASCADE")
    assert_problem(response, "unauthenticated", 401)
    assert (await service.rows())["contribution"] <= 5 * contributions.CHUNKS_UNDER_WAY


async def test_an_old_process_writes_nothing_after_a_migration(service: Service) -> None:
    """Not even a transaction that was waiting while another process migrated."""
    study = await service.study()
    path = f"/v1/studies/{study}/contributions"
    before = await service.rows()
    async with connected(service) as connection:
        revision = await connection.fetchval("SELECT version_num FROM alembic_version")
        try:
            async with connection.transaction():
                await connection.execute(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
                waiting = asyncio.create_task(service.call("POST", path, "contribute", json=VALUE))
                await connection.execute("UPDATE alembic_version SET version_num = 'newer'")
                blocked = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                for _ in range(1000):
                    if await connection.fetchval(blocked):
                        break
                    await asyncio.sleep(0.01)
                else:
                    pytest.fail("nothing waits for the migration")
            assert_problem(await waiting, "unavailable", 503)
            again = await service.call("POST", path, "contribute", json=VALUE)
            assert_problem(again, "unavailable", 503)
            wish = {"name": "x", "role": "analyse"}
            assert (await service.call("POST", "/v1/admin/tokens", "admin", json=wish)).status_code == 503
            assert (await service.call("GET", "/health/ready")).status_code == 503
            assert await service.rows() == before
        finally:
            await connection.execute("UPDATE alembic_version SET version_num = $1", revision)
    assert (await service.call("POST", path, "contribute", json=VALUE)).status_code == 201
