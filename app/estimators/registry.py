"""Names of estimators, and the choice among them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from app.core.cohort import Group
from app.core.errors import InvalidRequest
from app.core.study import Currency, Relation
from app.estimators.adpm import Adpm
from app.estimators.hourglass import Hourglass
from app.estimators.hybrid import Kvh, Pwh
from app.estimators.interface import Estimator, NotApplicable, Parameter, Plan, Question
from app.estimators.optimal import Optimal
from app.estimators.threshold import Threshold
from app.estimators.transformed import Transformed
from app.estimators.uniform import Uniform

AUTO = "auto"
"""The name that stands for the estimator with the smallest predicted error."""

GROUP = "dither.estimators"
"""The entry points by which other distributions offer estimators."""

ALL = "all"
"""The name that allows every installed estimator."""

_OWN: tuple[Estimator, ...] = (
    Uniform(),
    Optimal(),
    Adpm(),
    Kvh(),
    Pwh(),
    Threshold(),
    Transformed(),
    Hourglass(),
)

_known: dict[str, Estimator] = {estimator.name: estimator for estimator in _OWN}

ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(_known)
"""Every estimator that answers, by its name: the service's own and those allowed. The order breaks ties."""


def allow(names: Iterable[str]) -> None:
    """Let these estimators of other distributions answer, and no others.

    An installed estimator is code of the service's own process: it is trusted not to reach around its
    interface. It is not trusted with its price, which is computed from its queries and its noise.

    Args:
        names: Names of entry points of the group `dither.estimators`, or `all`.

    Raises:
        ValueError: there is no such estimator, it cannot be loaded, or its name is taken.
    """
    wanted = set(names)
    installed = {found.name: found for found in entry_points(group=GROUP)} if wanted else {}
    own = {estimator.name for estimator in _OWN}
    if missing := sorted(wanted - {ALL} - set(installed)):
        raise ValueError(f"no installed distribution has the estimator {missing[0]}")
    found = [_loaded(installed[name]) for name in sorted(installed) if name in wanted or ALL in wanted]
    names = [estimator.name for estimator in found]
    if taken := sorted(own & set(names)):
        raise ValueError(f"the service has an estimator {taken[0]} of its own")
    if twice := sorted(name for name in names if names.count(name) > 1):
        raise ValueError(f"two of the estimators that are allowed call themselves {twice[0]}")
    _known.clear()
    _known.update({estimator.name: estimator for estimator in (*_OWN, *found)})


def _loaded(point: EntryPoint) -> Estimator:
    try:
        estimator: Estimator = point.load()()
        missing = [name for name in _INTERFACE if not hasattr(estimator, name)]
    except Exception as error:
        raise ValueError(
            f"the estimator {point.name} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    if missing:
        raise ValueError(f"the estimator {point.name} has no {missing[0]}")
    return estimator


_INTERFACE = ("name", "version", "relation", "parameters", "summary", "plan")
"""What `Estimator` asks of each."""


def applicable(relation: Relation, noise: Currency = Currency.LAPLACE) -> tuple[Estimator, ...]:
    """The estimators that are private under a relation and can add this noise, in registry order."""
    return tuple(
        estimator
        for estimator in ESTIMATORS.values()
        if estimator.relation is relation and noise in currencies_of(estimator)
    )


def currencies_of(estimator: Estimator) -> frozenset[Currency]:
    """The noises that an estimator can add, by the currency they are paid in."""
    found: frozenset[Currency] = getattr(estimator, "currencies", _PURE)
    return found


_PURE = frozenset({Currency.LAPLACE})


def get(name: str, relation: Relation, noise: Currency = Currency.LAPLACE) -> Estimator:
    """The estimator of a name.

    Args:
        name: As in the query string; not `auto`, which is no estimator.
        relation: The study's relation.
        noise: The study's noise.

    Returns:
        The estimator.

    Raises:
        InvalidRequest: there is none of this name, it is not private under this relation, or it cannot add
            this noise.
    """
    estimator = ESTIMATORS.get(name)
    if estimator is None:
        raise InvalidRequest.field("estimator", f"must be {_choice(relation, noise)}")
    if estimator.relation is not relation:
        reason = f"is not private under {relation.value}; must be {_choice(relation, noise)}"
        raise InvalidRequest.field("estimator", reason)
    if noise not in currencies_of(estimator):
        raise InvalidRequest.field("estimator", f"adds no {noise} noise; must be {_choice(relation, noise)}")
    return estimator


def _choice(relation: Relation, noise: Currency) -> str:
    return f"one of {', '.join([AUTO, *(estimator.name for estimator in applicable(relation, noise))])}"


def parameters(name: str, relation: Relation, noise: Currency = Currency.LAPLACE) -> tuple[Parameter, ...]:
    """The parameters that a question with this estimator may carry.

    Args:
        name: An estimator's name, or `auto`: then the union over all that apply, first come first
            kept.
        relation: The study's relation.
        noise: The study's noise.

    Returns:
        The parameters, names unique.

    Raises:
        InvalidRequest: see `get`.
    """
    if name != AUTO:
        return get(name, relation, noise).parameters
    union: dict[str, Parameter] = {}
    for estimator in applicable(relation, noise):
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
        The estimator, its plan, and the question that the plan answers, with the estimator's parameters. Of
        equal predictions the first in the registry.

    Raises:
        NotApplicable: none has an answer for these groups.

    Privacy: predictions depend on no raw data; under add_remove_one not on the groups either, so the
        choice reveals nothing.
    """
    best: tuple[Estimator, Plan, Question] | None = None
    for estimator in applicable(question.relation, question.currency) if among is None else among:
        asked = for_estimator(estimator, question)
        try:
            plan = estimator.plan(groups, asked)
        except NotApplicable:
            continue
        if best is None or plan.predicted_error < best[1].predicted_error:
            best = estimator, plan, asked
    if best is None:
        raise NotApplicable("No estimator has an answer for these groups.")
    return best
