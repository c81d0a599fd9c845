"""What is no gain is refused also where the better answer comes in between, and then nothing was charged."""

import asyncio
from typing import Any

import pytest

from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, NoGain
from app.core.piece import LastStep
from app.core.quota import QuotaExhausted
from app.services.statistics.questions import Ask
from app.store import pieces
from app.store import releases as store
from tests.store.faults import Crash, InterceptedDatabase, Interception, Step, crash
from tests.store.workbench import TOKEN, Workbench, key, workbench

SMALL, LARGE = Ask(share=MICRO // 10), Ask(share=MICRO // 2)
LESS, MOST = (Ask(estimator="uniform", share=MICRO * part // 10) for part in (4, 7))
"""Beside the answer to the second question the first one is no gain, and who paid for it cannot pay both."""

NEAR = Ask(estimator="uniform", until=0.04)
"""Of 200 people who offer 1, for which two fifths are enough and a third is not."""


def once(step: Step) -> Step:
    """A step that is taken the first time only."""
    taken = False

    async def first() -> None:
        nonlocal taken
        if not taken:
            taken = True
            await step()

    return first


async def rows(bench: Workbench) -> dict[str, int]:
    """What a release writes."""
    return {
        "releases": await bench.value("SELECT count(*)::int FROM release"),
        "charges": await bench.value("SELECT count(*)::int FROM charge"),
        "keys": await bench.value("SELECT count(*)::int FROM idempotency"),
        "spent": await bench.value("SELECT coalesce(sum(spent), 0)::int FROM cohort"),
    }


@pytest.mark.parametrize("way", ["read", "step", "fresh"])
async def test_a_better_answer_between_draw_and_commit_leaves_the_other_one_uncharged(
    database_url: str, way: str
):
    """As if the better one had come first: it stands for who reads or steps, and a fresh one is no gain."""
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 200)
        better: list[bytes] = []

        async def overtake() -> None:
            better.append((await bench.replicas[1].releases.release(study, LARGE, None)).body)

        database.interceptions["release.publish"] = Interception(first=overtake)
        slow = bench.services.releases
        match way:
            case "read":
                assert (await slow.current(study, SMALL)).release.body == better[0]
            case "step":
                assert (await slow.release(study, SMALL, key("k"))).body == better[0]
            case _:
                with pytest.raises(NoGain):
                    await slow.release(study, SMALL, key("k"), fresh=True)
        keys = int(way == "step")
        assert await rows(bench) == {"releases": 1, "charges": 1, "keys": keys, "spent": MICRO // 2}
        await bench.assert_clean()


@pytest.mark.parametrize("moment", ["release.fold", "release.cohorts", "within", "release.publish"])
async def test_who_cannot_pay_any_more_is_told_that_and_not_that_it_is_no_gain(
    database_url: str, moment: str, monkeypatch: pytest.MonkeyPatch
):
    """A plan of what people had before another answer, beside that answer, is of no moment at all."""
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 200)
        of_width = store.best_width

        async def overtake() -> None:
            await bench.replicas[1].releases.release(study, MOST, None, fresh=True)

        quicker = once(overtake)

        async def later(*given: Any, **named: Any) -> float | None:
            await quicker()
            return await of_width(*given, **named)

        if moment == "within":
            monkeypatch.setattr(store, "best_width", later)
        else:
            database.interceptions[moment] = Interception(first=quicker)
        with pytest.raises(BudgetExhausted):
            await bench.services.releases.release(study, LESS, key("k"), fresh=True)
        assert await rows(bench) == {"releases": 1, "charges": 1, "keys": 0, "spent": MICRO * 7 // 10}
        await bench.assert_clean()


@pytest.mark.parametrize("ask", [LESS, NEAR], ids=["share", "until"])
@pytest.mark.parametrize("moment", ["step", "cohorts", "publish"])
async def test_a_quota_that_went_into_a_larger_step_does_not_refuse_a_smaller_one(
    database_url: str, ask: Ask, moment: str, monkeypatch: pytest.MonkeyPatch
):
    """After that step the smaller one takes nothing of it."""
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 200)
        await bench.execute("UPDATE token SET quota_share = 700000, quota_period = 3600")
        of_step = pieces.last_step
        better: list[bytes] = []

        async def overtake() -> None:
            release = await bench.replicas[1].releases.release(study, MOST, None, asker=TOKEN)
            better.append(release.body)

        quicker = once(overtake)

        async def earlier(*given: Any) -> LastStep | None:
            found = await of_step(*given)
            await quicker()
            return found

        match moment:
            case "step":
                monkeypatch.setattr(pieces, "last_step", earlier)
            case "cohorts":
                database.interceptions["release.cohorts"] = Interception(after_commit=quicker)
            case _:
                database.interceptions["release.publish"] = Interception(first=quicker)
        assert (await bench.services.releases.release(study, ask, None, asker=TOKEN)).body == better[0]
        # What is left is nothing, and this is a question of its own.
        with pytest.raises(QuotaExhausted):
            await bench.services.releases.release(study, SMALL, None, asker=TOKEN)
        await bench.assert_clean()


async def test_of_many_askers_at_once_none_gets_a_much_worse_answer_after_a_better_one(cluster: Workbench):
    study = await cluster.study()
    await cluster.crowd(study, 200)
    asks = [Ask(share=MICRO * part // 100) for part in (1, 2, 4, 8, 16, 32)]
    await asyncio.gather(
        *(
            cluster.replicas[place % len(cluster.replicas)].releases.release(study, ask, None)
            for place, ask in enumerate(asks)
        ),
        return_exceptions=True,
    )
    widths = [row["width"] for row in await cluster.fetch("SELECT width FROM release ORDER BY number")]
    assert widths
    for place, width in enumerate(widths):
        assert width <= 1.5 * min(widths[: place + 1])
    spent = await cluster.value("SELECT sum(charge.epsilon)::int FROM charge")
    assert await cluster.value("SELECT sum(spent)::int FROM cohort") == spent
    await cluster.assert_clean()


async def test_a_crash_between_draw_and_commit_of_an_answer_that_was_insisted_on_costs_nothing(
    database_url: str,
):
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 200)
        first = await bench.services.releases.release(study, LARGE, None)
        before = await rows(bench)
        database.interceptions["release.publish"] = Interception(before_commit=crash)
        with pytest.raises(Crash):
            await bench.services.releases.release(study, SMALL, key("k"), allow_worse=True, fresh=True)
        assert await rows(bench) == before
        assert (await bench.services.releases.current(study, SMALL)).release.id == first.id
        await bench.assert_clean()


async def test_an_answer_of_before_the_columns_still_answers_its_question(bench: Workbench):
    """A release without a family, as an upgrade leaves it, is found by its question, for nothing."""
    study = await bench.study()
    await bench.crowd(study, 20)
    first = (await bench.services.releases.current(study, LARGE)).release
    await bench.execute(
        "ALTER TABLE release DISABLE TRIGGER USER",
        "UPDATE release SET family = NULL, width = NULL",
        "ALTER TABLE release ENABLE TRIGGER USER",
    )
    before = await rows(bench)
    assert (await bench.services.releases.current(study, LARGE)).release.id == first.id
    assert await rows(bench) == before
