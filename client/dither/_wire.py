"""JSON without rounding: what is sent, and typed objects from what comes back."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from dither._errors import ResponseError
from dither.device.numbers import NotANumber, Number

T = TypeVar("T")
Parameter = str | int | float | Decimal
"""A parameter of a question: text, a number, or a bool."""


Document = Number | Parameter | Sequence["Document"] | Mapping[str, "Document"] | None
"""What a field of a request may be."""


def encode(document: Mapping[str, Document]) -> str:
    """A JSON object; numbers keep every digit.

    Raises:
        NotANumber: a number is not finite.
        TypeError: a value, or a name, is nothing that JSON has.
    """
    return join({name: json_text(value) for name, value in document.items()})


def join(written: Mapping[str, str]) -> str:
    """A JSON object, from the JSON text of each of its values.

    Raises:
        TypeError: a name is no text.
    """
    return "{" + ",".join(f"{json.dumps(_typed(str, name))}:{text}" for name, text in written.items()) + "}"


def json_text(value: Document) -> str:
    """A value as JSON. Raises: see `encode`."""
    if value is None:
        return "null"
    if isinstance(value, Number | Parameter):
        return _scalar(value)
    if isinstance(value, Mapping):
        return encode(value)
    return "[" + ",".join(map(json_text, value)) + "]"


def _scalar(value: Number | Parameter) -> str:
    if isinstance(value, Number):
        return value.text
    if isinstance(value, str | bool):
        return json.dumps(value)
    return str(value) if isinstance(value, int) else Number.parse(value).text


def query_text(value: Document) -> str:
    """A value in a query string, a list with commas between.

    Raises:
        NotANumber: no text, and no finite number.
    """
    if isinstance(value, list | tuple):
        return ",".join(map(query_text, value))
    return value if isinstance(value, str) else _scalar(value)  # type: ignore[arg-type] # refused there


def decode(body: bytes) -> object:
    """The JSON document of a response, its numbers exact.

    Raises:
        ResponseError: it is not JSON.
    """
    try:
        document: object = json.loads(body, parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, ArithmeticError, RecursionError):
        raise ResponseError("the service's answer is not JSON") from None
    return document


def _refuse(_: str) -> NoReturn:
    raise ValueError


def build(kind: Callable[..., T], document: object) -> T:
    """An instance of a dataclass from a JSON object with the same names.

    Fields that the dataclass does not have are left out, except in its field `raw`, which holds all. A field
    that may be None may be missing.

    Raises:
        ResponseError: a field is missing or of another type.
    """
    if not isinstance(document, dict):
        raise ResponseError("the service's answer is not the JSON object that it should be")
    values: dict[str, Any] = {}
    for name, default, convert in _plan(kind):
        value = document if name == "raw" else document.get(name)
        if value is None and default is not MISSING:
            values[name] = default
            continue
        try:
            values[name] = convert(value)
        except (TypeError, ValueError, OverflowError):
            raise ResponseError(f"the service's answer has no proper {name!r}") from None
    return kind(**values)


@cache
def _plan(kind: Any) -> list[tuple[str, Any, Callable[[Any], Any]]]:
    """Name, default and converter of each field of a dataclass."""
    hints = get_type_hints(kind)
    plan = []
    for item in fields(kind):
        hint, default = hints[item.name], item.default
        if item.default_factory is not MISSING:
            default = item.default_factory()
        if isinstance(hint, UnionType):
            [hint] = [part for part in get_args(hint) if part is not type(None)]
            default = None if default is MISSING else default
        plan.append((item.name, default, _converter(hint)))
    return plan


def _converter(hint: Any) -> Callable[[Any], Any]:
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        convert = _converter(arguments[0])
        return lambda value: tuple(map(convert, _typed(list, value)))
    if origin is Mapping and is_dataclass(arguments[1]):
        return lambda value: {name: build(arguments[1], one) for name, one in _typed(dict, value).items()}
    if origin is Mapping:
        return lambda value: _typed(dict, value)
    if origin is Literal:
        return lambda value: arguments[arguments.index(value)]
    return lambda value: build(hint, value)


def _typed(kind: type[T], value: object) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError
    return value


def _decimal(value: object) -> Decimal:
    """A decimal number, exact, without trailing zeros; it may be written as a string."""
    if not isinstance(value, str | int | Decimal):
        raise NotANumber
    text = format(Decimal(Number.parse(value).text), "f")
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise NotANumber
    number = float(value)
    if not math.isfinite(number):
        raise NotANumber
    return number


_SCALARS: Mapping[Any, Callable[[Any], Any]] = {
    str: lambda value: _typed(str, value),
    int: lambda value: _typed(int, value),
    bool: lambda value: _typed(bool, value),
    float: _float,
    Decimal: _decimal,
    date: lambda value: date.fromisoformat(_typed(str, value)),
    datetime: lambda value: datetime.fromisoformat(_typed(str, value)),
}
