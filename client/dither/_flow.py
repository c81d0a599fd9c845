"""Requests without I/O.

An operation is a generator that yields what it wants done (send a request, wait, do a blocking piece of
work) and is handed the outcome. `Client` and `AsyncClient` differ only in how they carry that out.
"""

import dataclasses
import secrets
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from dither._errors import HTTPX_ERRORS, httpx_meaning, no_answer
from dither._parse import problem

T = TypeVar("T")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. The path is percent-encoded and starts at the service's root.

    Attributes:
        method, path, query, body, headers: What is sent.
        patience: Seconds that the service may take longer than usual, because it was asked to wait.
        shared: Whether all who ask the same at the same time may share one answer.
        repeatable: Whether the same request twice does no more than once. Any other one is tried again only
            where the service surely did nothing.
    """

    method: str
    path: str
    query: Pairs = ()
    body: bytes | None = None
    headers: Pairs = ()
    patience: float = 0.0
    shared: bool = False
    repeatable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One response, read to its end.

    Attributes:
        status, body: What came back.
        retry_after: The Retry-After header.
        certain: False where an earlier try of the same request may have been accepted unseen.
    """

    status: int
    body: bytes
    retry_after: str | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; the outcome is a `Reply`, or one of httpx's exceptions."""

    request: Request


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Work:
    """Do something that blocks, off the event loop; the outcome is what it returns or raises."""

    task: Callable[[], object]


Effect = Send | Sleep | Work
Flow = Generator[Effect, Any, T]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and how patiently a request is tried again.

    Tried again are connection errors, time-outs, and the answers 429, 502, 503 and 504, but for a quota that
    is used up. The n-th wait is random between nothing and base * 2**n seconds, or what Retry-After asks for.

    Attributes:
        attempts: Tries altogether.
        base_seconds: Longest first wait.
        cap_seconds: Longest wait.
        patience_seconds: The longest that all waits of a request may take together; where the next one would
            take more, what happened is raised at once.
        on_wait: Called with the seconds of each wait that Retry-After asks for, before it.
    """

    attempts: int = 5
    base_seconds: float = 0.25
    cap_seconds: float = 8.0
    patience_seconds: float = 60.0
    on_wait: Callable[[float], None] | None = None

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.base_seconds, self.cap_seconds, self.patience_seconds) < 0:
            raise ValueError("attempts must be at least 1 and no time may be negative")

    def wait(self, failures: int) -> float:
        """Seconds to wait after this many failures: exponential, with full jitter."""
        longest = min(self.cap_seconds, self.base_seconds * 2.0 ** (failures - 1))
        return longest * secrets.randbelow(1 << 20) / (1 << 20)


_TRY_AGAIN = frozenset({429, 502, 503, 504})
_SURELY_REFUSED = frozenset({429})

_QUOTA = "quota_exhausted"
"""A 429 that no wait of this length ends: a quota is one of hours or days."""


def work(task: Callable[[], T]) -> Flow[T]:
    """Have a blocking piece of work done."""
    outcome: T = yield Work(task)
    return outcome


def exchange(request: Request, retry: Retry) -> Flow[Reply]:
    """Send a request, again if need be, and return the answer to the last try, if it is a success.

    Raises:
        ProblemError: the service refused.
        TransportError: no answer came.
    """
    certain = True
    left = retry.patience_seconds
    for attempt in range(1, retry.attempts + 1):
        last = attempt == retry.attempts
        try:
            reply: Reply = yield Send(request)
        except HTTPX_ERRORS as fault:
            meaning, pause = httpx_meaning(fault), retry.wait(attempt)
            if last or pause > left or not meaning.retry or not request.repeatable:
                raise meaning.error(no_answer(fault)) from fault
            certain = False
        else:
            if 200 <= reply.status < 300:
                return reply if certain else dataclasses.replace(reply, certain=False)
            asked = _retry_after(reply.retry_after)
            where = f"{request.method} {request.path}"
            refusal = problem(reply.status, reply.body, request=where, certain=certain, retry_after=asked)
            # Chance does not decide whether a wait that fits is one.
            pause = retry.wait(attempt) if asked is None else min(asked + retry.wait(1), max(asked, left))
            statuses = _TRY_AGAIN if request.repeatable else _SURELY_REFUSED
            if last or pause > left or reply.status not in statuses or refusal.code == _QUOTA:
                raise refusal
            certain = certain and reply.status in _SURELY_REFUSED
            if asked is not None and retry.on_wait is not None:
                retry.on_wait(pause)
        left -= pause
        yield Sleep(pause)
    raise AssertionError("the last try returns or raises")


def _retry_after(header: str | None) -> float | None:
    """Seconds that the service asks to wait: a number, or until a date."""
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.isdigit():
        return float(header[:9])
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
