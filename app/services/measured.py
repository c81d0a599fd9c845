"""Sums of one of several measures, which are made when they are asked for."""

from collections.abc import Sequence
from dataclasses import replace

from app.core.cohort import Cohort
from app.core.study import Study
from app.store import bins
from app.store.database import Connection
from app.store.releases import CohortsChanged


async def summed(
    connection: Connection, study: Study, measure: str, rows: Sequence[Cohort]
) -> Sequence[Cohort]:
    """Folded cohorts with the sums of a measure; as they are without one.

    They are made in one scan. That they are those of the first draw of a piece follows from what holds for
    every sum: a cohort of a piece with the same count has the same people (`app.services.steps`), and who
    gives other numbers is a member of another cohort.

    Raises:
        CohortsChanged: a person left since the cohorts were read: a draft would be void.
    """
    if not measure:
        return rows
    ids, place = [row.id for row in rows], study.definition.measures.place(measure)
    sums = {one.cohort: one for one in await bins.sum_measure(connection, study.id, ids, place)}
    if any(row.id not in sums or sums[row.id].count != row.count for row in rows):
        raise CohortsChanged
    return [replace(row, total=sums[row.id].total, total_squares=sums[row.id].total_squares) for row in rows]
