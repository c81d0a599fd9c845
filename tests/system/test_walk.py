"""From a new study to a published answer as people go, in a real Chromium: by keyboard, also without scripts.

No command, no request by hand and no token in sight. `make screenshots` runs it too, for the pages that a
dashboard does not have.
"""

import csv
import json
import re
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.conftest import LiveServer
from tests.support.browser import keep
from tests.support.provider import Provider
from tests.system.test_take import browser, fits_and_is_accessible

__all__ = ["browser"]

pytestmark = pytest.mark.system

SECRET = re.compile(r"dither_[A-Za-z0-9_-]{43}")
"""What tokens look like."""

GERMAN, ENGLISH = "de-DE", "en-GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """How everyone of a walk looks at pages."""

    browser: Browser
    base: str
    width: int
    scheme: Any
    scripts: bool

    def context(self, locale: str = ENGLISH) -> BrowserContext:
        return self.browser.new_context(
            viewport={"width": self.width, "height": 800},
            color_scheme=self.scheme,
            java_script_enabled=self.scripts,
            locale=locale,
        )

    def sign_in(self, issuer: Provider, name: str, role: str) -> Page:
        """A page of who signs in with the provider."""
        issuer.person = {"sub": name, "roles": [role]}
        page = self.context().new_page()
        page.goto(f"{self.base}/dashboard")
        page.get_by_role("link", name="Sign in with your identity provider").press("Enter")
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        return page

    def look(self, page: Page, picture: str = "") -> None:
        """Nothing is cut off or hard to use, and no token is in sight."""
        assert SECRET.search(page.content()) is None
        if self.scripts:
            fits_and_is_accessible(page)
        if picture:
            keep(page, f"{picture}-{'phone' if self.width < 600 else 'desktop'}-{self.scheme}")


def write(field: Locator, text: str) -> None:
    """Type over what is in a field."""
    field.press("Control+a")
    field.press_sequentially(text)


def tick(choice: Locator) -> None:
    if not choice.is_checked():
        choice.press("Space")
    expect(choice).to_be_checked()


@pytest.fixture
def base(live_server: LiveServer, issuer: Provider) -> str:
    """A service where people sign in with a provider, which is another site to the browser."""
    issuer.issuer = issuer.issuer.replace("127.0.0.1", "localhost")
    settings = {f"DITHER_{name.upper()}": value for name, value in issuer.sign_in_settings.items()}
    settings["DITHER_OIDC_ROLES"] = json.dumps(settings["DITHER_OIDC_ROLES"])
    return live_server(env=settings).base_url


@pytest.mark.parametrize(
    ("width", "scheme", "scripts"),
    [
        (360, "dark", False),
        (1280, "light", True),
        pytest.param(360, "light", True, marks=pytest.mark.slow),
        pytest.param(1280, "dark", False, marks=pytest.mark.slow),
    ],
)
def test_people_go_from_a_new_study_to_a_published_answer(
    base: str, issuer: Provider, browser: Browser, width: int, scheme: str, scripts: bool
) -> None:
    visit = Visit(browser=browser, base=base, width=width, scheme=scheme, scripts=scripts)
    admin = visit.sign_in(issuer, "ada", "operators")
    admin.get_by_role("link", name="Studies", exact=True).press("Enter")
    admin.get_by_role("link", name="Make a study", exact=True).press("Enter")
    for name, text in (("title", "Minutes on foot?"), ("slug", "walk"), ("lower", "0"), ("upper", "120")):
        write(admin.locator(f"[name={name}]"), text)
    for tag in ("central", "local", "public"):
        tick(admin.locator(f"[name=trust_{tag}]"))
    expect(admin.get_by_label("Choices", exact=True)).to_be_hidden()
    visit.look(admin)
    admin.get_by_role("button", name="Show what people agree to").press("Enter")
    expect(admin.get_by_role("heading", name="What people agree to")).to_be_visible()
    expect(admin.get_by_text("a number from 0 to 120, kept in steps of 0.000000112")).to_be_visible()
    visit.look(admin, "terms")
    admin.get_by_role("button", name="Make the study").press("Enter")
    links = single_links(visit, admin)
    assert len(set(links)) == 50
    admin.get_by_text("Make one link for all").press("Enter")
    admin.get_by_role("button", name="Make the link", exact=True).press("Enter")
    expect(admin.get_by_role("img", name="QR code of the link")).to_be_visible()
    visit.look(admin, "link")
    shared = admin.get_by_label("Link", exact=True).input_value()

    receipts = [
        answer(visit, links[0], "central", GERMAN, "30,5", picture="take"),
        answer(visit, shared, "local" if scripts else "central", ENGLISH, "40"),
        answer(visit, shared, "public", GERMAN, "50"),
    ]
    receipt = receipts[0]
    receipt.locator("summary").first.press("Enter")
    write(receipt.locator("[name=value]"), "35,5")
    receipt.locator("form[action*='/receipt/change'] button").press("Enter")
    expect(receipt.get_by_role("status")).to_contain_text("geändert")
    expect(receipt.locator("#given ~ dl").first).to_contain_text("35,5")
    visit.look(receipt, "receipt")
    # Who withdraws finds the page again by the code alone.
    code = receipt.locator("#code").input_value()
    receipt.goto(f"{base}/take/receipt")
    write(receipt.locator("#receipt"), code)
    receipt.locator("main form button").last.press("Enter")
    receipt.locator("summary").last.press("Enter")
    receipt.locator("form[action*='/receipt/withdraw'] button").press("Enter")
    expect(receipt.get_by_role("status")).to_contain_text("gelöscht")

    analyst = visit.sign_in(issuer, "ben", "team")
    analyst.get_by_role("link", name="Studies", exact=True).press("Enter")
    analyst.get_by_role("link", name="Minutes on foot?").press("Enter")
    analyst.get_by_role("button", name="Ask for this release").first.press("Enter")
    # Of two people an answer says little: it is insisted on.
    expect(analyst.get_by_role("alert")).to_be_visible()
    analyst.get_by_label("Make this answer although").press("Space")
    analyst.get_by_role("button", name="Ask for this release").first.press("Enter")
    expect(analyst.get_by_text("Epsilon charged at most")).to_be_visible()
    visit.look(analyst)
    write(analyst.get_by_label("Title"), "We walk this much")
    analyst.get_by_role("button", name="Publish this answer").press("Enter")
    expect(analyst.get_by_role("heading", name="We walk this much")).to_be_visible()
    visit.look(analyst)
    address = analyst.get_by_label("Address").input_value()

    stranger = visit.context()
    page = stranger.new_page()
    page.goto(address)
    expect(page.get_by_role("heading", name="We walk this much")).to_be_visible()
    expect(page.get_by_role("heading", name="Privacy label")).to_be_visible()
    visit.look(page, "published")
    assert stranger.cookies() == []


def single_links(visit: Visit, admin: Page) -> list[str]:
    """Fifty links, each for one person, from the file that the study's page hands over."""
    admin.get_by_text("Make a link for each person").press("Enter")
    write(admin.get_by_label("How many"), "50")
    visit.look(admin)
    with admin.expect_download() as handed:
        admin.get_by_role("button", name="Make the links").press("Enter")
    with handed.value.path().open(newline="") as file:
        return [row["url"] for row in csv.DictReader(file)]


def answer(visit: Visit, link: str, trust: str, locale: str, value: str, picture: str = "") -> Page:
    """The receipt of a person who was never here."""
    page = visit.context(locale).new_page()
    page.goto(link)
    write(page.locator("[name=value]"), value)
    if trust == "local":
        expect(page.locator("[name=trust][value=local]")).to_be_enabled()
    tick(page.locator(f"[name=trust][value={trust}]"))
    visit.look(page, picture)
    page.locator("form.answer button").last.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("gespeichert" if locale == GERMAN else "stored")
    visit.look(page)
    return page
