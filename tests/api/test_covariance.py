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


ONE = {"relation": "add_remove_one", "epsilon": {"min": 10, "max": 10}}


@pytest.mark.parametrize("terms", [{}, {"noise": "gaussian", "delta": 1e-6}])
async def test_so_it_is_where_the_number_of_people_is_secret(service: Service, terms: dict[str, Any]):
    study = await household(service, default_share=0.5, **ONE, **terms)
    await move_in(service, study)
    question = {"measures": "income,age", "expected_size": 300}
    (plan,) = (await get(service, study, "plan", statistic="covariance", **question))["estimators"]
    assert plan["half_width"] is None
    found = await get(service, study, "statistics/covariance", **question)
    assert found["epsilon_max"] == plan["epsilon_max"]
    assert found["predicted_error"] == plan["predicted_error"] < 0.1 * 9000 * 80 / 4
    assert 5 <= found["epsilon_max"] <= (7 if terms else 5)
    assert await spent(service, study, "p7") == pytest.approx(found["epsilon_max"], abs=1e-5)
    incomes, ages = [10 * number for number in range(300)], [20 + number % 30 for number in range(300)]
    truth = sum((one - 1495) * (other - 34.5) for one, other in zip(incomes, ages, strict=True)) / 300
    assert abs(found["estimate"] - truth) < 20 * found["predicted_error"], "Laplace: once in 1e8"
    assert abs(found["means"][0] - 1495) < 1000
    # All who offer the same count as one.
    assert abs(found["noisy_count"] - 300) < 50
    assert {"people", "people_left_out", "assumption"}.isdisjoint(found)
    for name, coverage in (("interval", "at_least"), ("population_interval", "worst_case")):
        assert found[name]["lower"] <= found["estimate"] <= found[name]["upper"]
        assert found[name]["coverage"] == coverage
    again = await get(service, study, "statistics/covariance", **question)
    assert again["id"] == found["id"]
    assert (await service.api.services.ledger.audit()).clean


async def test_conditions_and_unequal_epsilons_of_a_secret_number(service: Service):
    terms = {"relation": "add_remove_one", "epsilon": {"min": 1, "max": 10}}
    study = await household(service, attributes={"region": ["north", "south"]}, default_share=0.1, **terms)
    await move_in(service, study, attributes={"region": "north"})
    question = {"measures": "income,age", "share": 0.25}
    everyone = await get(service, study, "statistics/covariance", **question)
    north = await get(service, study, "statistics/covariance", where="region:north", **question)
    assert everyone["interval"]["coverage"] == north["interval"]["coverage"] == "worst_case"
    assert everyone["epsilon_max"] == north["epsilon_max"] == 2.5
    paid = await spent(service, study, "p7")
    assert paid == 5
    no_one = await get(service, study, "statistics/covariance", where="region:south", **question)
    assert no_one["interval"]["lower"] <= 0 <= no_one["interval"]["upper"]
    assert abs(no_one["noisy_count"]) < 50
    assert await spent(service, study, "p7") == paid
    # What was published of their number is what the next plan is for.
    (plan,) = (await get(service, study, "plan", statistic="covariance", **question))["estimators"]
    unknown = await get(service, study, "plan", statistic="covariance", expected_size=1, **question)
    assert plan["predicted_error"] < unknown["estimators"][0]["predicted_error"]
    cheap = await get(service, study, "statistics/covariance", **question | {"epsilon": 0.5, "share": 0.1})
    assert cheap["epsilon_max"] == 0.5


@pytest.mark.parametrize("people", [0, 1])
async def test_a_study_without_people_answers_like_one_with_a_person(service: Service, people: int):
    study = await household(service, relation="add_remove_one")
    if people:
        record = {"subject": "only", "values": {"income": 1, "age": 20}, "epsilon": 1, "trust": "central"}
        sent = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=record)
        assert sent.status_code == 201, sent.text
    question = {"measures": "income,age", "share": 1}
    plan = await get(service, study, "plan", statistic="covariance", **question)
    found = await get(service, study, "statistics/covariance", **question)
    assert plan["estimators"][0]["epsilon_max"] == found["epsilon_max"]
    assert found["predicted_error"] == 9000 * 80 / 4


async def test_what_has_no_covariance_is_refused(service: Service):
    measured = await household(service, measures=THREE)
    single = await service.study()
    for study, params, field in (
        (measured, {}, "measures"),
        (measured, {"measures": "income"}, "measures"),
        (measured, {"measures": "income,income"}, "measures"),
        (measured, {"measures": "income,party"}, "measures"),
        (measured, {"measures": "income,age", "measure": "income"}, "measure"),
        (measured, {"measures": "income,age", "by": "region"}, "by"),
        (single, {"measures": "income,age"}, "statistic"),
    ):
        path = f"/v1/studies/{study}/statistics/covariance"
        refused = await service.call("GET", path, "analyse", params=params)
        assert_problem(refused, "invalid_request", 422, field)
