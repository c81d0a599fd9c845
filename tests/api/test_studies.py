"""Making, finding, listing and closing studies."""

import json
from typing import Any

import httpx
import pytest

from app.services.statistics.releases import Releases
from tests.api.service import Service, assert_problem

JSON = {"Content-Type": "application/json"}

OVER = {"reason": "the week is over"}

FULL: dict[str, Any] = {
    "slug": "full",
    "title": "How long?",
    "description": "In minutes,\nfrom door to door.",
    "series": "weekly",
    "lower": -10.5,
    "upper": 1e3,
    "relation": "replace_one",
    "trust": ["public", "central"],
    "epsilon": {"min": "0.05", "max": 5},
    "default_share": 0.25,
    "noise": "laplace",
    "delta": 0,
    "dimension": 1,
    "local_mechanism": "laplace",
}


async def test_a_study_is_shown_as_it_was_made(service: Service) -> None:
    made = await service.call("POST", "/v1/studies", "admin", json=FULL)
    assert made.status_code == 201
    document = made.json()
    expected = {**FULL, "trust": ["central", "public"], "epsilon": {"min": 0.05, "max": 5}}
    assert {name: document[name] for name in FULL} == expected
    assert document["state"] == "open"
    for role in ("contribute", "analyse", "admin"):
        assert (await service.call("GET", "/v1/studies/full", role)).json() == document


async def test_a_study_has_sensible_defaults(service: Service) -> None:
    response = await service.call("POST", "/v1/studies", "admin", json={"slug": "x", "lower": 0, "upper": 1})
    document = response.json()
    assert document["title"] == "x"
    assert document["relation"] == "replace_one"
    assert document["trust"] == ["central"]
    assert document["epsilon"] == {"min": 0.001, "max": 4}
    assert document["default_share"] == 0.1
    assert document["delta"] == 0


async def test_the_same_definition_again_changes_nothing(service: Service) -> None:
    made = await service.call("POST", "/v1/studies", "admin", json=FULL)
    again = await service.call(
        "POST", "/v1/studies", "admin", json={**FULL, "trust": ["central", "public"], "upper": 1000}
    )
    assert again.status_code == 200
    assert again.json() == made.json()
    changed = {**FULL, "title": "Another", "upper": 1001, "texts": {"de": {"title": "Anders"}}}
    other = await service.call("POST", "/v1/studies", "admin", json=changed)
    assert_problem(other, "study_exists", 409)
    assert other.json()["detail"].endswith("; it differs in title, upper, texts")


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"slug": "Upper"}, ["slug"]),
        ({"slug": "-x"}, ["slug"]),
        ({"slug": ""}, ["slug"]),
        ({"slug": "x" * 64}, ["slug"]),
        ({"slug": "x\n"}, ["slug"]),
        ({"slug": 5}, ["slug"]),
        ({"title": ""}, ["title"]),
        ({"title": "x" * 201}, ["title"]),
        ({"title": "\x00"}, ["title"]),
        ({"title": 5}, ["title"]),
        ({"description": "x" * 2001}, ["description"]),
        ({"description": "\x00"}, ["description"]),
        ({"description": None}, ["description"]),
        ({"description": 0}, ["description"]),
        ({"series": "No slug"}, ["series"]),
        ({"lower": 1000}, ["upper"]),
        ({"lower": 2000}, ["upper"]),
        ({"lower": "0"}, ["lower"]),
        ({"lower": True}, ["lower"]),
        ({"lower": None}, ["lower"]),
        ({"upper": 1e16}, ["upper"]),
        ({"lower": -1e16}, ["lower"]),
        ({"relation": "swap"}, ["relation"]),
        ({"relation": 1}, ["relation"]),
        ({"trust": []}, ["trust"]),
        ({"trust": "central"}, ["trust"]),
        ({"trust": ["central", "central"]}, ["trust"]),
        ({"trust": ["blind"]}, ["trust.0"]),
        ({"trust": ["local"], "relation": "add_remove_one"}, ["trust"]),
        ({"epsilon": 5}, ["epsilon"]),
        ({"epsilon": {"min": 0}}, ["epsilon.min"]),
        ({"epsilon": {"min": 2, "max": 1}}, ["epsilon.max"]),
        ({"epsilon": {"max": 1000001}}, ["epsilon.max"]),
        ({"epsilon": {"min": 1e-7}}, ["epsilon.min"]),
        ({"epsilon": {"least": 1}}, ["epsilon.least"]),
        ({"epsilon": {"max": True}}, ["epsilon.max"]),
        ({"default_share": 0}, ["default_share"]),
        ({"default_share": 1.5}, ["default_share"]),
        ({"default_share": 1e-7}, ["default_share"]),
        ({"default_share": "0.5"}, ["default_share"]),
        ({"delta": 0.000001}, ["delta"]),
        ({"noise": "gaussian", "local_mechanism": "gaussian"}, ["delta"]),
        ({"noise": "gaussian", "delta": 0.000001}, ["local_mechanism"]),
        (
            {"noise": "gaussian", "delta": 1e-12, "epsilon": {"min": 0.001}, "local_mechanism": "gaussian"},
            ["delta"],
        ),
        ({"noise": "normal"}, ["noise"]),
        ({"delta": 1}, ["delta"]),
        ({"delta": -0.1}, ["delta"]),
        ({"delta": "0"}, ["delta"]),
        ({"dimension": 65}, ["dimension"]),
        ({"dimension": 2, "local_mechanism": "duchi"}, ["local_mechanism"]),
        ({"dimension": 0}, ["dimension"]),
        ({"dimension": 1.5}, ["dimension"]),
        ({"dimension": "1"}, ["dimension"]),
        ({"local_mechanism": "gaussian"}, ["local_mechanism"]),
        ({"local_mechanism": "magic"}, ["local_mechanism"]),
        ({"note": 1}, ["note"]),
        ({"slug": "X", "lower": "0", "note": 1}, ["slug", "lower", "note"]),
    ],
)
async def test_a_bad_study_is_refused(service: Service, changes: dict[str, Any], fields: list[str]) -> None:
    before = await service.rows()
    response = await service.call("POST", "/v1/studies", "admin", json={**FULL, **changes})
    assert_problem(response, "invalid_request", 422, *fields)
    assert await service.rows() == before


