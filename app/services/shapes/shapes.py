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
        question, crowd = request.question, made.crowd
        used, reported = made.used, crowd.reported()
        answered = await made.answered(
            Scanning(run=run, observer=self._observer, request=request, used=used, reported=reported)
        )
        return Said(
            estimator=question.estimator,
            version=VERSION,
            parameters=question.asked(),
            numbers={"predicted_error": made.predicted_error, **answered.body},
            people=crowd.people,
            left_out=crowd.why_left_out,
            width=made.interval_width,
            most=made.most,
            most_in_all=made.most_in_all,
            noise=answered.noise,
            charges=answered.charges,
            used=used,
            taken=answered.taken,
            apart=answered.apart,
        )
