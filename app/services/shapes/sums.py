"""What the people of an answer add up to: counts by cell, and sums of their numbers. Each is one scan."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from app.core.release import Used
from app.estimators.found_range import FoundRange
from app.services import work
from app.services.observer import Observer
from app.services.shapes.request import ShapeRequest
from app.services.shapes.trees import Cells, Grown, Tree, grow, next_cells
from app.store import bins
from app.store.database import Run
from app.store.releases import CohortsChanged

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanning:
    """Scans what a plan asks of people, see `priced_plan.Scans`.

    Attributes:
        run: Runs a transaction.
        observer: Hears how long planning and drawing take.
        request: What is asked.
        used: The cohorts that take part.
        reported: Those of them that reported a choice.
    """

    run: Run
    observer: Observer
    request: ShapeRequest
    used: Sequence[Used]
    reported: Collection[int]

    async def summed_up(self) -> Mapping[int, Sequence[int]]:
        """See `priced_plan.Scans`."""
        question = self.request.question
        if question.summed:
            return await self._summed(question.summed)
        return await self._by_cell() if question.shape.counts_bins else {}

    async def within(self, found: FoundRange) -> Mapping[int, Sequence[int]]:
        """See `priced_plan.Scans`."""
        return await self._summed(bins.clipped(self.request.place), low=found.low, high=found.high)

    async def grown(self, trees: Sequence[Tree]) -> Sequence[Grown]:
        """See `priced_plan.Scans`."""
        grown: Sequence[Grown] = [()] * len(trees)
        for _ in range(max((tree.plan.levels for tree in trees), default=0)):
            with self.observer.step("plan"):
                cells = await work.run(next_cells, trees, grown)
            counts = await self._counted(trees, cells)
            grown = await self.draw(grow, trees, grown, cells, counts)
        return grown

    async def draw(self, made: Callable[..., T], *args: object) -> T:
        """See `priced_plan.Scans`."""
        with self.observer.step("draw"):
            return await work.run(made, *args)

    async def _summed(self, expressions: tuple[str, ...], **limits: int) -> dict[int, tuple[int, ...]]:
        """The people of each cohort, and the sum of each expression; zeros for those without any."""
        study, ids = self.request.study, [one.cohort_id for one in self.used]
        rows = await self.run("release.sums", lambda c: bins.sum_up(c, study.id, ids, expressions, **limits))
        none = (0,) * (1 + len(expressions))
        found = dict.fromkeys(ids, none) | {row.cohort: row.sums for row in rows}
        if any(found[one.cohort_id][0] != one.count for one in self.used):
            raise CohortsChanged
        return found

    async def _by_cell(self) -> dict[int, list[int]]:
        """The people of each cohort by cell; of those that reported a choice the reports by their choices."""
        study, place, starts = self.request.study, self.request.place, self.request.question.starts
        by_cell = {one.cohort_id: [0] * (len(starts) + 1) for one in self.used}
        ids = [cohort for cohort in by_cell if cohort not in self.reported]
        axes: Sequence[bins.Axis] = [(place, starts)]
        if self.request.question.axes:
            of, named = study.definition.of_measure, study.definition.measures.place
            axes = [(named(name), of(name).choice_points[1:]) for name, _ in self.request.question.axes]
        for row in await self.run("release.bins", lambda c: bins.count_bins(c, study.id, ids, axes)):
            by_cell[row.cohort][row.bin] = row.count
        totals = {cohort: sum(counts) for cohort, counts in by_cell.items()}
        if self.reported:
            expressions, people = bins.choices(len(starts) + 1, place), sorted(self.reported)
            for one in await self.run(
                "release.reports", lambda c: bins.sum_up(c, study.id, people, expressions)
            ):
                totals[one.cohort], *by_cell[one.cohort] = one.sums
        if any(totals[one.cohort_id] != one.count for one in self.used):
            raise CohortsChanged
        return by_cell

    async def _counted(self, trees: Sequence[Tree], cells: Cells) -> list[dict[int, list[int]]]:
        """For each tree the people of each of its cohorts by the cells of a level; no empty cohorts."""
        study, place = self.request.study, self.request.place
        sizes = [tree.sizes for tree in trees]
        starts = [() if own is None else own for own in cells]
        asked = [
            ([] if none is None else sorted(own), new)
            for own, new, none in zip(sizes, starts, cells, strict=True)
        ]
        found: list[dict[int, list[int]]] = [{} for _ in trees]
        for row in await self.run("release.cells", lambda c: bins.count_cells(c, study.id, asked, place)):
            own = found[row.tree].setdefault(row.cohort, [0] * (len(starts[row.tree]) + 1))
            own[row.cell] = row.count
        for one, counts, (ids, _) in zip(sizes, found, asked, strict=True):
            if any(sum(counts.get(cohort, ())) != one[cohort] for cohort in ids):
                raise CohortsChanged
        return found
