"""The covariance of two numbers over HTTP: priced as planned, one release, refused by field."""

from typing import Any

import pytest

from tests.api.service import Service, assert_problem
from tests.api.test_measures import household, move_in
from tests.api.test_shapes import get, spent

THREE = {
    "income": {"lower": 0, "upper": 9000},
    "age": {"lower": 18, "upper": 98},
    "party": {"choices": ["red", "green"]},
}


@pytest.mark.parametrize("terms", [{}, {"noise": "gaussian", "delta": 1e-6}])
async def test_it_costs_what_was_planned_and_lies_near_the_truth(service: Service, terms: dict[str, Any]):
    study = await household(service, default_share=0.5, **terms)
    await move_in(service, study)
    question = {"measures": "income,age"}
    plan = await get(service, study, "plan", statistic="covariance", **question)
    found = await get(service, study, "statistics/covariance", **question)
    assert found["measures"] == ["income", "age"]
    assert found["epsilon_max"] == plan["estimators"][0]["epsilon_max"]
    assert 4 < found["epsilon_max"] <= (5 if not terms else 10)
    assert await spent(service, study, "p7") == pytest.approx(found["epsilon_max"], abs=1e-5)
    incomes, ages = [10 * number for number in range(300)], [20 + number % 30 for number in range(300)]
    truth = sum((one - 1495) * (other - 34.5) for one, other in zip(incomes, ages, strict=True)) / 300
    assert abs(found["estimate"] - truth) < 8 * found["predicted_error"]
    assert abs(found["means"][0] - 1495) < 1000
    for name in ("interval", "population_interval"):
        assert found[name]["lower"] <= found["estimate"] <= found[name]["upper"]
    again = await get(service, study, "statistics/covariance", **question)
    assert again["id"] == found["id"]
    assert (await service.api.services.ledger.audit()).clean


async def test_what_has_no_covariance_is_refused(service: Service):
    measured = await household(service, measures=THREE)
    secret = await household(service, relation="add_remove_one")
    single = await service.study()
    for study, params, field in (
        (measured, {}, "measures"),
        (measured, {"measures": "income"}, "measures"),
        (measured, {"measures": "income,income"}, "measures"),
        (measured, {"measures": "income,party"}, "measures"),
        (measured, {"measures": "income,age", "measure": "income"}, "measure"),
        (measured, {"measures": "income,age", "by": "region"}, "by"),
        (secret, {"measures": "income,age"}, "statistic"),
        (single, {"measures": "income,age"}, "statistic"),
    ):
        path = f"/v1/studies/{study}/statistics/covariance"
        refused = await service.call("GET", path, "analyse", params=params)
        assert_problem(refused, "invalid_request", 422, field)
