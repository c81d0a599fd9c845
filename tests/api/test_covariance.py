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
    assert {"people", "people_left_out"}.isdisjoint(found)
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
    question = {"measures": "income,age", "share": 0.25, "least_epsilon": 4}
    everyone = await get(service, study, "statistics/covariance", **question)
    north = await get(service, study, "statistics/covariance", where="region:north", **question)
    assert everyone["interval"]["coverage"] == north["interval"]["coverage"] == "at_least"
    assert everyone["epsilon_max"] == north["epsilon_max"] == 1
    paid = await spent(service, study, "p7")
    assert paid == 2
    no_one = await get(service, study, "statistics/covariance", where="region:south", **question)
    assert no_one["interval"]["lower"] <= 0 <= no_one["interval"]["upper"]
    assert abs(no_one["noisy_count"]) < 50
    assert await spent(service, study, "p7") == paid
    # What was published of their number is what the next plan is for.
    (plan,) = (await get(service, study, "plan", statistic="covariance", **question))["estimators"]
    unknown = await get(service, study, "plan", statistic="covariance", expected_size=1, **question)
    assert plan["predicted_error"] < unknown["estimators"][0]["predicted_error"]
    capped = {"epsilon": 0.5, "share": 0.1, "least_epsilon": 8}
    cheap = await get(service, study, "statistics/covariance", **question | capped)
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
    assert plan["estimators"][0]["epsilon_max"] >= found["epsilon_max"]
    assert plan["estimators"][0]["predicted_error"] == 9000 * 80 / 4


GAUSSIAN = {"noise": "gaussian", "delta": 1e-6}
REGIONS = {"region": ["north", "south", "east"], "wave": ["first", "second"]}
BY = {"measures": "income,age", "by": "region"}


async def regions(service: Service, **terms: Any) -> str:
    """200 people in the north whose numbers go together, 100 in the south whose do not; none in the east."""
    study = await household(service, attributes=REGIONS, default_share=0.5, **terms)
    records = [
        {
            "subject": f"p{number}",
            "values": {"income": 45 * place, "age": 98 - 0.4 * place if south else 18 + 0.4 * place},
            "epsilon": 10,
            "trust": "central",
            "attributes": {"region": "south" if south else "north", "wave": "first"},
        }
        for number in range(300)
        for place, south in [(number % 200, number >= 200)]
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    sent = await service.call("POST", path, "contribute", json=records)
    assert sent.json()["created"] == 300, sent.text
    return study


@pytest.mark.parametrize("terms", [{}, GAUSSIAN, ONE, ONE | GAUSSIAN])
async def test_every_label_has_its_covariance_at_the_price_of_one(service: Service, terms: dict[str, Any]):
    study = await regions(service, **terms)
    size = {"expected_size": 300} if "relation" in terms else {}
    (alone,) = (await get(service, study, "plan", statistic="covariance", measures="income,age", **size))[
        "estimators"
    ]
    (plan,) = (await get(service, study, "plan", statistic="covariance", **BY, **size))["estimators"]
    found = await get(service, study, "statistics/covariance", **BY, **size)
    assert found["epsilon_max"] == plan["epsilon_max"] == alone["epsilon_max"]
    assert found["predicted_error"] == plan["predicted_error"] > alone["predicted_error"]
    assert plan["statistics"] == ["covariance"]
    assert (found["by"], found["measures"]) == ("region", ["income", "age"])
    north, south, east = found["groups"]
    assert [one["where"]["region"] for one in found["groups"]] == REGIONS["region"]
    # 45 times 0.4 times the variance of 0 to 199, and of 0 to 99 with the other sign.
    truths = (18 * (200**2 - 1) / 12, -18 * (100**2 - 1) / 12)
    for one, truth in zip((north, south), truths, strict=True):
        # Six times as far as 95 % of all errors go.
        width = one["interval"]["upper"] - one["interval"]["lower"]
        assert abs(one["estimate"] - truth) < 3 * width
        assert one["interval"]["lower"] <= one["estimate"] <= one["interval"]["upper"]
        assert one["population_interval"]["lower"] <= one["interval"]["lower"]
        assert len(one["means"]) == 2
    if "relation" in terms:
        assert {"people", "people_left_out"}.isdisjoint(east)
        assert abs(north["noisy_count"] - 200) < 50
        assert abs(found["noisy_count"] - 300) < 80
        assert abs(east["noisy_count"]) < 50
        assert east["interval"]["lower"] <= east["estimate"] <= east["interval"]["upper"]
    else:
        assert [one["people"] for one in found["groups"]] == [200, 100, 0]
        assert {east[name] for name in ("estimate", "interval", "population_interval", "means")} == {None}
    again = await get(service, study, "statistics/covariance", **BY, **size)
    assert again["id"] == found["id"]
    assert await spent(service, study, "p7") == await spent(service, study, "p250")
    assert await spent(service, study, "p7") == pytest.approx(found["epsilon_max"], abs=1e-5)
    assert (await service.api.services.ledger.audit()).clean


async def test_labels_are_asked_of_some_people_and_without_any_who_can_pay_are_empty(service: Service):
    study = await regions(service)
    path = f"/v1/studies/{study}/releases"
    all_of_it = {"statistic": "covariance", "measures": "income,age", "where": "region:south", "share": 1}
    assert (await service.call("POST", path, "analyse", json=all_of_it)).status_code == 201
    found = await get(service, study, "statistics/covariance", where="wave:first", **BY)
    north, south, _ = found["groups"]
    assert (north["where"], found["where"]) == ({"region": "north", "wave": "first"}, {"wave": "first"})
    assert (south["people"], south["people_left_out"], south["estimate"]) == (100, 100, None)
    assert (found["people"], found["people_left_out"]) == (300, 100)
    assert found["left_out_because"] == "budget_exhausted"
    assert await spent(service, study, "p0") == pytest.approx(5, abs=1e-5)
    assert await spent(service, study, "p250") == pytest.approx(10, abs=1e-5)
    refused = await service.call(
        "GET", f"/v1/studies/{study}/statistics/covariance", "analyse", params={**BY, "where": "wave:second"}
    )
    assert_problem(refused, "no_contributions", 409)


async def test_where_labels_are_secret_no_people_look_like_some_and_pay_nothing(service: Service):
    study = await regions(service, **ONE)
    empty = await get(service, study, "statistics/covariance", where="wave:second", **BY)
    assert all(abs(one["noisy_count"]) < 50 for one in empty["groups"])
    assert await spent(service, study, "p7") == 0


async def test_what_has_no_covariance_is_refused(service: Service):
    measured = await household(service, measures=THREE)
    labelled = await household(service, attributes={"region": ["north"]})
    single = await service.study()
    for study, params, field in (
        (measured, {}, "measures"),
        (measured, {"measures": "income"}, "measures"),
        (measured, {"measures": "income,income"}, "measures"),
        (measured, {"measures": "income,party"}, "measures"),
        (measured, {"measures": "income,age", "measure": "income"}, "measure"),
        (measured, {"measures": "income,age", "by": "region"}, "by"),
        (labelled, {"measures": "income,age", "by": "region", "where": "region:north"}, "by"),
        (labelled, {"measures": "income,age", "by": "region", "simultaneous": "true"}, "simultaneous"),
        (
            labelled,
            {"measures": "income,age", "by": "region", "standardize": "region:north=1"},
            "standardize",
        ),
        (single, {"measures": "income,age"}, "statistic"),
    ):
        path = f"/v1/studies/{study}/statistics/covariance"
        refused = await service.call("GET", path, "analyse", params=params)
        assert_problem(refused, "invalid_request", 422, field)
