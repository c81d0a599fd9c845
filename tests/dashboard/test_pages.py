"""What is on the pages: the numbers of the endpoints, one release for two clicks, links that work once."""

import asyncio
import csv
import io
import json
import re
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import asyncpg
import httpx
import pytest

from app.core.errors import BudgetExhausted
from app.dashboard.rendering import because, count, epsilon, moment, number, total
from app.dashboard.requests import PERSON_COOKIE
from app.services.statistics.combining import NOT_COMBINED
from app.services.statistics.crowds import LOCAL, SMALL
from app.services.statistics.drafts import NOT_REPORTED
from tests.api.service import Service
from tests.dashboard.browser import Browser, text_of, within


@pytest.fixture
async def study(service: Service) -> str:
    slug = await service.study(title="How <b>long</b>?", trust=["central", "local", "public"])
    await service.crowd(slug, 40)
    await service.contribute(slug, "alice", value=70, epsilon=1.5)
    return slug


async def test_the_pages_show_the_numbers_of_the_endpoints(admin: Browser, service: Service, study: str):
    made = (await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={})).json()
    await service.api.services.figures.make()
    overview = (await service.call("GET", "/v1/admin/overview", "admin")).json()
    await admin.get("/dashboard")
    text = text_of(admin.page)
    assert f"People {count(overview['subjects'])}" in text
    assert f"{total(overview['epsilon']['spent'])} spent of" in text
    await admin.get(f"/dashboard/studies/{study}")
    shown = within(made)
    spread = within(made["sd"], statistic="sd").estimate
    assert f"{shown.estimate} {shown.lower} to {shown.upper} {spread} 41" in text_of(admin.page)
    assert "<b>long" not in admin.page, "titles are text"
    await admin.get(f"/dashboard/releases/{made['id']}")
    assert f"{shown.estimate} ({shown.lower} to {shown.upper})" in text_of(admin.page)
    assert f"Standard error of the noise {number(made['standard_error'])}" in text_of(admin.page)
    assert "none left out" in text_of(admin.page)
    for charge in made.get("charges", []):
        assert epsilon(charge["epsilon"]) in text_of(admin.page)
    histogram = (await service.call("GET", "/v1/admin/budgets/histogram", "admin")).json()
    await admin.get("/dashboard/budgets")
    for one in histogram["reserved"]["percentiles"]:
        assert f"{one['percent']} % {epsilon(one['epsilon'])}" in text_of(admin.page)


@pytest.mark.parametrize("dimension", [1, 2])
async def test_rounds_of_k_means_are_on_every_page_that_has_releases(
    browser: Browser, service: Service, dimension: int
):
    """They are not one number. In a study of numbers they stand beside means."""
    study = await service.study(dimension=dimension)

    def point(*coordinates: float) -> float | list[float]:
        return coordinates[0] if dimension == 1 else list(coordinates)

    people = [
        {"subject": f"p{n}", "value": point(20 + 60 * (n % 2), 50), "epsilon": 4, "trust": "central"}
        for n in range(200)
    ]
    await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=people)
    centres = [[30, 40][:dimension], [70, 60][:dimension]]
    wish = {"protocol": "kmeans", "rounds": 2, "epsilon": 4, "centres": centres}
    began = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=wish)
    path = f"/v1/sessions/{began.json()['id']}"
    closed = await service.call("POST", f"{path}/close-round", "admin", json={"round": 1})
    step = closed.json()["path"][0]
    asked = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.01})
    assert asked.status_code == 201
    ledger = (await service.call("GET", "/v1/admin/releases", "admin")).json()["items"]
    assert [one["estimate"] is None for one in ledger] == [dimension > 1, True]
    published = (await service.call("GET", f"/v1/releases/{step['release']}", "admin")).json()

    for role, private in (("admin", ["", "/ledger", "/ledger/charges", "/budgets"]), ("analyse", [])):
        await browser.log_in(role)
        for page in private:
            assert (await browser.get(f"/dashboard{page}")).status_code == 200, page
        assert (await browser.get(f"/dashboard/studies/{study}")).status_code == 200
        text = text_of(browser.page)
        assert "round 1 of a session" in text
        assert "Preview the price" in text
        assert (await browser.get(f"/dashboard/sessions/{closed.json()['id']}")).status_code == 200
        assert "The centers move" in text_of(browser.page)
        for center in step["centres"]:
            assert "; ".join(number(one) for one in center) in text_of(browser.page)
        assert (await browser.get(f"/dashboard/releases/{step['release']}")).status_code == 200
        for people_there, sums in zip(published["counts"], published["sums"], strict=True):
            shown = f"{number(people_there)} {'; '.join(number(one) for one in sums)}"
            assert shown in text_of(browser.page)


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"protocol": "quantile", "quantile": 0.5}, ("Looking for the median", "It lies between 0 and 100")),
        (
            {"protocol": "quantile", "quantile": 0.9},
            ("the 0.9 quantile", "is off by at most 90 %"),
        ),
        ({"protocol": "minimum"}, ("Looking for the minimum", "There are people at or below 100")),
        ({"protocol": "maximum"}, ("Looking for the maximum", "There are people at or above 0")),
    ],
)
async def test_a_finished_search_shows_its_estimate_with_an_interval_that_holds(
    admin: Browser, service: Service, study: str, wish: dict[str, Any], told: tuple[str, ...]
):
    wish = {"epsilon": 1, "participants": 1000, "rounds": 2} | wish
    made = (await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=wish)).json()
    await service.call("POST", f"/v1/sessions/{made['id']}/finish", "admin")
    await admin.get(f"/dashboard/studies/{study}")
    assert "0 of 2 closed" in text_of(admin.page)
    await admin.get(f"/dashboard/sessions/{made['id']}")
    assert "Rounds closed 0 of 2" in " ".join(text_of(admin.page).split())
    assert "Answers in this round" not in text_of(admin.page), "none is open"
    for words in ("Estimate 50 0 to 100", *told):
        assert words in text_of(admin.page)


