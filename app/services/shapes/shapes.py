"""Plans and releases of distributions, quantiles and what needs them, on the way of every answer."""

from app.services.shapes.request import PlannedShape, ShapeRequest, ShapeSituation
from app.services.shapes.sums import Scanning
from app.services.statistics.answering import Answering
from app.services.statistics.drafts import Said
from app.store.database import Run

VERSION = 7
"""Grows whenever the distribution of answers changes."""


class Shapes(Answering[ShapeRequest, ShapeSituation]):
    """Answers questions for the distribution of the values."""

    request_of = ShapeRequest.of
    situation = ShapeSituation

    async def _said(self, run: Run, request: ShapeRequest, now: ShapeSituation, made: PlannedShape) -> Said:
        question, reported = request.question, made.crowd.reported()
        answered = await made.answered(
            Scanning(run=run, observer=self._observer, request=request, used=made.used, reported=reported)
        )
        return Said.of(
            made,
            estimator=question.estimator,
            version=VERSION,
            parameters=question.asked(),
            numbers={"predicted_error": made.predicted_error, **answered.body},
            left_out=made.crowd.why_left_out,
            noise=answered.noise,
            charges=answered.charges,
            taken=answered.taken,
            apart=answered.apart,
        )
