"""The answer that is there, free, beside the price of a new one."""

import re
from typing import Any

import pytest

from tests.api.service import Service
from tests.dashboard.browser import Browser, text_of, within


async def test_the_current_answer_stands_before_what_a_new_one_costs(
    admin: Browser, service: Service
) -> None:
    study = await service.study()
    await service.crowd(study, 400)
    await admin.get(f"/dashboard/studies/{study}")
    text = text_of(admin.page)
    assert "The current answer" not in text
    assert "It says the variance and the standard deviation, too, at no further price." in text
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.5})
    release = made.json()
    await admin.get(f"/dashboard/studies/{study}")
    text = text_of(admin.page)
    assert (
        text.index("The current answer, free")
        < text.index("A new one costs a person")
        < text.index("Releases")
    )
    assert f"/releases/{release['id']}" in admin.page
    spread = within(release["sd"], statistic="sd")
    assert f"Standard deviation: {spread.in_words}." in text
    assert "A new one costs a person ε 0.1 at most." in text
    # Looking at it charges no person, and makes nothing.
    assert len((await service.call("GET", f"/v1/studies/{study}/releases", "analyse")).json()["items"]) == 1


async def hidden(service: Service, *statistics: str) -> tuple[str, list[dict[str, Any]]]:
    """A study of 60 people who all say the same, and answers whose noise hides that.

    A spread's interval begins above 0 in one answer of twenty at most: that none of eight studies has such
    answers has a probability below 1e-6."""
    for _ in range(8):
        study = await service.study(attributes={"sex": ["f", "m"]})
        records = [
            {
                "subject": f"{study}-{n}",
                "value": 30,
                "epsilon": 1,
                "trust": "central",
                "attributes": {"sex": "fm"[n % 2]},
            }
            for n in range(60)
        ]
        await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
        path = f"/v1/studies/{study}/statistics"
        answers = [(await service.call("GET", f"{path}/{one}", "analyse")).json() for one in statistics]
        every = [one for answer in answers for one in (answer, *(answer.get("groups") or ()))]
        spreads = [one[name] for one in every for name in ("variance", "sd") if name in one]
        if all(spread["interval"]["lower"] == 0 for spread in spreads):
            return study, answers
    raise AssertionError("no noise hides that all say the same")


async def test_a_spread_that_noise_hides_is_at_most_its_upper_end_on_every_page(
    admin: Browser, service: Service
) -> None:
    study, answers = await hidden(service, "mean", "mean?by=sex")
    for made in answers:
        for answer in (made, *(made.get("groups") or ())):
            for spread in (answer["variance"], answer["sd"]):
                assert 0 < spread["estimate"] <= spread["interval"]["upper"]
        said = within(made["sd"], statistic="sd").in_words
        assert said.startswith("at most ")
        path = f"/dashboard/releases/{made['id']}"
        await admin.get(path)
        assert f"Standard deviation of the values {said}" in text_of(admin.page)
        await admin.get(f"{path}?statistic=sd")
        assert text_of(admin.page).count("at most " + within(made["sd"]).upper) >= 2
        for label in made.get("groups") or ():
            assert within(label["sd"], statistic="sd").in_words in text_of(admin.page)
    plan = (await service.call("GET", f"/v1/studies/{study}/plan?statistic=sd", "analyse")).json()
    assert plan["in_words"].startswith("now at most ")
    await admin.get(f"/dashboard/studies/{study}")
    assert "Standard deviation: at most " in text_of(admin.page)
    _, (short,) = await hidden(service, "describe?share=1")
    await admin.get(f"/dashboard/releases/{short['id']}")
    assert f"standard deviation {within(short['sd'], statistic='sd').in_words} " in text_of(admin.page)
    assert short["sd"]["estimate"] > 0


async def test_where_local_reports_say_nothing_of_the_spread_no_page_claims_it(
    admin: Browser, service: Service
) -> None:
    study = await service.study(trust=["local"], local_mechanism="laplace")
    records = [{"subject": f"l{n}", "report": 1 << 29, "epsilon": 1, "trust": "local"} for n in range(50)]
    await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
    plan = (await service.call("GET", f"/v1/studies/{study}/plan", "analyse")).json()["estimators"]
    assert plan
    assert all(row["statistics"] == ["mean", "sum"] for row in plan)
    await admin.get(f"/dashboard/studies/{study}")
    assert "standard deviation, too" not in text_of(admin.page)


