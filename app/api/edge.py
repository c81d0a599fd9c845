"""The outermost ASGI layer but for CORS: counts every request and turns the unexpected into a bare 500."""

import time
import traceback
from typing import Any

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.metrics import Metrics
from app.api.problems import internal_fault

log = structlog.get_logger("dither.http")

CLIENT_LEFT = 499


class Edge:
    """Plain ASGI middleware.

    The text of an unexpected exception may hold data (a driver's error quotes parameters), so the log
    gets its class and where it happened, and the client gets neither.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except ClientDisconnect:
            status = status or CLIENT_LEFT
        except Exception as error:
            _report(scope, error)
            if status:
                raise BrokenResponse("the response broke off") from None
            await internal_fault()(scope, receive, watch)
        finally:
            self._metrics.observe(scope, status or 500, time.perf_counter() - started)


class BrokenResponse(Exception):
    """Makes the server close a connection whose response cannot be completed."""


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
    route = scope.get("route")
    log.error(
        "request.failed",
        method=scope["method"],
        route=getattr(route, "path_format", None),
        causes=causes,
    )
