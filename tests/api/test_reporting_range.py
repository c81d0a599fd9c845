"""A reporting range: fixed off two searches, stated by reports, and what answers say of it."""

import asyncio
from typing import Any

import httpx
import numpy as np
import pytest
from dither.device.numbers import inside_range
from dither.device.randomizers import randomizer
from dither.device.response import assigned_round, respond

from app.core.grid import GRID_SIZE
from app.services.admin.ledger import RANGE_RULE
from tests.api.service import Service, assert_problem
from tests.support.forgery import tampered

EPSILON = 2_000_000
SEARCH_EPSILON = 6_000_000
FEW, MANY = 80, 400
INSIDE = "a contribution was made inside a reporting range that its study does not have"


async def search(service: Service, study: str, quantile: float, values: np.ndarray[Any, Any]) -> str:
    """A finished search for a quantile; each device answers in its round."""
    rounds = 8 if values.size > FEW else 5
    wish = {"protocol": "quantile", "quantile": quantile, "epsilon": 6, "participants": values.size}
    wish |= {"rounds": rounds, "answers_per_round": None, "round_seconds": 600}
    made = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=wish)
    assert made.status_code == 201, made.text
    session = made.json()
    path, key = f"/v1/sessions/{session['id']}", bytes.fromhex(session["assignment_key"])
    for number in range(1, rounds + 1):
        asked = (await service.call("GET", f"{path}/round", "contribute")).json()["threshold_value"]
        names = {f"{study}-{quantile}-{person}": value for person, value in enumerate(values)}
        sent = await asyncio.gather(
            *(
                service.call(
                    "POST",
                    f"{path}/answers",
                    "contribute",
                    json={
                        "subject": name,
                        "round": number,
                        "answer": respond(int(value <= asked), 2, SEARCH_EPSILON),
                    },
                )
                for name, value in names.items()
                if assigned_round(key, name, rounds) == number
            )
        )
        assert {one.status_code for one in sent} <= {201}
        closed = await service.call("POST", f"{path}/close-round", "admin", json={"round": number})
        assert closed.status_code == 200, closed.text
    return str(session["id"])


async def narrowed(service: Service, people: int = FEW, **options: Any) -> tuple[str, dict[str, Any]]:
    """A study of 0 to 100 whose people have 40 to 50, with its reporting range."""
    limits = {"epsilon": {"min": 1, "max": 8}, "trust": ["central", "local"]}
    study = await service.study(**{**limits, **options})
    values = np.random.default_rng(7).uniform(40, 50, 2 * people)
    searches = [
        await search(service, study, quantile, own)
        for quantile, own in zip((0.03, 0.97), (values[:people], values[people:]), strict=True)
    ]
    fixed = await narrow(service, study, *searches)
    assert fixed.status_code == 200, fixed.text
    return study, fixed.json()


async def narrow(service: Service, study: str, lower: str, upper: str) -> httpx.Response:
    wish = {"lower": lower, "upper": upper}
    return await service.call("POST", f"/v1/studies/{study}/reporting-range", "admin", json=wish)


def report(study: dict[str, Any], value: float, *, inside: bool = True) -> dict[str, Any]:
    """What a device sends of a value."""
    point, stated = round(value / 100 * GRID_SIZE), {}
    if inside:
        found = study["reporting_range"]
        point = inside_range(point, found["start"], found["zoom"])
        stated = {"reporting_range": f"{found['start']}/{found['zoom']}"}
    made = randomizer(study["local_mechanism"]).report(point, EPSILON)
    return {"report": made, "epsilon": 2, "trust": "local", **stated}


async def send(service: Service, study: str, records: list[dict[str, Any]]) -> None:
    path = f"/v1/studies/{study}/contributions/batch"
    sent = await service.call("POST", path, "contribute", json=records)
    assert sent.json()["created"] == len(records), sent.text


