"""Releases of distributions, quantiles and what needs them, on the way of every answer."""

from collections.abc import Sequence
from functools import partial

from app.core.release import Draft
from app.core.study import Study
from app.services import work
from app.services.shapes import shape_trees
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.shape_drafts import drafted
from app.services.shapes.shape_planned import plan
from app.services.shapes.shape_request import Made, ShapeRequest, Situation
from app.services.shapes.shape_steps import ShapeStep
from app.services.shapes.shape_sums import counted, summed_up, sums_within
from app.services.shapes.shape_trees import Grown, Tree
from app.services.statistics.answering import Answering
from app.services.statistics.drafting import Planned
from app.services.statistics.measured import summed
from app.services.statistics.questions import Ask
from app.store import cohorts
from app.store.database import Connection, Run


class Shapes(Answering[ShapeRequest, Situation]):
    """Answers questions for the distribution of the values."""

    request_of = ShapeRequest.of

    async def plan(self, study: Study, ask: Ask, *, fresh: bool = False) -> Planned:
        """Price and accuracy of an answer, see `app.services.shapes.shape_planned`.

        Raises:
            InvalidRequest: the question is not admissible for this study.
        """
        with self._observer.step("plan"):
            return await plan(self._database, study, ask, fresh=fresh)

    async def _read(self, connection: Connection, request: ShapeRequest) -> Situation:
        study = request.study
        epochs = await cohorts.read_epochs(connection, study.id)
        rows = request.among(await cohorts.read_cohorts(connection, study.id))
        rows = await summed(connection, study, request.measure_summed, rows)
        return await Situation.read(connection, request, rows, epoch=epochs.folded)

    async def _drawn(self, run: Run, request: ShapeRequest, now: Situation, made: Made) -> Draft:
        draft = partial(drafted, request, made, epoch=now.epoch, clock=self._clock)
        used = made.used
        counts = await summed_up(run, request, used, made.crowd.reported())
        if isinstance(made, ShapeStep):
            with self._observer.step("draw"):
                answer, noise, taken = await work.run(made.take, counts)
            return draft(answer, noise, taken=taken)
        if isinstance(made, FoundPlan):
            with self._observer.step("draw"):
                found = await work.run(made.find, counts)
            sums = await sums_within(run, request, used, found)
            with self._observer.step("draw"):
                answer = await work.run(made.answer, found, sums)
            return draft(answer, made.noise_json(found))
        grown = await self._grown(run, request, made.trees)
        with self._observer.step("draw"):
            answer = await work.run(made.answer, counts, grown)
        return draft(answer, made.noise_json())

    async def _grown(self, run: Run, request: ShapeRequest, trees: Sequence[Tree]) -> Sequence[Grown]:
        """Draw all levels of trees, one scan a level. Draws entropy; nothing of it is published yet.

        Raises:
            CohortsChanged: a person left since the cohorts were read: the draft would be void.
        """
        grown: Sequence[Grown] = [()] * len(trees)
        for _ in range(max((tree.plan.levels for tree in trees), default=0)):
            with self._observer.step("plan"):
                cells = await work.run(shape_trees.next_cells, trees, grown)
            counts = await counted(run, request, trees, cells)
            with self._observer.step("draw"):
                grown = await work.run(shape_trees.grow, trees, grown, cells, counts)
        return grown
