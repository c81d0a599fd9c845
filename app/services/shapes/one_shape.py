"""The plan of one answer for one crowd: of all people, or of those with a label."""

from app.core.study import StudyDefinition
from app.services.shapes import shape_plans
from app.services.shapes.coordinates import CoordinatesPlan
from app.services.shapes.counts import CountPlan
from app.services.shapes.covariances import CovariancePlan
from app.services.shapes.descriptions import Description
from app.services.shapes.priced_plan import OneShape
from app.services.shapes.shape_crowd import ShapeCrowd
from app.services.shapes.shape_parts import Part
from app.services.shapes.shape_questions import COORDINATES, COUNT, COVARIANCE, DESCRIBE, ShapeQuestion


def of_crowd(
    study: StudyDefinition, question: ShapeQuestion, crowd: ShapeCrowd, part: Part = int
) -> OneShape:
    """Plan and price a question of these kinds for a crowd.

    Args:
        study, question, crowd: What is asked of whom.
        part: What of an offer it may take; all of it if not given, as always of a covariance.

    Raises:
        BudgetExhausted: people could take part, but cannot pay any more.
        NotApplicable: no person central or public is there.
        InternalFault: a charge exceeds an offer.
    """
    shape_plans.refuse_without_people(study, crowd)
    if question.estimator == DESCRIBE:
        return Description.of_crowd(study, question, crowd, part)
    if question.estimator == COORDINATES:
        return CoordinatesPlan.of_crowd(study, question, crowd, part)
    if question.estimator == COUNT:
        return CountPlan.of_crowd(study, question, crowd, part)
    if question.estimator == COVARIANCE:
        return CovariancePlan.of_crowd(study, question, crowd)
    return shape_plans.of_crowd(study, question, crowd, part)