async def test_reports_inside_a_found_range_have_the_square_of_its_part_of_the_variance(
    service: Service,
) -> None:
    study, described = await narrowed(service, MANY)
    found = described["reporting_range"]
    assert found["zoom"] >= 4
    assert found["lower"] < 46
    assert found["upper"] > 44
    assert 0 < found["outside_at_most"] < 1
    values = np.random.default_rng(8).uniform(40, 50, 400)
    whole = await service.study(trust=["local"])
    answers = []
    for place, inside in ((whole, False), (study, True)):
        reports = [{"subject": f"i{n}", **report(described, v, inside=inside)} for n, v in enumerate(values)]
        await send(service, place, reports)
        question = {"estimator": "optimal", "shrinkage": "none"}
        made = await service.call("POST", f"/v1/studies/{place}/releases", "analyse", json=question)
        answers.append(made.json())
    wide, narrow = answers
    assert "reporting_range" not in wide
    # `tests/unit/sessions/test_found_reporting.py` has what zoom is found: a fiftieth at most.
    part = narrow["standard_error"] ** 2 / wide["standard_error"] ** 2
    assert part == pytest.approx(1 / found["zoom"] ** 2, rel=0.1)
    assert abs(narrow["estimate"] - np.clip(values, found["lower"], found["upper"]).mean()) <= (
        6 * narrow["standard_error"]
    )
    inside = narrow["reporting_range"]
    assert inside["outside_at_most"] == found["outside_at_most"]
    assert inside["people_outside_at_most"] == np.ceil(400 * found["outside_at_most"])
    assert narrow["assumption"].endswith("values that reports inside the reporting range have moved into it")


@pytest.mark.parametrize("way", ["one", "batch", "csv"])
async def test_a_report_states_the_range_that_the_study_has(service: Service, way: str) -> None:
    study, described = await narrowed(service)
    other = await service.study(trust=["central", "local"])
    record = {"subject": "a", **report(described, 45)}

    async def sent(to: str, document: dict[str, Any]) -> list[dict[str, str]]:
        path = f"/v1/studies/{to}/contributions"
        if way == "one":
            one = await service.call("POST", path, "contribute", json=document)
            return [] if one.status_code == 201 else list(one.json()["errors"])
        options: dict[str, Any] = {"json": [document]}
        if way == "csv":
            lines = [",".join(document), ",".join(map(str, document.values()))]
            options = {"content": "\n".join(lines), "headers": {"content-type": "text/csv"}}
        many = await service.call("POST", f"{path}/batch", "contribute", **options)
        if many.status_code != 200:
            return [{"field": "header", "reason": many.json()["detail"]}]
        return [error for one in many.json()["results"] for error in one.get("errors", ())]

    [unknown] = await sent(other, {**record, "epsilon": 1})
    assert "reporting_range" in str(unknown)
    [wrong] = await sent(study, {**record, "reporting_range": "5/7"})
    assert wrong["field"] == "reporting_range"
    assert str(record["reporting_range"]) in wrong["reason"]
    assert await sent(study, record) == []
    assert await sent(study, {"subject": "b", **report(described, 45, inside=False)}) == []


async def test_a_report_repeated_with_another_range_is_another_one(service: Service) -> None:
    study, described = await narrowed(service)
    path, record = f"/v1/studies/{study}/contributions", {"subject": "a", **report(described, 45)}
    assert (await service.call("POST", path, "contribute", json=record)).status_code == 201
    assert (await service.call("POST", path, "contribute", json=record)).status_code == 200
    wide = {name: value for name, value in record.items() if name != "reporting_range"}
    again = await service.call("POST", path, "contribute", json=wide)
    assert_problem(again, "contribution_exists", 409)
    await service.call("GET", f"/v1/studies/{study}/plan", "analyse")
    assert (await service.call("DELETE", f"{path}/a", "contribute")).status_code == 204
    async with tampered(service.database_url, []) as (_, audit):
        assert (await audit()).clean


