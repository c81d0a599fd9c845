"""Pydantic's error list as field names and reasons, without a single value."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.core.errors import FieldError
from app.web.patterns import IN_WORDS


class InvalidValue(ValueError):
    """What our own validators raise: its text is a reason that holds no value."""


_SOURCES = frozenset({"body", "query", "path", "header"})
_OF_A_NAME = "[key]"
"""How pydantic locates what is wrong with a name in an object, and not with what it has."""

_REASONS: Mapping[str, str] = {
    "missing": "is required",
    "extra_forbidden": "is unknown",
    "string_type": "must be a string",
    "string_too_short": "is too short",
    "string_too_long": "is too long",
    "int_parsing": "must be an integer",
    "int_type": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "frozen_set_type": "must be an array",
    "uuid_parsing": "must be a UUID",
    "uuid_type": "must be a UUID",
    "datetime_parsing": "must be a date and time such as 2030-01-31T12:00:00Z",
    "datetime_from_date_parsing": "must be a date and time such as 2030-01-31T12:00:00Z",
    "timezone_aware": "must say its time zone",
}

_BOUNDS: Mapping[str, str] = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "too_short": "must have {min_length} or more entries",
    "too_long": "takes at most {max_length} entries",
}

_LENGTHS: Mapping[str, str] = {
    "too_short": "must not be empty",
    "too_long": "is longer than {max_length} characters",
}


def field_errors(raw: Iterable[Mapping[str, Any]]) -> list[FieldError]:
    """One entry an offending field."""
    return [FieldError(field_name(error["loc"]), _reason(error)) for error in raw]


def field_name(location: Sequence[str | int]) -> str:
    """Dotted name of a field: ("body", "epsilon", "max") is "epsilon.max"."""
    parts = [str(part) for part in location]
    if len(parts) > 1 and parts[0] in _SOURCES:
        parts = parts[1:]
    if parts[-1:] == [_OF_A_NAME]:
        parts.pop()
    return ".".join(parts)[:100]


def _reason(error: Mapping[str, Any]) -> str:
    kind = error["type"]
    if kind == "value_error" and isinstance(error["ctx"]["error"], InvalidValue):
        return str(error["ctx"]["error"])
    if kind in ("too_short", "too_long") and error["ctx"]["field_type"] == "Value":
        # Of text that another validator has read; only of lists and objects does pydantic name the type.
        return _LENGTHS[kind].format(**error["ctx"])
    if kind == "string_pattern_mismatch":
        return IN_WORDS.get(error["ctx"]["pattern"], "has characters that are not allowed here")
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**{name: _plain(value) for name, value in error["ctx"].items()})
    return _REASONS.get(kind, "is not admissible")


def _plain(value: object) -> object:
    """A bound as it was declared: pydantic makes 0.0 of a 0 for numbers, and quotes the names of a choice."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.replace("'", "") if isinstance(value, str) else value