async def test_the_estimate_of_a_search_has_no_more_digits_than_its_interval(
    admin: Browser, service: Service
):
    study = await service.study(lower=0, upper=123.4567)
    wish = {"protocol": "minimum", "epsilon": 1, "participants": 1000, "rounds": 2}
    made = (await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=wish)).json()
    await service.call("POST", f"/v1/sessions/{made['id']}/finish", "admin")
    await admin.get(f"/dashboard/sessions/{made['id']}")
    assert "Estimate 62 0 to 124" in text_of(admin.page)


@pytest.mark.parametrize("protocol", ["minimum", "maximum"])
async def test_a_round_with_too_few_answers_narrows_nothing(
    admin: Browser, service: Service, study: str, protocol: str
):
    wish = {"protocol": protocol, "epsilon": 1, "participants": 100, "rounds": 3}
    made = (await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=wish)).json()
    await service.call("POST", f"/v1/sessions/{made['id']}/close-round", "admin", json={"round": 1})
    asked = (await service.call("GET", f"/v1/sessions/{made['id']}/round", "contribute")).json()
    assert (asked["round"], asked["threshold_value"]) == (2, 50)
    await admin.get(f"/dashboard/sessions/{made['id']}")
    assert "Left of the range 0 to 100" in text_of(admin.page)
    assert "too few answers" in text_of(admin.page)


async def test_two_clicks_make_one_release(browser: Browser, service: Service, study: str):
    await browser.log_in("analyse")
    await browser.get(f"/dashboard/studies/{study}")
    found = re.search(r'name="key" value="([^"]+)"', browser.page)
    assert found is not None
    page = browser.page
    ends = []
    for _ in range(2):
        browser.page = page
        done = await browser.post(f"/dashboard/studies/{study}/releases", {"key": found[1]})
        assert done.status_code == 303
        ends.append(done.headers["location"])
    assert ends[0] == ends[1]
    assert (await service.rows())["release"] == 1


async def test_a_question_that_cannot_be_answered_is_explained_on_the_page(browser: Browser, study: str):
    await browser.log_in("analyse")
    wrong = await browser.get(f"/dashboard/studies/{study}?share=2&estimator=nobody")
    assert wrong.status_code == 422
    assert "must be above 0 and at most 1" in text_of(browser.page)
    assert (await browser.get(f"/dashboard/studies/{study}?cursor=%00")).status_code == 422
    assert (await browser.get(f"/dashboard/studies/{study}?share=1&share=1")).status_code == 422


async def test_whoever_has_nothing_left_is_told_so(browser: Browser, service: Service):
    study = await service.study(default_share=1)
    await service.contribute(study, "alice", epsilon=0.5)
    await browser.log_in("analyse")
    for status in (303, 409):
        await browser.get(f"/dashboard/studies/{study}?estimator=uniform")
        page = browser.page
        browser.page = page
        key = "6fd1bb7c-6b10-4d6d-9a43-4b9ea2a5f5c" + ("5" if status == 303 else "6")
        estimator = "uniform" if status == 303 else "adpm"
        done = await browser.post(
            f"/dashboard/studies/{study}/releases", {"key": key, "estimator": estimator}
        )
        assert done.status_code == status
    assert "can take part" in text_of(browser.page)


async def test_a_link_works_once_and_its_page_ends_with_its_token(
    browser: Browser, service: Service, study: str
):
    token = await service.token("contribute")
    made = await service.call("POST", "/v1/subjects/alice/links", token)
    assert made.headers["cache-control"] == "no-store"
    path = made.json()["url"].removeprefix("http://test")
    for _ in range(2):
        assert (await browser.get(path)).status_code == 200, "to look does not use it up"
    assert (await browser.post(path)).headers["location"] == "/dashboard/person"
    assert (await browser.get("/dashboard/person")).status_code == 200
    text = text_of(browser.page)
    assert "How <b>long</b>?" in text
    assert "alice" not in text
    other = Browser(service)
    await other.get(path)
    assert (await other.post(path)).status_code == 404
    await other.client.aclose()
    withdrawn = await browser.post("/dashboard/person/withdraw", {"study": study})
    assert "was deleted" in text_of(withdrawn.text)
    assert (await browser.post("/dashboard/person/withdraw", {"study": "none"})).status_code == 404
    connection = await asyncpg.connect(service.database_url)
    await connection.execute("UPDATE token SET revoked_at = created_at WHERE name = 'test contribute'")
    await connection.close()
    closed = await browser.get("/dashboard/person")
    assert (closed.status_code, "ask for a new link" in text_of(closed.text)) == (401, True)
    assert "Log in" not in closed.text, "people have no token"


async def test_a_link_shows_no_more_than_its_token_may(browser: Browser, service: Service, study: str):
    other = await service.study(title="Another one")
    await service.contribute(other, "alice")
    limited = await service.token("contribute", studies=frozenset({other}))
    made = await service.call("POST", "/v1/subjects/alice/links", limited)
    path = made.json()["url"].removeprefix("http://test")
    await browser.get(path)
    await browser.post(path)
    await browser.get("/dashboard/person")
    assert "Another one" in text_of(browser.page)
    assert "long" not in text_of(browser.page)
    assert (await browser.post("/dashboard/person/withdraw", {"study": study})).status_code == 403


async def test_a_person_reads_their_statement_in_their_language(service: Service, study: str) -> None:
    browser = Browser(service)
    browser.client.headers["Accept-Language"] = "de-DE"
    grant = {"epsilon": 10, "gaussian": {"epsilon": 1, "delta": 1e-5}, "reason": "asked"}
    assert (await service.call("PUT", "/v1/admin/subjects/alice/budget", "admin", json=grant)).is_success
    path = (await service.call("POST", "/v1/subjects/alice/links", "admin")).json()["url"]
    await browser.get(path.removeprefix("http://test"))
    assert "Dieser Link zeigt, was Sie gegeben haben" in text_of(browser.page)
    await browser.post(path.removeprefix("http://test"))
    await browser.get("/dashboard/person")
    assert '<html lang="de">' in browser.page
    german = text_of(browser.page)
    assert "Lebensbudget 10" in german
    assert "bei Delta 0,00001" in german
    assert "Ihre Antwort ist hier gespeichert" in german
    assert re.search(r"Seit \d\d\.\d\d\.\d{4}\.", german)
    assert re.search(r"Offen bis \d\d\.\d\d\.\d{4}, \d\d:\d\d:\d\d", german)
    await browser.get("/dashboard/person?language=en")
    assert "Your answer is stored here" in text_of(browser.page)
    assert re.search(r"Since [A-Z][a-z]{2} \d{1,2}, \d{4}\.", text_of(browser.page))
    await browser.client.aclose()


