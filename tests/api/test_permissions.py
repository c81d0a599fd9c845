"""Every route against every kind of token. A new route without a row here fails."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.api.application import ROUTERS
from app.api.routing import StrictRoute
from app.core.principal import Role
from app.dashboard.routing import PageRoute
from tests.api.service import VALUE, Service, assert_problem

OWN = "own-study"
OTHER = "other-study"

NEW_STUDY = {"slug": "a-new-study", "lower": 0, "upper": 1}
REPLACEMENT = {"value": 2, "epsilon": 2, "trust": "central"}
NEW_SCHEDULE = {
    "question": {"share": 0.1},
    "every": "day",
    "newcomers": True,
    "quota": 1,
    "starts_at": "2100-01-01T09:00:00Z",
}
NEW_WEBHOOK = {"url": "https://webhooks.invalid/dither", "events": ["study_closed"]}
NEW_TOKEN = {"name": "new", "role": "contribute"}
QUOTA = {"share": 0.5, "period_seconds": 60}
NEW_SESSION = {"protocol": "minimum", "epsilon": 4, "participants": 100, "mode": "budget_split", "rounds": 2}
ANSWER = {"subject": "alice", "round": 1, "answer": 1}
LIFETIME = {"epsilon": 50, "reason": "asked"}

Row = tuple[set[str], dict[str, Any]]

PUBLISHED = {"releases": ["{release}"], "title": "Published"}
EVERYBODY = {"nobody", "contribute", "analyse", "admin", "observe"}

OF_SEVERAL_ROLES = ("contribute+analyse", "contribute+observe", "analyse+admin", "analyse+admin: own study")
"""Tokens that may do all that one of their roles may."""

OF_ANOTHER_TOKEN = {"contribution_exists", "answer_exists"}

# (method, path): who may, and a request that succeeds.
ROUTES: Mapping[tuple[str, str], Row] = {
    ("POST", "/v1/studies"): ({"admin"}, {"json": NEW_STUDY}),
    ("GET", "/v1/studies"): ({"contribute", "analyse", "admin"}, {}),
    ("GET", "/v1/studies/{study}"): ({"contribute", "analyse", "admin"}, {}),
    ("PATCH", "/v1/studies/{study}"): ({"admin"}, {"json": {"title": "Why?", "reason": "clearer"}}),
    ("POST", "/v1/studies/{study}/close"): ({"admin"}, {}),
    ("POST", "/v1/studies/{study}/reporting-range"): (
        {"admin"},
        {"json": dict.fromkeys(("lower", "upper"), "6f1c2b3e-0000-4000-8000-000000000001")},
    ),
    ("POST", "/v1/studies/{study}/archive"): ({"admin"}, {"json": {"reason": "over"}}),
    ("POST", "/v1/studies/{study}/retire"): ({"admin"}, {}),
    ("GET", "/v1/studies/{study}/saturation"): ({"contribute", "analyse", "admin"}, {}),
    ("POST", "/v1/studies/{study}/contributions"): ({"contribute"}, {"json": VALUE}),
    ("PUT", "/v1/studies/{study}/contributions/{subject}"): ({"contribute"}, {"json": REPLACEMENT}),
    ("DELETE", "/v1/studies/{study}/contributions/{subject}"): ({"contribute"}, {}),
    ("POST", "/v1/studies/{study}/contributions/batch"): ({"contribute"}, {"json": [VALUE]}),
    ("GET", "/v1/studies/{study}/plan"): ({"analyse"}, {}),
    ("GET", "/v1/studies/{study}/statistics/{statistic}"): ({"analyse"}, {}),
    ("POST", "/v1/studies/{study}/plan"): ({"analyse"}, {"json": {"questions": [{}]}}),
    ("POST", "/v1/studies/{study}/releases"): ({"analyse"}, {"json": {}}),
    ("GET", "/v1/studies/{study}/releases"): ({"analyse", "admin"}, {}),
    ("GET", "/v1/releases/{release}"): ({"analyse", "admin"}, {}),
    ("POST", "/v1/studies/{study}/invitations"): ({"admin"}, {"json": {"kind": "open"}}),
    ("GET", "/v1/studies/{study}/invitations"): ({"admin"}, {}),
    ("GET", "/v1/studies/{study}/invitations/{invitation}"): ({"admin"}, {}),
    ("GET", "/v1/studies/{study}/invitations/{invitation}/qr"): ({"admin"}, {}),
    ("DELETE", "/v1/studies/{study}/invitations/{invitation}"): ({"admin"}, {}),
    ("POST", "/v1/studies/{study}/schedules"): ({"admin"}, {"json": NEW_SCHEDULE}),
    ("GET", "/v1/studies/{study}/schedules"): ({"admin", "analyse"}, {}),
    ("GET", "/v1/studies/{study}/schedules/{schedule}"): ({"admin", "analyse"}, {}),
    ("DELETE", "/v1/studies/{study}/schedules/{schedule}"): ({"admin"}, {}),
    ("POST", "/v1/studies/{study}/publications"): ({"admin", "analyse"}, {"json": PUBLISHED}),
    ("GET", "/v1/studies/{study}/publications"): ({"admin", "analyse"}, {}),
    ("GET", "/v1/studies/{study}/publications/{publication}"): ({"admin", "analyse"}, {}),
    ("PUT", "/v1/studies/{study}/publications/{publication}"): ({"admin", "analyse"}, {"json": PUBLISHED}),
    ("DELETE", "/v1/studies/{study}/publications/{publication}"): ({"admin", "analyse"}, {}),
    ("GET", "/.well-known/dither-keys.json"): (EVERYBODY, {}),
    ("POST", "/v1/studies/{study}/sessions"): ({"admin"}, {"json": NEW_SESSION}),
    ("GET", "/v1/studies/{study}/sessions"): ({"contribute", "analyse", "admin"}, {}),
    ("GET", "/v1/sessions/{session}"): ({"contribute", "analyse", "admin"}, {}),
    ("GET", "/v1/sessions/{session}/round"): ({"contribute", "analyse", "admin"}, {}),
    ("POST", "/v1/sessions/{session}/answers"): ({"contribute"}, {"json": ANSWER}),
    ("POST", "/v1/sessions/{session}/close-round"): ({"admin"}, {"json": {"round": 1}}),
    ("POST", "/v1/sessions/{session}/finish"): ({"admin"}, {}),
    ("GET", "/v1/subjects/{subject}/budget"): ({"contribute", "admin"}, {}),
    ("PUT", "/v1/admin/subjects/{subject}/budget"): ({"admin"}, {"json": LIFETIME}),
    ("GET", "/v1/subjects/{subject}/charges"): ({"contribute", "admin"}, {}),
    ("POST", "/v1/subjects/{subject}/links"): ({"contribute", "admin"}, {}),
    ("GET", "/v1/admin/budgets"): ({"admin"}, {}),
    ("POST", "/v1/admin/budgets/raise"): ({"admin"}, {"json": {"epsilon": 0.5, "reason": "a year"}}),
    ("GET", "/v1/admin/budgets/histogram"): ({"admin"}, {}),
    ("GET", "/v1/admin/budgets/epsilons"): ({"admin"}, {}),
    ("GET", "/v1/admin/overview"): ({"admin"}, {}),
    ("GET", "/v1/admin/chain"): ({"admin"}, {}),
    ("GET", "/v1/admin/contributions/daily"): ({"admin"}, {}),
    ("GET", "/v1/admin/studies"): ({"admin"}, {}),
    ("GET", "/v1/admin/studies/{study}/profile"): ({"admin"}, {}),
    ("GET", "/v1/admin/studies/{study}/cohorts"): ({"admin"}, {}),
    ("GET", "/v1/admin/studies/{study}/plan"): ({"admin"}, {}),
    ("GET", "/v1/admin/audit"): ({"admin"}, {}),
    ("GET", "/v1/admin/releases"): ({"admin"}, {}),
    ("GET", "/v1/admin/ledger/export"): ({"admin"}, {}),
    ("GET", "/v1/admin/ledger"): ({"admin"}, {}),
    ("POST", "/v1/admin/tokens"): ({"admin"}, {"json": NEW_TOKEN}),
    ("GET", "/v1/admin/tokens"): ({"admin"}, {}),
    ("GET", "/v1/admin/tokens/{token}"): ({"admin"}, {}),
    ("DELETE", "/v1/admin/tokens/{token}"): ({"admin"}, {}),
    ("POST", "/v1/admin/tokens/{token}/rotate"): ({"admin"}, {"json": {"grace_seconds": 60}}),
    ("PUT", "/v1/admin/tokens/{token}/quota"): ({"admin"}, {"json": QUOTA}),
    ("DELETE", "/v1/admin/tokens/{token}/quota"): ({"admin"}, {}),
    ("GET", "/v1/admin/tokens/{token}/usage"): ({"admin"}, {}),
    ("POST", "/v1/admin/webhooks"): ({"admin"}, {"json": NEW_WEBHOOK}),
    ("GET", "/v1/admin/webhooks"): ({"admin"}, {}),
    ("GET", "/v1/admin/webhooks/{webhook}"): ({"admin"}, {}),
    ("DELETE", "/v1/admin/webhooks/{webhook}"): ({"admin"}, {}),
    ("GET", "/health/live"): (EVERYBODY, {}),
    ("GET", "/health/ready"): (EVERYBODY, {}),
    ("GET", "/metrics"): (EVERYBODY, {}),
    ("GET", "/llms.txt"): (EVERYBODY, {}),
    ("GET", "/llms-full.txt"): (EVERYBODY, {}),
}

KEYS = [
    (method, route.path_format)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, StrictRoute)
    for method in route.methods or ()
]


class Stage:
    """A service with two studies, a contribution, a release, and a token of every kind."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.secrets: dict[str, str | None] = {}
        self.release = ""
        self.session = ""
        self.token = ""
        self.invitation = ""
        self.webhook = ""
        self.schedule = ""

    async def set(self) -> None:
        service = self.service
        for slug in (OWN, OTHER):
            await service.study(slug=slug)
            await service.crowd(slug, 50)
        await service.call("POST", f"/v1/studies/{OWN}/contributions", "contribute", json=VALUE)
        made = await service.call("POST", f"/v1/studies/{OWN}/releases", "analyse")
        self.release = made.json()["id"]
        started = await service.call("POST", f"/v1/studies/{OWN}/sessions", "admin", json=NEW_SESSION)
        self.session = started.json()["id"]
        wish = {"kind": "open"}
        invited = await service.call("POST", f"/v1/studies/{OWN}/invitations", "admin", json=wish)
        self.invitation = invited.json()["id"]
        told = await service.call("POST", "/v1/admin/webhooks", "admin", json=NEW_WEBHOOK)
        self.webhook = told.json()["id"]
        scheduled = await service.call("POST", f"/v1/studies/{OWN}/schedules", "admin", json=NEW_SCHEDULE)
        self.schedule = scheduled.json()["id"]
        published = {"releases": [self.release], "title": "Published", "slug": "published"}
        await service.call("POST", f"/v1/studies/{OWN}/publications", "admin", json=published)
        record, _ = await service.api.services.tokens.create(
            name="to be revoked", roles={Role.ANALYSE}, actor="test"
        )
        self.token = str(record.id)
        digest = service.api.services.subject_key.digest
        own, other = frozenset({OWN}), frozenset({OTHER})
        self.secrets = {
            "nobody": None,
            "contribute": service.tokens["contribute"],
            "analyse": service.tokens["analyse"],
            "admin": service.tokens["admin"],
            "observe": service.tokens["observe"],
            "contribute: own study": await service.token("contribute", studies=own),
            "contribute: other study": await service.token("contribute", studies=other),
            "contribute: own subject": await service.token("contribute", subject=digest("alice")),
            "contribute: other subject": await service.token("contribute", subject=digest("bob")),
            "analyse: own study": await service.token("analyse", studies=own),
            "analyse: other study": await service.token("analyse", studies=other),
            "admin: own study": await service.token("admin", studies=own),
            "admin: other study": await service.token("admin", studies=other),
            **{
                who: await service.token(who.partition(":")[0], studies=own if ":" in who else None)
                for who in OF_SEVERAL_ROLES
            },
            "unknown": "dither_" + "x" * 43,
        }
        for role in Role:
            self.secrets[f"revoked {role}"] = await self._revoked(role)
            self.secrets[f"expired {role}"] = await self._expired(role)

    async def _revoked(self, role: str) -> str:
        record, secret = await self.service.api.services.tokens.create(
            name="revoked", roles={Role(role)}, actor="test"
        )
        await self.service.api.services.tokens.revoke(record.id, "test")
        return secret

    async def _expired(self, role: str) -> str:
        tokens = self.service.api.services.tokens
        record, secret = await tokens.create(
            name="expired", roles={Role(role)}, actor="test", expires_at=datetime.now(UTC) + timedelta(days=1)
        )
        await _execute(self.service, "UPDATE token SET expires_at = created_at WHERE id = $1", record.id)
        return secret

    def path(self, template: str) -> str:
        return template.format(
            study=OWN,
            subject="alice",
            release=self.release,
            session=self.session,
            token=self.token,
            invitation=self.invitation,
            webhook=self.webhook,
            schedule=self.schedule,
            publication="published",
            statistic="mean",
        )


