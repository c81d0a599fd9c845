"""Records as documents."""

from dataclasses import fields, is_dataclass


def plain(value: object) -> object:
    """A record as a dictionary by the names of its fields, records in it alike; anything else as it is.

    Unlike `dataclasses.asdict` it copies nothing else, which takes most of its time.
    """
    if not is_dataclass(value):
        return value
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
