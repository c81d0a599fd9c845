"""Writing a document in an editor: a commented form made from the wire model, until the service takes it."""

import json
import textwrap
import tomllib
from collections.abc import Callable, Container, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar, get_args, get_origin

import click
from dither import ProblemError
from dither.device.table import NotOneNumber, check_meant
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.cli.common import CommandFailed
from app.cli.http import explain
from app.cli.options import RANGE_ENDS, Schema, fields_in

T = TypeVar("T")

HEAD = "What begins with # is a comment. Save and leave to send it; leave without saving to give up."

WIDTH = 100


def edited(model: type[BaseModel], given: Mapping[str, Any], send: Callable[[Mapping[str, Any]], T]) -> T:
    """Open the editor on a document, and again with what was refused, until it is sent.

    Args:
        model: Of the document.
        given: Fields that are filled in, by the names that the SDK has.
        send: Sends what was written, by the same names.

    Raises:
        CommandFailed: the editor was left without saving, or there is none.
    """
    text = form(model, given)
    while True:
        try:
            written = click.edit(text, extension=".toml")
        except click.ClickException as error:
            raise CommandFailed(f"{error.message} (set EDITOR)") from None
        if written is None:
            raise CommandFailed("left without saving: nothing was made")
        text = "\n".join(_without_refusal(written))
        try:
            return send(read(model, text))
        except ValueError as mistake:
            refusal = str(mistake)
        except ProblemError as problem:
            refusal = explain(problem)
        text = "\n".join([*(f"{REFUSED} {line}".rstrip() for line in refusal.splitlines()), text])


REFUSED = "#!"
"""How lines begin that say what was refused; the next attempt does without them."""


def _without_refusal(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if not line.startswith(REFUSED))


def form(model: type[BaseModel], given: Mapping[str, Any]) -> str:
    """A document as TOML: each field below what it means; those with a default are comments."""
    lines = [f"# {(model.__doc__ or '').strip().splitlines()[0]}", f"# {HEAD}"]
    for name, key, field, schema in fields_in(model):
        lines += [
            "",
            *textwrap.wrap(_meaning(field, schema), WIDTH, initial_indent="# ", subsequent_indent="# "),
        ]
        default = schema.get("default")
        if name in given:
            lines.append(f"{key} = {_value(given[name])}")
        elif field.is_required():
            lines.append(f"{key} = ")
        else:
            lines.append(f"# {key} = {'' if default is None else _value(default)}".rstrip())
    return "\n".join(lines) + "\n"


def read(model: type[BaseModel], text: str, *, given: Container[str] = ()) -> dict[str, Any]:
    """What was written, as TOML or as JSON, by the names that the SDK has.

    Args:
        model: Of the document.
        text: Of the file.
        given: Fields that need not be there.

    Raises:
        ValueError: it is neither, or has a field that the document does not have; the message says where.
    """
    reader: Callable[..., dict[str, Any]] = json.loads if text.lstrip().startswith("{") else tomllib.loads
    try:
        document = reader(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"not readable: {error}") from None
    names = {key: name for name, key, _, _ in fields_in(model)}
    found = dict(_flat(document, names))
    unknown = [key for key in found if key not in names]
    if unknown:
        raise ValueError("\n".join(f"{key}: is unknown" for key in unknown))
    missing = [
        key
        for name, key, field, _ in fields_in(model)
        if field.is_required() and key not in found and name not in given
    ]
    if missing:
        raise ValueError("\n".join(f"{key}: is required" for key in missing))
    for key, end in _range_ends(found):
        try:
            check_meant(str(end))
        except NotOneNumber as question:
            raise ValueError(f"{key}: {end} {question}") from None
    return {names[key]: value for key, value in found.items()}


def _range_ends(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The ends of ranges in a document, those of its measures too."""
    for key, value in document.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", end) for name, end in _range_ends(value))
        elif key in RANGE_ENDS:
            yield key, value


def _flat(document: Mapping[str, Any], fields: Container[str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, dict) and prefix + key not in fields:
            yield from _flat(value, fields, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _meaning(field: FieldInfo, schema: Schema) -> str:
    """What a field means, and what it takes where that is one of a few words."""
    kinds = [field.annotation, *get_args(field.annotation)]
    words = [
        one.value for kind in kinds if isinstance(kind, type) and issubclass(kind, StrEnum) for one in kind
    ]
    several = "Any" if get_origin(field.annotation) is list else "One"
    choice = f" {several} of {', '.join(words)}." if words else ""
    return f"{schema.get('description', '')}{choice}{' Required.' if field.is_required() else ''}".strip()


def _value(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_value(name)} = {_value(one)}' for name, one in value.items())}}}"
    if isinstance(value, str):
        # A string in JSON is one in TOML.
        return json.dumps(value, ensure_ascii=False)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
