"""The request log: one line a request, under an id that the client gets too.

A line has the template of the route, never the path or the query, which may name a person.
"""

import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

import structlog
from starlette.types import Scope
from structlog.typing import FilteringBoundLogger

from app.core.errors import ServiceError
from app.core.principal import Principal

HEADER = b"x-request-id"

SANE = re.compile(rb"[0-9A-Za-z][0-9A-Za-z._-]{0,63}")
"""Ids of clients and proxies that are kept; in place of any other one there is a new one."""

PRINCIPAL = "dither.principal"
"""Key of the ASGI scope: who asks, once that is known."""

WORKED = "dither.worked"
"""Key of the ASGI scope: the token that heavy work was done for."""

REFUSAL = "dither.refusal"
"""Key of the ASGI scope: the error that the request was refused with."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

WATCHING = frozenset({"/health/live", "/health/ready", "/metrics"})
"""Routes that machines ask all the time: their lines are for the level debug, unless they fail."""

_steps: ContextVar[dict[str, float]] = ContextVar("dither_steps")


def new_request_id() -> str:
    """An id of 32 hexadecimal digits."""
    return uuid4().hex


def request_id_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The id that the client gave its request where that is a sane one, else a new one."""
    for name, value in headers:
        if name == HEADER:
            return value.decode() if SANE.fullmatch(value) else new_request_id()
    return new_request_id()


def current_request_id() -> str | None:
    """The id of the request that this task works for."""
    found: str | None = structlog.contextvars.get_contextvars().get("request_id")
    return found


def begin_steps() -> None:
    """Steps of this task and of those that it starts are for one request from now on."""
    _steps.set({})


def note_step(name: str, seconds: float) -> None:
    """A step of the request was done, perhaps once more; without a request nothing is noted."""
    steps = _steps.get(None)
    if steps is not None:
        steps[name] = round(steps.get(name, 0.0) + seconds, 6)


def template_of(scope: Mapping[str, Any]) -> str | None:
    """The template of the route that took the request; None where none did."""
    return getattr(scope.get("route"), "path_format", None)


def method_of(scope: Mapping[str, Any]) -> str:
    """The method of a request that a route took; any text may stand in the place of one."""
    method: str = scope["method"]
    return method if method in METHODS and template_of(scope) is not None else "any"


def log_request(log: FilteringBoundLogger, scope: Scope, status: int, seconds: float) -> None:
    """Write the line of one finished request; the id is bound to the context."""
    route = template_of(scope)
    line: dict[str, Any] = {
        "method": method_of(scope),
        "route": route,
        "status": status,
        "seconds": round(seconds, 6),
    }
    principal: Principal | None = scope.get(PRINCIPAL)
    if principal is not None:
        line["token"] = str(principal.token_id)
    if steps := _steps.get(None):
        line["steps"] = steps
    refusal: ServiceError | None = scope.get(REFUSAL)
    if refusal is not None:
        line["code"] = refusal.code
    if status >= 500:
        if refusal is not None:
            line["detail"] = refusal.detail
        log.warning("request", **line)
    elif route in WATCHING:
        log.debug("request", **line)
    else:
        log.info("request", **line)
