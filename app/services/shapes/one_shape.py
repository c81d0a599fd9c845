"""The plan of one answer for one crowd: of all people, or of those with a label."""

from collections.abc import Callable, Mapping
from typing import Any

from app.core.study import StudyDefinition
from app.services.shapes.coordinates import CoordinatesPlan
from app.services.shapes.counts import CountPlan
from app.services.shapes.covariances import PairPlan
from app.services.shapes.crowd import ShapeCrowd
from app.services.shapes.descriptions import Description
from app.services.shapes.parts import Part
from app.services.shapes.plans import ShapePlan, refuse_without_people
from app.services.shapes.priced_plan import OneShape
from app.services.shapes.quantiles import QuantilePlan
from app.services.shapes.questions import (
    COORDINATES,
    CORRELATION,
    COUNT,
    COVARIANCE,
    DESCRIBE,
    HISTOGRAM,
    QUANTILE,
    SHARES,
    TABLE,
    ShapeQuestion,
)
from app.services.shapes.tables import TablePlan

PLANS: Mapping[str, Callable[[StudyDefinition, ShapeQuestion, ShapeCrowd, Part], OneShape[Any]]] = {
    HISTOGRAM: ShapePlan.of_crowd,
    SHARES: ShapePlan.of_crowd,
    TABLE: TablePlan.of_crowd,
    QUANTILE: QuantilePlan.of_crowd,
    DESCRIBE: Description.of_crowd,
    COORDINATES: CoordinatesPlan.of_crowd,
    COUNT: CountPlan.of_crowd,
    **dict.fromkeys((COVARIANCE, CORRELATION), PairPlan.of_crowd),
}
"""What plans the answer of each estimator."""


def of_crowd(
    study: StudyDefinition, question: ShapeQuestion, crowd: ShapeCrowd, part: Part = int
) -> OneShape[Any]:
    """Plan and price a question of these kinds for a crowd.

    Args:
        study, question, crowd: What is asked of whom.
        part: What of an offer it may take; all of it if not given, as always of a pair of numbers.

    Raises:
        BudgetExhausted: people could take part, but cannot pay any more.
        NotApplicable: no person central or public is there.
        InternalFault: a charge exceeds an offer.
    """
    refuse_without_people(study, crowd)
    return PLANS[question.estimator](study, question, crowd, part)
