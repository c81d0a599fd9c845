"""Contributions on the wire.

Their fields are validated by `app.services.contributing.intake`, the same for one record and for a million;
here is what they look like, for the OpenAPI document, and the response, made as bytes because it is the one
that is sent most often.
"""

import json
from collections.abc import Mapping
from typing import Any

from app.core.epsilon import epsilon_to_json
from app.core.reporting_range import FIELD
from app.core.study import MAX_DIMENSION, Trust
from app.web.documents.types import EPSILON_SCHEMA, WireOut

_SUBJECT: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": 256, "examples": ["alice"]}
_VALUE: Mapping[str, Any] = {
    "anyOf": [
        {"type": "number"},
        {"type": "string", "description": "In a study of choices: one of them."},
        {
            "type": "array",
            "items": {"type": "number"},
            "minItems": 2,
            "maxItems": MAX_DIMENSION,
            "description": "In a study of vectors: all coordinates.",
        },
    ],
    "description": "Within the study's range, or one of its choices.",
    "examples": [37.5],
}
_VALUES: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": ["number", "string", "array"], "items": {"type": "number"}},
    "description": "In a study of measures, in place of value: each of them once, a number within its range, "
    "one of its choices, or an array of all coordinates. In a study of one value it is called `value` unless "
    "the study names it.",
    "examples": [{"income": 1200, "party": "red"}],
}
_REPORT: Mapping[str, Any] = {
    "type": "integer",
    "description": "The randomized value on the study's grid: 0 is lower, 2^30 is upper. In a study of "
    "choices a set of them: bit j says whether choice j is in it.",
    "examples": [536870912],
}
_REPORTING_RANGE: Mapping[str, Any] = {
    "type": "string",
    "description": "In a study with a reporting range, where the report was made inside: its start/zoom. A "
    "value is moved into the range, and zoom times its distance from start is randomized as if that were its "
    "grid point. Without it the report is of the whole range.",
    "examples": ["107374182/10"],
}
_REPORTS: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "integer"},
    "description": "In a study of measures, in place of report: of k = max(1, min(d, floor(epsilon / 2.5))) "
    "of its d measures, which the device chooses at random, the value randomized with epsilon / k (at three "
    "significant digits), on the grid of the measure. In a study of one value its report, by its name.",
    "examples": [{"age": 536870912}],
}


_ATTRIBUTES: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "In a study with attributes, and only there: one label of each.",
    "examples": [{"region": "north"}],
}


def _one_or_several(name: str) -> dict[str, Any]:
    """A field or its plural. Not as alternatives: generators of clients would make a class of each."""
    return {
        "if": {"required": [f"{name}s"]},
        "then": {"not": {"required": [name]}},
        "else": {"required": [name]},
    }


def _variant(trust: Trust, description: str, *, subject: bool, **fields: Mapping[str, Any]) -> dict[str, Any]:
    properties = {"trust": {"const": trust.value}, **fields}
    if subject:
        properties = {"subject": _SUBJECT, **properties}
    return {
        "title": f"{trust.value.capitalize()} contribution",
        "description": description,
        "type": "object",
        "properties": {
            **properties,
            **({"values": _VALUES} if "value" in fields else {"reports": _REPORTS}),
            "attributes": _ATTRIBUTES,
        },
        "required": [name for name in properties if name not in ("value", "report", FIELD)],
        "additionalProperties": False,
        **(_one_or_several("value" if "value" in fields else "report")),
    }


def contribution_schema(*, subject: bool) -> dict[str, Any]:
    """The JSON schema of a contribution.

    Args:
        subject: Whether the document names its subject; otherwise the path does.
    """
    return {
        "title": "Contribution",
        "oneOf": [
            _variant(
                Trust.CENTRAL,
                "The value is stored. Epsilon is the most that it may ever cost its owner.",
                subject=subject,
                value=_VALUE,
                epsilon=EPSILON_SCHEMA,
            ),
            _variant(
                Trust.LOCAL,
                "The device randomized the value with this epsilon, which has at most three significant "
                "digits; the service only ever sees the report.",
                subject=subject,
                report=_REPORT,
                reporting_range=_REPORTING_RANGE,
                epsilon=EPSILON_SCHEMA,
            ),
            _variant(
                Trust.PUBLIC, "The value is no secret and costs nothing.", subject=subject, value=_VALUE
            ),
        ],
    }


EXAMPLES: Mapping[str, Any] = {
    "central": {"value": {"subject": "alice", "value": 37.5, "epsilon": 1.5, "trust": "central"}},
    "local": {"value": {"subject": "bob", "report": 536870912, "epsilon": 1, "trust": "local"}},
    "public": {"value": {"subject": "carol", "value": 20, "trust": "public"}},
}


_text = json.encoder.encode_basestring_ascii
"""A text in JSON. The document of the busiest route is written by hand, in a third of an encoder's time."""


class ContributionOut(WireOut):
    """A stored contribution.

    `epsilon` is the one that holds: the offered one rounded down to three significant digits.
    `mu2` is what it reserves in a study with Gaussian noise, null in others.
    `epsilon_used_at_most` is what the default question would charge at this moment, in steps from the study's
    default share to 1: privacy for free.
    """

    study: str
    subject: str
    trust: Trust
    epsilon: float | None
    mu2: float | None
    epsilon_used_at_most: float | None


def contribution_bytes(
    *, study: str, subject: str, trust: Trust, epsilon: int, mu2: int | None, epsilon_used_at_most: int
) -> bytes:
    """The JSON of a stored contribution. Epsilons in micro-epsilon, mu^2 in 1e-6; a public one has none."""
    public = trust is Trust.PUBLIC
    asked = "null" if public else repr(epsilon_to_json(epsilon))
    reserved = "null" if public or mu2 is None else repr(epsilon_to_json(mu2))
    used = "null" if public else repr(epsilon_to_json(epsilon_used_at_most))
    return (
        f'{{"study":{_text(study)},"subject":{_text(subject)},"trust":"{trust.value}",'
        f'"epsilon":{asked},"mu2":{reserved},"epsilon_used_at_most":{used}}}'
    ).encode()


class RecordError(WireOut):
    """A field of a refused record, and why it was refused, without its value."""

    field: str
    reason: str


class RecordResult(WireOut):
    """What became of one record of a batch. One that was refused says why, and its row: 1 is the first."""

    status: str
    code: str | None = None
    errors: list[RecordError] | None = None
    row: int | None = None


class BatchOut(WireOut):
    """One result a record, in their order."""

    results: list[RecordResult]
    created: int
    unchanged: int
    refused: int
