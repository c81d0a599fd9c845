"""What the people of an answer add up to: counts by cell, and sums of their numbers. Each is one scan."""

from collections.abc import Collection, Mapping, Sequence

from app.core.release import Used
from app.estimators.found_range import FoundRange
from app.services.shapes.shape_questions import COORDINATES
from app.services.shapes.shape_request import ShapeRequest
from app.services.shapes.shape_trees import Cells, Tree
from app.store import bins
from app.store.database import Run
from app.store.releases import CohortsChanged


async def summed_up(
    run: Run, request: ShapeRequest, used: Sequence[Used], reported: Collection[int]
) -> Mapping[int, Sequence[int]]:
    """What the plan of a question asks of each cohort; nothing, where it needs their sizes alone.

    Args:
        run: Runs a transaction.
        request: What is asked.
        used: The cohorts that take part.
        reported: Those of them that reported a choice.

    Raises:
        CohortsChanged: a person left since the cohorts were read: the draft would be void.
    """
    study, question = request.study, request.question
    if question.pair:
        expressions = bins.pair(*map(study.definition.measures.place, question.pair))
    elif question.estimator == COORDINATES:
        expressions = bins.coordinates(request.place or 0, study.definition.dimension)
    else:
        return await _by_cell(run, request, used, reported) if question.counts_bins else {}
    return await _summed(run, request, used, expressions)


async def sums_within(
    run: Run, request: ShapeRequest, used: Sequence[Used], found: FoundRange
) -> dict[int, tuple[int, ...]]:
    """The people of each cohort, and what their values add up to in a range.

    Raises:
        CohortsChanged: a person left since the cohorts were read: the draft would be void.
    """
    return await _summed(run, request, used, bins.clipped(request.place), low=found.low, high=found.high)


async def _summed(
    run: Run, request: ShapeRequest, used: Sequence[Used], expressions: tuple[str, ...], **limits: int
) -> dict[int, tuple[int, ...]]:
    """The people of each cohort, and the sum of each expression; zeros for those without any."""
    study, ids = request.study, [one.cohort_id for one in used]
    rows = await run("release.sums", lambda c: bins.sum_up(c, study.id, ids, expressions, **limits))
    none = (0,) * (1 + len(expressions))
    found = dict.fromkeys(ids, none) | {row.cohort: row.sums for row in rows}
    if any(found[one.cohort_id][0] != one.count for one in used):
        raise CohortsChanged
    return found


async def _by_cell(
    run: Run, request: ShapeRequest, used: Sequence[Used], reported: Collection[int]
) -> dict[int, list[int]]:
    """The people of each cohort by cell; of those that reported a choice the reports by what is in them."""
    study, starts, place = request.study, request.question.starts, request.place
    by_cell = {one.cohort_id: [0] * (len(starts) + 1) for one in used}
    ids = [cohort for cohort in by_cell if cohort not in reported]
    for row in await run("release.bins", lambda c: bins.count_bins(c, study.id, ids, starts, place)):
        by_cell[row.cohort][row.bin] = row.count
    totals = {cohort: sum(counts) for cohort, counts in by_cell.items()}
    if reported:
        expressions, people = bins.choices(len(starts) + 1, place), sorted(reported)
        for one in await run("release.reports", lambda c: bins.sum_up(c, study.id, people, expressions)):
            totals[one.cohort], *by_cell[one.cohort] = one.sums
    if any(totals[one.cohort_id] != one.count for one in used):
        raise CohortsChanged
    return by_cell


async def counted(
    run: Run, request: ShapeRequest, trees: Sequence[Tree], cells: Cells
) -> list[dict[int, list[int]]]:
    """For each tree the people of each of its cohorts by the cells of a level; nothing of empty cohorts.

    Raises:
        CohortsChanged: a person left since the cohorts were read: the draft would be void.
    """
    study, place = request.study, request.place
    sizes = [tree.sizes for tree in trees]
    starts = [() if own is None else own for own in cells]
    asked = [
        ([] if none is None else sorted(own), new)
        for own, new, none in zip(sizes, starts, cells, strict=True)
    ]
    found: list[dict[int, list[int]]] = [{} for _ in trees]
    for row in await run("release.cells", lambda c: bins.count_cells(c, study.id, asked, place)):
        own = found[row.tree].setdefault(row.cohort, [0] * (len(starts[row.tree]) + 1))
        own[row.cell] = row.count
    for one, counts, (ids, _) in zip(sizes, found, asked, strict=True):
        if any(sum(counts.get(cohort, ())) != one[cohort] for cohort in ids):
            raise CohortsChanged
    return found
