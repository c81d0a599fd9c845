"""What a question about the distribution would cost, and how accurate it would be; nothing is spent."""

from collections.abc import Sequence

from app.core.cohort import Cohort
from app.core.errors import BudgetExhausted, SaysNothing, ServiceError
from app.core.release import StoredRelease
from app.core.study import Currency, Study
from app.estimators.interface import NotApplicable
from app.services.shapes import shape_kinds
from app.services.shapes.shape_plans import SUMMARIES
from app.services.shapes.shape_questions import BY_BINS
from app.services.shapes.shape_request import Made, ShapeRequest, Situation
from app.services.shapes.shape_steps import ShapeStep
from app.services.statistics import any_plan
from app.services.statistics.answers_left import Priced, count_left, priced_members, steps_left
from app.services.statistics.any_plan import newcomers_of
from app.services.statistics.drafting import Newcomers, Planned, PlannedEstimator
from app.services.statistics.questions import Ask
from app.services.statistics.reading import Reading
from app.services.statistics.release_plans import numbered
from app.services.work import run
from app.store.database import Connection, Database


async def plan(database: Database, study: Study, ask: Ask, *, fresh: bool = False) -> Planned:
    """Price and accuracy of an answer; spends and changes nothing. Arguments as of `release_plans.plan`.

    Raises:
        InvalidRequest: the question is not admissible for this study.
    """
    reading = Reading.of(study.definition, ask)

    async def body(connection: Connection) -> tuple[ShapeRequest, Situation, StoredRelease | None]:
        request = await ShapeRequest.of(study, reading.ask, fresh=fresh).towards(connection)
        # Under add_remove_one a plan looks at no person.
        rows = numbered(await request.profile(connection)) if request.compares else []
        now = await Situation.read(connection, request, rows, epoch=0)
        return request, now, await request.standing(connection, any_share=True)

    request, now, stands = await database.run_tx("plan.profile", body)
    now, request, unreached = await run(any_plan.reached, request, now)
    planned, newcomers, refusal = await run(_planned, request, now, reading)
    return any_plan.planned(
        request,
        now,
        stands=stands,
        newcomers=newcomers,
        estimators=() if planned is None else (planned,),
        refusal=unreached or refusal,
    )


def _planned(
    request: ShapeRequest, now: Situation, reading: Reading
) -> tuple[PlannedEstimator | None, Newcomers | None, ServiceError | None]:
    """What answers the question, and what newcomers alone would; None where that is refused, and why."""
    left: int | None
    try:
        made = now.made(request)
        request.check_read(made)
        if isinstance(made, ShapeStep):
            gains = request.is_gain(made, now.best)
            left = steps_left(made, now.cohorts, request.question.share) if gains else 0
        else:
            left = _left(request, now) if request.compares else None
    except (BudgetExhausted, NotApplicable) as refusal:
        return None, newcomers_of(request, now, reading), refusal
    nothing: ServiceError | None = None
    try:
        request.check_told(now, made)
    except SaysNothing as refusal:
        nothing, left = refusal, left and 0
    newcomers = newcomers_of(request, now, reading) if isinstance(made, ShapeStep) else None
    return _estimator(request, made, reading, left), newcomers, nothing


def _left(request: ShapeRequest, now: Situation) -> int | None:
    """How many more answers to this question there are, see `app.services.statistics.answers_left`."""

    def planned(rows: Sequence[Cohort], best: float | None) -> tuple[float, Priced]:
        made = shape_kinds.make(request.study.definition, request.question, rows, now.searched)
        request.check(*request.compared(made), best)
        return made.interval_width, priced_members(made.crowd.groups, made.crowd.members, made.costs)

    return count_left(now.cohorts, now.best, planned)


def _estimator(request: ShapeRequest, made: Made, reading: Reading, left: int | None) -> PlannedEstimator:
    question, definition, asked = request.question, request.study.definition, reading.ask.statistic
    shown = made.for_all
    accuracy = request.accuracy(made, reading)
    return PlannedEstimator(
        estimator=question.estimator,
        summary=SUMMARIES[question.estimator] + shown.joined,
        predicted_error=accuracy.error,
        predicted_error_at_tilt_0=None,
        epsilon_max=definition.epsilon(made.most),
        epsilon_max_total=definition.epsilon(made.most_in_all),
        mu2_max=made.most if definition.noise is Currency.GAUSSIAN else None,
        one_report_moves=shown.one_report_moves,
        statistics=shown.statistics or (BY_BINS if asked in BY_BINS else (asked,)),
        half_width=accuracy.half_width,
        population_predicted_error=accuracy.population_error,
        population_half_width=accuracy.population_half_width,
        answers_left=left,
        chosen=True,
        **shown.shown(),
    )
