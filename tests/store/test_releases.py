"""What is published stays as it was, and is published together with its charges or not at all."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from app.core.epsilon import MICRO
from app.core.errors import InternalFault, Unavailable
from app.core.release import Charge, Draft, Facts
from app.core.study import Study
from app.mechanisms import laplace
from app.services.statistics.questions import Ask
from app.store import releases as store
from app.store.database import Database
from tests.store.faults import Crash, InterceptedDatabase, Interception, crash
from tests.store.workbench import KEY, Workbench, connected, key, offer, workbench

HALF = Ask(estimator="uniform", share=MICRO // 2)


async def published(bench: Workbench) -> dict[str, int]:
    """Rows that only a release writes, and what was charged."""
    return {
        "releases": await bench.value("SELECT count(*)::int FROM release"),
        "charges": await bench.value("SELECT count(*)::int FROM charge"),
        "keys": await bench.value("SELECT count(*)::int FROM idempotency"),
        "chain": await bench.value("SELECT number::int FROM chain"),
        "spent": await bench.value("SELECT coalesce(sum(spent), 0)::int FROM cohort"),
    }


NOTHING = {"releases": 0, "charges": 0, "keys": 0, "chain": 0, "spent": 0}


async def test_releases_and_charges_are_append_only(bench: Workbench):
    study = await bench.study()
    await bench.crowd(study, 3)
    await bench.services.releases.release(study, HALF, None)
    for statement in (
        "UPDATE release SET body = body",
        "DELETE FROM release",
        "TRUNCATE release CASCADE",
        "UPDATE charge_block SET amounts = amounts",
        "DELETE FROM charge_block WHERE false",
        "TRUNCATE charge_block",
    ):
        with pytest.raises(asyncpg.RaiseError, match="is append-only"):
            await bench.execute(statement)
    await bench.assert_clean()


async def test_the_database_itself_refuses_what_must_never_be(bench: Workbench):
    study = await bench.study()
    await bench.crowd(study, 3)
    await bench.services.releases.release(study, HALF, None)
    for statement in (
        "UPDATE subject SET reserved = budget + 1",
        "UPDATE subject SET reserved = -1",
        "UPDATE subject SET budget = reserved - 1",
        "UPDATE cohort SET spent = epsilon + 1",
        "UPDATE cohort SET spent = carried - 1",
        "UPDATE cohort SET count = -1",
        "UPDATE contribution SET carried = epsilon + 1",
        "UPDATE contribution SET carried = -1",
        "UPDATE study SET folded_epoch = epoch",
        "INSERT INTO chain VALUES (2, 0, '')",
        *(
            f"INSERT INTO charge_block VALUES (gen_random_uuid(), {cohorts}, {amounts})"
            for cohorts, amounts in (
                ("'{1}'", "'{-1}'"),
                ("'{1,2}'", "'{1}'"),
                ("'{}'", "'{}'"),
                ("'{1,NULL}'", "'{1,1}'"),
                ("'{1,2}'", "'{1,NULL}'"),
            )
        ),
    ):
        with pytest.raises(asyncpg.CheckViolationError):
            await bench.execute(statement)


Asking = Callable[[Workbench, Study], Awaitable[bytes]]


async def by_get(bench: Workbench, study: Study) -> bytes:
    return (await bench.services.releases.current(study, HALF)).release.body


async def by_post(bench: Workbench, study: Study) -> bytes:
    return (await bench.services.releases.release(study, HALF, key("k"))).body


@pytest.mark.parametrize("asking", [by_get, by_post])
async def test_a_crash_before_the_commit_publishes_nothing_and_costs_nothing(
    database_url: str, asking: Asking
):
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 3)
        database.interceptions["release.publish"] = Interception(before_commit=crash)
        with pytest.raises(Crash):
            await asking(bench, study)
        assert await published(bench) == NOTHING
        body = await asking(bench, study)
        assert body == await asking(bench, study)
        assert (await published(bench))["spent"] == MICRO // 2
        await bench.assert_clean()


@pytest.mark.parametrize("asking", [by_get, by_post])
async def test_a_crash_after_the_commit_loses_neither_answer_nor_charge(database_url: str, asking: Asking):
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 3)
        database.interceptions["release.publish"] = Interception(after_commit=crash)
        with pytest.raises(Crash):
            await asking(bench, study)
        before = await published(bench)
        assert (before["releases"], before["spent"]) == (1, MICRO // 2)
        body = await asking(bench, study)
        assert body == bytes(await bench.value("SELECT body FROM release"))
        assert await published(bench) == before
        await bench.assert_clean()


FAILING_COMMIT = (
    """CREATE FUNCTION fail_commit() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN RAISE EXCEPTION 'the commit fails'; END $$""",
    """CREATE CONSTRAINT TRIGGER fail_commit AFTER INSERT ON release
       DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail_commit()""",
)


@pytest.mark.parametrize("asking", [by_get, by_post])
async def test_a_commit_that_fails_is_no_answer_and_no_charge(bench: Workbench, asking: Asking):
    study = await bench.study()
    await bench.crowd(study, 3)
    await bench.execute(*FAILING_COMMIT)
    with pytest.raises(DBAPIError, match="the commit fails"):
        await asking(bench, study)
    assert await published(bench) == NOTHING
    await bench.execute("DROP FUNCTION fail_commit CASCADE")
    assert await asking(bench, study)
    await bench.assert_clean()


async def test_a_connection_that_is_lost_in_the_commit_is_reported_as_such(bench: Workbench):
    study = await bench.study()
    await bench.crowd(study, 3)
    lost = FAILING_COMMIT[0].replace("RAISE EXCEPTION 'the commit fails'", "PERFORM pg_terminate_backend(%s)")
    # The session may end itself; that it is ours is all the right it needs.
    await bench.execute(lost % "pg_backend_pid()", FAILING_COMMIT[1])
    with pytest.raises(Unavailable):
        await by_post(bench, study)
    await bench.execute("DROP FUNCTION fail_commit CASCADE")
    body = await by_post(bench, study)
    assert await by_post(bench, study) == body
    assert (await published(bench))["releases"] == 1
    await bench.assert_clean()


async def test_without_entropy_there_is_no_answer_and_no_charge(bench: Workbench, monkeypatch):
    study = await bench.study()
    await bench.crowd(study, 3)

    def no_entropy(scale: float) -> Callable[[list[int]], list[int]]:
        def fail(_: list[int]) -> list[int]:
            raise OSError("getrandom failed")

        return fail

    with monkeypatch.context() as patch:
        patch.setattr(laplace, "_measurement", no_entropy)
        with pytest.raises(InternalFault):
            await by_post(bench, study)
    assert await published(bench) == NOTHING
    assert await by_post(bench, study)


async def test_the_answer_is_the_committed_row(bench: Workbench):
    study = await bench.study()
    await bench.crowd(study, 3)
    release = await bench.services.releases.release(study, HALF, None)
    async with connected(bench.url) as connection:
        row = await connection.fetchrow("SELECT id, body FROM release")
    assert row is not None
    assert bytes(row["body"]) == release.body
    assert json.loads(release.body)["id"] == str(row["id"]) == str(release.id)
    assert (await bench.services.releases.get(release.id)).body == release.body


async def test_polling_spends_once_and_tells_of_new_contributions(bench: Workbench):
    study = await bench.study()
    await bench.crowd(study, 3)
    answers = [await bench.services.releases.current(study, HALF) for _ in range(3)]
    await bench.services.contributions.contribute(study, offer("alice"))
    answers += [await bench.services.releases.current(study, HALF) for _ in range(3)]
    assert len({answer.release.body for answer in answers}) == 1
    assert [answer.new_contributions for answer in answers] == [False] * 3 + [True] * 3
    assert (await published(bench))["spent"] == MICRO // 2
    renewed = await bench.services.releases.release(study, HALF, None)
    after = await bench.services.releases.current(study, HALF)
    assert (after.release.body, after.new_contributions) == (renewed.body, False)


def _draft(study: Study) -> Draft:
    """An answer of an estimator of the future, for nothing."""
    return Draft(
        id=uuid4(),
        study_id=study.id,
        question=bytes(32),
        epoch=1,
        estimator="of the future",
        estimator_version=1,
        noise="{}",
        body=b'{"epsilon_max": 0.0}',
        facts=Facts(epsilon_max=0),
        charges=(),
        used=(),
        created_at=datetime.now(UTC),
    )


async def test_the_chain_holds_for_every_number_that_noise_may_have(bench: Workbench):
    """jsonb gives 2e16 back as an integer; that must not look like tampering."""
    study = await bench.study()
    await bench.crowd(study, 1)
    await bench.fold(study)
    scales = [2.0**54, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, 1073741824000000.0, 0.1, 3.0]
    noise = {"mechanism": "Some", "scales": scales, "steps": 12, "exact": True, "none": None}
    draft = replace(_draft(study), noise=json.dumps(noise))

    async def body(connection):
        await store.publish(connection, draft, head=await store.lock_chain(connection, draft.study_id))

    await bench.services.database.run_tx("test.publish", body)
    await bench.assert_clean()


@pytest.mark.parametrize("fresh", [True, False])
async def test_a_release_takes_four_transactions_at_most(bench: Workbench, monkeypatch, fresh: bool):
    study = await bench.study()
    run_tx, names = Database.run_tx, []

    async def counted(database: Database, name: str, *rest: Any, **options: Any) -> Any:
        names.append(name)
        return await run_tx(database, name, *rest, **options)

    monkeypatch.setattr(Database, "run_tx", counted)
    taken = []
    for share in (MICRO // 4, MICRO // 2):
        await bench.crowd(study, 3, prefix=f"people-{share}")
        names.clear()
        ask = Ask(share=share)
        await bench.services.releases.release(study, ask, key(f"{share}"), fresh=fresh)
        taken.append(list(names))
    assert taken == [["release.seal", "release.fold", "release.cohorts", "release.publish"]] * 2


async def test_a_draft_that_charges_people_who_are_not_in_it_is_not_published(bench: Workbench):
    study = await bench.study()
    await bench.crowd(study, 2)
    await bench.fold(study)
    cohort = await bench.value("SELECT id FROM cohort")
    draft = replace(_draft(study), charges=(Charge(cohort_id=cohort, epsilon=1),))

    async def body(connection):
        await store.publish(connection, draft, head=await store.lock_chain(connection, study.id))

    with pytest.raises(InternalFault, match="not in it"):
        await bench.services.database.run_tx("test.publish", body)
    assert await published(bench) == NOTHING


async def test_what_a_release_cost_shows_on_every_statement(bench: Workbench):
    study = await bench.study()
    await bench.services.contributions.contribute(study, offer("alice", epsilon=1))
    await bench.services.contributions.contribute(study, offer("bob", epsilon=4))
    release = await bench.services.releases.release(study, HALF, None)
    (charges,) = await bench.services.releases.charges([release])
    assert [charge.epsilon for charge in charges] == [MICRO // 2, MICRO // 2]
    for name, epsilon in (("alice", 1), ("bob", 4)):
        statement = await bench.services.budgets.statement(KEY.digest(name))
        assert statement.account.reserved == epsilon * MICRO
        assert statement.account.spent == statement.studies[0].spent == MICRO // 2


async def test_the_charges_of_a_page_are_those_of_its_releases(bench: Workbench):
    study = await bench.study()
    await bench.crowd(study, 10)
    made = [
        await bench.services.releases.release(study, Ask(estimator="uniform", share=share), None, fresh=True)
        for share in (MICRO // 4, MICRO // 2)
    ]
    releases = bench.services.releases
    found = await releases.charges(made)
    assert found == [(await releases.charges([one]))[0] for one in made]
    assert [[charge.epsilon for charge in charges] for charges in found] == [[MICRO // 4], [MICRO // 2]]
