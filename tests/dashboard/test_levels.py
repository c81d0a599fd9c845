"""The page of an answer at other levels: every interval, plot and reading, and an answer that keeps none."""

import re
from typing import Any

import pytest

from app.core.numbers import headline, margin, percent
from app.estimators.confidence import LEVELS
from app.services.statistics import releases as listed
from tests.api.service import Service
from tests.api.test_covariance import regions
from tests.api.test_level import sql
from tests.dashboard.browser import Browser, text_of, within

QUESTIONS: tuple[dict[str, Any], ...] = (
    {"statistic": "mean", "measure": "income", "by": "region"},
    {"statistic": "histogram", "measure": "income", "by": "region", "bins": "4"},
    {"statistic": "describe", "measure": "age"},
    {"statistic": "correlation", "measures": "income,age"},
)
"""Plots of intervals beside each other, of bars, of boxes, and of bands."""


async def made(service: Service, study: str, question: dict[str, Any]) -> dict[str, Any]:
    asked = {"share": 0.15, **question}
    answer = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=asked)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def levels_said(page: str) -> set[str]:
    """The levels that titles, legends, tables and plots of an answer say, beside the links to others."""
    of_answer = page[page.index("</nav>", page.index('aria-label="Level of intervals"')) :]
    return set(re.findall(r"(\d\d %)(?= interval| band|: )", of_answer))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one["statistic"])
async def test_an_answer_is_read_at_every_level_and_says_so_everywhere(
    browser: Browser, service: Service, question: dict[str, Any]
):
    study = await regions(service)
    release = (await made(service, study, question))["id"]
    await browser.log_in("analyse")
    first = (await browser.get(f"/dashboard/releases/{release}")).text
    assert levels_said(first) == {"95 %"}
    assert "it was published with those at 95 %" not in first
    for level in LEVELS:
        page = (await browser.get(f"/dashboard/releases/{release}?level={level}")).text
        assert levels_said(page) == {percent(level)}
        assert ("it was published with those at 95 %" in page) is (level != 0.95)
        assert f'<strong aria-current="true">{percent(level)}</strong>' in page
        links = re.findall(rf'href="/dashboard/releases/{release}\?level=([\d.]+)', page)
        assert sorted(map(float, links)) == sorted({*LEVELS} - {level})
        params = {"level": str(level)}
        answer = (await service.call("GET", f"/v1/releases/{release}", "analyse", params=params)).json()
        one = answer["quartiles"][0] if question["statistic"] == "describe" else answer
        if question["statistic"] != "histogram":
            shown = within(one)
            assert f"{shown.lower} to {shown.upper}" in text_of(page)
        else:
            bar = answer["bins"][0]
            said = headline(bar["share"], bar["interval"]["lower"], bar["interval"]["upper"])
            assert "{}, {}: {} to {}".format(said.estimate, percent(level), *said[1:]) in page


async def test_what_is_read_off_an_answer_is_read_at_its_level(browser: Browser, service: Service):
    study = await regions(service)
    release = (await made(service, study, QUESTIONS[0]))["id"]
    await browser.log_in("analyse")
    read = "statistic=difference&between=region:north,south"
    page = (await browser.get(f"/dashboard/releases/{release}?{read}&level=0.8")).text
    question = {"between": "region:north,south", "measure": "income", "share": "0.15", "level": "0.8"}
    path = f"/v1/studies/{study}/statistics/difference"
    answer = (await service.call("GET", path, "analyse", params=question)).json()
    assert answer["id"] == release
    shown = within(answer)
    assert f"{shown.estimate} ({shown.lower} to {shown.upper})" in text_of(page)
    assert '<input type="hidden" name="level" value="0.8">' in page
    assert "between=region%3Anorth%2Csouth&amp;level=0.99" in page


async def test_the_steps_of_an_answer_are_read_at_its_level(browser: Browser, service: Service):
    study = await regions(service)
    question = {"statistic": "mean", "measure": "income"}
    first = (await made(service, study, question))["id"]
    second = (await made(service, study, {**question, "share": 0.3}))["id"]
    await browser.log_in("analyse")
    for level in LEVELS:
        page = (await browser.get(f"/dashboard/releases/{second}?level={level}")).text
        assert levels_said(page) == {percent(level)}
        assert f"± of the {percent(level)} interval" in text_of(page)
        for one in (first, second):
            path = f"/v1/releases/{one}?level={level}"
            ends = (await service.call("GET", path, "analyse")).json()["interval"]
            assert f"± {margin((ends['upper'] - ends['lower']) / 2)} for epsilon" in page
    # A step of before other levels were kept: all are at 95 %, and say so.
    await sql(service, "ALTER TABLE release DISABLE TRIGGER USER")
    await sql(service, f"UPDATE release SET kept_ends = NULL WHERE id = '{first}'")
    page = (await browser.get(f"/dashboard/releases/{second}?level=0.8")).text
    assert "± of the 95 % interval" in text_of(page)
    assert "80 % interval" in page


async def test_of_a_large_answer_the_labels_of_the_page_have_the_ends_of_the_level(
    browser: Browser, service: Service, monkeypatch: pytest.MonkeyPatch
):
    study = await regions(service)
    release = (await made(service, study, QUESTIONS[1]))["id"]
    monkeypatch.setattr(listed, "MOST_WHOLE", 1000)
    monkeypatch.setattr("app.dashboard.pages.release.LABELS", 1)
    await browser.log_in("analyse")
    answer = (await service.call("GET", f"/v1/releases/{release}?level=0.99", "analyse")).json()
    for place, (name, other) in enumerate((("north", "south"), ("south", "north"))):
        page = (await browser.get(f"/dashboard/releases/{release}?first={place}&level=0.99")).text
        assert f"Share of the people by bin: {name}" in page
        assert f"Share of the people by bin: {other}" not in page
        bar = answer["groups"][place]["bins"][1]
        said = headline(bar["share"], bar["interval"]["lower"], bar["interval"]["upper"])
        assert "{}, 99 %: {} to {}".format(*said) in page
        assert "level=0.99&amp;first=" in page


async def test_an_answer_that_keeps_no_other_level_says_so_and_shows_its_own(
    browser: Browser, service: Service
):
    study = await regions(service)
    release = (await made(service, study, QUESTIONS[0]))["id"]
    await sql(service, "ALTER TABLE release DISABLE TRIGGER USER")
    await sql(service, "UPDATE release SET kept_ends = NULL")
    await browser.log_in("analyse")
    page = await browser.get(f"/dashboard/releases/{release}?level=0.99")
    assert page.status_code == 409
    assert "before answers kept the ends of their intervals" in text_of(page.text)
    assert levels_said(page.text) == {"95 %"}
    page = await browser.get(f"/dashboard/releases/{release}?level=0.5")
    assert page.status_code == 422
