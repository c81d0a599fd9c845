"""Figures over everybody: read in one pass now and then, kept in a table, and shown with their time.

The pass costs O(people); whatever is shown costs O(what is shown).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.budgets import JOIN_COHORT, SPENT_EPSILON
from app.store.database import Database

PASS_LOCK = 0x0F16
"""Advisory lock: one process at a time makes the figures."""

CLAIM_PASS = text("SELECT pg_try_advisory_xact_lock(:lock)")

PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 100)

SUBJECTS = text("""
    SELECT count(*) AS subjects, coalesce(sum(budget), 0) AS budget, coalesce(max(budget), 0) AS largest,
           coalesce(sum(reserved), 0) AS reserved, coalesce(max(reserved), 0) AS most_reserved,
           count(*) FILTER (WHERE budget > 0 AND reserved * 100 >= budget * :near) AS near
    FROM subject
""")

NEAREST = text("""
    SELECT encode(id, 'hex') AS subject, budget, reserved FROM subject
    WHERE budget > 0 AND reserved * 100 >= budget * :near
    ORDER BY budget - reserved, id LIMIT :limit
""")

# One row a person; the histogram's bins are closed below and open above, but for the last one.
BALANCES = text(f"""
    WITH paid AS (
        SELECT subject_id, sum(spent) AS spent FROM (
            SELECT c.subject_id, {SPENT_EPSILON} AS spent FROM contribution c {JOIN_COHORT}
            UNION ALL SELECT subject_id, spent FROM enrolment
        ) part GROUP BY subject_id
    ), balance AS MATERIALIZED (
        SELECT s.reserved, CAST(coalesce(p.spent, 0) AS bigint) AS spent
        FROM subject s LEFT JOIN paid p ON p.subject_id = s.id
    )
    SELECT (SELECT coalesce(sum(spent), 0) FROM balance) AS spent,
           (SELECT percentile_disc(CAST(:fractions AS float8[])) WITHIN GROUP (ORDER BY reserved)
            FROM balance) AS reserved_percentiles,
           (SELECT percentile_disc(CAST(:fractions AS float8[])) WITHIN GROUP (ORDER BY spent)
            FROM balance) AS spent_percentiles,
           (SELECT jsonb_agg(jsonb_build_array(bin, people)) FROM (
                SELECT least(reserved / :width, :last) AS bin, count(*) AS people FROM balance GROUP BY 1) r)
               AS reserved_bins,
           (SELECT jsonb_agg(jsonb_build_array(bin, people)) FROM (
                SELECT least(spent / :width, :last) AS bin, count(*) AS people FROM balance GROUP BY 1) s)
               AS spent_bins
""")

HOLDINGS = text(f"""
    SELECT c.study_id, c.trust, c.epsilon, {SPENT_EPSILON} AS spent, count(*) AS people
    FROM contribution c {JOIN_COHORT}
    WHERE c.value IS NOT NULL GROUP BY 1, 2, 3, 4
""")

CONTRIBUTION_DAYS = text("""
    SELECT study_id, contributed_on AS day, count(*) AS number FROM contribution
    WHERE contributed_on > CAST(:since AS date) GROUP BY 1, 2
""")

RELEASE_DAYS = text("""
    SELECT study_id, CAST(created_at AT TIME ZONE 'UTC' AS date) AS day, count(*) AS number FROM release
    WHERE created_at > CAST(:since AS date) GROUP BY 1, 2
""")

STUDIES = text("SELECT id, slug, state, default_share FROM study ORDER BY slug")

KEEP = text("""
    INSERT INTO figure (name, taken_at, seconds, document)
    SELECT name, :taken_at, :seconds, document
    FROM unnest(CAST(:names AS text[]), CAST(:documents AS jsonb[])) AS fresh (name, document)
    ON CONFLICT (name) DO UPDATE
    SET taken_at = excluded.taken_at, seconds = excluded.seconds, document = excluded.document
""")

READ = "SELECT name, taken_at, seconds, document FROM figure WHERE name = ANY($1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A kept document.

    Attributes:
        name: What it is about.
        taken_at: The moment that it shows.
        seconds: How long the pass took.
        document: JSON.
    """

    name: str
    taken_at: datetime
    seconds: float
    document: dict[str, Any]


async def claim_pass(connection: AsyncConnection) -> bool:
    """Whether this transaction may make the figures; False while another one does."""
    return bool((await connection.execute(CLAIM_PASS, {"lock": PASS_LOCK})).scalar_one())


async def read_subjects(connection: AsyncConnection, *, near_percent: int) -> Mapping[str, Any]:
    """How many people there are, their budgets together, and how many have nearly nothing left."""
    return dict((await connection.execute(SUBJECTS, {"near": near_percent})).mappings().one())


async def read_nearest(
    connection: AsyncConnection, *, near_percent: int, limit: int
) -> list[dict[str, object]]:
    """The people with the least left: subject, budget, reserved."""
    rows = await connection.execute(NEAREST, {"near": near_percent, "limit": limit})
    return [dict(row) for row in rows.mappings()]


async def read_balances(connection: AsyncConnection, *, width: int, bins: int) -> Mapping[str, Any]:
    """What everybody has reserved and spent: percentiles and bins of this width [micro-epsilon]."""
    fractions = [percent / 100 for percent in PERCENTS]
    row = await connection.execute(BALANCES, {"fractions": fractions, "width": width, "last": bins - 1})
    return dict(row.mappings().one())


async def read_holdings(connection: AsyncConnection) -> Sequence[Any]:
    """Live contributions by study_id, trust, epsilon, spent: people."""
    return (await connection.execute(HOLDINGS)).all()


async def read_days(
    connection: AsyncConnection, since: date
) -> tuple[list[tuple[int, date, int]], list[tuple[int, date, int]]]:
    """New contributions and releases by study and day, after a day."""
    contributions = await connection.execute(CONTRIBUTION_DAYS, {"since": since})
    releases = await connection.execute(RELEASE_DAYS, {"since": since})
    return (
        [(row.study_id, row.day, row.number) for row in contributions],
        [(row.study_id, row.day, row.number) for row in releases],
    )


async def read_studies(connection: AsyncConnection) -> Sequence[Any]:
    """Every study: id, slug, state, default_share."""
    return (await connection.execute(STUDIES)).all()


async def keep(
    connection: AsyncConnection, documents: Mapping[str, object], *, taken_at: datetime, seconds: float
) -> None:
    """Put the documents in the place of the former ones."""
    await connection.execute(
        KEEP,
        {
            "taken_at": taken_at,
            "seconds": seconds,
            "names": list(documents),
            "documents": [json.dumps(document) for document in documents.values()],
        },
    )


async def read(database: Database, names: Sequence[str]) -> dict[str, Figure]:
    """The kept documents with these names, by name."""
    rows = await database.fetch("figure.read", READ, list(names))
    return {
        row["name"]: Figure(
            name=row["name"],
            taken_at=row["taken_at"],
            seconds=row["seconds"],
            document=json.loads(row["document"]) if isinstance(row["document"], str) else row["document"],
        )
        for row in rows
    }
