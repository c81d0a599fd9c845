"""Every kind of plan that answers for the distribution of the values, or needs it first."""

from collections.abc import Sequence
from typing import Any

from app.core.cohort import Cohort
from app.core.study import StudyDefinition
from app.services.shapes.crowd import ShapeCrowd
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.one_shape import of_crowd
from app.services.shapes.priced_plan import OneShape
from app.services.shapes.questions import FOUND_RANGE, ShapeQuestion
from app.sessions.searched import Searched

AnyPlan = OneShape[Any] | FoundPlan


def make(
    study: StudyDefinition,
    question: ShapeQuestion,
    cohorts: Sequence[Cohort],
    searched: Searched | None = None,
) -> AnyPlan:
    """Plan and price a question; with what searches found, for a quantile.

    Raises:
        BudgetExhausted, NotApplicable, InternalFault: as `one_shape.of_crowd`.
    """
    if question.estimator == FOUND_RANGE:
        return FoundPlan.of(study, question, cohorts)
    if question.by:
        return LabelsPlan.of(study, question, cohorts)
    return of_crowd(study, question, ShapeCrowd.of(cohorts, question, searched))
