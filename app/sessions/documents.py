"""The JSON document of a running protocol, and back: frozen dataclasses field by field.

What is stored once can be restored by every later version: a new field has a default, and no field changes
its name or its meaning within a format.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from app.core.errors import InternalFault, InvalidRequest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT = 1
"""Grows when the shape of a document changes; the older ones stay readable."""

Record = TypeVar("Record", bound="DataclassInstance")


def to_document(record: "DataclassInstance") -> dict[str, Any]:
    """The JSON object of a dataclass. Floats survive exactly; grid points and counts are integers."""
    return {"format": FORMAT, **_plain(record)}


def from_document(kind: type[Record], document: Mapping[str, Any]) -> Record:
    """The dataclass of this kind that a document was made from.

    Raises:
        InternalFault: it was not made by `to_document`.
    """
    try:
        if document["format"] != FORMAT:
            raise InternalFault("A stored session has a format of a newer version.")
        record: Record = _restored(kind, document)
    except (KeyError, TypeError, ValueError, InvalidRequest) as error:
        raise InternalFault("A stored session cannot be read.") from error
    return record


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    # A million grid points are not looked at one by one.
    if type(value) is tuple and value and is_dataclass(value[0]):
        return [_plain(item) for item in value]
    return value


def _restored(kind: Any, value: Any) -> Any:
    """The value of a type that a JSON value was made from.

    Raises:
        TypeError, ValueError: it is of another type.
    """
    if type(value) is kind:
        return value
    if is_dataclass(kind):
        make: Any = kind
        types = get_type_hints(kind)
        return make(
            **{name: _restored(types[name], item) for name, item in dict(value).items() if name in types}
        )
    # Unions are with None, and tuples of one type and any length.
    if get_origin(kind) is UnionType:
        (other,) = (option for option in get_args(kind) if option is not NoneType)
        return None if value is None else _restored(other, value)
    if get_origin(kind) is tuple:
        item_kind = get_args(kind)[0]
        if item_kind is int and set(map(type, value)) <= {int}:
            return tuple(value)
        return tuple(_restored(item_kind, item) for item in value)
    if issubclass(kind, StrEnum):
        return kind(value)
    # JSON may have lost that a number is not an integer.
    if kind is float and type(value) is int:
        return float(value)
    raise TypeError(f"not a {kind.__name__}")
