"""What a question would cost and how accurate its answer would be; nothing is spent."""

from collections.abc import Sequence
from dataclasses import replace

from app.core.errors import PrivacyRefusal, SaysNothing, ServiceError
from app.estimators import registry
from app.estimators.interface import Estimator, NotApplicable
from app.services.statistics import drafting
from app.services.statistics.answers_left import answers_left, steps_left
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.reading import Reading
from app.services.statistics.release_request import MeanSituation, ReleaseRequest
from app.services.statistics.steps import MeanStep


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
    step: MeanStep | None = None
    refusal: ServiceError | None = None
    try:
        step = now.step(request)
        made = step or now.alone(request)
        request.check_read(made)
        request.check_told(now, made)
    except (NotApplicable, PrivacyRefusal) as why:
        refusal = why
    # The step of a named estimator is the one that answers.
    known = None if name == registry.AUTO else step
    planned = [entry for one in estimators if (entry := _plan(request, now, one, reading, known))]
    # Steps are chosen by what they come to at share 1, others by the answer itself.
    planned.sort(
        key=lambda entry: (step is not None and entry.estimator != step.estimator.name, entry.of_mean)
    )
    if planned:
        nothing = isinstance(refusal, SaysNothing) and planned[0].answers_left
        planned[0] = replace(planned[0], chosen=True, answers_left=0 if nothing else planned[0].answers_left)
    return planned, refusal


def _plan(
    request: ReleaseRequest,
    now: MeanSituation,
    estimator: Estimator,
    reading: Reading,
    known: MeanStep | None,
) -> PlannedEstimator | None:
    """What one estimator would do, of which a step may be known; None where it has no answer."""
    definition, resolved = request.study.definition, request.question
    try:
        step = known or now.step(request, [estimator])
        if step is not None:
            request.check_read(step)
    except (NotApplicable, PrivacyRefusal):
        return None
    if step is not None:
        return _plan_step(request, now, step, estimator, reading)
    entry = drafting.price(definition, resolved, now.people, now.question, estimator, reading)
    if entry is None or definition.hides_people:
        return entry
    left = answers_left(definition, resolved, now.cohorts, now.question, estimator, best=now.best)
    return replace(entry, answers_left=left)


def _plan_step(
    request: ReleaseRequest, now: MeanSituation, step: MeanStep, estimator: Estimator, reading: Reading
) -> PlannedEstimator:
    resolved, without = request.question, None
    if resolved.tilt:
        without = now.step(replace(request, question=replace(resolved, tilt=0)), [estimator])
    left = steps_left(step, now.cohorts, resolved.share) if request.is_gain(step, now.best) else 0
    entry = drafting.planned(
        reading,
        estimator,
        step.question,
        request.readable(step),
        request.readable(without or step),
        most=step.most,
        most_in_all=step.most_in_all,
    )
    return replace(entry, answers_left=left)