def expected(method: str, path: str, who: str) -> int | None:
    """The refusal that this token must get at this route; None where it must be let in."""
    allowed, _ = ROUTES[method, path]
    if allowed == EVERYBODY:
        # The metrics look at a token where one is given.
        return 401 if path == "/metrics" and who.startswith(("revoked", "expired", "unknown")) else None
    if who in ("nobody", "unknown") or who.startswith(("revoked", "expired")):
        return 401
    role, _, limit = who.partition(": ")
    roles = set(role.split("+"))
    if not roles & allowed:
        return 403
    if limit == "other study" and any(name in path for name in ("{study}", "{release}", "{session}")):
        return 403
    if limit == "other subject" and _names_a_subject(path):
        return 403
    if limit.endswith("subject") and path.endswith("/batch"):
        return 403
    of_a_study = "{study}" in path or "{session}" in path
    if "admin" in roles and limit and allowed == {"admin"} and not of_a_study:
        return 403
    return None


def _names_a_subject(path: str) -> bool:
    return "{subject}" in path or path.endswith(("/contributions", "/answers"))


async def _execute(service: Service, statement: str, *arguments: object) -> None:
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute(statement, *arguments)
    finally:
        await connection.close()


@pytest.mark.long
@pytest.mark.parametrize(("method", "path"), sorted(KEYS))
async def test_a_route_lets_in_exactly_whom_it_should(service: Service, method: str, path: str) -> None:
    stage = Stage(service)
    await stage.set()
    options = json.loads(json.dumps(ROUTES[method, path][1]).replace("{release}", stage.release))
    before = await service.rows()
    let_in = []
    for who, secret in stage.secrets.items():
        refusal = expected(method, path, who)
        if refusal is None:
            let_in.append(secret)
            continue
        response = await service.call(method, stage.path(path), secret, **options)
        assert_problem(response, {401: "unauthenticated", 403: "forbidden"}[refusal], refusal)
    assert await service.rows() == before, "a refused request stored something"
    for secret in let_in:
        response = await service.call(method, stage.path(path), secret, **options)
        # One token does not learn what another one sent for the same person.
        of_another = response.status_code == 409 and response.json()["code"] in OF_ANOTHER_TOKEN
        # What is deleted is not there for the next one.
        gone = method == "DELETE" and response.status_code == 404 and secret != let_in[0]
        # Searches that have finished take many people: tests/api/test_reporting_range.py has them.
        unfinished = path.endswith("/reporting-range") and response.status_code == 422
        assert response.status_code < 300 or of_another or gone or unfinished, response.text


