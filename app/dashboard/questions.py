"""The form that asks: its fields are the parameters of a plan over HTTP, those that apply to the study."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import Any

from app.core.epsilon import MICRO
from app.core.question import FIELDS, FRESH
from app.core.study import Study, StudyDefinition
from app.estimators import registry
from app.services.shapes.questions import (
    CORRELATION,
    COUNT,
    COVARIANCE,
    OF_PAIRS,
    SHAPES,
    SHARES,
    TABLE,
)
from app.services.statistics.questions import AT, MEAN, ON, PAIR, SD, STATISTICS, SUM, VARIANCE
from app.services.statistics.reading import DIFFERENCE, READ
from app.web import question_params
from app.web.documents.release import ReleaseOut
from app.web.documents.shape import CorrelationReleaseOut, Published

READINGS = ("statistic", "between", "standardize", "simultaneous")
"""What is read off an answer that is there: for nothing."""

PREDICTION = (ON, AT)
"""What is read off a correlation: where the line on one of its numbers is at a number of that."""

_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    one["name"]: one for one in question_params.query_parameters(plan=True)
}

QUESTION = tuple(_PARAMETERS)
"""Fields of the form that asks."""

_LABELS = {name: field.label for name, field in ({**FIELDS, "fresh": FRESH}).items() if field.label}
"""What fields are called that do not have their own names."""

MOST_PAIRS = 100
"""Pairs of labels to choose from."""

_MAIN = (
    "statistic",
    "measure",
    PAIR,
    "estimator",
    "share",
    "until",
    "epsilon",
    "tilt",
    "expected_size",
    "least_epsilon",
    "where",
    "by",
    "fresh",
)
"""Fields that are always open, in their order; all others are below, each with what it means."""


def _always(_: StudyDefinition) -> bool:
    return True


def _never(_: StudyDefinition) -> bool:
    """Of what a line takes: both lines are on the page of the correlation; and of how answers are read."""
    return False


def _secret(study: StudyDefinition) -> bool:
    return study.hides_people


def _asked(study: StudyDefinition) -> list[StudyDefinition]:
    """The study, or the study of each of its measures."""
    return [study.of_measure(name) for name in study.measures.named or ("",)]


def _of_numbers(study: StudyDefinition) -> bool:
    return any(not one.choices and one.dimension == 1 for one in _asked(study))


def pairs(study: StudyDefinition, *, choices: bool = False) -> Sequence[str]:
    """Two numbers each, or two choices, that go together."""
    return [",".join(pair) for pair in combinations(study.measures.single(choices=choices), 2)]


def _of_vectors(study: StudyDefinition) -> bool:
    return any(one.dimension > 1 for one in _asked(study))


def _with_labels(study: StudyDefinition) -> bool:
    return bool(study.attributes.labels)


def _of_numbers_with_labels(study: StudyDefinition) -> bool:
    return _with_labels(study) and _of_numbers(study)


_ONLY: Mapping[str, Callable[[StudyDefinition], bool]] = {
    "measure": lambda study: study.measures.several,
    PAIR: lambda study: bool(pairs(study) or pairs(study, choices=True)),
    "estimator": _of_numbers,
    "expected_size": _secret,
    "least_epsilon": _secret,
    "fresh": lambda study: not _secret(study),
    "where": _with_labels,
    "by": _with_labels,
    "between": _of_numbers_with_labels,
    "standardize": _of_numbers_with_labels,
    "simultaneous": _of_numbers_with_labels,
    "of": _never,
    "level": _never,
    ON: _never,
    AT: _never,
}
"""Where a field has no meaning for some studies: for which it has one."""


_NOTHING = {"estimator": "best for this question", "by": "no attribute"}
"""What it says where nothing is chosen."""

_OF_STATISTICS = {name for name, field in FIELDS.items() if field.own}
_OWN = question_params.PARAMETERS.keys() | _OF_STATISTICS
"""Parameters of single estimators and statistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """A field of the form.

    Attributes:
        name: Of the parameter.
        label: What it is called.
        help: What it means.
        options: What can be chosen, with what it is called; empty for a field of text.
        flag: Whether it is a box to tick.
        decimal: Whether it is a number.
        placeholder: What holds, or an example.
        suggestions: Texts that it is likely to have.
        place: `main` where it is always open, `own` for a parameter of single estimators, else `more`.
    """

    name: str
    label: str
    help: str
    options: Sequence[tuple[str, str]] = ()
    flag: bool = False
    decimal: bool = False
    placeholder: str = ""
    suggestions: Sequence[str] = ()
    place: str


def statistics(study: StudyDefinition) -> Sequence[str]:
    """What can be asked of a study, the one that is asked without a choice first."""
    shares = [SHARES] if any(one.choices for one in _asked(study)) else []
    shares += [TABLE] if pairs(study, choices=True) else []
    if not _of_numbers(study):
        means = [one for one in STATISTICS if not (_secret(study) and one == SUM)]
        return [*(means if _of_vectors(study) else ()), *shares, COUNT]
    # Where the number of people is secret there is no sum.
    read = [one for one in READ if not (_secret(study) and one == SUM)]
    if not _with_labels(study):
        read = [one for one in read if one != DIFFERENCE]
    together = [COVARIANCE, CORRELATION] if pairs(study) else []
    shapes = [one for one in SHAPES if one not in (SHARES, COUNT, *OF_PAIRS)]
    return [*read, *shapes, *shares, COUNT, *together]


