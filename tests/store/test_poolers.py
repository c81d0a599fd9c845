"""Poolers between the service and its database: one that pools by session works, all others are refused."""

import asyncio
from collections.abc import Iterator

import pytest

from app.core.errors import SchemaMismatch
from app.store import migrate
from tests.api.service import VALUE, assert_problem, open_service
from tests.support.pgbouncer import PgBouncer, pgbouncer

WORDS = "pool by session"

TRIES = 20
"""How often requests are sent until one meets another session than the one it knows."""

SHARING = {
    "transaction": ("transaction",),
    "statement": ("statement",),
    "transaction, one session": ("transaction", "default_pool_size = 1"),
    "transaction, in turns": ("transaction", "server_round_robin = 1", "min_pool_size = 4"),
}


@pytest.fixture
def pooler(database_url: str) -> Iterator[PgBouncer]:
    with pgbouncer(database_url) as pooler:
        yield pooler


@pytest.mark.system
@pytest.mark.parametrize("how", SHARING)
async def test_a_pooler_that_gives_sessions_away_is_refused(pooler: PgBouncer, how: str) -> None:
    pooler.start(*SHARING[how])
    await pooler.ready()
    for attempt in (migrate.require_head, migrate.upgrade, migrate.current_revision):
        with pytest.raises(SchemaMismatch, match=WORDS):
            await attempt(pooler.url)
    with pytest.raises(SchemaMismatch, match=WORDS):
        async with open_service(pooler.url):
            pass


@pytest.mark.system
async def test_the_service_works_through_a_pooler_of_whole_sessions_and_says_when_it_is_none(
    pooler: PgBouncer,
) -> None:
    pooler.start("session")
    await pooler.ready()
    await migrate.require_head(pooler.url)
    # On a busy machine plans that wait for their turn are refused with 503, too.
    async with open_service(pooler.url, work_patience_seconds=300) as service:
        study = await service.study()

        async def many() -> set[int]:
            calls = [
                service.call(
                    "POST",
                    f"/v1/studies/{study}/contributions",
                    "contribute",
                    json=VALUE | {"subject": f"s{i}"},
                )
                for i in range(20)
            ]
            reads = [service.call("GET", f"/v1/studies/{study}/plan", "analyse") for _ in range(40)]
            return {response.status_code for response in await asyncio.gather(*calls, *reads)}

        assert await many() <= {200, 201}
        assert (await service.call("GET", "/health/ready")).status_code == 200
        pooler.start(*SHARING["transaction, in turns"])
        await pooler.ready()
        await service.call("GET", "/health/ready")  # finds its connections broken
        seen: set[int] = set()
        for _ in range(TRIES):
            # One transaction after the other may still meet the session that it knows, and a check of health
            # that meets another one itself says no more than that the database does not answer.
            seen |= await many()
            ready = await service.call("GET", "/health/ready")
            if 503 in seen and WORDS in ready.text:
                break
        assert 503 in seen
        assert seen <= {200, 201, 503}
        problem = assert_problem(ready, "unavailable", 503)
        assert WORDS in problem["detail"]
