"""A key of an answer is never forgotten, also where the last attempt holds back those who would leave."""

from dataclasses import replace

import pytest

from app.core.attributes import Attributes
from app.core.epsilon import MICRO
from app.core.errors import IdempotencyKeyReused, StudyArchived
from app.core.principal import Role
from app.core.quota import Quota, QuotaExhausted
from app.core.release import StoredRelease
from app.core.study import Relation, Study
from app.services import Services
from app.services.replies import Idempotency
from app.services.statistics.questions import Ask
from tests.store.faults import InterceptedDatabase, Interception
from tests.store.workbench import ADMIN, Workbench, batch, key, offer, workbench

pytestmark = pytest.mark.usefixtures("free_attempts")

HISTOGRAM = Ask(statistic="histogram", parameters={"bins": "4"}, share=MICRO // 2)

AGAIN = Ask(estimator="auto", share=MICRO * 3 // 10)
"""Of a quota of half of the share it fits once, of people's epsilon twice."""

ASKS = {
    "mean": Ask(share=MICRO // 2),
    "mean by label": Ask(share=MICRO // 2, by="kind"),
    "histogram": HISTOGRAM,
    "histogram by label": replace(HISTOGRAM, by="kind"),
    "median": Ask(statistic="median", share=MICRO // 2),
    "found range": Ask(parameters={"range": "found"}, share=MICRO // 2),
}

WRITTEN = """
    SELECT (SELECT count(*) FROM release) AS releases, (SELECT count(*) FROM charge) AS charges,
           (SELECT count(*) FROM usage) AS uses, (SELECT count(*) FROM idempotency) AS keys,
           (SELECT coalesce(sum(spent), 0) FROM cohort) AS spent
"""


async def study_of(bench: Workbench, relation: Relation = Relation.REPLACE_ONE) -> Study:
    """A study of people with labels, of whom some are there."""
    study = await bench.study(relation=relation, attributes=Attributes.of({"kind": ["a", "b"]}))
    await join(bench.services, study, 200, "crowd")
    return study


async def join(services: Services, study: Study, people: int, prefix: str) -> None:
    offers = [replace(offer(f"{prefix}-{number}"), segment=number % 2) for number in range(people)]
    assert (await services.contributions.apply_batch(study, batch(offers))).created == people


async def release(services: Services, study: Study, ask: Ask, once: Idempotency | None) -> StoredRelease:
    """Ask, perhaps with a key."""
    answering = services.shapes if ask.parameters or ask.statistic == "median" else services.releases
    return await answering.release(study, ask, once)


@pytest.mark.parametrize("again", ["once more", "with a key"])
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("kind", ASKS)
async def test_a_key_has_the_same_answer_whoever_comes_later(
    bench: Workbench, kind: str, relation: Relation, again: str
) -> None:
    """Also the key of a share that all have given, for which an answer stands that was made without it."""
    study, ask = await study_of(bench, relation), ASKS[kind]
    if again == "with a key":
        await release(bench.services, study, ask, None)
    first = await release(bench.services, study, ask, key("k"))
    before = await bench.fetch(WRITTEN)
    await join(bench.services, study, 50, "new")
    second = await release(bench.services, study, ask, key("k"))
    assert (second.id, second.body, second.stands) == (first.id, first.body, first.stands)
    assert await bench.fetch(WRITTEN) == before
    with pytest.raises(IdempotencyKeyReused):
        await release(bench.services, study, ask, key("k", "another request"))
    await bench.assert_clean()


@pytest.mark.parametrize("name", [None, "k"])
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("refusal", [QuotaExhausted, StudyArchived])
async def test_what_comes_between_plan_and_commit_refuses_in_its_own_words(
    database_url: str, free_attempts: int, refusal: type[Exception], relation: Relation, name: str | None
) -> None:
    """Not as a release that has vanished, and nothing of the request is kept."""
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study, other = await study_of(bench, relation), bench.replicas[1]
        token, _ = await other.tokens.create(name="a", roles={Role.ANALYSE}, actor="test")
        await other.tokens.set_quota(token.id, Quota(share=MICRO // 2, period_seconds=3600), "test")
        before: list[object] = []

        async def between() -> None:
            if refusal is QuotaExhausted:
                await other.releases.release(study, AGAIN, None, asker=token.id, fresh=True)
            else:
                await other.studies.archive(study.definition.slug, ADMIN, "done")
            before.append(await bench.fetch(WRITTEN))

        moment = "release.publish" if free_attempts else "release.held"
        database.interceptions[moment] = Interception(first=between)
        with pytest.raises(refusal):
            await bench.services.releases.release(
                study, AGAIN, None if name is None else key(name), asker=token.id, fresh=True
            )
        assert [await bench.fetch(WRITTEN)] == before
        await bench.assert_clean()


async def test_a_retry_that_is_quicker_is_the_answer_of_both(database_url: str, free_attempts: int) -> None:
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study = await study_of(bench)
        quicker: list[StoredRelease] = []

        async def retry() -> None:
            quicker.append(await release(bench.replicas[1], study, ASKS["mean"], key("k")))

        moment = "release.publish" if free_attempts else "release.held"
        database.interceptions[moment] = Interception(first=retry)
        first = await release(bench.services, study, ASKS["mean"], key("k"))
        assert [first.body] == [one.body for one in quicker]
        assert await bench.value("SELECT count(*)::int FROM release") == 1
        await bench.assert_clean()
