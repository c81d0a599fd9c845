"""Answering by a link in a real Chromium: on a phone and a desktop, with the keyboard, without scripts."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.browser import chromium
from tests.support.databases import Server
from tests.support.live import ROOT, LiveService, live_service

pytestmark = pytest.mark.system

AXE = (ROOT / "client" / "js" / "node_modules" / "axe-core" / "axe.min.js").read_text()

MEALS = {
    "slug": "meals",
    "title": "What do you pay for lunch?",
    "description": "In euros, on a working day.",
    "measures": {"price": {"lower": 0, "upper": 50}, "place": {"choices": ["canteen", "home", "out"]}},
    "attributes": {"site": ["north", "south"]},
    "trust": ["central", "public"],
    "epsilon": {"min": 0.5, "max": 2},
}
QUIET = {
    "slug": "quiet",
    "lower": 0,
    "upper": 10,
    "relation": "add_remove_one",
    "epsilon": {"min": 0.5, "max": 2},
}


@pytest.fixture(scope="module")
def service(postgres_server: Server) -> Iterator[LiveService]:
    with postgres_server.database() as url, live_service(url) as service:
        with service.client() as admin:
            for study in (MEALS, QUIET):
                assert admin.post("/v1/studies", json=study).status_code == 201
        yield service


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def link(service: LiveService, study: str, **wish: object) -> str:
    """A new link."""
    with service.client() as admin:
        made = admin.post(f"/v1/studies/{study}/invitations", json=wish)
    assert made.status_code == 201, made.text
    return str(made.json()["urls"][0])


def fits_and_is_accessible(page: Page) -> None:
    width = page.locator("html").evaluate("page => page.scrollWidth")
    assert width <= page.viewport_size["width"]  # type: ignore[index]  # it was set
    page.evaluate(AXE)
    found = page.evaluate("() => axe.run()")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


def opened(context: BrowserContext, url: str) -> tuple[Page, list[str]]:
    """A page, and the requests that it makes and the complaints about it, as they come."""
    page, seen = context.new_page(), []
    page.on("request", lambda request: seen.append(request.url))
    page.on("console", lambda message: seen.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error: {error}"))
    response = page.goto(url)
    assert response is not None
    assert response.status == 200
    return page, seen


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_person_answers_reads_the_receipt_changes_and_withdraws(
    service: LiveService, browser: Browser, width: int, scripts: bool
):
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if width == 360 else "light",
        java_script_enabled=scripts,
    )
    page, seen = opened(context, link(service, "meals", kind="open"))
    expect(page.get_by_role("heading", name=str(MEALS["title"]))).to_be_visible()
    if scripts:
        fits_and_is_accessible(page)
    page.get_by_label("price").fill("8,50")
    page.get_by_label("canteen").check()
    page.get_by_label("south").check()
    page.get_by_label("Medium").check()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status")).to_contain_text("Your answer is stored")
    expect(page.locator("#given ~ dl").first).to_contain_text("8.5")
    if scripts:
        fits_and_is_accessible(page)
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("stored once")
    receipt = page.get_by_label("Code").input_value()
    address = page.get_by_label("Link").input_value()

    page.get_by_text("Give another answer in its place").click()
    page.get_by_label("price").fill("9")
    page.get_by_role("button", name="Change my answer").click()
    expect(page.get_by_role("status")).to_contain_text("changed")
    page.close()

    page, more = opened(context, address)
    if not scripts:
        page.get_by_label("Code of your receipt").fill(receipt)
    page.get_by_role("button", name="Open").click()
    expect(page.locator("#given ~ dl").first).to_contain_text("9")
    page.get_by_text("Delete your answer").click()
    page.get_by_role("button", name="Withdraw my answer").click()
    expect(page.get_by_role("status")).to_contain_text("deleted")
    assert context.cookies() == []
    assert {urlsplit(one).netloc for one in seen + more} == {urlsplit(service.base_url).netloc}
    assert not any(receipt in urlsplit(one).path for one in seen + more)
    context.close()


def test_the_keyboard_alone_answers(service: LiveService, browser: Browser):
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page, _ = opened(context, link(service, "quiet", kind="single", count=1))
    page.get_by_label("Your answer", exact=True).focus()
    page.keyboard.type("7")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Your answer is stored")
    expect(page.get_by_text("epsilon 1", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("stored once")
    context.close()


def test_a_wrong_answer_is_marked_and_what_was_written_stays(service: LiveService, browser: Browser):
    context = browser.new_context(viewport={"width": 360, "height": 800})
    page, _ = opened(context, link(service, "meals", kind="single", count=1))
    page.get_by_label("price").fill("900")
    page.get_by_label("home").check()
    page.get_by_label("north").check()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was stored")
    expect(page.get_by_label("price")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("home")).to_be_checked()
    fits_and_is_accessible(page)
    page.get_by_label("price").fill("9")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("status")).to_contain_text("Your answer is stored")
    context.close()
