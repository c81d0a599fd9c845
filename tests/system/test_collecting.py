"""From an empty service to answers by a link in a real Chromium: what people do, without curl."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import LiveServer
from tests.support.browser import chromium

pytestmark = pytest.mark.system


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def make_a_study_and_a_link(page: Page, *, people: int) -> str:
    """What an admin does who has logged in; returns the link that the page shows."""
    page.get_by_role("link", name="Studies", exact=True).click()
    page.get_by_role("link", name="Make a study", exact=True).click()
    for name, text in (
        ("slug", "walk"),
        ("title", "Minutes on foot yesterday?"),
        ("lower", "0"),
        ("upper", "120"),
    ):
        page.locator(f"[name={name}]").fill(text)
    for tag in ("central", "local", "public"):
        page.locator(f"[name=trust_{tag}]").check()
    page.get_by_role("button", name="Show what people agree to").click()
    page.get_by_role("button", name="Make the study").click()
    page.get_by_text("Make one link for all").click()
    page.get_by_label("Answers that it takes").fill(str(people))
    page.get_by_role("button", name="Make the link").click()
    expect(page.get_by_role("img", name="QR code of the link")).to_be_visible()
    return page.get_by_label("Link", exact=True).input_value()


@pytest.mark.parametrize("people", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_an_empty_service_has_answers_of_phones_by_one_link(
    live_server: LiveServer, browser: Browser, people: int
) -> None:
    """The service starts with the embedded database, as `make serve` does; each phone was never here."""
    service = live_server(embedded=True)
    admin = browser.new_context().new_page()
    admin.goto(f"{service.base_url}/dashboard/login")
    admin.get_by_label("Token").fill(service.admin_token)
    admin.get_by_role("button", name="Log in").click()
    link = make_a_study_and_a_link(admin, people=people)
    for number in range(people):
        german = number % 2 == 1
        words = ("Ihre Antwort", "Senden", "gespeichert") if german else ("Your answer", "Send", "stored")
        phone = browser.new_context(
            viewport={"width": 360, "height": 800}, locale="de-DE" if german else "en-GB"
        )
        page = phone.new_page()
        page.goto(link)
        page.get_by_label(words[0], exact=True).fill(f"{30 + number},5")
        page.locator("[name=trust]").nth(number % 3).check()
        page.get_by_role("button", name=words[1], exact=True).click()
        expect(page.get_by_role("status")).to_contain_text(words[2])
        phone.close()
    late = browser.new_context().new_page()
    late.goto(link)
    expect(late.get_by_role("heading", name="This link has all the answers that it takes")).to_be_visible()
    admin.reload()
    expect(admin.get_by_text(f"It takes {people} answers; {people} came.")).to_be_visible()


def test_two_people_who_send_by_one_single_link_at_once_give_one_answer(
    live_server: LiveServer, browser: Browser
) -> None:
    service = live_server()
    study = {"slug": "quiet", "lower": 0, "upper": 10, "trust": ["central"]}
    with service.client() as client:
        assert client.post("/v1/studies", json=study).status_code == 201
        made = client.post("/v1/studies/quiet/invitations", json={"kind": "single", "count": 1}).json()
        pages = [browser.new_context().new_page() for _ in range(2)]
        for page in pages:
            page.goto(made["urls"][0])
            page.get_by_label("Your answer", exact=True).fill("7")
        for page in pages:
            # It goes on while the other one presses the button, too.
            page.evaluate("setTimeout(() => document.querySelector('form.answer').requestSubmit(), 50)")
        for page in pages:
            expect(page.locator("h1")).not_to_have_text("quiet")
        titles = sorted(page.locator("h1").inner_text() for page in pages)
        assert titles == ["There is an answer already", "Your receipt"]
        (one,) = client.get("/v1/studies/quiet/invitations").json()["items"]
        assert one["used"] == 1
