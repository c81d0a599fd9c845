"""Documents out of text: fields of a form or of a command line, each read as its document takes it."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from app.core.errors import InvalidRequest
from app.core.numbers import JsonNumber
from app.web.validation_messages import field_errors

Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], fields: Mapping[str, str], **given: object) -> Model:
    """A document.

    Args:
        model: Of it.
        fields: Text by the names of its fields, items of a list one a line; what is empty is left out.
        **given: Fields that are not read so.

    Raises:
        InvalidRequest: names every offending field.
    """
    found = dict(given)
    for name, kinds in _kinds(model).items():
        # A list that must be there may be empty: then it says what is wrong with that.
        needed = "array" in kinds and model.model_fields[name].is_required()
        if name not in given and (needed or fields.get(name)):
            found[name] = _read(fields.get(name, ""), kinds)
    try:
        return model.model_validate(found)
    except ValidationError as error:
        raise InvalidRequest.naming(field_errors(error.errors())) from None


@cache
def _kinds(model: type[BaseModel]) -> Mapping[str, frozenset[str]]:
    """The types and formats of each field in JSON."""
    return {
        name: frozenset(_said(schema)) for name, schema in model.model_json_schema()["properties"].items()
    }


def _said(schema: Mapping[str, Any]) -> Iterator[str]:
    for one in schema.get("anyOf", ()):
        yield from _said(one)
    yield from (str(schema[name]) for name in ("type", "format") if name in schema)


def _read(text: str, kinds: frozenset[str]) -> object:
    if "array" in kinds:
        return [line.strip() for line in text.split("\n") if line.strip()]
    if "boolean" in kinds:
        return text == "true"
    if "date-time" in kinds:
        return f"{text}Z"
    return JsonNumber(text) if kinds & {"number", "integer"} else text
