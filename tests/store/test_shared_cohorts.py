"""Epochs that share cohorts: the same charges, budgets and answers as where each has its own."""

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.core.epsilon import MICRO
from app.core.study import LocalMechanism, Relation, Study, Trust
from app.services.statistics.publishing import FREE_ATTEMPTS
from app.services.statistics.questions import Ask
from app.store import cohorts
from app.store.sql import Sql
from tests.store.faults import Crash, InterceptedDatabase, Interception, crash
from tests.store.session_kit import Stage
from tests.store.workbench import KEY, Workbench, of_offers, offer, workbench

SMALL = Ask(share=MICRO // 20)
NOISY = {
    "id",
    "estimate",
    "anytime",
    "interval",
    "population_interval",
    "variance",
    "sd",
    "noisy_count",
    "created_at",
    "about",
}
"""What differs between two answers to the same question by the noise alone, or by the second."""


def apart() -> Sql[Any]:
    """The fold, but people join no cohort that is there."""
    statement = cohorts.FOLD.text
    for number, name in reversed([*enumerate(cohorts.FOLD._names, start=1)]):
        statement = statement.replace(f"${number}", f":{name}")
    assert "WHERE study_id = :study_id AND (trust" in statement
    return Sql(statement.replace("WHERE study_id = :study_id AND (trust", "WHERE false AND (trust"))


async def history(bench: Workbench, relation: Relation, seed: int) -> Mapping[str, object]:
    """Live through some epochs; what people are charged, and what answers say beside their noise."""
    source = random.Random(seed)
    study = await bench.study(relation=relation, local_mechanism=LocalMechanism.LAPLACE)
    names: list[str] = []
    answers = []
    small = of_offers(relation, SMALL)
    if relation is Relation.ADD_REMOVE_ONE:
        # Nor is it left to noise what people weigh at most: here those who offer more weigh more, and pay it.
        small = replace(small, expected_size=20)
    for epoch in range(7):
        for number in range(source.randrange(1, 9)):
            names.append(f"{epoch}-{number}")
            one = offer(names[-1], epsilon=source.choice([1, 2]), trust=source.choice([*Trust]))
            await bench.services.contributions.contribute(study, one)
        for name in source.sample(names, source.randrange(min(3, len(names)))):
            if source.random() < 0.5:
                await bench.services.contributions.withdraw(study, KEY.digest(name))
                names.remove(name)
            else:
                again = offer(name, epsilon=2, trust=source.choice([Trust.CENTRAL, Trust.PUBLIC]))
                await bench.services.contributions.replace(study, again)
        # Most epochs end without a charge.
        await bench.fold(study)
        if source.random() < 0.3 or epoch == 6:
            fresh = source.random() < 0.5
            made = await bench.services.releases.release(study, small, None, fresh=fresh, allow_worse=True)
            body = json.loads(made.body)
            answers.append({name: value for name, value in body.items() if name not in NOISY})
        await bench.assert_clean()
    people = {}
    for name in sorted(set(names)):
        statement = await bench.services.budgets.statement(KEY.digest(name))
        people[name] = (statement.account.reserved, statement.account.spent, await charges(bench, name))
    plan = await bench.services.releases.plan(study, small)
    for answer in answers:
        for hidden in ("study", "refines", "standard_error", "predicted_error", "error"):
            # They are read off former noisy answers too: of the two histories these differ.
            answer.pop(hidden, None)
    return {"people": people, "answers": answers, "left": [one.epsilon_max for one in plan.estimators]}


@pytest.mark.long
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("seed", range(3))
async def test_people_pay_the_same_where_epochs_share_cohorts(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, relation: Relation, seed: int
):
    shared = await history(bench, relation, seed)
    several = "SELECT count(*)::int FROM (SELECT FROM lineage GROUP BY cohort_id HAVING count(*) > 1) a"
    assert await bench.value(several) > 0
    everyone = await bench.fetch("SELECT subject_id FROM contribution")
    # The same people again, so their reservations of before are taken off.
    await bench.execute("DELETE FROM contribution", "UPDATE subject SET reserved = 0")
    await bench.execute("UPDATE cohort SET count = 0, total = 0, total_squares = 0", "DELETE FROM tally")
    assert everyone
    monkeypatch.setattr(cohorts, "FOLD", apart())
    monkeypatch.setattr(cohorts, "UNITE", NOT_UNITED)
    before = await bench.value(several)
    assert await history(bench, relation, seed) == shared
    assert await bench.value(several) == before


async def test_only_those_who_have_paid_nothing_share_a_cohort(bench: Workbench):
    study = await bench.study()

    async def epoch(number: int) -> None:
        for trust in Trust:
            one = offer(f"{trust}-{number}", trust=trust)
            await bench.services.contributions.contribute(study, one)
        await bench.fold(study)

    async def counts() -> dict[str, list[int]]:
        rows = await bench.fetch("SELECT trust::text, count::int FROM cohort ORDER BY id")
        return {trust.value: [row["count"] for row in rows if row["trust"] == trust.value] for trust in Trust}

    for number in range(3):
        await epoch(number)
    assert await counts() == {"central": [3], "local": [3], "public": [1, 1, 1]}
    await bench.services.releases.release(study, SMALL, None)
    for number in range(3, 5):
        await epoch(number)
    assert await counts() == {"central": [3, 2], "local": [5], "public": [1] * 5}
    await bench.services.contributions.withdraw(study, KEY.digest("central-4"))
    await bench.services.contributions.withdraw(study, KEY.digest("local-0"))
    assert await counts() == {"central": [3, 1], "local": [4], "public": [1] * 5}
    spent = [
        (await bench.services.budgets.statement(KEY.digest(f"central-{number}"))).account.spent
        for number in range(5)
    ]
    assert spent == [MICRO // 20] * 3 + [0, 0]
    await bench.assert_clean()


async def test_many_epochs_are_one_cohort_for_each_epsilon(bench: Workbench):
    study = await bench.study()
    for number in range(12):
        await bench.crowd(study, 2, epsilon=1 + number % 3, prefix=f"epoch-{number}")
        await bench.services.database.run_tx("test.seal", lambda c: cohorts.seal(c, study.id))
    await bench.services.releases.release(study, SMALL, None)
    assert await bench.value("SELECT count(*)::int FROM cohort") == 3
    assert await bench.value("SELECT count(*)::int FROM lineage") == 12
    await bench.assert_clean()


MOMENT = "release.publish"


@pytest.mark.parametrize("held", [False, True])
async def test_a_draft_from_before_another_person_joined_is_never_published(database_url: str, held: bool):
    """One leaves and one comes: the count is what it was, and the people are not."""
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study(trust=frozenset({Trust.CENTRAL}))
        await bench.crowd(study, 9)
        other = bench.replicas[1]
        turns = 0

        async def change() -> None:
            nonlocal turns
            await other.contributions.withdraw(study, KEY.digest(f"crowd-{turns}"))
            await other.contributions.contribute(study, offer(f"new-{turns}"))
            await other.database.run_tx("test.seal", lambda c: cohorts.seal(c, study.id))
            await other.database.run_tx("test.fold", lambda c: cohorts.fold(c, study.id))
            turns += 1
            if held and turns < FREE_ATTEMPTS:
                slow.interceptions[MOMENT] = Interception(first=change)

        slow.interceptions[MOMENT] = Interception(first=change)
        release = await bench.services.releases.release(study, SMALL, None)
        assert json.loads(release.body)["people"] == 9
        assert slow.begun[MOMENT] == (FREE_ATTEMPTS if held else 2)
        assert await bench.value("SELECT count(*)::int FROM cohort") == 1
        for number in range(turns):
            gone = await bench.services.budgets.statement(KEY.digest(f"crowd-{number}"))
            came = await bench.services.budgets.statement(KEY.digest(f"new-{number}"))
            assert (gone.account.spent, came.account.spent) == (0, MICRO // 20)
        await bench.assert_clean()


async def test_a_process_that_dies_while_it_folds_has_let_no_person_in(database_url: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study: Study = await bench.study()
        await bench.crowd(study, 3)
        await bench.fold(study)
        await bench.crowd(study, 4, prefix="late")
        slow.interceptions["release.fold"] = Interception(before_commit=crash)
        with pytest.raises(Crash):
            await bench.services.releases.release(study, SMALL, None)
        assert await bench.fetch("SELECT count::int, epoch FROM cohort") == [{"count": 3, "epoch": 1}]
        await bench.assert_clean()
        await bench.replicas[1].releases.release(study, SMALL, None)
        assert await bench.fetch("SELECT count::int, epoch FROM cohort") == [{"count": 7, "epoch": 2}]
        await bench.assert_clean()


NOT_UNITED = Sql[Any]("SELECT 1 WHERE CAST(:study_id AS int) IS NULL OR CAST(:epoch AS int) IS NULL")


async def charges(bench: Workbench, name: str) -> list[int]:
    """What each charge of a person came to, the newest first."""
    page = await bench.services.budgets.charges(KEY.digest(name), 100, None, None)
    return [one.cost for one in page.items]


async def rows(bench: Workbench) -> list[tuple[int, int, int]]:
    """People, what each has spent [per mill], and former cohorts of each, of each cohort that has people."""
    found = await bench.fetch("""
        SELECT count::int AS people, (spent / 1000)::int AS spent, max(cardinality(former)) AS former
        FROM cohort g JOIN lineage ON cohort_id = g.id WHERE count > 0 GROUP BY g.id ORDER BY 2, 1
    """)
    return [(row["people"], row["spent"], row["former"]) for row in found]


def transformed(share: int = MICRO) -> Ask:
    """A mean where the number of people is secret, about all of these."""
    return of_offers(Relation.ADD_REMOVE_ONE, Ask(estimator="transformed", share=share))


async def days(bench: Workbench, study: Study, number: int, share: int) -> None:
    """Some days, on each of which two people come and an answer charges who can pay."""
    for day in range(number):
        await bench.crowd(study, 2, prefix=f"day-{day}")
        await bench.services.releases.release(study, transformed(share), None)


async def test_cohorts_that_were_charged_alike_become_one(bench: Workbench):
    """Where all have spent all, a study has a row for each amount, however many days there were."""
    changes = {"relation": Relation.ADD_REMOVE_ONE, "trust": frozenset({Trust.CENTRAL})}
    study = await bench.study(**changes)
    await days(bench, study, 6, MICRO // 2)
    await bench.fold(study)
    await bench.crowd(study, 1, prefix="late")
    united = {name: await charges(bench, name) for name in ("day-0-0", "day-4-1", "day-5-0")}
    await bench.fold(study)
    assert await rows(bench) == [(1, 0, 0), (2, 500, 0), (10, 1000, 1)]
    assert {name: await charges(bench, name) for name in united} == united
    assert united["day-0-0"] == [MICRO // 2] * 2
    spent = await bench.services.budgets.statement(KEY.digest("day-0-0"))
    assert spent.account.spent == MICRO
    await bench.assert_clean()
    # Who leaves takes out what they put in, and what they have spent stays spent.
    await bench.services.contributions.withdraw(study, KEY.digest("day-1-0"))
    assert [people for people, *_ in await rows(bench)] == [1, 2, 9]
    left = await bench.services.budgets.statement(KEY.digest("day-1-0"))
    assert (left.account.spent, left.account.reserved) == (MICRO, MICRO)
    await bench.services.releases.release(study, transformed(MICRO // 2), None)
    await bench.assert_clean()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE lineage SET former = '{}'",
        "UPDATE lineage SET former = former || former WHERE former <> '{}'",
        """UPDATE lineage SET former = array_replace(
               former, former[1], (SELECT min(id) FROM cohort WHERE before > 0))""",
        "UPDATE cohort SET before = before - 1 WHERE before > 0",
        "UPDATE cohort SET before = before - 1, spent = spent - 1 WHERE before > 0",
        """UPDATE charge_block SET cohorts = array_replace(
               cohorts, (SELECT min(former[1]) FROM lineage), (SELECT max(id) FROM cohort))""",
    ],
)
async def test_the_audit_finds_other_former_cohorts_and_another_beginning(bench: Workbench, change: str):
    study = await bench.study(relation=Relation.ADD_REMOVE_ONE, trust=frozenset({Trust.CENTRAL}))
    await days(bench, study, 3, MICRO)
    await bench.crowd(study, 1, prefix="late")
    await bench.fold(study)
    await bench.assert_clean()
    await bench.execute("ALTER TABLE charge_block DISABLE TRIGGER append_only", change)
    found = await bench.services.ledger.audit()
    assert "what people brought into a cohort is not what their former ones were charged" in {
        one.rule for one in found.findings
    }


async def test_a_draft_from_before_its_cohorts_became_one_is_never_published(database_url: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study(relation=Relation.ADD_REMOVE_ONE, trust=frozenset({Trust.CENTRAL}))
        await days(bench, study, 3, MICRO * 2 // 5)
        assert await rows(bench) == [(2, 400, 0), (2, 800, 0), (2, 800, 0)]
        other = bench.replicas[1]

        async def change() -> None:
            await other.contributions.contribute(study, offer("late"))
            await other.database.run_tx("test.seal", lambda c: cohorts.seal(c, study.id))
            await other.database.run_tx("test.fold", lambda c: cohorts.fold(c, study.id))

        begun = slow.begun[MOMENT]
        slow.interceptions[MOMENT] = Interception(first=change)
        await bench.services.releases.release(study, transformed(MICRO // 5), None)
        assert slow.begun[MOMENT] == begun + 2
        assert await rows(bench) == [(1, 200, 0), (2, 600, 0), (4, 1000, 1)]
        parts = [MICRO // 5, MICRO * 2 // 5, MICRO * 2 // 5]
        assert [await charges(bench, f"day-{day}-0") for day in range(3)] == [parts, parts, parts[:2]]
        await bench.assert_clean()


async def test_cohorts_of_pieces_and_of_open_sessions_stay_apart(bench: Workbench):
    asked = await bench.study(trust=frozenset({Trust.CENTRAL}))
    counted = await bench.study(trust=frozenset({Trust.CENTRAL}), tilt=0)
    stage = await Stage.set(bench, counted)
    for day in range(2):
        for study in (asked, counted):
            await bench.crowd(study, 200, prefix=f"day-{day}")
        await bench.services.releases.release(asked, Ask(share=MICRO), None, fresh=True, allow_worse=True)
        bins = Ask(statistic="histogram", parameters={"bins": "4"}, share=MICRO)
        await bench.services.shapes.release(counted, bins, None, fresh=True)

    async def after_more_came(prefix: str) -> list[tuple[int, int, int]]:
        for study in (asked, counted):
            await bench.crowd(study, 1, prefix=prefix)
            await bench.fold(study)
        return await rows(bench)

    assert await after_more_came("during") == [(1, 0, 0)] * 2 + [(200, 1000, 0)] * 4
    await stage.finish()
    assert await after_more_came("after") == [(2, 0, 0)] * 2 + [(200, 1000, 0)] * 2 + [(400, 1000, 1)]
    await bench.assert_clean()


async def test_a_process_that_dies_while_it_unites_has_changed_nothing(database_url: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study(relation=Relation.ADD_REMOVE_ONE, trust=frozenset({Trust.CENTRAL}))
        await days(bench, study, 2, MICRO)
        await bench.crowd(study, 1, prefix="late")
        before = await rows(bench)
        slow.interceptions["release.fold"] = Interception(before_commit=crash)
        with pytest.raises(Crash):
            await bench.services.releases.release(study, transformed(), None)
        assert await rows(bench) == before == [(2, 1000, 0), (2, 1000, 0)]
        await bench.assert_clean()
        await bench.replicas[1].releases.release(study, transformed(), None)
        assert await rows(bench) == [(1, 1000, 0), (4, 1000, 1)]
        await bench.assert_clean()
