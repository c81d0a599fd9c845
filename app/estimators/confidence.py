"""At which level intervals are read: 95 %, or other ones, of the same noise.

How an answer is read is no part of its question, so a level reaches no price and no draw: who reads says at
which ones (`at`). What makes intervals at all of them together asks for them (`levels`), and what makes those
of one asks for that (`level`); `app.estimators.every_level` reads the latter again for each other one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

LEVEL = 0.95
"""The level of every interval for which no other one is asked."""

OTHERS = (0.8, 0.9, 0.99)

LEVELS = tuple(sorted((*OTHERS, LEVEL)))

T = TypeVar("T")


@dataclass(slots=True)
class Asked:
    """What intervals are made at.

    Attributes:
        levels: At all of these, the first one in front.
        alone: Whether one was made at the first of them alone.
    """

    levels: tuple[float, ...]
    alone: bool = False


_asked: ContextVar[Asked] = ContextVar("asked", default=Asked((LEVEL,)))  # noqa: B039 (its levels stay)


def levels() -> tuple[float, ...]:
    """The levels of the intervals that are being made, for what makes them at all of them together."""
    return _asked.get().levels


def level() -> float:
    """The level of the intervals that are being made, for what makes them at one."""
    asked = _asked.get()
    asked.alone = True
    return asked.levels[0]


def risk() -> float:
    """That one of them does not hold what it is for."""
    return 1 - level()


def risks() -> list[float]:
    """That for each of `levels`."""
    return [1 - one for one in levels()]


@contextmanager
def at(*wanted: float) -> Iterator[Asked]:
    """Make intervals of levels."""
    asked = Asked(wanted)
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def at_each(make: Callable[[], T]) -> list[T]:
    """What is made at each of the levels, one after the other."""
    found = []
    for one in levels():
        with at(one):
            found.append(make())
    return found
