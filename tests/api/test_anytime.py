"""Intervals that hold for all steps of a question at once, over HTTP."""

import math
from typing import Any

import pytest

from app.estimators.anytime import Steps
from tests.api.service import Service
from tests.api.test_steps import STUDY, ask, join

REGIONS = {"attributes": {"region": ["north", "south"]}}


async def plan(service: Service, **question: Any) -> dict[str, Any]:
    asked = await service.call("GET", f"{STUDY}/plan", "analyse", params=question)
    assert asked.status_code == 200, asked.text
    return dict(asked.json())


async def equal(service: Service, people: int = 400, **definition: Any) -> None:
    """People who all weigh the same, so that nothing but noise is in an error."""
    await service.study(slug="minutes", lower=0, upper=120, tilt=0, **definition)
    await join(service, people, prefix="p")


def width(interval: dict[str, Any]) -> float:
    return float(interval["upper"] - interval["lower"])


def holds(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(one["lower"] <= other["lower"] and other["upper"] <= one["upper"])


@pytest.mark.parametrize("gaussian", [False, True])
async def test_every_step_says_what_holds_at_all_of_them(service: Service, gaussian: bool) -> None:
    terms: dict[str, Any] = {"noise": "gaussian", "delta": 1e-6} if gaussian else {}
    await equal(service, **terms)
    answers, shares = [], (0.25, 0.5, 1)
    for step, share in enumerate(shares, 1):
        planned = await plan(service, share=share)
        answer = await ask(service, share=share)
        drawn = Steps(firsts=[250_000], places=[1], step=step, normal=gaussian)
        scale = answer["standard_error"] / (1 if gaussian else math.sqrt(2)) / answer.get("shrinkage", 1)
        assert width(answer["anytime"]) == pytest.approx(2 * drawn.always([scale]), rel=1e-5)
        chosen = next(one for one in planned["estimators"] if one["chosen"])
        assert chosen["anytime_half_width"] == pytest.approx(width(answer["anytime"]) / 2, rel=1e-6)
        assert chosen["anytime_half_width"] > chosen["half_width"]
        assert answer["anytime"]["level"] == 0.95
        assert holds(answer["anytime"], answer["interval"])
        answers.append(answer)
    # Nothing of it depends on how many steps there were: only on where the first one was.
    assert width(answers[0]["anytime"]) > width(answers[1]["anytime"]) > width(answers[2]["anytime"])
    stands = await service.call("GET", f"{STUDY}/statistics/mean?share=1", "analyse")
    assert stands.json()["anytime"] == answers[-1]["anytime"]


async def test_newcomers_have_a_risk_and_a_first_share_of_their_own(service: Service) -> None:
    await equal(service)
    first = await ask(service, share=0.5)
    await join(service, 400, prefix="q")
    both = await ask(service, share=0.5)
    assert both["share_before"] == 0.5
    assert holds(both["anytime"], both["interval"])
    # Two sums of equal noise, half of the answer each, the second one with a quarter of the risk.
    scale = first["standard_error"] / math.sqrt(2) / first.get("shrinkage", 1) / 2
    drawn = Steps(firsts=[500_000] * 2, places=[1, 2], step=2, normal=False)
    assert width(both["anytime"]) == pytest.approx(2 * drawn.always([scale] * 2), rel=1e-3)
    last = await ask(service, share=1)
    assert width(last["anytime"]) == pytest.approx(width(both["anytime"]) / 2, rel=1e-3)


async def test_labels_have_their_own_and_what_is_not_drawn_again_has_a_part_of_the_risk(
    service: Service,
) -> None:
    await service.study(slug="minutes", lower=0, upper=120, **REGIONS)
    for number, region in enumerate(("north", "south")):
        records = [
            {
                "subject": f"{region}{place}",
                "value": 20 + place % 50,
                "epsilon": (0.5, 2)[place % 2],
                "trust": "central",
                "attributes": {"region": region},
            }
            for place in range(200 + number)
        ]
        await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    for share in (0.4, 0.8):
        answer = await ask(service, share=share, by="region")
        for one in (answer, *answer["groups"]):
            assert holds(one["anytime"], one["interval"])
            assert width(one["anytime"]) > width(one["interval"])
            assert one["anytime"]["coverage"] == "worst_case"
    sums = await service.call("GET", f"{STUDY}/statistics/sum?by=region&share=.8", "analyse")
    for one, of_mean in zip(sums.json()["groups"], answer["groups"], strict=True):
        assert one["anytime"]["upper"] == pytest.approx(of_mean["anytime"]["upper"] * one["people"])


@pytest.mark.parametrize(
    "question",
    [
        "mean?share=.2&estimator=uniform&fresh",
        "variance?share=.5",
        "sd?share=.5",
        "quantile?q=.5&share=.5",
        "distribution?bins=4&share=.5",
    ],
)
async def test_what_has_no_such_interval_has_no_such_field(service: Service, question: str) -> None:
    await service.study(slug="minutes", lower=0, upper=120, tilt=0, **REGIONS)
    for region in ("north", "south"):
        records = [
            {
                "subject": f"{region}{place}",
                "value": place,
                "epsilon": 4,
                "trust": "central",
                "attributes": {"region": region},
            }
            for place in range(100)
        ]
        await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    if question.endswith("fresh"):
        answer = await ask(service, share=0.2, estimator="uniform", fresh=True)
    else:
        found = await service.call("GET", f"{STUDY}/statistics/{question}", "analyse")
        assert found.status_code == 200, found.text
        answer = found.json()
    assert "anytime" not in answer
    assert "anytime" not in str(answer.get("bins"))


async def test_an_answer_of_a_secret_number_of_people_has_none(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120, relation="add_remove_one")
    await join(service, 100, prefix="p")
    assert "anytime" not in await ask(service, share=0.5, allow_worse=True)


@pytest.mark.parametrize("gaussian", [False, True])
async def test_what_is_read_off_labels_has_one_of_its_own(service: Service, gaussian: bool) -> None:
    terms: dict[str, Any] = {"noise": "gaussian", "delta": 1e-6} if gaussian else {}
    await service.study(slug="minutes", lower=0, upper=120, tilt=0, **REGIONS, **terms)
    for region in ("north", "south"):
        records = [
            {
                "subject": f"{region}{place}",
                "value": place % 100,
                "epsilon": 1 if gaussian else 4,
                "trust": "central",
                "attributes": {"region": region},
            }
            for place in range(400)
        ]
        await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    for step, share in enumerate((0.5, 1), 1):
        groups = (await ask(service, share=share, by="region"))["groups"]
        scales = [
            one["standard_error"] / (1 if gaussian else math.sqrt(2)) / one.get("shrinkage", 1)
            for one in groups
        ]
        drawn = Steps(firsts=[500_000] * 2, places=[1, 2], step=step, normal=gaussian)
        for question, times in (
            ("difference?between=region:north,south", 1.0),
            ("mean?standardize=region:north=.5,south=.5", 0.5),
        ):
            found = await service.call("GET", f"{STUDY}/statistics/{question}&share={share}", "analyse")
            answer = found.json()
            assert holds(answer["anytime"], answer["interval"])
            bound = 2 * drawn.always([times * scale for scale in scales])
            assert width(answer["anytime"]) == pytest.approx(bound, rel=1e-3)


async def test_each_coordinate_has_its_own(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120, tilt=0, dimension=2, **REGIONS)
    records = [
        {
            "subject": f"p{place}",
            "value": [place % 100, place % 50],
            "epsilon": 4,
            "trust": "central",
            "attributes": {"region": ("north", "south")[place % 2]},
        }
        for place in range(800)
    ]
    sent = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
    assert sent.status_code == 200, sent.text
    for step, share in enumerate((0.25, 0.5), 1):
        answer = await ask(service, share=share, by="region")
        for of_whom in (answer, *answer["groups"]):
            for one in of_whom["coordinates"]:
                assert holds(one["anytime"], one["interval"])
                assert width(one["anytime"]) > width(one["interval"])
        # A label's only sum has the first place of its risk.
        of_label = answer["groups"][1]["coordinates"][0]
        drawn = Steps(firsts=[250_000], places=[1], step=step, normal=False)
        scale = of_label["standard_error"] / math.sqrt(2)
        assert width(of_label["anytime"]) == pytest.approx(2 * drawn.always([scale]), rel=0.02)
    total = await service.call("GET", f"{STUDY}/statistics/sum?by=region&share=.5", "analyse")
    (first, _), people = total.json()["coordinates"], total.json()["people"]
    assert first["anytime"]["upper"] == pytest.approx(people * answer["coordinates"][0]["anytime"]["upper"])
    planned = await plan(service, share=1, by="region")
    assert "at all steps at once" in planned["in_words"]


@pytest.mark.parametrize("gaussian", [False, True])
async def test_each_bin_has_its_own_from_the_first_share_on(service: Service, gaussian: bool) -> None:
    """400 people of epsilon 1 who weigh the same: nothing but the noise of a bin's own count is in it."""
    terms: dict[str, Any] = {"noise": "gaussian", "delta": 1e-6} if gaussian else {}
    await equal(service, **terms)
    question: dict[str, Any] = {"statistic": "histogram", "edges": "30,60,90"}
    for step, share in enumerate((0.25, 0.5), 1):
        planned = await plan(service, share=share, **question)
        answer = await ask(service, share=share, **question)
        scale = 2 / (400 * share)
        if gaussian:
            # At most a unit of the weights more than what an offer of mu^2 pays for.
            scale = 2 / (400 * math.sqrt(2 * answer["mu2_max_total"]))
        bound = 2 * Steps(firsts=[250_000], places=[1], step=step, normal=gaussian).always([scale])
        chosen = next(one for one in planned["estimators"] if one["chosen"])
        assert chosen["anytime_half_width"] == pytest.approx(min(1, bound / 2), rel=1e-3)
        assert ("at all steps at once, as a part of the people" in planned["in_words"]) == (step > 1)
        for one in answer["bins"]:
            assert holds(one["anytime"], one["interval"])
            always = one["anytime"]
            # It is cut off at 0, and holds `interval`, which is about another center where noise is large.
            moved = always["lower"] in (0, one["interval"]["lower"]) or (
                always["upper"] in (1, one["interval"]["upper"])
            )
            assert moved or width(always) == pytest.approx(bound, rel=1e-3)
            assert always["lower"] == 0 or width(always) >= bound * 0.999
    stands = await service.call("GET", f"{STUDY}/statistics/histogram?edges=30,60,90&share=.5", "analyse")
    assert stands.json()["bins"] == answer["bins"]
    wider = await service.call(
        "GET", f"{STUDY}/statistics/histogram?edges=30,60,90&share=.5&level=.99", "analyse"
    )
    for of, other in zip(wider.json()["bins"], answer["bins"], strict=True):
        assert holds(of["anytime"], other["anytime"])
        assert of["anytime"]["level"] == 0.99
    fresh = await ask(service, share=0.25, fresh=True, allow_worse=True, **question)
    assert "anytime" not in str(fresh)


async def test_shares_of_labels_have_their_own_and_newcomers_a_risk_of_their_own(service: Service) -> None:
    await service.study(slug="minutes", choices=["a", "b", "c"], lower=None, upper=None, tilt=0, **REGIONS)
    epsilon = 4

    async def come(prefix: str, people: int) -> None:
        records = [
            {
                "subject": f"{prefix}{place}",
                "value": "abc"[place % 3],
                "epsilon": epsilon,
                "trust": "central",
                "attributes": {"region": ("north", "south")[place % 2]},
            }
            for place in range(people)
        ]
        sent = await service.call("POST", f"{STUDY}/contributions/batch", "contribute", json=records)
        assert sent.json()["created"] == people, sent.text

    await come("p", 300)
    question: dict[str, Any] = {"statistic": "shares", "by": "region", "share": 0.5}
    first = await ask(service, **question)
    await come("q", 300)
    both = await ask(service, **question)
    assert both["refines"] == first["id"]
    for answer in (first, both):
        for of_whom in (answer, *answer["groups"]):
            for one in of_whom["choices"]:
                assert holds(one["anytime"], one["interval"])
    # Two sums of a label, of equal noise and half of the answer each, the second with a quarter of the risk.
    scale = 2 / (300 * epsilon * 0.5)
    drawn = Steps(firsts=[500_000] * 2, places=[1, 2], step=2, normal=False)
    north = both["groups"][0]["choices"][0]["anytime"]
    assert width(north) == pytest.approx(2 * drawn.always([scale] * 2), rel=1e-2)
