"""What a question would cost and how accurate its answer would be; nothing is spent."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.core.errors import PrivacyRefusal, SaysNothing, ServiceError
from app.core.study import StudyDefinition
from app.estimators import registry
from app.estimators.expected import ExpectedValues
from app.estimators.interface import Estimator, NotApplicable, Plan, Question
from app.services.statistics import planning
from app.services.statistics.answers_left import answers_left
from app.services.statistics.asked_accuracy import Readable
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.questions import MEAN, SD, SUM, VARIANCE
from app.services.statistics.reading import Reading
from app.services.statistics.release_request import MeanSituation, PlannedMean, ReleaseRequest


def priced(
    request: ReleaseRequest, now: MeanSituation, reading: Reading
) -> tuple[Sequence[PlannedEstimator], ServiceError | None]:
    """What every estimator that has an answer would do, the one that is chosen first; and what refuses it."""
    definition, name = request.study.definition, request.question.estimator
    estimators = (
        registry.applicable(definition.relation, definition.noise)
        if name == registry.AUTO
        else [registry.get(name, definition.relation, definition.noise)]
    )
    made: PlannedMean | None = None
    refusal: ServiceError | None = None
    try:
        made = now.made(request)
        request.check_read(made)
        request.check_planned(now, made)
    except (NotApplicable, PrivacyRefusal) as why:
        refusal = why
    # The answer of a named estimator is the one that is given.
    known = None if name == registry.AUTO else made
    planned = [entry for one in estimators if (entry := _plan(request, now, one, reading, known))]
    # Steps are chosen by what they come to at share 1, others by the answer itself.
    first = made.estimator.name if made is not None and made.by_steps else None
    planned.sort(key=lambda entry: (first is not None and entry.estimator != first, entry.of_mean))
    if planned:
        nothing = isinstance(refusal, SaysNothing) and planned[0].answers_left
        planned[0] = replace(planned[0], chosen=True, answers_left=0 if nothing else planned[0].answers_left)
    return planned, refusal


def _plan(
    request: ReleaseRequest,
    now: MeanSituation,
    estimator: Estimator,
    reading: Reading,
    known: PlannedMean | None,
) -> PlannedEstimator | None:
    """What one estimator would do, of which the answer may be known; None where it has none."""
    try:
        made: PlannedMean = known or now.made(request, [estimator])
        request.check_read(made)
        untilted = now.untilted(request, [estimator]) if request.question.tilt else made
    except (NotApplicable, PrivacyRefusal):
        return None
    entry = _shown(reading, made, request.readable(made), request.readable(untilted))
    return replace(entry, answers_left=answers_left(request, now, made, [estimator]))


def _shown(reading: Reading, made: PlannedMean, read: Readable, untilted: Readable) -> PlannedEstimator:
    """How accurate an answer will be and what it charges at most, with those that it sharpens, as shown.

    Args:
        reading: What is read off the answer.
        made: The answer.
        read: What it is read off.
        untilted: The same for a question without a tilt.
    """
    study, accuracy = read.study, read.accuracy(reading)
    return PlannedEstimator.of(
        study,
        accuracy,
        most=made.most,
        most_in_all=made.most_in_all,
        estimator=made.estimator.name,
        summary=made.estimator.summary,
        predicted_error_at_tilt_0=None if study.hides_people else untilted.accuracy(reading).error,
        one_report_moves=read.one_report(reading),
        statistics=_statistics(study, read.plan, made.question),
        expected_values=_expected_values(study, reading, made.question.expected),
        of_mean=read.plan.predicted_error,
    )


def _expected_values(
    study: StudyDefinition, reading: Reading, expected: ExpectedValues
) -> Mapping[str, object] | None:
    """What values a predicted error is about; of a mean only where people are secret and one is published."""
    lower, width = float(study.grid.lower), float(study.grid.width)
    mean = lower + width * expected.place
    if reading.statistic in (VARIANCE, SD):
        return {"mean": mean, "sd": width * math.sqrt(expected.spread), "guess": expected.variance is None}
    if not study.hides_people or expected.mean is None:
        return None
    return {"mean": mean, "sd": None, "guess": False}


def _statistics(study: StudyDefinition, plan: Plan, answered: Question) -> tuple[str, ...]:
    """What is read off the answer of a plan; a sum only where the number of people is public."""
    sums = (SUM,) if not study.hides_people else ()
    return MEAN, *sums, *((VARIANCE, SD) if planning.says_spread(study, plan, answered) else ())
