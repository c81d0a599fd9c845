"""The plan of a question for each person's whole epsilon, from which its pieces have their weights."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction

from app.core.cohort import Cohort
from app.core.errors import InternalFault
from app.core.study import StudyDefinition
from app.estimators.interface import Estimator, Linear, Plan, Question
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_noise import NOISES, PieceNoise
from app.services.statistics.questions import Resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The plan of a question for each person's whole epsilon, as if those who take part had paid nothing yet.

    Attributes:
        people: All people.
        estimator, question, plan: What answers.
        noise: Of the pieces of the study.
        weights: What one person of each group weighs under `noise.unit`; None for a plan that has no pieces.
    """

    people: Crowd
    estimator: Estimator
    question: Question
    plan: Plan
    noise: PieceNoise
    weights: Sequence[int] | None

    @property
    def linear(self) -> Linear:
        """What the plan rests on beside its weights."""
        if self.plan.linear is None:
            raise InternalFault("A plan is not answered by parts.")
        return self.plan.linear


def plan_whole(
    study: StudyDefinition,
    cohorts: Sequence[Cohort],
    resolved: Resolved,
    question: Question,
    taking_part: Set[int],
    among: Sequence[Estimator] | None = None,
) -> Whole:
    """Plan a question for each person's whole epsilon.

    Raises:
        BudgetExhausted, NotApplicable: see `app.services.statistics.planning.choose`.
    """
    whole = resolved.at_whole()
    asked = replace(
        whole.question(study, people=question.people, expected_size=question.expected_size),
        variance=question.variance,
        together=question.together,
    )
    return plan_people(study, Crowd.of(study, cohorts, whole, taking_part), resolved, asked, among)


def plan_people(
    study: StudyDefinition,
    people: Crowd,
    resolved: Resolved,
    asked: Question,
    among: Sequence[Estimator] | None = None,
) -> Whole:
    """Plan a question for the whole epsilon of some people; see `plan_whole`."""
    noise = NOISES[study.noise]
    estimator, plan, answered = planning.choose(
        study, people, resolved, asked, among, by_parts=lambda one: weights_of(one, noise) is not None
    )
    return Whole(
        people=people,
        estimator=estimator,
        question=answered,
        plan=plan,
        noise=noise,
        weights=weights_of(plan, noise),
    )


def weights_of(plan: Plan, noise: PieceNoise) -> Sequence[int] | None:
    """What one person of each group weighs under `noise.unit`; None for a plan that has no pieces."""
    drawn = noise.weighed(plan.noise)
    if drawn is None or plan.linear is None:
        return None
    if drawn == noise.unit:
        return plan.queries[0].sum_weights
    over, under = (Fraction(noise.unit) / Fraction(drawn)).as_integer_ratio()
    return [weight * over // under for weight in plan.queries[0].sum_weights]
