"""A combination of answers is of all that there are when it is published."""

import json

import pytest

from app.core.epsilon import MICRO
from app.core.study import Relation, Trust
from app.services.statistics.questions import Ask
from tests.store.faults import InterceptedDatabase, Interception
from tests.store.workbench import KEY, of_offers, workbench

SMALL = Ask(share=MICRO // 10)


@pytest.mark.parametrize("relation", Relation)
async def test_an_answer_that_comes_while_others_are_combined_is_combined_too(
    database_url: str, relation: Relation
) -> None:
    """Else the combination would hide it: it is newer than the answer that it leaves out."""
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study = await bench.study(relation=relation)
        await bench.crowd(study, 200)
        # Answers are combined that are about the same people.
        small, whole = of_offers(relation, SMALL), of_offers(relation, Ask())
        made = [
            str((await bench.services.releases.release(study, small, None, fresh=True)).id) for _ in range(2)
        ]

        async def quicker() -> None:
            made.append(str((await bench.replicas[1].releases.release(study, small, None, fresh=True)).id))

        database.interceptions["release.publish"] = Interception(first=quicker)
        database.begun.clear()
        answer = (await bench.services.releases.current(study, whole)).release
        assert len(made) == 3
        assert sorted(json.loads(answer.body)["combines"]) == sorted(made)
        assert database.begun["release.publish"] == 2, "the first one is discarded"
        assert (await bench.services.releases.current(study, whole)).release.id == answer.id
        await bench.assert_clean()


@pytest.mark.parametrize("asking", ["reads", "looks"])
async def test_who_was_in_all_answers_leaves_while_they_are_combined(database_url: str, asking: str) -> None:
    """As if she had left before: then the others are asked, and there is nothing to look at for nothing."""
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study = await bench.study(trust=frozenset({Trust.CENTRAL}))
        await bench.crowd(study, 1, prefix="first")
        for estimator in ("uniform", "adpm"):
            ask = Ask(estimator=estimator, share=MICRO // 10)
            await bench.services.releases.release(study, ask, None, fresh=True, allow_worse=True)
        await bench.crowd(study, 200)

        async def leave() -> None:
            await bench.replicas[1].contributions.withdraw(study, KEY.digest("first-0"))

        database.interceptions["release.sources"] = Interception(first=leave)
        if asking == "looks":
            assert await bench.services.releases.standing(study, Ask()) is None
        else:
            answer = (await bench.services.releases.current(study, Ask())).release
            assert json.loads(answer.body)["people"] == 200
        await bench.assert_clean()
