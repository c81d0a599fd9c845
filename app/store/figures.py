"""Figures over all people: read in one pass now and then, kept in a table, and shown with their time.

The pass costs O(people); whatever is shown costs O(what is shown).
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime

from pydantic import TypeAdapter, ValidationError

from app.core.figures import Daily, Figure, HeldGroup, ListedStudy, NearlyExhausted, Spread, Totals
from app.store.budgets import JOIN_COHORT, RESERVED, SPENT
from app.store.database import Database
from app.store.sql import Connection, Sql

PASS_LOCK = 0x0F16
"""Advisory lock: one process at a time makes the figures."""

CLAIM_PASS = Sql.of(bool)("SELECT pg_try_advisory_xact_lock(:lock)")

PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 100)

NEAR = """(budget > 0 AND reserved * 100 >= budget * :near
    OR gaussian_budget > 0 AND gaussian_reserved * 100 >= gaussian_budget * :near)"""

SUBJECTS = Sql.of(Totals)(f"""
    SELECT count(*) AS subjects, coalesce(sum(budget), 0) AS budget,
           coalesce(sum(reserved), 0) AS reserved, coalesce(max(reserved), 0) AS most_reserved,
           coalesce(sum(gaussian_budget), 0) AS gaussian_budget,
           coalesce(sum(gaussian_reserved), 0) AS gaussian_reserved,
           count(*) FILTER (WHERE {NEAR}) AS near
    FROM subject
""")

# Of two budgets the one of which less is left.
NEAREST = Sql.of(NearlyExhausted)(f"""
    SELECT encode(id, 'hex') AS subject, CASE WHEN gaussian THEN gaussian_budget ELSE budget END AS total,
           CASE WHEN gaussian THEN gaussian_reserved ELSE reserved END AS reserved,
           CASE WHEN gaussian THEN CAST(:delta AS bigint) ELSE 0 END AS delta
    FROM (
        SELECT *, gaussian_budget > 0 AND CAST(gaussian_reserved AS numeric) * greatest(budget, 1)
                  > CAST(reserved AS numeric) * gaussian_budget AS gaussian
        FROM subject WHERE {NEAR}
    ) nearest
    ORDER BY CASE WHEN gaussian THEN gaussian_budget - gaussian_reserved ELSE budget - reserved END, id
    LIMIT :limit
""")

# One row a person; the histogram's bins are closed below and open above, but for the last one.
BALANCES = Sql(f"""
    WITH paid AS (
        SELECT subject_id, sum(spent) AS spent FROM (
            SELECT c.subject_id, {SPENT} AS spent
            FROM contribution c JOIN study ON study.id = c.study_id AND study.delta = 0 {JOIN_COHORT}
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

SPENT_MU2 = Sql.of(int)(f"""
    SELECT CAST(coalesce(sum({SPENT}), 0) AS bigint)
    FROM contribution c JOIN study ON study.id = c.study_id AND study.delta > 0 {JOIN_COHORT}
""")

HOLDINGS = Sql.of(HeldGroup)(f"""
    SELECT c.study_id, study.delta, c.trust, c.epsilon AS amount, {RESERVED} AS amount_reserved,
           {SPENT} AS amount_spent, count(*) AS people
    FROM contribution c JOIN study ON study.id = c.study_id {JOIN_COHORT}
    WHERE c.value IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6
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
        figure: What was found.
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
    connection: Connection, *, near_percent: int, limit: int, delta: int
) -> tuple[NearlyExhausted, ...]:
    """The people with the least left; delta is that at which mu^2 is read [1e-12]."""
    return tuple(await NEAREST.all(connection, near=near_percent, limit=limit, delta=delta))


async def read_balances(connection: Connection, *, width: int, bins: int) -> tuple[Spread, Spread]:
    """What all people have reserved, and spent, of the budget in epsilon [micro-epsilon]."""
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


async def read_spent_mu2(connection: Connection) -> int:
    """What all people have spent in studies with Gaussian noise [1e-6 of mu^2]."""
    return await SPENT_MU2.one(connection)


async def read_holdings(connection: Connection) -> list[HeldGroup]:
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
