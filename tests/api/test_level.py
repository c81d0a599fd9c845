"""Answers at other levels: free, of the same release, and refused where the ends are not kept."""

from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from app.estimators.confidence import LEVELS
from tests.api.service import Service
from tests.api.test_steps import STUDY, ask, join

QUESTIONS = (
    "mean",
    "sum",
    "variance",
    "sd",
    "median",
    "describe",
    "histogram",
    "distribution",
    "mean?range=found",
    "mean?by=region&simultaneous=true",
    "difference?between=region:north,south",
    "count?by=region",
)


async def regions(service: Service, **terms: Any) -> None:
    await service.study(
        slug="minutes", lower=0, upper=120, attributes={"region": ["north", "south"]}, **terms
    )
    records = [
        {
            "subject": f"{region}{place}",
            "value": 20 + place % 50,
            "epsilon": (2, 4)[place % 2],
            "trust": "central",
            "attributes": {"region": region},
        }
        for region in ("north", "south")
        for place in range(400)
    ]
    done = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert done.status_code == 200, done.text


async def read(service: Service, question: str, level: float | None) -> dict[str, Any]:
    statistic, _, rest = question.partition("?")
    params = {"share": "0.1"} | dict(one.split("=") for one in rest.split("&") if one)
    if level is not None:
        params["level"] = str(level)
    found = await service.call("GET", f"{STUDY}/statistics/{statistic}", "analyse", params=params)
    assert found.status_code == 200, found.text
    return dict(found.json())


def intervals(document: Any) -> list[dict[str, Any]]:
    """All of an answer, in their order."""
    if isinstance(document, list):
        return [one for part in document for one in intervals(part)]
    if not isinstance(document, dict):
        return []
    own = [document] if {"level", "lower", "upper"} <= document.keys() else []
    return own + [one for part in document.values() for one in intervals(part)]


def without_ends(document: Any) -> Any:
    """An answer but for its intervals."""
    if isinstance(document, list):
        return list(map(without_ends, document))
    if not isinstance(document, dict):
        return document
    own: tuple[str, ...] = (
        ("level", "lower", "upper") if {"level", "lower", "upper"} <= document.keys() else ()
    )
    if "laplaces" in document:  # A bound says what its variance misses.
        own = ("normal", "risk")
    return {name: without_ends(one) for name, one in document.items() if name not in own}


def width(interval: dict[str, Any]) -> float:
    return float(interval["upper"] - interval["lower"])


async def sql(service: Service, statement: str) -> list[Any]:
    connection = await asyncpg.connect(service.database_url)
    try:
        return list(await connection.fetch(statement))
    finally:
        await connection.close()


async def paid(service: Service) -> list[tuple[int, int]]:
    return [tuple(row) for row in await sql(service, "SELECT id, spent FROM cohort ORDER BY id")]


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_any_answer_is_read_at_any_level_for_nothing(service: Service, relation: str) -> None:
    await regions(service, relation=relation)
    secret = relation == "add_remove_one"
    for question in QUESTIONS:
        if question.startswith("sum" if secret else "count"):
            continue  # There is no sum of secret people, and a public number is no answer that stands.
        # The first one is made while another level is asked for.
        first, before = await read(service, question, 0.99), await paid(service)
        answers = {level: await read(service, question, level) for level in LEVELS}
        assert answers[0.95] == await read(service, question, None)
        assert await paid(service) == before, "nothing is paid for a level"
        assert intervals(first) == intervals(answers[0.99])
        for level, answer in answers.items():
            assert without_ends(answer) == without_ends(answers[0.95])
            assert {one["level"] for one in intervals(answer)} == {level}
        rows = list(zip(*(intervals(answers[level]) for level in LEVELS), strict=True))
        assert rows
        for narrower, wider in [pair for row in rows for pair in pairwise(row)]:
            slack = 1e-6 * (abs(wider["lower"]) + abs(wider["upper"]))
            if question != "median":
                assert wider["lower"] <= narrower["lower"] + slack, question
                assert narrower["upper"] <= wider["upper"] + slack, question
        # A quantile lies in a cell, which may be the same one.
        if question != "median":
            assert any(width(row[0]) < width(row[-1]) for row in rows), question


