"""Every page against everybody. A new page without a row here fails."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from app.core.principal import Role
from app.dashboard.application import ROUTES
from app.dashboard.pages.assets import device_script
from app.dashboard.requests import GUEST_COOKIE, LOGIN_COOKIE, PERSON_COOKIE
from app.services.admin.logins import form_token
from tests.api.service import Service, open_service
from tests.dashboard.browser import ORIGIN, Browser
from tests.support.provider import Provider

OWN, OTHER = "own-study", "other-study"

SESSION = {"protocol": "minimum", "epsilon": 1, "participants": 100, "rounds": 3}

Row = tuple[set[str], dict[str, str]]

EVERYBODY = {"everybody"}
WHOLE = {"admin"}
READERS = {"admin", "analyse", "admin: own study", "analyse: own study"}

# (method, path): who may, and the fields of a form that succeeds.
PAGES: Mapping[tuple[str, str], Row] = {
    ("GET", "/dashboard/"): (EVERYBODY, {}),
    ("GET", "/dashboard/{path}"): (EVERYBODY, {}),
    ("GET", "/dashboard/{path}/"): (EVERYBODY, {}),
    ("POST", "/dashboard/{path}"): (EVERYBODY, {}),
    ("GET", "/"): (EVERYBODY, {}),
    ("GET", "/docs"): (EVERYBODY, {}),
    ("GET", "/docs/{name}"): (EVERYBODY, {}),
    ("GET", "/dashboard/login"): (EVERYBODY, {}),
    ("POST", "/dashboard/login"): (EVERYBODY, {"token": "x"}),
    ("GET", "/dashboard/sign-in"): (EVERYBODY, {}),
    ("GET", "/dashboard/sign-in/back"): (EVERYBODY, {}),
    ("POST", "/dashboard/logout"): ({*READERS, "analyse: other study", "admin: other study"}, {}),
    ("GET", "/dashboard"): ({*READERS, "analyse: other study", "admin: other study"}, {}),
    ("GET", "/dashboard/studies"): ({*READERS, "analyse: other study", "admin: other study"}, {}),
    ("GET", "/dashboard/size"): ({*READERS, "analyse: other study", "admin: other study"}, {}),
    ("GET", "/dashboard/studies/{study}"): (READERS, {}),
    ("POST", "/dashboard/studies/{study}/releases"): (
        {"analyse", "analyse: own study"},
        {"key": "6fd1bb7c-6b10-4d6d-9a43-4b9ea2a5f5c5", "share": "0.01"},
    ),
    ("POST", "/dashboard/studies/{study}/edit"): (
        {"admin", "admin: own study"},
        {"title": "Why?", "reason": "clearer"},
    ),
    ("POST", "/dashboard/studies/{study}/texts"): (
        {"admin", "admin: own study"},
        {"language": "de", "title": "Warum?", "reason": "people read it"},
    ),
    ("POST", "/dashboard/studies/{study}/close"): ({"admin", "admin: own study"}, {}),
    ("POST", "/dashboard/studies/{study}/archive"): ({"admin", "admin: own study"}, {"reason": "over"}),
    ("POST", "/dashboard/studies/{study}/invitations"): (
        {"admin", "admin: own study"},
        {"kind": "single", "count": "3"},
    ),
    ("GET", "/dashboard/studies/{study}/invitations/{invitation}"): ({"admin", "admin: own study"}, {}),
    ("POST", "/dashboard/studies/{study}/invitations/{invitation}/revoke"): (
        {"admin", "admin: own study"},
        {},
    ),
    ("GET", "/dashboard/studies/{study}/import"): ({"admin", "admin: own study"}, {}),
    ("POST", "/dashboard/studies/{study}/import"): (
        {"admin", "admin: own study"},
        {"content": "c3ViamVjdCx2YWx1ZQphZGEsMQo=", "trust": "central", "epsilon": "1", "confirm": "yes"},
    ),
    ("POST", "/dashboard/studies/{study}/schedules"): (
        {"admin", "admin: own study"},
        {"share": "0.01", "every": "day", "until": "1", "quota": "1", "starts_at": "2100-01-01T09:00"},
    ),
    ("POST", "/dashboard/studies/{study}/schedules/{schedule}/delete"): ({"admin", "admin: own study"}, {}),
    ("POST", "/dashboard/studies/{study}/publications"): (READERS, {"title": "x", "releases": "{release}"}),
    ("GET", "/dashboard/studies/{study}/publications/{publication}"): (READERS, {}),
    ("POST", "/dashboard/studies/{study}/publications/{publication}/change"): (
        READERS,
        {"title": "x", "releases": "{release}"},
    ),
    ("POST", "/dashboard/studies/{study}/publications/{publication}/withdraw"): (READERS, {}),
    ("GET", "/p"): (EVERYBODY, {}),
    ("POST", "/p"): (EVERYBODY, {}),
    ("GET", "/p/{slug}"): (EVERYBODY, {}),
    ("GET", "/p/{slug}/embed"): (EVERYBODY, {}),
    ("GET", "/p/{path}/"): (EVERYBODY, {}),
    ("GET", "/p/{path}"): (EVERYBODY, {}),
    ("POST", "/p/{path}"): (EVERYBODY, {}),
    ("GET", "/dashboard/new-study"): (WHOLE, {}),
    ("POST", "/dashboard/new-study"): (
        WHOLE,
        {"slug": "new", "lower": "0", "upper": "1", "trust_central": "on"},
    ),
    ("POST", "/dashboard/new-study/terms"): (
        WHOLE,
        {"slug": "new", "lower": "0", "upper": "1", "trust_central": "on"},
    ),
    ("GET", "/dashboard/releases/{release}"): (READERS, {}),
    ("GET", "/dashboard/sessions/{session}"): (READERS, {}),
    ("GET", "/dashboard/budgets"): (WHOLE, {}),
    ("POST", "/dashboard/budgets/raise"): (
        WHOLE,
        {"key": "6fd1bb7c-6b10-4d6d-9a43-4b9ea2a5f5c6", "epsilon": "0.5", "reason": "another year"},
    ),
    ("POST", "/dashboard/budgets/find"): (WHOLE, {"subject": "alice"}),
    ("POST", "/dashboard/budgets/lifetime"): (
        WHOLE,
        {"subject": "alice", "epsilon": "20", "reason": "asked"},
    ),
    ("POST", "/dashboard/budgets/link"): (WHOLE, {"subject": "alice"}),
    ("GET", "/dashboard/ledger"): (WHOLE, {}),
    ("GET", "/dashboard/audit"): (WHOLE, {}),
    ("GET", "/dashboard/ledger/charges"): (WHOLE, {}),
    ("GET", "/dashboard/ledger/export"): (WHOLE, {}),
    ("GET", "/dashboard/export/{list}"): (WHOLE, {}),
    ("GET", "/dashboard/tokens"): (WHOLE, {}),
    ("POST", "/dashboard/tokens"): (WHOLE, {"name": "new", "role": "analyse"}),
    ("POST", "/dashboard/tokens/{token}/revoke"): (WHOLE, {}),
    ("POST", "/dashboard/tokens/{token}/rotate"): (WHOLE, {}),
    ("POST", "/dashboard/tokens/{token}/quota"): (WHOLE, {}),
    ("GET", "/dashboard/person/open/{link}"): (EVERYBODY, {}),
    ("POST", "/dashboard/person/open/{link}"): (EVERYBODY, {}),
    ("GET", "/dashboard/person"): ({"person"}, {}),
    ("POST", "/dashboard/person/withdraw"): ({"person"}, {"study": OWN}),
    ("POST", "/dashboard/person/leave"): ({"person"}, {}),
    ("GET", "/take"): (EVERYBODY, {}),
    ("POST", "/take"): (EVERYBODY, {}),
    ("GET", "/take/receipt"): (EVERYBODY, {}),
    ("POST", "/take/receipt"): (EVERYBODY, {}),
    ("POST", "/take/receipt/change"): (EVERYBODY, {}),
    ("POST", "/take/receipt/withdraw"): (EVERYBODY, {}),
    ("GET", "/take/{code}"): (EVERYBODY, {}),
    ("GET", "/take/{path}/"): (EVERYBODY, {}),
    ("GET", "/take/{path}"): (EVERYBODY, {}),
    ("POST", "/take/{path}"): (EVERYBODY, {}),
    ("POST", "/take/{code}"): (EVERYBODY, {"value": "1", "epsilon": "1", "trust": "central"}),
    ("GET", "/dashboard/static/device/{version}/{part}/{module}"): (EVERYBODY, {}),
    ("GET", "/dashboard/static/{name}"): (EVERYBODY, {}),
}

KEYS = sorted(
    (method, route.path.replace(":path}", "}"))
    for route in ROUTES
    for method in (route.methods or ())
    if method != "HEAD"
)


# A page is for who is logged in: not even a good JWT, or a token, opens one by itself.
JWTS: Mapping[str, dict[str, Any]] = {
    "JWT of an admin": {"roles": ["operators"]},
    "JWT for another audience": {"roles": ["operators"], "aud": "another service"},
    "JWT that has expired": {"roles": ["operators"], "exp": 1_600_000_000},
    "JWT of another issuer": {"roles": ["operators"], "iss": "https://id.example"},
}


class Stage:
    """A service with two studies, a release, and a cookie of everybody."""

    def __init__(self, service: Service, issuer: Provider) -> None:
        self.service = service
        self.issuer = issuer
        self.headers: dict[str, dict[str, str]] = {}
        self.cookies: dict[str, dict[str, str]] = {"nobody": {}, "unknown": {LOGIN_COOKIE: "x" * 43}}
        self.release = self.session = self.token = self.link = self.code = ""
        self.invitation = ""

    async def set(self) -> None:
        service = self.service
        for slug in (OWN, OTHER):
            await service.study(slug=slug)
            await service.crowd(slug, 50)
        await service.contribute(OWN, "alice")
        made = await service.call("POST", f"/v1/studies/{OWN}/releases", "analyse", json={"share": 0.01})
        self.release = made.json()["id"]
        began = await service.call("POST", f"/v1/studies/{OWN}/sessions", "admin", json=SESSION)
        self.session = began.json()["id"]
        wish = {"kind": "open"}
        invited = await service.call("POST", f"/v1/studies/{OWN}/invitations", "admin", json=wish)
        self.invitation = invited.json()["id"]
        shown = {"releases": [self.release], "title": "Published", "slug": "published"}
        await service.call("POST", f"/v1/studies/{OWN}/publications", "admin", json=shown)
        times = {"question": {}, "every": "day", "until": 1, "quota": 1, "starts_at": "2100-01-01T09:00:00Z"}
        scheduled = await service.call("POST", f"/v1/studies/{OWN}/schedules", "admin", json=times)
        self.schedule = scheduled.json()["id"]
        self.code = invited.json()["urls"][0].rpartition("/")[2]
        tokens, logins = service.api.services.tokens, service.api.services.logins
        record, _ = await tokens.create(name="to be revoked", roles={Role.ANALYSE}, actor="test")
        self.token = str(record.id)
        for role in ("admin", "analyse"):
            for limit in (None, OWN, OTHER):
                name = role if limit is None else f"{role}: {limit.replace('-', ' ')}"
                studies = None if limit is None else frozenset({limit})
                token = await service.token(role, studies=studies)
                secret, _ = await logins.log_in(await tokens.authenticate(token))
                self.cookies[name] = {LOGIN_COOKIE: secret}
            for state in ("revoked", "expired"):
                record, token = await tokens.create(
                    name=state,
                    roles={Role(role)},
                    actor="test",
                    expires_at=datetime.now(UTC) + timedelta(days=1),
                )
                secret, _ = await logins.log_in(await tokens.authenticate(token))
                self.cookies[f"{state} {role}"] = {LOGIN_COOKIE: secret}
                column = "revoked_at" if state == "revoked" else "expires_at"
                connection = await asyncpg.connect(service.database_url)
                await connection.execute(f"UPDATE token SET {column} = created_at WHERE id = $1", record.id)
                await connection.close()
        for name, claims in JWTS.items():
            jwt = self.issuer.token(**claims)
            self.cookies[name] = {LOGIN_COOKIE: jwt}
            self.headers[name] = {"Authorization": f"Bearer {jwt}"}
        self.headers["token in a header"] = {"Authorization": f"Bearer {service.tokens['admin']}"}
        self.cookies["token in a header"] = {}
        person = await self._open()
        self.cookies["person"] = {PERSON_COOKIE: person}
        self.cookies["person as admin"] = {LOGIN_COOKIE: person}
        self.cookies["admin as person"] = {PERSON_COOKIE: self.cookies["admin"][LOGIN_COOKIE]}

    async def _open(self) -> str:
        """Open one link of alice's and leave another one."""
        services = self.service.api.services
        principal = await services.tokens.authenticate(self.service.tokens["contribute"])
        alice = services.subject_key.digest("alice")
        self.link, _ = await services.logins.make_link(alice, principal)
        opened, _ = await services.logins.make_link(alice, principal)
        return await services.logins.open_link(opened)

    @property
    def parts(self) -> dict[str, str]:
        """What stands for the variables of a path."""
        return {
            "study": OWN,
            "release": self.release,
            "session": self.session,
            "token": self.token,
            "link": self.link,
            "code": self.code,
            "invitation": self.invitation,
            "publication": "published",
            "schedule": self.schedule,
            "slug": "published",
            "name": "dashboard.css",
            "path": "nothing",
            **dict(zip(("version", "part", "module"), device_script().split("/")[1:], strict=True)),
            "list": "releases",
        }

    async def call(self, method: str, template: str, who: str, fields: Mapping[str, str]) -> Any:
        path = template.format(**self.parts)
        browser = Browser(self.service)
        browser.client.headers.update(self.headers.get(who, {}))
        for name, value in self.cookies[who].items():
            browser.client.cookies.set(name, value)
        if method == "GET":
            response = await browser.client.get(path)
        else:
            secret = next(iter(self.cookies[who].values()), "")
            filled = {name: value.replace("{release}", self.release) for name, value in fields.items()}
            data = {**filled, "form_token": form_token(secret)}
            response = await browser.client.post(path, data=data, headers={"Origin": ORIGIN})
        await browser.client.aclose()
        return response


