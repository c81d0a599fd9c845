"""What a question about the distribution would cost, and how accurate it would be; nothing is spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, PrivacyRefusal, SaysNothing, ServiceError
from app.core.grid import GRID_SIZE
from app.core.piece import LastStep, Piece
from app.core.release import StoredRelease
from app.core.study import Currency, Study
from app.estimators.interface import Accuracy, NotApplicable
from app.services.shapes import shape_kinds
from app.services.shapes.coordinates import CoordinatesPlan
from app.services.shapes.counts import CountPlan
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.shape_kinds import AnyPlan
from app.services.shapes.shape_labels import LabelsPlan
from app.services.shapes.shape_plans import SUMMARIES, ShapePlan
from app.services.shapes.shape_questions import BY_BINS, COUNT
from app.services.shapes.shape_request import ShapeRequest, assumption, people_of
from app.services.shapes.shape_steps import ShapeStep
from app.services.statistics.answers_left import Priced, count_left, priced_members, steps_left
from app.services.statistics.asked_accuracy import Readable
from app.services.statistics.drafting import Newcomers, Planned, PlannedEstimator
from app.services.statistics.questions import Ask
from app.services.statistics.reading import Reading
from app.services.statistics.release_plans import numbered
from app.services.work import run
from app.sessions.searched import Searched
from app.store.database import Connection, Database


@dataclass(frozen=True, slots=True, kw_only=True)
class _Situation:
    """What a plan is made from."""

    rows: Sequence[Cohort]
    searched: Searched | None
    best: float | None
    before: LastStep | None
    kept: Sequence[Piece]


async def plan(database: Database, study: Study, ask: Ask, *, fresh: bool = False) -> Planned:
    """Price and accuracy of an answer; spends and changes nothing. Arguments as of `release_plans.plan`.

    Raises:
        InvalidRequest: the question is not admissible for this study.
    """
    reading = Reading.of(study.definition, ask)

    async def body(connection: Connection) -> tuple[ShapeRequest, _Situation, StoredRelease | None]:
        request = await ShapeRequest.of(study, reading.ask, fresh=fresh).towards(connection)
        # Under add_remove_one a plan looks at no person.
        rows = numbered(await request.profile(connection)) if request.compares else []
        searched = await request.searched(connection)
        best = await request.best(connection, people_of(rows, searched))
        before, kept = await request.kept(connection)
        now = _Situation(rows=rows, searched=searched, best=best, before=before, kept=kept)
        return request, now, await request.standing(connection, any_share=True)

    request, now, stands = await database.run_tx("plan.profile", body)
    planned, newcomers, refusal = await run(_planned, request, now, reading)
    question = request.question
    return Planned(
        share=question.share,
        share_before=0 if now.before is None else now.before.share,
        tilt=None if question.estimator == COUNT else round(question.assumed_tilt(study.definition) * MICRO),
        assumption=assumption(study.definition, question),
        level=question.level,
        stands=stands,
        newcomers=newcomers,
        estimators=() if planned is None else (planned,),
        refusal=refusal,
    )


def _planned(
    request: ShapeRequest, now: _Situation, reading: Reading
) -> tuple[PlannedEstimator | None, Newcomers | None, ServiceError | None]:
    """What answers the question, and what newcomers alone would; None where that is refused, and why."""
    question, definition = request.question, request.study.definition
    made: AnyPlan | ShapeStep | None
    try:
        made = request.step(now.rows, now.kept, now.before)
        if made is not None:
            request.check_read(made.whole)
            left = steps_left(made, now.rows, question.share) if _is_gain(request, made, now) else 0
        else:
            made = shape_kinds.make(definition, question, now.rows, now.searched)
            request.check_read(made)
            left = _left(request, now) if request.compares else None
    except (BudgetExhausted, NotApplicable) as refusal:
        return None, _newcomers(request, now, reading), refusal
    nothing: ServiceError | None = None
    try:
        request.check_told(made, now.rows, now.searched, now.kept, now.before)
    except SaysNothing as refusal:
        nothing, left = refusal, left and 0
    newcomers = _newcomers(request, now, reading) if isinstance(made, ShapeStep) else None
    return _estimator(request, made, reading, left), newcomers, nothing


def _left(request: ShapeRequest, now: _Situation) -> int | None:
    """How many more answers to this question there are, see `app.services.statistics.answers_left`."""

    def planned(rows: Sequence[Cohort], best: float | None) -> tuple[float, Priced]:
        made = shape_kinds.make(request.study.definition, request.question, rows, now.searched)
        request.check(made.crowd.people, made.crowd.unable, made.interval_width, best)
        return made.interval_width, priced_members(made.crowd.groups, made.crowd.members, made.costs)

    return count_left(now.rows, now.best, planned)


def _estimator(
    request: ShapeRequest, made: AnyPlan | ShapeStep, reading: Reading, left: int | None
) -> PlannedEstimator:
    question, definition = request.question, request.study.definition
    shown = made.whole if isinstance(made, ShapeStep) else made
    total = made.most_in_all if isinstance(made, ShapeStep) else made.most
    accuracy = _accuracy(request, made, reading)
    return PlannedEstimator(
        estimator=question.estimator,
        summary=SUMMARIES[question.estimator] + (shown.joined if isinstance(shown, ShapePlan) else ""),
        predicted_error=accuracy.error,
        predicted_error_at_tilt_0=None,
        epsilon_max=definition.epsilon(made.most),
        epsilon_max_total=definition.epsilon(total),
        mu2_max=made.most if definition.noise is Currency.GAUSSIAN else None,
        one_report_moves=shown.one_report_moves if isinstance(shown, ShapePlan | LabelsPlan) else None,
        statistics=_read_off(shown, reading.ask.statistic),
        half_width=accuracy.half_width,
        population_predicted_error=accuracy.population_error,
        population_half_width=accuracy.population_half_width,
        answers_left=left,
        chosen=True,
        gain=shown.gain if isinstance(shown, FoundPlan) else None,
        expected_range=_expected_range(shown) if isinstance(shown, FoundPlan) else None,
    )


def _expected_range(made: FoundPlan) -> Mapping[str, object]:
    width = made.expected.width / GRID_SIZE * float(made.study.grid.width)
    return {"width": width, "release": made.expected.release}


def _newcomers(request: ShapeRequest, now: _Situation, reading: Reading) -> Newcomers | None:
    """What renews the answer at the share that it has; None where that charges no one or is no gain."""
    if now.before is None:
        return None
    definition = request.study.definition
    try:
        at_share = replace(request, question=replace(request.question, share=now.before.share))
        step = at_share.step(now.rows, now.kept, now.before)
    except (NotApplicable, PrivacyRefusal):
        return None
    if step is None or not step.charges or not _is_gain(request, step, now):
        return None
    charged = {charge.cohort_id for charge in step.charges}
    accuracy = _accuracy(request, step, reading)
    return Newcomers(
        people=sum(cohort.count for cohort in now.rows if cohort.id in charged),
        epsilon_max=definition.epsilon(step.most),
        epsilon_max_total=definition.epsilon(step.most_in_all),
        mu2_max=step.most if definition.noise is Currency.GAUSSIAN else None,
        predicted_error=accuracy.error,
        half_width=step.interval_width / 2 if accuracy.half_width is None else accuracy.half_width,
        population_predicted_error=accuracy.population_error,
        population_half_width=accuracy.population_half_width,
    )


def _accuracy(request: ShapeRequest, made: AnyPlan | ShapeStep, reading: Reading) -> Accuracy:
    """Of a mean and what is read off it in the unit of that; of a found range as of the expected one."""
    study = request.study.definition
    shown = made.whole if isinstance(made, ShapeStep | LabelsPlan) else made
    if isinstance(shown, CoordinatesPlan):
        return Readable(study=study, plan=shown.plan, people=shown.crowd.people).accuracy(reading)
    if isinstance(shown, FoundPlan):
        return Readable(study=study, plan=shown.means.plan, people=shown.crowd.people).accuracy(reading)
    half = shown.half_width if isinstance(shown, CountPlan) and shown.weighing is not None else None
    return Accuracy(error=made.predicted_error, half_width=half)


def _is_gain(request: ShapeRequest, step: ShapeStep, now: _Situation) -> bool:
    try:
        request.check(step.crowd.people, step.crowd.unable, step.interval_width, now.best)
    except PrivacyRefusal:
        return False
    return True


def _read_off(made: AnyPlan, asked: str) -> tuple[str, ...]:
    """What is read off an answer to this question."""
    made = made.whole if isinstance(made, LabelsPlan) else made
    if isinstance(made, CoordinatesPlan):
        return made.statistics
    return BY_BINS if asked in BY_BINS else (asked,)