@pytest.mark.parametrize(
    "asked", [{"lower": 0, "upper": 1}, {"choices": ["a", "b"]}, {"lower": 0, "upper": 1, "dimension": 2}]
)
async def test_gaussian_noise_without_a_delta_is_refused(service: Service, asked: dict[str, Any]) -> None:
    response = await service.call(
        "POST", "/v1/studies", "admin", json={"slug": "s", "noise": "gaussian", **asked}
    )
    assert_problem(response, "invalid_request", 422, "delta")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e400", "0.1234567890123456789"])
async def test_a_bound_must_be_a_number_that_survives(service: Service, text: str) -> None:
    response = await service.call(
        "POST", "/v1/studies", "admin", content=f'{{"slug":"x","lower":0,"upper":{text}}}', headers=JSON
    )
    assert_problem(response, "invalid_request", 422, "upper")


async def test_studies_are_listed_page_by_page(service: Service) -> None:
    slugs = sorted(f"study-{number}" for number in range(7))
    for slug in slugs:
        await service.study(slug=slug)
    listed: list[str] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = (await service.call("GET", "/v1/studies", "analyse", params=query)).json()
        listed += [item["slug"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert listed == slugs


async def test_studies_are_listed_by_series(service: Service) -> None:
    for slug, series in (("a", "mood"), ("b", "sleep"), ("c", "mood"), ("d", None)):
        await service.study(slug=slug, **({} if series is None else {"series": series}))

    async def listed(**query: str) -> list[str]:
        page = (await service.call("GET", "/v1/studies", "analyse", params=query)).json()
        more = page["next_cursor"]
        rest = await listed(**{**query, "cursor": more}) if more else []
        return [item["slug"] for item in page["items"]] + rest

    assert await listed(series="mood", limit="1") == ["a", "c"]
    assert await listed(series="none") == []
    assert await listed() == ["a", "b", "c", "d"]
    refused = await service.call("GET", "/v1/studies", "analyse", params={"series": "No slug"})
    assert_problem(refused, "invalid_request", 422, "series")


async def test_what_is_said_of_a_study_is_changed_with_a_reason(service: Service) -> None:
    made = (await service.call("POST", "/v1/studies", "admin", json=FULL)).json()
    title = {"title": "How long, one way?", "reason": "people asked"}
    edited = await service.call("PATCH", "/v1/studies/full", "admin", json=title)
    assert edited.json() == made | {"title": title["title"]}
    told = {"description": "", "reason": "says nothing"}
    edited = await service.call("PATCH", "/v1/studies/full", "admin", json=told)
    assert edited.json() == made | {"title": title["title"], "description": ""}
    assert (await service.call("GET", "/v1/studies/full", "analyse")).json() == edited.json()
    trail = (await service.call("GET", "/v1/admin/audit", "admin", params={"action": "study.edit"})).json()
    assert [entry["detail"] for entry in trail["items"]] == [told, title]


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"lower": 0}, ["lower"]),
        ({"title": "x", "upper": 7, "epsilon": {"max": 1}}, ["epsilon", "upper"]),
        *(({name: FULL[name]}, [name]) for name in FULL if name not in ("title", "description")),
        ({"title": ""}, ["title"]),
        ({"title": "x", "note": 1}, ["note"]),
        ({"reason": "nothing else"}, ["title"]),
        ({"title": "x", "reason": ""}, ["reason"]),
        ({"title": "x", "reason": None}, ["reason"]),
    ],
)
async def test_nothing_else_of_a_study_changes(
    service: Service, change: dict[str, Any], fields: list[str]
) -> None:
    made = (await service.call("POST", "/v1/studies", "admin", json=FULL)).json()
    refused = await service.call("PATCH", "/v1/studies/full", "admin", json={"reason": "why", **change})
    assert_problem(refused, "invalid_request", 422, *fields)
    assert (await service.call("GET", "/v1/studies/full", "admin")).json() == made