@pytest_asyncio.fixture
async def stage(database_url: str, issuer: Provider) -> AsyncIterator[Stage]:
    """The stage, at a service that knows a provider of JWTs."""
    async with open_service(database_url, **issuer.settings) as service:
        stage = Stage(service, issuer)
        await stage.set()
        yield stage


RESTRICTED = [key for key in KEYS if PAGES[key][0] is not EVERYBODY]
GROUPS = [
    [key for key in RESTRICTED if key[0] == "GET"],
    *([key] for key in RESTRICTED if key[0] == "POST"),
]
"""Pages that are tried on one stage: to look changes nothing."""


@pytest.mark.parametrize("pages", GROUPS, ids=["GET", *(group[0][1] for group in GROUPS[1:])])
async def test_a_page_lets_in_exactly_whom_it_should(stage: Stage, pages: list[tuple[str, str]]):
    before = await stage.service.rows()
    for method, path in pages:
        await _refuses_all_others(stage, method, path)
    assert await stage.service.rows() == before, "a refused request stored something"
    for method, path in pages:
        allowed, fields = PAGES[method, path]
        for who in sorted(allowed, reverse=True):
            response = await stage.call(method, path, who, fields)
            # What is deleted is not there for the next one.
            gone = path.endswith("/delete") and who != max(allowed) and response.status_code == 404
            assert response.status_code in (200, 303) or gone, (who, response.text)
            assert response.headers.get("location") != "/dashboard/login" or path.endswith("logout")


