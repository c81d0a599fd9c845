"""Options of a command that are the fields of the document that it sends, made from the wire model."""

import inspect
import re
from collections.abc import Callable, Container, Iterator, Sequence
from enum import StrEnum
from functools import wraps
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from app.cli.common import show, usage_error
from app.cli.http import integer, number, range_end
from app.cli.service_commands import Command, option, with_options

Schema = dict[str, Any]

RANGE_ENDS = ("lower", "upper")
"""Fields that are the ends of a range."""

_AS_JSON = re.compile(r", as \{.*?\}")
_LABELS = "NAME=A,B,..."
_MEASURE = "NAME=LOWER,UPPER[,COORDINATES] or NAME=A|B|..."


def fields_of(
    model: type[BaseModel],
    *,
    argument: str | None = None,
    spelled: Container[str] = (),
    unless: Sequence[str] = (),
) -> Callable[[Command], Command]:
    """Give a command an option for every field of a document, with the help and the default of its model.

    The command gets what was given as its first argument, a mapping with the names that the SDK has: those
    of a document within the document begin with its name.

    Args:
        model: Of the document.
        argument: The field that is no option, but the command's argument.
        spelled: Fields that the command has options of its own for.
        unless: Options of the command; with one of them required fields need not be given.
    """
    fields = {name: (field, schema) for name, _, field, schema in fields_in(model) if name not in spelled}

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            document = {name: given.pop(name) for name in fields}
            for name, (_, schema) in fields.items():
                if document[name] is None and unless and not any(given[one] for one in unless):
                    _require(name, fields[name][0], is_argument=name == argument)
                if get_origin(fields[name][0].annotation) is dict and document[name]:
                    read = _measures if _of_measures(fields[name][0]) else _lists
                    document[name] = read(document[name], f"--{name.replace('_', '-')}")
                if isinstance(document[name], str):
                    place = f"--{name.replace('_', '-')}"
                    text = document[name]
                    document[name] = (
                        range_end(text, place) if name in RANGE_ENDS else _value(text, schema, place)
                    )
            command({name: value for name, value in document.items() if value not in (None, [])}, **given)

        _, *own = inspect.signature(command).parameters.values()
        made = [
            _parameter(name, *found, is_argument=name == argument, unless=unless)
            for name, found in fields.items()
        ]
        return with_options(run, (*made, *own))

    return decorate


def fields_in(model: type[BaseModel], outer: str = "") -> Iterator[tuple[str, str, FieldInfo, Schema]]:
    """Every field of a document, those of documents within it too.

    Yields:
        The name that the SDK has for it, the one in the document (epsilon_max, epsilon.max), its definition
        and its JSON schema.
    """
    schemas = model.model_json_schema()["properties"]
    for name, field in model.model_fields.items():
        key = f"{outer}.{name}" if outer else name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from fields_in(field.annotation, key)
        else:
            yield key.replace(".", "_"), key, field, schemas[name]


def _require(name: str, field: FieldInfo, *, is_argument: bool) -> None:
    """Refuse a command line without a field that a document needs."""
    if field.is_required():
        given = f"argument '{name.upper()}'" if is_argument else f"option '--{name.replace('_', '-')}'"
        raise usage_error(f"Missing {given}.")


def _value(text: str, schema: Schema, option: str) -> object:
    """What the SDK takes, of text from the command line."""
    types = _types(schema)
    if "number" in types:
        return number(text, option)
    words = _words(schema)
    if "integer" not in types or text in words:
        return text
    if words and text[:1].isalpha():
        raise usage_error(f"{option}: {text!r} must be a whole number, or {' or '.join(words)}")
    return integer(text, option)


def _of_measures(field: FieldInfo) -> bool:
    """Whether it holds a document for each name."""
    kind = get_args(field.annotation)[-1]
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _lists(texts: list[str], option: str, form: str = _LABELS) -> dict[str, list[str]]:
    """What NAME=A,B says, each name once."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, words = text.partition("=")
        if not equals or name in found:
            raise usage_error(f"{option} takes {form}, each name once, not {text}")
        found[name] = [word.strip() for word in words.split(",")]
    return found


def _measures(texts: list[str], option: str) -> dict[str, dict[str, object]]:
    """What NAME=LOWER,UPPER says of a number, with ,COORDINATES of a vector, and NAME=A|B|... of a choice."""
    found: dict[str, dict[str, object]] = {}
    for name, words in _lists(texts, option, _MEASURE).items():
        if len(words) == 1 and "|" in words[0]:
            found[name] = {"choices": [label.strip() for label in words[0].split("|")]}
        elif len(words) in (2, 3):
            found[name] = {end: range_end(text, option) for end, text in zip(RANGE_ENDS, words, strict=False)}
            if len(words) == 3:
                found[name]["dimension"] = integer(words[2], option)
        else:
            raise usage_error(f"{option} takes {_MEASURE}")
    return found


def _words(schema: Schema) -> list[str]:
    """What a field takes beside numbers."""
    return [word for part in schema.get("anyOf", ()) for word in part.get("enum", ())]


def _parameter(
    name: str, field: FieldInfo, schema: Schema, *, is_argument: bool, unless: Sequence[str]
) -> inspect.Parameter:
    """A field as typer takes it. Numbers are text, which keeps every digit."""
    kind: Any = field.annotation
    metavar, help_text = None, schema.get("description", "")
    if get_origin(kind) is list:
        (one,) = get_args(kind)
        # Text that the model checks is text to typer.
        kind = list[str] if get_origin(one) is Annotated else kind
        help_text += " May be repeated."
    elif get_origin(kind) is dict:
        kind, metavar = list[str], _MEASURE if _of_measures(field) else _LABELS
        # What it looks like in the document is not what it looks like here: that is the metavar.
        help_text = _AS_JSON.sub("", help_text) + " May be repeated."
    elif not (isinstance(kind, type) and issubclass(kind, StrEnum)):
        types = _types(schema)
        kind = int if "integer" in types and "string" not in types else str
        metavar = "|".join(["NUMBER", *_words(schema)]) if types & {"integer", "number"} else None
    default = schema.get("default")
    shown = (
        "" if default is None else ", ".join(map(show, default if isinstance(default, list) else [default]))
    )
    place = typer.Argument if is_argument else typer.Option
    info = place(metavar=metavar, help=help_text, show_default=shown or False)
    required = field.is_required() and not unless
    if field.is_required() and not required:
        info.help = f"{info.help} Required, but with {' or '.join(f'--{one}' for one in unless)}."
    annotation: Any = Annotated[kind if required else kind | None, info]
    return option(name, annotation, inspect.Parameter.empty if required else None)


def _types(schema: Schema) -> set[object]:
    return {schema.get("type"), *(part.get("type") for part in schema.get("anyOf", ()))}
