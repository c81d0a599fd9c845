"""Signing in with an identity provider: there, back, and everything that must not log a person in."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from app.dashboard.pages.sign_in import SIGN_IN_COOKIE
from app.dashboard.requests import LOGIN_COOKIE
from app.settings import Settings
from app.web import oidc
from tests.api.service import SUBJECT_KEY, Service, open_service
from tests.api.test_oidc import ANSWERS
from tests.dashboard.browser import ORIGIN, Browser
from tests.support.provider import CLIENT, Provider


@pytest.fixture
async def installation(database_url: str, issuer: Provider) -> AsyncIterator[Service]:
    async with open_service(database_url, **issuer.sign_in_settings) as service:
        yield service


@pytest.fixture
async def visitor(installation: Service) -> AsyncIterator[Browser]:
    browser = Browser(installation)
    yield browser
    await browser.client.aclose()


async def at_the_provider(visitor: Browser) -> str:
    """Leave for the provider, say yes there, and where it sends the browser back to."""
    leaving = await visitor.get("/dashboard/sign-in")
    assert leaving.status_code == 303
    async with httpx.AsyncClient() as outside:
        answered = await outside.get(leaving.headers["location"])
    assert answered.status_code == 302
    back = answered.headers["location"]
    assert back.startswith(f"{ORIGIN}/dashboard/sign-in/back?")
    return back.removeprefix(ORIGIN)


async def test_who_signs_in_is_logged_in_for_as_long_as_with_a_token(visitor: Browser) -> None:
    assert 'href="/dashboard/sign-in"' in (await visitor.get("/dashboard/login")).text
    entered = await visitor.get(await at_the_provider(visitor))
    assert entered.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=/dashboard">' in entered.text
    (cookie,) = (c for c in entered.headers.get_list("set-cookie") if c.startswith(LOGIN_COOKIE))
    assert "Max-Age=28800" in cookie
    assert "SameSite=strict" in cookie
    assert SIGN_IN_COOKIE not in visitor.cookies()
    assert (await visitor.get("/dashboard")).status_code == 200


async def test_the_way_back_does_not_follow_the_host_header(visitor: Browser) -> None:
    shown = await visitor.client.get("/dashboard/sign-in", headers={"Host": "evil.example"})
    assert shown.status_code == 422
    assert "evil" not in shown.text


async def test_the_role_and_the_studies_are_those_of_the_claims(
    visitor: Browser, installation: Service, issuer: Provider
) -> None:
    await installation.study(slug="own-study")
    await installation.study(slug="other-study")
    issuer.person = {"sub": "guest", "roles": ["guests"]}
    entered = await visitor.get(await at_the_provider(visitor))
    assert "url=/dashboard/studies" in entered.text
    page = (await visitor.get("/dashboard/studies")).text
    assert "own-study" in page
    assert "other-study" not in page


async def test_a_client_without_a_password_signs_people_in(database_url: str, issuer: Provider) -> None:
    issuer.secret = None
    async with open_service(database_url, **issuer.sign_in_settings) as service:
        browser = Browser(service)
        assert (await browser.get(await at_the_provider(browser))).status_code == 200
        assert LOGIN_COOKIE in browser.cookies()
        await browser.client.aclose()


@pytest.mark.parametrize(
    ("person", "says"),
    [
        (None, "did not sign you in"),
        ({"sub": "x", "roles": []}, "no role follows"),
        ({"sub": "x", "roles": ["app"]}, "for admins and analysts"),
        ({"sub": "x", "roles": ["operators"], "nonce": "another"}, "belongs to another sign-in"),
        ({"sub": "x", "roles": ["operators"], "aud": "dither"}, "InvalidAudienceError"),
        ({"sub": "x", "roles": ["operators"], "exp": 1_600_000_000}, "ExpiredSignatureError"),
        ({"sub": "x", "roles": ["operators"], "iss": "https://id.example"}, "InvalidIssuerError"),
        ({"sub": "x", "roles": ["operators"], "azp": "another"}, "issued to another client"),
        ({"sub": "x", "roles": ["operators"], "azp": ""}, "issued to another client"),
        ({"sub": "x", "roles": ["operators"], "azp": [CLIENT]}, "issued to another client"),
        ({"sub": "x", "roles": ["operators"], "aud": [CLIENT, "another"]}, "issued to another client"),
        ({"sub": "x", "roles": ["operators"], "exp": 10**400}, "DecodeError"),
        ({"sub": "x", "roles": ["operators"], "exp": "9" * 400}, "does not say when it expires"),
        ({"sub": "\ud800", "roles": ["operators"]}, "DecodeError"),
    ],
)
async def test_an_answer_that_is_not_good_logs_no_person_in(
    visitor: Browser, issuer: Provider, person: dict[str, object] | None, says: str
) -> None:
    issuer.person = person
    refused = await visitor.get(await at_the_provider(visitor))
    assert refused.status_code == 403
    assert says in refused.text
    assert LOGIN_COOKIE not in visitor.cookies()


@pytest.mark.parametrize(
    "claims", [{"azp": CLIENT}, {"aud": [CLIENT]}, {"aud": [CLIENT, "another"], "azp": CLIENT}]
)
async def test_an_id_token_that_was_issued_to_this_client_is_good(
    visitor: Browser, issuer: Provider, claims: dict[str, object]
) -> None:
    issuer.person = {"sub": "ada", "roles": ["operators"], **claims}
    assert (await visitor.get(await at_the_provider(visitor))).status_code == 200
    assert LOGIN_COOKIE in visitor.cookies()


@pytest.mark.parametrize(
    "kept",
    [
        b"[" * 5_000,
        b"[" * 5_000 + b"]" * 5_000,
        b'{"state": "\\ud800", "nonce": "x", "verifier": "x"}',
        '{"state": "\u00e9", "nonce": "x", "verifier": "x"}'.encode(),
        b'{"state": {}, "nonce": [], "verifier": 1}',
        b'{"state": "", "nonce": "x"}',
        b'{"state": "", "nonce": 1' + b"0" * 400 + b', "verifier": ""}',
        b"\xff",
        b"null",
        b"",
    ],
)
async def test_a_cookie_of_a_strangers_making_is_refused(visitor: Browser, kept: bytes) -> None:
    for cookie in (kept.hex(), kept.hex() + "0", kept.decode("latin-1")):
        answer = await visitor.client.get(
            "/dashboard/sign-in/back?state=&code=x",
            headers=[(b"Cookie", f"{SIGN_IN_COOKIE}={cookie}".encode("latin-1"))],
        )
        assert answer.status_code == 403
        assert "did not begin in this browser" in answer.text


@pytest.mark.parametrize("what", ANSWERS)
async def test_an_answer_that_a_provider_must_not_give_logs_no_person_in(
    visitor: Browser, issuer: Provider, what: str
) -> None:
    back = await at_the_provider(visitor)
    issuer.raw["/token"] = ANSWERS[what]()
    assert (await visitor.get(back)).status_code == 503
    assert issuer.sent < 20 * oidc.MAX_DOCUMENT_BYTES, "it read on"


@pytest.mark.parametrize("what", ANSWERS)
async def test_a_provider_that_says_no_address_is_not_gone_to(
    visitor: Browser, issuer: Provider, what: str
) -> None:
    issuer.raw["/.well-known/openid-configuration"] = ANSWERS[what]()
    assert (await visitor.get("/dashboard/sign-in")).status_code == 503


@pytest.mark.parametrize(
    "endpoint",
    ["http://id.example/token", "", "/token", 5, None, "https://\0", "ftp://id.example", "https:///x"],
)
async def test_an_address_without_tls_is_not_gone_to(
    visitor: Browser, issuer: Provider, monkeypatch: pytest.MonkeyPatch, endpoint: object
) -> None:
    honest = issuer.document

    def document(path: str) -> object:
        found = honest(path)
        assert isinstance(found, dict)
        return {**found, "authorization_endpoint": endpoint}

    monkeypatch.setattr(issuer, "document", document)
    assert (await visitor.get("/dashboard/sign-in")).status_code == 503


async def test_an_answer_is_good_once_and_in_its_own_browser(visitor: Browser, installation: Service) -> None:
    back = await at_the_provider(visitor)
    other = Browser(installation)
    assert (await other.get(back)).status_code == 403, "it never left"
    await other.get("/dashboard/sign-in")
    assert "belongs to another sign-in" in (await other.get(back)).text
    assert (await visitor.get(back)).status_code == 200
    assert (await visitor.get(back)).status_code == 403
    await visitor.get("/dashboard/sign-in")
    query = {name: value[0] for name, value in parse_qs(urlsplit(back).query).items()}
    forged = f"/dashboard/sign-in/back?{urlencode({**query, 'state': 'x'})}"
    assert (await visitor.get(forged)).status_code == 403
    await other.client.aclose()


async def test_a_provider_that_does_not_answer_is_said_to_be_unavailable(
    visitor: Browser, issuer: Provider
) -> None:
    issuer.status = 500
    assert (await visitor.get("/dashboard/sign-in")).status_code == 503


async def test_without_a_client_id_there_is_nothing_to_sign_in_with(
    database_url: str, issuer: Provider
) -> None:
    async with open_service(database_url, **issuer.settings) as service:
        browser = Browser(service)
        assert "sign-in" not in (await browser.get("/dashboard/login")).text
        assert (await browser.get("/dashboard/sign-in")).status_code == 404
        await browser.client.aclose()


@pytest.mark.parametrize(
    "incomplete",
    [{"oidc_client_id": "x"}, {"oidc_client_secret": "x"}],
)
def test_settings_that_cannot_sign_people_in_are_refused(incomplete: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="DITHER_OIDC"):
        Settings(subject_key=SUBJECT_KEY, **incomplete)  # type: ignore[arg-type]


def test_a_password_without_a_client_is_refused(issuer: Provider) -> None:
    with pytest.raises(ValueError, match="DITHER_OIDC_CLIENT_ID"):
        Settings(subject_key=SUBJECT_KEY, **{**issuer.settings, "oidc_client_secret": "x"})
