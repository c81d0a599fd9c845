"""At which level intervals are read: 95 %, or another one, of the same noise.

How an answer is read is no part of its question, so a level reaches no price and no draw: who reads says at
which one (`at`), and what makes an interval asks for it (`level`). `app.estimators.every_level` reads an
answer at all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LEVEL = 0.95
"""That of every interval for which no other one is asked."""

OTHERS = (0.8, 0.9, 0.99)

LEVELS = tuple(sorted((*OTHERS, LEVEL)))

_asked: ContextVar[float] = ContextVar("level", default=LEVEL)


def level() -> float:
    """The level of the intervals that are being made."""
    return _asked.get()


def risk() -> float:
    """That one of them does not hold what it is for."""
    return 1 - level()


@contextmanager
def at(asked: float) -> Iterator[None]:
    """Make intervals of a level."""
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)
