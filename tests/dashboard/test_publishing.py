"""Publishing on the study's page; and what everyone reads of each kind of answer."""

import re
from typing import Any

import pytest

from tests.api.service import Service
from tests.api.test_publications import answered, publish
from tests.dashboard.browser import Browser, text_of


@pytest.mark.parametrize("role", ["admin", "analyse"])
async def test_an_answer_is_published_changed_and_withdrawn(browser: Browser, service: Service, role: str):
    study = await service.study(title="How long?")
    await service.crowd(study, 40)
    await browser.log_in(role)
    page = f"/dashboard/studies/{study}"
    await browser.get(page)
    assert "Publish" not in text_of(browser.page), "there is no answer yet"
    release = await answered(service, study)
    await browser.get(page)
    assert f'name="releases" value="{release}" checked' in browser.page
    made = await browser.post(f"{page}/publications", {"title": "<i>Ours", "releases": release})
    assert made.status_code == 303
    shown = made.headers["location"]
    await browser.get(shown)
    assert "<i>Ours" not in browser.page
    address = re.findall(r'value="http://test(/p/[^"]+)"', browser.page)[0]
    public = await service.client.get(address)
    assert public.status_code == 200
    assert "<i>Ours" not in public.text
    wrong = await browser.post(f"{shown}/change", {"title": "", "releases": "x\n\ny"})
    assert wrong.status_code == 422
    assert "must be a UUID" in text_of(browser.page)
    frames = "https://example.org\r\n"
    fields = {
        "title": "Minutes",
        "releases": f" {release}\r\n",
        "frames": frames,
        "expires_at": "2100-01-01T00:00",
    }
    assert (await browser.post(f"{shown}/change", fields)).status_code == 303
    public = await service.client.get(address)
    assert "Minutes" in public.text
    assert "&lt;iframe" in public.text
    await browser.get(page)
    assert "2100-01-01" in browser.page
    await browser.get(shown)
    assert (await browser.post(f"{shown}/withdraw")).status_code == 303
    assert (await service.client.get(address)).status_code == 410
    await browser.get(shown)
    assert "withdrawn" in text_of(browser.page)


async def test_an_answer_is_published_from_its_own_page(analyst: Browser, service: Service):
    study = await service.study(title="How long?")
    await service.crowd(study, 40)
    release = await answered(service, study)
    await analyst.get(f"/dashboard/releases/{release}")
    hidden = re.findall(r'name="releases" value="([^"]+)"', analyst.page)
    assert hidden == [release]
    form = {"title": "How long?", "releases": hidden[0]}
    made = await analyst.post(f"/dashboard/studies/{study}/publications", form)
    assert made.status_code == 303
    await analyst.get(made.headers["location"])
    assert "How long?" in text_of(analyst.page)


async def test_pages_say_what_an_answer_costs_with_those_that_it_builds_on(
    analyst: Browser, service: Service
):
    study = await service.study(trust=["central", "local"])
    await service.crowd(study, 200)
    first = await answered(service, study, share=0.1)
    described = await answered(service, study, statistic="describe", share=0.2)
    path = f"/v1/studies/{study}/statistics/mean"
    read = (await service.call("GET", path, "analyse")).json()
    assert len(read["combines"]) == 2
    charged = [
        (await service.call("GET", f"/v1/releases/{one}", "analyse")).json()["epsilon_max"]
        for one in (first, described)
    ]
    total = f"with the answers that it builds on ε {sum(charged):.6f}".rstrip("0")
    await analyst.get(f"/dashboard/releases/{read['id']}")
    assert total.replace("ε ", "") in text_of(analyst.page)
    assert (await publish(service, study, read["id"], slug="built")).status_code == 201
    page = text_of((await service.client.get("/p/built")).text)
    assert f"It charged each person ε 0 at most, {total}." in page
    assert "device reported has spent all that this person offered" in page


