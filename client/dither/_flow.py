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

    Tried again are connection errors, time-outs, and the answers 429, 502, 503 and 504. The n-th wait is
    random between nothing and base * 2**n seconds, or what Retry-After asks for.

    Attributes:
        attempts: Tries altogether.
        base_seconds: Longest first wait.
        cap_seconds: Longest wait.
        patience_seconds: Where Retry-After asks for more than this, the refusal is raised at once.
    """

    attempts: int = 5
    base_seconds: float = 0.25
    cap_seconds: float = 8.0
    patience_seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.base_seconds, self.cap_seconds, self.patience_seconds) < 0:
            raise ValueError("attempts must be at least 1 and no time may be negative")

    def wait(self, failures: int) -> float:
        """Seconds to wait after this many failures: exponential, with full jitter."""
        longest = min(self.cap_seconds, self.base_seconds * 2.0 ** (failures - 1))
        return longest * secrets.randbelow(1 << 20) / (1 << 20)


_TRY_AGAIN = frozenset({429, 502, 503, 504})
_SURELY_REFUSED = frozenset({429})


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
    for attempt in range(1, retry.attempts + 1):
        try:
            reply: Reply = yield Send(request)
        except HTTPX_ERRORS as fault:
            meaning = httpx_meaning(fault)
            if attempt == retry.attempts or not meaning.retry or not request.repeatable:
                raise meaning.error(no_answer(fault)) from fault
            certain = False
            yield Sleep(retry.wait(attempt))
            continue
        pause = _pause(reply, retry, attempt, _TRY_AGAIN if request.repeatable else _SURELY_REFUSED)
        if pause is None:
            break
        certain = certain and reply.status in _SURELY_REFUSED
        yield Sleep(pause)
    if 200 <= reply.status < 300:
        return reply if certain else dataclasses.replace(reply, certain=False)
    raise problem(reply.status, reply.body, request=f"{request.method} {request.path}", certain=certain)


def _pause(reply: Reply, retry: Retry, attempt: int, statuses: frozenset[int]) -> float | None:
    """Seconds until the next try, or None where there is none."""
    if reply.status not in statuses or attempt == retry.attempts:
        return None
    asked = _retry_after(reply.retry_after)
    if asked is None:
        return retry.wait(attempt)
    return asked + retry.wait(1) if asked <= retry.patience_seconds else None


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