async def test_an_admin_does_not_act_for_a_person(admin: Browser, service: Service, study: str) -> None:
    browser = Browser(service)
    made = await service.call("POST", "/v1/subjects/alice/links", "admin")
    path = made.json()["url"].removeprefix("http://test")
    await admin.get(path)
    refused = await admin.post(path)
    assert refused.status_code == 403
    assert PERSON_COOKIE not in admin.cookies()
    await browser.get(path)
    assert (await browser.post(path)).headers["location"] == "/dashboard/person", "the link was not used up"
    await browser.get("/dashboard/person")
    assert "How <b>long</b>?" in text_of(browser.page)
    assert "Delete my answer" not in browser.page
    assert "To withdraw an answer, ask the app in which you gave it" in text_of(browser.page)
    before = await service.rows()
    assert (await browser.post("/dashboard/person/withdraw", {"study": study})).status_code == 403
    assert await service.rows() == before
    connection = await asyncpg.connect(service.database_url)
    await browser.client.aclose()
    actions = await connection.fetch("SELECT action FROM audit WHERE action LIKE 'link.%' ORDER BY id")
    await connection.close()
    assert [row["action"] for row in actions] == ["link.create", "link.open"]


async def test_an_expired_link_opens_nothing(browser: Browser, service: Service, study: str):
    made = await service.call("POST", "/v1/subjects/alice/links", "contribute")
    path = made.json()["url"].removeprefix("http://test")
    connection = await asyncpg.connect(service.database_url)
    await connection.execute("UPDATE link SET expires_at = created_at")
    await connection.close()
    await browser.get(path)
    browser.client.headers["Accept-Language"] = "de"
    refused = await browser.post(path)
    assert (refused.status_code, "ist abgelaufen. Bitten Sie um" in text_of(refused.text)) == (404, True)
    assert "Log in" not in refused.text, "people have no token"
    assert PERSON_COOKIE not in browser.cookies()


async def test_an_address_without_a_page_is_said_by_a_page(admin: Browser, study: str):
    for path in ("nothing", f"studies/{study}/invitations"):
        response = await admin.get(f"/dashboard/{path}")
        assert (response.status_code, "There is no page" in text_of(admin.page)) == (404, True), path
        assert "Audit trail" in text_of(admin.page), "the way on"
    admin.client.cookies.clear()
    assert "Log in" in text_of((await admin.get("/dashboard/nothing")).text)


async def test_a_form_that_no_page_takes_changes_nothing_and_says_so(admin: Browser, study: str):
    for path in ("nothing", f"studies/{study}"):
        response = await admin.post(f"/dashboard/{path}", {"title": "Why?"})
        said = text_of(response.text)
        assert (response.status_code, "takes a form. Nothing was changed." in said) == (404, True), path
        assert "Audit trail" in said, "the way on"


async def test_links_and_publications_that_lead_nowhere_are_answered_with_a_page_for_people(admin: Browser):
    for path in ("/take", "/take/", "/take/a/b", "/p", "/p/", "/p/a/b"):
        await admin.get(path)
        for response in (await admin.get(path), await admin.post(path, {"value": "1"})):
            said = (response.status_code, "There is nothing here" in text_of(response.text))
            assert said == (404, True), path
    response = await admin.post("/p/wrong", {"value": "1"})
    assert (response.status_code, "nothing was published at it" in text_of(response.text)) == (404, True)


async def test_who_is_logged_in_goes_on_from_an_address_that_is_refused(admin: Browser):
    for query in ("state=open&state=open", "search=%00", "search=%ff"):
        assert (await admin.get(f"/dashboard/studies?{query}")).status_code == 422, query
        assert "Audit trail" in text_of(admin.page), "the way on"
        assert "Log in" not in text_of(admin.page)
    admin.client.cookies.clear()
    assert (
        (await admin.get("/dashboard/studies?state=open&state=open")).headers["Location"].endswith("/login")
    )


async def test_an_address_with_a_slash_at_the_end_leads_to_the_page_without(admin: Browser, study: str):
    for path in (f"/dashboard/studies/{study}", "/take/wrong", "/p/wrong"):
        response = await admin.get(f"{path}/?level=0.8")
        assert (response.status_code, response.headers["Location"]) == (307, f"{path}?level=0.8")
    assert (await admin.get(f"/dashboard/studies/{study}//")).status_code == 307


async def test_a_single_fault_of_an_address_is_said_once(admin: Browser):
    response = await admin.get("/dashboard/tokens?state=none")
    assert response.status_code == 422
    assert text_of(response.text).count("must be one of valid, expired, revoked") == 1


