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


GAUSSIAN = {"noise": "gaussian", "delta": 1e-6}
NOISES = pytest.mark.parametrize("noise", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
ASKS_FIRST = (
    "people who offered enough and can still pay: 1/5 of the share first asks how many offer how much"
)


@NOISES
async def test_a_first_mean_asks_who_offers_how_much(service: Service, noise: dict[str, Any]) -> None:
    study = await tiers(service, **noise)
    plan = await get(service, study, "plan")
    assert (plan["least_epsilon"], plan["about"]) == (None, ASKS_FIRST)
    assert plan["in_words"].endswith(f"it is about {ASKS_FIRST}")
    assert plan["assumption"] == WHATEVER
    found = await get(service, study, "statistics/mean")
    least = found["least_epsilon"]
    # At 2 and 4 people weigh most, and the next best level has three quarters of that.
    assert least in (1, 2, 4)
    assert (found["most_epsilon"], found["assumption"]) == (least, WHATEVER)
    assert found["about"].endswith(f"people who offered at least {least:g} and can still pay")
    number = {1: 300, 2: 200, 4: 100}[least]
    assert abs(found["noisy_count"] - number) < 60
    assert abs(found["estimate"] - {1: 18, 2: 14, 4: 10}[least]) < 8, "not the 30 of all"
    assert [one["least_epsilon"] for one in found["offered"]] == TIERS
    assert abs(found["offered"][-1]["noisy_count"] - 100) < 60
    assert "people" not in found
    assert "people_left_out" not in found
    paid = await charged(service, study)
    assert all(0 < amount <= offer for offer, amount in zip(TIERS, paid, strict=True))
    if not noise:
        # A fifth of the share by all, the rest of it by those whom the answer is about.
        due = [0.1 * offer + (0.4 * least if offer >= least else 0) for offer in TIERS]
        assert paid == pytest.approx(due)
    assert paid[-1] <= found["epsilon_max"] <= plan["estimators"][0]["epsilon_max"]
    # What is published says where the weight is: no later answer asks again.
    again = await get(service, study, "plan", share=0.4)
    assert again["least_epsilon"] in (1, 2, 4)
    assert "offered" not in await get(service, study, "statistics/median", share=0.01)
    await get(service, study, "statistics/count", least_epsilon=4, share=0.3)
    assert 0 < again["estimators"][0]["predicted_error"] < 60 / 10
    assert (await get(service, study, "statistics/mean"))["id"] == found["id"], "what stands is found"
    assert (await service.api.services.ledger.audit()).clean


ALL_ALIKE = [(1, 1), (10, 8)]
"""What all offer, of 1 to 10, and the level at which they weigh most."""


@pytest.mark.parametrize(("offer", "level"), ALL_ALIKE)
@pytest.mark.parametrize(
    "asked",
    [
        {"statistic": "mean"},
        {"statistic": "median"},
        {"statistic": "describe", "by": "region"},
        {"statistic": "mean", "by": "region"},
        {"statistic": "mean", "range": "found"},
        {"statistic": "sd", "where": "region:north"},
        {"statistic": "mean", "expected_size": "6000"},
    ],
    ids=lambda asked: "-".join(asked.values()) if isinstance(asked, dict) else None,
)
async def test_where_all_offer_alike_the_first_answer_is_about_all(
    service: Service, asked: dict[str, str], offer: float, level: float
) -> None:
    """At a share of .4 the noise of a level's number, times the level, is 20; levels lie 3,000 apart."""
    statistic, more = asked["statistic"], {name: asked[name] for name in asked if name != "statistic"}
    terms = {"epsilon": {"min": 1, "max": 10}, "attributes": {"region": ["north", "south"]}}
    study = await service.study(relation="add_remove_one", trust=["central"], upper=60, **terms)
    records = [
        {
            "subject": f"p{number}",
            "value": number % 60,
            "epsilon": offer,
            "trust": "central",
            "attributes": {"region": "north"},
        }
        for number in range(3_000)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == 3_000
    # How many they are says nothing of what they offer.
    await get(service, study, "statistics/count", share=0.05)
    plan = await get(service, study, "plan", statistic=statistic, share=0.4, **more)
    assert (plan["least_epsilon"], plan["about"]) == (None, ASKS_FIRST)
    before = await spent(service, study, "p0")
    found = await get(service, study, f"statistics/{statistic}", share=0.4, **more)
    assert (found["least_epsilon"], found["most_epsilon"]) == (level, level)
    assert abs(found["noisy_count"] - 3_000) < 200
    assert found["about"].startswith(("about 2,", "about 3,"))
    price = await spent(service, study, "p0") - before
    assert 0.4 * offer / 5 < price <= 0.4 * offer
    assert price <= found["epsilon_max"] <= plan["estimators"][0]["epsilon_max"]
    for other in ({"statistic": "mean"}, {"statistic": "histogram", "edges": "20,40"}):
        where = {"where": more["where"]} if "where" in more else {}
        assert (await get(service, study, "plan", **other, **where))["least_epsilon"] == level
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
    first = await get(service, study, "statistics/mean", by="region", least_epsilon=1)
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