def completed(study: StudyDefinition, fields: Mapping[str, str]) -> dict[str, str]:
    """What was asked, about a measure or a pair of them if none was chosen.

    A form always sends one of each: what the statistic is not about goes.
    """
    statistic = fields.get("statistic", statistics(study)[0])
    if not study.measures.several:
        return dict(fields)
    if statistic in OF_PAIRS:
        fitting = pairs(study, choices=statistic == TABLE)
        about = dict(zip((PAIR,), fitting, strict=False))
        # The form has pairs of both kinds, and always sends one.
        fields = {name: value for name, value in fields.items() if name != PAIR or value in fitting}
    else:
        about = {} if statistic == COUNT else {"measure": _measure_for(study, statistic)}
    return about | {
        name: value for name, value in fields.items() if name in about or name not in ("measure", PAIR)
    }


def _measure_for(study: StudyDefinition, statistic: str) -> str:
    """The first measure that the statistic is for; the first one of all where there is none."""
    fitting = [
        name
        for name, one in study.measures.named.items()
        if bool(one.choices) is (statistic == SHARES) and (one.dimension == 1 or statistic in STATISTICS)
    ]
    return next(iter(fitting), next(iter(study.measures.named)))


def readings_of(study: Study, release: Published) -> Sequence[FormField]:
    """The fields that say what is read off an answer that is there; none where that is it alone."""
    if isinstance(release, CorrelationReleaseOut):
        on, at = (_field(_PARAMETERS[name], study.definition) for name in PREDICTION)
        return [replace(on, options=[(one, one) for one in release.measures]), replace(at, decimal=True)]
    if not isinstance(release, ReleaseOut):
        return ()
    read = [MEAN] if release.variance is None else [MEAN, VARIANCE, SD]
    read += [SUM, DIFFERENCE] if release.groups else [SUM]
    options = [(one, one) for one in statistics(study.definition) if one in read]
    fields = fields_of(study, READINGS if release.groups else ("statistic",))
    if len(options) == 1:
        return [one for one in fields if one.name != "statistic"]
    return [replace(one, options=options) if one.name == "statistic" else one for one in fields]


def fields_of(study: Study, names: Collection[str] = QUESTION) -> Sequence[FormField]:
    """The fields that have a meaning for a study, the main ones first."""
    definition = study.definition
    own = {
        parameter.wire
        for estimator in registry.applicable(definition.relation, definition.noise)
        for parameter in estimator.parameters
    }
    own = {PAIR} if not _of_numbers(definition) else own | _OF_STATISTICS
    found = [
        _field(one, definition)
        for name, one in _PARAMETERS.items()
        if name in names and _ONLY.get(name, _always)(definition) and (name not in _OWN or name in own)
    ]
    # What can only have one value is not asked for.
    asked = [one for one in found if len(one.options) != 1 or one.place == "main"]
    return sorted(asked, key=lambda one: _MAIN.index(one.name) if one.name in _MAIN else len(_MAIN))


def _suggested(name: str, study: StudyDefinition) -> Sequence[str]:
    """What a field of text is likely to have: labels of the study."""
    match name:
        case "where":
            return study.attributes.texts
        case "between":
            pairs = (
                f"{attribute}:{','.join(pair)}"
                for attribute, its in study.attributes.labels.items()
                for pair in combinations(its, 2)
            )
            return [*islice(pairs, MOST_PAIRS)]
    return ()


def _field(parameter: Mapping[str, Any], study: StudyDefinition) -> FormField:
    name, schema = parameter["name"], parameter["schema"]
    labels, found = study.attributes.labels, registry.applicable(study.relation, study.noise)
    options: Mapping[str, Iterable[str]] = {
        "statistic": statistics(study),
        "measure": study.measures.named,
        PAIR: [*pairs(study), *pairs(study, choices=True)],
        "estimator": ("", *(one.name for one in found)),
        "by": ("", *(",".join(some) for few in (1, 2, 3) for some in combinations(labels, few))),
    }
    attribute, its = next(iter(labels.items()), ("", ("",)))
    examples = {
        "share": f"{study.default_share / MICRO:g}",
        "until": "in place of a share",
        "epsilon": "no cap",
        "tilt": f"{study.assumed_tilt / MICRO:g}",
        "expected_size": "last noisy count",
        "least_epsilon": "the best level",
        "where": f"all people; or {attribute}:{its[0]}",
        "between": f"{attribute}:{','.join(its[:2])}",
        "standardize": f"{attribute}:{','.join(f'{label}={1 / len(its):.3g}' for label in its)}",
    }
    return FormField(
        name=name,
        place="main" if name in _MAIN else "own" if name in _OWN else "more",
        label=_LABELS.get(name) or (name if name in _OWN else name.capitalize()),
        help=parameter["description"],
        options=[
            (one, one.replace(",", " and ") if name in (PAIR, "by") and one else one or _NOTHING[name])
            for one in options.get(name, schema.get("enum", ()))
        ],
        flag=schema.get("type") == "boolean",
        decimal=schema.get("type") not in ("boolean", "string"),
        placeholder=examples.get(name, ""),
        suggestions=_suggested(name, study),
    )
