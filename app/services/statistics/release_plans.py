"""What a question would cost and how accurate its answer would be; nothing is spent."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.core.errors import PrivacyRefusal, SaysNothing, ServiceError
from app.estimators.interface import Estimator, NotApplicable
from app.services.statistics.answers_left import answers_left
from app.services.statistics.any_request import AnySituation, Asked
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.reading import Reading


def priced(
    request: Asked, now: AnySituation[Asked], reading: Reading
) -> tuple[Sequence[PlannedEstimator], ServiceError | None]:
    """What every estimator that has an answer would do, the one that is chosen first; and what refuses it."""
    made: Any = None
    refusal: ServiceError | None = None
    try:
        made = now.made(request)
        request.check_read(made)
        request.check_planned(now, made)
    except (NotApplicable, PrivacyRefusal) as why:
        refusal = why
    # Without a choice the answer is the one that is given.
    known = made if request.choices == (None,) else None
    planned = [entry for among in request.choices if (entry := _plan(request, now, among, reading, known))]
    # Steps are chosen by what they come to at share 1, others by the answer itself.
    first = made.estimator.name if known is None and made is not None and made.by_steps else None
    planned.sort(key=lambda entry: (first is not None and entry.estimator != first, entry.of_mean))
    if planned:
        nothing = isinstance(refusal, SaysNothing) and planned[0].answers_left
        planned[0] = replace(planned[0], chosen=True, answers_left=0 if nothing else planned[0].answers_left)
    return planned, refusal


def _plan(
    request: Asked,
    now: AnySituation[Asked],
    among: Sequence[Estimator] | None,
    reading: Reading,
    known: Any,
) -> PlannedEstimator | None:
    """What one estimator would do, of which the answer may be known; None where it has none."""
    try:
        made = known or now.made(request, among)
        request.check_read(made)
        entry = request.planned(now, made, reading, among)
        if request.question.asks_first:
            study = request.study.definition
            entry = entry.charging(study, request.question.most_taken(study))
        return replace(entry, answers_left=answers_left(request, now, made, among))
    except (NotApplicable, PrivacyRefusal):
        return None
