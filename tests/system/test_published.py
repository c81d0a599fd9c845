"""A published page in a real Chromium: on a phone and a desktop, without scripts, and in a frame."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.databases import Server
from tests.support.live import LiveService, live_service
from tests.system.test_take import browser, fits_and_is_accessible, opened

__all__ = ["browser"]

pytestmark = pytest.mark.system

STUDY: dict[str, Any] = {
    "slug": "lunch",
    "title": "What do you pay for lunch?",
    "lower": 0,
    "upper": 50,
    "attributes": {"site": ["north", "south", "a site with quite a long name"]},
}
QUESTIONS = (
    {"by": "site"},
    {"statistic": "histogram", "bins": 12},
    {"statistic": "describe"},
    {"statistic": "distribution", "bins": 12},
)


@pytest.fixture(scope="module")
def published(postgres_server: Server) -> Iterator[LiveService]:
    """A service with one publication, /p/lunch-costs, that its own pages may frame."""
    with postgres_server.database() as url, live_service(url) as service:
        with service.client() as admin:
            assert admin.post("/v1/studies", json=STUDY).status_code == 201
        people = [
            {
                "subject": f"p{number}",
                "value": number % 50,
                "epsilon": 4,
                "trust": "central",
                "attributes": {"site": STUDY["attributes"]["site"][number % 3]},
            }
            for number in range(300)
        ]
        with service.client(service.create_token("contribute")) as app:
            assert app.post("/v1/studies/lunch/contributions/batch", json=people).is_success
        with service.client(service.create_token("analyse")) as analyst:
            made = [
                analyst.post("/v1/studies/lunch/releases", json={**one, "allow_worse": True}).json()["id"]
                for one in QUESTIONS
            ]
            document = {
                "releases": made,
                "title": "Lunch costs this much",
                "slug": "lunch-costs",
                "frames": [service.base_url],
            }
            sent = analyst.post("/v1/studies/lunch/publications", json=document)
            assert sent.status_code == 201, sent.text
        yield service


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("path", ["/p/lunch-costs", "/p/lunch-costs/embed", "/p/none"])
def test_a_stranger_reads_it(published: LiveService, browser: Browser, width: int, scheme: Any, path: str):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{published.base_url}{path}")
    fits_and_is_accessible(page)
    if path != "/p/none":
        expect(page.get_by_role("heading", name="Lunch costs this much")).to_be_visible()
        expect(page.locator("figure svg:visible").first).to_be_visible()
    assert context.cookies() == []
    assert all(url.startswith(published.base_url) for url in asked)
    assert not any(url.endswith(".js") for url in asked)
    context.close()


def test_it_is_read_without_scripts_and_its_files_by_keyboard(published: LiveService, browser: Browser):
    context = browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 800})
    page, _ = opened(context, f"{published.base_url}/p/lunch-costs")
    expect(page.get_by_role("heading", name="Privacy label")).to_be_visible()
    page.get_by_role("link", name="JSON, signed").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/p/lunch-costs.json")
    context.close()


def test_only_a_page_of_a_named_origin_frames_it(published: LiveService, browser: Browser):
    context = browser.new_context()
    page = context.new_page()
    frame = '<iframe title="t" src="{}/p/lunch-costs/embed"></iframe>'
    page.route(
        "**/framing",
        lambda route: route.fulfill(body=frame.format(published.base_url), content_type="text/html"),
    )
    page.goto(f"{published.base_url}/framing")
    expect(page.frame_locator("iframe").get_by_role("heading", name="Lunch costs this much")).to_be_visible()
    page.goto("http://elsewhere.example/framing")
    expect(page.frame_locator("iframe").get_by_role("heading", name="Lunch costs this much")).to_be_hidden()
    context.close()
