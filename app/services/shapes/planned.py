"""What a question about the distribution would cost, and how accurate it would be; nothing is spent."""

from collections.abc import Sequence
from typing import Any

from app.core.cohort import Cohort
from app.core.errors import BudgetExhausted, SaysNothing, ServiceError
from app.estimators.interface import NotApplicable
from app.services.shapes import kinds
from app.services.shapes.questions import BY_BINS
from app.services.shapes.request import PlannedShape, ShapeRequest, ShapeSituation
from app.services.statistics.answers_left import Priced, count_left, priced_members, steps_left
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.reading import Reading


def priced(
    request: ShapeRequest, now: ShapeSituation, reading: Reading
) -> tuple[Sequence[PlannedEstimator], ServiceError | None]:
    """What answers the question, nothing where that is refused; and what refuses it."""
    left, nothing = None, None
    try:
        made: Any = now.made(request)
        request.check_read(made)
        if made.by_steps:
            gains = request.is_gain(made, now.best)
            left = steps_left(made, now.cohorts, request.question.share) if gains else 0
        elif request.compares:
            left = _left(request, now)
    except (BudgetExhausted, NotApplicable) as refusal:
        return (), refusal
    try:
        request.check_told(now, made)
    except SaysNothing as refusal:
        nothing, left = refusal, left and 0
    return [_estimator(request, made, reading, left)], nothing


def _left(request: ShapeRequest, now: ShapeSituation) -> int | None:
    """How many more answers to this question there are, see `app.services.statistics.answers_left`."""

    def planned(rows: Sequence[Cohort], best: float | None) -> tuple[float, Priced]:
        made = kinds.make(request.study.definition, request.question, rows, now.searched)
        request.check(*request.compared(made), best)
        return made.interval_width, priced_members(made.crowd.groups, made.crowd.members, made.costs)

    return count_left(now.cohorts, now.best, planned)


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
