"""How PostgreSQL runs the statements that go over all people."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.core.attributes import Attributes
from app.store import figures, ledger
from app.store.sql import Sql, driver
from tests.store.workbench import Workbench

PEOPLE, EPSILONS, LABELS = 100_000, 90, 50
FILL = f"""
    WITH people AS MATERIALIZED (
        SELECT sha256(convert_to(CAST(number AS text), 'UTF8')) AS id, number % {EPSILONS} + 1 AS epsilon,
               number / {EPSILONS} % {LABELS} AS segment
        FROM generate_series(1, {PEOPLE}) AS number ORDER BY id
    ), subjects AS (
        INSERT INTO subject (id, budget, reserved, gaussian_budget, gaussian_reserved)
        SELECT id, 100, epsilon, 0, 0 FROM people
    ), counted AS (
        INSERT INTO tally (study_id, epoch, writer, count)
        SELECT id, epoch, 0, {PEOPLE} FROM study
    )
    INSERT INTO contribution (study_id, subject_id, epsilon, carried, value, trust, epoch, segment)
    SELECT study.id, people.id, people.epsilon, 0, 1, 'central', study.epoch, people.segment
    FROM people, study
"""
STATEMENTS: dict[str, tuple[Sql[Any], dict[str, Any]]] = {
    "holdings": (figures.HOLDINGS, {}),
    "balances": (figures.BALANCES, {"fractions": [0.5], "width": 1, "last": 9}),
    **{rule: (ledger.CHECKS[rule], {"limit": 10}) for rule in ledger.CHECKS.keys() - ledger.MERGED},
}


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


@pytest.mark.long
async def test_people_are_not_compared_with_every_cohort_before_there_are_statistics(
    bench: Workbench,
) -> None:
    study = await bench.study(attributes=Attributes.of({"group": [f"g{label}" for label in range(LABELS)]}))
    await bench.execute(
        "ALTER TABLE lineage SET (autovacuum_enabled = off)", FILL, "ANALYZE contribution, subject"
    )
    await bench.fold(study)

    async def plans(connection: Any) -> dict[str, Any]:
        found = {}
        for name, (statement, given) in STATEMENTS.items():
            explained = f"EXPLAIN (FORMAT JSON) {statement.text}"
            (row,) = await driver(connection).fetch(explained, *statement.arguments(given))
            found[name] = row[0][0]["Plan"]
        return found

    for name, plan in (await bench.services.database.run_tx("test.plans", plans)).items():
        for node in nodes(plan):
            assert node["Node Type"] != "Merge Join", name
            # A loop within a loop is fine where an index finds the row.
            if node["Node Type"] == "Nested Loop":
                assert "Join Filter" not in node or min(one["Plan Rows"] for one in node["Plans"]) < 10, name