async def test_a_plan_says_what_its_answer_says(service: Service) -> None:
    """And the answer does say it."""
    for relation, expected in (
        ("replace_one", ["mean", "sum", "variance", "sd"]),
        ("add_remove_one", ["mean"]),
    ):
        study = await service.study(relation=relation)
        await service.crowd(study, 200)
        query = "expected_size=200" if relation == "add_remove_one" else ""
        plan = (await service.call("GET", f"/v1/studies/{study}/plan?{query}", "analyse")).json()
        assert plan["estimators"][0]["statistics"] == expected
        for statistic in expected:
            path = f"/v1/studies/{study}/statistics/{statistic}?{query}"
            assert (await service.call("GET", path, "analyse")).status_code == 200
    path = f"/v1/studies/{study}/plan?statistic=sd&expected_size=200&share=1"
    spread = (await service.call("GET", path, "analyse")).json()
    assert spread["estimators"][0]["statistics"] == ["mean", "variance", "sd"], spread


async def test_the_current_answer_is_that_of_all_people(admin: Browser, service: Service) -> None:
    """An answer about some labels, or beside those of labels, is another question's."""
    regions = ["north", "south"]
    study = await service.study(attributes={"region": regions}, default_share=0.1)
    records = [
        {
            "subject": f"p{number}",
            "value": number % 100,
            "epsilon": 5,
            "trust": "central",
            "attributes": {"region": regions[number % 2]},
        }
        for number in range(200)
    ]
    path = f"/v1/studies/{study}"
    sent = await service.call("POST", f"{path}/contributions/batch", "contribute", json=records)
    assert sent.status_code == 200

    async def ask(**question: object) -> str:
        made = await service.call("POST", f"{path}/releases", "analyse", json=question)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    others = ({"where": "region:north"}, {"by": "region"}, {"range": "found"})
    for question in others:
        await ask(**question)
    # One about some people alone is no answer about all of them in any plot, and says of whom it is.
    northern = await ask(statistic="histogram", where="region:north")
    await admin.get(f"/dashboard/releases/{northern}")
    assert "Of the people with region north." in text_of(admin.page)
    await admin.get(f"/dashboard/studies/{study}")
    text = text_of(admin.page)
    assert "The current answer, free" not in text
    assert "The values" not in text
    for about in ("mean, region north by optimal", "mean, by region by optimal", "mean, found range by"):
        assert about in text
    # A plot is drawn for wide and for narrow screens.
    assert admin.page.count('<g class="estimate">') == 2, "the one by labels"
    plain = await ask()
    for question in others:
        await ask(**question, share=0.2)
    await admin.get(f"/dashboard/studies/{study}")
    card = admin.page[admin.page.index('aria-labelledby="current"') :]
    assert f"/releases/{plain}" in card[: card.index("</section>")]


@pytest.mark.long
async def test_the_current_answer_is_the_one_that_get_reads(admin: Browser, service: Service) -> None:
    """Not the newest one, which may be worse; and a look at the page pays for none."""
    studies: dict[str, dict[str, object]] = {
        "mean": {},
        "mean?measure=income": {
            "lower": None,
            "upper": None,
            "measures": {"party": {"choices": ["a", "b"]}, "income": {"lower": 0, "upper": 9}},
        },
        "shares": {"lower": None, "upper": None, "choices": ["red", "green"]},
    }
    values: dict[str, dict[str, object]] = {
        "mean": {"value": 40},
        "mean?measure=income": {"values": {"party": "a", "income": 4}},
        "shares": {"value": "red"},
    }
    for statistic, fields in studies.items():
        name, _, query = statistic.partition("?")
        study = await service.study(**fields)
        path = f"/v1/studies/{study}"
        records = [
            {"subject": f"p{number}", "epsilon": 3, "trust": "central"} | values[statistic]
            for number in range(400)
        ]
        sent = await service.call("POST", f"{path}/contributions/batch", "contribute", json=records)
        assert sent.json()["created"] == 400, sent.text[:300]
        asked = {"statistic": name} | dict([query.split("=")] if query else [])
        page = f"/dashboard/studies/{study}?{query}"

        async def ask(share: float, path: str = path, asked: dict[str, str] = asked) -> str:
            question = asked | {"share": share, "fresh": True, "allow_worse": True}
            made = await service.call("POST", f"{path}/releases", "analyse", json=question)
            assert made.status_code == 201, made.text
            return str(made.json()["id"])

        await admin.get(page)
        assert "The current answer" not in admin.page
        assert (await service.call("GET", f"{path}/releases", "analyse")).json()["items"] == []
        await ask(0.3)
        newest = await ask(0.001)
        await admin.get(page)
        card = admin.page[admin.page.index('aria-labelledby="current"') :]
        card = card[: card.index("</section>")]
        read = (await service.call("GET", f"{path}/statistics/{statistic}", "analyse")).json()
        assert read["id"] != newest
        assert f"/releases/{read['id']}" in card
        assert newest not in card
        # What combines both is the newest of all.
        is_older = statistic != "shares" and not read.get("combines")
        assert (f'/releases/{newest}">newer one</a> says' in admin.page) is is_older
        assert ("its interval is wider, so this one stays" in admin.page) is is_older


