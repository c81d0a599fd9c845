"""Figures over all people: read in one pass now and then, kept in a table, and shown with their time.

The pass costs O(people); whatever is shown costs O(what is shown).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime

from pydantic import TypeAdapter, ValidationError

from app.core.figures import Daily, Figure, Held, ListedStudy, NearlyExhausted, Spread, Totals
from app.store.budgets import JOIN_COHORT, RESERVED_EPSILON, SPENT_EPSILON
from app.store.database import Database
from app.store.sql import Connection, Sql

PASS_LOCK = 0x0F16
"""Advisory lock: one process at a time makes the figures."""

CLAIM_PASS = Sql.of(bool)("SELECT pg_try_advisory_xact_lock(:lock)")

PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 100)

SUBJECTS = Sql.of(Totals)("""
    SELECT count(*) AS subjects, coalesce(sum(budget), 0) AS budget,
           coalesce(sum(reserved), 0) AS reserved, coalesce(max(reserved), 0) AS most_reserved,
           count(*) FILTER (WHERE budget > 0 AND reserved * 100 >= budget * :near) AS near
    FROM subject
""")

NEAREST = Sql.of(NearlyExhausted)("""
    SELECT encode(id, 'hex') AS subject, budget AS total, reserved FROM subject
    WHERE budget > 0 AND reserved * 100 >= budget * :near
    ORDER BY budget - reserved, id LIMIT :limit
""")

# One row a person; the histogram's bins are closed below and open above, but for the last one.
BALANCES = Sql(f"""
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

HOLDINGS = Sql.of(Held)(f"""
    SELECT c.study_id, c.trust, c.epsilon, {RESERVED_EPSILON} AS reserved, {SPENT_EPSILON} AS spent,
           count(*) AS people
    FROM contribution c JOIN study ON study.id = c.study_id {JOIN_COHORT}
    WHERE c.value IS NOT NULL GROUP BY 1, 2, 3, 4, 5
""")

CONTRIBUTION_DAYS = Sql.of(Daily)("""
    SELECT study_id, contributed_on AS day, count(*) AS number FROM contribution
    WHERE contributed_on > CAST(:since AS date) GROUP BY 1, 2
""")

RELEASE_DAYS = Sql.of(Daily)("""
    SELECT study_id, CAST(created_at AT TIME ZONE 'UTC' AS date) AS day, count(*) AS number FROM release
    WHERE created_at > CAST(:since AS date) GROUP BY 1, 2
""")

STUDIES = Sql.of(ListedStudy)("SELECT id, slug, state, default_share FROM study ORDER BY slug")

KEEP = Sql("""
    INSERT INTO figure (name, taken_at, seconds, document)
    SELECT name, :taken_at, :seconds, document
    FROM unnest(CAST(:names AS text[]), CAST(:documents AS jsonb[])) AS fresh (name, document)
    ON CONFLICT (name) DO UPDATE
    SET taken_at = excluded.taken_at, seconds = excluded.seconds, document = excluded.document
""")

READ = Sql(
    "SELECT name, taken_at, seconds, CAST(document AS text) AS document FROM figure WHERE name = ANY(:names)"
)


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


async def claim_pass(connection: Connection) -> bool:
    """Whether this transaction may make the figures; False while another one does."""
    return await CLAIM_PASS.one(connection, lock=PASS_LOCK)


async def read_totals(connection: Connection, *, near_percent: int) -> Totals:
    """How many people there are, their budgets together, and how many have nearly nothing left."""
    return await SUBJECTS.one(connection, near=near_percent)


async def read_nearest(
    connection: Connection, *, near_percent: int, limit: int
) -> tuple[NearlyExhausted, ...]:
    """The people with the least left."""
    return tuple(await NEAREST.all(connection, near=near_percent, limit=limit))


async def read_balances(connection: Connection, *, width: int, bins: int) -> tuple[Spread, Spread]:
    """What all people have reserved, and spent: percentiles and bins of this width [micro-epsilon]."""
    fractions = [percent / 100 for percent in PERCENTS]
    row = await BALANCES.one(connection, fractions=fractions, width=width, last=bins - 1)
    reserved, spent = (
        Spread(
            total=row[kind],
            bins=dict(row[f"{kind}_bins"] or ()),
            percentiles=tuple(row[f"{kind}_percentiles"] or ()),
        )
        for kind in ("reserved", "spent")
    )
    return reserved, spent


async def read_holdings(connection: Connection) -> list[Held]:
    """Live contributions by study, trust, epsilon and what was spent."""
    return await HOLDINGS.all(connection)


async def read_days(connection: Connection, since: date) -> tuple[list[Daily], list[Daily]]:
    """New contributions, and releases, by study and day, after a day."""
    return await CONTRIBUTION_DAYS.all(connection, since=since), await RELEASE_DAYS.all(
        connection, since=since
    )


async def read_studies(connection: Connection) -> list[ListedStudy]:
    """Every study."""
    return await STUDIES.all(connection)


async def keep(
    connection: Connection, figures: Mapping[str, Figure], *, taken_at: datetime, seconds: float
) -> None:
    """Put the figures in the place of the former ones."""
    await KEEP.run(
        connection,
        taken_at=taken_at,
        seconds=seconds,
        names=list(figures),
        documents=[DOCUMENT.dump_json(figure).decode() for figure in figures.values()],
    )


async def read(database: Database, names: Sequence[str]) -> dict[str, Kept]:
    """The kept figures with these names, by name; those that another version kept are not there."""
    found = {}
    for row in await database.fetch("figure.read", READ, names=names):
        with suppress(ValidationError):
            figure = DOCUMENT.validate_json(row["document"])
            found[row["name"]] = Kept(taken_at=row["taken_at"], seconds=row["seconds"], figure=figure)
    return found
