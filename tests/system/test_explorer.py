"""The API explorer in a real Chromium: it shows and tries every operation, and asks no other site."""

from typing import Literal

import pytest
from playwright.sync_api import expect

from tests.conftest import LiveServer
from tests.support.browser import chromium, need
from tests.support.live import ROOT

pytestmark = pytest.mark.system

AXE = ROOT / "client" / "js" / "node_modules" / "axe-core" / "axe.min.js"

READ = [
    ".opblock-summary-path",
    ".opblock-summary-description",
    ".opblock-description",
    ".parameter__name",
    ".parameters-col_description p",
    ".opblock-section-header h4",
]
"""What people read; not all that Swagger UI has beside it has enough contrast, whatever the colors."""


def test_it_shows_operations_and_tries_one(live_server: LiveServer) -> None:
    service = live_server()
    complaints: list[str] = []
    with chromium() as browser:
        page = browser.new_page()
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type == "error" else None
        )
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((service.base_url, "data:"))
                else complaints.append(f"asked {request.url}")
            ),
        )
        page.goto(service.base_url)
        page.get_by_role("link", name="API", exact=True).click()
        operation = page.locator("#operations-studies-list_studies")
        expect(operation).to_be_visible(timeout=30_000)
        page.get_by_role("button", name="Authorize").first.click()
        page.get_by_label("auth-bearer-value").fill(service.admin_token)
        page.get_by_role("button", name="Apply credentials").click()
        page.get_by_role("button", name="Close", exact=True).click()
        operation.get_by_role("button").first.click()
        operation.get_by_role("button", name="Try it out").click()
        operation.get_by_role("button", name="Execute").click()
        status = operation.locator(".live-responses-table tbody .response-col_status").first
        expect(status).to_contain_text("200")
    assert complaints == []


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_it_is_read_in_light_and_dark(live_server: LiveServer, scheme: Literal["light", "dark"]) -> None:
    service = live_server()
    need(AXE.exists(), "axe is not installed")
    with chromium() as browser:
        page = browser.new_context(color_scheme=scheme).new_page()
        page.goto(f"{service.base_url}/docs#/studies/list_studies")
        operation = page.locator("#operations-studies-list_studies")
        expect(operation.get_by_role("button", name="Try it out")).to_be_visible(timeout=30_000)
        page.evaluate(AXE.read_text())
        found = page.evaluate(f"axe.run({{include: {READ}}}, {{runOnly: ['color-contrast']}})")
    assert found["passes"], "axe saw the texts"
    assert [node["html"][:160] for one in found["violations"] for node in one["nodes"]] == []


def test_without_a_script_the_document_is_a_link_away(live_server: LiveServer) -> None:
    service = live_server()
    with chromium() as browser:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto(f"{service.base_url}/docs")
        expect(page.get_by_text("The explorer needs a script")).to_be_visible()
        assert page.get_by_role("link", name="openapi.json").get_attribute("href") == "/openapi.json"
