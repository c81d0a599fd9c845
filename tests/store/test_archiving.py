"""Archiving: what was reserved and not spent is freed for every person, whatever goes on meanwhile."""

import asyncio
from collections.abc import Awaitable

import asyncpg
import pytest

from app.core.epsilon import MICRO
from app.core.errors import ServiceError, StudyArchived, StudyRetired
from app.core.study import LocalMechanism, StudyState, Trust
from app.services.statistics.questions import Ask
from app.store import migrate
from tests.store.faults import Crash, InterceptedDatabase, Interception, crash
from tests.store.session_kit import Stage
from tests.store.test_migrate import downgrade
from tests.store.workbench import ADMIN, KEY, Workbench, batch, in_mu2, offer, workbench

pytestmark = pytest.mark.long

PATIENCE = 60
"""Seconds after which something that should be done counts as stuck."""

HALF = Ask(estimator="uniform", share=MICRO // 2)


async def archive(bench: Workbench, slug: str) -> StudyState:
    return (await bench.services.studies.archive(slug, ADMIN, "the week is over")).state


async def mixed(bench: Workbench) -> tuple[str, Stage]:
    """A study with people who were charged, are not folded, replaced, withdrew, are local or public."""
    study = await bench.study(default_share=MICRO // 2)
    slug, contributions = study.definition.slug, bench.services.contributions
    await bench.crowd(study, 20, epsilon=2)
    await contributions.contribute(study, offer("local", epsilon=3, trust=Trust.LOCAL))
    await contributions.contribute(study, offer("public", trust=Trust.PUBLIC))
    await contributions.contribute(study, offer("replaced", epsilon=2))
    await contributions.contribute(study, offer("withdrawn", epsilon=2))
    await bench.services.releases.release(study, HALF, None)
    await contributions.replace(study, offer("replaced", epsilon=4, value=0.25))
    await contributions.withdraw(study, KEY.digest("withdrawn"))
    await contributions.contribute(study, offer("late", epsilon=5))
    stage = await Stage.set(bench, study)
    await stage.answer("player", 1)
    return slug, stage


SPENT = {"crowd-0": 1, "local": 3, "public": 0, "replaced": 1, "withdrawn": 1, "late": 0, "player": 2}
"""Epsilon that each kind of person has spent in the mixed study."""


async def test_what_each_person_did_not_spend_is_free_again(bench: Workbench) -> None:
    slug, stage = await mixed(bench)
    assert await bench.reserved("late") == 5 * MICRO
    assert await archive(bench, slug) is StudyState.ARCHIVED
    for name, spent in SPENT.items():
        statement = await bench.services.budgets.statement(KEY.digest(name))
        assert (statement.account.reserved, statement.account.spent) == (spent * MICRO, spent * MICRO), name
        for line in statement.studies:
            assert (line.state, line.epsilon) == (StudyState.ARCHIVED, line.spent)
    assert (await stage.now()).head.state == "finished"
    await bench.assert_clean()
    assert await archive(bench, slug) is StudyState.ARCHIVED
    await bench.assert_clean()


async def test_who_withdraws_afterwards_is_freed_nothing_twice(bench: Workbench) -> None:
    slug, _ = await mixed(bench)
    await archive(bench, slug)
    study = await bench.services.studies.read(slug)
    for name, spent in SPENT.items():
        if name != "player":
            await bench.services.contributions.withdraw(study, KEY.digest(name))
            assert await bench.reserved(name) == spent * MICRO
    await bench.assert_clean()


async def test_mu2_is_freed_too(bench: Workbench) -> None:
    study = await bench.study(delta=1_000_000, local_mechanism=LocalMechanism.GAUSSIAN)
    people = [in_mu2(offer(f"p{number}"), study) for number in range(5)]
    await bench.services.contributions.apply_batch(study, batch(people))
    await bench.services.releases.release(study, Ask(estimator="uniform", share=MICRO // 4), None)
    reserved = "SELECT sum(gaussian_reserved)::bigint FROM subject"
    assert await bench.value(reserved) == 5 * people[0].epsilon
    await archive(bench, study.definition.slug)
    assert await bench.value(reserved) == 5 * (people[0].epsilon // 4)
    statement = await bench.services.budgets.statement(KEY.digest("p0"))
    assert statement.account.gaussian is not None
    assert statement.account.gaussian.mu2.remaining == statement.account.gaussian_budget - (
        people[0].epsilon // 4
    )
    await bench.assert_clean()


async def test_no_other_end_follows(bench: Workbench) -> None:
    archived, retired = await bench.study(), await bench.study()
    await archive(bench, archived.definition.slug)
    with pytest.raises(StudyArchived):
        await bench.services.studies.retire(archived.definition.slug, ADMIN)
    await bench.services.studies.retire(retired.definition.slug, ADMIN)
    with pytest.raises(StudyRetired):
        await archive(bench, retired.definition.slug)
    states = await bench.fetch("SELECT state FROM study ORDER BY id")
    assert [row["state"] for row in states] == ["archived", "retired"]


async def test_a_crash_on_the_way_changes_nothing(database_url: str) -> None:
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, databases=[database]) as bench:
        slug, _ = await mixed(bench)
        before = await bench.fetch("SELECT id, reserved FROM subject ORDER BY id")
        database.interceptions["study.end"] = Interception(before_commit=crash)
        with pytest.raises(Crash):
            await archive(bench, slug)
        assert await bench.fetch("SELECT id, reserved FROM subject ORDER BY id") == before
        assert (await bench.services.studies.read(slug)).state is StudyState.OPEN
        await bench.assert_clean()
        database.interceptions["study.end"] = Interception(after_commit=crash)
        with pytest.raises(Crash):
            await archive(bench, slug)
        await bench.assert_clean()
        await archive(bench, slug)
        assert await bench.reserved("late") == 0
        await bench.assert_clean()


async def test_a_study_called_archived_that_freed_nothing_is_found(bench: Workbench) -> None:
    slug, stage = await mixed(bench)
    await stage.finish()
    await bench.execute(f"UPDATE study SET state = 'archived' WHERE slug = '{slug}'")
    assert [one.rule for one in await bench.findings()] == [
        "reserved is not the sum of a subject's reservations"
    ]


async def test_studies_are_archived_while_their_people_do_everything_else(database_url: str) -> None:
    databases = [InterceptedDatabase.open(database_url) for _ in range(3)]
    async with workbench(database_url, replicas=3, databases=databases) as bench:
        ending = [await bench.study() for _ in range(4)]
        others = [await bench.study() for _ in range(4)]
        people = [offer(f"p{number}", epsilon=0.5) for number in range(200)]
        for study in ending:
            await bench.services.contributions.apply_batch(study, batch(people))
        stages = [await Stage.set(bench, study) for study in ending[:2]]

        def calls() -> list[Awaitable[object]]:
            one = bench.replicas[0].contributions
            made: list[Awaitable[object]] = []
            for number, study in enumerate(ending):
                services = bench.replicas[number % 3]
                made += [
                    services.releases.release(study, HALF, None),
                    one.withdraw(study, KEY.digest(f"p{number}")),
                    services.studies.archive(study.definition.slug, ADMIN, "over"),
                    services.studies.archive(study.definition.slug, ADMIN, "over"),
                    services.contributions.contribute(study, offer(f"new-{number}", epsilon=0.5)),
                    services.contributions.replace(study, offer(f"p{number + 9}", epsilon=1, value=0.1)),
                ]
            for number, study in enumerate(others):
                order = people[:: -1 if number % 2 else 1]
                made.append(bench.replicas[number % 3].contributions.apply_batch(study, batch(order)))
            made += [stage.answer(f"p{number}", 1) for stage in stages for number in range(20, 40)]
            return made

        async with asyncio.timeout(PATIENCE):
            results = await asyncio.gather(*calls(), return_exceptions=True)
        assert [
            one for one in results if isinstance(one, BaseException) and not isinstance(one, ServiceError)
        ] == []
        states = {
            row["state"]
            for row in await bench.fetch(
                "SELECT state FROM study WHERE id = ANY($1)", [one.id for one in ending]
            )
        }
        assert states == {"archived"}
        ended = sum(database.begun["study.end"] for database in databases)
        assert ended == 2 * len(ending), "a deadlock would have been tried again"
        await bench.assert_clean()


async def test_an_older_version_holds_what_was_spent(empty_database_url: str) -> None:
    await migrate.upgrade(empty_database_url)
    async with workbench(empty_database_url) as bench:
        slug, _ = await mixed(bench)
        await archive(bench, slug)
    await downgrade(empty_database_url, "0015")
    connection = await asyncpg.connect(empty_database_url)
    try:
        wrong = await connection.fetch("""
            SELECT id FROM subject LEFT JOIN (
                SELECT subject_id, sum(epsilon) AS epsilon FROM (
                    SELECT subject_id, epsilon FROM contribution
                    UNION ALL SELECT subject_id, reserved FROM enrolment
                ) part GROUP BY subject_id
            ) held ON held.subject_id = id WHERE reserved <> coalesce(held.epsilon, 0)
        """)
        assert wrong == []
        assert await connection.fetchval("SELECT count(*) FROM contribution WHERE value IS NOT NULL") == 0
        assert await connection.fetchval("SELECT sum(count) FROM cohort") == 0
        assert await connection.fetchval("SELECT state::text FROM study") == "retired"
    finally:
        await connection.close()
    await migrate.upgrade(empty_database_url)
    async with workbench(empty_database_url) as bench:
        await bench.assert_clean()


@pytest.mark.parametrize("name", ["study.end", "budget.raise"])
async def test_what_changes_very_many_accounts_holds_back_all_others(database_url: str, name: str) -> None:
    """Also those that stay as they are: it takes accounts in no order, which others could not follow."""
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study, other = await bench.study(), await bench.study()
        await bench.crowd(study, 5)
        waiting: list[asyncio.Task[object]] = []

        async def contribute() -> None:
            coming = bench.replicas[1].contributions.contribute(other, offer("stranger"))
            waiting.append(asyncio.create_task(coming))
            done, _ = await asyncio.wait(waiting, timeout=0.3)
            assert not done

        database.interceptions[name] = Interception(before_commit=contribute)
        if name == "study.end":
            await archive(bench, study.definition.slug)
        else:
            await bench.services.budgets.raise_all(
                epsilon=MICRO, at_most=None, reason="more", principal=ADMIN
            )
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*waiting)
        assert database.begun[name] == len(waiting) == 1
        await bench.assert_clean()
