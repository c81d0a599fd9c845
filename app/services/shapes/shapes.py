"""Releases of distributions, quantiles and what needs them, on the way of every answer."""

from collections.abc import Sequence

from app.core.errors import ServiceError
from app.services.shapes.shape_drafts import said
from app.services.shapes.shape_planned import priced
from app.services.shapes.shape_request import Made, ShapeRequest, Situation
from app.services.shapes.shape_sums import Scanning
from app.services.statistics.answering import Answering
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.drafts import Said
from app.services.statistics.reading import Reading
from app.store.database import Run


class Shapes(Answering[ShapeRequest, Situation]):
    """Answers questions for the distribution of the values."""

    request_of = ShapeRequest.of
    situation = Situation

    def _priced(
        self, request: ShapeRequest, now: Situation, reading: Reading
    ) -> tuple[Sequence[PlannedEstimator], ServiceError | None]:
        return priced(request, now, reading)

    async def _said(self, run: Run, request: ShapeRequest, now: Situation, made: Made) -> Said:
        reported = made.crowd.reported()
        scans = Scanning(run=run, observer=self._observer, request=request, used=made.used, reported=reported)
        return said(request, made, await made.answered(scans))