async def test_closing_twice_changes_nothing(service: Service, study: str) -> None:
    for _ in range(2):
        response = await service.call("POST", f"/v1/studies/{study}/close", "admin")
        assert response.json()["state"] == "closed"
    assert (await service.call("GET", f"/v1/studies/{study}", "analyse")).json()["state"] == "closed"


async def test_retiring_twice_or_closing_afterwards_changes_nothing(service: Service, study: str) -> None:
    for action in ("retire", "retire", "close"):
        response = await service.call("POST", f"/v1/studies/{study}/{action}", "admin")
        assert response.json()["state"] == "retired"


@pytest.mark.parametrize("action", ["archive", "retire"])
async def test_a_release_that_is_under_way_when_its_study_ends_is_not_published(
    service: Service, study: str, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    await service.crowd(study)
    draft = Releases._draft
    reason = {"json": OVER} if action == "archive" else {}

    async def overtaken(*arguments: Any, **options: Any) -> Any:
        made = await draft(*arguments, **options)
        assert (await service.call("POST", f"/v1/studies/{study}/{action}", "admin", **reason)).is_success
        return made

    monkeypatch.setattr(Releases, "_draft", overtaken)
    refused = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={})
    assert_problem(refused, f"study_{action}d", 409)
    assert (await service.rows())["release"] == 0


async def test_a_retired_study_frees_nothing(service: Service, study: str) -> None:
    await service.crowd(study)
    session = {"protocol": "minimum", "epsilon": 8, "participants": 20, "rounds": 2, "mode": "budget_split"}
    made = (await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=session)).json()
    answer = {"subject": "p0", "round": 1, "answer": 1}
    path = f"/v1/sessions/{made['id']}"
    assert (await service.call("POST", f"{path}/answers", "contribute", json=answer)).status_code == 201
    await service.call("POST", f"/v1/studies/{study}/retire", "admin")
    assert (await service.call("GET", path, "analyse")).json()["state"] == "finished"
    again = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=session)
    assert_problem(again, "study_closed", 409)
    await service.call("DELETE", f"/v1/studies/{study}/contributions/p0", "contribute")
    budget = (await service.call("GET", "/v1/subjects/p0/budget", "admin")).json()
    assert budget["epsilon"]["reserved"] == 9
    assert (await service.api.services.ledger.audit()).clean