async def test_a_level_is_no_part_of_a_question(service: Service) -> None:
    await regions(service)
    made = await ask(service, share=0.2, level=0.99)
    again = await service.call(
        "POST", f"{STUDY}/releases", "analyse", json={"statistic": "mean", "share": 0.2, "level": 0.8}
    )
    assert again.status_code == 200, "it stands"
    assert again.json()["id"] == made["id"]
    assert again.json()["interval"]["level"] == 0.8
    shown = await service.call("GET", f"/v1/releases/{made['id']}?level=0.99", "analyse")
    assert shown.json()["interval"] == made["interval"]
    assert shown.json()["anytime"]["level"] == 0.99
    plain = await service.call("GET", f"/v1/releases/{made['id']}", "analyse")
    assert plain.json()["interval"]["level"] == 0.95
    for name in ("interval", "population_interval", "anytime"):
        assert made[name]["upper"] > plain.json()[name]["upper"]


async def test_a_plan_is_of_the_level_that_is_asked_for(service: Service) -> None:
    await regions(service)
    await ask(service, share=0.2)
    plans = {}
    for level in ("0.95", "0.99"):
        found = await service.call("GET", f"{STUDY}/plan?share=.4&level={level}", "analyse")
        plans[level] = found.json()
    one, other = (next(row for row in plan["estimators"] if row["chosen"]) for plan in plans.values())
    for name in ("half_width", "population_half_width", "anytime_half_width"):
        assert other[name] > 1.1 * one[name]
    assert other["predicted_error"] == one["predicted_error"]
    assert other["epsilon_max"] == one["epsilon_max"]
    assert plans["0.99"]["stands"]["interval"]["level"] == 0.99
    assert plans["0.99"]["stands"]["half_width"] > plans["0.95"]["stands"]["half_width"]
    assert "half of its 99 % interval" in plans["0.99"]["in_words"]


async def test_an_answer_of_before_says_so_and_no_one_pays(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120)
    await join(service, 100, prefix="p")
    made = await ask(service, share=0.2)
    await sql(service, "ALTER TABLE release DISABLE TRIGGER USER")
    await sql(service, "UPDATE release SET kept_ends = NULL")
    before = await paid(service)
    for path in (f"{STUDY}/statistics/mean?level=.99", f"/v1/releases/{made['id']}?level=.99"):
        found = await service.call("GET", path, "analyse")
        assert found.status_code == 409, found.text
        assert found.json()["code"] == "estimator_not_applicable"
        assert "made before answers kept the ends" in found.json()["detail"]
    assert await paid(service) == before
    planned = await service.call("GET", f"{STUDY}/plan?level=.99", "analyse")
    assert planned.json()["stands"]["interval"]["level"] == 0.95
    plain = await service.call("GET", f"/v1/releases/{made['id']}?level=0.95", "analyse")
    assert plain.json()["interval"] == made["interval"]


@pytest.mark.parametrize("level", ["0.97", "1", "0", "-1", "nan", "floor", "99", "1e400"])
async def test_a_level_that_is_not_kept_is_named(service: Service, level: str) -> None:
    await service.study(slug="minutes", lower=0, upper=120)
    for path in (
        f"{STUDY}/statistics/mean",
        f"{STUDY}/plan",
        "/v1/releases/" + "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
    ):
        found = await service.call("GET", path, "analyse", params={"level": level})
        assert found.status_code == 422, found.text
        (error,) = found.json()["errors"]
        assert error["field"] == "level"
        assert "must be one of 0.8, 0.9, 0.95, 0.99" in error["reason"]


async def test_the_epsilon_of_the_hourglass_has_a_name_of_its_own(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120, relation="add_remove_one", epsilon={"min": 0.5})
    await join(service, 100, prefix="p")
    by_query = await ask(service, estimator="hourglass", hourglass_level=1, share=1, level=0.8)
    assert by_query["parameters"]["level"] == 1
    assert by_query["interval"]["level"] == 0.8
    nested = await service.call(
        "POST",
        f"{STUDY}/releases",
        "analyse",
        json={"estimator": "hourglass", "parameters": {"level": 1}, "share": 1, "allow_worse": True},
    )
    assert nested.json()["parameters"] == by_query["parameters"]
