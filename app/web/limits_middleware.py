"""The outermost ASGI layer but for CORS: names, counts and logs requests; the unexpected is a bare 500."""

import asyncio
import time
import traceback
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from app.core.errors import InternalFault, RequestTimeout, Unavailable
from app.web.metrics import Metrics
from app.web.problems import INTERNAL_DETAIL, internal_fault, problem_of
from app.web.request import RESPONSE_HEADERS
from app.web.request_log import (
    HEADER,
    REFUSAL,
    begin_steps,
    log_request,
    method_of,
    request_id_of,
    template_of,
)

log = structlog.get_logger("dither.http")

CLIENT_LEFT = 499

DEFAULT_TIMEOUT_SECONDS = 120.0

NO_THREAD = "can't start new thread"
"""What the interpreter says where the machine, or the limit of a container, has no thread to spare."""

SLOWEST_BYTES_PER_SECOND = 64 * 1024
"""The slowest body that is served: each chunk extends the deadline by its size over this."""

GRAIN_SECONDS = 1 / 16
"""The deadline moves in steps of at least this, so that a short document does not set the timer twice."""


NO_STORE = (b"cache-control", b"no-store")
"""What a response says of caches where it says nothing else of them: most hold a secret, a person's numbers,
or an answer for the bearer of one token."""


class LimitsMiddleware:
    """Plain ASGI middleware: of every request an id, a time limit, the status, the duration; and no caches.

    The text of an unexpected exception may hold data (a driver's error quotes parameters), so the log
    gets its class and where it happened, and the client gets neither.
    """

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._timeout_seconds = timeout_seconds
        # Logs are configured by now; a logger that is not bound binds itself for each line.
        self._log: FilteringBoundLogger = structlog.get_logger("dither.http").bind()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(scope.get("headers", ()))
        bound = structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            begin_steps()
            with self._metrics.tracing.request(scope) as outcome:
                await self._answer(scope, receive, send, (HEADER, request_id.encode()), outcome)
        finally:
            structlog.contextvars.reset_contextvars(**bound)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, name: tuple[bytes, bytes], outcome: dict[str, int]
    ) -> None:
        started = time.perf_counter()
        status = 0
        timeout = BodyTimeout(receive, self._timeout_seconds)

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], name]
                for key, value in (scope.get(RESPONSE_HEADERS) or {}).items():
                    headers.append((key.lower().encode(), value.encode()))
                for key, _ in headers:
                    if key.lower() == NO_STORE[0]:
                        break
                else:
                    headers.append(NO_STORE)
                message = {**message, "headers": headers}
            await send(message)

        try:
            async with timeout.limit:
                await self._app(scope, timeout.receive, watch)
        except ClientDisconnect:
            status = status or CLIENT_LEFT
        except Exception as error:
            passing = _passing(error, expired=timeout.limit.expired())
            if passing is None:
                _report(scope, error)
                scope[REFUSAL] = InternalFault(INTERNAL_DETAIL)
                refusal = internal_fault()
            else:
                scope[REFUSAL] = passing
                refusal = problem_of(passing)
            if status:
                raise BrokenResponse("the response broke off") from None
            await refusal(scope, receive, watch)
        finally:
            seconds = time.perf_counter() - started
            outcome["status"] = status or 500
            self._metrics.observe(scope, status or 500, seconds)
            log_request(self._log, scope, status or 500, seconds)


class BodyTimeout:
    """How long one request may take: from its first byte to its answer, and longer for a longer body.

    Attributes:
        limit: Cancels the work on the request once it takes too long.
    """

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive = receive
        self._seconds = seconds
        self._deadline = self._set = asyncio.get_running_loop().time() + seconds
        self._complete = False
        self.limit = asyncio.timeout_at(self._deadline)

    async def receive(self) -> Message:
        """The next part of the body.

        Raises:
            RequestTimeout: it does not come in time.
        """
        if self._complete:
            return await self._receive()
        try:
            message = await self._receive()
        except asyncio.CancelledError:
            # The limit's own way to end what waits; one timer is enough for the document and the answer.
            if not self.limit.expired():
                raise
            raise RequestTimeout(f"The document did not arrive within {self._seconds:g} seconds.") from None
        self._deadline += len(message.get("body", b"")) / SLOWEST_BYTES_PER_SECOND
        self._complete = not message.get("more_body", False)
        if self._deadline >= self._set + GRAIN_SECONDS and not self.limit.expired():
            self._set = self._deadline
            self.limit.reschedule(self._deadline)
        return message


class BrokenResponse(Exception):
    """Makes the server close a connection whose response cannot be completed."""


def _passing(error: Exception, *, expired: bool) -> Unavailable | None:
    """What to say of an error that is none of the program's, and passes; None of any other."""
    if expired:
        return Unavailable("The answer took too long.")
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and str(error) == NO_THREAD):
        return Unavailable("The service has no memory or no thread to spare.")
    return None


def _report(scope: Scope, error: Exception) -> None:
    causes: list[dict[str, Any]] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 5:
        frames = traceback.extract_tb(cause.__traceback__)
        causes.append(
            {
                "type": f"{type(cause).__module__}.{type(cause).__qualname__}",
                "at": [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-6:]],
            }
        )
        cause = cause.__cause__ or cause.__context__
    log.error("request.failed", method=method_of(scope), route=template_of(scope), causes=causes)
