"""An analyst's question, from a query string or a document."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.core.errors import FieldError, InvalidRequest
from app.core.question import ALLOW_WORSE, FIELDS, FRESH, STATISTICS, Field, Kind
from app.estimators.confidence import LEVEL, LEVELS
from app.estimators.registry import AUTO, ESTIMATORS
from app.services.statistics.questions import Ask
from app.web.documents.types import (
    EPSILON_SCHEMA,
    parse_epsilon,
    parse_half_width,
    parse_level,
    parse_share,
    parse_size,
    parse_tilt,
)
from app.web.request import JSON, ApiRequest
from app.web.validation_messages import InvalidValue

_SCHEMAS: Mapping[Kind, Mapping[str, Any]] = {
    Kind.TEXT: {"type": "string", "minLength": 1},
    Kind.LABELS: {"type": "string", "minLength": 1},
    Kind.FLAG: {"type": "boolean", "default": False},
    Kind.EPSILON: EPSILON_SCHEMA,
    Kind.SHARE: {"type": "number", "minimum": 0.000001, "maximum": 1},
    Kind.PART: {"type": "number", "minimum": 0, "maximum": 1},
    Kind.SIZE: {"type": "number", "minimum": 1, "maximum": 1e12},
    Kind.HALF_WIDTH: {"type": "number", "exclusiveMinimum": 0},
    # An enum of numbers is no schema that generators of clients know.
    Kind.LEVEL: {"type": "number", "minimum": min(LEVELS), "maximum": max(LEVELS), "default": LEVEL},
}
_PARSERS: Mapping[Kind, Callable[[str], Any]] = {
    Kind.EPSILON: parse_epsilon,
    Kind.SHARE: parse_share,
    Kind.PART: parse_tilt,
    Kind.SIZE: parse_size,
    Kind.HALF_WIDTH: parse_half_width,
    Kind.LEVEL: parse_level,
}
"""Of fields that are numbers; others are read by the service."""


def _schema(field: Field) -> dict[str, Any]:
    """A field as OpenAPI has it."""
    example = json.loads(field.example) if field.example and field.kind in _PARSERS else field.example
    return {
        **_SCHEMAS[field.kind],
        "description": field.description,
        **({"examples": [example]} if example else {}),
    }


_CHOICES: Mapping[str, Sequence[str]] = {
    "statistic": tuple(STATISTICS),
    "estimator": (AUTO, *ESTIMATORS),
}
"""Fields that are one of a few words."""

_FIELDS: Mapping[str, Mapping[str, Any]] = {
    name: {"type": "string", "enum": [*_CHOICES[name]], "description": field.description}
    if name in _CHOICES
    else _schema(field)
    for name, field in FIELDS.items()
    if not field.own
}
PARAMETERS: dict[str, str] = {
    parameter.wire: parameter.description
    for estimator in ESTIMATORS.values()
    for parameter in estimator.parameters
}
"""Every estimator's own parameters, with what they mean."""

_NAMES = {
    parameter.wire: parameter.name for estimator in ESTIMATORS.values() for parameter in estimator.parameters
}
"""What they are called in questions, and in the object `parameters`, by their names in a query string."""

_WIRE = {name: wire for wire, name in _NAMES.items()}

_OWN = {name: field.description for name, field in FIELDS.items() if field.own}
"""The parameters of single statistics, with what they mean."""


MOST_QUESTIONS = 20
"""How many are planned together at most."""

LISTS = frozenset(name for name, field in FIELDS.items() if field.kind in (Kind.LABELS, Kind.NUMBERS))
"""Fields that may be arrays, or have commas between."""

HALF_WIDTH = "half_width"
"""What `until` may be an object of."""

REPEATABLE = frozenset(name for name, field in FIELDS.items() if field.kind is Kind.LABELS)
"""Query parameters that may be repeated."""

FLAGS = ("allow_worse", "fresh")
"""Fields that are no part of a question: how an answer to it is made."""


def query_parameters(*, plan: bool) -> list[dict[str, Any]]:
    """The question as OpenAPI query parameters.

    Args:
        plan: Whether the query is for a plan, and names the statistic; otherwise the path does.
    """
    fields: dict[str, Mapping[str, Any]] = {
        name: schema for name, schema in _FIELDS.items() if plan or name != "statistic"
    }
    if plan:
        fields["fresh"] = _schema(FRESH)
    fields |= {
        name: {"type": "string", "minLength": 1, "description": description}
        for name, description in (PARAMETERS | _OWN).items()
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
        _NAMES.get(name, name): {"type": ["string", "number"], "description": description}
        for name, description in (PARAMETERS | _OWN).items()
    }
    parameters["edges"] |= {"type": ["string", "number", "array"], "items": {"type": "number"}}
    schema = {
        "title": "Question",
        "type": "object",
        "properties": {
            **_FIELDS,
            **{
                name: {**_FIELDS[name], "type": ["string", "array"], "items": {"type": "string"}}
                for name in sorted(REPEATABLE)
            },
            "until": {
                **_FIELDS["until"],
                "type": ["number", "object"],
                "properties": {HALF_WIDTH: {"type": "number", "exclusiveMinimum": 0}},
                "additionalProperties": False,
                "required": [HALF_WIDTH],
                "examples": [{HALF_WIDTH: 1}],
            },
            "standardize": {
                **_FIELDS["standardize"],
                "type": ["string", "object"],
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
                },
                "examples": [{"region": {"north": 0.4, "south": 0.6}}],
            },
            "parameters": {
                "type": "object",
                "properties": parameters,
                "additionalProperties": False,
                "description": "The estimator's own parameters.",
            },
            "allow_worse": _schema(ALLOW_WORSE),
            "fresh": _schema(FRESH),
        },
        "additionalProperties": False,
    }
    example = {"statistic": "mean", "estimator": "adpm", "share": 0.1}
    return {"required": False, "content": {JSON: {"schema": schema, "example": example}}}