async def _refuses_all_others(stage: Stage, method: str, path: str) -> None:
    allowed, fields = PAGES[method, path]
    for who in stage.cookies:
        if who in allowed:
            continue
        response = await stage.call(method, path, who, fields)
        known = who in ("admin", "analyse") or ": " in who
        if known and "person" not in path:
            assert response.status_code == 403, (path, who)
        elif method == "GET" and "person" not in path:
            assert (response.status_code, response.headers["location"]) == (303, "/dashboard/login"), who
        else:
            assert response.status_code == 401, (path, who)
        assert "alice" not in response.text


def test_the_matrix_has_a_row_for_every_page():
    assert set(KEYS) == set(PAGES)


async def test_no_page_takes_a_form_from_another_site(stage: Stage):
    """Not even with the cookie and the right token, which another site could not have."""
    before = await stage.service.rows()
    for method, path in KEYS:
        if method != "POST":
            continue
        _, fields = PAGES[method, path]
        who = "person" if path.startswith("/dashboard/person") else "admin"
        secret = next(iter(stage.cookies[who].values()))
        target = path.format(**stage.parts)
        browser = Browser(stage.service)
        for name in (LOGIN_COOKIE, PERSON_COOKIE, GUEST_COOKIE):
            browser.client.cookies.set(name, secret)
        for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {}):
            response = await browser.client.post(
                target, data={**fields, "form_token": form_token(secret)}, headers=headers
            )
            assert response.status_code == 403, path
        await browser.client.aclose()
    assert await stage.service.rows() == before
