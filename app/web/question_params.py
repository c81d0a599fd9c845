"""An analyst's question, from a query string or a document."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.core.errors import FieldError, InvalidRequest
from app.estimators.registry import AUTO, ESTIMATORS
from app.services.shapes.shape_parameters import PARAMETERS as SHAPE_PARAMETERS
from app.services.shapes.shape_questions import SHAPES
from app.services.statistics.questions import MEAN, Ask
from app.services.statistics.reading import READ
from app.web.documents.types import (
    EPSILON_SCHEMA,
    parse_epsilon,
    parse_half_width,
    parse_share,
    parse_size,
    parse_tilt,
)
from app.web.request import JSON, ApiRequest
from app.web.validation_messages import InvalidValue

_SHARE = {
    "type": "number",
    "minimum": 0.000001,
    "maximum": 1,
    "description": "Part of each personal epsilon that the question may use in all. If not given: to read, "
    "whatever the best answer used, and the study's default for a first one; to make a release, the last "
    "share of the question and the study's default beyond it. In add_remove_one studies each answer uses its "
    "own share.",
    "examples": [0.1],
}
_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "statistic": {"type": "string", "enum": [*READ, *SHAPES], "description": "What to ask for."},
    "estimator": {
        "type": "string",
        "enum": [AUTO, *ESTIMATORS],
        "description": "How; the one with the smallest predicted error if not given.",
    },
    "share": _SHARE,
    "until": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "In place of a share: what half of the 95 % interval is to be at most, in the unit of "
        "the statistic. The question uses the smallest share for which that is predicted, or is refused "
        "before anything is spent. For mean, sum and difference, and for a count of secret people.",
        "examples": [1],
    },
    "epsilon": {**EPSILON_SCHEMA, "description": "The most that any person may be charged."},
    "expected_size": {
        "type": "number",
        "minimum": 1,
        "maximum": 1e12,
        "description": "In add_remove_one studies: what to take for the secret number of people.",
    },
    "tilt": {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "How far the mean of those who ask for little privacy may differ from the others', "
        "as a part of the range; the study's if not given.",
    },
    "least_epsilon": {
        **EPSILON_SCHEMA,
        "description": "In add_remove_one studies: the least that people must have offered to take part. "
        "Others are left out in silence, and pay nothing. If not given, what promises the smallest error.",
    },
    "where": {
        "type": "string",
        "minLength": 1,
        "description": "Of whom, in a study with attributes: name:label, as region:north; several with "
        "commas between, or repeated. Only people with these labels are asked and charged.",
        "examples": ["region:north"],
    },
    "by": {
        "type": "string",
        "minLength": 1,
        "description": "An attribute: the answer has one estimate for each of its labels, beside the whole. "
        "No person pays more than for one answer.",
        "examples": ["region"],
    },
    "simultaneous": {
        "type": "boolean",
        "default": False,
        "description": "With labels: beside the interval of each label one that holds together with those of "
        "all other labels. For mean, sum and difference; it costs nothing more.",
    },
    "standardize": {
        "type": "string",
        "minLength": 1,
        "description": "The share of each label in the population, which sum to 1: the mean is that of the "
        "answers for labels, so weighed. It costs what the answer by these labels costs, after that nothing.",
        "examples": ["region:north=.4,south=.6"],
    },
    "of": {"type": "string", "enum": [MEAN], "description": "With difference: of what. A mean if not given."},
    "between": {
        "type": "string",
        "minLength": 1,
        "description": "With difference: an attribute and two of its labels; the first less the second, read "
        "off the answer by labels.",
        "examples": ["region:north,south"],
    },
    "measure": {
        "type": "string",
        "minLength": 1,
        "description": "Of which measure, in a study of several measures, where it is required. In a study "
        "of one it may be given: `value`, or the name that the study has for it.",
        "examples": ["income"],
    },
}
_NUMBERS: Mapping[str, Callable[[str], Any]] = {
    "share": parse_share,
    "until": parse_half_width,
    "epsilon": parse_epsilon,
    "expected_size": parse_size,
    "least_epsilon": parse_epsilon,
    "tilt": parse_tilt,
}
PARAMETERS: dict[str, str] = {
    parameter.name: parameter.description
    for estimator in ESTIMATORS.values()
    for parameter in estimator.parameters
}
"""Every estimator's own parameters, with what they mean."""


LISTS = frozenset({"edges", "where"})
"""Fields that may be arrays, or have commas between."""

HALF_WIDTH = "half_width"
"""What `until` may be an object of."""

REPEATABLE = frozenset({"where"})
"""Query parameters that may be repeated."""

ONCE = {
    "by": "an answer has the labels of one attribute; to ask people with certain labels of others, give them "
    "with where, as by=sex&where=region:north"
}
"""What is possible in place of giving a query parameter twice."""

FLAGS = ("allow_worse", "fresh")
"""Fields that are no part of a question: how an answer to it is made."""

_FRESH = {
    "type": "boolean",
    "default": False,
    "description": "Answer with noise of its own, at the full price of the share, in place of sharpening "
    "the last answer.",
}


def query_parameters(*, plan: bool) -> list[dict[str, Any]]:
    """The question as OpenAPI query parameters.

    Args:
        plan: Whether the query is for a plan, and names the statistic; otherwise the path does.
    """
    fields: dict[str, Mapping[str, Any]] = {
        name: schema for name, schema in _FIELDS.items() if plan or name != "statistic"
    }
    if plan:
        fields["fresh"] = _FRESH
    fields |= {
        name: {"type": "string", "minLength": 1, "description": description}
        for name, description in (PARAMETERS | SHAPE_PARAMETERS).items()
    }
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": schema.get("description", ""),
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }
        for name, schema in fields.items()
    ]


