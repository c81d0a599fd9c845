"""The application in this process on a real database, spoken to through ASGI."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
from fastapi import FastAPI
from starlette.routing import Route

from app.core.principal import Role
from app.main import create_app
from app.settings import Settings
from app.web.problems import MEDIA_TYPE, TYPE_PREFIX
from app.web.state import Api

SUBJECT_KEY = "5a" * 32

STORING_TABLES = (
    *("study", "subject", "contribution", "cohort", "release", "charge", "token", "idempotency"),
    *("session", "enrolment", "answer", "invitation", "ticket", "publication"),
)

COUNT_ROWS = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in STORING_TABLES)

FILES = ("/docs/", "/dashboard/static/")
"""Files that are the same for everyone."""

VALUE = {"subject": "alice", "value": 37.5, "epsilon": 1.5, "trust": "central"}


def assert_problem(response: httpx.Response, code: str, status: int, *fields: str) -> dict[str, Any]:
    """The response is a problem document, complete and consistent, with errors at exactly these fields."""
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    assert response.headers["content-type"] == MEDIA_TYPE
    document: dict[str, Any] = response.json()
    assert document["code"] == code, document
    assert document["status"] == status
    assert document["type"] == TYPE_PREFIX + code
    assert document["title"]
    assert document["detail"]
    assert document.pop("request_id") == response.headers["x-request-id"]
    if fields:
        assert sorted({error["field"] for error in document["errors"]}) == sorted(fields), document
    assert all(error["reason"] for error in document["errors"])
    if status == 401:
        assert response.headers["www-authenticate"] == "Bearer"
    return document


@cache
def _document() -> dict[str, Any]:
    """The OpenAPI document. Settings change nothing in it, so it is made only once: it takes a second."""
    return create_app(Settings(database_url="postgresql://nowhere/none", subject_key=SUBJECT_KEY)).openapi()


@dataclass
class Service:
    """A running application with a client for every role."""

    app: FastAPI
    transport: httpx.ASGITransport
    api: Api
    client: httpx.AsyncClient
    database_url: str
    tokens: dict[str, str] = field(default_factory=dict)

    async def token(self, role: str, **limits: Any) -> str:
        """A new token of a role, or of several with + between."""
        _, secret = await self.api.services.tokens.create(
            name=f"test {role}", roles=set(map(Role, role.split("+"))), actor="test", **limits
        )
        return secret

    async def call(self, method: str, path: str, token: str | None = None, **options: Any) -> httpx.Response:
        """Send a request; `token` is a secret or the name of a role.

        Whatever comes back must be declared in the OpenAPI document.
        """
        headers = dict(options.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {self.tokens.get(token, token)}"
        response = await self.client.request(method, path, headers=headers, **options)
        self._assert_declared(response)
        return response

    async def study(self, **definition: Any) -> str:
        """Make a study; returns its slug."""
        slug = definition.pop("slug", f"study-{uuid4().hex[:8]}")
        document = {"slug": slug, "lower": 0, "upper": 100, **definition}
        if not {"epsilon", "epsilons"} & definition.keys():
            # Many tests offer a lot, so that noise is small.
            document["epsilon"] = {"max": 10}
        response = await self.call("POST", "/v1/studies", "admin", json=document)
        assert response.status_code == 201, response.text
        return str(slug)

    async def contribute(
        self, study: str, subject: str, value: float | list[float] | str = 50, epsilon: float = 1, **more: Any
    ) -> None:
        """Store a central contribution."""
        response = await self.call(
            "POST",
            f"/v1/studies/{study}/contributions",
            "contribute",
            json={"subject": subject, "value": value, "epsilon": epsilon, "trust": "central", **more},
        )
        assert response.status_code == 201, response.text

    async def crowd(self, study: str, people: int = 100, epsilon: float = 1) -> None:
        """Store central contributions of many people."""
        records = [
            {"subject": f"p{number}", "value": number % 100, "epsilon": epsilon, "trust": "central"}
            for number in range(people)
        ]
        response = await self.call(
            "POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records
        )
        assert response.json()["created"] == people, response.text

    async def rows(self) -> dict[str, int]:
        """How many rows each table holds."""
        connection = await asyncpg.connect(self.database_url)
        try:
            return dict(await connection.fetch(COUNT_ROWS))
        finally:
            await connection.close()

    @cached_property
    def _declared(self) -> list[Route]:
        """The routes of the OpenAPI document."""
        routes = []
        for route in self.app.routes:
            assert isinstance(route, Route)
            if route.include_in_schema:
                routes.append(route)
        return routes

    def _assert_declared(self, response: httpx.Response) -> None:
        request = response.request
        # Most answers hold a secret, a person's numbers or what one token may read; files of pages do not.
        path = request.url.path
        if not path.startswith(FILES):
            assert response.headers["cache-control"] == "no-store", request.url
        for route in self._declared:
            if request.method in (route.methods or ()) and route.path_regex.match(path):
                operation = _document()["paths"][route.path_format][request.method.lower()]
                declared = operation["responses"].get(str(response.status_code))
                assert declared is not None, f"{request.method} {route.path_format}: {response.status_code}"
                content_type = response.headers.get("content-type", "").partition(";")[0]
                assert content_type in declared.get("content", {"": None})
                return


@asynccontextmanager
async def open_service(database_url: str, **settings: Any) -> AsyncIterator[Service]:
    """Run the application on a database, with a budget for Gaussian noise where settings give no other."""
    settings = {"lifetime_gaussian": "10,0.00001", **settings}
    app = create_app(Settings(database_url=database_url, subject_key=SUBJECT_KEY, **settings))
    app.openapi_schema = _document()
    async with app.router.lifespan_context(app) as state:
        assert state is not None

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "state": dict(state)}, receive, send)

        transport = httpx.ASGITransport(with_state)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            service = Service(
                app=app, transport=transport, api=state["api"], client=client, database_url=database_url
            )
            for role in Role:
                service.tokens[role.value] = await service.token(role.value)
            yield service


async def assert_no_cursor(service: Service, path: str, token: str, foreign: str) -> None:
    """As a cursor of a list, the id of another one's entry is refused just like an id that does not exist."""
    answers = []
    for identity in (foreign, str(uuid4())):
        cursor = base64.urlsafe_b64encode(identity.encode()).decode().rstrip("=")
        response = await service.call("GET", f"{path}?cursor={cursor}", token)
        assert response.status_code == 422, response.text
        answers.append(response.json()["errors"])
    assert answers == [[{"field": "cursor", "reason": "not a cursor of this list"}]] * 2
