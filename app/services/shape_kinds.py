"""Every kind of plan that answers for the distribution of the values, or needs it first."""

from collections.abc import Callable, Mapping, Sequence

from app.core.cohort import Cohort
from app.core.study import StudyDefinition
from app.services import shape_plans
from app.services.coordinates import CoordinatesPlan
from app.services.counts import CountPlan
from app.services.covariances import CovariancePlan
from app.services.descriptions import Description
from app.services.found_plans import FoundPlan
from app.services.shape_labels import LabelsPlan
from app.services.shape_plans import ShapePlan
from app.services.shape_questions import (
    COORDINATES,
    COUNT,
    COVARIANCE,
    DESCRIBE,
    FOUND_RANGE,
    ShapeQuestion,
)
from app.sessions.searched import Searched

AnyPlan = ShapePlan | FoundPlan | Description | LabelsPlan | CountPlan | CovariancePlan | CoordinatesPlan

_MAKERS: Mapping[str, Callable[[StudyDefinition, ShapeQuestion, Sequence[Cohort]], AnyPlan]] = {
    FOUND_RANGE: FoundPlan.of,
    DESCRIBE: Description.of,
    COUNT: CountPlan.of,
    COVARIANCE: CovariancePlan.of,
    COORDINATES: CoordinatesPlan.of,
}


def make(
    study: StudyDefinition,
    question: ShapeQuestion,
    cohorts: Sequence[Cohort],
    searched: Searched | None = None,
) -> AnyPlan:
    """Plan and price a question; with what searches found, for a quantile.

    Raises:
        BudgetExhausted: people could take part, but cannot pay any more.
        NotApplicable: no person central or public is there.
        InternalFault: a charge exceeds an offer.
    """
    if question.by:
        return LabelsPlan.of(study, question, cohorts)
    if question.estimator in _MAKERS:
        return _MAKERS[question.estimator](study, question, cohorts)
    return shape_plans.make(study, question, cohorts, searched)
