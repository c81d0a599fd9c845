"""Epochs that share cohorts: the same charges, budgets and answers as where each has its own."""

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from app.core.epsilon import MICRO
from app.core.study import LocalMechanism, Relation, Study, Trust
from app.services.publishing import FREE_ATTEMPTS
from app.services.questions import Ask
from app.store import cohorts
from app.store.sql import Sql
from tests.store.faults import Crash, InterceptedDatabase, Interception, crash
from tests.store.workbench import KEY, Workbench, offer, workbench

SMALL = Ask(share=MICRO // 20)
NOISY = {"id", "estimate", "interval", "population_interval", "variance", "sd", "noisy_count", "created_at"}
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
            made = await bench.services.releases.release(study, SMALL, None, fresh=fresh, allow_worse=True)
            body = json.loads(made.body)
            answers.append({name: value for name, value in body.items() if name not in NOISY})
        await bench.assert_clean()
    people = {}
    for name in sorted(set(names)):
        statement = await bench.services.budgets.statement(KEY.digest(name))
        people[name] = (statement.account.reserved, statement.account.spent)
    plan = await bench.services.releases.plan(study, SMALL)
    for answer in answers:
        for hidden in ("study", "refines", "standard_error", "predicted_error"):
            # They are read off former noisy answers too: of the two histories these differ.
            answer.pop(hidden, None)
    return {"people": people, "answers": answers, "left": [one.epsilon_max for one in plan.estimators]}


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
