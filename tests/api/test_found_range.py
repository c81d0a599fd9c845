"""Means over a range that is found first, over HTTP: one release, its price, what it says, refusals."""

from typing import Any

import pytest

from app.services.shapes import found_means
from app.services.shapes import plans as shape_plans
from tests.api.service import Service, assert_problem
from tests.api.test_shapes import ADD_REMOVE, get, spent

FOUND = {"range": "found"}


async def crowd(service: Service, study: str, people: int = 400) -> float:
    """People with values between 20 and 60; returns their mean."""
    values = [20 + number % 41 for number in range(people)]
    for number, value in enumerate(values):
        await service.contribute(study, f"p{number}", value=value, epsilon=1)
    return sum(values) / people


@pytest.mark.long
@pytest.mark.parametrize("terms", [{}, ADD_REMOVE])
async def test_a_mean_over_a_found_range_is_one_release_at_the_price_of_a_mean(
    service: Service, terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    """Its noise happens to be 0, so that the answer is exact."""
    for module in (shape_plans, found_means):
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


REGIONS = {"north": 20, "south": 60, "east": 40}
GAUSSIAN = {"noise": "gaussian", "delta": 1e-6}
SECRET = {"relation": "add_remove_one", "trust": ["central"]}


async def by_region(service: Service, sizes: dict[str, int], **terms: Any) -> str:
    """People of each region around a value of its own, at epsilon 4, in a study of a range too wide."""
    terms = {"epsilon": {"min": 4, "max": 4}, "default_share": 0.5, "upper": 10_000} | terms
    study = await service.study(attributes={"region": [*REGIONS]}, **terms)
    people = [
        {
            "subject": f"{region}{number}",
            "value": REGIONS[region] + number % 11 - 5,
            "epsilon": 4,
            "trust": "central",
            "attributes": {"region": region},
        }
        for region, size in sizes.items()
        for number in range(size)
    ]
    sent = await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=people)
    assert sent.json()["created"] == len(people), sent.text
    return study


@pytest.mark.parametrize("terms", [{}, GAUSSIAN, SECRET, SECRET | GAUSSIAN])
async def test_every_label_has_its_mean_over_one_found_range_at_the_price_of_one_mean(
    service: Service, terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    """Its noise happens to be 0, so that the answers are exact."""
    for module in (shape_plans, found_means):
        monkeypatch.setattr(module, "draw", lambda noise, queries: (0,) * queries)
    study = await by_region(service, {"north": 330, "south": 220}, **terms)
    (alone,) = (await get(service, study, "plan", **FOUND))["estimators"]
    (planned,) = (await get(service, study, "plan", by="region", **FOUND))["estimators"]
    found = await get(service, study, "statistics/mean", by="region", **FOUND)
    price = found["epsilon_max"]
    assert price == planned["epsilon_max"] == alone["epsilon_max"]
    assert price == 2 or "noise" in terms
    assert await spent(service, study, "north7") == await spent(service, study, "south7") <= price
    assert (found["range"]["lower"], found["range"]["upper"]) == pytest.approx((10, 100))
    north, south, east = found["groups"]
    assert [one["where"]["region"] for one in found["groups"]] == [*REGIONS]
    estimates = [found["estimate"], north["estimate"], south["estimate"]]
    assert estimates == pytest.approx([36, 20, 60], abs=1e-3)
    for one, mean in zip((found, north, south), (36, 20, 60), strict=True):
        assert one["interval"]["lower"] <= mean <= one["interval"]["upper"]
    if "relation" in terms:
        assert "people" not in east
        assert east["estimate"] is not None, "a label without people looks like any other one"
        assert "outside_at_most" not in north
    else:
        assert (east["people"], east["estimate"], east["outside_at_most"]) == (0, None, None)
        outside = found["range"]["people_outside_at_most"]
        assert north["outside_at_most"] == pytest.approx(min(1, outside / 330))
        assert south["outside_at_most"] == pytest.approx(min(1, outside / 220))
    # A difference, known shares and intervals that hold at once are read off it.
    question = {"by": "region", **FOUND}
    less = await get(service, study, "statistics/difference", between="region:south,north", **question)
    known = await get(
        service, study, "statistics/mean", standardize="region:north=.5,south=.5,east=0", **question
    )
    at_once = await get(service, study, "statistics/mean", simultaneous="true", **question)
    assert {less["id"], known["id"], at_once["id"]} == {found["id"]}
    assert (less["estimate"], known["estimate"]) == pytest.approx((40, 40), abs=1e-3)
    assert less["interval"]["lower"] < 40 < less["interval"]["upper"]
    width = found["range"]["upper"] - found["range"]["lower"]
    assert -width <= less["interval"]["lower"] <= less["interval"]["upper"] <= width
    for one, plain in zip(at_once["groups"][:2], (north, south), strict=True):
        assert one["simultaneous"]["lower"] <= plain["interval"]["lower"]
        assert one["simultaneous"]["upper"] >= plain["interval"]["upper"]
    assert await spent(service, study, "north7") <= price, "all of that is free"
    assert (await service.api.services.ledger.audit()).clean


async def test_a_label_of_few_people_has_no_answer_and_they_pay_nothing(service: Service):
    study = await by_region(service, {"north": 300, "south": 200, "east": 1}, epsilon={"min": 0.1, "max": 4})
    await service.call("DELETE", f"/v1/studies/{study}/contributions/east0", "contribute")
    await service.contribute(study, "few", 40, 0.1, attributes={"region": "east"})
    # What needs an answer that is not there is refused before it is paid for.
    path, needed = f"/v1/studies/{study}/statistics/difference", {"between": "region:north,east", **FOUND}
    refused = await service.call("GET", path, "analyse", params=needed)
    assert "region:east" in assert_problem(refused, "estimator_not_applicable", 409)["detail"]
    assert await spent(service, study, "north7") == 0
    assert (await get(service, study, "plan", statistic="difference", **needed))["estimators"] == []
    found = await get(service, study, "statistics/mean", by="region", **FOUND)
    *others, east = found["groups"]
    assert [one["people_left_out"] for one in others] == [0, 0]
    assert (east["people"], east["people_left_out"], east["estimate"]) == (1, 1, None)
    assert (found["people_left_out"], found["left_out_because"]) == (1, "label_too_small")
    assert await spent(service, study, "few") == 0
    refused = await service.call("GET", path, "analyse", params=needed)
    assert "region:east" in assert_problem(refused, "estimator_not_applicable", 409)["detail"]
    assert (await service.api.services.ledger.audit()).clean


async def test_where_no_label_is_large_enough_there_is_no_answer_and_no_price(service: Service):
    study = await by_region(service, {"north": 1, "south": 1}, default_share=0.01)
    path = f"/v1/studies/{study}/statistics/mean"
    refused = await service.call("GET", path, "analyse", params={"by": "region", **FOUND})
    assert_problem(refused, "estimator_not_applicable", 409)
    assert await spent(service, study, "north0") == 0
