"""What a question would cost and how accurate its answer would be; nothing is spent."""

from collections.abc import Sequence
from dataclasses import replace

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import PrivacyRefusal, SaysNothing, ServiceError
from app.core.release import StoredRelease
from app.core.study import Currency, Relation, Study, assumption
from app.estimators import registry
from app.estimators.interface import Estimator, NotApplicable
from app.services.statistics import drafting, gain, measured, planning
from app.services.statistics.answers_left import answers_left, steps_left
from app.services.statistics.asked_accuracy import Readable
from app.services.statistics.drafting import Newcomers, Planned, PlannedEstimator
from app.services.statistics.questions import Ask
from app.services.statistics.reading import Reading
from app.services.statistics.release_request import ReleaseRequest, Situation
from app.services.statistics.steps import Step
from app.services.work import run
from app.store.database import Connection, Database


async def plan(database: Database, study: Study, ask: Ask, *, fresh: bool = False) -> Planned:
    """Price and accuracy of every estimator that has an answer; spends and changes nothing.

    Args:
        database: The ledger.
        study: The study.
        ask: The question, or what is to be read off its answer.
        fresh: Whether the answer would have noise of its own.

    Raises:
        InvalidRequest: the question is not admissible for this study.
    """
    secret = study.definition.relation is Relation.ADD_REMOVE_ONE
    reading = Reading.of(study.definition, ask)

    async def body(
        connection: Connection,
    ) -> tuple[ReleaseRequest, Situation, StoredRelease | None, bool]:
        request = await ReleaseRequest.of(study, reading.ask, asker=None, fresh=fresh).towards(connection)
        rows = (
            []
            if secret
            else numbered(await measured.read_profile(connection, study, request.resolved.measure))
        )
        stands = await request.standing(connection, any_share=True)
        free = not fresh and await replace(request, first=True).has_news(connection)
        return request, await Situation.read(connection, request, rows, epoch=0), stands, free

    request, now, stands, free = await database.run_tx("plan.profile", body)
    definition, name = request.study.definition, request.resolved.estimator
    estimators = (
        registry.applicable(definition.relation, definition.noise)
        if name == registry.AUTO
        else [registry.get(name, definition.relation, definition.noise)]
    )
    planned = [entry for one in estimators if (entry := await run(_plan, request, now, one, reading))]
    # Steps are chosen by what they come to at share 1, others by the answer itself.
    taken, refusal = await run(_taken, request, now)
    nothing = isinstance(refusal, SaysNothing)
    planned.sort(
        key=lambda entry: (
            taken is not None and entry.estimator != taken.estimator.name,
            entry.of_mean,
        )
    )
    return Planned(
        share=request.resolved.share,
        share_before=0 if now.before is None else now.before.share,
        tilt=round(request.resolved.assumed_tilt(definition) * MICRO),
        assumption=assumption(request.resolved.assumed(definition)),
        level=request.resolved.level,
        stands=stands,
        free=free,
        newcomers=await run(_newcomers, request, now, reading),
        estimators=[
            replace(
                entry,
                chosen=place == 0,
                answers_left=0 if place == 0 and nothing and entry.answers_left else entry.answers_left,
            )
            for place, entry in enumerate(planned)
        ],
        refusal=refusal,
    )


def numbered(rows: Sequence[Cohort]) -> list[Cohort]:
    """Cohorts of which those that are not folded yet have ids of their own, below zero."""
    return [row if row.id else replace(row, id=-place) for place, row in enumerate(rows, start=1)]


def _plan(
    request: ReleaseRequest, now: Situation, estimator: Estimator, reading: Reading
) -> PlannedEstimator | None:
    """What one estimator would do; None where it has no answer."""
    definition, resolved = request.study.definition, request.resolved
    try:
        step = now.step(request, [estimator])
        if step is not None:
            request.check_labels(step)
    except (NotApplicable, PrivacyRefusal):
        return None
    if step is not None:
        return _plan_step(request, now, step, estimator, reading)
    entry = drafting.price(definition, resolved, now.people, now.question, estimator, reading)
    if entry is None or definition.relation is Relation.ADD_REMOVE_ONE:
        return entry
    left = answers_left(definition, resolved, now.cohorts, now.question, estimator, best=now.best)
    return replace(entry, answers_left=left)


def _taken(request: ReleaseRequest, now: Situation) -> tuple[Step | None, ServiceError | None]:
    """The step that would be taken, None of an answer without steps; and why the question is not answered."""
    definition, step = request.study.definition, None
    try:
        step = now.step(request)
        if step is None:
            _, plan, _ = planning.choose(definition, now.people, request.resolved, now.question)
        else:
            request.check_labels(step)
            plan = step.plan
        request.check_told(now, plan)
    except (NotApplicable, PrivacyRefusal) as refusal:
        return step, refusal
    return step, None


def _plan_step(
    request: ReleaseRequest, now: Situation, step: Step, estimator: Estimator, reading: Reading
) -> PlannedEstimator:
    resolved, without = request.resolved, None
    if resolved.tilt:
        without = now.step(replace(request, resolved=replace(resolved, tilt=0)), [estimator])
    left = steps_left(step, now.cohorts, resolved.share) if _is_gain(request, now, step) else 0
    entry = drafting.planned(
        reading,
        estimator,
        step.question,
        _readable(request, step),
        _readable(request, without or step),
        most=step.epsilon_max,
        most_in_all=step.epsilon_max_total,
    )
    return replace(entry, answers_left=left)


def _readable(request: ReleaseRequest, step: Step) -> Readable:
    return Readable(study=request.study.definition, plan=step.plan, people=step.people)


def _newcomers(request: ReleaseRequest, now: Situation, reading: Reading) -> Newcomers | None:
    """What renews the answer at the share that it has; None where that charges no one or is no gain."""
    if now.before is None:
        return None
    definition, share = request.study.definition, now.before.share
    step = _step(replace(request, resolved=replace(request.resolved, share=share)), now)
    if step is None or not step.charges or not _is_gain(request, now, step):
        return None
    charged = {charge.cohort_id for charge in step.charges}
    most, accuracy = step.epsilon_max, _readable(request, step).accuracy(reading)
    return Newcomers(
        people=sum(cohort.count for cohort in now.cohorts if cohort.id in charged),
        epsilon_max=definition.epsilon(most),
        epsilon_max_total=definition.epsilon(step.epsilon_max_total),
        mu2_max=most if definition.noise is Currency.GAUSSIAN else None,
        predicted_error=accuracy.error,
        half_width=accuracy.half_width or 0.0,
        population_predicted_error=accuracy.population_error,
        population_half_width=accuracy.population_half_width,
    )


def _step(request: ReleaseRequest, now: Situation) -> Step | None:
    """The step that would be taken; None where the question is not answered by steps, or is refused."""
    try:
        return now.step(request)
    except (NotApplicable, PrivacyRefusal):
        return None


def _is_gain(request: ReleaseRequest, now: Situation, step: Step) -> bool:
    width = planning.interval_width(request.study.definition, step.plan)
    try:
        gain.check(people=step.people, left_out=step.left_out, width=width, best=now.best, needed=False)
    except PrivacyRefusal:
        return False
    return True
