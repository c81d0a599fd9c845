"""Sums of one of several measures, which are made when they are asked for, and what reports are worth."""

from collections.abc import Sequence
from dataclasses import replace

from dither.device.measures import epsilon_of_each, reported

from app.core.cohort import Cohort
from app.core.study import Study, Trust
from app.store import bins, cohorts
from app.store.database import Connection
from app.store.releases import CohortsChanged


async def summed(
    connection: Connection, study: Study, measure: str, rows: Sequence[Cohort]
) -> Sequence[Cohort]:
    """Folded cohorts with the sums of a measure, or their own without one.

    Of a measure they are made in one scan. That they are those of the first draw of a piece follows from what
    holds for every sum: a cohort of a piece with the same count has the same people
    (`app.services.statistics.steps`), and who gives other numbers is a member of another cohort.

    Raises:
        CohortsChanged: a person left since the cohorts were read: a draft would be void.
    """
    if not measure:
        return _reporting(study, rows)
    ids, place = [row.id for row in rows], study.definition.measures.place(measure)
    sums = {one.cohort: one for one in await bins.sum_measure(connection, study.id, ids, place)}
    if any(row.id not in sums or sums[row.id].count != row.count for row in rows):
        raise CohortsChanged
    both = [(row, sums[row.id]) for row in rows]
    return _reporting(
        study,
        [replace(row, total=of.total, total_squares=of.total_squares, silent=of.silent) for row, of in both],
    )


async def read_profile(connection: Connection, study: Study, measure: str) -> Sequence[Cohort]:
    """All cohorts, for plans: with the rows that are not folded yet, and sums of reports alone."""
    rows = await cohorts.read_profile(connection, study.id)
    if not measure or Trust.LOCAL not in study.definition.trust:
        return _reporting(study, rows)
    place = study.definition.measures.place(measure)
    sent = await bins.reported_measure(connection, study.id, place)
    others = [row for row in rows if row.trust is not Trust.LOCAL]
    return [*others, *_reporting(study, sent)]


def _reporting(study: Study, rows: Sequence[Cohort]) -> Sequence[Cohort]:
    """Cohorts, local ones with what each report was randomized with in place of the whole offer.

    A study of measures or choices takes no report of a person who had spent something, so the whole offer was
    there.
    """
    definition = study.definition
    number = len(definition.measures) if definition.measures.several else 0
    # Elsewhere a report of the whole offer is randomized with it, as it is.
    if not (number or (definition.choices and definition.delta)) or Trust.LOCAL not in definition.trust:
        return rows
    found = []
    for row in rows:
        if row.trust is Trust.LOCAL:
            each, told = definition.randomized_with(row.epsilon), 0
            if number:
                each, told = epsilon_of_each(each, number), reported(each, number)
            row = replace(row, epsilon=each, carried=0, spent=each, reported=told)
        found.append(row)
    return found
