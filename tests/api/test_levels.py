"""Who takes part where the number of people is secret: those who offered enough; others pay nothing."""

from typing import Any

import pytest

from tests.api.service import Service, assert_problem
from tests.api.test_shapes import get, spent

TIERS = [0.1, 0.25, 0.5, 1, 2, 4]
WHATEVER = "holds however privacy and values go together"
PEOPLE = 600


async def tiers(service: Service, people: int = PEOPLE, **terms: Any) -> str:
    """As many people of each tier, whose values fall with what they offer."""
    definition = {"lower": 0, "upper": 60, "relation": "add_remove_one", "epsilons": TIERS, **terms}
    study = await service.study(trust=["central"], default_share=0.5, **definition)
    records = [
        {
            "subject": f"p{number}",
            "value": 50 - 8 * (number % 6),
            "epsilon": TIERS[number % 6],
            "trust": "central",
            **(
                {"attributes": {"region": "north" if number % 4 == 0 else "south"}}
                if "attributes" in terms
                else {}
            ),
        }
        for number in range(people)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == people
    return study


async def charged(service: Service, study: str) -> list[float]:
    """What one person of each tier has paid."""
    return [await spent(service, study, f"p{number}") for number in range(6)]


@pytest.mark.parametrize("noise", [{}, {"noise": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
async def test_a_default_mean_is_about_those_who_offered_enough(
    service: Service, noise: dict[str, Any]
) -> None:
    study = await tiers(service, **noise)
    plan = await get(service, study, "plan")
    assert (plan["least_epsilon"], plan["about"]) == (1, "people who offered at least 1 and can still pay")
    found = await get(service, study, "statistics/mean")
    assert (found["least_epsilon"], found["most_epsilon"], found["assumption"]) == (1, 1, WHATEVER)
    assert found["about"].endswith("people who offered at least 1 and can still pay")
    assert abs(found["noisy_count"] - PEOPLE / 2) < 60
    # 26, 18 and 10 of the three tiers that take part: not the 30 of all.
    assert abs(found["estimate"] - 18) < 8
    assert "people" not in found
    assert "people_left_out" not in found
    paid = await charged(service, study)
    assert paid[:3] == [0, 0, 0]
    assert paid[3] == paid[4] == paid[5] > 0
    assert found["epsilon_max"] >= paid[5]
    # What is published says where the weight is.
    assert (await get(service, study, "plan", share=0.4))["least_epsilon"] == 1
    await get(service, study, "statistics/count", least_epsilon=4, share=0.3)
    plan = await get(service, study, "plan", share=0.1)
    assert plan["least_epsilon"] == 4
    assert 0 < plan["estimators"][0]["predicted_error"] < 60 / 10
    assert (await get(service, study, "statistics/mean"))["id"] == found["id"], "what stands is found"
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.long
@pytest.mark.parametrize(
    "question",
    [
        {"statistic": "sd"},
        {"statistic": "histogram", "edges": "20,40"},
        {"statistic": "median"},
        {"statistic": "describe"},
        {"statistic": "count"},
        {"statistic": "mean", "by": "region"},
        {"statistic": "histogram", "edges": "20", "by": "region"},
        {"statistic": "mean", "range": "found"},
    ],
    ids=lambda question: "-".join(question.values()),
)
async def test_every_question_may_say_who_takes_part(service: Service, question: dict[str, str]) -> None:
    study = await tiers(service, attributes={"region": ["north", "south"]})
    statistic = question["statistic"]
    asked = {name: value for name, value in question.items() if name != "statistic"} | {"least_epsilon": 2}
    plan = await get(service, study, "plan", statistic=statistic, **asked)
    assert plan["least_epsilon"] == 2
    found = await get(service, study, f"statistics/{statistic}", **asked)
    assert found["least_epsilon"] == 2
    assert "2 and can still pay" in found["about"]
    assert found["parameters"]["least_epsilon"] == 2
    paid = await charged(service, study)
    assert paid[:4] == [0, 0, 0, 0]
    assert 0 < paid[4] == paid[5] <= 1
    for group in found.get("groups", ()):
        assert "noisy_count" not in group or group["about"].startswith("about ")
    if statistic == "count":
        assert abs(found["estimate"] - PEOPLE / 3) < 25
        assert plan["estimators"][0]["half_width"] < 5


async def test_a_count_of_all_says_before_how_little_it_says(service: Service) -> None:
    study = await tiers(service, people=30)
    plan = await get(service, study, "plan", statistic="count", share=0.001)
    assert plan["least_epsilon"] == 0.1
    assert plan["estimators"][0]["half_width"] == pytest.approx(29957, rel=1e-3)
    assert "± 30,000" in plan["in_words"]


async def test_labels_are_predicted_from_their_own_numbers(service: Service) -> None:
    study = await tiers(service, attributes={"region": ["north", "south"]})
    first = await get(service, study, "statistics/mean", by="region")
    errors = [group["predicted_error"] for group in first["groups"]]
    assert errors[0] == errors[1] == 30, "nothing is known of either"
    again = await get(service, study, "statistics/mean", by="region", share=0.4, least_epsilon=1)
    few, many = (group["predicted_error"] for group in again["groups"])
    counts = [group["noisy_count"] for group in first["groups"]]
    assert few / many == pytest.approx(counts[1] / counts[0])


@pytest.mark.parametrize("least", ["0.05", "5", "-1", "much"])
async def test_what_no_one_may_offer_is_refused(service: Service, least: str) -> None:
    study = await tiers(service, people=6)
    for path in ("plan", "statistics/mean", "statistics/histogram", "statistics/count"):
        params = {"least_epsilon": least}
        refused = await service.call("GET", f"/v1/studies/{study}/{path}", "analyse", params=params)
        assert_problem(refused, "invalid_request", 422, "least_epsilon")


async def test_where_offers_are_public_no_question_says_so(service: Service) -> None:
    study = await service.study()
    for path in ("plan", "statistics/mean", "statistics/histogram"):
        params = {"least_epsilon": "1"}
        refused = await service.call("GET", f"/v1/studies/{study}/{path}", "analyse", params=params)
        assert_problem(refused, "invalid_request", 422, "least_epsilon")
