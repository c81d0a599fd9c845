"""Contributions that race each other, with real commits on several processes' connections."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable

import pytest

from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, ContributionExists, ServiceError
from app.core.study import Trust
from app.services.contributing.contributions import Accepted
from tests.store.faults import InterceptedDatabase
from tests.store.workbench import ADMIN, KEY, LIFETIME_EPSILON, Workbench, batch, key, offer, workbench

pytestmark = pytest.mark.long

PATIENCE = 30
"""Seconds after which something that should be done counts as stuck."""


async def outcomes(calls: Iterable[Awaitable[Accepted]]) -> Counter[str]:
    """Run everything at once and count what came of it: created, unchanged or the code of the error."""
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(*calls, return_exceptions=True)
    counted: Counter[str] = Counter()
    for result in results:
        if isinstance(result, ServiceError):
            counted[result.code] += 1
        elif isinstance(result, BaseException):
            raise result
        else:
            counted["created" if result.created else "unchanged"] += 1
    return counted


@pytest.mark.parametrize("known", [False, True], ids=["new subject", "known subject"])
async def test_exactly_as_many_reservations_succeed_as_fit(cluster: Workbench, known: bool):
    if known:
        await cluster.services.contributions.contribute(
            await cluster.study(), offer("alice", epsilon=0.5, value=0)
        )
    studies = [await cluster.study() for _ in range(15)]
    counted = await outcomes(
        cluster.replicas[number % 3].contributions.contribute(study, offer("alice", epsilon=3))
        for number, study in enumerate(studies)
    )
    assert counted == {"created": 3, "budget_exhausted": 12}
    assert await cluster.reserved("alice") == 9 * MICRO + (MICRO // 2 if known else 0)
    assert await cluster.value("SELECT count(*)::int FROM contribution WHERE epsilon = 3000000") == 3
    await cluster.assert_clean()


async def test_a_reservation_that_fits_to_the_last_micro_is_granted(cluster: Workbench):
    studies = [await cluster.study() for _ in range(10)]
    counted = await outcomes(
        cluster.replicas[number % 3].contributions.contribute(study, offer("alice", epsilon=2))
        for number, study in enumerate(studies)
    )
    assert counted == {"created": 5, "budget_exhausted": 5}
    assert await cluster.reserved("alice") == LIFETIME_EPSILON


async def test_one_of_many_equal_contributions_in_flight_is_created(cluster: Workbench):
    study = await cluster.study()
    whole = offer("alice", epsilon=10)
    counted = await outcomes(
        cluster.replicas[number % 3].contributions.contribute(study, whole) for number in range(30)
    )
    assert counted == {"created": 1, "unchanged": 29}
    await cluster.assert_clean()


async def test_one_of_many_different_contributions_in_flight_is_created(cluster: Workbench):
    study = await cluster.study()
    counted = await outcomes(
        cluster.replicas[number % 3].contributions.contribute(
            study, offer("alice", epsilon=10, value=number / 30)
        )
        for number in range(30)
    )
    assert counted == {"created": 1, "contribution_exists": 29}
    await cluster.assert_clean()


async def test_retries_with_one_key_in_flight_get_the_same_reply(cluster: Workbench):
    study = await cluster.study()
    whole = offer("alice", epsilon=10)

    async with asyncio.timeout(PATIENCE):
        replies = await asyncio.gather(
            *(
                cluster.replicas[number % 3].contributions.contribute_once(study, whole, key("k"))
                for number in range(20)
            )
        )
    assert len(set(replies)) == 1
    assert replies[0].created
    assert await cluster.reserved("alice") == 10 * MICRO
    await cluster.assert_clean()


async def test_contributions_with_keys_do_not_wait_for_each_others_connections(database_url: str):
    async with workbench(database_url, pool_size=2) as bench:
        study = await bench.study()

        async def once(number: int) -> bool:
            accepted = await bench.services.contributions.contribute_once(
                study, offer(f"p{number}"), key(f"k{number}")
            )
            return accepted.created

        async with asyncio.timeout(PATIENCE / 3):
            assert set(await asyncio.gather(*(once(number) for number in range(20)))) == {True}


async def test_batches_that_share_people_in_different_orders_do_not_deadlock(database_url: str):
    databases = [InterceptedDatabase.open(database_url) for _ in range(3)]
    async with workbench(database_url, replicas=3, databases=databases) as bench:
        studies = [await bench.study() for _ in range(4)]
        people = [offer(f"p{number}", epsilon=0.5) for number in range(300)]
        known = await bench.study()
        await bench.services.contributions.apply_batch(known, batch(people[::3]))
        orders = [people, people[::-1], people[150:] + people[:150], people[::2] + people[1::2][::-1]]
        async with asyncio.timeout(PATIENCE):
            results = await asyncio.gather(
                *(
                    bench.replicas[number % 3].contributions.apply_batch(study, batch(order))
                    for number, (study, order) in enumerate(zip(studies, orders, strict=True))
                )
            )
        assert [result.created for result in results] == [300] * 4
        begun = sum(database.begun["contribution.accept"] for database in databases)
        assert begun == 1 + len(studies), "a deadlock would have been tried again"
        await bench.assert_clean()


async def test_the_same_batch_sent_twice_at_once_is_stored_once(cluster: Workbench):
    study = await cluster.study()
    people = [offer(f"p{number}", epsilon=10) for number in range(500)]
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(
            *(
                replica.contributions.apply_batch(study, batch(order))
                for replica, order in zip(
                    cluster.replicas, (people, people[::-1], people[250:] + people[:250]), strict=True
                )
            )
        )
    assert sum(result.created for result in results) == 500
    assert sum(result.unchanged for result in results) == 1000
    assert sum(result.refused for result in results) == 0
    await cluster.assert_clean()


async def test_a_caller_who_goes_away_takes_nobody_along(bench: Workbench):
    study = await bench.study()
    calls = [
        asyncio.create_task(bench.services.contributions.contribute(study, offer(f"p{number}")))
        for number in range(20)
    ]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results[::2])
    assert all(isinstance(result, Accepted) for result in results[1::2])
    query = "SELECT count(*)::int FROM contribution"
    async with asyncio.timeout(PATIENCE):
        while await bench.value(query) < 20:  # noqa: ASYNC110 (nobody tells who is gone)
            await asyncio.sleep(0.01)
    await bench.assert_clean()


async def test_a_subject_may_race_with_a_change_of_the_lifetime_budget(cluster: Workbench):
    study = await cluster.study()
    for round_ in range(10):
        name = f"p{round_}"
        results = await asyncio.gather(
            cluster.replicas[0].contributions.contribute(study, offer(name, epsilon=8)),
            cluster.replicas[1].budgets.set_lifetime(
                KEY.digest(name), epsilon=5 * MICRO, gaussian=None, reason="test", principal=ADMIN
            ),
            return_exceptions=True,
        )
        refused = [result for result in results if isinstance(result, ServiceError)]
        assert len(refused) == 1, "either the contribution or the lower budget came first"
        assert refused[0].code in ("budget_exhausted", "budget_below_reserved")
    await cluster.assert_clean()


async def test_people_who_return_race_only_with_themselves(cluster: Workbench):
    study = await cluster.study()
    alice = offer("alice", epsilon=6)
    for _ in range(10):
        counted = await outcomes(
            replica.contributions.contribute(study, alice) for replica in cluster.replicas
        )
        assert counted == {"created": 1, "unchanged": 2}
        await asyncio.gather(
            *(replica.contributions.withdraw(study, alice.subject) for replica in cluster.replicas)
        )
        assert await cluster.reserved("alice") == 0
    await cluster.assert_clean()


async def test_replacements_race_for_the_budget(cluster: Workbench):
    studies = [await cluster.study() for _ in range(4)]
    for study in studies:
        await cluster.services.contributions.contribute(study, offer("alice", epsilon=1))
    counted = await outcomes(
        cluster.replicas[number % 3].contributions.replace(study, offer("alice", epsilon=4, value=0.25))
        for number, study in enumerate(studies)
    )
    assert counted == {"unchanged": 2, "budget_exhausted": 2}, "replaced ones are not created"
    assert await cluster.reserved("alice") == 10 * MICRO
    await cluster.assert_clean()


async def test_a_refused_contribution_leaves_no_trace(bench: Workbench):
    study = await bench.study()
    with pytest.raises(BudgetExhausted):
        await bench.services.contributions.contribute(study, offer("alice", epsilon=11))
    assert await bench.value("SELECT count(*)::int FROM subject") == 0
    await bench.services.contributions.contribute(study, offer("alice", epsilon=9))
    with pytest.raises(ContributionExists):
        await bench.services.contributions.contribute(study, offer("alice", epsilon=11))
    other = await bench.study()
    with pytest.raises(BudgetExhausted):
        await bench.services.contributions.contribute(other, offer("alice", epsilon=1.01))
    assert await bench.reserved("alice") == 9 * MICRO
    accepted = await bench.services.contributions.contribute(other, offer("alice", trust=Trust.PUBLIC))
    assert accepted.created, "what is public costs nothing and always fits"
    await bench.assert_clean()