async def test_what_cannot_be_published_is_explained_on_the_page(admin: Browser, service: Service):
    study = await service.study()
    await service.crowd(study, 40)
    await answered(service, study)
    page = f"/dashboard/studies/{study}"
    await admin.get(page)
    refused = await admin.post(f"{page}/publications", {"title": "Ours", "releases": ""})
    assert refused.status_code == 422
    assert "must have 1 or more entries" in text_of(admin.page) or "must not be empty" in text_of(admin.page)


NUMBERS: dict[str, Any] = {
    "trust": ["central", "local", "public"],
    "attributes": {"region": ["north", "south"]},
}

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mean": (NUMBERS, {}),
    "mean by label": (NUMBERS, {"by": "region"}),
    "median": (NUMBERS, {"statistic": "median", "by": "region"}),
    "count": (NUMBERS, {"statistic": "count"}),
    "histogram": (NUMBERS, {"statistic": "histogram", "bins": 5, "by": "region"}),
    "distribution": (NUMBERS, {"statistic": "distribution", "bins": 5}),
    "describe": (NUMBERS, {"statistic": "describe"}),
    "describe by label": (NUMBERS, {"statistic": "describe", "by": "region"}),
    "found range": (NUMBERS, {"range": "found"}),
    "shares": ({"choices": ["a", "b"], "lower": None, "upper": None}, {"statistic": "shares"}),
    "shares by label": (
        {"choices": ["a", "b"], "lower": None, "upper": None, "attributes": NUMBERS["attributes"]},
        {"statistic": "shares", "by": "region"},
    ),
    "coordinates": ({"dimension": 3}, {}),
    "coordinates by label": ({"dimension": 3, "attributes": NUMBERS["attributes"]}, {"by": "region"}),
    "covariance": (
        {
            "measures": {"x": {"lower": 0, "upper": 9}, "y": {"lower": 0, "upper": 9}},
            "lower": None,
            "upper": None,
        },
        {"statistic": "covariance", "measures": "x,y"},
    ),
    "table": (
        {
            "measures": {"x": {"choices": ["a", "b"]}, "y": {"choices": ["c", "d", "e"]}},
            "attributes": {"region": ["north", "south"]},
            "lower": None,
            "upper": None,
        },
        {"statistic": "table", "measures": "x,y", "by": "region"},
    ),
    "correlation": (
        {
            "measures": {"x": {"lower": 0, "upper": 9}, "y": {"lower": 0, "upper": 9}},
            "attributes": {"region": ["north", "south"]},
            "lower": None,
            "upper": None,
        },
        {"statistic": "correlation", "measures": "x,y", "by": "region"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_of_answer_has_a_page_and_a_table(service: Service, kind: str):
    definition, question = KINDS[kind]
    study = await service.study(**definition)
    for number in range(12):
        value: Any = {
            "shares": "ab"[number % 2],
            "coordinates": [1, 2, number],
            "covariance": None,
        }.get(kind.partition(" ")[0], number)
        more: dict[str, Any] = (
            {"values": {"x": "ab"[number % 2], "y": "c"} if kind == "table" else {"x": number % 9, "y": 3}}
            if "measures" in definition
            else {"value": value}
        )
        if "attributes" in definition:
            more["attributes"] = {"region": "north" if number % 2 else "south"}
        document = {"subject": f"p{number}", "epsilon": 10, "trust": "central", **more}
        path = f"/v1/studies/{study}/contributions"
        sent = await service.call("POST", path, "contribute", json=document)
        assert sent.status_code == 201, sent.text
    release = await answered(service, study, **question)
    made = await publish(service, study, release, slug="shown")
    assert made.status_code == 201, made.text
    for path in ("/p/shown", "/p/shown/embed"):
        page = await service.client.get(path)
        assert page.status_code == 200, page.text
        if "by" in question:
            shown = " ".join(re.findall(r"<(?:table|h3)>.*?</(?:table|h3)>", page.text, re.DOTALL))
            assert all(label in text_of(shown) for label in ("north", "south")), kind
        assert "<svg" in page.text or kind in ("mean", "count", "found range", "covariance")
    rows = (await service.client.get("/p/shown.csv")).text.splitlines()
    assert len(rows) > 1
    assert all(row.startswith(release) for row in rows[1:])
