"""Records as documents."""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any


def plain(value: object) -> Any:
    """A record as a dictionary by the names of its fields, records in it alike; anything else as it is.

    Unlike `dataclasses.asdict` it copies nothing else, which takes most of its time.
    """
    names = names_of(type(value))
    return value if names is None else {name: plain(getattr(value, name)) for name in names}


def names_of(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a kind of record; None of any other kind."""
    return _names(kind)  # type: ignore[arg-type]  # Classes are hashable, whatever mypy says.


@cache
def _names(kind: type[Any]) -> tuple[str, ...] | None:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
