"""Releases of distributions, quantiles and what needs them, on the way of every answer."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from app.core.cohort import Cohort
from app.core.piece import LastStep, Piece
from app.core.release import Draft
from app.core.study import Study
from app.services import work
from app.services.shapes import shape_kinds, shape_trees
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.shape_drafts import drafted
from app.services.shapes.shape_planned import plan
from app.services.shapes.shape_questions import DESCRIBE
from app.services.shapes.shape_request import ShapeRequest, people_of
from app.services.shapes.shape_sums import counted, summed_up, sums_within
from app.services.shapes.shape_trees import Grown, Tree
from app.services.statistics.answering import Answering
from app.services.statistics.drafting import Planned
from app.services.statistics.measured import summed
from app.services.statistics.questions import Ask
from app.sessions.searched import Searched
from app.store import cohorts
from app.store.database import Connection, Run


class Shapes(Answering[ShapeRequest]):
    """Answers questions for the distribution of the values."""

    request_of = ShapeRequest.of

    async def plan(self, study: Study, ask: Ask, *, fresh: bool = False) -> Planned:
        """Price and accuracy of an answer, see `app.services.shapes.shape_planned`.

        Raises:
            InvalidRequest: the question is not admissible for this study.
        """
        with self._observer.step("plan"):
            return await plan(self._database, study, ask, fresh=fresh)

    async def _draft(self, run: Run, request: ShapeRequest) -> tuple[Draft, ShapeRequest] | UUID:
        study, question = request.study, request.question

        async def read(
            connection: Connection,
        ) -> tuple[int, Sequence[Cohort], Searched | None, float | None, LastStep | None, Sequence[Piece]]:
            epochs = await cohorts.read_epochs(connection, study.id)
            rows = request.among(await cohorts.read_cohorts(connection, study.id))
            of_measure = question.estimator == DESCRIBE or request.of_choice
            rows = await summed(connection, study, question.measure if of_measure else "", rows)
            searched = await request.searched(connection)
            best = await request.best(connection, people_of(rows, searched))
            return epochs.folded, rows, searched, best, *await request.kept(connection)

        epoch, rows, searched, best, before, kept = await run("release.cohorts", read)
        with self._observer.step("plan"):
            step = await work.run(request.step, rows, kept, before)
        if step is not None:
            if not step.finer and before is not None and before.epoch == epoch:
                return before.release
            request.check_read(step.whole)
            request.check(step.crowd.people, step.crowd.unable, step.interval_width, best)
            await work.run(request.check_told, step, rows, searched, kept, before)
            counts = await summed_up(run, request, step.used, step.crowd.reported())
            with self._observer.step("draw"):
                answer, noise, taken = await work.run(step.take, counts)
            draft = drafted(request, step, answer, noise, epoch=epoch, clock=self._clock, taken=taken)
            return draft, replace(request, had=step.had_by_all)
        with self._observer.step("plan"):
            made = await work.run(shape_kinds.make, study.definition, question, rows, searched)
        request.check_read(made)
        crowd = made.crowd
        if request.compares:
            request.check(crowd.people, crowd.unable, made.interval_width, best)
        await work.run(request.check_told, made, rows, searched, kept, before)
        used = crowd.used()
        counts = await summed_up(run, request, used, crowd.reported())
        if not isinstance(made, FoundPlan):
            grown = await self._grown(run, request, made.trees)
            with self._observer.step("draw"):
                answer = await work.run(made.answer, counts, grown)
            draft = drafted(
                request,
                made,
                answer,
                made.noise_json(),
                epoch=epoch,
                clock=self._clock,
            )
            return draft, replace(request, had=0)
        with self._observer.step("draw"):
            found = await work.run(made.find, counts)
        sums = await sums_within(run, request, used, found)
        with self._observer.step("draw"):
            answer = await work.run(made.answer, found, sums)
        draft = drafted(
            request,
            made,
            answer,
            made.noise_json(found),
            epoch=epoch,
            clock=self._clock,
        )
        return draft, replace(request, had=0)

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