def test_the_matrix_has_a_row_for_every_route() -> None:
    assert set(KEYS) == set(ROUTES)


async def test_the_application_has_no_other_routes(service: Service) -> None:
    assert _described(service.app) == {path for _, path in ROUTES}


def _described(app: FastAPI) -> set[str]:
    paths = set()
    for route in app.routes:
        path = route.path_format  # type: ignore[attr-defined]  # a route has it
        if path == "/openapi.json":
            continue
        if isinstance(route, PageRoute):
            continue
        assert isinstance(route, StrictRoute), "every route is a strict one or a page"
        paths.add(path)
    return paths


def test_a_route_that_does_not_say_who_may_call_it_cannot_be_made() -> None:
    async def endpoint() -> None: ...

    with pytest.raises(TypeError, match="does not say who may call it"):
        StrictRoute("/x", endpoint)
    assert issubclass(StrictRoute, APIRoute)


@pytest.mark.parametrize(
    "header", ["Basic YTpi", "Bearer", "Bearer ", "bearer", "Token x", "Bearer \xe4", "Bearer a b"]
)
async def test_a_malformed_authorization_is_refused(service: Service, header: str) -> None:
    response = await service.call("GET", "/v1/studies", headers=[("Authorization", header.encode("latin-1"))])
    assert_problem(response, "unauthenticated", 401)


async def test_another_study_is_refused_whether_or_not_it_exists(service: Service) -> None:
    token = await service.token("analyse", studies=frozenset({"own"}))
    await service.study(slug="exists")
    named = {"X-Request-Id": "same"}
    known = await service.call("GET", "/v1/studies/exists", token, headers=named)
    unknown = await service.call("GET", "/v1/studies/does-not-exist", token, headers=named)
    assert_problem(known, "forbidden", 403)
    assert known.content == unknown.content


async def test_a_list_shows_only_the_studies_of_the_token(service: Service) -> None:
    for slug in ("a-study", "b-study", "c-study"):
        await service.study(slug=slug)
    token = await service.token("analyse", studies=frozenset({"a-study", "c-study"}))
    page = (await service.call("GET", "/v1/studies", token)).json()
    assert [item["slug"] for item in page["items"]] == ["a-study", "c-study"]


async def test_an_unauthenticated_body_is_not_read(service: Service, study: str) -> None:
    response = await service.call("POST", f"/v1/studies/{study}/contributions", content=b"{" * 10**6)
    assert_problem(response, "unauthenticated", 401)
