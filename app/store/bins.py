"""Counts of central and public people by cohort and bin, and sums of values that are moved into a range.

Each is one scan, and no value leaves the database.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from app.core.cohort import Cohort
from app.core.grid import GRID_BITS, GRID_SIZE, MIDDLE
from app.store.membership import IS_MEMBER, centered, sum_of_squares
from app.store.sql import Connection, Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class BinCount:
    """How many members of a cohort are in a bin, where there are any.

    Attributes:
        cohort: Id.
        bin: From 0 on.
        count: Live members.
    """

    cohort: int
    bin: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortSums:
    """What the members of a cohort add up to.

    Attributes:
        cohort: Id.
        sums: How many they are, live, and the sum of each expression.
    """

    cohort: int
    sums: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSum:
    """What the members of a cohort add up to in one of their numbers.

    Attributes:
        cohort: Id.
        total: Sum of their grid points, or of the reports of those who reported it.
        total_squares: Sum of their `grid.square`, or of squared reports.
        count: Live members.
        silent: Those of them who did not report it.
    """

    cohort: int
    total: int
    total_squares: int
    count: int
    silent: int


Axis = tuple[int | None, Sequence[int]]
"""Which coordinate is counted, from 0 on, None for the one value; and where each of its bins but the first
begins, ascending: a value there belongs to it [grid steps]."""


@cache
def _count_bins(places: tuple[int | None, ...]) -> Sql[BinCount]:
    bin_of = "0"
    for number, place in enumerate(places):
        starts = f"CAST(:starts_{number} AS bigint[])"
        bin_of = f"({bin_of}) * (cardinality({starts}) + 1) + width_bucket({_value(place)}, {starts})"
    return Sql.of(BinCount)(f"""
        SELECT cohort_id AS cohort, {bin_of} AS bin, count(*) AS count
        FROM lineage JOIN contribution c ON {IS_MEMBER}
        WHERE cohort_id = ANY(CAST(:cohorts AS bigint[])) AND c.study_id = :study_id AND c.value IS NOT NULL
        GROUP BY cohort_id, bin
    """)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCount:
    """How many members of a cohort are in a cell of a tree, where there are any.

    Attributes:
        tree: Number of the tree, from 0 on.
        cohort: Id.
        cell: From 0 on.
        count: Live members.
    """

    tree: int
    cohort: int
    cell: int
    count: int


@cache
def _count_cells(place: int | None) -> Sql[CellCount]:
    """One pass over the people of each tree. Trees differ in cells, so each has an array as text."""
    return Sql.of(CellCount)(f"""
        WITH tree AS MATERIALIZED (
            SELECT number - 1 AS number, CAST(starts AS bigint[]) AS starts
            FROM unnest(CAST(:starts AS text[])) WITH ORDINALITY AS one (starts, number)
        )
        SELECT CAST(tree.number AS int) AS tree, cohort_id AS cohort,
               width_bucket({_value(place)}, tree.starts) AS cell, count(*) AS count
        FROM unnest(CAST(:trees AS int[]), CAST(:cohorts AS bigint[])) AS asked (tree_number, asked_cohort)
        JOIN tree ON tree.number = asked.tree_number
        JOIN lineage ON cohort_id = asked_cohort JOIN contribution c ON {IS_MEMBER}
        WHERE c.study_id = :study_id AND c.value IS NOT NULL
        GROUP BY tree.number, cohort_id, cell
    """)


def _value(place: int | None) -> str:
    """The one value of a contribution, or the coordinate that is a measure, from 0 on."""
    return "c.value" if place is None else f"c.vector[{place + 1}]"


def clipped(place: int | None) -> tuple[str, ...]:
    """A value moved into a range, from its lower end on [grid steps]; limits `low` and `high` bound it."""
    low, high = "CAST(:low AS bigint)", "CAST(:high AS bigint)"
    return (f"least(greatest({_value(place)}, {low}), {high}) - {low}",)


def pair(first: int, second: int) -> tuple[str, ...]:
    """Two coordinates, and their product about the middles, rounded down [2^-30 of a squared step]."""
    one, other = _value(first), _value(second)
    return one, other, f"(({one} - {MIDDLE}) * ({other} - {MIDDLE})) >> {GRID_BITS}"


def moments(first: int, second: int) -> tuple[str, ...]:
    """As `pair`, and the `grid.square` of both."""
    return (*pair(first, second), *(centered(_value(place)) for place in (first, second)))


def bernstein(first: int, second: int) -> tuple[str, ...]:
    """Products of Bernstein's polynomials of both, see `app.accounting.pair_prices`: i by i, then by j."""
    own, other = (
        (
            f"({GRID_SIZE} - 2 * {p} + (({p} * {p}) >> {GRID_BITS}))",
            f"2 * ({p} - (({p} * {p}) >> {GRID_BITS}))",
            f"(({p} * {p}) >> {GRID_BITS})",
        )
        for p in map(_value, (first, second))
    )
    return tuple(f"({one} * {two}) >> {GRID_BITS}" for one in own for two in other)


def coordinates(first: int, dimension: int) -> tuple[str, ...]:
    """Coordinates from one on, and for each its `grid.square`: no local person has a vector."""
    own = [_value(place) for place in range(first, first + dimension)]
    return (*own, *map(centered, own))


def choices(number: int, place: int | None) -> tuple[str, ...]:
    """For each choice whether it is in a report."""
    return tuple(f"({_value(place)} >> {bit}) & 1" for bit in range(number))


