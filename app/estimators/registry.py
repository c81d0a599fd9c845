"""Names of estimators, and the choice among them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from app.core.cohort import Group
from app.core.errors import InvalidRequest
from app.core.noise import NoNoise
from app.core.study import Relation
from app.estimators.adpm import Adpm
from app.estimators.baselines import Fme, Proportional, Stretching, Threshold
from app.estimators.hourglass import Hourglass
from app.estimators.hybrid import Kvh, Pwh
from app.estimators.hybrid_baselines import FullLm, GroupSize, LmOnly, TcmOnly
from app.estimators.interface import Estimator, NotApplicable, Parameter, Plan, Question
from app.estimators.ldpe import Ldpe
from app.estimators.optimal import Optimal
from app.estimators.ratio import Independent, Shifted
from app.estimators.sampling import Sampling
from app.estimators.transformed import Transformed
from app.estimators.uniform import Uniform

AUTO = "auto"
"""The name that stands for the estimator with the smallest predicted error."""

_ALL: tuple[Estimator, ...] = (
    Uniform(),
    Optimal(),
    Adpm(),
    Kvh(),
    Pwh(),
    Proportional(),
    Threshold(),
    Ldpe(),
    Fme(),
    Sampling(),
    Stretching(),
    TcmOnly(),
    LmOnly(),
    GroupSize(),
    FullLm(),
    Transformed(),
    Hourglass(),
    Shifted(),
    Independent(),
)

ESTIMATORS: Mapping[str, Estimator] = MappingProxyType({estimator.name: estimator for estimator in _ALL})
"""Every estimator by its name. The order breaks ties of `auto`."""


def applicable(relation: Relation) -> tuple[Estimator, ...]:
    """The estimators that are private under a relation, in registry order."""
    return tuple(estimator for estimator in ESTIMATORS.values() if estimator.relation is relation)


def get(name: str, relation: Relation) -> Estimator:
    """The estimator of a name.

    Args:
        name: As in the query string; not `auto`, which is no estimator.
        relation: The study's relation.

    Returns:
        The estimator.

    Raises:
        InvalidRequest: there is none of this name, or it is not private under this relation.
    """
    estimator = ESTIMATORS.get(name)
    if estimator is None:
        raise InvalidRequest.field("estimator", "is not the name of an estimator")
    if estimator.relation is not relation:
        raise InvalidRequest.field("estimator", f"is not private under {relation.value}")
    return estimator


def parameters(name: str, relation: Relation) -> tuple[Parameter, ...]:
    """The parameters that a question with this estimator may carry.

    Args:
        name: An estimator's name, or `auto`: then the union over all that apply, first come first
            kept.
        relation: The study's relation.

    Returns:
        The parameters, names unique.

    Raises:
        InvalidRequest: see `get`.
    """
    if name != AUTO:
        return get(name, relation).parameters
    union: dict[str, Parameter] = {}
    for estimator in applicable(relation):
        for parameter in estimator.parameters:
            union.setdefault(parameter.name, parameter)
    return tuple(union.values())


def for_estimator(estimator: Estimator, question: Question) -> Question:
    """The question with exactly the parameters that an estimator declares, defaults filled in.

    Args:
        estimator: Who is asked.
        question: May carry more parameters, or fewer.

    Returns:
        The question.
    """
    declared = {
        parameter.name: question.parameters.get(parameter.name, parameter.default)
        for parameter in estimator.parameters
    }
    return replace(question, parameters=declared)


def choose(
    groups: Sequence[Group], question: Question, among: Sequence[Estimator] | None = None
) -> tuple[Estimator, Plan, Question]:
    """What `auto` takes: the smallest predicted error among all estimators that apply.

    Args:
        groups: All groups of the study.
        question: What is asked; parameters that an estimator does not declare are ignored by it.
        among: Estimators to choose among; by default all that apply.

    Returns:
        The estimator, its plan, and the question that the plan answers: of a parameter that has its
        default, `auto` also tries the rivals where noise is added. Of equal predictions the
        first in the registry, and the default before its rivals.

    Raises:
        NotApplicable: none has an answer for these groups.

    Privacy: predictions depend on no raw data; under add_remove_one not on the groups either, so the
        choice reveals nothing.
    """
    best: tuple[Estimator, Plan, Question] | None = None
    for estimator in applicable(question.relation) if among is None else among:
        for tried in _tries(for_estimator(estimator, question), estimator):
            try:
                plan = estimator.plan(groups, tried)
            except NotApplicable:
                break
            if best is None or plan.predicted_error < best[1].predicted_error:
                best = estimator, plan, tried
            if isinstance(plan.noise, NoNoise):
                break  # What needs no noise is answered as it is.
    if best is None:
        raise NotApplicable("No estimator has an answer for these groups.")
    return best


def _tries(question: Question, estimator: Estimator) -> Iterator[Question]:
    """The question itself, then with each rival in place of a default."""
    yield question
    for parameter in estimator.parameters:
        if question.parameters[parameter.name] == parameter.default:
            for rival in parameter.rivals:
                yield replace(question, parameters={**question.parameters, parameter.name: rival})