def request_body() -> dict[str, Any]:
    """The question as an OpenAPI request body."""
    parameters: dict[str, dict[str, Any]] = {
        name: {"type": ["string", "number"], "description": description}
        for name, description in (PARAMETERS | SHAPE_PARAMETERS).items()
    }
    parameters["edges"] |= {"type": ["string", "number", "array"], "items": {"type": "number"}}
    schema = {
        "title": "Question",
        "type": "object",
        "properties": {
            **_FIELDS,
            "where": {**_FIELDS["where"], "type": ["string", "array"], "items": {"type": "string"}},
            "until": {
                **_FIELDS["until"],
                "type": ["number", "object"],
                "properties": {HALF_WIDTH: {"type": "number", "exclusiveMinimum": 0}},
                "additionalProperties": False,
                "required": [HALF_WIDTH],
                "examples": [{HALF_WIDTH: 1}],
            },
            "parameters": {
                "type": "object",
                "properties": parameters,
                "additionalProperties": False,
                "description": "The estimator's own parameters.",
            },
            "allow_worse": {
                "type": "boolean",
                "default": False,
                "description": "Answer also where most people cannot pay any more, or the interval will be "
                "much wider than that of the best answer so far, or all that the number can be.",
            },
            "fresh": _FRESH,
        },
        "additionalProperties": False,
    }
    example = {"statistic": "mean", "estimator": "adpm", "share": 0.1}
    return {"required": False, "content": {JSON: {"schema": schema, "example": example}}}


def read_question(
    *sources: Mapping[str, object], statistic: str | None = None, beside: Sequence[str] = ()
) -> Ask:
    """A question from fields of text and numbers.

    A field that is no part of every question is a parameter of the estimator; whether that has such a
    parameter is for the service to say.

    Args:
        sources: Query parameters and documents; no two of them give the same field.
        statistic: Where the path names it.
        beside: What may be given beside the question, for the refusal of a name that is not known.

    Raises:
        InvalidRequest: names every offending field.
    """
    own = [one.name for estimator in ESTIMATORS.values() for one in estimator.parameters]
    parameter_names = dict.fromkeys((*own, *SHAPE_PARAMETERS))
    given = {} if statistic is None else {"statistic": statistic}
    fields: dict[str, object] = {**given}
    errors: list[FieldError] = []
    for source in sources:
        for name, value in _flat(source, errors):
            if name in fields:
                errors.append(FieldError(name, "is given twice"))
            else:
                fields[name] = value
    known: dict[str, Any] = {}
    parameters: dict[str, str] = {}
    for name, value in fields.items():
        if name == "simultaneous":
            if value in (True, False, "true", "false"):
                known[name] = value in (True, "true")
            else:
                errors.append(FieldError(name, "must be true or false"))
            continue
        if name in FLAGS:
            errors.append(FieldError(name, "belongs in the document that is posted to releases"))
            continue
        if name == "until" and isinstance(value, dict):
            if value.keys() != {HALF_WIDTH}:
                errors.append(FieldError(name, f"must be a number, or an object with {HALF_WIDTH}"))
                continue
            value = value[HALF_WIDTH]
        if name in LISTS and isinstance(value, list) and all(isinstance(one, str) for one in value):
            value = ",".join(value)
        if name not in _FIELDS and name not in parameter_names:
            names = (*(one for one in _FIELDS if one not in given), *beside, *parameter_names)
            errors.append(FieldError(name[:64], f"is not known here; there are {', '.join(names)}"))
        elif not isinstance(value, str):
            instead = f": {ONCE[name]}" if name in ONCE else ""
            errors.append(FieldError(name, f"must be a string or a number{instead}"))
        elif not value:
            errors.append(FieldError(name, "must not be empty"))
        elif name == "statistic" and value not in (*READ, *SHAPES):
            errors.append(FieldError(name, f"must be one of {', '.join((*READ, *SHAPES))}"))
        elif name in _NUMBERS:
            try:
                known[name] = _NUMBERS[name](value)
            except InvalidValue as refusal:
                errors.append(FieldError(name, str(refusal)))
        elif name in _FIELDS:
            known[name] = str(value)
        else:
            parameters[name] = str(value)
    if errors:
        raise InvalidRequest.naming(errors, "the question is ")
    return Ask(**known, parameters=parameters)


def query_of(request: ApiRequest) -> dict[str, str]:
    """The fields of a question that are in the address.

    Raises:
        InvalidRequest: one is given twice that takes one value.
    """
    return request.single_query(REPEATABLE, ONCE)


def read_plan(query: Mapping[str, str]) -> tuple[Ask, bool]:
    """The question of a plan, and whether its answer would be `fresh`.

    Raises:
        InvalidRequest: names every offending field.
    """
    fields = dict(query)
    fresh = fields.pop("fresh", "false")
    if fresh not in ("true", "false"):
        raise InvalidRequest.field("fresh", "must be true or false")
    return read_question(fields, beside=("fresh",)), fresh == "true"


def take_flag(document: dict[str, object], name: str) -> bool:
    """Take `allow_worse` or `fresh` out of a document: it is no part of the question.

    Raises:
        InvalidRequest: it is neither true nor false.
    """
    value = document.pop(name, False)
    if not isinstance(value, bool):
        raise InvalidRequest.field(name, "must be true or false")
    return value


def _flat(source: Mapping[str, object], errors: list[FieldError]) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for name, value in source.items():
        if name != "parameters":
            pairs.append((name, value))
        elif isinstance(value, dict):
            pairs.extend(value.items())
        else:
            errors.append(FieldError(name, "must be an object"))
    return pairs