async def test_no_page_leads_where_a_host_header_says(admin: Browser, service: Service):
    elsewhere = {"Host": "dither.example.org", "Origin": "http://dither.example.org"}
    await admin.get("/dashboard/budgets")
    shown = await admin.post("/dashboard/budgets/link", {"subject": "alice"}, headers=elsewhere)
    assert shown.status_code == 422
    assert "DITHER_PUBLIC_URL" in text_of(shown.text)
    shown = await admin.client.get("/dashboard", headers=elsewhere)
    assert shown.status_code == 200
    assert "example.org" not in shown.text
    assert "DITHER_PUBLIC_URL" in shown.text, "the first steps name the address"


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.long)])
async def test_the_first_visit_gets_pages_whose_figures_follow(
    admin: Browser, study: str, monkeypatch, slow: bool
):
    async def never(self: object) -> None:
        if slow:
            await asyncio.sleep(60)

    with monkeypatch.context() as patch:
        patch.setattr("app.services.admin.figures.Figures.make", never)
        for path, there in (("", study), ("/studies", study), ("/budgets", "External id")):
            started = time.monotonic()
            response = await admin.get(f"/dashboard{path}")
            assert response.status_code == 200
            assert time.monotonic() - started < 30
            assert 'http-equiv="refresh"' in response.text
            assert "this page loads itself again" in text_of(admin.page)
            assert there in text_of(admin.page)
        assert (await admin.get(f"/dashboard/studies/{study}")).status_code == 200
        await admin.service.api.services.figures.close()
    for path in ("", "/studies", "/budgets"):
        # A page loads itself again until the figures are there, as often as a slow machine needs.
        async with asyncio.timeout(120):
            while 'http-equiv="refresh"' in (await admin.get(f"/dashboard{path}")).text:
                pass


async def test_every_page_says_which_version_it_is_and_where_the_api_is_described(browser: Browser):
    await browser.get("/dashboard/login")
    assert f"Dither {browser.service.app.version}" in text_of(browser.page)
    link = re.search(r'<footer>.*href="([^"]+)"', browser.page)
    assert link is not None
    assert (await browser.client.get(link[1])).status_code == 200


async def test_one_person_is_no_people(admin: Browser, service: Service):
    study = await service.study()
    await service.crowd(study, 1)
    asked = {"share": 0.1, "allow_worse": True}
    assert (
        await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=asked)
    ).status_code == 201
    await admin.get(f"/dashboard/studies/{study}")
    assert "The mean of 1 person is" in text_of(admin.page)


@pytest.mark.parametrize("most", [10, 20])
async def test_what_is_free_is_said_where_more_may_be_offered_than_is_charged(
    admin: Browser, service: Service, monkeypatch: pytest.MonkeyPatch, most: int
):
    async def point(*_: object) -> int:
        return 19_699_903

    monkeypatch.setattr(service.api.services.releases, "saturation", point)
    study = await service.study(epsilon={"min": 0.001, "max": most})
    await admin.get(f"/dashboard/studies/{study}")
    said = text_of(admin.page).partition("Privacy for free")[2]
    assert ("Everything that is offered is used." in said) == (most == 10)
    assert ("up to 19.699903 all of it 20 19.699903" in said) == (most == 20)


async def test_the_answers_stand_before_the_price_of_new_ones(admin: Browser, service: Service, study: str):
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={})
    await admin.get(f"/dashboard/studies/{study}")
    sections = ("current", "plan-title", "collect-title", "releases", "about", "saturation", "profile")
    places = [admin.page.index(f'<h2 id="{one}">') for one in sections]
    assert places == sorted(places)
    folded = re.findall(r'<details class="card fold"\s*>\s*<summary><h2 id="(\w+)">', admin.page)
    assert folded == ["releases", "about", "saturation", "profile"]
    assert "The mean of 41 people is" in text_of(admin.page)


async def test_the_profile_of_nobody_says_when_nobody_was_there(admin: Browser, service: Service):
    """Figures are a little older than the page: people who came since then are not in them."""
    study = await service.study()
    await admin.get(f"/dashboard/studies/{study}")
    assert re.search(r"No person was in this study at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.", text_of(admin.page))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (epsilon(1.5), "1.5"),
        (epsilon(12_345.678), "12,345.678"),
        (epsilon(0.000001), "0.000001"),
        (epsilon(0), "0"),
        (total(949.268972), "949.3"),
        (total(0.25), "0.25"),
        (number(1234.5678), "1,235"),
        (number(0.00012345), "0.000123"),
        (number(50.0), "50"),
        (number(-3.14159), "-3.14"),
        (number(0), "0"),
        (number(1.5e-9), "1.5e-09"),
    ],
)
def test_numbers_are_written_as_people_read_them(shown: str, expected: str):
    assert shown == expected


def test_a_moment_is_machine_readable_too():
    assert moment(datetime(2030, 1, 31, 12, tzinfo=UTC)) == (
        '<time datetime="2030-01-31T12:00:00+00:00">2030-01-31 12:00:00</time>'
    )


async def test_a_quota_set_on_the_page_holds_on_the_page(browser: Browser, service: Service):
    study = await service.study(default_share=0.25)
    await service.contribute(study, "alice", epsilon=1)
    await browser.log_in("admin")
    await browser.get("/dashboard/tokens")
    tokens = (await service.call("GET", "/v1/admin/tokens", "admin")).json()["items"]
    analyst = next(one for one in tokens if one["role"] == "analyse")
    path = f"/dashboard/tokens/{analyst['id']}/quota"
    refused = await browser.post(path, {"share": "2", "period_seconds": "3600"})
    assert refused.status_code == 422
    await browser.get("/dashboard/tokens")
    assert (await browser.post(path, {"share": "0.25", "period_seconds": "3600"})).status_code == 303
    await browser.get("/dashboard/tokens")
    assert "0.25 in an hour" in text_of(browser.page)

    await browser.log_in("analyse")
    for key, status in (("5", 303), ("6", 429)):
        await browser.get(f"/dashboard/studies/{study}")
        made = await browser.post(
            f"/dashboard/studies/{study}/releases",
            {"key": "6fd1bb7c-6b10-4d6d-9a43-4b9ea2a5f5c" + key},
        )
        assert made.status_code == status, text_of(browser.page)
    assert (await service.rows())["release"] == 1


