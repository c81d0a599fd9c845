"""Releases of distributions, quantiles and what needs them, on the way of every answer."""

from app.core.study import Study
from app.services.shapes.shape_drafts import said
from app.services.shapes.shape_planned import plan
from app.services.shapes.shape_request import Made, ShapeRequest, Situation
from app.services.shapes.shape_sums import Scanning
from app.services.statistics.answering import Answering
from app.services.statistics.drafting import Planned
from app.services.statistics.drafts import Said
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

    async def _said(self, run: Run, request: ShapeRequest, now: Situation, made: Made) -> Said:
        reported = made.crowd.reported()
        scans = Scanning(run=run, observer=self._observer, request=request, used=made.used, reported=reported)
        return said(request, made, await made.answered(scans))