@cache
def _sum_up(expressions: tuple[str, ...]) -> Sql[CohortSums]:
    """One pass over the people, however many expressions there are."""
    sums = ", ".join(f"coalesce(sum({one}), 0)" for one in expressions)
    return Sql.of(CohortSums)(f"""
        SELECT cohort_id AS cohort, CAST(ARRAY[count(*), {sums}] AS bigint[]) AS sums
        FROM lineage JOIN contribution c ON {IS_MEMBER}
        WHERE cohort_id = ANY(CAST(:cohorts AS bigint[])) AND c.study_id = :study_id AND c.value IS NOT NULL
        GROUP BY cohort_id
    """)


_COORDINATE = "c.vector[CAST(:place AS int)]"

_MEASURE_SUMS = f"""
    count(*) AS count, count(*) - count({_COORDINATE}) AS silent, coalesce(sum({_COORDINATE}), 0) AS total,
    {sum_of_squares("c", _COORDINATE)} AS total_squares
"""

SUM_MEASURE = Sql.of(MeasureSum)(f"""
    SELECT cohort_id AS cohort, {_MEASURE_SUMS}
    FROM lineage JOIN contribution c ON {IS_MEMBER}
    WHERE cohort_id = ANY(CAST(:cohorts AS bigint[])) AND c.study_id = :study_id AND c.value IS NOT NULL
    GROUP BY cohort_id
""")

# For plans, also of reports that are not folded yet. A study takes none whose owners had spent something.
REPORTED_MEASURE = Sql.of(Cohort)(f"""
    SELECT 0 AS id, trust, epsilon, carried, epsilon AS spent, CAST(NULL AS bigint) AS reach, segment,
           0 AS reported, {_MEASURE_SUMS}
    FROM contribution c WHERE c.study_id = :study_id AND c.trust = 'local' AND c.value IS NOT NULL
    GROUP BY trust, epsilon, carried, segment ORDER BY epsilon, carried, segment
""")


async def count_bins(
    connection: Connection,
    study_id: int,
    cohorts: Sequence[int],
    axes: Sequence[Axis],
) -> list[BinCount]:
    """Count the live members of folded cohorts by bin; of several axes by cell, the last one running first.

    Args:
        connection: Open transaction.
        study_id: Their study.
        cohorts: Ids.
        axes: See `Axis`.

    Returns:
        The counts that are not 0. Raw: must not leave the services.
    """
    if not cohorts:
        return []
    starts = {f"starts_{number}": own for number, (_, own) in enumerate(axes)}
    return await _count_bins(tuple(place for place, _ in axes)).all(
        connection, study_id=study_id, cohorts=cohorts, **starts
    )


async def count_cells(
    connection: Connection,
    study_id: int,
    trees: Sequence[tuple[Sequence[int], Sequence[int]]],
    place: int | None = None,
) -> list[CellCount]:
    """Count the live members of folded cohorts by the cells of trees.

    Args:
        connection: Open transaction.
        study_id: Their study.
        trees: For each the ids of its cohorts, and where each cell but the first one begins, ascending; a
            value there belongs to it [grid steps].
        place: Which coordinate is counted, from 0 on; None for the one value.

    Returns:
        The counts that are not 0. Raw: must not leave the services.
    """
    asked = [(number, cohort) for number, (cohorts, _) in enumerate(trees) for cohort in cohorts]
    if not asked:
        return []
    numbers, cohorts = zip(*asked, strict=True)
    starts = ["{" + ",".join(map(str, own)) + "}" for _, own in trees]
    return await _count_cells(place).all(
        connection, study_id=study_id, trees=list(numbers), cohorts=list(cohorts), starts=starts
    )


async def sum_up(
    connection: Connection,
    study_id: int,
    cohorts: Sequence[int],
    expressions: tuple[str, ...],
    **limits: int,
) -> list[CohortSums]:
    """Sum expressions over the live members of folded cohorts.

    Args:
        connection: Open transaction.
        study_id: Their study.
        cohorts: Ids.
        expressions: Of a contribution `c`, as `clipped`, `pair`, `coordinates` and `choices` make them.
        limits: What they name.

    Returns:
        The sums of each cohort with members. Raw, but of local people: must not leave the services.
    """
    if not cohorts:
        return []
    return await _sum_up(expressions).all(connection, study_id=study_id, cohorts=cohorts, **limits)


async def sum_measure(
    connection: Connection, study_id: int, cohorts: Sequence[int], place: int
) -> list[MeasureSum]:
    """Sum one coordinate of the values of the live members of folded cohorts.

    Args:
        connection: Open transaction.
        study_id: Their study.
        cohorts: Ids.
        place: Which coordinate, from 0 on.

    Returns:
        The sums of each cohort with members. Raw: must not leave the services.
    """
    if not cohorts:
        return []
    return await SUM_MEASURE.all(connection, study_id=study_id, cohorts=cohorts, place=place + 1)


async def reported_measure(connection: Connection, study_id: int, place: int) -> list[Cohort]:
    """What local people, folded or not, reported of one coordinate, by what they offer and their labels.

    Args:
        connection: Open transaction.
        study_id: Their study.
        place: Which coordinate, from 0 on.

    Returns:
        Cohorts without ids. Private already.
    """
    return await REPORTED_MEASURE.all(connection, study_id=study_id, place=place + 1)