async def test_a_person_reads_what_their_device_sent_in_each_session(browser: Browser, service: Service):
    study = await service.study(trust=["local"])
    wishes: dict[str, dict[str, object]] = {
        "maximum": {"rounds": 2, "epsilon": 2, "participants": 10, "mode": "budget_split"},
        "kmeans": {"rounds": 2, "epsilon": 3, "centres": [[20], [80]]},
    }
    for protocol, wish in wishes.items():
        made = await service.call(
            "POST", f"/v1/studies/{study}/sessions", "admin", json={"protocol": protocol, **wish}
        )
        assert made.status_code == 201, made.text
        answer: dict[str, object] = {"subject": "alice", "round": 1, "answer": 1}
        path = f"/v1/sessions/{made.json()['id']}/answers"
        if protocol == "kmeans":
            answer["report"] = [5]
        assert (await service.call("POST", path, "contribute", json=answer)).status_code == 201
        link = await service.call("POST", "/v1/subjects/alice/links", "contribute")
        address = link.json()["url"].removeprefix("http://test")
        await browser.get(address)
        await browser.post(address)
        await browser.get("/dashboard/person")
        text = text_of(browser.page)
        assert "answered yes or no in a session" in text
        assert ("noisy copy of your value" in text) is (protocol == "kmeans")


async def test_figures_of_one_study_say_that_sessions_are_not_in_them(admin: Browser, study: str):
    for query, said in (("", False), (f"?study={study}", True)):
        await admin.get(f"/dashboard/budgets{query}")
        assert ("Live contributions to this study" in text_of(admin.page)) is said


async def test_the_page_of_a_study_goes_on_to_earlier_releases(
    admin: Browser, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.dashboard.pages.studies.ROWS", 1)
    monkeypatch.setattr("app.dashboard.steps.MOST", 1)
    study = await service.study()
    await service.crowd(study)
    made = []
    for share in (0.1, 0.2):
        response = await service.call(
            "POST", f"/v1/studies/{study}/releases", "analyse", json={"share": share}
        )
        made.append(response.json()["id"])
    first = (await admin.get(f"/dashboard/studies/{study}")).text
    assert made[1] in first
    assert made[0] not in first
    link = re.search(r'href="([^"]*cursor=[^"]*)"', first)
    assert link is not None
    second = await admin.get(f"/dashboard/studies/{study}" + link[1].replace("&amp;", "&"))
    assert second.status_code == 200
    assert made[0] in second.text


async def test_the_audit_trail_says_who_changed_what_and_why(admin: Browser, service: Service, study: str):
    person = await service.call(
        "PUT", "/v1/admin/subjects/alice/budget", "admin", json={"epsilon": 8.5, "reason": "asked <twice>"}
    )
    assert person.status_code == 200
    made = await service.call("POST", "/v1/admin/tokens", "admin", json={"name": "app", "role": "analyse"})
    token = made.json()["id"]
    quota = {"share": 0.25, "period_seconds": 3600}
    await service.call("PUT", f"/v1/admin/tokens/{token}/quota", "admin", json=quota)
    found = (await service.call("GET", "/v1/admin/audit?limit=3", "admin")).json()
    assert [one["action"] for one in found["items"]] == ["token.quota", "token.create", "budget.set"]
    limited, created, changed = found["items"]
    assert (limited["target"], limited["target_name"], limited["detail"]) == (token, "app", quota)
    assert created["actor_name"] == changed["actor_name"] is not None
    assert changed["detail"] == {"epsilon": 8.5, "reason": "asked <twice>"}
    older = (await service.call("GET", f"/v1/admin/audit?cursor={found['next_cursor']}", "admin")).json()
    assert {"study.create"} <= {one["action"] for one in older["items"]}
    for query, entries in (
        ({"action": "budget.set"}, 1),
        ({"target": study}, 1),
        ({"target": changed["target"]}, 1),
        ({"target": token, "action": "token.quota"}, 1),
        ({"target": "nothing"}, 0),
    ):
        some = (await service.call("GET", "/v1/admin/audit", "admin", params=query)).json()["items"]
        assert len(some) == entries, query
        await admin.get(f"/dashboard/audit?{urlencode(query)}")
        assert admin.page.count('<th scope="row">') == entries
    await admin.get("/dashboard/audit")
    text = text_of(admin.page)
    assert "epsilon 8.5" in text
    assert "asked <twice>" in text
    assert "share 0.25, period seconds 3,600" in text
    assert f'href="/dashboard/studies/{study}"' in admin.page


async def test_an_admin_makes_a_study_and_another_one_like_it(admin: Browser, service: Service):
    form = {
        "slug": "sleep",
        "title": "How long do you sleep?",
        "series": "nights",
        "lower": "0.25",
        "upper": "14",
        "choices": "",
        "relation": "replace_one",
        "trust_central": "on",
        "trust_local": "on",
        "epsilon_min": "0.05",
        "epsilon_max": "3",
        "epsilons": "",
        "default_share": "0.2",
        "tilt": "0.05",
        "dimension": "1",
        "local_mechanism": "",
        "delta": "",
    }
    await admin.get("/dashboard/new-study")
    refused = await admin.post("/dashboard/new-study", {**form, "upper": "0"})
    assert refused.status_code == 422
    assert "must be above lower" in text_of(admin.page)
    assert 'value="How long do you sleep?"' in admin.page
    made = await admin.post("/dashboard/new-study", form)
    assert (made.status_code, made.headers["location"]) == (303, "/dashboard/studies/sleep")
    study = (await service.call("GET", "/v1/studies/sleep", "admin")).json()
    assert (study["lower"], study["upper"], study["trust"]) == (0.25, 14, ["central", "local"])
    assert (study["epsilon"], study["default_share"]) == ({"min": 0.05, "max": 3}, 0.2)
    taken = await admin.post("/dashboard/new-study", {**form, "upper": "15"})
    assert taken.status_code == 409

    await admin.get("/dashboard/studies/sleep")
    assert 'href="/dashboard/new-study?like=sleep"' in admin.page
    await admin.get("/dashboard/new-study?like=sleep")
    fields = dict(re.findall(r'<input id="(\w+)" name="\w+" value="([^"]*)"', admin.page))
    wanted = {name: form[name] for name in fields if name != "slug"}
    assert fields == {"slug": "", **wanted}
    assert admin.page.count(" checked") == 4

    listed = {**form, "slug": "dreams", "epsilons": "2, 0.5,1"}
    refused = await admin.post("/dashboard/new-study", listed)
    assert refused.status_code == 422
    assert "a list of epsilons or a range" in text_of(admin.page)
    listed |= {"epsilon_min": "", "epsilon_max": ""}
    assert (await admin.post("/dashboard/new-study", listed)).status_code == 303
    await admin.get("/dashboard/studies/dreams")
    assert "Personal epsilons 0.5, 1, 2 " in " ".join(text_of(admin.page).split()) + " "
    await admin.get("/dashboard/new-study?like=dreams")
    fields = dict(re.findall(r'<input id="(\w+)" name="\w+" value="([^"]*)"', admin.page))
    assert (fields["epsilon_min"], fields["epsilon_max"], fields["epsilons"]) == ("", "", "0.5, 1, 2")


async def test_a_person_is_found_by_digest_and_who_was_never_here_is_unknown(
    admin: Browser, service: Service, study: str
):
    digest = service.api.services.subject_key.digest("alice").hex()
    await admin.get("/dashboard/budgets")
    for subject, unknown in (("alice", False), (digest, False), ("nobody", True), ("0" * 64, True)):
        response = await admin.post("/dashboard/budgets/find", {"subject": subject})
        assert response.status_code == 200
        assert ("This person is unknown" in text_of(admin.page)) is unknown, subject
        assert (f"/dashboard/studies/{study}" in admin.page) is not unknown
    await admin.post("/dashboard/budgets/find", {"subject": digest})
    wish = {"subject": digest, "epsilon": "1.25", "reason": "too <much>"}
    refused = await admin.post("/dashboard/budgets/lifetime", wish)
    assert refused.status_code == 409
    assert "At least 1.5, which is reserved" in text_of(admin.page)
    assert 'value="1.25"' in admin.page
    assert 'value="too &lt;much&gt;"' in admin.page
    assert (await admin.post("/dashboard/budgets/lifetime", {**wish, "epsilon": "7"})).status_code == 200
    statement = (await service.call("GET", "/v1/subjects/alice/budget", "admin")).json()
    assert statement["epsilon"]["total"] == 7


async def test_a_token_is_rotated_and_one_for_an_unknown_study_is_refused(
    admin: Browser, service: Service, study: str
):
    await admin.get("/dashboard/tokens")
    form = {"name": "app", "role": "analyse", "studies": f"{study}, nothing-like-it"}
    refused = await admin.post("/dashboard/tokens", form)
    assert refused.status_code == 422
    assert "there is no study nothing-like-it" in text_of(admin.page)
    await admin.post("/dashboard/tokens", {**form, "studies": study})
    first = re.search(r"dither_[\w-]{43}", admin.page)
    assert first is not None
    tokens = (await service.call("GET", "/v1/admin/tokens", "admin")).json()["items"]
    token = next(one["id"] for one in tokens if one["name"] == "app")
    assert (await service.call("GET", f"/v1/studies/{study}", first[0])).status_code == 200
    await admin.post(f"/dashboard/tokens/{token}/rotate")
    second = re.search(r"dither_[\w-]{43}", admin.page)
    assert second is not None
    assert (await service.call("GET", f"/v1/studies/{study}", first[0])).status_code == 401
    assert (await service.call("GET", f"/v1/studies/{study}", second[0])).status_code == 200
    await admin.get("/dashboard/tokens")
    assert f'href="/dashboard/audit?target={token}"' in admin.page
    assert re.search(r"<td data-label=\"Last used\">20\d\d-\d\d-\d\d</td>", admin.page)


@pytest.mark.long
async def test_the_address_of_the_service_says_what_it_is(service):
    answer = await service.call("GET", "/", None)
    assert answer.status_code == 200
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    for address in ("/dashboard", "/openapi.json", "/health/ready"):
        assert f'href="{address}"' in answer.text
        assert (await service.call("GET", address, None)).status_code in (200, 303)


async def test_releases_studies_and_budgets_come_as_csv(admin: Browser, service: Service, study: str):
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={})
    files = {}
    for name in ("releases", "studies", "budgets"):
        response = await admin.get(f"/dashboard/export/{name}")
        assert (response.status_code, response.headers["content-type"]) == (200, "text/csv; charset=utf-8")
        assert response.headers["content-disposition"] == f'attachment; filename="{name}.csv"'
        files[name] = list(csv.DictReader(io.StringIO(response.text)))
        assert all(None not in line and None not in line.values() for line in files[name])
    (release,), (line,) = files["releases"], files["studies"]
    kept = (await service.call("GET", f"/v1/releases/{release['release']}", "admin")).json()
    assert float(release["estimate"]) == kept["estimate"]
    assert (line["slug"], line["title"], line["trust"]) == (study, "How <b>long</b>?", "central;local;public")
    assert float(line["epsilon.max"]) == 10
    digest = service.api.services.subject_key.digest("alice").hex()
    alice = next(one for one in files["budgets"] if one["subject"] == digest)
    assert (float(alice["epsilon.reserved"]), len(files["budgets"])) == (1.5, 41)
    assert (await admin.get("/dashboard/export/tokens")).status_code == 404


