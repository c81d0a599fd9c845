"""How a question's answer sharpened, and what a step or newcomers alone would give: on pages."""

import re
from typing import Any

import pytest

from app.core.numbers import margin
from tests.api.service import Service
from tests.dashboard.browser import Browser, text_of

KEYS = re.compile(r'name="key" value="([0-9a-f-]+)"')


async def ask(service: Service, study: str, **question: Any) -> dict[str, Any]:
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert made.status_code == 201, made.text
    return dict(made.json())


async def newcomers(service: Service, study: str, people: int) -> None:
    records = [
        {"subject": f"new-{number}", "value": 50, "epsilon": 0.5, "trust": "central"}
        for number in range(people)
    ]
    await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)


def dots(page: str, kind: str) -> int:
    """How many answers each of the two drawings shows."""
    found = page.count(f'<circle class="step {kind}"')
    assert found % 2 == 0
    return found // 2


@pytest.mark.long
async def test_a_study_shows_its_steps_and_the_next_ones(
    analyst: Browser, admin: Browser, service: Service
) -> None:
    study = await service.study()
    await service.crowd(study, 400)
    path = f"/dashboard/studies/{study}"
    await analyst.get(path)
    assert dots(analyst.page, "taken") == 0
    steps = [await ask(service, study, share=share) for share in (0.2, 0.4)]
    await newcomers(service, study, 100)
    steps.append(await ask(service, study, share=0.4))
    await newcomers(service, study, 130)
    for browser in (analyst, admin):
        await browser.get(path)
        assert (dots(browser.page, "taken"), dots(browser.page, "ahead")) == (3, 2)
        assert (
            'aria-label="Half of the 95 % interval against the epsilon spent, step by step"' in browser.page
        )
        for one in steps:
            assert f"/releases/{one['id']}" in browser.page
            half = (one["interval"]["upper"] - one["interval"]["lower"]) / 2
            assert f"share {one['share']:g}: ± {margin(half)} for epsilon" in browser.page
    plan = (await service.call("GET", f"/v1/studies/{study}/plan", "analyse")).json()
    said = plan["in_words"]
    assert f"N{said[1:]}." in text_of(analyst.page)
    # A release has the steps of its question; another question's has not.
    await analyst.get(f"/dashboard/releases/{steps[0]['id']}")
    assert (dots(analyst.page, "taken"), dots(analyst.page, "ahead")) == (3, 0)
    other = await ask(service, study, share=0.1, estimator="uniform")
    await analyst.get(f"/dashboard/releases/{other['id']}")
    assert dots(analyst.page, "taken") == 0
    fresh = await ask(service, study, share=0.4, fresh=True)
    await analyst.get(f"/dashboard/releases/{fresh['id']}")
    assert dots(analyst.page, "taken") == 0


@pytest.mark.parametrize(
    ("question", "definition", "widest"),
    [
        ({"statistic": "histogram", "parameters": {"edges": "20,60"}}, {}, "bins"),
        ({"statistic": "mean"}, {"dimension": 2}, "coordinates"),
    ],
    ids=["histogram", "coordinates"],
)
async def test_a_release_of_several_numbers_shows_the_widest_interval_of_each_step(
    analyst: Browser, service: Service, question: dict[str, Any], definition: dict[str, Any], widest: str
) -> None:
    study = await service.study(**definition)
    value: float | list[float] = [20, 70] if definition else 50
    records = [
        {"subject": f"p{number}", "value": value, "epsilon": 1, "trust": "central"} for number in range(400)
    ]
    await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
    steps = [await ask(service, study, share=share, **question) for share in (0.2, 0.4)]
    await analyst.get(f"/dashboard/releases/{steps[1]['id']}")
    assert (dots(analyst.page, "taken"), dots(analyst.page, "ahead")) == (2, 0)
    assert "± of the widest 95 % interval" in analyst.page
    for one in steps:
        half = max((part["interval"]["upper"] - part["interval"]["lower"]) / 2 for part in one[widest])
        assert f"share {one['share']:g}: ± {margin(half)} for epsilon" in analyst.page


