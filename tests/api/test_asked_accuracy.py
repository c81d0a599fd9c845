"""A plan's numbers are those of what is asked, in its unit: the answer has them, and no wider interval."""

import math
from statistics import pstdev, pvariance
from typing import Any

import pytest

from tests.api.service import Service
from tests.api.test_shapes import get

REGIONS = {"region": ["north", "south"]}
NOISES: list[dict[str, Any]] = [{}, {"noise": "gaussian", "delta": 1e-6}]
SECRET: dict[str, Any] = {"relation": "add_remove_one", "trust": ["central"]}
DIFFERENCE = {"statistic": "difference", "between": "region:south,north"}
STANDARDIZED = {"statistic": "mean", "standardize": "region:north=.3,south=.7"}
WIDTH, PEOPLE = 100, 600
VALUES = [10 + number % 20 if number % 3 == 0 else 50 + number % 45 for number in range(PEOPLE)]


async def survey(service: Service, **terms: Any) -> str:
    """A study of 600 people, of whom a third live in the north and have smaller values."""
    study = await service.study(
        attributes=REGIONS, default_share=0.5, epsilon={"min": 5, "max": 10}, tilt=0, **terms
    )
    records = [
        {
            "subject": f"p{number}",
            "value": VALUES[number],
            "epsilon": 10 if number % 2 else 5,
            "trust": "central",
            "attributes": {"region": REGIONS["region"][number % 3 > 0]},
        }
        for number in range(PEOPLE)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == PEOPLE
    return study


async def both(
    service: Service, study: str, statistic: str, **question: Any
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The whole plan, its first estimator, and the answer after it."""
    plan = await get(service, study, "plan", statistic=statistic, **question)
    answer = await get(service, study, f"statistics/{statistic}", **question)
    return plan, plan["estimators"][0], answer


def half(answer: dict[str, Any]) -> float:
    return float(answer["interval"]["upper"] - answer["interval"]["lower"]) / 2


def said(plan: dict[str, Any]) -> float:
    """The margin in the sentence, of a first answer."""
    return float(plan["in_words"].split("± ")[1].split(",")[0].removesuffix(" or less"))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("question", [{"statistic": "sum"}, DIFFERENCE, STANDARDIZED])
async def test_sums_differences_and_known_shares_have_the_interval_that_was_planned(
    service: Service, noise: dict[str, Any], question: dict[str, str]
):
    study = await survey(service, **noise)
    (mean,) = (await get(service, study, "plan", estimator="adpm"))["estimators"]
    plan, first, answer = await both(service, study, **question, estimator="adpm")
    assert half(answer) == pytest.approx(first["half_width"], rel=1e-6)
    assert first["half_width"] <= said(plan) <= 1.1 * first["half_width"]
    assert answer["standard_error"] <= first["predicted_error"]
    assert answer["predicted_error"] == pytest.approx(first["predicted_error"])
    after = await get(service, study, "plan", **question, estimator="adpm")
    assert after["stands"]["estimate"] == answer["estimate"]
    assert after["stands"]["half_width"] == pytest.approx(half(answer))
    if question["statistic"] == "sum":
        assert first["predicted_error"] == pytest.approx(PEOPLE * mean["predicted_error"])
        assert first["half_width"] == pytest.approx(PEOPLE * mean["half_width"])
    else:
        assert first["predicted_error"] > mean["predicted_error"], "of one group alone, at least"


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_variances_and_deviations_miss_by_about_what_was_planned(
    service: Service, noise: dict[str, Any], relation: str
):
    secret = relation == "add_remove_one"
    study = await survey(service, **noise, **(SECRET if secret else {}))
    question = {"expected_size": PEOPLE} if secret else {}
    errors = {}
    for statistic, most in (("variance", WIDTH**2 / 4), ("sd", WIDTH / 2)):
        plan, first, answer = await both(service, study, statistic, **question)
        truth = pvariance(VALUES) if statistic == "variance" else pstdev(VALUES)
        # Laplace noise is ten deviations off in 7e-7 of all draws, without the second part.
        assert abs(answer["estimate"] - truth) < 10 * answer["standard_error"] + 0.02 * truth
        # Of a deviation it is the root of that of the variance, at most.
        assert answer["standard_error"] <= 3 * first["predicted_error"] < most
        errors[statistic] = first["predicted_error"]
        # The sd is read off the release of the variance; its plan is one of the next answer.
        expected = first["expected_values"]
        assert expected["guess"] == (statistic == "variance") == ("a guess" in plan["in_words"])
        if statistic == "sd":
            assert expected["sd"] == pytest.approx(answer["estimate"]), "as published"
        else:
            assert expected["mean"] == WIDTH / 4
            assert expected["sd"] == pytest.approx(WIDTH / math.sqrt(48))
            assert f"a standard deviation of {expected['sd']:.3g}, a guess" in plan["in_words"]
        if statistic == "variance":
            assert answer["predicted_error"] == pytest.approx(first["predicted_error"])
        if secret:
            assert first["half_width"] is None, "it depends on how many there are"
            assert "±" not in plan["in_words"].partition(";")[2]
        elif statistic == "variance":
            assert 0.2 * first["half_width"] < half(answer) <= first["half_width"] <= most / 2
            assert first["half_width"] <= said(plan) <= 1.1 * first["half_width"]
        else:
            assert half(answer) <= first["half_width"] <= most / 2
    assert errors["sd"] < math.sqrt(errors["variance"])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("question", "factor"), [(DIFFERENCE, math.sqrt(2)), (STANDARDIZED, math.hypot(0.3, 0.7))]
)
async def test_a_secret_difference_adds_up_the_noise_of_both_labels(
    service: Service, noise: dict[str, Any], question: dict[str, str], factor: float
):
    study = await survey(service, **noise, **SECRET)
    (half_of_them,) = (
        await get(service, study, "plan", estimator="transformed", expected_size=PEOPLE / 2, share=0.5)
    )["estimators"]
    plan, first, answer = await both(service, study, **question, expected_size=PEOPLE)
    assert first["predicted_error"] == pytest.approx(factor * half_of_them["predicted_error"], rel=1e-6)
    assert answer["predicted_error"] == pytest.approx(first["predicted_error"])
    for group in answer["groups"]:
        assert group["predicted_error"] == pytest.approx(half_of_them["predicted_error"]), "of each alike"
    assert first["half_width"] is None
    assert "±" not in plan["in_words"].split("; ")[-1], "of the next answer; one that stands has its own"


async def test_coordinates_have_the_accuracy_of_what_is_asked_of_each(service: Service):
    study = await service.study(dimension=2, trust=["central"], epsilon={"min": 1, "max": 10})
    records = [
        {"subject": f"p{number}", "value": [number % 90, 50], "epsilon": 10, "trust": "central"}
        for number in range(PEOPLE)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == PEOPLE
    for statistic in ("mean", "sum", "variance", "sd"):
        plan = await get(service, study, "plan", statistic=statistic, share=0.5)
        first = plan["estimators"][0]
        answer = await get(service, study, f"statistics/{statistic}", share=0.5)
        widest = max(half(one) for one in answer["coordinates"])
        assert answer["predicted_error"] == pytest.approx(first["predicted_error"]), statistic
        if statistic in ("mean", "sum"):
            assert widest == pytest.approx(first["half_width"], rel=1e-6), statistic
        else:
            assert widest <= first["half_width"], statistic
    # Newcomers renew it, with an interval in the unit of the data.
    more = [record | {"subject": f"new{number}"} for number, record in enumerate(records)]
    assert (await service.call("POST", path, "contribute", json=more)).json()["created"] == PEOPLE
    plan = await get(service, study, "plan", share=0.9)
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.5})
    widest = max(half(one) for one in made.json()["coordinates"])
    assert plan["newcomers"]["half_width"] == pytest.approx(widest, rel=1e-6)
    assert f"newcomers only: ± {plan['newcomers']['half_width']:.2g}"[:-1] in plan["in_words"]


def width_of(answer: dict[str, Any]) -> float:
    """Of the range that it found."""
    width: float = answer["range"]["upper"] - answer["range"]["lower"]
    return width


async def test_a_mean_over_a_found_range_is_planned_for_the_range_that_was_found_last(service: Service):
    study = await survey(service)
    guess = (await get(service, study, "plan", **DIFFERENCE, range="found"))["estimators"][0]
    assert guess["expected_range"] == {"width": pytest.approx(WIDTH / 10), "release": None}
    found = await get(service, study, "statistics/mean", range="found", by="region", share=0.2)
    width = width_of(found)
    assert width > WIDTH / 2
    for question in (DIFFERENCE, {"statistic": "mean"}):
        plan, first, answer = await both(service, study, **question, range="found", share=0.2)
        assert first["expected_range"]["width"] == pytest.approx(width)
        assert f"is {width:g} wide (as the last one)" in plan["in_words"]
        # The range that it finds is another one, by its noise.
        wider = width_of(answer) / width
        assert half(answer) <= 1.001 * wider * first["half_width"]
        assert answer["predicted_error"] == pytest.approx(wider * first["predicted_error"], rel=1e-3)
        width = width_of(answer)
    again = (await get(service, study, "plan", by="region", range="found", share=0.2))["estimators"][0]
    wider = width_of(found) / again["expected_range"]["width"]
    assert found["predicted_error"] == pytest.approx(wider * again["predicted_error"], rel=1e-3)


async def test_labels_say_what_is_asked_of_them_is_planned_to_miss_by(service: Service):
    study = await survey(service)
    statistics = ("sum", "variance", "sd")
    # Before anything is published: afterwards they are planned for the values that is about.
    alone = {
        (statistic, region): await get(
            service, study, "plan", statistic=statistic, where=f"region:{region}", estimator="adpm", tilt=0
        )
        for statistic in statistics
        for region in REGIONS["region"]
    }
    for statistic in statistics:
        answer = await get(service, study, f"statistics/{statistic}", by="region")
        for group in answer["groups"]:
            (planned,) = alone[statistic, group["where"]["region"]]["estimators"]
            assert group["predicted_error"] == pytest.approx(planned["predicted_error"], rel=0.2)
            assert "predicted_bias" not in group
