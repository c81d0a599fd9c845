"""Which cohort a contribution is folded into: the one place that says so.

A cohort's members share study, trust and segment, and what they reserve and had spent before. Values of
public people cost nothing, whatever their owners spent before, so those of a segment that are folded together
are one cohort, with zeros. Epochs may share a cohort, see `app.store.cohorts`: a row of `lineage` says in
which one the people of an epoch are who have a key.
"""

from app.core.grid import GRID_BITS, GRID_SIZE, MIDDLE

SHARED = ("study_id", "epoch", "trust", "segment")
"""Columns of the key of a lineage that a contribution has as they are."""

KEY = ("epsilon", "carried")


def key_columns(row: str) -> str:
    """The columns `KEY` of the lineage of a contribution, as SQL.

    Args:
        row: Name of a row with `trust` and the columns `KEY`, as they are in `contribution`.

    >>> key_columns("c").split(", ")[0]
    "CASE WHEN c.trust = 'public' THEN 0 ELSE c.epsilon END AS epsilon"
    """
    return ", ".join(f"{_keyed(row, column)} AS {column}" for column in KEY)


def summand(lineage: str = "lineage") -> str:
    """What a live contribution adds to its cohort's sum, as SQL: its value, or the nearest that still counts.

    Args:
        lineage: Name of a row with `reach`, where NULL lets every value count as it is.
    """
    return f"greatest(-{lineage}.reach, least(c.value, {GRID_SIZE} + {lineage}.reach))"


def square(row: str, value: str) -> str:
    """What a live contribution adds to its cohort's sum of squares, as SQL.

    The square of a report, or `app.core.grid.square` of a central or public person's grid point.

    Args:
        row: Name of a row of `contribution`.
        value: What it adds to the sum, as SQL.
    """
    return f"CASE WHEN {row}.trust = 'local' THEN {_squared(value)} ELSE {centered(value)} END"


def sum_of_squares(row: str, value: str) -> str:
    """The sum of `square` over rows, as SQL. Integers of 64 bits are added up several times as fast."""
    return (
        f"coalesce(sum({_squared(value)}) FILTER (WHERE {row}.trust = 'local'), 0)"
        f" + coalesce(sum({centered(value)}) FILTER (WHERE {row}.trust <> 'local'), 0)"
    )


def _squared(value: str) -> str:
    return f"CAST({value} AS numeric) * {value}"


def centered(value: str) -> str:
    """`app.core.grid.square` of a central or public person's grid point, as SQL."""
    return f"((({value} - {MIDDLE}) * ({value} - {MIDDLE})) >> {GRID_BITS})"


def _keyed(row: str, column: str) -> str:
    return f"CASE WHEN {row}.trust = 'public' THEN 0 ELSE {row}.{column} END"


IS_MEMBER = "({})".format(
    " AND ".join(
        [f"lineage.{column} = c.{column}" for column in SHARED]
        + [f"lineage.{column} = {_keyed('c', column)}" for column in KEY]
    )
)
"""Whether the contribution `c` is of the row of `lineage`, as an SQL condition; it must be live besides."""
