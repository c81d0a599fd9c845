"""Means over a range that is found first, over HTTP: one release, its price, what it says, refusals."""

from typing import Any

import pytest

from app.services import found_plans, shape_plans
from tests.api.service import Service, assert_problem
from tests.api.test_shapes import ADD_REMOVE, get, spent

FOUND = {"range": "found"}


async def crowd(service: Service, study: str, people: int = 400) -> float:
    """People with values between 20 and 60; returns their mean."""
    values = [20 + number % 41 for number in range(people)]
    for number, value in enumerate(values):
        await service.contribute(study, f"p{number}", value=value, epsilon=1)
    return sum(values) / people


@pytest.mark.parametrize("terms", [{}, ADD_REMOVE])
async def test_a_mean_over_a_found_range_is_one_release_at_the_price_of_a_mean(
    service: Service, terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    """Its noise happens to be 0, so that the answer is exact."""
    for module in (shape_plans, found_plans):
        monkeypatch.setattr(module, "draw", lambda noise, queries: (0,) * queries)
    study = await service.study(upper=10_000, default_share=1, **terms)
    mean = await crowd(service, study)
    plan = await get(service, study, "plan", **FOUND)
    (planned,) = plan["estimators"]
    assert planned["gain"] == pytest.approx(0.85**2, rel=0.01)
    assert await spent(service, study, "p7") == 0
    answer = await get(service, study, "statistics/mean", **FOUND)
    assert (answer["statistic"], answer["estimator"]) == ("mean", "found_range")
    assert answer["parameters"]["range_part"] == 0.15
    assert answer["epsilon_max"] == planned["epsilon_max"]
    assert answer["estimate"] == pytest.approx(mean)
    assert (answer["range"]["lower"], answer["range"]["upper"]) == pytest.approx((15, 100))
    assert 0 < answer["range"]["outside_at_most"] < 1
    assert (answer["range"]["people_outside_at_most"] is None) == bool(terms)
    assert ("noisy_count" in answer) == bool(terms)
    assert answer["interval"]["lower"] <= mean <= answer["interval"]["upper"]
    assert await spent(service, study, "p7") == 1
    assert (await get(service, study, "statistics/mean", **FOUND))["id"] == answer["id"], "free"
    admin = (await service.call("GET", f"/v1/releases/{answer['id']}", "admin")).json()
    assert [one["epsilon"] for one in admin["charges"]] == [1]


async def test_the_declared_range_is_a_question_of_its_own_and_the_plain_one(service: Service):
    study = await service.study(upper=1000, default_share=0.1)
    await crowd(service, study)
    found = await get(service, study, "statistics/mean", **FOUND)
    declared = await get(service, study, "statistics/mean", range="declared")
    plain = await get(service, study, "statistics/mean")
    assert declared["id"] == plain["id"] != found["id"]
    assert "range" not in plain
    # What is found says nothing of the variance over the declared range.
    again = await get(service, study, "statistics/sd")
    assert again["id"] == plain["id"]
    assert "that is found, all values moved into it" in found["assumption"]
    assert (await get(service, study, "plan", **FOUND))["assumption"] == found["assumption"]


async def test_where_too_few_are_seen_the_declared_range_stays(service: Service):
    study = await service.study(upper=1000)
    await crowd(service, study, 12)
    answer = await get(service, study, "statistics/mean", **FOUND)
    assert answer["range"] == {
        "lower": 0,
        "upper": 1000,
        "outside_at_most": 0,
        "people_outside_at_most": 0,
    }


async def test_unequal_epsilons_pay_for_both_parts_and_local_people_are_left_out(service: Service):
    study = await service.study(
        upper=1000, epsilon={"min": 0.1, "max": 10}, tilt=0, trust=["central", "local", "public"]
    )
    for number in range(200):
        epsilon = (0.1, 10)[number % 2]
        await service.contribute(study, f"p{number}", value=number % 40, epsilon=epsilon)
    for subject, document in (
        ("public", {"value": 20, "trust": "public"}),
        ("local", {"report": 0, "epsilon": 1, "trust": "local"}),
    ):
        sent = await service.call(
            "POST", f"/v1/studies/{study}/contributions", "contribute", json={"subject": subject} | document
        )
        assert sent.status_code == 201, sent.text
    answer = await get(service, study, "statistics/mean", share=1, **FOUND)
    assert (answer["people"], answer["people_left_out"]) == (202, 1)
    assert answer["left_out_because"] == "local_reports_not_used"
    prices = {await spent(service, study, f"p{number}") for number in range(4)}
    assert prices == {0.1, answer["epsilon_max"]}
    assert answer["epsilon_max"] < 10, "some privacy is free"


async def test_no_answer_is_made_that_people_cannot_pay_or_that_is_no_gain(service: Service):
    study = await service.study(default_share=0.6)
    await crowd(service, study, 100)
    path = f"/v1/studies/{study}/releases"
    question = {"statistic": "mean", "range": "found"}
    for share, status in ((0.5, 201), (0.05, 409), (0.6, 409), (0.5, 201)):
        made = await service.call("POST", path, "analyse", json=question | {"share": share})
        assert made.status_code == status, made.text
    assert await spent(service, study, "p3") == 1
    listed = await get(service, study, "releases")
    assert {one["estimator"] for one in listed["items"]} == {"found_range"}


@pytest.mark.parametrize(
    ("statistic", "question", "field"),
    [
        ("mean", {"range": "wide"}, "range"),
        ("sum", {"range": "found"}, "range"),
        ("sd", {"range": "found"}, "range"),
        ("histogram", {"range": "found"}, "range"),
        ("mean", {"range": "found", "range_part": "1"}, "range_part"),
        ("mean", {"range": "found", "range_part": "x"}, "range_part"),
        ("mean", {"range": "found", "bins": "4"}, "bins"),
        ("mean", {"range": "found", "variance": "estimated"}, "variance"),
        ("mean", {"range": "found", "estimator": "uniform"}, "estimator"),
        ("mean", {"range": "declared", "range_part": "0.1"}, "range_part"),
    ],
)
async def test_a_range_that_makes_no_sense_names_its_field(
    service: Service, statistic: str, question: dict[str, str], field: str
):
    study = await service.study()
    asked = [
        await service.call("GET", f"/v1/studies/{study}/{path}", "analyse", params=question | more)
        for path, more in ((f"statistics/{statistic}", {}), ("plan", {"statistic": statistic}))
    ]
    path, document = f"/v1/studies/{study}/releases", {"statistic": statistic} | question
    asked.append(await service.call("POST", path, "analyse", json=document))
    for response in asked:
        assert_problem(response, "invalid_request", 422, field)


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_a_range_is_found_with_gaussian_noise_at_the_price_of_a_mean(service: Service, relation: str):
    study = await service.study(
        noise="gaussian", delta=1e-6, relation=relation, epsilon={"min": 1, "max": 1}, default_share=0.5
    )
    await crowd(service, study, 300)
    answer = await get(service, study, "statistics/mean", **FOUND)
    assert answer["mu2_max"] == pytest.approx(0.056028 / 2, abs=2e-6)
    assert await spent(service, study, "p3") == pytest.approx(answer["epsilon_max"], abs=1e-5)
    assert 0 <= answer["interval"]["lower"] <= answer["estimate"] <= answer["interval"]["upper"] <= 100
