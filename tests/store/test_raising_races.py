"""All budgets are raised while people come: nobody who is new misses it or gets it twice."""

import asyncio

import pytest

from app.core.epsilon import MICRO, amount_of
from app.store.contributions import DELTA
from tests.store.faults import InterceptedDatabase
from tests.store.workbench import ADMIN, LIFETIME_EPSILON, batch, offer, workbench

pytestmark = pytest.mark.long

PATIENCE = 60


async def test_people_who_come_meanwhile_have_the_raised_budget_once(database_url: str) -> None:
    databases = [InterceptedDatabase.open(database_url) for _ in range(3)]
    async with workbench(database_url, replicas=3, databases=databases) as bench:
        studies = [await bench.study() for _ in range(3)]
        raises = 4

        async def come(number: int) -> None:
            services = bench.replicas[number % 3]
            for part in range(8):
                people = [offer(f"{number}-{part}-{one}", epsilon=0.5) for one in range(50)]
                result = await services.contributions.apply_batch(studies[number % 3], batch(people))
                assert result.created == 50

        async def more(number: int) -> None:
            await asyncio.sleep(0.02 * number)
            await bench.replicas[number % 3].budgets.raise_all(
                epsilon=MICRO, at_most=None, reason="a year", principal=ADMIN
            )
            await bench.replicas[number % 3].budgets.raise_all(
                epsilon=MICRO, at_most=None, delta=DELTA, reason="a year", principal=ADMIN
            )

        async def ask_for_more(number: int) -> None:
            """An admin sets the budget of people whom no one has seen, and leaves the one for mu^2."""
            for part in range(8):
                await bench.replicas[number % 3].budgets.set_lifetime(
                    bytes([number, part] * 16),
                    epsilon=LIFETIME_EPSILON + raises * MICRO,
                    gaussian=None,
                    reason="asked",
                    principal=ADMIN,
                )
                await asyncio.sleep(0.01)

        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(
                *(come(number) for number in range(6)),
                *(more(one) for one in range(raises)),
                *(ask_for_more(number) for number in range(3)),
            )
        budgets = await bench.fetch("SELECT DISTINCT gaussian_budget FROM subject")
        raised = await bench.fetch("SELECT gaussian_raised FROM allowance")
        assert [row["gaussian_raised"] for row in raised] == [raises * amount_of(MICRO, DELTA)]
        first = await bench.replicas[0].budgets.statement(b"x" * 32)
        assert [row["gaussian_budget"] for row in budgets] == [first.account.gaussian_budget]
        # Budgets that were set lie between that and as much again, by when they were raised.
        budgets = await bench.fetch(
            "SELECT DISTINCT budget FROM subject WHERE id IN (SELECT subject_id FROM contribution)"
        )
        assert [row["budget"] for row in budgets] == [LIFETIME_EPSILON + raises * MICRO]
        assert sum(database.begun["budget.raise"] for database in databases) == 2 * raises
        await bench.assert_clean()
