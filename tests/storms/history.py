"""Histories of requests and answers, and an order of them that explains every answer (Wing and Gong, 1993).

A history is explained if its calls can be put in an order, each at one moment between its request and its
answer, so that a model that does one call after another gives all the answers. A call that nobody heard of
may have happened at any moment since, or never. https://doi.org/10.1006/jpdc.1993.1015
"""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

MOST_LOOKS = 300_000
"""States that are looked at before a history counts as one that cannot be decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request, and what came of it.

    Attributes:
        who: Who asked.
        does: What it does: a word and what it is about.
        told: What was answered; None where nobody heard.
        began, ended: Moments of the request and of its answer; infinite where there was none.
    """

    who: str
    does: tuple[Any, ...]
    told: tuple[Any, ...] | None
    began: float
    ended: float = math.inf

    def __str__(self) -> str:
        """In one line."""
        until = "     " if math.isinf(self.ended) else f"{self.ended:5.0f}"
        answer = "nobody heard" if self.told is None else " ".join(map(str, self.told))
        return f"{self.began:5.0f} to {until}  {self.who}: {' '.join(map(str, self.does))} -> {answer}"


class Model(Protocol):
    """Calls, one after another."""

    @property
    def start(self) -> Hashable:
        """The state before all calls."""

    def after(self, state: Any, call: Call) -> Iterable[Hashable]:
        """The states that a call may lead to with the answer that was told; none: it cannot happen now."""

    def changes(self, call: Call) -> bool:
        """Whether a call with the answer that was told can lead to another state, whenever it happens."""


class Undecided(Exception):
    """So many orders are possible that not all were tried."""


def explanation(model: Model, calls: Sequence[Call]) -> list[Call] | None:
    """An order of calls that explains all that was told; None where there is none.

    A call that changes nothing whenever it happens is put where it can happen first: wherever else it could
    go, it can go there, too. One that nobody heard of is tried only where it changes something, and of those
    that are alike and unheard the first goes first.

    Raises:
        Undecided: there are too many orders.
    """
    calls = sorted(calls, key=lambda call: (call.ended, call.began))
    heard = sum(1 << place for place, call in enumerate(calls) if not math.isinf(call.ended))
    seen: set[tuple[int, Hashable]] = set()
    stack: list[tuple[int, Hashable, tuple[int, ...]]] = [(0, model.start, ())]
    while stack:
        done, state, order = stack.pop()
        if done & heard == heard:
            return [calls[place] for place in order]
        if (done, state) in seen:
            continue
        seen.add((done, state))
        if len(seen) > MOST_LOOKS:
            raise Undecided(f"more than {MOST_LOOKS} states of {len(calls)} calls")
        further: list[tuple[int, Hashable, tuple[int, ...]]] = []
        for place in _next(calls, done):
            call = calls[place]
            after = [one for one in model.after(state, call) if one != state or call.told is not None]
            ways = [(done | 1 << place, one, (*order, place)) for one in after]
            if ways and not model.changes(call):
                further = ways
                break
            further += ways
        stack += reversed(further)
    return None


def _next(calls: Sequence[Call], done: int) -> list[int]:
    """The calls, sorted by their ends, that may be next: no other one ended before they began."""
    left = [place for place in range(len(calls)) if not done >> place & 1]
    places: list[int] = []
    unheard: set[tuple[Any, ...]] = set()
    for place in left:
        call = calls[place]
        if call.began <= calls[left[0]].ended and not (call.told is None and call.does in unheard):
            places.append(place)
            if call.told is None:
                unheard.add(call.does)
    return places


def shortest(model: Model, calls: Sequence[Call]) -> list[Call]:
    """The calls that no order explains, of those that none explains together.

    It is the shortest beginning that cannot be explained, without every answer that is not needed for that.
    Whatever is left out could have had any answer, or never have happened.
    """

    def explained(some: Sequence[Call]) -> bool:
        return explanation(model, some) is not None

    ends = sorted({call.ended for call in calls if not math.isinf(call.ended)})
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if explained(beginning(calls, ends[middle])):
            low = middle + 1
        else:
            high = middle
    left = beginning(calls, ends[low])
    for place in reversed(range(len(left))):
        if left[place].told is None:
            continue
        forgotten = [*left[:place], replace(left[place], told=None, ended=math.inf), *left[place + 1 :]]
        if not explained(forgotten):
            left = forgotten
    return sorted((call for call in left if call.told is not None), key=lambda call: call.began)


def beginning(calls: Sequence[Call], moment: float) -> list[Call]:
    """What was asked and told until a moment."""
    return [
        call if call.ended <= moment else replace(call, told=None, ended=math.inf)
        for call in calls
        if call.began <= moment
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """A history that nothing explains.

    Attributes:
        of: A person or a study.
        calls: The shortest one.
    """

    of: str
    calls: tuple[Call, ...]

    def __str__(self) -> str:
        """As a page."""
        return "\n  ".join(
            [f"no order of these calls explains what was told of {self.of}:", *map(str, self.calls)]
        )


def anomalies(histories: Iterable[tuple[str, Model, Sequence[Call]]]) -> list[Anomaly]:
    """The shortest history of each that nothing explains."""
    return [
        Anomaly(of=name, calls=tuple(shortest(model, calls)))
        for name, model, calls in histories
        if explanation(model, calls) is None
    ]