async def test_an_archived_study_gives_stored_answers_only_and_frees_what_was_not_spent(
    service: Service, study: str
) -> None:
    await service.crowd(study)
    session = {"protocol": "minimum", "epsilon": 8, "participants": 20, "rounds": 2, "mode": "budget_split"}
    made = (await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=session)).json()
    answer = {"subject": "p0", "round": 1, "answer": 1}
    path = f"/v1/sessions/{made['id']}"
    assert (await service.call("POST", f"{path}/answers", "contribute", json=answer)).status_code == 201
    release = (await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={})).json()
    statistic = f"/v1/studies/{study}/statistics/mean"
    answered = await service.call("GET", statistic, "analyse")

    refused = await service.call("POST", f"/v1/studies/{study}/archive", "admin", json={})
    assert_problem(refused, "invalid_request", 422, "reason")
    for _ in range(2):
        archived = await service.call("POST", f"/v1/studies/{study}/archive", "admin", json=OVER)
        assert archived.json()["state"] == "archived"

    # Stored answers, and nothing new.
    assert (await service.call("GET", statistic, "analyse")).content == answered.content
    assert (await service.call("GET", f"/v1/releases/{release['id']}", "analyse")).json() == release
    other = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.3})
    assert_problem(other, "study_archived", 409)
    value = {"subject": "new", "value": 1, "epsilon": 1, "trust": "central"}
    new = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=value)
    assert_problem(new, "study_closed", 409)
    assert (await service.call("GET", path, "analyse")).json()["state"] == "finished"
    again = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=session)
    assert_problem(again, "study_closed", 409)
    for action, code in (("close", None), ("retire", "study_archived")):
        response = await service.call("POST", f"/v1/studies/{study}/{action}", "admin")
        if code is not None:
            assert_problem(response, code, 409)
    assert (await service.call("GET", f"/v1/studies/{study}", "analyse")).json()["state"] == "archived"

    # Each statement says that what is held there is what was spent.
    charged, player = release["epsilon_max"], 4
    budget = (await service.call("GET", "/v1/subjects/p0/budget", "admin")).json()
    assert budget["epsilon"] == {
        "total": 10,
        "reserved": pytest.approx(charged + player),
        "spent": pytest.approx(charged + player),
        "remaining": pytest.approx(10 - charged - player),
    }
    (line,) = budget["studies"]
    assert (line["state"], line["epsilon"], line["spent"]) == ("archived", charged, charged)
    assert line["live"]

    # Why it was done stands in the trail, once.
    trail = (await service.call("GET", "/v1/admin/audit", "admin", params={"target": study})).json()["items"]
    assert [(entry["action"], entry["detail"]) for entry in trail[:1]] == [("study.archive", OVER)]
    assert [entry["action"] for entry in trail].count("study.archive") == 1
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.long
async def test_twelve_weeks_of_epsilon_1_fit_a_lifetime_of_10_where_each_is_archived(
    service: Service,
) -> None:
    people = 20

    async def week(number: int, series: str) -> httpx.Response:
        slug = await service.study(slug=f"{series}-{number}", series=series)
        records = [
            {"subject": f"p{one}", "value": one, "epsilon": 1, "trust": "central"} for one in range(people)
        ]
        return await service.call(
            "POST", f"/v1/studies/{slug}/contributions/batch", "contribute", json=records
        )

    spent = 0.0
    for number in range(1, 13):
        assert (await week(number, "mood")).json()["created"] == people, number
        asked = await service.call(
            "POST", f"/v1/studies/mood-{number}/releases", "analyse", json={"estimator": "uniform"}
        )
        spent += asked.json()["epsilon_max"]
        (open_one,) = [
            study
            for study in (
                await service.call("GET", "/v1/studies", "admin", params={"series": "mood"})
            ).json()["items"]
            if study["state"] == "open"
        ]
        archived = await service.call(
            "POST",
            f"/v1/studies/{open_one['slug']}/archive",
            "admin",
            json={"reason": f"week {number} is over"},
        )
        assert archived.status_code == 200
    budget = (await service.call("GET", "/v1/subjects/p3/budget", "admin")).json()
    assert budget["epsilon"]["spent"] == pytest.approx(spent) == pytest.approx(1.2)
    assert budget["epsilon"]["reserved"] == budget["epsilon"]["spent"]
    assert len(budget["studies"]) == 12
    assert (await service.api.services.ledger.audit()).clean

    # Without archiving, what is left is full after eight weeks: 10 - 1.2.
    results = [(await week(number, "kept")).json() for number in range(1, 10)]
    assert [one["created"] for one in results] == [people] * 8 + [0]


async def test_a_retired_study_is_not_archived(service: Service, study: str) -> None:
    await service.call("POST", f"/v1/studies/{study}/retire", "admin")
    refused = await service.call("POST", f"/v1/studies/{study}/archive", "admin", json=OVER)
    assert_problem(refused, "study_retired", 409)


async def test_a_document_is_read_whatever_its_order_and_spacing(service: Service) -> None:
    content = json.dumps(dict(reversed(FULL.items())), indent=3)
    response = await service.call("POST", "/v1/studies", "admin", content=content, headers=JSON)
    assert response.status_code == 201