async def test_a_range_is_fixed_once_from_finished_searches(service: Service) -> None:
    study, described = await narrowed(service)
    lower, upper = described["reporting_range"]["searches"]
    assert (await narrow(service, study, lower, upper)).json() == described
    assert_problem(await narrow(service, study, upper, lower), "invalid_request", 422, "upper")
    other = await service.study(trust=["central", "local"])
    assert_problem(await narrow(service, other, lower, upper), "invalid_request", 422, "lower", "upper")
    third = await search(service, study, 0.5, np.full(60, 45.0))
    assert_problem(await narrow(service, study, lower, third), "conflict", 409)
    central = await service.study(trust=["central"])
    assert_problem(await narrow(service, central, lower, upper), "invalid_request", 422, "study")
    definition = {name: described[name] for name in ("slug", "lower", "upper")}
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    assert definition["slug"] == study
    assert_problem(await narrow(service, study, lower, third), "study_closed", 409)


async def test_labels_say_how_many_are_outside_at_most(service: Service) -> None:
    study, described = await narrowed(service, attributes={"region": ["north", "south"]})
    values = np.random.default_rng(8).uniform(40, 50, 300)
    records = [
        {"subject": f"i{n}", **report(described, v, inside=n % 3 > 0), "attributes": {"region": region}}
        for n, v in enumerate(values)
        for region in [("north", "south")[n % 2]]
    ]
    await send(service, study, records)
    question = {"by": "region", "estimator": "optimal"}
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    found = made.json()
    outside = found["reporting_range"]["people_outside_at_most"]
    assert outside == np.ceil(200 * described["reporting_range"]["outside_at_most"])
    cohorts = (await service.call("GET", f"/v1/admin/studies/{study}/cohorts", "admin")).json()["items"]
    assert sorted(one["people"] for one in cohorts) == [50, 50, 100, 100]
    for group in found["groups"]:
        assert group["people"] == 150
        assert group["outside_at_most"] == min(1, outside / 150)
        assert abs(group["estimate"] - 45) <= 6 * group["standard_error"] + 1


async def test_a_range_is_between_a_lower_and_a_higher_quantile(service: Service) -> None:
    """One search for both ends would fix a range that holds hardly anyone."""
    study = await service.study(epsilon={"min": 1, "max": 8}, trust=["central", "local"])
    values = np.random.default_rng(7).uniform(40, 50, 2 * FEW)
    low, middle = [
        await search(service, study, quantile, own)
        for quantile, own in zip((0.03, 0.5), np.split(values, 2), strict=True)
    ]
    for lower, upper in ((low, low), (middle, middle), (middle, low)):
        assert_problem(await narrow(service, study, lower, upper), "invalid_request", 422, "upper")
    described = await service.call("GET", f"/v1/studies/{study}", "analyse")
    assert described.json()["reporting_range"] is None


@pytest.mark.parametrize("planted", ["", "range", "flag", "forgotten"])
async def test_the_audit_knows_the_range(service: Service, planted: str) -> None:
    study, described = await narrowed(service)
    await send(service, study, [{"subject": f"i{n}", **report(described, 45)} for n in range(20)])
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"estimator": "optimal"})
    statements = {
        "": ("", []),
        "range": (
            # Which zoom the searches find hangs on noise: another one is one more than it.
            "UPDATE study SET reporting_range = jsonb_set(reporting_range, '{zoom}',"
            " to_jsonb((reporting_range->>'zoom')::int + 1)) WHERE reporting_range IS NOT NULL",
            [RANGE_RULE],
        ),
        "flag": (
            "UPDATE contribution SET segment = segment - 1024 WHERE segment >= 1024",
            ["a cohort does not hold what was folded into it"],
        ),
        "forgotten": ("UPDATE study SET reporting_range = NULL", [INSIDE]),
    }
    statement, broken = statements[planted]
    async with tampered(service.database_url, [statement] if planted else []) as (_, audit):
        assert [finding.rule for finding in (await audit()).findings] == broken
