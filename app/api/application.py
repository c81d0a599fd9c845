"""The routers of the application, in the order in which paths are matched."""

from fastapi import FastAPI

from app.api import openapi, problems
from app.api.edge import Edge
from app.api.metrics import Metrics
from app.api.routes import (
    batches,
    contributions,
    health,
    ledger,
    releases,
    sessions,
    studies,
    subjects,
    tokens,
)

ROUTERS = (
    contributions.router,
    batches.router,
    studies.router,
    releases.router,
    sessions.router,
    subjects.router,
    tokens.router,
    ledger.router,
    health.router,
)


def install(app: FastAPI, metrics: Metrics) -> None:
    """Add every route, every problem and the outermost layer to an application.

    The routes are put into the application's own list: a nested router would be matched twice, which the
    busiest route can do without.
    """
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    problems.install(app)
    openapi.install(app)
    app.add_middleware(Edge, metrics=metrics)
