"""From a new study to a published answer as people go, in a real Chromium: by keyboard, also without scripts.

The focus gets to what is used by Tab and the arrows alone, and is seen where it is.
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
        press(page.get_by_role("link", name="Sign in with your identity provider"))
        page.wait_for_url(re.compile("/dashboard(/studies)?$"))
        return page

    def look(self, page: Page, picture: str = "") -> None:
        """Nothing is cut off or hard to use, and no token is in sight."""
        assert SECRET.search(page.content()) is None
        if self.scripts:
            fits_and_is_accessible(page)
        if picture:
            keep(page, f"{picture}-{'phone' if self.width < 600 else 'desktop'}-{self.scheme}")


FOCUSED = """one => one === document.activeElement
    || (one.type === 'radio' && document.activeElement.type === 'radio'
        && document.activeElement.form === one.form && document.activeElement.name === one.name)"""
"""Of radio buttons one has the focus, and the arrows choose."""

SEEN = """() => {
    const style = getComputedStyle(document.activeElement);
    const box = document.activeElement.getBoundingClientRect();
    return style.outlineStyle !== 'none' && box.bottom > 0 && box.top < innerHeight
        && box.right > 0 && box.left < innerWidth;
}"""
"""Whether the focus is in view, and marked."""

MOST_TABS = 300


def reach(target: Locator) -> None:
    """Go to it with the tabulator."""
    expect(target).to_be_visible()
    for _ in range(MOST_TABS):
        if target.evaluate(FOCUSED):
            assert target.page.evaluate(SEEN), target
            return
        target.page.keyboard.press("Tab")
    raise AssertionError(f"{target} is not reached by Tab")


def press(target: Locator) -> None:
    reach(target)
    target.page.keyboard.press("Enter")


def use(target: Locator) -> None:
    """A link, or a button that leads to another page."""
    reach(target)
    with target.page.expect_navigation():
        target.page.keyboard.press("Enter")


def write(field: Locator, text: str) -> None:
    """Type over what is in a field."""
    reach(field)
    field.page.keyboard.press("Control+a")
    field.page.keyboard.type(text)


def tick(choice: Locator) -> None:
    """Tick a box, or choose one of several."""
    if choice.is_checked():
        return
    reach(choice)
    if choice.get_attribute("type") == "radio":
        for _ in range(choice.page.locator(f"[name={choice.get_attribute('name')}]").count()):
            choice.page.keyboard.press("ArrowDown")
            if choice.is_checked():
                break
    else:
        choice.page.keyboard.press("Space")
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
    use(admin.get_by_role("link", name="Studies", exact=True))
    use(admin.get_by_role("link", name="Make a study", exact=True))
    for name, text in (("title", "Minutes on foot?"), ("slug", "walk"), ("lower", "0"), ("upper", "120")):
        write(admin.locator(f"[name={name}]"), text)
    for tag in ("central", "local", "public"):
        tick(admin.locator(f"[name=trust_{tag}]"))
    expect(admin.get_by_label("Choices", exact=True)).to_be_hidden()
    visit.look(admin)
    use(admin.get_by_role("button", name="Show what people agree to"))
    expect(admin.get_by_role("heading", name="What people agree to")).to_be_visible()
    expect(admin.get_by_text("a number from 0 to 120, kept in steps of 0.000000112")).to_be_visible()
    visit.look(admin, "terms")
    use(admin.get_by_role("button", name="Make the study"))
    links = single_links(visit, admin)
    assert len(set(links)) == 50
    press(admin.get_by_text("Make one link for all"))
    use(admin.get_by_role("button", name="Make the link", exact=True))
    expect(admin.get_by_role("img", name="QR code of the link")).to_be_visible()
    visit.look(admin, "link")
    shared = admin.get_by_label("Link", exact=True).input_value()

    receipts = [
        answer(visit, links[0], "central", GERMAN, "30,5", picture="take"),
        answer(visit, shared, "local" if scripts else "central", ENGLISH, "40"),
        answer(visit, shared, "public", GERMAN, "50"),
    ]
    receipt = receipts[0]
    press(receipt.locator("summary").first)
    write(receipt.locator("[name=value]"), "35,5")
    use(receipt.locator("form[action*='/receipt/change'] button"))
    expect(receipt.get_by_role("status")).to_contain_text("geändert")
    expect(receipt.locator("#given ~ dl").first).to_contain_text("35,5")
    visit.look(receipt, "receipt")
    # Who withdraws finds the page again by the code alone.
    code = receipt.locator("#code").input_value()
    receipt.goto(f"{base}/take/receipt")
    write(receipt.locator("#receipt"), code)
    use(receipt.locator("main form button").last)
    press(receipt.locator("summary").last)
    use(receipt.locator("form[action*='/receipt/withdraw'] button"))
    expect(receipt.get_by_role("status")).to_contain_text("gelöscht")

    analyst = visit.sign_in(issuer, "ben", "team")
    use(analyst.get_by_role("link", name="Studies", exact=True))
    use(analyst.get_by_role("link", name="Minutes on foot?"))
    use(analyst.get_by_role("button", name="Ask for this release").first)
    # Of two people an answer says little: it is insisted on.
    expect(analyst.get_by_role("alert")).to_be_visible()
    tick(analyst.get_by_label("Make this answer although"))
    use(analyst.get_by_role("button", name="Ask for this release").first)
    expect(analyst.get_by_text("Epsilon charged at most")).to_be_visible()
    visit.look(analyst)
    write(analyst.get_by_label("Title"), "We walk this much")
    use(analyst.get_by_role("button", name="Publish this answer"))
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
    press(admin.get_by_text("Make a link for each person"))
    write(admin.get_by_label("How many"), "50")
    visit.look(admin)
    with admin.expect_download() as handed:
        press(admin.get_by_role("button", name="Make the links"))
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
    press(page.locator("form.answer button").last)
    expect(page.get_by_role("status")).to_contain_text("gespeichert" if locale == GERMAN else "stored")
    visit.look(page)
    return page