async def test_every_kind_of_study_is_a_line_of_the_export(browser: Browser, service: Service):
    await browser.log_in("admin")
    kinds: dict[str, dict[str, Any]] = {
        "tiers": {"lower": 0, "upper": 1, "epsilons": [0.25, 1, 2]},
        "poll": {"choices": ["very good", "so so", "bad"]},
        "several": {"measures": {"age": {"lower": 0, "upper": 99}, "party": {"choices": ["red", "green"]}}},
        "labels": {"lower": 0, "upper": 1, "attributes": {"region": ["far north", "south"]}},
    }
    for slug, fields in kinds.items():
        await service.call("POST", "/v1/studies", "admin", json={"slug": slug, **fields})
    export = await browser.get("/dashboard/export/studies")
    lines = {line["slug"]: line for line in csv.DictReader(io.StringIO(export.text))}
    assert set(kinds) <= set(lines)
    assert lines["tiers"]["epsilons"] == "0.25;1.0;2.0"
    assert lines["poll"]["choices"] == "very good;so so;bad"
    assert json.loads(lines["several"]["measures"])["party"]["choices"] == ["red", "green"]
    assert json.loads(lines["labels"]["attributes"]) == {"region": ["far north", "south"]}


async def test_an_answer_that_is_no_gain_is_refused_on_the_page_and_can_be_insisted_on(
    browser: Browser, service: Service, study: str
):
    await browser.log_in("analyse")
    book = {"subject": "pat", "value": 90, "trust": "public"}
    assert (
        await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=book)
    ).is_success

    async def ask(**fields: str) -> httpx.Response:
        page = (await browser.get(f"/dashboard/studies/{study}")).text
        key = re.findall(r'name="key" value="([^"]+)"', page)[0]
        return await browser.post(
            f"/dashboard/studies/{study}/releases",
            {"key": key, "share": "1", "estimator": "uniform", **fields},
        )

    assert (await ask()).status_code == 303
    refused = await ask(estimator="adpm")
    assert refused.status_code == 409
    assert "people cannot pay any more" in text_of(refused.text)
    assert 'name="allow_worse"' in refused.text
    assert "or leaves most people out" in text_of(refused.text)
    assert (await ask(estimator="adpm", allow_worse="1")).status_code == 303
    page = text_of((await browser.get(f"/dashboard/studies/{study}")).text)
    assert "42 41 left out: their budget in this study is exhausted" in page


