"""The ledger on hash partitions: places within a table are no longer unique, keys are."""

from collections.abc import AsyncIterator

import pytest

from app.core.clock import SystemClock
from app.core.epsilon import MICRO
from app.core.session import AnswerOutcome
from app.core.study import Trust
from app.services.questions import Ask
from app.services.rekeying import rekey_subjects
from app.services.subjects import SubjectKey
from app.sessions.search import Mode
from app.store import migrate
from tests.store.session_kit import Stage
from tests.store.workbench import KEY, Workbench, batch, offer, workbench
from tests.support.databases import Server, execute

pytestmark = pytest.mark.long

PERSONS = {"subject": "id", "contribution": "subject_id", "enrolment": "subject_id", "answer": "subject_id"}
"""Tables with a row a person, and the column that says whose it is."""

PARTITIONS = 8

NAMES = [f"p{number}" for number in range(40)]


def partitioned() -> list[str]:
    """Statements that distribute the rows of people by the hash of their ids."""
    statements = []
    for table, column in PERSONS.items():
        statements += [
            f"CREATE TABLE whole (LIKE {table} INCLUDING ALL) PARTITION BY HASH ({column})",
            *(
                f"CREATE TABLE {table}_{part} PARTITION OF whole "
                f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {part})"
                for part in range(PARTITIONS)
            ),
            f"DROP TABLE {table} CASCADE",
            f"ALTER TABLE whole RENAME TO {table}",
        ]
    return [
        *statements,
        *(
            f"ALTER TABLE {table} ADD FOREIGN KEY (subject_id) REFERENCES subject (id)"
            for table in ("contribution", "enrolment")
        ),
    ]


@pytest.fixture
async def bench(postgres_server: Server) -> AsyncIterator[Workbench]:
    """One process on a database with hash partitions."""
    with postgres_server.empty_database() as url:
        await migrate.upgrade(url)
        await execute(url, *partitioned())
        async with workbench(url) as made:
            await made.services.check_subject_key()
            yield made


async def test_an_answer_charges_the_person_who_gave_it(bench: Workbench) -> None:
    stage = await Stage.set(bench, await bench.study(), mode=Mode.BUDGET_SPLIT)
    await stage.group([stage.made(name, 1) for name in sorted(NAMES, key=KEY.digest)])
    places = await bench.fetch("SELECT ctid, count(*) FROM enrolment GROUP BY 1 HAVING count(*) > 1")
    assert places, "people of different partitions share a place"
    await stage.close(1)
    second = await stage.answer(NAMES[0], 2)
    assert (second.outcome, second.spent) == (AnswerOutcome.CREATED, 4 * MICRO)
    assert [(await stage.held(name))[1] // MICRO for name in NAMES] == [4] + [2] * (len(NAMES) - 1)
    assert await stage.group([stage.made(name, 2) for name in NAMES[:20]]) == ["unchanged"] + ["created"] * 19
    assert [(await stage.held(name))[1] // MICRO for name in NAMES] == [4] * 20 + [2] * 20
    await bench.assert_clean()
    await stage.finish()
    assert await bench.value("SELECT sum(reserved)::bigint FROM subject") == 120 * MICRO
    await bench.assert_clean()


async def test_the_whole_life_of_a_study_keeps_the_ledger(bench: Workbench) -> None:
    study = await bench.study()
    contributions, releases = bench.services.contributions, bench.services.releases
    await bench.crowd(study, 100)
    await releases.release(study, Ask(share=MICRO // 4), None)
    for number in range(20):
        await contributions.replace(study, offer(f"crowd-{number}", value=number / 20))
        await contributions.withdraw(study, KEY.digest(f"crowd-{number + 20}"))
        await contributions.contribute(study, offer(f"local-{number}", trust=Trust.LOCAL))
    again = await contributions.apply_batch(study, batch([offer("crowd-20"), offer("crowd-50")]))
    assert (again.created, again.unchanged) == (1, 1)
    await releases.release(study, Ask(estimator="uniform", share=MICRO // 4), None)
    assert await bench.members(study) == 101
    await bench.assert_clean()
    assert (
        await rekey_subjects(
            bench.services.database,
            SystemClock(),
            [*(f"crowd-{number}" for number in range(100)), *(f"local-{number}" for number in range(20))],
            old=KEY,
            new=SubjectKey(bytes(range(1, 33))),
        )
    ).moved == 120
    await bench.assert_clean()
