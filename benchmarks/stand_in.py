"""The same routes without a database: what FastAPI, the strict parser and the checks cost by themselves.

Tokens, studies and contributions live in a dictionary. Everything before and after the database is the
service's own code: routing, bearer token, strict JSON, validation, subject digest, response, metrics.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import cast
from uuid import UUID

from fastapi import FastAPI

from app.api import application
from app.core.contribution import Offer
from app.core.errors import NotFound, Unauthenticated
from app.core.principal import Principal, Role
from app.core.study import Study, StudyDefinition, StudyState
from app.logging import configure_logging
from app.services import Services
from app.services.admin.tokens import hash_secret
from app.services.contributing.contributions import Accepted
from app.services.subjects import SubjectKey
from app.web.metrics import Metrics
from app.web.state import Api, Limits, State
from benchmarks.studies import definition

TOKEN_VARIABLE = "BENCHMARK_TOKEN"
STUDY = "commute"


class Tokens:
    """One token, known by its hash."""

    def __init__(self, secret: str) -> None:
        principal = Principal(
            token_id=UUID(int=1),
            name="benchmark",
            roles=frozenset({Role.CONTRIBUTE}),
            studies=None,
            subject=None,
        )
        self._known = {hash_secret(secret): principal}

    async def authenticate(self, secret: str) -> Principal:
        principal = self._known.get(hash_secret(secret))
        if principal is None:
            raise Unauthenticated("the token is unknown")
        return principal


class Studies:
    """One study."""

    def __init__(self, one: StudyDefinition) -> None:
        self._known = {
            one.slug: Study(id=1, definition=one, state=StudyState.OPEN, created_at=datetime.now(UTC))
        }

    async def get(self, slug: str) -> Study:
        if slug not in self._known:
            raise NotFound("there is no such study")
        return self._known[slug]


class Contributions:
    """Accepts everything and keeps nothing."""

    async def contribute(self, study: Study, offer: Offer) -> Accepted:
        return Accepted(created=True, epsilon=offer.asked, mu2=offer.mu2, epsilon_used_at_most=offer.asked)


def create_app() -> FastAPI:
    """The application, for uvicorn."""
    metrics = Metrics("stand-in")
    services = SimpleNamespace(
        tokens=Tokens(os.environ[TOKEN_VARIABLE]),
        studies=Studies(definition(STUDY, epsilon_max=Decimal(1))),
        contributions=Contributions(),
        subject_key=SubjectKey(bytes(32)),
    )
    limits = Limits(document=65_536, batch=2**28, batch_content=2**28)

    async def ready() -> None:
        return None

    api = Api(services=cast(Services, services), limits=limits, metrics=metrics, check_ready=ready)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        yield State(api=api)

    app = application.Application(lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False)
    application.install(app, metrics)
    # As the service does it: each request has its line in the log of both.
    configure_logging()
    return app
