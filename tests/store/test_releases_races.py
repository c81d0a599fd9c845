"""Releases that race each other, contributions, replacements and withdrawals."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from app.core.contribution import Outcome
from app.core.epsilon import MICRO, share_of
from app.core.errors import BudgetExhausted, IdempotencyKeyReused, ServiceError
from app.core.release import StoredRelease
from app.core.study import LocalMechanism, Relation, Trust
from app.services.contributing.contributions import Accepted
from app.services.statistics.answering import Answer
from app.services.statistics.publishing import FREE_ATTEMPTS
from app.services.statistics.questions import Ask
from app.store import cohorts
from tests.store.faults import InterceptedDatabase, Interception
from tests.store.workbench import KEY, Workbench, batch, in_mu2, key, of_offers, offer, workbench

pytestmark = pytest.mark.long

PATIENCE = 30
"""Seconds after which something that should be done counts as stuck."""

BLOCKED = 0.3
"""Seconds after which something that is still not done counts as waiting."""


AUTO = Ask(estimator="auto", share=MICRO // 1000)


def uniform(share: float = 1) -> Ask:
    return Ask(estimator="uniform", share=round(share * MICRO))


def people(release: StoredRelease) -> int:
    return int(json.loads(release.body)["people"])


async def together(calls: Iterable[Awaitable[StoredRelease]]) -> tuple[list[StoredRelease], Counter[str]]:
    """Run everything at once: the releases, and the codes of the refusals."""
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(*calls, return_exceptions=True)
    releases, refused = [], Counter[str]()
    for result in results:
        if isinstance(result, ServiceError):
            refused[result.code] += 1
        elif isinstance(result, BaseException):
            raise result
        else:
            releases.append(result)
    return releases, refused


async def blocked(task: asyncio.Task[object]) -> None:
    """The task waits for something."""
    done, _ = await asyncio.wait([task], timeout=BLOCKED)
    assert not done


# ------------------------------------------------------------------------------------ one budget


@pytest.mark.parametrize("fits", [1, 3, 8])
async def test_exactly_as_many_releases_succeed_as_fit(cluster: Workbench, fits: int):
    study = await cluster.study()
    await cluster.crowd(study, 20)
    releases, refused = await together(
        cluster.replicas[number % 3].releases.release(study, uniform(1 / fits), None, fresh=True)
        for number in range(16)
    )
    assert len({release.id for release in releases}) == fits
    assert refused == {"budget_exhausted": 16 - fits}
    (spent,) = await cluster.fetch("SELECT spent FROM cohort")
    assert spent["spent"] == fits * (MICRO * round(MICRO / fits) // MICRO)
    await cluster.assert_clean()


async def test_one_question_asked_by_many_at_once_is_released_once(cluster: Workbench):
    study = await cluster.study()
    await cluster.crowd(study, 20)
    async with asyncio.timeout(PATIENCE):
        answers: list[Answer] = await asyncio.gather(
            *(cluster.replicas[number % 3].releases.current(study, uniform()) for number in range(30))
        )
    assert len({answer.release.body for answer in answers}) == 1
    assert await cluster.value("SELECT count(*)::int FROM release") == 1
    await cluster.assert_clean()


@pytest.mark.usefixtures("free_attempts")
async def test_retries_with_one_key_at_once_are_released_once(cluster: Workbench):
    study = await cluster.study()
    await cluster.crowd(study, 20)
    releases, refused = await together(
        cluster.replicas[number % 3].releases.release(study, uniform(), key("k"), fresh=True)
        for number in range(30)
    )
    assert refused == {}
    assert len({release.body for release in releases}) == 1
    assert sorted(release.replayed for release in releases) == [False] + [True] * 29
    assert await cluster.value("SELECT count(*)::int FROM release") == 1
    with pytest.raises(IdempotencyKeyReused):
        await cluster.services.releases.release(study, uniform(0.5), key("k", "another request"), fresh=True)
    await cluster.assert_clean()


async def test_a_question_that_was_answered_while_it_was_planned_gets_that_answer(database_url: str):
    """Both see nothing released; one spends everything; the other must not be told that nothing is left."""
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        await bench.crowd(study, 5)

        async def quicker() -> None:
            await bench.replicas[1].releases.current(study, uniform())

        slow.interceptions["release.cohorts"] = Interception(first=quicker)
        answer = await bench.services.releases.current(study, uniform())
        assert answer.release.replayed
        assert await bench.value("SELECT count(*)::int FROM release") == 1


async def test_a_key_that_was_answered_while_its_retry_was_planned_gets_that_answer(database_url: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        await bench.crowd(study, 5)
        first: list[StoredRelease] = []

        async def quicker() -> None:
            first.append(await bench.replicas[1].releases.release(study, uniform(), key("k"), fresh=True))

        slow.interceptions["release.cohorts"] = Interception(first=quicker)
        retry = await bench.services.releases.release(study, uniform(), key("k"), fresh=True)
        assert retry.body == first[0].body
        slow.interceptions["release.seal"] = Interception(first=quicker)
        with pytest.raises(BudgetExhausted):
            await bench.services.releases.release(study, uniform(), None, fresh=True)


@pytest.mark.parametrize(
    ("epsilon", "before", "left_out"), [(10_000_000, 4_960_000, 0), (9_999_990, 4_959_995, 1)]
)
async def test_a_cohort_takes_part_with_its_whole_offer_also_in_a_race(
    database_url: str, epsilon: int, before: int, left_out: int
):
    """Both planned while alice could offer it; one is charged first and leaves her just that, or 1e-6 less.

    She could pay both charges, and the crowd both offers: nothing but her offer stands in the way.
    """
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        await bench.services.contributions.contribute(study, offer("alice", epsilon=epsilon / MICRO))
        await bench.services.releases.release(study, uniform(0.496), None, fresh=True)
        await bench.crowd(study, 200, epsilon=0.1)
        share = round(0.4 * MICRO)
        ask = Ask(estimator="adpm", share=share)
        releases: list[StoredRelease] = []

        async def quicker() -> None:
            releases.append(await bench.replicas[1].releases.release(study, ask, None, fresh=True))

        slow.interceptions["release.publish"] = Interception(first=quicker)
        releases.append(await bench.services.releases.release(study, ask, None, fresh=True))
        cost = 1_040_000
        assert epsilon - before - cost == share_of(epsilon, share) - left_out
        assert [json.loads(release.body)["people_left_out"] for release in releases] == [0, left_out]
        alone = {MICRO // 10: 40_000}
        both = {epsilon: cost} | alone
        assert [await charged(bench, release) for release in releases] == [
            both,
            alone if left_out else both,
        ]
        spent = (await bench.services.budgets.statement(KEY.digest("alice"))).account.spent
        assert spent == before + cost * (2 - left_out)
        assert epsilon - before > 2 * cost, "she could have paid twice"
        await bench.assert_clean()


async def test_mu2_is_spent_once_also_in_a_race(database_url: str):
    """Both planned with three fifths of each offer; the second plans again, and finds too little left."""
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study(delta=1_000_000, local_mechanism=LocalMechanism.GAUSSIAN)
        people = [in_mu2(offer(f"crowd-{number}"), study) for number in range(5)]
        await bench.services.contributions.apply_batch(study, batch(people))
        ask = Ask(estimator="uniform", share=round(0.6 * MICRO))

        async def quicker() -> None:
            await bench.replicas[1].releases.release(study, ask, None, fresh=True)

        slow.interceptions["release.publish"] = Interception(first=quicker)
        with pytest.raises(BudgetExhausted):
            await bench.services.releases.release(study, ask, None, fresh=True)
        paid = people[0].epsilon * 6 // 10
        assert await bench.fetch("SELECT epsilon FROM charge") == [{"epsilon": paid}]
        assert await bench.fetch("SELECT spent FROM cohort") == [{"spent": paid}]
        assert await bench.fetch("SELECT DISTINCT reserved, gaussian_reserved FROM subject") == [
            {"reserved": 0, "gaussian_reserved": people[0].epsilon}
        ]
        await bench.assert_clean()


async def charged(bench: Workbench, release: StoredRelease) -> dict[int, int]:
    """What a release charged each member of a cohort, by their whole epsilon [micro-epsilon]."""
    rows = await bench.fetch(
        """SELECT cohort.epsilon AS offered, charge.epsilon FROM charge
           JOIN cohort ON cohort.id = charge.cohort_id WHERE charge.release_id = $1""",
        release.id,
    )
    return {row["offered"]: row["epsilon"] for row in rows}


async def test_questions_of_different_studies_take_their_places_in_one_chain(cluster: Workbench):
    studies = [await cluster.study() for _ in range(4)]
    for number, study in enumerate(studies):
        await cluster.crowd(study, 3, prefix=f"s{number}")
    releases, refused = await together(
        cluster.replicas[number % 3].releases.release(studies[number % 4], uniform(0.1), None, fresh=True)
        for number in range(24)
    )
    assert (len(releases), refused) == (24, {})
    numbers = await cluster.fetch("SELECT number FROM release ORDER BY number")
    assert [row["number"] for row in numbers] == list(range(1, 25))
    await cluster.assert_clean()


# --------------------------------------------------------------------------------- leaving people


async def test_somebody_who_leaves_before_the_charge_is_neither_charged_nor_counted(database_url: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        await bench.crowd(study, 5)

        async def leave() -> None:
            await bench.replicas[1].contributions.withdraw(study, KEY.digest("crowd-0"))

        slow.interceptions["release.publish"] = Interception(first=leave)
        release = await bench.services.releases.release(study, uniform(), None, fresh=True)
        assert slow.begun["release.publish"] == 2, "the first plan still counted the one who left"
        assert people(release) == 4
        assert await bench.reserved("crowd-0") == 0
        await bench.assert_clean()


async def test_somebody_who_leaves_after_the_charge_takes_it_along(database_url: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        await bench.crowd(study, 5)
        leaving: list[asyncio.Task[None]] = []

        async def leave() -> None:
            one = bench.replicas[1].contributions.withdraw(study, KEY.digest("crowd-0"))
            leaving.append(asyncio.create_task(one))
            await blocked(leaving[0])

        slow.interceptions["release.publish"] = Interception(before_commit=leave)
        release = await bench.services.releases.release(study, uniform(0.5), None, fresh=True)
        await leaving[0]
        assert people(release) == 5
        assert await bench.reserved("crowd-0") == MICRO // 2
        await bench.assert_clean()


@pytest.mark.parametrize("relation", Relation)
async def test_who_keeps_leaving_waits_for_a_release_in_the_end(database_url: str, relation: Relation):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study, auto = await bench.study(relation=relation), of_offers(relation, AUTO)
        await bench.crowd(study, 40)
        names = iter([f"crowd-{number}" for number in range(40)])
        others = bench.replicas[1]
        waiting: list[asyncio.Task[Any]] = []

        async def overtake() -> None:
            await others.contributions.withdraw(study, KEY.digest(next(names)))
            await others.contributions.replace(study, offer(next(names), value=0.1))
            slow.interceptions["release.publish"] = Interception(first=overtake)

        async def try_to_leave() -> None:
            """The release is made; whoever would change what it counts waits until that is committed."""
            for overtaking in (
                others.contributions.withdraw(study, KEY.digest(next(names))),
                others.contributions.replace(study, offer(next(names), value=0.1)),
                others.releases.release(study, auto, None, fresh=True),
            ):
                waiting.append(asyncio.create_task(overtaking))
                await blocked(waiting[-1])

        slow.interceptions["release.publish"] = Interception(first=overtake)
        slow.interceptions["release.held"] = Interception(before_commit=try_to_leave)
        async with asyncio.timeout(PATIENCE):
            release = await bench.services.releases.release(study, auto, None, fresh=True)
            await asyncio.gather(*waiting)
        charged = "SELECT sum(cohort.count * charge.epsilon) > 0 FROM charge JOIN cohort ON id = cohort_id"
        assert await bench.value(f"{charged} WHERE release_id = $1", release.id)
        if relation is Relation.REPLACE_ONE:
            assert people(release) == 40 - 2 * FREE_ATTEMPTS
        await bench.assert_clean()


@pytest.mark.parametrize("relation", Relation)
async def test_every_release_is_made_in_a_storm_of_people_who_come_and_go(
    cluster: Workbench, relation: Relation
):
    study, auto = await cluster.study(relation=relation), of_offers(relation, AUTO)
    await cluster.crowd(study, 200)
    done = asyncio.Event()

    async def come_and_go(worker: int) -> None:
        contributions = cluster.replicas[worker % 3].contributions
        for number in range(worker, 200, 5):
            name = f"crowd-{number}"
            if number % 2:
                await contributions.replace(study, offer(name, value=number / 200))
            else:
                await contributions.withdraw(study, KEY.digest(name))
                await contributions.contribute(study, offer(name))

    async def release(worker: int) -> int:
        made = 0
        while not done.is_set():
            await cluster.replicas[worker].releases.release(study, auto, None, fresh=True)
            made += 1
        return made

    async with asyncio.timeout(2 * PATIENCE):
        releasing = asyncio.gather(*(release(worker) for worker in range(3)))
        await asyncio.gather(*(come_and_go(worker) for worker in range(5)))
        done.set()
        assert min(await releasing) > 0
    await cluster.assert_clean()


async def test_every_charge_lands_on_exactly_the_people_who_were_counted(cluster: Workbench):
    """People leave while releases are made: what all people spent is what all releases charged."""
    study = await cluster.study()
    await cluster.crowd(study, 60, epsilon=2)
    share = uniform(0.02)

    async def leave(number: int) -> None:
        await asyncio.sleep(0.01 * number)
        await cluster.replicas[number % 3].contributions.withdraw(study, KEY.digest(f"crowd-{number}"))

    async with asyncio.timeout(PATIENCE):
        leaving = asyncio.gather(*(leave(number) for number in range(30)))
        releases, refused = await together(
            cluster.replicas[number % 3].releases.release(study, share, None, fresh=True)
            for number in range(24)
        )
        await leaving
    assert (len(releases), refused) == (24, {})
    charged = sum(people(release) for release in releases) * 2 * MICRO // 50
    left = await cluster.value("SELECT sum(carried)::bigint FROM contribution WHERE value IS NULL")
    stayed = await cluster.value("SELECT sum(count * spent)::bigint FROM cohort")
    assert left + stayed == charged
    await cluster.assert_clean()


# --------------------------------------------------------------------------- sealing and folding


async def test_no_contribution_in_flight_is_lost_or_counted_twice(cluster: Workbench):
    study = await cluster.study()
    acknowledged = submitted = 0
    done = asyncio.Event()

    async def single(worker: int) -> None:
        nonlocal acknowledged, submitted
        for number in range(40):
            submitted += 1
            one = offer(f"single-{worker}-{number}")
            assert (await cluster.replicas[worker % 3].contributions.contribute(study, one)).created
            acknowledged += 1

    async def bulk(worker: int) -> None:
        nonlocal acknowledged, submitted
        for number in range(5):
            records = [offer(f"bulk-{worker}-{number}-{place}") for place in range(200)]
            submitted += len(records)
            result = await cluster.replicas[worker % 3].contributions.apply_batch(study, batch(records))
            assert result.created == len(records)
            acknowledged += len(records)

    async def release(worker: int) -> None:
        while not done.is_set():
            before = acknowledged
            made = await cluster.replicas[worker].releases.release(study, uniform(0.001), None, fresh=True)
            assert before <= people(made) <= submitted
            await asyncio.sleep(0.01)

    async with asyncio.timeout(2 * PATIENCE):
        await cluster.services.contributions.contribute(study, offer("first"))
        acknowledged = submitted = 1
        releasing = asyncio.gather(*(release(worker) for worker in range(3)))
        await asyncio.gather(*(single(worker) for worker in range(6)), *(bulk(worker) for worker in range(3)))
        done.set()
        await releasing
    final = await cluster.services.releases.release(study, uniform(0.001), None, fresh=True)
    assert people(final) == acknowledged == 1 + 6 * 40 + 3 * 5 * 200
    assert await cluster.members(study) == acknowledged
    assert await cluster.value("SELECT count(*)::int FROM release") > 5
    await cluster.assert_clean()


async def test_a_seal_waits_for_what_is_in_flight(database_url: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        sealing: list[asyncio.Task[cohorts.Epochs]] = []

        async def seal() -> None:
            database = bench.replicas[1].database
            sealing.append(
                asyncio.create_task(database.run_tx("test.seal", lambda c: cohorts.seal(c, study.id)))
            )
            await blocked(sealing[0])

        slow.interceptions["contribution.accept"] = Interception(before_commit=seal)
        await bench.services.contributions.contribute(study, offer("alice"))
        assert (await sealing[0]).sealed == 1, "the epoch of the contribution that was in flight"


async def test_a_fold_in_progress_holds_up_neither_contributions_nor_seals(database_url: str):
    """Also not through somebody who waits for the fold in order to leave."""
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        await bench.crowd(study, 3)
        other = bench.replicas[1]
        leaving: list[asyncio.Task[None]] = []

        async def meanwhile() -> None:
            leaving.append(asyncio.create_task(other.contributions.withdraw(study, KEY.digest("crowd-0"))))
            await blocked(leaving[0])
            async with asyncio.timeout(PATIENCE / 3):
                await other.database.run_tx("test.seal", lambda c: cohorts.seal(c, study.id))
                await other.contributions.contribute(study, offer("alice"))

        slow.interceptions["release.fold"] = Interception(before_commit=meanwhile)
        await bench.services.releases.release(study, uniform(0.5), None, fresh=True)
        await leaving[0]
        await bench.assert_clean()


@pytest.mark.parametrize("kind", ["replaced", "withdrawn"])
async def test_a_value_that_changes_while_it_is_folded_is_folded_once(database_url: str, kind: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        await bench.crowd(study, 3)
        other = bench.replicas[1]
        changing: list[asyncio.Task[Accepted] | asyncio.Task[None]] = []

        async def change() -> None:
            if kind == "replaced":
                call = asyncio.create_task(other.contributions.replace(study, offer("crowd-0", value=1)))
                changing.append(call)
            else:
                changing.append(
                    asyncio.create_task(other.contributions.withdraw(study, KEY.digest("crowd-0")))
                )
            done, _ = await asyncio.wait(changing, timeout=BLOCKED)
            assert not done

        slow.interceptions["release.fold"] = Interception(before_commit=change)
        await bench.services.releases.release(study, uniform(0.5), None, fresh=True)
        await changing[0]
        await bench.fold(study)
        await bench.assert_clean()
        assert await bench.members(study) == (3 if kind == "replaced" else 2)


async def test_values_change_and_people_come_and_go_while_releases_are_made(cluster: Workbench):
    study = await cluster.study()
    await cluster.crowd(study, 30, epsilon=5)
    done = asyncio.Event()
    codes: Counter[str] = Counter()

    async def restless(number: int) -> None:
        contributions = cluster.replicas[number % 3].contributions
        name = f"crowd-{number}"
        for step in range(8):
            new = offer(name, epsilon=5, value=step / 8, trust=Trust.PUBLIC if step == 5 else Trust.CENTRAL)
            if step % 3 == 2:
                await contributions.withdraw(study, KEY.digest(name))
                await contributions.contribute(study, new)
            else:
                await contributions.replace(study, new)
            codes[Outcome.REPLACED.value] += 1

    async def release(worker: int) -> None:
        while not done.is_set():
            made = await cluster.replicas[worker].releases.release(study, uniform(0.001), None, fresh=True)
            assert people(made) <= 30
            codes["released"] += 1

    async with asyncio.timeout(2 * PATIENCE):
        releasing = asyncio.gather(*(release(worker) for worker in range(2)))
        await asyncio.gather(*(restless(number) for number in range(15)))
        done.set()
        await releasing
    assert codes["released"] > 2
    await cluster.assert_clean()
    await cluster.fold(study)
    assert await cluster.members(study) == 30
    await cluster.assert_clean()


async def test_an_add_remove_study_answers_everybody_and_charges_only_who_can_pay(cluster: Workbench):
    study = await cluster.study(
        relation=Relation.ADD_REMOVE_ONE, trust=frozenset({Trust.CENTRAL}), default_share=MICRO // 4
    )
    await cluster.crowd(study, 10)
    ask = of_offers(Relation.ADD_REMOVE_ONE, Ask())
    releases, refused = await together(
        cluster.replicas[number % 3].releases.release(study, ask, None, fresh=True) for number in range(12)
    )
    assert (len(releases), refused) == (12, {})
    assert await cluster.value("SELECT count(*)::int FROM charge") == 4
    assert await cluster.value("SELECT spent FROM cohort") == MICRO
    await cluster.assert_clean()


async def test_a_release_takes_at_most_four_transactions(database_url: str):
    counted = InterceptedDatabase.open(database_url)
    async with workbench(database_url, databases=[counted]) as bench:
        study = await bench.study()
        await bench.crowd(study, 5)
        counted.begun.clear()
        made = await bench.services.releases.release(study, uniform(0.25), key("k"), fresh=True)
        assert counted.begun == dict.fromkeys(
            ("release.seal", "release.fold", "release.cohorts", "release.publish"), 1
        )
        counted.begun.clear()
        again = await bench.services.releases.release(study, uniform(0.25), key("k"), fresh=True)
        assert counted.begun == {"release.seal": 1}
        assert (
            again
            == replace(made, replayed=True)
            == replace(await bench.services.releases.get(made.id), replayed=True)
        )
