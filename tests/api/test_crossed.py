"""Tables of two choices over HTTP: the price of one choice, cells, their test, steps and labels."""

from itertools import product
from typing import Any

import pytest

from tests.api.service import Service, assert_problem
from tests.api.test_cells import SECRET, get

MEASURES = {
    "party": {"choices": ["red", "green", "blue"]},
    "age": {"lower": 0, "upper": 100},
    "sex": {"choices": ["f", "m"]},
}
PAIRS = [{"party": party, "sex": sex} for party, sex in product(["red", "green", "blue"], "fm")]
TERMS = [{}, {"noise": "gaussian", "delta": 1e-6}, SECRET, {**SECRET, "noise": "gaussian", "delta": 1e-6}]
IDS = ["laplace", "gaussian", "secret", "secret_gaussian"]


async def poll(service: Service, people: list[dict[str, str]], **terms: Any) -> str:
    """People who said these pairs, half of them in the north."""
    study = await service.study(
        lower=None, upper=None, measures=MEASURES, attributes={"region": ["north", "south"]}, **terms
    )
    records = [
        {
            "subject": f"p{number}",
            "epsilon": 4,
            "trust": "central",
            "values": {"age": number % 100, **pair},
            "attributes": {"region": ("north", "south")[number // len(PAIRS) % 2]},
        }
        for number, pair in enumerate(people)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == len(records), response.text
    return study


@pytest.mark.parametrize("terms", TERMS, ids=IDS)
async def test_a_table_costs_one_choice_and_says_whether_choices_go_together(
    service: Service, terms: dict[str, Any]
):
    """The red are women and the green are men, or everyone says every pair as often."""
    dependent = await poll(service, [PAIRS[0]] * 200 + [PAIRS[3]] * 200, **terms)
    even = await poll(service, PAIRS * 60, **terms)
    question = {"measures": "sex,party", "share": 0.5}
    for study in (dependent, even):
        path = f"/v1/studies/{study}"
        plan = await get(service, f"{path}/plan", statistic="table", **question)
        one = await get(service, f"{path}/plan", statistic="shares", measure="party", share=0.5)
        found = await get(service, f"{path}/statistics/table", **question)
        price = plan["estimators"][0]["epsilon_max"]
        assert found["epsilon_max"] == price == one["estimators"][0]["epsilon_max"]
        assert found["measures"] == ["party", "sex"]
        assert [cell["where"] for cell in found["cells"]] == PAIRS
        assert sum(cell["share"] for cell in found["cells"]) == pytest.approx(1)
        for cell in found["cells"]:
            assert cell["interval"]["lower"] <= cell["share"] <= cell["interval"]["upper"]
        again = await get(service, f"{path}/statistics/table", measures="party,sex", share=0.5)
        assert again["id"] == found["id"]
        if study == dependent:
            # Noise in a cell has a standard deviation of at most 3 of 400 people.
            assert found["p_value"] < 0.001
            assert abs(found["cells"][0]["share"] - 0.5) < 0.2
        else:
            assert 0 < found["p_value"] <= 1
            assert abs(found["cells"][0]["share"] - 1 / 6) < 0.2
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("terms", TERMS, ids=IDS)
async def test_a_table_has_labels_and_steps(service: Service, terms: dict[str, Any]):
    study = await poll(service, PAIRS * 40, **terms)
    path = f"/v1/studies/{study}"
    by = {"measures": "party,sex", "by": "region"}
    first = await get(service, f"{path}/statistics/table", **by, share=0.2)
    assert [group["where"] for group in first["groups"]] == [{"region": "north"}, {"region": "south"}]
    for answer in (first, *first["groups"]):
        assert [cell["where"] for cell in answer["cells"]] == PAIRS
        assert 0 < answer["p_value"] <= 1
    whole = await get(service, f"{path}/statistics/table", measures="party,sex", share=0.2)
    asked = {"statistic": "table", "measures": "party,sex", "share": 0.4, "allow_worse": True}
    sharper = await service.call("POST", f"{path}/releases", "analyse", json=asked)
    assert sharper.status_code == 201, sharper.text
    if terms.get("relation") is None:
        assert sharper.json()["refines"] == whole["id"]
    assert (await service.api.services.ledger.audit()).clean


async def test_what_is_no_pair_of_choices_is_refused(service: Service):
    study = await poll(service, PAIRS)
    path = f"/v1/studies/{study}/statistics/table"
    known = "must be two of party, sex, with a comma between"
    for measures in ("party,age", "party", "party,party", "party,sex,age"):
        refused = await service.call("GET", path, "analyse", params={"measures": measures})
        problem = assert_problem(refused, "invalid_request", 422, "measures")
        assert problem["errors"][0]["reason"] == known
    refused = await service.call("GET", path, "analyse", params={"measures": "party,sex", "measure": "sex"})
    assert_problem(refused, "invalid_request", 422, "measure")
    of_one = await service.study(lower=None, upper=None, choices=["a", "b"])
    refused = await service.call(
        "GET", f"/v1/studies/{of_one}/statistics/table", "analyse", params={"measures": "a,b"}
    )
    problem = assert_problem(refused, "invalid_request", 422, "statistic")
    assert problem["errors"][0]["reason"] == "is for studies of several choices: see measures"


async def test_a_table_is_a_table_and_public_people_pay_nothing(service: Service):
    study = await service.study(lower=None, upper=None, measures=MEASURES, trust=["public"])
    for number, pair in enumerate(PAIRS * 2):
        values = {"age": 30, **pair}
        sent = {"subject": f"p{number}", "values": values, "trust": "public"}
        path = f"/v1/studies/{study}/contributions"
        assert (await service.call("POST", path, "contribute", json=sent)).status_code == 201
    path = f"/v1/studies/{study}/statistics/table"
    found = await get(service, path, measures="party,sex")
    assert found["epsilon_max"] == 0
    assert [cell["share"] for cell in found["cells"]] == pytest.approx([1 / 6] * 6, abs=1e-3)
    # Independent to within a millionth, which few tables of twelve people are.
    assert found["p_value"] > 0.5
    told = await service.call(
        "GET", path, "analyse", params={"measures": "party,sex"}, headers={"Accept": "text/csv"}
    )
    assert "party=red; sex=f" in told.text
