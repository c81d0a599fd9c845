"""Answers by several attributes over HTTP: every combination of labels, at the price of one answer."""

import csv
import io
from itertools import product
from typing import Any

import pytest

from tests.api.service import Service, assert_problem

LABELS = {"region": ["north", "south"], "age": ["-29", "30-"]}
CELLS = [{"region": region, "age": age} for region, age in product(*LABELS.values())]
SECRET = {"relation": "add_remove_one", "epsilon": {"min": 4, "max": 4}}
TERMS = [{}, {"noise": "gaussian", "delta": 1e-6}, SECRET, {**SECRET, "noise": "gaussian", "delta": 1e-6}]
ADD_UP = ("mean", "sum", "sd", "histogram", "distribution", "shares")
MEASURES = {"income": {"lower": 0, "upper": 100}, "party": {"choices": ["red", "green"]}}


async def survey(service: Service, **terms: Any) -> str:
    """Of each cell but the last one 60 people: the north says 20 and red, the south 80 and green."""
    slug = await service.study(
        lower=None, upper=None, measures=MEASURES, attributes=LABELS, default_share=0.2, **terms
    )
    records = [
        {
            "subject": f"p{number}",
            "epsilon": 4,
            "trust": "central",
            "values": {
                "income": 20 if where["region"] == "north" else 80,
                "party": "red" if where["region"] == "north" else "green",
            },
            "attributes": where,
        }
        for number, where in enumerate(60 * CELLS[:-1])
    ]
    path = f"/v1/studies/{slug}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == len(records), response.text
    return slug


async def get(service: Service, path: str, **query: Any) -> dict[str, Any]:
    response = await service.call("GET", path, "analyse", params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


@pytest.mark.parametrize("terms", TERMS, ids=["laplace", "gaussian", "secret", "secret_gaussian"])
async def test_every_statistic_has_every_cell_and_adds_up_at_one_price(
    service: Service, terms: dict[str, Any]
):
    study = await survey(service, **terms)
    free = len(ADD_UP)
    for statistic in (*ADD_UP, "median", "describe", "count"):
        if terms.get("relation") and statistic == "sum":
            continue
        measure = {} if statistic == "count" else {"measure": "party" if statistic == "shares" else "income"}
        question = {**measure, "share": 0.05}
        path = f"/v1/studies/{study}"
        plan = await get(service, f"{path}/plan", statistic=statistic, by=["region", "age"], **question)
        alone = await get(service, f"{path}/plan", statistic=statistic, **question)
        found = await get(service, f"{path}/statistics/{statistic}", by="age,region", **question)
        assert found["by"] == "region,age"
        assert [group["where"] for group in found["groups"]] == CELLS
        price = plan["estimators"][0]["epsilon_max"]
        # A sum, and all else that is read off what stands, is free.
        assert price in (0, found["epsilon_max"])
        if price and statistic in ADD_UP and terms.get("relation") is None:
            assert price == alone["estimators"][0]["epsilon_max"]
            free -= 1
        again = await get(service, f"{path}/statistics/{statistic}", by=["region", "age"], **question)
        assert again["id"] == found["id"]
        if terms.get("relation") is None:
            assert [group["people"] for group in found["groups"]] == [60, 60, 60, 0]
        else:
            assert all("people" not in group for group in found["groups"])
    assert terms.get("relation") or free == 3, "mean, histogram and shares were paid for"
    assert (await service.api.services.ledger.audit()).clean


async def test_cells_stand_in_tables_and_intervals_can_hold_together(service: Service):
    study = await survey(service)
    path = f"/v1/studies/{study}/statistics/mean"
    query = {"measure": "income", "by": "region,age", "share": 1, "simultaneous": "true"}
    found = await get(service, path, **query)
    for group, mean in zip(found["groups"][:-1], (20, 20, 80), strict=True):
        # Noise of scale 100 / 60 / 4, far below this: a false alarm has a probability below e^-60.
        assert abs(group["estimate"] - mean) < 30
        assert group["simultaneous"]["lower"] <= group["interval"]["lower"]
    told = await service.call("GET", path, "analyse", params=query, headers={"Accept": "text/csv"})
    rows = list(csv.DictReader(io.StringIO(told.text)))
    named = [row["of"] for row in rows]
    for cell in ("region=north; age=-29", "region=north; age=30-", "region=south; age=-29"):
        assert cell in named
    assert not any("age=30-" in one and "south" in one for one in named), "no person, and no number"


async def test_limits_and_names_are_refused_with_field_and_reason(service: Service):
    labels = {"a": [f"a{n}" for n in range(25)], "b": [f"b{n}" for n in range(20)]}
    study = await service.study(attributes=labels)
    path = f"/v1/studies/{study}/statistics"
    query = {"by": "a,b", "bins": 60}
    refused = await service.call("GET", f"{path}/histogram", "analyse", params=query)
    problem = assert_problem(refused, "invalid_request", 422, "by")
    assert "has 500 labels of 60 numbers each, and an answer at most 10,000" in problem["errors"][0]["reason"]
    for by, reason in (
        (["a", "a"], "names a twice"),
        (["a", "c"], "must name attributes of the study: a, b"),
    ):
        for statistic in ("mean", "median"):
            refused = await service.call("GET", f"{path}/{statistic}", "analyse", params={"by": by})
            problem = assert_problem(refused, "invalid_request", 422, "by")
            assert problem["errors"][0]["reason"] == reason
    refused = await service.call(
        "POST", f"/v1/studies/{study}/releases", "analyse", json={"by": ["a", "b"], "where": "a:a1"}
    )
    problem = assert_problem(refused, "invalid_request", 422, "by")
    assert problem["errors"][0]["reason"] == "names a, of which where names the label"
