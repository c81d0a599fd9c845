"""Measures of several coordinates: declared, contributed through every door, asked, refused by name."""

import json
from typing import Any

import numpy as np
import pytest

from tests.api.service import Service, assert_problem
from tests.api.test_measures import household, vectors
from tests.api.test_shapes import get, spent

PLACE = {"lower": -1, "upper": 1, "dimension": 2}
MEASURES: dict[str, Any] = {
    "age": {"lower": 18, "upper": 98},
    "place": PLACE,
    "party": {"choices": ["red", "green"]},
    "income": {"lower": 0, "upper": 9000},
}
ALICE: dict[str, Any] = {
    "subject": "alice",
    "values": {"income": 4500, "age": 58, "place": [0, 1], "party": "green"},
    "epsilon": 1,
    "trust": "central",
}
SOME = {"income": 0, "age": 18, "party": "red"}
RECORDS = [
    ALICE,
    {"subject": "bob", "values": {**SOME, "place": [-1, 0.5]}, "trust": "public"},
    {**ALICE, "subject": "cyd", "values": {**SOME, "place": [0, 2]}},
    {**ALICE, "subject": "dan", "values": {**SOME, "place": [0]}},
]
CSV = """subject,Place,income,age,party,epsilon,trust
alice,0; 1,4500,58,green,1,central
bob,-1;0.5,0,18,red,,public
cyd,0;2,0,18,red,1,central
dan,0,0,18,red,1,central
"""
FORMS = {
    "application/json": json.dumps(RECORDS),
    "application/x-ndjson": "\n".join(map(json.dumps, RECORDS)),
    "text/csv": CSV,
}
HALF, WHOLE = 1 << 29, 1 << 30
STORED = [[0, 0, 3 * (HALF // 2), 0, 0], [HALF, HALF, WHOLE, WHOLE, HALF]]
PEOPLE = 300
VALUES: list[dict[str, Any]] = [
    {
        "income": 10 * number,
        "age": 20 + number % 30,
        "place": [(number % 20) / 20, -0.5],
        "party": ("red", "green")[number % 2],
    }
    for number in range(PEOPLE)
]


async def inhabited(service: Service, **terms: Any) -> str:
    """A study of four measures of 300 central people."""
    study = await household(service, **{"measures": MEASURES, "default_share": 0.2, **terms})
    people = [
        {"subject": f"p{number}", "values": values, "epsilon": 8, "trust": "central"}
        for number, values in enumerate(VALUES)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=people)
    assert response.json()["created"] == PEOPLE, response.text
    return study


async def test_it_is_shown_as_it_was_declared(service: Service):
    study = await household(service, measures=MEASURES)
    shown = (await service.call("GET", f"/v1/studies/{study}", "analyse")).json()
    assert shown["dimension"] == 5
    assert list(shown["measures"]) == list(MEASURES)
    assert shown["measures"]["place"] == {**PLACE, "choices": [], "step": 2 / 2**30}
    assert shown["measures"]["age"]["dimension"] == 1


@pytest.mark.parametrize(
    ("measures", "more", "field"),
    [
        ({"place": {**PLACE, "dimension": 0}}, {}, "measures.place.dimension"),
        ({"place": {**PLACE, "dimension": 65}}, {}, "measures.place.dimension"),
        ({"place": {**PLACE, "dimension": 1.5}}, {}, "measures.place.dimension"),
        ({"place": {**PLACE, "dimension": 33}, "other": {**PLACE, "dimension": 31}}, {}, "measures"),
        ({"place": {"choices": ["x", "y"], "dimension": 2}}, {}, "measures.place.dimension"),
        ({"place": PLACE}, {"trust": ["central", "local"]}, "trust"),
    ],
)
async def test_what_cannot_be_declared_is_refused(
    service: Service, measures: dict[str, Any], more: dict[str, Any], field: str
):
    document = {"slug": "odd", "measures": {**measures, "age": MEASURES["age"]}, **more}
    refused = await service.call("POST", "/v1/studies", "admin", json=document)
    problem = assert_problem(refused, "invalid_request", 422, field)
    if field == "trust":
        assert "declare a measure for each coordinate" in problem["errors"][0]["reason"]


@pytest.mark.parametrize("form", FORMS)
async def test_every_form_of_a_batch_takes_arrays(service: Service, form: str):
    study = await household(service, measures=MEASURES)
    path = f"/v1/studies/{study}/contributions/batch"
    headers = {"Content-Type": form}
    sent = await service.call("POST", path, "contribute", content=FORMS[form], headers=headers)
    results = sent.json()["results"]
    assert [one["status"] for one in results] == ["created"] * 2 + ["refused"] * 2, sent.text
    assert results[2]["errors"] == [
        {"field": "values.place.1", "reason": "outside the measure's range, -1 to 1"}
    ]
    assert results[3]["errors"] == [{"field": "values.place", "reason": "must be an array of 2 numbers"}]
    again = await service.call("POST", path, "contribute", content=FORMS[form], headers=headers)
    assert again.json()["unchanged"] == 2
    assert sorted(filter(None, await vectors(service))) == STORED
    assert (await service.api.services.ledger.audit()).clean


async def test_one_person_contributes_moves_and_leaves(service: Service):
    study = await household(service, measures=MEASURES)
    path = f"/v1/studies/{study}/contributions"
    for place, field in ((0.5, "values.place"), ("0;1", "values.place"), ([0, "1"], "values.place.1")):
        record = {**ALICE, "values": {**SOME, "place": place}}
        refused = await service.call("POST", path, "contribute", json=record)
        assert_problem(refused, "invalid_request", 422, field)
    missing = await service.call("POST", path, "contribute", json={**ALICE, "values": SOME})
    assert_problem(missing, "invalid_request", 422, "values.place")
    assert (await service.call("POST", path, "contribute", json=ALICE)).status_code == 201
    moved = {"values": {**SOME, "place": [1, -1]}, "epsilon": 2, "trust": "central"}
    put = await service.call("PUT", f"{path}/alice", "contribute", json=moved)
    assert put.status_code == 200, put.text
    assert await vectors(service) == [[0, WHOLE, 0, 0, 0]]
    assert (await service.call("DELETE", f"{path}/alice", "contribute")).status_code == 204
    assert await vectors(service) == [None]
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("terms", [{}, {"noise": "gaussian", "delta": 1e-6}])
async def test_its_mean_and_those_of_its_neighbors_are_about_their_own_coordinates(
    service: Service, terms: dict[str, Any]
):
    study = await inhabited(service, **terms)
    plan = await get(service, study, "plan", measure="place")
    place = await get(service, study, "statistics/mean", measure="place")
    assert (place["measure"], place["epsilon_max"]) == ("place", plan["estimators"][0]["epsilon_max"])
    assert await spent(service, study, "p7") == pytest.approx(place["epsilon_max"], abs=1e-5)
    truth = np.mean([one["place"] for one in VALUES], axis=0)
    for one, mean in zip(place["coordinates"], truth, strict=True):
        assert abs(one["estimate"] - mean) < 10 * one["standard_error"]
        assert -1 <= one["interval"]["lower"] <= one["interval"]["upper"] <= 1
    sd = await get(service, study, "statistics/sd", measure="place")
    assert sd["id"] == place["id"]
    for name in ("age", "income"):
        mean = await get(service, study, "statistics/mean", measure=name)
        own = np.mean([one[name] for one in VALUES])
        assert abs(mean["estimate"] - own) < 10 * mean["standard_error"]
    shares = await get(service, study, "statistics/shares", measure="party")
    assert abs(shares["choices"][0]["share"] - 0.5) < 0.2
    covariance = await get(service, study, "statistics/covariance", measures="age,income")
    assert abs(covariance["means"][1] - 1495) < 1500
    assert (await service.api.services.ledger.audit()).clean


async def test_statistics_of_numbers_say_that_it_has_coordinates(service: Service):
    study = await inhabited(service)
    for path, params, field in (
        ("median", {"measure": "place"}, "statistic"),
        ("histogram", {"measure": "place"}, "statistic"),
        ("mean", {"measure": "place", "range": "found"}, "range"),
        ("covariance", {"measures": "age,place"}, "measures"),
        ("shares", {"measure": "place"}, "statistic"),
        ("mean", {}, "measure"),
    ):
        refused = await service.call(
            "GET", f"/v1/studies/{study}/statistics/{path}", "analyse", params=params
        )
        problem = assert_problem(refused, "invalid_request", 422, field)
        if path == "median":
            assert "2 coordinates" in problem["errors"][0]["reason"]


async def test_where_the_number_of_people_is_secret_it_has_a_mean_too(service: Service):
    study = await inhabited(service, relation="add_remove_one", epsilon={"min": 8, "max": 8})
    place = await get(service, study, "statistics/mean", measure="place")
    assert abs(place["coordinates"][1]["estimate"] + 0.5) < 0.2
    assert "people" not in place
