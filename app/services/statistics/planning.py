"""From cohorts to a plan, and from a plan to an answer. No database; may be run in a thread."""

import json
from collections.abc import Callable, Sequence

from app.accounting.costs import check_charges, group_costs
from app.accounting.measurement import Measurement
from app.core.cohort import Group
from app.core.errors import BudgetExhausted
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import as_document
from app.core.release import Charges, StoredRelease
from app.core.study import StudyDefinition, Trust
from app.estimators import registry
from app.estimators.expected import ExpectedValues
from app.estimators.interface import Conclusion, Estimator, NoContributions, NotApplicable, Plan, Question
from app.estimators.labels_secret import labels_plan
from app.estimators.moments import with_second_moment
from app.estimators.transformed import MOMENTS
from app.mechanisms.draw import draw
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Resolved


def choose(
    study: StudyDefinition,
    people: Crowd,
    resolved: Resolved,
    question: Question,
    among: Sequence[Estimator] | None = None,
    by_parts: Callable[[Plan], bool] = lambda _: False,
) -> tuple[Estimator, Plan, Question]:
    """The estimator that answers, its plan, and the question with the parameters that it answers.

    Args:
        study: The study.
        people: Who is there.
        resolved: What was asked.
        question: What is asked, for estimators.
        among: What `auto` chooses among; by default all that apply.
        by_parts: Whether noisy sums are read in the place of a plan's queries: it is left without a second
            moment, which these have.

    Raises:
        NoContributions: no person is there, and their number is public.
        BudgetExhausted: a person could, but no person can any more.
        NotApplicable: the estimator has no answer for the people who are there.
    """
    public = not study.hides_people  # Else no estimator may know how many there are.
    groups = people.groups if public else people.groups.each_of_one()
    try:
        if resolved.estimator == registry.AUTO:
            estimator, plan, tried = registry.choose(groups, question, among)
        else:
            estimator = registry.get(resolved.estimator, study.relation, study.noise)
            tried = registry.for_estimator(estimator, question)
            plan = estimator.plan(groups, tried)
        if by_parts(plan):
            return estimator, plan, tried
        if public:
            plan = with_second_moment(plan, groups, tried)
        elif resolved.by:
            cells = study.attributes.cells(resolved.by).values()
            conditions = [{**resolved.where, **cell} for cell in cells]
            plan = labels_plan(groups, people.labels, conditions, tried)
        if resolved.spread and not says_spread(study, plan, tried):
            said = "This answer says nothing of the variance: it takes central or public people."
            raise NotApplicable(said)
        return estimator, plan, tried
    except NotApplicable:
        if not public:
            raise  # Why it refuses may not say what people have left, which is secret.
        if not people.people:
            raise NoContributions.yet() from None
        if not any(people.groups.column("participates")):
            raise BudgetExhausted.by_all() from None
        if any(group.trust is Trust.CENTRAL and not group.participates for group in people.groups):
            raise BudgetExhausted("no person whom this estimator needs can take part any more") from None
        raise


def says_spread(study: StudyDefinition, plan: Plan, answered: Question) -> bool:
    """Whether the answer of a plan has a variance.

    In add_remove_one studies the question alone decides: a plan for no one asks for no squares, and a refusal
    would show that no one is there.
    """
    if study.hides_people:
        return answered.parameters.get(MOMENTS.name) == 2
    return plan.has_variance


def charges(plan: Plan, people: Crowd, study: StudyDefinition) -> Charges:
    """What a plan costs each cohort, priced from its queries and noise alone, in the order of ids."""
    return charges_of(costs(plan, people, study), people)


def charges_of(due: Sequence[int], people: Crowd) -> Charges:
    """What each cohort is charged, of what a plan costs a person of each group, in the order of ids.

    Raises:
        InternalFault: a group is charged more than it offers.
    """
    check_charges(due, people.groups)
    return people.charges(due)


def costs(plan: Plan, people: Crowd, study: StudyDefinition) -> Sequence[int]:
    """What a plan costs a person of each group [the study's currency]."""
    return group_costs(plan.queries, plan.noise, study.relation, people.groups, study.noise)


def epsilon_max(study: StudyDefinition, estimator: Estimator, question: Question, cost: Sequence[int]) -> int:
    """The largest charge [the study's currency]; in add_remove_one studies the largest that is possible."""
    if not study.hides_people:
        return max(cost, default=0)
    one = Group(trust=Trust.CENTRAL, epsilon=question.cap, count=1)
    plan = estimator.plan([one], registry.for_estimator(estimator, question))
    (most,) = group_costs(plan.queries, plan.noise, study.relation, [one], study.noise)
    return most


def answer(plan: Plan, people: Crowd) -> Conclusion:
    """Evaluate the queries on raw sums, add exact noise, read the result.

    Integers until the noise is in; draws entropy.

    Args:
        plan: The plan.
        people: Whom it was made for.
    """
    return plan.conclude(noisy(plan, people))


def noisy(plan: Plan, people: Crowd) -> list[int]:
    """The queries of a plan on raw sums, with exact noise. Draws entropy."""
    counts = [count * GRID_SIZE for count in people.groups.column("count")]
    totals, squares = people.sums("total"), people.sums("total_squares")
    exact = [query.value(totals, counts, squares) for query in plan.queries]
    noise = draw(plan.noise, queries=len(exact))
    return [value + error for value, error in zip(exact, noise, strict=True)]


def interval_width(grid: Grid, plan: Plan) -> float:
    """Predicted width of the interval for the mean of the dataset [data's unit]."""
    return float(grid.width) if plan.interval_width is None else plan.interval_width()


def noise_json(plan: Plan) -> str:
    """The noise of a plan, for the ledger."""
    return json.dumps(as_document(plan.noise), allow_nan=False)


def measured(plan: Plan, people: Crowd) -> Measurement:
    """What a plan measures, and whom."""
    return Measurement.of_queries(plan.queries, plan.noise, people.groups, people.ids)


def expected_values(
    study: StudyDefinition, last: StoredRelease | None, spread: StoredRelease | None
) -> ExpectedValues:
    """What the last answers say that values are like: one of a mean, and one of a variance."""
    said = {} if last is None else json.loads(last.body)
    of_spread = said if spread is last else {} if spread is None else json.loads(spread.body)
    mean, variance = said.get("estimate"), (of_spread.get("variance") or {}).get("estimate")
    width = float(study.grid.width)
    return ExpectedValues(
        mean=None if mean is None else min(max((mean - float(study.grid.lower)) / width, 0.0), 1.0),
        variance=None if variance is None else max(variance, 0.0) / width**2,
        two=study.grid.lower == 0 and study.grid.upper == 1,
    )
