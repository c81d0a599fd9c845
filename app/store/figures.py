"""Figures over all people: read in one pass now and then, kept in a table, and shown with their time.

The pass costs O(people); whatever is shown costs O(what is shown).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.figures import Daily, Figure, Held, ListedStudy, NearlyExhausted, Spread, Totals
from app.store.budgets import JOIN_COHORT, SPENT_EPSILON
from app.store.database import Database

PASS_LOCK = 0x0F16
"""Advisory lock: one process at a time makes the figures."""

CLAIM_PASS = text("SELECT pg_try_advisory_xact_lock(:lock)")

PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 100)

SUBJECTS = text("""
    SELECT count(*) AS subjects, coalesce(sum(budget), 0) AS budget,
           coalesce(sum(reserved), 0) AS reserved, coalesce(max(reserved), 0) AS most_reserved,
           count(*) FILTER (WHERE budget > 0 AND reserved * 100 >= budget * :near) AS near
    FROM subject
""")

NEAREST = text("""
    SELECT encode(id, 'hex') AS subject, budget AS total, reserved FROM subject
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
           (SELECT coalesce(sum(reserved), 0) FROM balance) AS reserved,
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

READ = "SELECT name, taken_at, seconds, CAST(document AS text) AS document FROM figure WHERE name = ANY($1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A figure as it is kept.

    Attributes:
        taken_at: The moment that it shows.
        seconds: How long the pass took.
        figure: It.
    """

    taken_at: datetime
    seconds: float
    figure: Figure


DOCUMENT: TypeAdapter[Figure] = TypeAdapter(Figure)
"""A figure as a JSON document; each kind is known by its fields."""


async def claim_pass(connection: AsyncConnection) -> bool:
    """Whether this transaction may make the figures; False while another one does."""
    return bool((await connection.execute(CLAIM_PASS, {"lock": PASS_LOCK})).scalar_one())


async def read_totals(connection: AsyncConnection, *, near_percent: int) -> Totals:
    """How many people there are, their budgets together, and how many have nearly nothing left."""
    row = (await connection.execute(SUBJECTS, {"near": near_percent})).one()
    return Totals(
        subjects=row.subjects,
        budget=int(row.budget),
        reserved=int(row.reserved),
        most_reserved=int(row.most_reserved),
        near=row.near,
    )


async def read_nearest(
    connection: AsyncConnection, *, near_percent: int, limit: int
) -> tuple[NearlyExhausted, ...]:
    """The people with the least left."""
    rows = await connection.execute(NEAREST, {"near": near_percent, "limit": limit})
    return tuple(NearlyExhausted(**row) for row in rows.mappings())


async def read_balances(connection: AsyncConnection, *, width: int, bins: int) -> tuple[Spread, Spread]:
    """What all people have reserved, and spent: percentiles and bins of this width [micro-epsilon]."""
    fractions = [percent / 100 for percent in PERCENTS]
    row = (
        await connection.execute(BALANCES, {"fractions": fractions, "width": width, "last": bins - 1})
    ).one()
    return (
        Spread(
            total=int(row.reserved),
            bins=dict(row.reserved_bins or ()),
            percentiles=tuple(row.reserved_percentiles or ()),
        ),
        Spread(
            total=int(row.spent),
            bins=dict(row.spent_bins or ()),
            percentiles=tuple(row.spent_percentiles or ()),
        ),
    )


async def read_holdings(connection: AsyncConnection) -> list[Held]:
    """Live contributions by study, trust, epsilon and what was spent."""
    return [Held(**row) for row in (await connection.execute(HOLDINGS)).mappings()]


async def read_days(connection: AsyncConnection, since: date) -> tuple[list[Daily], list[Daily]]:
    """New contributions, and releases, by study and day, after a day."""
    contributions = await connection.execute(CONTRIBUTION_DAYS, {"since": since})
    releases = await connection.execute(RELEASE_DAYS, {"since": since})
    return [Daily(**row) for row in contributions.mappings()], [Daily(**row) for row in releases.mappings()]


async def read_studies(connection: AsyncConnection) -> list[ListedStudy]:
    """Every study."""
    return [ListedStudy(**row) for row in (await connection.execute(STUDIES)).mappings()]


async def keep(
    connection: AsyncConnection, figures: Mapping[str, Figure], *, taken_at: datetime, seconds: float
) -> None:
    """Put the figures in the place of the former ones."""
    await connection.execute(
        KEEP,
        {
            "taken_at": taken_at,
            "seconds": seconds,
            "names": list(figures),
            "documents": [DOCUMENT.dump_json(figure).decode() for figure in figures.values()],
        },
    )


async def read(database: Database, names: Sequence[str]) -> dict[str, Kept]:
    """The kept figures with these names, by name; those that another version kept are not there."""
    found = {}
    for row in await database.fetch("figure.read", READ, list(names)):
        with suppress(ValidationError):
            figure = DOCUMENT.validate_json(row["document"])
            found[row["name"]] = Kept(taken_at=row["taken_at"], seconds=row["seconds"], figure=figure)
    return found
