r"""A step that is drawn, lost before its commit and drawn anew: the published pair keeps its law.

Why it does. Let Z1 be the published noise of a question, and D1, D2, ... what attempts at the next step
draw, each given Z1 and nothing else (`app.services.statistics.steps.take` reads stored sums, and a lost
attempt stores none), each with entropy of its own. Which attempt is published is decided by crashes, which
see no draw: given Z1, the number of the published attempt is independent of all of them. So what is published
has the law of D1 given Z1, and the pair that of a step without any crash. A lost draft was never seen and is
part of no one's view, so nothing is owed for it; nothing was charged either, since charges are part of the
same transaction.

Here all of that runs: the service's own code on a database, each refinement lost `LOST` times at its commit.
What is tested is the joint law of the two published draws (`app.mechanisms.refined_laplace`): the second is
Laplace noise of scale b2, and the first is that plus something independent, which is 0 with probability (b2
/ b1)^2 and otherwise Laplace noise of scale b1. Scales are above 2^40: of the integers nothing is to be
seen.

Verdict: chi-square over the quarters of the second draw and the sign of the difference, 12 cells of at least
25 pairs, on fresh entropy; the limit law of a sum. The controls have as many pairs. An independent second
draw leaves the cells of no difference empty, which alone is 100 and is never missed. The smallest of three
drafts puts 7/8 of second draws into the two inner quarters: 225 on average with a standard deviation of 30,
and 60 is enough.
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from app.services.statistics.questions import Ask
from tests.statistical import ALPHA
from tests.store.faults import Crash, InterceptedDatabase, Interception, crash
from tests.store.workbench import workbench
from tests.support.noise import NoiseSource

pytestmark = [pytest.mark.statistical, pytest.mark.long]

PAIRS = 400
LOST = 2
SHARES = (1_000, 2_000)
ATOM = (SHARES[0] / SHARES[1]) ** 2

KEPT = "SELECT scale, sums[1] AS first, encode(family, 'hex') AS family FROM piece"
EXACT = """SELECT encode(family, 'hex') AS family, sum(weight * total) AS total
           FROM piece CROSS JOIN unnest(cohorts, weights) AS member (cohort_id, weight)
           JOIN cohort ON cohort.id = cohort_id GROUP BY family"""

Draws = NDArray[np.float64]


def p_value(second: Draws, difference: Draws) -> float:
    """Of the second draws [b2], and of what the first ones have more than these [any unit]."""
    rows = np.searchsorted([np.log(0.5), 0.0, -np.log(0.5)], second)
    counts = np.zeros((4, 3))
    np.add.at(counts, (rows, np.sign(difference).astype(int) + 1), 1)
    expected = np.outer(np.full(4, 1 / 4), [(1 - ATOM) / 2, ATOM, (1 - ATOM) / 2]) * second.size
    assert expected.min() >= 25
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1))


@pytest.mark.slow
async def test_the_published_pair_has_its_law_however_many_drafts_were_lost(database_url: str) -> None:
    database = InterceptedDatabase.open(database_url, pool_size=3)
    async with workbench(database_url, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 3)
        release = bench.services.releases.release
        for tilt in range(PAIRS):
            await release(study, Ask(estimator="uniform", tilt=tilt, share=SHARES[0]), None)
        published = {row["family"]: row for row in await bench.fetch(KEPT)}
        for tilt in range(PAIRS):
            ask = Ask(estimator="uniform", tilt=tilt, share=SHARES[1])
            for _ in range(LOST):
                lost = database.interceptions["release.publish"] = Interception(before_commit=crash)
                with pytest.raises(Crash):
                    await release(study, ask, None)
                assert lost.fired
            await release(study, ask, None)
        sharpened = {row["family"]: row for row in await bench.fetch(KEPT)}
        exact = {row["family"]: row["total"] for row in await bench.fetch(EXACT)}
        await bench.assert_clean()
    assert len(published) == len(sharpened) == PAIRS
    assert {round(published[family]["scale"] / now["scale"], 9) for family, now in sharpened.items()} == {2.0}
    assert min(now["scale"] for now in sharpened.values()) > 2**40
    second = [float(now["first"] - exact[family]) / now["scale"] for family, now in sharpened.items()]
    difference = [float(published[family]["first"] - now["first"]) for family, now in sharpened.items()]
    assert p_value(np.array(second), np.array(difference)) > ALPHA


def pairs(generator: np.random.Generator, drafts: int = 1) -> tuple[Draws, Draws]:
    """Pairs of which the second draw is the smallest of so many."""
    candidates = generator.laplace(size=(PAIRS, drafts))
    second = candidates[np.arange(PAIRS), np.abs(candidates).argmin(axis=1)]
    return second, generator.laplace(size=PAIRS) * (generator.random(PAIRS) >= ATOM)


def test_pairs_as_they_should_be_pass(source: NoiseSource) -> None:
    assert p_value(*pairs(source.people)) > ALPHA


def test_control_the_smallest_of_all_drafts_is_caught(source: NoiseSource) -> None:
    assert p_value(*pairs(source.people, drafts=LOST + 1)) < ALPHA


def test_control_a_second_draw_that_is_independent_is_caught(source: NoiseSource) -> None:
    first, second = source.people.laplace(size=(2, PAIRS))
    assert p_value(second, first / np.sqrt(ATOM) - second) < ALPHA
