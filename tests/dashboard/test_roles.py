"""Tokens with several roles: made on the page, and what their bearers see."""

import re
from collections.abc import Mapping

import httpx
import pytest

from app.dashboard.requests import TOKEN_FIELD
from tests.api.service import Service
from tests.dashboard.browser import ORIGIN, Browser, text_of


async def made_with(admin: Browser, form: Mapping[str, str | list[str]]) -> httpx.Response:
    """The page after the form of a new token, with boxes that have one name."""
    await admin.get("/dashboard/tokens")
    [token] = set(re.findall(rf'name="{TOKEN_FIELD}" value="([0-9a-f]+)"', admin.page))
    response = await admin.client.post(
        "/dashboard/tokens", data={**form, TOKEN_FIELD: token}, headers={"Origin": ORIGIN}
    )
    admin.page = response.text
    return response


async def test_one_token_collects_and_asks(admin: Browser, service: Service) -> None:
    study = await service.study(title="How long?")
    await service.study(title="How far?")
    await service.crowd(study, 60)
    form: dict[str, str | list[str]] = {"name": "ada", "role": ["analyse", "admin"], "studies": [study]}
    assert (await made_with(admin, form)).status_code == 200
    [secret] = set(re.findall(r"dither_[\w-]{43}", admin.page))
    assert "analyse, admin" in text_of(admin.page)
    browser = Browser(service)
    await browser.log_in(secret)
    await browser.get("/dashboard/studies")
    assert "How far?" not in browser.page
    await browser.get(f"/dashboard/studies/{study}")
    assert ">Collect</h2>" in browser.page
    assert ">Ask for this release</button>" in browser.page
    assert "To ask, log in" not in browser.page
    key = re.findall(r'name="key" value="([^"]+)"', browser.page)[0]
    asked = await browser.post(f"/dashboard/studies/{study}/releases", {"key": key, "share": "1"})
    assert asked.status_code == 303
    await browser.get(asked.headers["location"])
    assert "What it cost" in browser.page, "an admin's part of the page"
    await browser.client.aclose()
    await admin.get(f"/dashboard/studies/{study}")
    assert ">Ask for this release</button>" not in admin.page
    assert "To ask, log in with a token that has the role analyse" in text_of(admin.page)


@pytest.mark.parametrize(
    ("roles", "studies", "reason"),
    [
        ([], [], "give one role, or several as roles"),
        (["analyse", "king"], [], "must be contribute, analyse, admin or observe"),
        (["admin", "observe"], ["there"], "a token that watches the service sees no study"),
    ],
)
async def test_what_is_no_token_is_refused_and_the_boxes_stay(
    admin: Browser, service: Service, roles: list[str], studies: list[str], reason: str
) -> None:
    await service.study(slug="there")
    answered = await made_with(admin, {"name": "ada", "role": roles, "studies": studies})
    assert answered.status_code == 422
    assert reason in text_of(admin.page)
    for role in ("analyse", "admin", "observe"):
        assert (f'value="{role}" checked' in admin.page) is (role in roles)
    assert ('value="there" checked' in admin.page) is bool(studies)
    assert "dither_" not in admin.page
