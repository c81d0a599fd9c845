"""What a question would cost and how accurate its answer would be; nothing is spent."""

from collections.abc import Sequence
from dataclasses import replace

from app.core.cohort import Cohort
from app.core.errors import PrivacyRefusal, SaysNothing, ServiceError
from app.core.release import StoredRelease
from app.core.study import Relation, Study
from app.estimators import registry
from app.estimators.interface import Estimator, NotApplicable
from app.services.statistics import any_plan, drafting, measured
from app.services.statistics.answers_left import answers_left, steps_left
from app.services.statistics.any_plan import newcomers_of
from app.services.statistics.drafting import Planned, PlannedEstimator
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
            else numbered(await measured.read_profile(connection, study, request.question.measure))
        )
        stands = await request.standing(connection, any_share=True)
        free = not fresh and await replace(request, first=True).has_news(connection)
        return request, await Situation.read(connection, request, rows, epoch=0), stands, free

    request, now, stands, free = await database.run_tx("plan.profile", body)
    now, request, unreached = await run(any_plan.reached, request, now)
    definition, name = request.study.definition, request.question.estimator
    estimators = (
        registry.applicable(definition.relation, definition.noise)
        if name == registry.AUTO
        else [registry.get(name, definition.relation, definition.noise)]
    )
    planned = [entry for one in estimators if (entry := await run(_plan, request, now, one, reading))]
    # Steps are chosen by what they come to at share 1, others by the answer itself.
    taken, refusal = await run(_taken, request, now)
    refusal = unreached or refusal
    nothing = isinstance(refusal, SaysNothing)
    planned.sort(
        key=lambda entry: (
            taken is not None and entry.estimator != taken.estimator.name,
            entry.of_mean,
        )
    )
    return any_plan.planned(
        request,
        now,
        stands=stands,
        free=free,
        newcomers=await run(newcomers_of, request, now, reading),
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
    definition, resolved = request.study.definition, request.question
    try:
        step = now.step(request, [estimator])
        if step is not None:
            request.check_read(step)
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
    made = None
    try:
        made = now.made(request)
        request.check_read(made)
        request.check_told(now, made)
    except (NotApplicable, PrivacyRefusal) as refusal:
        return made if isinstance(made, Step) else None, refusal
    return made if isinstance(made, Step) else None, None


def _plan_step(
    request: ReleaseRequest, now: Situation, step: Step, estimator: Estimator, reading: Reading
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
