"""What the people of an answer add up to: counts by cell, and sums of their numbers. Each is one scan."""

from collections.abc import Collection, Iterable, Mapping, Sequence

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
    study, question, ids = request.study, request.question, [one.cohort_id for one in used]
    if question.pair:
        first, second = map(study.definition.measures.place, question.pair)
        pairs = await run("release.pair", lambda c: bins.sum_pair(c, study.id, ids, first, second))
        return _checked(
            ((row.cohort, (row.count, row.first, row.second, row.products)) for row in pairs), used, 4
        )
    if question.estimator == COORDINATES:
        place, dimension = request.place or 0, study.definition.dimension
        rows = await run(
            "release.coordinates", lambda c: bins.sum_coordinates(c, study.id, ids, place, dimension)
        )
        found = ((row.cohort, (row.count, *row.totals, *row.squares)) for row in rows)
        return _checked(found, used, 1 + 2 * dimension)
    return await _by_cell(run, request, used, reported) if question.counts_bins else {}


def _checked(
    sums: Iterable[tuple[int, tuple[int, ...]]], used: Sequence[Used], length: int
) -> dict[int, tuple[int, ...]]:
    """The sums of each cohort, of which the first is its people; zeros for those without any."""
    found = dict(sums)
    none = (0,) * length
    if any(found.get(one.cohort_id, none)[0] != one.count for one in used):
        raise CohortsChanged
    return {one.cohort_id: found.get(one.cohort_id, none) for one in used}


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
        all_of_them = len(starts) + 1
        for one in await run(
            "release.reports",
            lambda c: bins.count_choices(c, study.id, sorted(reported), all_of_them, place),
        ):
            totals[one.cohort], by_cell[one.cohort] = one.count, list(one.by_choice)
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


async def sums_within(
    run: Run, request: ShapeRequest, used: Sequence[Used], found: FoundRange
) -> dict[int, bins.ClippedSum]:
    """What the people of each cohort add up to in a range.

    Raises:
        CohortsChanged: a person left since the cohorts were read: the draft would be void.
    """
    study, ids = request.study, [one.cohort_id for one in used]
    rows = await run(
        "release.clipped",
        lambda c: bins.sum_clipped(c, study.id, ids, found.low, found.width, request.place),
    )
    sums = {row.cohort: row for row in rows}
    if any(
        one.count and (one.cohort_id not in sums or sums[one.cohort_id].count != one.count) for one in used
    ):
        raise CohortsChanged
    return sums