def plans_body() -> dict[str, Any]:
    """Several questions as an OpenAPI request body."""
    schema = request_body()["content"][JSON]["schema"]
    one = {**schema, "properties": {k: v for k, v in schema["properties"].items() if k != "allow_worse"}}
    questions = {"type": "array", "items": one, "minItems": 1, "maxItems": MOST_QUESTIONS}
    whole = {
        "title": "Questions",
        "type": "object",
        "properties": {"questions": questions},
        "required": ["questions"],
        "additionalProperties": False,
    }
    example = {"questions": [{"statistic": "mean", "by": "region"}, {"statistic": "median", "share": 0.2}]}
    return {"required": True, "content": {JSON: {"schema": whole, "example": example}}}


def read_plans(document: Mapping[str, object]) -> list[tuple[Ask, bool]]:
    """The questions of several plans, and whether each answer would be `fresh`.

    Raises:
        InvalidRequest: names every offending field of the first question that has one.
    """
    for name in document.keys() - {"questions"}:
        raise InvalidRequest.field(name[:64], "is not known here; there is questions")
    questions = document.get("questions")
    if not isinstance(questions, list) or not 1 <= len(questions) <= MOST_QUESTIONS:
        raise InvalidRequest.field("questions", f"must be a list of 1 to {MOST_QUESTIONS} questions")
    return [_read_one(question, place) for place, question in enumerate(questions)]


def _read_one(question: object, place: int) -> tuple[Ask, bool]:
    if not isinstance(question, dict):
        raise InvalidRequest.field(f"questions.{place}", "must be an object")
    fields = dict(question)
    try:
        fresh = take_flag(fields, "fresh")
        return read_question(fields, beside=("fresh",)), fresh
    except InvalidRequest as refusal:
        raise refusal.within(f"questions.{place}") from None


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
    own = [one.wire for estimator in ESTIMATORS.values() for one in estimator.parameters]
    parameter_names = dict.fromkeys((*own, *_OWN))
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
        if name == "standardize" and isinstance(value, dict):
            value = _of_shares(value)
        if name in LISTS and isinstance(value, list) and all(isinstance(one, str) for one in value):
            value = ",".join(value)
        if name not in _FIELDS and name not in parameter_names:
            names = (*(one for one in _FIELDS if one not in given), *beside, *parameter_names)
            errors.append(FieldError(name[:64], f"is not known here; there are {', '.join(names)}"))
        elif not isinstance(value, str):
            form = f"a string such as {_WRITTEN[name]}" if name in _WRITTEN else "a string or a number"
            errors.append(FieldError(name, f"must be {form}"))
        elif not value:
            errors.append(FieldError(name, "must not be empty"))
        elif name == "statistic" and statistic is None and value not in STATISTICS:
            errors.append(FieldError(name, f"must be one of {', '.join(STATISTICS)}"))
        elif name in _FIELDS and (parse := _PARSERS.get(FIELDS[name].kind)):
            try:
                known[name] = parse(value)
            except InvalidValue as refusal:
                errors.append(FieldError(name, str(refusal)))
        elif name in _FIELDS:
            known[name] = str(value)
        else:
            parameters[_NAMES.get(name, name)] = str(value)
    if errors:
        raise InvalidRequest.naming(errors, "the question is ")
    return Ask(**known, parameters=parameters)


_WRITTEN = {"where": "region:north", "between": "region:north,south"}
"""How documents, too, have what answers and the SDKs have as objects."""


def _of_shares(shares: Mapping[str, object]) -> object:
    """The shares of labels as they are in an address; what is no object of objects of numbers stays."""
    texts = []
    for name, own in shares.items():
        if not isinstance(own, dict) or not all(isinstance(share, str) for share in own.values()):
            return shares
        texts.append(f"{name}:" + ",".join(f"{label}={share}" for label, share in own.items()))
    return ";".join(texts)


def query_of(request: ApiRequest) -> dict[str, str]:
    """The fields of a question that are in the address.

    Raises:
        InvalidRequest: one is given twice that takes one value.
    """
    return request.single_query(REPEATABLE)


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
            pairs.extend((str(_WIRE.get(own, own)), text) for own, text in value.items())
        else:
            errors.append(FieldError(name, "must be an object"))
    return pairs
