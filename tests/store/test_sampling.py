"""The random sample that PostgreSQL draws: its size, its freshness, and people who leave meanwhile."""

import json
import math

import pytest

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Study, Trust
from app.services.questions import Ask
from app.store import cohorts
from app.store.database import Database
from tests.statistical import Z
from tests.store.faults import InterceptedDatabase, Interception
from tests.store.workbench import KEY, Workbench, batch, offer, workbench

PEOPLE = 3_000
ALWAYS = 1 << 48
SAMPLING = Ask(estimator="sampling", share=MICRO // 100)


async def crowd(bench: Workbench) -> Study:
    """3,000 people at epsilon 1, half of them at each end of the range; 10 at epsilon 3, 5 public."""
    study = await bench.study()
    many = [offer(f"many-{i}", epsilon=1, value=i % 2) for i in range(PEOPLE)]
    few = [offer(f"few-{i}", epsilon=3, value=1) for i in range(10)]
    known = [offer(f"known-{i}", value=1, trust=Trust.PUBLIC) for i in range(5)]
    await bench.services.contributions.apply_batch(study, batch([*many, *few, *known]))
    await bench.fold(study)
    return study


async def ids(bench: Workbench, study: Study) -> dict[int, int]:
    """Epsilon -> id of its cohort."""
    rows = await bench.services.database.run_tx("test", lambda c: cohorts.read_cohorts(c, study.id))
    return {row.epsilon: row.id for row in rows}


async def sample(database: Database, study: Study, thresholds: dict[int, int]) -> dict[int, tuple[int, int]]:
    return await database.run_tx("test", lambda c: cohorts.read_sample(c, study.id, thresholds))


async def test_certainty_and_impossibility_are_exact(bench: Workbench):
    study = await crowd(bench)
    cohort = await ids(bench, study)
    everybody = await sample(bench.services.database, study, {cohort[MICRO]: ALWAYS, cohort[3 * MICRO]: 0})
    assert everybody == {
        cohort[MICRO]: (PEOPLE, PEOPLE // 2 * GRID_SIZE),
        cohort[3 * MICRO]: (0, 0),
    }


@pytest.mark.statistical
async def test_samples_have_the_size_they_should_and_are_drawn_afresh(bench: Workbench):
    """Twenty samples of 3,000 people at p = 0.3: 60,000 coins of the database's own, within Z deviations.

    The number in the sample and the sum of the sampled are both tested; p = 0.32 is the control.
    """
    study = await crowd(bench)
    cohort = (await ids(bench, study))[MICRO]
    runs, p = 20, 0.3
    drawn = [
        (await sample(bench.services.database, study, {cohort: round(p * ALWAYS)}))[cohort]
        for _ in range(runs)
    ]
    counts, ones = sum(count for count, _ in drawn), sum(total // GRID_SIZE for _, total in drawn)
    for found, coins in ((counts, runs * PEOPLE), (ones, runs * PEOPLE // 2)):
        deviation = math.sqrt(coins * p * (1 - p))
        assert abs(found - coins * p) < Z * deviation
    assert abs(counts - runs * PEOPLE * 0.32) > Z * math.sqrt(runs * PEOPLE * p * (1 - p))
    # Two fresh samples are alike in size and sum with probability 2.3e-4, four of the 190 pairs with 2e-7;
    # a sample that was kept would leave one.
    assert len(set(drawn)) > runs - 4


async def test_a_sampled_release_charges_everybody_their_offer_at_most_and_says_nothing_of_the_sample(
    bench: Workbench,
):
    study = await crowd(bench)
    release = await bench.services.releases.release(study, SAMPLING, None)
    body = json.loads(release.body)
    assert 0 <= body["estimate"] <= 1
    assert body["estimator"] == "sampling"
    rows = await bench.services.releases.charges(release.id)
    charges = {row.offered: row.epsilon for row in rows}
    assert charges[3 * MICRO] == 3 * MICRO // 100
    assert 0.999 * MICRO / 100 < charges[MICRO] <= MICRO // 100
    assert len(charges) == 2
    await bench.assert_clean()


async def test_somebody_who_leaves_between_plan_and_sample_is_in_no_release(database_url: str):
    """The release that was under way is made again without them."""
    intercepted = InterceptedDatabase.open(database_url, pool_size=5)
    assert isinstance(intercepted, InterceptedDatabase)
    async with workbench(database_url, databases=[intercepted]) as bench:
        study = await crowd(bench)

        async def leave() -> None:
            await bench.services.contributions.withdraw(study, KEY.digest("many-1"))

        intercepted.interceptions["release.sample"] = Interception(first=leave)
        release = await bench.services.releases.release(study, SAMPLING, None)
        assert json.loads(release.body)["people"] == PEOPLE + 14
        assert intercepted.begun["release.sample"] == 2
        await bench.assert_clean()
