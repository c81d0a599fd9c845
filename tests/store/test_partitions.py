"""The ledger on hash partitions: places within a table are no longer unique, keys are."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from app.core.clock import SystemClock
from app.core.epsilon import MICRO
from app.core.errors import SchemaMismatch
from app.core.session import AnswerOutcome
from app.core.study import Trust
from app.services.admin.rekeying import rekey_subjects
from app.services.statistics.questions import Ask
from app.services.subjects import SubjectKey
from app.sessions.search import Mode
from app.store import migrate
from tests.store.session_kit import Stage
from tests.store.workbench import KEY, Workbench, batch, offer, workbench
from tests.support.databases import Server, execute

pytestmark = pytest.mark.long

PARTITIONS = 8

NAMES = [f"p{number}" for number in range(40)]


@pytest.fixture
async def bench(postgres_server: Server) -> AsyncIterator[Workbench]:
    """One process on a database with hash partitions."""
    with postgres_server.empty_database() as url:
        await migrate.upgrade(url, partitions=PARTITIONS)
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


async def tables(url: str) -> list[tuple[object, ...]]:
    """Columns, constraints and indexes of all tables but partitions, as they are described."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("""
            SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
                   pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
            LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
            WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND NOT a.attisdropped
              AND c.relnamespace = CAST('public' AS regnamespace)
            UNION ALL
            SELECT c.relname, k.conname, pg_get_constraintdef(k.oid), NULL, NULL, NULL
            FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
            WHERE NOT c.relispartition AND k.conparentid = 0 AND k.contype <> 'n'
              AND c.relnamespace = CAST('public' AS regnamespace)
            UNION ALL
            SELECT c.relname, i.relname, replace(pg_get_indexdef(i.oid), ' ONLY ', ' '), NULL, NULL, NULL
            FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
            WHERE NOT c.relispartition AND c.relnamespace = CAST('public' AS regnamespace)
            ORDER BY 1, 2, 3
        """)
        return [tuple(row.values()) for row in rows]
    finally:
        await connection.close()


async def test_partitioned_tables_are_those_that_migrations_make(postgres_server: Server) -> None:
    with postgres_server.empty_database() as plain, postgres_server.empty_database() as parted:
        await migrate.upgrade(plain)
        assert (await migrate.upgrade(parted, partitions=PARTITIONS)).partitioned
        assert await tables(parted) == await tables(plain)


async def test_what_cannot_be_partitioned_stays_as_it_is(postgres_server: Server) -> None:
    with postgres_server.empty_database() as url:
        await migrate.upgrade(url)
        person = "INSERT INTO subject VALUES ('\\x00', 1, 0, 0, 0)"
        await execute(url, person)
        with pytest.raises(SchemaMismatch, match="subject has rows"):
            await migrate.upgrade(url, partitions=4)
        await execute(url, "DELETE FROM subject")
        assert (await migrate.upgrade(url, partitions=4)).partitioned
        await execute(url, person)
        assert not (await migrate.upgrade(url, partitions=4)).partitioned, "it is done already"
        with pytest.raises(SchemaMismatch, match="have 4 partitions"):
            await migrate.upgrade(url, partitions=8)
