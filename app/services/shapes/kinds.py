"""Every kind of plan for the distribution of the values, or what needs it first; and what they are asked."""

from collections.abc import Sequence
from typing import Any

from app.core.cohort import Cohort
from app.core.epsilon import share_of
from app.core.errors import FieldError, InvalidRequest
from app.core.question import STATISTICS as ASKABLE
from app.core.study import NOT_OF_CHOICES, Currency, StudyDefinition
from app.estimators.registry import AUTO
from app.services.shapes.coordinates import CoordinatesPlan
from app.services.shapes.counts import CountPlan
from app.services.shapes.covariances import CorrelationPlan, CovariancePlan
from app.services.shapes.descriptions import Description
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.plans import ChoicesPlan, HistogramPlan, of_crowd
from app.services.shapes.priced_plan import OneShape, PricedPlan
from app.services.shapes.quantiles import QuantilePlan
from app.services.shapes.questions import (
    COORDINATES,
    COUNT,
    FOUND_RANGE,
    OF_PAIRS,
    SHARES,
    TABLE,
    ShapeQuestion,
)
from app.services.shapes.tables import TablePlan
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_noise import PieceNoise, of_bins, of_coordinates
from app.services.statistics.questions import (
    DECLARED,
    MEAN,
    NO_SUM,
    PAIR,
    RANGE,
    SD,
    STATISTICS,
    SUM,
    VARIANCE,
    Ask,
    asked_of,
    check_measure,
    no_number,
)
from app.sessions.searched import Searched

AnyPlan = OneShape[Any] | FoundPlan

_PLANS: Sequence[type[PricedPlan]] = (
    HistogramPlan,
    ChoicesPlan,
    TablePlan,
    QuantilePlan,
    Description,
    CountPlan,
    CovariancePlan,
    CorrelationPlan,
    CoordinatesPlan,
    FoundPlan,
)

ESTIMATORS = {one.name: one for one in _PLANS}
"""The plans by what they are called."""

BY_STATISTIC = {statistic: one for one in _PLANS for statistic in one.answers}
"""The plans by the statistics that they answer."""

MANY_NUMBERS = tuple(one.name for one in _PLANS if one.many_numbers)
"""The plans whose answers have several numbers for each label."""

_PHRASES = {MEAN: f"a {MEAN} over a range that is found", SHARES: "shares of choices"}


def make(
    study: StudyDefinition,
    question: ShapeQuestion,
    cohorts: Sequence[Cohort],
    searched: Searched | None = None,
) -> AnyPlan:
    """Plan and price a question; with what searches found, for a quantile.

    Raises:
        BudgetExhausted, NotApplicable, InternalFault: as `ShapeEstimator.of_crowd`.
    """
    if question.estimator == FOUND_RANGE:
        return FoundPlan.of(study, question, cohorts)
    if question.by:
        return LabelsPlan.of(study, question, cohorts)
    return of_crowd(study, question, Crowd.of(study, cohorts, question).beside(searched))


def noise_of_pieces(estimator: str, currency: Currency, sums: int) -> PieceNoise:
    """The noise of the pieces of a question, of means too.

    Args:
        estimator: What answers the question.
        currency: Of the study.
        sums: How many a piece has.
    """
    by_bins = estimator in ESTIMATORS and ESTIMATORS[estimator].counts_bins
    return of_bins(currency, sums) if by_bins else of_coordinates(currency, sums // 2)


def resolve(study: StudyDefinition, ask: Ask) -> ShapeQuestion:
    """Check a question against its study and fill in the defaults.

    Raises:
        InvalidRequest: names every offending field.
    """
    found = BY_STATISTIC.get(ask.statistic, ESTIMATORS[COORDINATES])
    if not found.no_measure:
        check_measure(study, ask)
        study = study.of_measure(ask.measure)
    elif ask.measure:
        raise InvalidRequest.field("measure", f"does not apply to a {ask.statistic}{found.no_measure}")
    if study.choices and ask.statistic not in (SHARES, COUNT, TABLE):
        raise InvalidRequest.field("statistic", NOT_OF_CHOICES)
    if ask.statistic == SHARES and not study.choices:
        reason = "is for choices, and these values are numbers: ask for a histogram"
        raise InvalidRequest.field("statistic", reason)
    vectors = study.dimension > 1 and not found.no_measure
    if vectors and ask.statistic not in STATISTICS:
        raise InvalidRequest.field("statistic", no_number(study))
    secret = study.hides_people
    if vectors and secret and ask.statistic == SUM:
        raise InvalidRequest.field("statistic", NO_SUM)
    of = _PHRASES.get(ask.statistic, f"a {ask.statistic}")
    parameters = dict(ask.parameters)
    errors: list[FieldError] = []
    if vectors:
        found, of = ESTIMATORS[COORDINATES], f"a {ask.statistic} of values of several coordinates"
        if parameters.pop(RANGE, DECLARED) != DECLARED:
            errors.append(FieldError(RANGE, f"must be {DECLARED} for {of}"))
    if ask.estimator not in (None, AUTO, found.name):
        errors.append(FieldError("estimator", f"must be {found.name} for {of}"))
    if ask.tilt is not None and found.name == COUNT:
        errors.append(FieldError("tilt", "does not apply to a count: values have no place in it"))
    asked = asked_of(study, ask, errors)
    own = () if vectors else (PAIR,) if ask.statistic in OF_PAIRS else ASKABLE[ask.statistic].own
    those = f"it has {', '.join(own)}" if own else "it has none"
    errors += [
        FieldError(name, f"not a parameter of {of}; {those}") for name in parameters if name not in own
    ]
    try:
        asked |= found.own(study, ask, parameters)
    except InvalidRequest as refusal:
        errors += refusal.fields
    if errors:
        raise InvalidRequest.naming(errors, "the question is ")
    if found.name == COUNT:
        level, cap = asked["level"], asked["cap"]
        most = None if level is None else share_of(level.floor, asked["share"])
        if most is not None and (cap is None or cap >= most):
            # People count alike, so no person pays more than all can.
            asked |= {"epsilon": None, "cap": most}
        asked["tilt"] = None
    return ShapeQuestion(
        estimator=found.name,
        shape=found,
        choices=study.choices,
        spread=vectors and secret and ask.statistic in (VARIANCE, SD),
        public=found.name == COUNT and not secret,
        **asked,
    )
