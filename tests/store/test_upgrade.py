"""An installation of the first released schema: brought up to date, it is whole and goes on."""

from pathlib import Path

import asyncpg
import pytest

from app.core.principal import Role
from app.services.statistics.questions import Ask
from app.store import migrate
from tests.store.test_migrate import downgrade
from tests.store.workbench import KEY, key, offer, workbench
from tests.support.databases import execute

pytestmark = pytest.mark.long

DUMP = Path(__file__).parent / "data" / "revision_0001.sql"

SECRET = "dither_of-the-first-released-schema-0123456789abcd"

KEPT = ("study", "subject", "contribution", "cohort", "release", "charge", "chain", "token", "idempotency")


async def rows(url: str) -> dict[str, list[str]]:
    """The rows of the first schema's tables, deltas left out, whatever has come beside them."""
    connection = await asyncpg.connect(url)
    try:
        found = {}
        for table in KEPT:
            columns = ", ".join(column for column in COLUMNS[table] if "delta" not in column)
            found[table] = [
                str(tuple(row.values()))
                for row in await connection.fetch(f"SELECT {columns} FROM {table} ORDER BY 1, 2")
            ]
        return found
    finally:
        await connection.close()


COLUMNS: dict[str, list[str]] = {}


async def load(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(DUMP.read_text())
        for table in KEPT:
            described = await connection.fetch(
                """SELECT column_name FROM information_schema.columns
                   WHERE table_name = $1 AND table_schema = 'public' ORDER BY ordinal_position""",
                table,
            )
            COLUMNS[table] = [f'"{row["column_name"]}"' for row in described]
        # Squares were made of values; the audit below adds them up again.
        COLUMNS["cohort"].remove('"total_squares"')
        # A list stands in its place; what that says is below.
        COLUMNS["token"].remove('"role"')
        # Digests stand in their place since; that a key still works is below.
        for replaced in ('"key"', '"request"'):
            COLUMNS["idempotency"].remove(replaced)
    finally:
        await connection.close()


@pytest.fixture
async def old_url(empty_database_url: str) -> str:
    """A database at the first released schema, with data."""
    await load(empty_database_url)
    assert await migrate.current_revision(empty_database_url) == "0001"
    return empty_database_url


async def test_an_upgrade_keeps_every_row(old_url: str) -> None:
    before = await rows(old_url)
    assert {table: len(found) > 0 for table, found in before.items()} == dict.fromkeys(KEPT, True)
    done = await migrate.upgrade(old_url)
    assert (done.before, done.after) == ("0001", migrate.head_revision())
    assert await rows(old_url) == before


async def test_an_upgraded_installation_audits_clean_and_goes_on(old_url: str) -> None:
    await migrate.upgrade(old_url)
    async with workbench(old_url) as bench:
        await bench.assert_clean()
        services = bench.services
        await services.check_subject_key()
        principal = await services.tokens.authenticate(SECRET)
        assert (principal.roles, principal.studies) == (frozenset({Role.ANALYSE}), frozenset({"commute"}))

        study = await services.studies.read("commute")
        known = (await services.releases.page(study, 50, None)).items
        assert len(known) == 2
        again = await services.releases.current(study, Ask(estimator="adpm"))
        assert again.release.body in [release.body for release in known]
        replayed = await services.releases.release(study, Ask(estimator="adpm"), key("first"))
        assert (replayed.replayed, replayed.body in [release.body for release in known]) == (True, True)

        statement = await services.budgets.statement(KEY.digest("p3"))
        assert statement.account.spent > 0
        await services.contributions.contribute(study, offer("somebody new"))
        await services.contributions.withdraw(study, KEY.digest("p5"))
        for slug in ("commute", "secret-size"):
            asked = await services.studies.read(slug)
            made = await services.releases.release(asked, Ask(share=50_000), None, asker=principal.token_id)
            assert made.body
        await bench.assert_clean()


async def test_pieces_keep_their_cohorts_through_a_downgrade(empty_database_url: str) -> None:
    """The hash chain says what a piece is; it is refined afterwards, so nothing of it was lost."""
    await migrate.upgrade(empty_database_url)
    async with workbench(empty_database_url) as bench:
        study = await bench.study()
        for day in range(2):
            for epsilon in (1, 2, 3):
                await bench.crowd(study, 2, epsilon=epsilon, prefix=f"{day}-{epsilon}")
            await bench.services.releases.release(study, Ask(share=100_000), None, fresh=day == 1)
            await bench.services.releases.release(study, Ask(share=100_000), None)
    await downgrade(empty_database_url, "0027")
    await migrate.upgrade(empty_database_url)
    async with workbench(empty_database_url) as bench:
        assert await bench.value("SELECT sum(cardinality(cohorts))::int FROM piece") == 12
        study = await bench.services.studies.read(study.definition.slug)
        await bench.services.releases.release(study, Ask(share=200_000), None)
        await bench.assert_clean()


async def test_one_count_of_two_bins_is_kept_from_a_version_that_cannot_read_it(
    empty_database_url: str,
) -> None:
    """Nothing is lost: the version stays, and goes down where all pieces have two sums or more."""
    await migrate.upgrade(empty_database_url)
    async with workbench(empty_database_url) as bench:
        study = await bench.study()
        await bench.crowd(study, 9, epsilon=1)
        for bins in ("3", "2"):
            asked = Ask(statistic="histogram", share=100_000, parameters={"bins": bins})
            await bench.services.shapes.release(study, asked, None)
        lengths = "SELECT array_agg(cardinality(sums) ORDER BY cardinality(sums)) FROM piece"
        assert await bench.value(lengths) == [1, 3]
        await bench.assert_clean()
    with pytest.raises(RuntimeError, match="have one sum"):
        await downgrade(empty_database_url, "0045")
    assert await migrate.current_revision(empty_database_url) == migrate.head_revision()
    await execute(empty_database_url, "DELETE FROM piece WHERE cardinality(sums) = 1")
    await downgrade(empty_database_url, "0045")
    assert await migrate.current_revision(empty_database_url) == "0045"
