"""What answers of several numbers will tell, for `app.services.statistics.says_nothing`."""

from app.core.grid import GRID_SIZE
from app.core.study import Relation, StudyDefinition
from app.estimators.covariance import LARGEST
from app.estimators.shares import SharesPlan
from app.services.shapes.counts import CountPlan
from app.services.shapes.covariances import CovariancePlan
from app.services.shapes.descriptions import Description
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.shape_kinds import AnyPlan
from app.services.shapes.shape_labels import LabelsPlan
from app.services.shapes.shape_plans import ShapePlan
from app.services.shapes.shape_questions import ShapeQuestion
from app.services.shapes.shape_steps import ShapeStep
from app.services.statistics import says_nothing


def part(study: StudyDefinition, question: ShapeQuestion, made: AnyPlan | ShapeStep) -> float:
    """What an interval takes up of all that its number can be, see `says_nothing.Told`.

    By labels all people decide. Of a description its least telling part does.
    """
    whole = made.whole if isinstance(made, ShapeStep | LabelsPlan) else made
    if isinstance(whole, CountPlan):
        known = question.known
        return 0.0 if whole.weighing is None or known is None else whole.predicted_error / known
    if study.relation is Relation.REPLACE_ONE:
        told = _public(whole)
    elif question.size is None:
        return 0.0
    else:
        told = says_nothing.width_of(whole.predicted_error) / _unit(study, whole)
    if isinstance(whole, Description):
        told = max(told, says_nothing.width_of(whole.quartiles.predicted_error))
    return max(told, 0.0)


def _public(whole: AnyPlan) -> float:
    """Where the number of people is public, from the interval that is predicted.

    Covariances may reach from the least to the largest one. The width that quantiles are compared by is not
    that of their interval.
    """
    if isinstance(whole, CovariancePlan):
        return whole.interval_width / (2 * LARGEST)
    if isinstance(whole, ShapePlan) and not isinstance(whole.plan, SharesPlan):
        return says_nothing.width_of(whole.predicted_error)
    return whole.interval_width


def _unit(study: StudyDefinition, whole: AnyPlan) -> float:
    """All that the number can be, in the unit of its predicted error."""
    width = float(study.grid.width)
    match whole:
        case ShapePlan():
            return 1.0
        case CovariancePlan():
            return 2 * LARGEST * whole.reader.unit
        case FoundPlan():
            return width * whole.expected.width / GRID_SIZE
        case _:
            return width