@pytest.mark.refuses
async def test_an_answer_that_will_say_nothing_is_refused_on_the_page_and_can_be_insisted_on(
    analyst: Browser, service: Service
):
    study = await service.study()
    await service.crowd(study, 3)
    shown = await analyst.get(f"/dashboard/studies/{study}?share=0.1")
    assert "is refused: the answer would say nothing" in text_of(shown.text)
    assert "no gain" not in text_of(shown.text)
    key = re.findall(r'name="key" value="([^"]+)"', shown.text)[0]
    asked = {"key": key, "share": "0.1"}
    refused = await analyst.post(f"/dashboard/studies/{study}/releases", asked)
    assert refused.status_code == 409
    assert "Make this answer although it will say nothing" in text_of(refused.text)
    made = await analyst.post(f"/dashboard/studies/{study}/releases", {**asked, "allow_worse": "1"})
    assert made.status_code == 303


async def test_who_is_in_no_answer_is_not_put_down_to_budgets(admin: Browser, service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    path = f"/v1/studies/{study}"
    own = {"share": 0.2, "fresh": True}
    for question in (own, own):
        made = await service.call("POST", f"{path}/releases", "analyse", json=question)
        assert made.status_code == 201, made.text
    await service.contribute(study, "later")
    made = await service.call("POST", f"{path}/releases", "analyse", json={"statistic": "histogram"})
    assert made.json()["people"] == 101, made.text
    combined = (await service.call("GET", f"{path}/statistics/mean", "analyse")).json()
    assert (combined["people_left_out"], combined["left_out_because"]) == (1, "in_no_answer")
    await admin.get(f"/dashboard/releases/{combined['id']}")
    text = text_of(admin.page)
    assert "101, 1 left out: they are in none of the answers that it combines" in text
    assert "exhausted" not in text


@pytest.mark.parametrize("code", [BudgetExhausted.code, NOT_COMBINED, NOT_REPORTED, SMALL, LOCAL])
def test_every_reason_to_leave_people_out_has_words(code: str) -> None:
    assert because(code) != code.replace("_", " ")


async def test_the_sizing_page_answers_what_is_left_out(browser: Browser):
    await browser.log_in("analyse")
    empty = await browser.get("/dashboard/size")
    assert "What it takes" not in empty.text
    asked = await browser.get("/dashboard/size?lower=0&upper=120&error=1&epsilon=0.5")
    assert "people, with optimal" in text_of(asked.text)
    assert "The other estimators" in asked.text
    none = await browser.get("/dashboard/size?lower=0&upper=120&error=1&epsilon=0.5&people=100")
    assert "No share is enough" in text_of(none.text)
    one = await browser.get("/dashboard/size?lower=0&upper=1&error=1&epsilon=1&share=0.1")
    assert "1 person, with" in text_of(one.text)
    comma = await browser.get("/dashboard/size?lower=0&upper=120&error=0,5&epsilon=0.5")
    assert "error must be a number without commas: a point stands before decimals" in text_of(comma.text)
    two = await browser.get("/dashboard/size?lower=0&upper=120&epsilon=0.5&people=1.000")
    assert two.status_code == 422
    assert "people 1.000 may mean 1 or 1000: write it like that" in text_of(two.text)
    bad = await browser.get("/dashboard/size?lower=0&upper=-1&error=1&epsilon=0.5")
    assert bad.status_code == 422
    assert "upper must be above lower" in text_of(bad.text)


async def test_an_analyst_asks_for_a_mean_over_a_range_that_is_found(browser: Browser, service: Service):
    study = await service.study(upper=10_000, default_share=0.4, attributes={"region": ["north", "south"]})
    people = [
        {
            "subject": f"p{n}",
            "value": n % 60,
            "epsilon": 4,
            "trust": "central",
            "attributes": {"region": where},
        }
        for n, where in enumerate(["north", "south"] * 150)
    ]
    await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=people)
    await browser.log_in("analyse")
    path = f"/dashboard/studies/{study}"
    planned = await browser.get(f"{path}?range=found")
    assert "where a tenth of it is found" in text_of(planned.text)
    compared = {"statistic": "difference", "between": "region:north,south"}
    for question in ({}, compared):
        key = re.findall(r'name="key" value="([^"]+)"', (await browser.get(path)).text)[0]
        made = await browser.post(f"{path}/releases", {"key": key, "range": "found", **question})
        assert made.status_code == 303, text_of(made.text)
        page = (await browser.get(made.headers["location"])).text
        assert "moved into the range that was found" in text_of(page)
        assert "count as its nearer end" in text_of(page)
    assert "outside at most" in text_of(page)
    assert "less" in text_of(page)
    assert "The current answer" not in text_of((await browser.get(path)).text), "it is not of the values"