async def test_newcomers_are_taken_in_by_a_button_of_their_own(analyst: Browser, service: Service) -> None:
    study = await service.study()
    await service.crowd(study, 400)
    path = f"/dashboard/studies/{study}"
    first = await ask(service, study, share=0.4)
    await newcomers(service, study, 100)
    await analyst.get(path)
    assert "Renew it with the newcomers only" in analyst.page
    assert 'name="share" value="0.4"' in analyst.page
    keys = KEYS.findall(analyst.page)
    assert len(set(keys)) == 2
    made = await analyst.post(f"{path}/releases", {"key": keys[1], "share": "0.4"})
    renewed = (
        await service.call("GET", made.headers["location"].replace("/dashboard", "/v1"), "admin")
    ).json()
    assert renewed["refines"] == first["id"]
    assert (renewed["share"], renewed["share_before"]) == (0.4, 0.4)
    assert {one["offered"] for one in renewed["charges"]} == {0.5}
    await analyst.get(path)
    assert "Renew it with the newcomers only" not in analyst.page


async def test_noise_of_its_own_is_previewed_and_asked_for(analyst: Browser, service: Service) -> None:
    study = await service.study()
    await service.crowd(study, 400)
    path = f"/dashboard/studies/{study}"
    await ask(service, study, share=0.4)
    await analyst.get(f"{path}?share=0.5&fresh=true")
    assert "with noise of its own for 0.5 of each epsilon" in text_of(analyst.page)
    assert 'name="fresh" value="true" checked' in analyst.page
    (key,) = KEYS.findall(analyst.page)
    made = await analyst.post(f"{path}/releases", {"key": key, "share": "0.5", "fresh": "true"})
    release = (
        await service.call("GET", made.headers["location"].replace("/dashboard", "/v1"), "analyse")
    ).json()
    assert (release["share"], release["share_before"], release["refines"]) == (0.5, 0, None)
    refused = await analyst.get(f"{path}?fresh=perhaps")
    assert refused.status_code == 422
    assert "must be true or false" in analyst.page