async def test_what_stands_is_offered_before_what_costs(analyst: Browser, service: Service) -> None:
    study = await service.study()
    await service.crowd(study, 200)
    free = "Read the answer that stands, free"
    page = f"/dashboard/studies/{study}?statistic=sd"
    await analyst.get(page)
    assert free not in analyst.page
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.5})
    read = (await service.call("GET", f"/v1/studies/{study}/statistics/sd", "analyse")).json()
    await analyst.get(page)
    assert f'href="/dashboard/releases/{read["id"]}?statistic=sd">{free}' in analyst.page
    assert analyst.page.index(free) < analyst.page.index("Ask for this release")
    await analyst.get(f"/dashboard/releases/{read['id']}?statistic=sd")
    assert f"{within(read).estimate} ({within(read).lower} to {within(read).upper})" in text_of(analyst.page)


async def test_the_answer_of_coordinates_is_drawn_on_the_page_of_the_study(
    admin: Browser, service: Service
) -> None:
    study = await service.study(dimension=3)
    people = [
        {"subject": f"p{number}", "value": [20, 50, 80], "epsilon": 5, "trust": "central"}
        for number in range(300)
    ]
    await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=people)
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.5})
    assert made.status_code == 201, made.text
    await admin.get(f"/dashboard/studies/{study}")
    card = admin.page[admin.page.index('aria-labelledby="current"') :]
    card = card[: card.index("</section>")]
    # A plot is drawn for wide and for narrow screens: a dot with its interval for each coordinate.
    assert card.count('<g class="estimate">') == 2 * 3
    for one in made.json()["coordinates"]:
        shown = within(one)
        assert f"{one['coordinate']} {shown.estimate} {shown.lower} to {shown.upper}" in text_of(card)


async def test_the_plan_starts_from_the_answer_that_is_shown(admin: Browser, service: Service) -> None:
    """What GET combines for nothing is there before the plan says what stands."""
    study = await service.study()
    await service.crowd(study)
    for _ in range(2):
        fresh = {"share": 0.2, "fresh": True}
        assert (await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=fresh)).is_success
    await admin.get(f"/dashboard/studies/{study}")
    shown = (await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse")).json()
    plan = (await service.call("GET", f"/v1/studies/{study}/plan", "analyse")).json()
    assert plan["stands"]["release"] == shown["id"]
    sentence = plan["in_words"].partition(";")[0]
    assert sentence[0].upper() + sentence[1:] in text_of(admin.page)


async def test_an_answer_that_asked_first_who_offers_how_much_shows_the_numbers(
    admin: Browser, service: Service
) -> None:
    study = await service.study(relation="add_remove_one")
    await service.crowd(study, 400)
    answers = [
        (await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)).json()
        for question in ({"share": 0.5}, {"share": 0.5, "statistic": "count", "least_epsilon": 1})
    ]
    heading = "How many people offer how much, asked first"
    assert ["offered" in one for one in answers] == [True, False]
    for one in answers:
        await admin.get(f"/dashboard/releases/{one['id']}")
        rows = re.findall(
            r'<tr><th scope="row" class="num">([0-9.]+)</th><td class="num">([0-9,]+)</td></tr>', admin.page
        )
        said = [
            (f"{level['least_epsilon']:g}", f"{max(0, round(level['noisy_count'])):,}")
            for level in one.get("offered", ())
        ]
        assert rows == said
        assert (heading in admin.page) == bool(said)
