"""Histograms and quantiles that race each other, withdrawals and other answers."""

import asyncio
import json

import pytest

from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, Unavailable
from app.core.study import Relation
from app.services.statistics.publishing import FREE_ATTEMPTS
from app.services.statistics.questions import Ask
from app.store import bins
from tests.store.faults import InterceptedDatabase, Interception
from tests.store.workbench import KEY, Workbench, key, of_offers, workbench

pytestmark = pytest.mark.long

BINS = Ask(statistic="histogram", parameters={"bins": "4"}, share=MICRO)
MEDIAN = Ask(statistic="median", share=MICRO)
DESCRIBE = Ask(statistic="describe", share=MICRO)
FOUND = Ask(parameters={"range": "found"}, share=MICRO)


@pytest.mark.parametrize("ask", [BINS, MEDIAN, FOUND, DESCRIBE])
@pytest.mark.parametrize("relation", Relation)
async def test_one_question_asked_by_many_at_once_is_released_and_charged_once(
    cluster: Workbench, ask: Ask, relation: Relation
):
    study, ask = await cluster.study(relation=relation, tilt=0), of_offers(relation, ask)
    await cluster.crowd(study, 400)
    async with asyncio.timeout(30):
        answers = await asyncio.gather(
            *(cluster.replicas[number % 3].shapes.current(study, ask) for number in range(12))
        )
    assert len({answer.release.body for answer in answers}) == 1
    assert await cluster.value("SELECT count(*)::int FROM release") == 1
    (row,) = await cluster.fetch("SELECT spent FROM cohort")
    assert row["spent"] in ((MICRO,) if ask.statistic != DESCRIBE.statistic else (MICRO - 1, MICRO))
    await cluster.assert_clean()


@pytest.mark.usefixtures("free_attempts")
async def test_a_key_and_another_statistic_share_what_is_left(cluster: Workbench):
    study = await cluster.study()
    await cluster.crowd(study, 20)
    made = await asyncio.gather(
        *(cluster.replicas[number % 3].shapes.release(study, BINS, key("k")) for number in range(6))
    )
    assert len({release.id for release in made}) == 1
    with pytest.raises(BudgetExhausted):
        await cluster.services.releases.release(study, Ask(share=MICRO), None)
    with pytest.raises(BudgetExhausted):
        await cluster.services.shapes.release(study, MEDIAN, None)
    await cluster.assert_clean()


@pytest.mark.parametrize("moment", ["release.bins", "release.sums", "release.publish"])
async def test_a_person_who_leaves_while_it_is_drafted_is_in_no_answer(database_url: str, moment: str):
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study()
        await bench.crowd(study, 30)

        async def leave() -> None:
            digest = KEY.digest("crowd-3")
            await bench.replicas[1].contributions.withdraw(study, digest)

        slow.interceptions[moment] = Interception(first=leave)
        ask = FOUND if moment == "release.sums" else BINS
        release = await bench.services.shapes.release(study, ask, None)
        assert json.loads(release.body)["people"] == 29
        assert slow.begun["release.bins"] == 2
        await bench.assert_clean()


async def test_counts_that_miss_a_folded_person_are_never_published(
    database_url: str, monkeypatch: pytest.MonkeyPatch
):
    """As of a database one of whose nodes is recovering: nothing is charged, and it may be asked again."""
    async with workbench(database_url) as bench:
        study = await bench.study()
        await bench.crowd(study, 30)
        count = bins.count_bins
        calls = 0

        async def short(*arguments: object) -> list[bins.BinCount]:
            nonlocal calls
            calls += 1
            return (await count(*arguments))[1:]  # type: ignore[arg-type]  # passed on

        monkeypatch.setattr(bins, "count_bins", short)
        with pytest.raises(Unavailable):
            await bench.services.shapes.release(study, BINS, None)
        assert calls == FREE_ATTEMPTS + 1
        assert await bench.value("SELECT count(*)::int FROM release") == 0
        monkeypatch.setattr(bins, "count_bins", count)
        await bench.services.shapes.release(study, BINS, None)
        await bench.assert_clean()
