"""First tasks at the dashboard, from end to end in a real Chromium: each step leads to the next one."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.core.numbers import headline
from tests.conftest import LiveServer
from tests.support.browser import chromium
from tests.support.live import LiveService

pytestmark = pytest.mark.system

PEOPLE = 40
OpenAs = Callable[[str], Page]


@pytest.fixture
def service(live_server: LiveServer) -> LiveService:
    """One with nothing in it but the admin's token."""
    return live_server()


@pytest.fixture
def open_as(service: LiveService) -> Iterator[OpenAs]:
    """A function that opens a window of its own and logs in with a token."""
    with chromium() as browser:

        def log_in(token: str) -> Page:
            page = browser.new_context().new_page()
            page.goto(f"{service.base_url}/dashboard/login")
            page.get_by_label("Token").fill(token)
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_role("button", name="Log out")).to_be_visible()
            return page

        yield log_in


def make_token(page: Page, name: str, role: str, *, studies: str = "") -> str:
    """Make a token on the page of tokens, and read its secret there."""
    page.get_by_role("link", name="Tokens", exact=True).click()
    form = page.locator('form[action$="/tokens"][method="post"]')
    form.get_by_label("Name").fill(name)
    form.locator(f"[name=role][value={role}]").check()
    if studies:
        form.locator(f"[name=studies][value={studies}]").check()
    form.get_by_role("button", name="Make the token").click()
    return page.get_by_label("Secret of the new token").input_value()


def shows(text: str, value: float) -> bool:
    """Whether a number is this one, rounded to the digits that it has."""
    return abs(float(text) - value) <= 0.500001 * 10.0 ** -len(text.partition(".")[2])


def test_the_guide_of_an_empty_service_leads_to_an_answer(service: LiveService, open_as: OpenAs) -> None:
    """Its commands are run as they stand on the page; then there is a study, and no guide any more."""
    admin = open_as(service.admin_token)
    guide = admin.locator("ol.guide")
    expect(guide.get_by_role("listitem")).to_have_count(4)
    commands = "\n".join(["set -e", *guide.locator("pre").all_inner_texts()])
    ran = subprocess.run(
        ["/bin/bash", "-c", commands.replace("the secret of your admin token", service.admin_token)],
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": os.environ["HOME"]},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    answer = json.loads(ran.stdout.splitlines()[-1])
    assert (answer["study"], answer["people"]) == ("commute", 1)
    for page in ("", "/studies"):
        admin.goto(f"{service.base_url}/dashboard{page}")
        expect(admin.get_by_role("link", name="Minutes to work?")).to_be_visible()
        expect(guide).to_have_count(0)


def test_from_an_empty_service_to_the_first_answer(service: LiveService, open_as: OpenAs) -> None:
    admin = open_as(service.admin_token)
    expect(admin.get_by_role("heading", name="Overview")).to_be_visible()
    admin.get_by_role("link", name="Make the first one").click()
    admin.get_by_label("Address").fill("commute")
    admin.get_by_label("Question").fill("How long is your way to work?")
    admin.get_by_label("Range from").fill("0")
    admin.get_by_label("to", exact=True).first.fill("120")
    admin.get_by_role("button", name="Show what people agree to").click()
    admin.get_by_role("button", name="Make the study").click()
    expect(admin.get_by_role("heading", name="How long is your way to work?")).to_be_visible()
    app_secret = make_token(admin, "the app", "contribute", studies="commute")
    analyst_secret = make_token(admin, "the analyst", "analyse")

    with service.client(app_secret) as app:
        for number in range(PEOPLE):
            value = {"subject": f"person-{number}", "value": number, "epsilon": 2, "trust": "central"}
            assert app.post("/v1/studies/commute/contributions", json=value).status_code == 201

    analyst = open_as(analyst_secret)
    analyst.get_by_role("link", name="How long is your way to work?").click()
    analyst.get_by_label("Share", exact=True).fill("0.5")
    analyst.get_by_role("button", name="Preview the price").click()
    expect(analyst.locator(".price")).to_contain_text("would charge no person more than ε 1 ")
    analyst.get_by_role("button", name="Ask for this release").click()
    expect(analyst.get_by_text("95 % interval, these people")).to_be_visible()
    found = re.match(r"[-0-9.,]+", analyst.locator(".big").inner_text())
    assert found is not None
    released = analyst.url.rsplit("/", 1)[1]
    with service.client(analyst_secret) as reader:
        document = reader.get(f"/v1/releases/{released}").json()
    assert shows(found[0], document["estimate"])
    shown = analyst.locator("dl.facts dd").first.inner_text()
    interval = document["interval"]
    wanted = headline(document["estimate"], interval["lower"], interval["upper"])
    assert shown.startswith(f"{wanted.lower} to {wanted.upper}")
    assert float(wanted.lower) <= float(found[0]) <= float(wanted.upper)

    analyst.get_by_role("link", name="How long is your way to work?").click()
    analyst.get_by_role("heading", name="All answers").click()
    expect(analyst.locator(f'a[href$="{released}"]').last).to_be_visible()


def test_a_secret_is_copied_and_a_token_is_found_again(service: LiveService, open_as: OpenAs) -> None:
    page = open_as(service.admin_token)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    secret = make_token(page, "the app", "contribute")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == secret
    for search, rows in (("nobody's", 0), ("THE APP", 1)):
        page.get_by_label("Search").fill(search)
        page.get_by_label("Order").select_option("name")
        page.get_by_role("button", name="Find").click()
        expect(page).to_have_url(re.compile("sort=name"))
        expect(page.locator("tbody tr")).to_have_count(rows)
    page.get_by_role("link", name="Studies", exact=True).click()
    page.get_by_label("State").select_option("closed")
    page.get_by_role("button", name="Find").click()
    expect(page.get_by_text("There is no such study.")).to_be_visible()


def test_one_admin_changes_a_budget_and_another_finds_who_did_and_why(
    service: LiveService, open_as: OpenAs
) -> None:
    with service.client() as client:
        study = {"slug": "sleep", "lower": 0, "upper": 24}
        assert client.post("/v1/studies", json=study).status_code == 201
    app = service.create_token("contribute")
    with service.client(app) as device:
        value = {"subject": "zoe", "value": 8, "epsilon": 2, "trust": "central"}
        assert device.post("/v1/studies/sleep/contributions", json=value).status_code == 201
    first = open_as(service.admin_token)
    ada, bob = make_token(first, "Ada", "admin"), make_token(first, "Bob", "admin")

    page = open_as(ada)
    page.get_by_role("link", name="Budgets", exact=True).click()
    page.get_by_label("External id").fill("zoe")
    page.get_by_role("button", name="Show the statement").click()
    page.get_by_label("Epsilon", exact=True).fill("25")
    page.get_by_label("Reason").fill("asked for it by mail")
    page.get_by_role("button", name="Change it").click()
    expect(page.get_by_role("status")).to_contain_text("The lifetime budget was changed.")

    page = open_as(bob)
    page.get_by_role("link", name="Audit trail", exact=True).click()
    row = page.get_by_role("row", name=re.compile("asked for it by mail"))
    expect(row.get_by_role("cell").first).to_have_text("Ada")
    expect(row).to_contain_text("epsilon 25")
    row.get_by_role("link", name=re.compile("person")).click()
    expect(page.get_by_role("row", name=re.compile("Ada.*asked for it by mail"))).to_have_count(1)
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "zoe" not in page.content()
