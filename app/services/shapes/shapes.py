"""Plans and releases of distributions, quantiles and what needs them, on the way of every answer."""

from collections.abc import Sequence

from app.core.errors import BudgetExhausted, NoGain, SaysNothing, ServiceError
from app.estimators.interface import NotApplicable
from app.services.shapes.questions import BY_BINS
from app.services.shapes.request import PlannedShape, ShapeRequest, ShapeSituation
from app.services.shapes.sums import Scanning
from app.services.statistics.answering import Answering
from app.services.statistics.answers_left import answers_left
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.drafts import Said
from app.services.statistics.reading import Reading
from app.store.database import Run

VERSION = 7
"""Grows whenever the distribution of answers changes."""


def priced(
    request: ShapeRequest, now: ShapeSituation, reading: Reading
) -> tuple[Sequence[PlannedEstimator], ServiceError | None]:
    """What answers the question, nothing where that is refused; and what refuses it."""
    nothing = None
    try:
        made = now.made(request)
        request.check_read(made)
        left = answers_left(request, now, made)
    except (BudgetExhausted, NotApplicable) as refusal:
        return (), refusal
    try:
        request.check_planned(now, made)
    except (NoGain, SaysNothing) as refusal:
        nothing, left = refusal, left and 0
    return [_estimator(request, made, reading, left)], nothing


def _estimator(
    request: ShapeRequest, made: PlannedShape, reading: Reading, left: int | None
) -> PlannedEstimator:
    question, asked, shown = request.question, reading.ask.statistic, made.for_all
    return PlannedEstimator.of(
        request.study.definition,
        request.accuracy(made, reading),
        most=made.most,
        most_in_all=made.most_in_all,
        estimator=question.estimator,
        summary=question.shape.summary + shown.joined,
        one_report_moves=shown.one_report_moves,
        statistics=shown.statistics or (BY_BINS if asked in BY_BINS else (asked,)),
        answers_left=left,
        chosen=True,
        **shown.shown(),
    )


class Shapes(Answering[ShapeRequest, ShapeSituation]):
    """Answers questions for the distribution of the values."""

    request_of = ShapeRequest.of
    situation = ShapeSituation
    priced = staticmethod(priced)

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
