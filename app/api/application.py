"""The routers of the application, in the order in which paths are matched."""

from collections.abc import Sequence

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import openapi
from app.api.routes import (
    batches,
    contributions,
    figures,
    health,
    invitations,
    ledger,
    publications,
    releases,
    schedules,
    sessions,
    studies,
    subjects,
    tokens,
    webhooks,
)
from app.web import problems
from app.web.limits_middleware import DEFAULT_TIMEOUT_SECONDS, LimitsMiddleware
from app.web.metrics import Metrics

_MODULES = (
    *(contributions, batches, studies, invitations, releases, publications, schedules, sessions),
    *(subjects, tokens, webhooks, ledger, figures, health),
)
ROUTERS = tuple(module.router for module in _MODULES)

PREFLIGHT_SECONDS = 600
"""How long a browser may remember what it was allowed."""


class Application(FastAPI):
    """FastAPI behind the layers of this service alone.

    FastAPI's own count bodies, answer what LimitsMiddleware answers, tell of spans, and keep a stack of what
    is to be closed, around every request: here only the routes that need that stack have it.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run one connection, without asking each time who would like to have its spans."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        await self.middleware_stack(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """The added layers, outermost first, then what makes problems of errors, then the router."""
        problems_of = Middleware(ExceptionMiddleware, handlers=self.exception_handlers)
        stack: ASGIApp = self.router
        for layer, arguments, options in reversed([*self.user_middleware, problems_of]):
            stack = layer(stack, *arguments, **options)
        return stack


def install(
    app: Application,
    metrics: Metrics,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    cors_origins: Sequence[str] = (),
) -> None:
    """Add every route, every problem and the outermost layers to an application.

    The routes are put into the application's own list: a nested router would be matched twice, which the
    busiest route can do without.

    Args:
        app, metrics: What to add to, and what counts the requests.
        cors_origins: Origins of web pages that may contribute. A page sends its token itself, so no
            browser is asked to add credentials of its own.
    """
    app.router.routes[:0] = [route for router in ROUTERS for route in router.routes]
    problems.install(app)
    openapi.install(app)
    app.add_middleware(LimitsMiddleware, metrics=metrics, timeout_seconds=timeout_seconds)
    if cors_origins:
        # Outside of LimitsMiddleware, so that a page can read every refusal, also the last resort's.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=cors_origins,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("Authorization", "Content-Type"),
            expose_headers=("Retry-After", "X-Request-Id"),
            max_age=PREFLIGHT_SECONDS,
        )
