"""Importing a German Excel's CSV in a real Chromium: on a phone without scripts, on a desktop by keyboard."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import LiveServer
from tests.dashboard.test_importing import GERMAN, LUNCH
from tests.support.browser import keep
from tests.support.live import LiveService
from tests.system.test_take import browser, fits_and_is_accessible

__all__ = ["browser"]

pytestmark = pytest.mark.system


def press(page: Page, name: str) -> None:
    """Press a button as those do who have no mouse."""
    page.get_by_role("button", name=name).focus()
    page.keyboard.press("Enter")


def test_a_german_file_takes_one_dry_run_and_one_confirmation(
    live_server: LiveServer, browser: Browser, tmp_path: Path
) -> None:
    service = live_server()
    file = tmp_path / "mittag.csv"
    file.write_bytes(GERMAN.replace("\n", "\r\n").encode("cp1252"))
    screens: tuple[tuple[int, Any, bool], ...] = ((360, "dark", False), (1280, "light", True))
    for number, (width, scheme, scripts) in enumerate(screens):
        study = f"lunch-{number}"
        with service.client() as admin:
            assert admin.post("/v1/studies", json={"slug": study, **LUNCH}).status_code == 201
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts
        )
        page = context.new_page()
        page.goto(f"{service.base_url}/dashboard/login")
        page.get_by_label("Token").fill(service.admin_token)
        press(page, "Log in")
        page.wait_for_url("**/dashboard")
        page.goto(f"{service.base_url}/dashboard/studies/{study}")
        page.get_by_role("link", name="imported").click()
        page.get_by_label("File", exact=True).set_input_files(file)
        page.get_by_label("Epsilon of rows that give none").fill("1")
        if scripts:
            fits_and_is_accessible(page)
        press(page, "Check the file")
        expect(page.get_by_role("status")).to_contain_text(
            "0 of 4 rows would be refused. Nothing was stored."
        )
        for words in ("cp1252", "Eingang am", "0.25 to 1500; the study takes 0 to 5000"):
            expect(page.get_by_text(words).first).to_be_visible()
        assert people(service, study) == 0
        if scripts:
            # Enter in a field checks again, and imports nothing.
            keep(page, "import-desktop-light")
            page.get_by_text("Read it otherwise").click()
            fits_and_is_accessible(page)
            page.get_by_label("Epsilon of rows that give none").press("Enter")
            expect(page.get_by_role("status")).to_contain_text("Nothing was stored.")
            assert people(service, study) == 0
        press(page, "Import these 4 rows")
        expect(page.get_by_role("status")).to_contain_text("4 stored, 0 there already, 0 refused.")
        assert people(service, study) == 4
        context.close()


def people(service: LiveService, study: str) -> int:
    """How many contributions to a study are stored."""
    assert service.database_url is not None
    with psycopg.connect(service.database_url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM contribution JOIN study ON study.id = study_id WHERE slug = %s", [study]
        ).fetchone()
    assert found is not None
    return int(found[0])
