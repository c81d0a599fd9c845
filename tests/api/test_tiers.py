"""Studies that list the epsilons that people may offer, in place of a range."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dither import AsyncClient, InvalidRequest

from tests.api.service import Service, assert_problem

TIERS = [0.5, 1, 1.23]
REASON = "must be one of 0.5, 1, 1.23"
TRUST = ["central", "local", "public"]
MORE: dict[str, Any] = {"epsilons": TIERS, "trust": TRUST, "local_mechanism": "laplace"}


def record(subject: str, epsilon: object, **fields: Any) -> dict[str, Any]:
    return {"subject": subject, "value": 50, "epsilon": epsilon, "trust": "central", **fields}


async def test_a_study_says_its_epsilons_in_order_beside_the_range_that_they_span(service: Service):
    slug = await service.study(epsilons=["2", 0.25, 1])
    document = (await service.call("GET", f"/v1/studies/{slug}", "analyse")).json()
    assert document["epsilons"] == [0.25, 1, 2]
    assert document["epsilon"] == {"min": 0.25, "max": 2}
    again = {"slug": slug, "lower": 0, "upper": 100, "epsilons": [1, 2, 0.25]}
    assert (await service.call("POST", "/v1/studies", "admin", json=again)).status_code == 200
    other = await service.call("POST", "/v1/studies", "admin", json={**again, "epsilons": [1, 2]})
    assert_problem(other, "study_exists", 409)
    plain = await service.study()
    assert (await service.call("GET", f"/v1/studies/{plain}", "analyse")).json()["epsilons"] == []


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        ({"epsilons": []}, "epsilons", "1 or more"),
        ({"epsilons": [1, "1.0"]}, "epsilons", "twice"),
        ({"epsilons": [1, 0]}, "epsilons.1", "above 0"),
        ({"epsilons": [-1]}, "epsilons.0", "above 0"),
        ({"epsilons": [1_000_001]}, "epsilons.0", "at most 1000000"),
        ({"epsilons": [1.234]}, "epsilons.0", "three significant digits"),
        ({"epsilons": ["0.5000001"]}, "epsilons.0", "three significant digits"),
        ({"epsilons": [True]}, "epsilons.0", "number"),
        ({"epsilons": 1}, "epsilons", "array"),
        ({"epsilons": [one / 100 for one in range(1, 102)]}, "epsilons", "at most 100"),
        ({"epsilons": [1], "epsilon": {"max": 2}}, "epsilons", "a list of epsilons or a range"),
        ({"epsilons": [1e-6], "noise": "gaussian", "delta": 1e-6}, "delta", "the least epsilon"),
    ],
)
async def test_a_list_that_makes_no_sense_is_refused(
    service: Service, fields: dict[str, Any], field: str, reason: str
):
    document = {"slug": "listed", "lower": 0, "upper": 1, **fields}
    refused = await service.call("POST", "/v1/studies", "admin", json=document)
    problem = assert_problem(refused, "invalid_request", 422, field)
    assert reason in problem["errors"][0]["reason"]


async def test_a_hundred_epsilons_are_a_list_and_one_is_one(service: Service):
    for several in ([one / 100 for one in range(1, 101)], [1]):
        slug = await service.study(epsilons=several)
        document = (await service.call("GET", f"/v1/studies/{slug}", "analyse")).json()
        assert document["epsilons"] == several


async def test_an_offer_is_one_of_the_list_once_it_is_rounded_down(service: Service):
    slug = await service.study(**MORE)
    path = f"/v1/studies/{slug}/contributions"
    for subject, epsilon, holds in (("a", 0.5, 0.5), ("b", "1.2399", 1.23), ("c", 1.0009, 1)):
        made = await service.call("POST", path, "contribute", json=record(subject, epsilon))
        assert (made.status_code, made.json()["epsilon"]) == (201, holds)
    for epsilon in (0.499999, 0.501, 0.75, 1.24, 2, 1000, 0):
        refused = await service.call("POST", path, "contribute", json=record("d", epsilon))
        problem = assert_problem(refused, "invalid_request", 422, "epsilon")
        if epsilon:
            assert problem["errors"] == [{"field": "epsilon", "reason": REASON}]
    public = {"subject": "p", "value": 50, "trust": "public"}
    assert (await service.call("POST", path, "contribute", json=public)).status_code == 201
    local = {"subject": "l", "report": 1 << 29, "epsilon": 0.75, "trust": "local"}
    refused = await service.call("POST", path, "contribute", json=local)
    assert_problem(refused, "invalid_request", 422, "epsilon")
    made = await service.call("POST", path, "contribute", json={**local, "epsilon": 0.5})
    assert made.status_code == 201, made.text


async def test_a_replacement_and_every_form_of_a_batch_have_the_same_verdict(service: Service):
    slug = await service.study(**MORE)
    path = f"/v1/studies/{slug}/contributions"
    await service.contribute(slug, "ann", epsilon=0.5)
    for epsilon, status in ((0.75, 422), (1, 200)):
        changed = {"value": 60, "epsilon": epsilon, "trust": "central"}
        response = await service.call("PUT", f"{path}/ann", "contribute", json=changed)
        assert response.status_code == status, response.text
        if status == 422:
            assert_problem(response, "invalid_request", 422, "epsilon")
    for name, form, text in (
        ("j", "application/json", json.dumps([record("j-1", 1.23), record("j-2", 0.75)])),
        ("n", "application/x-ndjson", "\n".join(map(json.dumps, [record("n-1", 1.23), record("n-2", 0.75)]))),
        ("c", "text/csv", "subject,value,epsilon,trust\nc-1,50,1.23,central\nc-2,50,0.75,central\n"),
    ):
        response = await service.call(
            "POST", f"{path}/batch", "contribute", content=text, headers={"Content-Type": form}
        )
        first, second = response.json()["results"]
        assert first == {"status": "created"}, name
        assert second["code"] == "invalid_request", name
        assert second["errors"] == [{"field": "epsilon", "reason": REASON}], name


async def test_a_plan_counts_with_the_least_and_the_largest_of_the_list(service: Service):
    listed = await service.study(epsilons=[0.5, 1, 2], relation="add_remove_one")
    ranged = await service.study(epsilon={"min": 0.5, "max": 2}, relation="add_remove_one")
    plans = []
    for slug in (listed, ranged):
        await service.contribute(slug, "ann", epsilon=1)
        plan = await service.call("GET", f"/v1/studies/{slug}/plan?expected_size=100", "analyse")
        assert plan.status_code == 200, plan.text
        plans.append(plan.json()["estimators"])
    assert plans[0] == plans[1]


async def test_the_sdk_makes_such_a_study_and_the_device_refuses_by_itself(service: Service, tmp_path: Path):
    options: dict[str, Any] = {"transport": service.transport}
    async with AsyncClient("http://test", service.tokens["admin"], **options) as admin:
        study = await admin.create_study("tiers", lower=0, upper=100, epsilons=["0.50", 1, Decimal("2e0")])
        assert study.epsilons == (Decimal("0.5"), Decimal(1), Decimal(2))
        assert (study.epsilon.min, study.epsilon.max) == (Decimal("0.5"), Decimal(2))
    token = service.tokens["contribute"]
    async with AsyncClient("http://test", token, directory=tmp_path, **options) as device:
        for epsilon in ("0.75", 4, "0.4999"):
            with pytest.raises(InvalidRequest, match=r"must be one of 0\.5, 1, 2") as refused:
                await device.contribute("tiers", subject="ann", value=1, epsilon=epsilon, trust="central")
            assert refused.value.field == "epsilon"
        done = await device.contribute("tiers", subject="ann", value=1, epsilon="1.005", trust="central")
        assert done.epsilon == 1
