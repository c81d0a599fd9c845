"""A request that is cancelled at any moment leaves no half transaction and no unusable connection behind."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

import pytest

from app.core.epsilon import MICRO
from app.core.errors import ServiceError
from app.core.study import Study
from app.services.statistics.questions import Ask
from app.store.database import Connection
from app.store.sql import Sql
from tests.store.workbench import KEY, Workbench, batch, connected, key, offer, workbench

pytestmark = pytest.mark.long

Call = Callable[[Workbench, Study, int], Awaitable[object]]

CALLS: dict[str, Call] = {
    "with a key": lambda bench, study, turn: bench.services.contributions.contribute_once(
        study, offer(f"p{turn}", epsilon=0.01), key(f"k{turn}")
    ),
    "batch": lambda bench, study, turn: bench.services.contributions.apply_batch(
        study, batch([offer(f"b{turn}-{number}", epsilon=0.01) for number in range(5)])
    ),
    "replacement": lambda bench, study, turn: bench.services.contributions.replace(
        study, offer("crowd-0", value=turn % 7 / 7)
    ),
    "withdrawal": lambda bench, study, turn: bench.services.contributions.withdraw(
        study, KEY.digest(f"crowd-{turn}")
    ),
    "release": lambda bench, study, turn: bench.services.releases.release(
        study, Ask(estimator="uniform", share=MICRO // 1000), key(f"r{turn}")
    ),
    "statement": lambda bench, study, turn: bench.services.budgets.statement(KEY.digest("crowd-1")),
    "token": lambda bench, study, turn: bench.services.tokens.authenticate("no token"),
}

IN_TRANSACTION = """
    SELECT count(*)::int FROM pg_stat_activity
    WHERE datname = current_database() AND state LIKE 'idle in transaction%' AND pid <> pg_backend_pid()
"""


@pytest.mark.parametrize("call", list(CALLS))
async def test_a_call_may_be_cancelled_at_any_moment(database_url: str, call: str):
    async with workbench(database_url, pool_size=2) as bench:
        study = await bench.study()
        await bench.crowd(study, 100)
        finished = 0
        for turn in count():
            task = asyncio.ensure_future(CALLS[call](bench, study, turn))
            for _ in range(turn):
                if task.done():
                    break
                await asyncio.sleep(0.0002)
            finished += task.done()
            task.cancel()
            with suppress(asyncio.CancelledError, ServiceError):
                await task
            if finished == 3 or turn == 99:
                break
        async with asyncio.timeout(20):
            await bench.crowd(await bench.study(), 100, prefix="afterwards")
            if call != "withdrawal":
                await asyncio.gather(*(CALLS["release"](bench, study, 1000 + turn) for turn in range(4)))
        assert await bench.value(IN_TRANSACTION) == 0
        await bench.assert_clean()


async def test_a_transaction_may_be_cancelled_at_any_step(database_url: str):
    async with workbench(database_url, pool_size=1) as bench, connected(database_url) as bystander:
        database = bench.services.database

        async def body(connection: Connection) -> int:
            return await Sql.of(int)("SELECT 1").one(connection)

        for steps in count():
            task = asyncio.ensure_future(database.run_tx("test", body))
            for _ in range(steps):
                await asyncio.sleep(0)
            finished = task.done()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.003)
            assert await bystander.fetchval(IN_TRANSACTION) == 0, steps
            assert await database.run_tx("test", body) == 1
            if finished or steps == 300:
                break
