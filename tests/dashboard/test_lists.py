"""Lists that people search, sort and filter: by the address alone, so that they need no script."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from app.core.principal import Role
from tests.api.service import Service
from tests.dashboard.browser import Browser, text_of


def studies_of(page: str) -> list[str]:
    """The addresses in a list of studies, in their order."""
    return re.findall(r"<br><code>([a-z0-9-]+)</code>", page)


def tokens_of(page: str) -> list[str]:
    """The names in the list of tokens, in their order."""
    return re.findall(r'<tr><th scope="row">([^<]+)</th>', page)


@pytest.fixture
async def three(service: Service) -> None:
    """Studies that were made, closed and released in different orders."""
    await service.study(slug="c-first", title="Apples_a_day")
    await service.study(slug="a-second", title="Walks")
    await service.study(slug="b-third", title="naps", series="rest")
    for slug in ("b-third", "a-second"):
        await service.call("POST", f"/v1/studies/{slug}/close", "admin")
    await service.crowd("c-first", 40)
    asked = await service.call("POST", "/v1/studies/c-first/releases", "analyse", json={"share": 0.1})
    assert asked.status_code == 201


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a-second", "b-third", "c-first"]),
        ("?sort=title", ["c-first", "b-third", "a-second"]),
        ("?sort=created", ["b-third", "a-second", "c-first"]),
        ("?sort=closed", ["a-second", "b-third", "c-first"]),
        ("?sort=released", ["c-first", "a-second", "b-third"]),
        ("?state=closed&sort=created", ["b-third", "a-second"]),
        ("?search=ApPles", ["c-first"]),
        ("?search=-t", ["b-third"]),
        ("?search=_", ["c-first"]),
        ("?search=%25", []),
        ("?state=retired", []),
        ("?series=rest", ["b-third"]),
        ("?series=rest&state=open", []),
    ],
)
async def test_studies_are_found(admin: Browser, three: None, query: str, found: list[str]):
    assert (await admin.get(f"/dashboard/studies{query}")).status_code == 200
    assert studies_of(admin.page) == found
    assert ("There is no such study" in admin.page) is (not found)


async def test_studies_have_their_dates(admin: Browser, three: None):
    await admin.get("/dashboard/studies?search=first")
    today = datetime.now(UTC).date().isoformat()
    assert text_of(admin.page).count(today) == 2, "made and released"
    await admin.get("/dashboard/studies?search=second")
    assert re.search(f"closed {today} {today} never", text_of(admin.page)), "closed and made"


async def test_a_search_shows_nobody_a_study_that_is_not_theirs(
    browser: Browser, service: Service, three: None
):
    tokens = service.api.services.tokens
    for role in (Role.ANALYSE, Role.ADMIN):
        _, secret = await tokens.create(
            name="one", roles={role}, studies=frozenset({"a-second"}), actor="test"
        )
        await browser.log_in(secret)
        for query in ("", "?search=first", "?search=s", "?state=open", "?sort=released"):
            await browser.get(f"/dashboard/studies{query}")
            assert set(studies_of(browser.page)) <= {"a-second"}, query


async def test_a_list_goes_on_with_what_was_looked_for(
    admin: Browser, three: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("app.dashboard.pages.studies.ROWS", 1)
    await admin.get("/dashboard/studies?state=closed&sort=created")
    pages = [studies_of(admin.page)]
    link = re.search(r'href="(\?[^"]*cursor=[^"]*)"', admin.page)
    assert link is not None
    await admin.get(f"/dashboard/studies{link[1].replace('&amp;', '&')}")
    assert [*pages, studies_of(admin.page)] == [["b-third"], ["a-second"]]
    assert "cursor=" not in admin.page


async def test_what_comes_to_a_list_between_two_pages_moves_nothing(
    admin: Browser, service: Service, three: None, monkeypatch: pytest.MonkeyPatch
):
    """A page begins behind the last line of the one before, not after so many lines."""
    for page, fresh in (("studies", {"slug": "newest"}), ("tokens", {"name": "newest"})):
        monkeypatch.setattr(f"app.dashboard.pages.{page}.ROWS", 2)
        await admin.get(f"/dashboard/{page}?sort=created" if page == "studies" else f"/dashboard/{page}")
        link = re.search(r'href="(\?[^"]*cursor=[^"]*)"', admin.page)
        assert link is not None
        following = f"/dashboard/{page}{link[1].replace('&amp;', '&')}"
        await admin.get(following)
        before = re.search(r"<tbody>(.*?)</tbody>", admin.page, re.DOTALL)
        document = {"lower": 0, "upper": 1} if page == "studies" else {"role": "analyse"}
        made = await service.call(
            "POST", "/v1/studies" if page == "studies" else "/v1/admin/tokens", "admin", json=document | fresh
        )
        assert made.status_code == 201, made.text
        await admin.get(following)
        after = re.search(r"<tbody>(.*?)</tbody>", admin.page, re.DOTALL)
        assert before is not None
        assert after is not None
        rows = [re.sub(r'value="[^"]*"', "", one[1]).strip() for one in (before, after)]
        assert rows[0] == rows[1]
        assert "newest" not in rows[1]
        assert (await admin.get(f"/dashboard/{page}?cursor=bm9uZQ")).status_code == 422


@pytest.mark.parametrize(
    "query",
    [
        "audit?action=%00",
        "audit?target=%00",
        "ledger?study=%00",
        "ledger/charges?study=%00",
        "budgets?study=%00",
    ],
)
async def test_no_filter_takes_what_no_database_stores(admin: Browser, query: str):
    assert (await admin.get(f"/dashboard/{query}")).status_code in (404, 422)


@pytest.mark.parametrize("page", ["studies", "tokens"])
@pytest.mark.parametrize(
    "query", ["state=sleeping", "sort=id", "cursor=x", "search=%00", "search=a&search=b"]
)
async def test_what_no_list_can_be_asked_is_refused(admin: Browser, page: str, query: str):
    response = await admin.get(f"/dashboard/{page}?{query}")
    assert response.status_code == 422
    assert query.partition("=")[0] in text_of(response.text)


async def test_tokens_are_found_with_who_made_them(admin: Browser, service: Service):
    await service.study(slug="sleep")
    boss = {"name": "Zeta", "role": "admin"}
    zeta = (await service.call("POST", "/v1/admin/tokens", "admin", json=boss)).json()
    service.tokens["zeta"] = zeta["token"]
    for name, studies in (("beta", ["sleep"]), ("alpha", None)):
        body = {"name": name, "role": "analyse", "studies": studies}
        made = await service.call("POST", "/v1/admin/tokens", "zeta", json=body)
        assert made.status_code == 201
    await admin.get("/dashboard/tokens")
    await admin.post(f"/dashboard/tokens/{made.json()['id']}/revoke")
    for query, found in (
        ("search=zeta", ["alpha", "beta", "Zeta"]),
        ("search=zeta&sort=name", ["alpha", "beta", "Zeta"]),
        ("search=zeta&sort=used", ["Zeta", "alpha", "beta"]),
        ("search=zeta&state=valid", ["beta", "Zeta"]),
        ("search=ZETA&state=revoked", ["alpha"]),
        ("search=sleep", ["beta"]),
        ("state=expired", []),
    ):
        await admin.get(f"/dashboard/tokens?{query}")
        assert tokens_of(admin.page) == found, query
    await admin.get("/dashboard/tokens?search=sleep")
    assert re.search(r"beta analyse sleep \S+ \S+ Zeta never", text_of(admin.page))


async def test_releases_are_listed_by_what_was_asked(analyst: Browser, service: Service):
    study = await service.study(attributes={"region": ["north", "south"]})
    for number in range(40):
        document = {"subject": f"p{number}", "value": number, "epsilon": 10, "trust": "central"}
        document["attributes"] = {"region": "north" if number % 2 else "south"}
        await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=document)
    questions: tuple[dict[str, Any], ...] = (
        {},
        {"by": "region"},
        {"statistic": "quantile", "q": 0.9, "where": "region:north"},
    )
    for question in questions:
        body = {"share": 0.1, "allow_worse": True, **question}
        asked = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=body)
        assert asked.status_code == 201, asked.text
    await analyst.get(f"/dashboard/studies/{study}")
    table = analyst.page.partition("Releases, newest first")[2].partition("</table>")[0]
    rows = re.findall(r'<th scope="row"><a [^>]*>([^<]*)</a>', table)
    assert rows == ["quantile 0.9, region north", "mean, by region", "mean"]


async def test_an_empty_study_says_how_people_get_in(admin: Browser, analyst: Browser, service: Service):
    study = await service.study()
    for browser, words in ((admin, "by a link or from a file"), (analyst, "an admin of this service")):
        await browser.get(f"/dashboard/studies/{study}")
        assert words in text_of(browser.page)
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    await analyst.get(f"/dashboard/studies/{study}")
    assert "People get in" not in text_of(analyst.page)


async def test_a_token_is_limited_to_studies_of_a_list(admin: Browser, service: Service):
    study = await service.study(title="How long?")
    await admin.get("/dashboard/tokens")
    assert f'name="studies" value="{study}"> How long?' in admin.page