async def test_a_combination_links_the_answers_that_it_is_made_of(analyst: Browser, service: Service) -> None:
    study = await service.study()
    await service.crowd(study, 400)
    answers = [await ask(service, study, share=0.2, fresh=True) for _ in range(2)]
    best = (await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse")).json()
    await newcomers(service, study, 10)
    await analyst.get(f"/dashboard/releases/{best['id']}")
    assert "It combines 2 answers, at no price" in text_of(analyst.page)
    for one in answers:
        assert f"/releases/{one['id']}" in analyst.page
    await analyst.get(f"/dashboard/studies/{study}")
    assert f"/releases/{best['id']}" in analyst.page


async def test_the_second_step_shows_what_holds_at_all_of_them(analyst: Browser, service: Service) -> None:
    study = await service.study()
    await service.crowd(study, 400)
    for share, shown in ((0.2, False), (0.4, True)):
        answer = await ask(service, study, share=share)
        await analyst.get(f"/dashboard/releases/{answer['id']}")
        assert ("95 % interval, these people, at all steps" in analyst.page) is shown
        assert (analyst.page.count('<polyline class="step always"') == 2) is shown
        assert ("± at all steps" in analyst.page) is shown
        await analyst.get(f"/dashboard/studies/{study}")
        assert (analyst.page.count('<g class="reach always">') == 2) is shown


@pytest.mark.parametrize("statistic", ["histogram", "shares", "table"])
async def test_the_second_step_shows_what_holds_at_all_of_them_of_each_share(
    analyst: Browser, service: Service, statistic: str
) -> None:
    choices: dict[str, Any] = {"choices": ["a", "b"], "lower": None, "upper": None}
    measures = {"one": {"choices": ["a", "b"]}, "other": {"choices": ["a", "b"]}}
    kinds: dict[str, tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = {
        "histogram": ({}, {"bins": 2}, [{"value": 10}, {"value": 90}]),
        "shares": (choices, {}, [{"value": "a"}, {"value": "b"}]),
        "table": (
            {"measures": measures, "lower": None, "upper": None},
            {"measures": "one,other"},
            [{"values": {"one": one, "other": "b"}} for one in "ab"],
        ),
    }
    terms, asked, said = kinds[statistic]
    study = await service.study(attributes={"region": ["north", "south"]}, **terms)
    records = [
        {
            "subject": f"p{place}",
            **said[place % 2],
            "epsilon": 4,
            "trust": "central",
            "attributes": {"region": ("north", "south")[place // 2 % 2]},
        }
        for place in range(200)
    ]
    sent = await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
    assert sent.json()["created"] == len(records), sent.text
    for share, shown in ((0.2, False), (0.4, True)):
        question = {"statistic": statistic, "by": "region", **asked, "share": share}
        answer = await ask(service, study, **question)
        await analyst.get(f"/dashboard/releases/{answer['id']}")
        # Of all people and of both labels.
        heads = analyst.page.count('<th scope="col" class="num">at all steps</th>')
        assert heads == (3 if shown else 0)
        # Drawn twice, wide and narrow, for each of two bars; of a table cells have texts alone.
        dotted = analyst.page.count('<g class="reach always">')
        assert dotted == (3 * 2 * 2 if shown and statistic != "table" else 0)
        assert (analyst.page.count('<polyline class="step always"') == 2) is shown


async def test_a_page_asks_until_an_interval_is_small_enough_and_says_what_can_be_reached(
    analyst: Browser, service: Service
) -> None:
    study = await service.study()
    await service.crowd(study, 400)
    plan = (await service.call("GET", f"/v1/studies/{study}/plan?share=0.3", "analyse")).json()
    wanted = next(one for one in plan["estimators"] if one["chosen"])["half_width"]
    path = f"/dashboard/studies/{study}"
    await analyst.get(f"{path}?until={wanted}")
    key = KEYS.findall(analyst.page)[0]
    made = await analyst.post(f"{path}/releases", {"key": key, "until": f"{wanted}"})
    assert made.status_code == 303
    release = made.headers["location"].rpartition("/")[2].partition("?")[0]
    found = (await service.call("GET", f"/v1/releases/{release}", "analyse")).json()
    assert found["share"] == pytest.approx(0.3, abs=2e-6)
    await newcomers(service, study, 130)
    await analyst.get(f"{path}?until={wanted / 2}")
    assert "newcomers only" in text_of(analyst.page)
    renew = re.findall(r'name="until" value="([^"]*)"', analyst.page)
    assert "" in renew, "who renews does so at the share that is there"
    refused = await analyst.get(f"{path}?until=0.0001")
    assert "is refused: no share reaches this half-width: the best is predicted to be" in text_of(
        refused.text
    )
    asked = {"key": str(KEYS.findall(analyst.page)[0]), "until": "0.0001"}
    refused = await analyst.post(f"{path}/releases", asked)
    assert refused.status_code == 409


async def test_a_page_shows_the_change_and_the_trend_of_its_series(
    analyst: Browser, service: Service
) -> None:
    studies = [await service.study(slug=f"mood-{number}", series="mood") for number in (1, 2)]
    for study in studies:
        await service.crowd(study, 200)
    await analyst.get(f"/dashboard/studies/{studies[1]}")
    assert "The series mood" not in text_of(analyst.page)
    for study in studies:
        await ask(service, study, share=0.5)
    await analyst.get(f"/dashboard/studies/{studies[1]}")
    said = text_of(analyst.page)
    for statistic in ("change", "trend"):
        read = await service.call("GET", f"/v1/studies/{studies[1]}/statistics/{statistic}", "analyse")
        assert read.json()["in_words"] in said
    assert 'aria-label="The means of the series with their 95 % intervals"' in analyst.page
    assert "The series mood" in said
    await analyst.get(f"/dashboard/studies/{studies[0]}")
    assert "The series mood" not in text_of(analyst.page), "nothing came before the first one"
