"""Logging in: the cookie, its end, and forms that others send."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from app.core.principal import Role
from app.dashboard.requests import LOGIN_COOKIE
from app.web.oidc import LEEWAY_SECONDS
from tests.api.service import Service, open_service
from tests.dashboard.browser import ORIGIN, Browser
from tests.support.provider import Provider


async def test_whoever_has_a_token_gets_a_cookie_that_does_not_hold_it(browser: Browser, service: Service):
    response = await browser.log_in("admin")
    assert (response.status_code, response.headers["location"]) == (303, "/dashboard")
    set_cookie = next(
        value for value in response.headers.get_list("set-cookie") if value.startswith(LOGIN_COOKIE)
    )
    for attribute in ("HttpOnly", "SameSite=strict", "Path=/dashboard", "Max-Age=28800"):
        assert attribute in set_cookie
    assert "Secure" not in set_cookie, "the service was reached by http"
    assert service.tokens["admin"] not in set_cookie
    assert (await browser.get("/dashboard")).status_code == 200


async def test_over_https_the_cookie_is_secure(database_url: str):
    async with open_service(database_url, public_url="https://dither.example.org") as service:
        browser = Browser(service)
        await browser.get("/dashboard/login")
        response = await browser.client.post(
            "/dashboard/login",
            data={"token": service.tokens["admin"], "form_token": "0" * 64},
            headers={"Origin": "https://dither.example.org"},
        )
        assert response.status_code == 403, "the form was not ours"
        login = await browser.client.get("/dashboard/login")
        assert all("Secure" in value for value in login.headers.get_list("set-cookie"))
        await browser.client.aclose()


async def test_nothing_in_the_database_is_worth_a_login(admin: Browser, service: Service):
    cookie = admin.cookies()[LOGIN_COOKIE]
    connection = await asyncpg.connect(service.database_url)
    try:
        rows = await connection.fetch("SELECT * FROM login")
    finally:
        await connection.close()
    assert len(rows) == 1
    assert cookie not in str([dict(row) for row in rows])


@pytest.mark.parametrize("token", ["", "dither_" + "x" * 43, "ä", "contribute"])
async def test_whoever_has_no_token_of_the_pages_is_refused(browser: Browser, token: str):
    response = await browser.log_in(token)
    assert response.status_code == (403 if token == "contribute" else 401)
    assert LOGIN_COOKIE not in browser.cookies()
    assert (await browser.get("/dashboard")).headers["location"] == "/dashboard/login"


async def test_who_has_a_jwt_logs_in_until_it_ends(database_url: str, issuer: Provider):
    """Their role is that of their claims, and what an admin revokes is over at once."""
    now = int(time.time())
    async with open_service(database_url, **issuer.settings) as service:
        await service.study(slug="own-study")
        await service.study(slug="other-study")
        guest, operator = Browser(service), Browser(service)
        assert "identity provider" in (await guest.get("/dashboard/login")).text
        logged_in = await guest.log_in(issuer.token(roles=["guests"], exp=now + 600))
        assert logged_in.headers["location"] == "/dashboard/studies"
        lasts = re.search(
            rf"{LOGIN_COOKIE}=\S+ .*Max-Age=(\d+)", "\n".join(logged_in.headers.get_list("set-cookie"))
        )
        assert lasts is not None
        assert 500 < int(lasts[1]) <= 600 + LEEWAY_SECONDS
        page = (await guest.get("/dashboard/studies")).text
        assert "own-study" in page
        assert "other-study" not in page
        for path in ("/dashboard/studies/other-study", "/dashboard/tokens"):
            assert (await guest.get(path)).status_code == 403

        long = await operator.log_in(issuer.token(roles=["operators"], sub="operator", exp=now + 10**9))
        assert "Max-Age=28800" in str(long.headers.get_list("set-cookie"))
        tokens = (await service.call("GET", "/v1/admin/tokens?limit=200", "admin")).json()["items"]
        for token in tokens:
            if token["by_provider"] and token["role"] == "analyse":
                await operator.get("/dashboard/tokens")
                revoked = await operator.post(f"/dashboard/tokens/{token['id']}/revoke")
                assert revoked.status_code == 303
        assert (await guest.get("/dashboard/studies")).headers["location"] == "/dashboard/login"
        for browser in (guest, operator):
            await browser.client.aclose()


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"aud": "another service"}, 401),
        ({"iss": "https://id.example"}, 401),
        ({"exp": 1_600_000_000}, 401),
        ({"roles": ["unknown"]}, 403),
        ({"roles": ["app"]}, 403),
    ],
)
async def test_a_bad_jwt_logs_nobody_in(
    database_url: str, issuer: Provider, claims: dict[str, Any], status: int
):
    async with open_service(database_url, **issuer.settings) as service:
        browser = Browser(service)
        assert (await browser.log_in(issuer.token(**claims))).status_code == status
        assert LOGIN_COOKIE not in browser.cookies()
        await browser.client.aclose()


async def test_logging_out_ends_the_login_for_good(admin: Browser):
    cookie = admin.cookies()[LOGIN_COOKIE]
    await admin.get("/dashboard")
    assert (await admin.post("/dashboard/logout")).status_code == 303
    assert LOGIN_COOKIE not in admin.cookies()
    admin.client.cookies.set(LOGIN_COOKIE, cookie, domain="test.local", path="/dashboard")
    assert (await admin.get("/dashboard")).status_code == 303


async def test_a_revoked_token_ends_its_logins_at_once(browser: Browser, service: Service):
    tokens = service.api.services.tokens
    record, secret = await tokens.create(name="short", roles={Role.ADMIN}, actor="test")
    await browser.log_in(secret)
    assert (await browser.get("/dashboard")).status_code == 200
    await tokens.revoke(record.id, "test")
    assert (await browser.get("/dashboard")).status_code == 303
    assert (await browser.post("/dashboard/tokens", {"name": "x", "role": "admin"})).status_code == 401


async def test_a_new_secret_ends_the_logins_with_the_old_one(browser: Browser, service: Service):
    tokens = service.api.services.tokens
    record, secret = await tokens.create(name="leaked", roles={Role.ADMIN}, actor="test")
    await browser.log_in(secret)
    await tokens.rotate(record.id, 3600, "test")
    assert (await browser.get("/dashboard")).status_code == 303


async def test_a_login_ends_when_its_token_or_itself_expires(browser: Browser, service: Service):
    soon = datetime.now(UTC) + timedelta(days=1)
    _, secret = await service.api.services.tokens.create(
        name="short", roles={Role.ANALYSE}, actor="test", expires_at=soon
    )
    for statement in ("UPDATE token SET expires_at = created_at", "UPDATE login SET expires_at = created_at"):
        await browser.log_in(secret if "token" in statement else "analyse")
        assert (await browser.get("/dashboard/studies")).status_code == 200
        connection = await asyncpg.connect(service.database_url)
        await connection.execute(f"{statement} WHERE expires_at IS NOT NULL")
        await connection.close()
        assert (await browser.get("/dashboard/studies")).status_code == 303


CROSS_SITE = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://test.evil.example"},
    {"Origin": "http://test:8080"},
)


@pytest.mark.parametrize("headers", CROSS_SITE, ids=[one["Origin"] for one in CROSS_SITE])
async def test_a_form_from_another_site_is_refused(admin: Browser, service: Service, headers):
    await admin.get("/dashboard/tokens")
    before = await service.rows()
    response = await admin.post("/dashboard/tokens", {"name": "evil", "role": "admin"}, headers=headers)
    assert response.status_code == 403
    assert await service.rows() == before


async def test_a_form_without_its_token_is_refused(admin: Browser, service: Service):
    await admin.get("/dashboard/tokens")
    before = await service.rows()
    fields = {"name": "evil", "role": "admin"}
    for token in ({}, {"form_token": ""}, {"form_token": "0" * 64}):
        response = await admin.client.post(
            "/dashboard/tokens", data={**fields, **token}, headers={"Origin": ORIGIN}
        )
        assert response.status_code == 403
    silent = await admin.client.post("/dashboard/tokens", data=fields)
    assert silent.status_code == 403, "a form that does not say from where it comes"
    assert await service.rows() == before


async def test_the_form_of_another_login_is_refused(admin: Browser, service: Service):
    other = Browser(service)
    await other.log_in("admin")
    await other.get("/dashboard/tokens")
    admin.page = other.page
    assert (await admin.post("/dashboard/tokens", {"name": "x", "role": "admin"})).status_code == 403
    await other.client.aclose()


async def test_every_page_forbids_what_it_does_not_need(admin: Browser):
    for path in (
        "/dashboard",
        "/dashboard/login",
        "/dashboard/static/dashboard.css",
        "/dashboard/studies/none",
    ):
        headers = (await admin.get(path)).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert ("no-store" in headers["cache-control"]) is not path.endswith(".css")


async def test_no_page_has_anything_inline_or_from_elsewhere(admin: Browser, service: Service):
    study = await service.study(slug="inline", trust=["central", "local"])
    await service.crowd(study)
    paths = ("", "/studies", f"/studies/{study}", "/budgets", "/ledger", "/ledger/charges", "/tokens")
    for path in paths:
        assert (await admin.get(f"/dashboard{path}")).status_code == 200
        assert " style=" not in admin.page
        assert "<style" not in admin.page
        assert " on" + "click" not in admin.page
        assert "<script>" not in admin.page
        assert "//" not in admin.page.replace("http://www.w3.org/2000/svg", "")
