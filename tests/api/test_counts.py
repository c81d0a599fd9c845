"""The number of people over HTTP: public and free in replace_one studies, noisy and priced in others."""

import math
from typing import Any

import pytest

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.study import Relation, Trust
from app.services.shapes.counts import CountPlan
from app.services.shapes.kinds import resolve
from app.services.shapes.questions import COUNT
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask
from tests.api.service import Service, assert_problem
from tests.api.test_measures import household, move_in
from tests.api.test_quotas import Analyst
from tests.api.test_shapes import get, spent
from tests.support.choices import study_of_choices

REGIONS = {"region": ["north", "south"]}
SECRET = {"relation": "add_remove_one", "epsilon": {"min": 1, "max": 1}, "trust": ["central"]}


async def people(service: Service, study: str, count: int, start: int = 0) -> None:
    records = [
        {
            "subject": f"p{number}",
            "value": 1,
            "epsilon": 1,
            "trust": "central",
            "attributes": {"region": REGIONS["region"][number % 2]},
        }
        for number in range(start, start + count)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    sent = await service.call("POST", path, "contribute", json=records)
    assert sent.json()["created"] == count, sent.text


async def test_a_public_number_is_that_of_now_and_charges_no_one(service: Service):
    study = await service.study(attributes=REGIONS)
    path = "statistics/count"
    assert (await get(service, study, path))["estimate"] == 0
    await people(service, study, 40)
    first = await get(service, study, path)
    plan = await get(service, study, "plan", statistic="count")
    assert (first["estimate"], first["people"], first["epsilon_max"]) == (40, 40, 0)
    assert first["interval"] == {"level": 0.95, "lower": 40, "upper": 40, "coverage": "exact"}
    assert (first["people_left_out"], first["left_out_because"]) == (0, None)
    assert plan["estimators"][0]["epsilon_max"] == plan["estimators"][0]["predicted_error"] == 0
    assert (await get(service, study, path))["id"] == first["id"]
    assert (await get(service, study, path, where="region:north"))["estimate"] == 20
    await people(service, study, 5, start=40)
    await service.call("DELETE", f"/v1/studies/{study}/contributions/p1", "contribute")
    assert (await get(service, study, path))["estimate"] == 44
    assert await spent(service, study, "p0") == 0
    assert (await service.api.services.ledger.audit()).clean


async def test_people_who_cannot_pay_any_more_count_and_no_quota_is_used(service: Service):
    study = await service.study(attributes=REGIONS)
    await people(service, study, 30)
    made = await service.call("POST", "/v1/admin/tokens", "admin", json={"name": "a", "role": "analyse"})
    limited = Analyst(service, made.json())
    await limited.limit(1)
    assert (await limited.ask(study, 1)).status_code == 201
    assert (await limited.ask(study, 0.1)).status_code == 429
    path = f"/v1/studies/{study}/releases"
    counted = await service.call("POST", path, limited.secret, json={"statistic": "count"})
    assert (counted.status_code, counted.json()["estimate"]) == (201, 30), counted.text


@pytest.mark.parametrize("terms", [{}, {"noise": "gaussian", "delta": 1e-6}])
async def test_a_secret_number_is_charged_as_planned_and_its_interval_holds_it(
    service: Service, terms: dict[str, Any]
):
    study = await service.study(attributes=REGIONS, default_share=0.5, **SECRET | terms)
    await people(service, study, 200)
    plan = await get(service, study, "plan", statistic="count")
    found = await get(service, study, "statistics/count")
    assert found["epsilon_max"] == plan["estimators"][0]["epsilon_max"]
    assert "people" not in found
    assert abs(found["estimate"] - 200) < 12 * found["predicted_error"]
    assert found["interval"]["lower"] <= found["estimate"] <= found["interval"]["upper"]
    assert (await get(service, study, "statistics/count"))["id"] == found["id"]
    assert await spent(service, study, "p0") == pytest.approx(found["epsilon_max"], abs=1e-5)
    north = await get(service, study, "statistics/count", where="region:north")
    assert north["estimate"] < found["estimate"]
    assert await spent(service, study, "p1") == pytest.approx(found["epsilon_max"], abs=1e-5)
    assert (await service.api.services.ledger.audit()).clean


async def test_every_kind_of_study_has_a_count_and_it_takes_no_more_than_it_needs(service: Service):
    measured = await household(service)
    await move_in(service, measured)
    assert (await get(service, measured, "statistics/count"))["estimate"] == 300
    poll = await service.study(lower=None, upper=None, choices=["a", "b"])
    assert (await get(service, poll, "statistics/count"))["estimate"] == 0
    vectors = await service.study(dimension=2, trust=["central"])
    assert (await get(service, vectors, "statistics/count"))["estimate"] == 0
    for study, params in (
        (measured, {"measure": "income"}),
        (poll, {"tilt": 0.1}),
        (poll, {"bins": 3}),
        (poll, {"by": "region"}),
        (poll, {"estimator": "adpm"}),
    ):
        refused = await service.call("GET", f"/v1/studies/{study}/statistics/count", "analyse", params=params)
        assert_problem(refused, "invalid_request", 422, *params)


MIXED = (0.5, 1.0, 40.0)


def counted(
    people: int, epsilon: float, draws: int, delta: int = 0
) -> tuple[CountPlan, list[dict[str, Any]]]:
    """The count of people of this epsilon in a study that admits from a half of 1 to 40."""
    terms = {"relation": Relation.ADD_REMOVE_ONE, "epsilon_min": MICRO // 2, "epsilon_max": 40 * MICRO}
    study = study_of_choices(3, **terms, delta=delta)
    question = resolve(study, Ask(statistic=COUNT, share=MICRO))
    cohort = Cohort(
        id=1,
        trust=Trust.CENTRAL,
        epsilon=study.amount(round(epsilon * MICRO)),
        carried=0,
        spent=0,
        count=people,
        total=0,
        total_squares=0,
    )
    plan = CountPlan.of_crowd(study, question, Crowd.of(study, [cohort], question))
    return plan, [plan.answer({}) for _ in range(draws)]


@pytest.mark.long
@pytest.mark.parametrize("epsilon", MIXED)
def test_each_person_counts_as_one_whatever_they_offer_and_intervals_cover(epsilon: float):
    """4,000 draws: the mean of |Z| is that of 1 / epsilon.min within 5 standard errors (one in a million)."""
    plan, answers = counted(1000, epsilon, 4000)
    errors = [abs(one["estimate"] - 1000) for one in answers]
    scale = sum(errors) / len(errors)
    assert abs(scale - 2) < 5 * 2 / math.sqrt(4000)
    assert abs(scale - 2.4) > 5 * 2.4 / math.sqrt(4000)
    assert plan.predicted_error == pytest.approx(2 * math.sqrt(2))
    assert [one.epsilon for one in plan.charges()] == [MICRO // 2], "what the least offer can pay"
    held = sum(one["interval"]["lower"] <= 1000 <= one["interval"]["upper"] for one in answers)
    assert held >= 4000 * (0.95 - 5 * math.sqrt(0.95 * 0.05 / 4000))
    narrow = sum(abs(one["estimate"] - 1000) <= plan.predicted_error for one in answers)
    assert narrow < 4000 * (0.95 - 5 * math.sqrt(0.95 * 0.05 / 4000)), "the control"


async def few_of_most(service: Service) -> str:
    """A study of 500 people, of whom each fiftieth offers twice as much as the others, the least."""
    study = await service.study(default_share=1, **SECRET | {"epsilon": {"min": 5, "max": 10}})
    records = [
        {"subject": f"p{number}", "value": 1, "epsilon": 5 if number % 50 else 10, "trust": "central"}
        for number in range(500)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == 500
    return study


async def test_people_of_different_epsilons_each_count_as_one(service: Service):
    study = await few_of_most(service)
    (planned,) = (await get(service, study, "plan", statistic="count"))["estimators"]
    assert planned["epsilon_max"] == 5
    assert planned["predicted_error"] == pytest.approx(math.sqrt(2) / 5)
    assert "epsilon.min" in planned["summary"]
    found = await get(service, study, "statistics/count")
    assert abs(found["estimate"] - 500) < 20 * found["predicted_error"]
    assert found["interval"]["upper"] - found["interval"]["lower"] < 2
    assert await spent(service, study, "p0") == await spent(service, study, "p1") == 5
    # A cap that no person reaches makes no other question.
    assert (await get(service, study, "statistics/count", epsilon=7))["id"] == found["id"]


async def test_a_description_counts_each_person_as_one_too(service: Service):
    study = await few_of_most(service)
    found = await get(service, study, "statistics/describe")
    assert abs(found["count"]["estimate"] - 500) < 40, "a tenth of the least offer: an error of 2.8"
    assert found["count"]["interval"]["upper"] - found["count"]["interval"]["lower"] < 15
    assert await spent(service, study, "p1") <= 5


async def test_a_share_that_leaves_nothing_of_the_least_epsilon_is_refused(service: Service):
    terms = {"relation": "add_remove_one", "trust": ["central"], "epsilons": [0.0001, 1]}
    study = await service.study(**terms)
    path, params = f"/v1/studies/{study}/statistics/count", {"share": 0.0001}
    assert_problem(await service.call("GET", path, "analyse", params=params), "estimator_not_applicable", 409)


def test_plans_look_at_no_one():
    few, _ = counted(0, 1.0, 0)
    many, _ = counted(10**6, 40.0, 0)
    assert few.most == many.most == MICRO // 2
    assert few.noise_json() == many.noise_json()
    assert few.predicted_error == many.predicted_error
