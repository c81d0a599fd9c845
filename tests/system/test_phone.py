"""The dashboard on a phone of 390 px: nothing is out of reach, and no number is broken over two lines."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import chromium
from tests.support.databases import Server
from tests.support.live import LiveService, live_service
from tests.support.sample_studies import COMMUTE, RENT, fill

pytestmark = pytest.mark.system

WIDTH = 390
PAGES = (
    "",
    "/studies",
    f"/studies/{COMMUTE}",
    f"/budgets?study={RENT}",
    "/ledger",
    "/ledger/charges",
    "/tokens",
    "/audit",
)

BROKEN_NUMBERS = """() => {
    const found = [];
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (node.parentElement.closest("code, svg, option")) continue;
        for (const match of node.data.matchAll(/\\d[\\d.,:-]*\\d/g)) {
            const range = document.createRange();
            range.setStart(node, match.index);
            range.setEnd(node, match.index + match[0].length);
            const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
            if (lines.size > 1) found.push(match[0]);
        }
    }
    return found;
}"""

OUT_OF_REACH = """() => [...document.querySelectorAll(".scroll")].filter((box) => {
    const outer = box.getBoundingClientRect();
    if (outer.width === 0) return false;
    box.scrollLeft = box.scrollWidth;
    const ends = [...box.querySelectorAll("tr > :last-child")].map((x) => x.getBoundingClientRect().right);
    box.scrollLeft = 0;
    return outer.left < 0 || outer.right > innerWidth || Math.max(...ends) > outer.right + 1;
}).map((box) => box.getAttribute("aria-label"))"""


@pytest.fixture(scope="module")
def service(postgres_server: Server) -> Iterator[LiveService]:
    """One with people in it."""
    with postgres_server.database() as url, live_service(url) as service:
        fill(service)
        yield service


@pytest.fixture(scope="module")
def phone(service: LiveService) -> Iterator[Page]:
    """A phone that an admin is logged in with."""
    with chromium() as browser:
        page = browser.new_context(viewport={"width": WIDTH, "height": 844}, has_touch=True).new_page()
        page.goto(f"{service.base_url}/dashboard/login")
        page.get_by_label("Token").fill(service.admin_token)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        yield page


def on_screen(one: Locator) -> bool:
    """Whether it is wholly between the left and right edge, without scrolling to the side."""
    box = one.bounding_box()
    return box is not None and box["x"] >= 0 and box["x"] + box["width"] <= WIDTH


def test_everything_is_in_reach_on_a_phone(service: LiveService, phone: Page) -> None:
    for path in PAGES:
        phone.goto(f"{service.base_url}/dashboard{path}")
        expect(phone.locator(".scroll").first).to_be_attached()
        assert phone.evaluate("document.documentElement.scrollWidth") <= WIDTH, path
        assert phone.evaluate(BROKEN_NUMBERS) == [], path
        assert phone.evaluate(OUT_OF_REACH) == [], path

    phone.goto(f"{service.base_url}/dashboard/studies")
    for cell in phone.locator(".cards td").all():
        assert on_screen(cell), cell.inner_text()

    service.create_token("analyse", name="lost")
    phone.goto(f"{service.base_url}/dashboard/tokens?search=lost")
    for cell in phone.locator(".cards td").all():
        assert on_screen(cell), cell.inner_text()
    assert on_screen(phone.get_by_label("Revoke lost"))
    phone.get_by_label("Revoke lost").tap()
    revoke = phone.get_by_role("button", name="Revoke lost")
    assert on_screen(revoke)
    revoke.tap()
    row = phone.locator(".cards tr", has_text="lost")
    expect(row.locator(".pill")).to_have_text("revoked")


def test_no_number_of_an_answer_breaks(service: LiveService, phone: Page) -> None:
    """On the pages of answers, and where everyone reads them."""
    made = []
    with service.client(service.create_token("analyse", name="asks")) as analyst:
        for statistic, parameters in (("mean", {}), ("histogram", {"bins": 6}), ("describe", {})):
            wish = {"statistic": statistic, "parameters": parameters, "share": 0.05, "allow_worse": True}
            answered = analyst.post(f"/v1/studies/{COMMUTE}/releases", json=wish)
            assert answered.status_code in (200, 201), answered.text
            made.append(answered.json()["id"])
        shown = {"releases": made, "title": "All of it"}
        published = analyst.post(f"/v1/studies/{COMMUTE}/publications", json=shown)
    assert published.status_code == 201, published.text
    for path in (*(f"/dashboard/releases/{one}" for one in made), f"/p/{published.json()['slug']}"):
        phone.goto(f"{service.base_url}{path}")
        phone.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        assert phone.evaluate("document.documentElement.scrollWidth") <= WIDTH, path
        assert phone.evaluate(BROKEN_NUMBERS) == [], path


def test_the_check_sees_a_number_that_breaks(service: LiveService, phone: Page) -> None:
    phone.goto(f"{service.base_url}/dashboard/studies/{COMMUTE}")
    phone.evaluate(
        """() => document.querySelectorAll("time").forEach((one) => {
            one.style.cssText = "white-space: normal; overflow-wrap: anywhere; display: block; width: 3ch";
        })"""
    )
    assert phone.evaluate(BROKEN_NUMBERS) != []


def test_all_that_needs_attention_leads_somewhere(service: LiveService, phone: Page) -> None:
    phone.goto(f"{service.base_url}/dashboard")
    items = phone.locator(".alerts > li")
    expect(items).to_have_count(3)
    titles = []
    for number in range(3):
        items.nth(number).locator(":scope > a").last.click()
        titles.append(phone.locator("h1").inner_text())
        phone.goto(f"{service.base_url}/dashboard")
    assert titles == ["Ledger", "Budgets", "Studies"]
    assert re.search("state=open", items.nth(2).locator("a").last.get_attribute("href") or "")


def test_long_words_of_a_study_break_where_the_phone_ends(service: LiveService, phone: Page) -> None:
    """A title, a label and a choice without a space: on pages of the study, of its answers, and to answer."""
    word = "Donaudampfschifffahrtsgesellschaftskapitaenswitwe"
    regions = {"region": [word, "south"]}
    with (
        service.client(service.admin_token) as admin,
        service.client(service.create_token("contribute", name="long app")) as app,
        service.client(service.create_token("analyse", name="long desk")) as desk,
    ):
        study = {"slug": "long", "title": 2 * word, "lower": 0, "upper": 10, "attributes": regions}
        for wish in (study, {"slug": "long-choice", "choices": [word, "other"]}):
            assert admin.post("/v1/studies", json=wish).status_code == 201
        links = [
            admin.post(f"/v1/studies/{slug}/invitations", json={"kind": "single", "count": 1}).json()["urls"][
                0
            ]
            for slug in ("long", "long-choice")
        ]
        records = [
            {
                "subject": f"long{number}",
                "value": number % 10,
                "epsilon": 1,
                "trust": "central",
                "attributes": {"region": regions["region"][number % 2]},
            }
            for number in range(40)
        ]
        sent = app.post("/v1/studies/long/contributions/batch", json=records)
        assert sent.json()["created"] == 40, sent.text
        wish = {"statistic": "histogram", "bins": 2, "by": "region", "share": 0.5, "allow_worse": True}
        made = desk.post("/v1/studies/long/releases", json=wish)
        assert made.status_code == 201, made.text
    pages = ("/studies/long", "/studies/long-choice", "/tokens", f"/releases/{made.json()['id']}")
    for path in (*links, *(f"{service.base_url}/dashboard{page}" for page in pages)):
        phone.goto(path)
        assert phone.evaluate("document.documentElement.scrollWidth") <= WIDTH, path