async def test_an_analyst_asks_for_the_mean_of_every_coordinate(browser: Browser, service: Service):
    study = await service.study(
        dimension=2, default_share=0.5, attributes={"region": ["north", "south", "west"]}
    )
    regions = [{"region": ("north", "south")[n % 2]} for n in range(300)]
    people = [
        {"subject": f"p{n}", "value": [20, 70], "epsilon": 4, "trust": "central", "attributes": region}
        for n, region in enumerate(regions)
    ]
    await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=people)
    await browser.log_in("analyse")
    path = f"/dashboard/studies/{study}"
    planned = await browser.get(f"{path}?statistic=sd")
    error = "(root mean square of the standard deviation of each coordinate, at most, in the data's unit)"
    assert error in text_of(planned.text)
    key = re.findall(r'name="key" value="([^"]+)"', planned.text)[0]
    made = await browser.post(f"{path}/releases", {"key": key, "statistic": "sd"})
    assert made.status_code == 303, text_of(made.text)
    release = text_of((await browser.get(made.headers["location"])).text)
    assert "The mean of each coordinate" in release
    assert "The thin intervals hold for all coordinates at once" in release
    found = (await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse")).json()
    shown = [within(one).estimate for one in found["coordinates"]]
    assert all(one in release for one in shown)
    assert "; ".join(shown) in text_of((await browser.get(path)).text)
    refused = await browser.get(f"{path}?statistic=median")
    assert "2 coordinates" in text_of(refused.text)
    asked = {"statistic": "mean", "by": "region"}
    by = (await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=asked)).json()
    page = (await browser.get(f"/dashboard/releases/{by['id']}")).text
    shown_by = text_of(page)
    # Of all people, of north and of south, each for a wide and for a narrow screen.
    title = 'aria-label="The mean of each coordinate, with 95 % intervals for these people"'
    assert page.count(title) == 6
    south = by["groups"][1]["coordinates"][1]
    assert "south: coordinates, with 95 % intervals" in shown_by
    estimate, lower, upper = within(south)
    assert f"1 {estimate} {lower} to {upper}" in shown_by
    assert "No person with region west takes part" in shown_by


async def test_a_study_of_choices_is_made_and_its_shares_are_asked_for_and_drawn(
    browser: Browser, service: Service
):
    await browser.log_in("admin")
    form = {"slug": "party", "choices": "red, green, blue", "trust_central": "on", "default_share": "0.5"}
    await browser.get("/dashboard/new-study")
    refused = await browser.post("/dashboard/new-study", {**form, "lower": "0"})
    assert "a choice has no range" in text_of(refused.text)
    assert (await browser.post("/dashboard/new-study", form)).status_code == 303
    assert 'value="red, green, blue"' in (await browser.get("/dashboard/new-study?like=party")).text
    records = [
        {"subject": f"p{number}", "value": ("red", "green")[number % 2], "epsilon": 1, "trust": "central"}
        for number in range(300)
    ]
    path = "/v1/studies/party/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == 300
    await browser.log_in("analyse")
    page = await browser.get("/dashboard/studies/party")
    text = text_of(page.text)
    assert "red, green, blue" in text
    assert "of a choice's share" in text
    key = re.findall(r'name="key" value="([^"]+)"', page.text)[0]
    made = await browser.post("/dashboard/studies/party/releases", {"key": key})
    assert made.status_code == 303, text_of(made.text)
    release = await browser.get(made.headers["location"])
    assert "The shares of the choices" in text_of(release.text)
    assert release.text.count('class="reach"') == 2 * 3, "an interval a choice, wide and narrow"
    page = await browser.get("/dashboard/studies/party")
    assert "3 choices, most people" in text_of(page.text)
    assert 'class="reach"' in page.text


@pytest.mark.long
async def test_an_analyst_asks_for_a_histogram_and_a_median_and_sees_them_drawn(
    browser: Browser, service: Service
):
    study = await service.study(default_share=0.2, trust=["central", "local"])
    await service.crowd(study, 300)
    await browser.log_in("analyse")
    path = f"/dashboard/studies/{study}"
    planned = await browser.get(f"{path}?statistic=histogram&edges=20,60")
    assert planned.status_code == 200
    assert "of a bin's share" in text_of(planned.text)
    wrong = await browser.get(f"{path}?statistic=histogram&edges=60,20")
    assert "must rise" in text_of(wrong.text)
    key = re.findall(r'name="key" value="([^"]+)"', planned.text)[0]
    asked = {"key": key, "statistic": "histogram", "edges": "20,60"}
    made = await browser.post(f"{path}/releases", asked)
    assert made.status_code == 303
    release = await browser.get(made.headers["location"])
    text = text_of(release.text)
    assert "The distribution of the values" in text
    assert "0 to 20" in text
    assert 'class="reach"' in release.text
    assert 'polygon class="free"' in release.text
    key = re.findall(r'name="key" value="([^"]+)"', (await browser.get(path)).text)[0]
    made = await browser.post(f"{path}/releases", {"key": key, "statistic": "median"})
    assert made.status_code == 303
    key = re.findall(r'name="key" value="([^"]+)"', (await browser.get(path)).text)[0]
    described = await browser.post(f"{path}/releases", {"key": key, "statistic": "describe"})
    release = await browser.get(described.headers["location"])
    text = text_of(release.text)
    assert "The values in short" in text
    assert 'aria-label="Quartiles and mean, with 95 % intervals one by one"' in release.text
    assert "all people, median: " in release.text
    [last] = re.findall(r"<tr><th[^>]*>quantile 0.75</th>(.*?)</tr>", release.text)
    cells = re.findall(r"<td[^>]*>(.*?)</td>", last)
    assert len(cells) == 3, "estimate, these people, population"
    assert "-" not in cells
    assert "The median" in text_of((await browser.get(made.headers["location"])).text)
    page = await browser.get(path)
    assert "3 bins" in text_of(page.text)
    assert re.search(r"mean [\d.]+, median [\d.]+", text_of(page.text))
    assert "The values" in text_of(page.text)
    assert 'class="reach"' in page.text
