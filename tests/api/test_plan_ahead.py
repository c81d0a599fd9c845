"""A plan says what stands, what more would give and cost, and newcomers alone: as the release then does."""

from typing import Any

import pytest

from app.core.numbers import margin
from app.services.statistics import release_request
from app.services.statistics.steps import plan_step
from tests.api.service import Service, assert_problem
from tests.api.test_steps import RELEASES, STUDY, ask, crowded, join

ESTIMATORS = ["auto", "adpm", "optimal", "uniform"]
PEOPLE = 3000
GAUSSIAN = {"noise": "gaussian", "delta": 0.000001}


async def plan(service: Service, **query: Any) -> dict[str, Any]:
    found = await service.call("GET", f"{STUDY}/plan", "analyse", params=query)
    assert found.status_code == 200, found.text
    return dict(found.json())


def half(answer: dict[str, Any]) -> float:
    interval = answer["interval"]
    return float(interval["upper"] - interval["lower"]) / 2


def kept(planned: dict[str, Any], answer: dict[str, Any]) -> None:
    """The release has the numbers of the plan: its interval to nine digits, the prices to the micro."""
    assert half(answer) == pytest.approx(planned["half_width"], rel=1e-9)
    assert answer["predicted_error"] == pytest.approx(planned["predicted_error"], rel=1e-9)
    assert answer["epsilon_max"] == planned["epsilon_max"]
    assert answer["epsilon_max_total"] == planned["epsilon_max_total"]
    assert answer.get("mu2_max") == planned["mu2_max"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("estimator", "noise"),
    [*((one, {}) for one in ESTIMATORS), ("adpm", GAUSSIAN), ("uniform", GAUSSIAN)],
)
async def test_releases_have_the_intervals_and_prices_of_their_plans(
    service: Service, estimator: str, noise: dict[str, Any]
) -> None:
    await crowded(service, PEOPLE, default_share=0.25, **noise)
    first = await plan(service, estimator=estimator)
    assert (first["stands"], first["newcomers"], first["share_before"]) == (None, None, 0)
    made = await ask(service, estimator=estimator)
    kept(first["estimators"][0], made)
    assert made["estimator"] == first["estimators"][0]["estimator"]
    second = await plan(service, estimator=estimator)
    assert second["stands"] == {
        "release": made["id"],
        "share": 0.25,
        "estimate": made["estimate"],
        "interval": made["interval"],
        "half_width": pytest.approx(half(made)),
        "people": PEOPLE,
        "created_at": second["stands"]["created_at"],
    }
    made = await ask(service, estimator=estimator)
    kept(second["estimators"][0], made)
    # Newcomers alone, then all of it.
    await join(service, 600, prefix="new", epsilon=0.5)
    third = await plan(service, estimator=estimator)
    newcomers = third["newcomers"]
    assert newcomers["people"] == 600
    renewed = await ask(service, estimator=estimator, share=0.5)
    kept(newcomers, renewed)
    shown = await service.call("GET", f"/v1/releases/{renewed['id']}", "admin")
    assert sum(one["people"] for one in shown.json()["charges"]) == 600
    fourth = await plan(service, estimator=estimator, share=1)
    assert fourth["newcomers"] is None
    kept(fourth["estimators"][0], await ask(service, estimator=estimator, share=1))
    last = await plan(service, estimator=estimator)
    assert (last["newcomers"], last["estimators"][0]["epsilon_max"]) == (None, 0)


@pytest.mark.long
async def test_the_sentence_has_the_numbers_of_the_plan(service: Service) -> None:
    await crowded(service, PEOPLE)
    first = await plan(service, estimator="uniform", share=0.5)
    assert first["in_words"].startswith("for 0.5 of each epsilon ± ")
    assert first["in_words"].endswith(", which costs a person at most 0.05")
    await ask(service, estimator="uniform", share=0.5)
    await join(service, 1230, prefix="new", epsilon=0.1)
    found = await plan(service, estimator="uniform", share=1)
    now, more, new = found["in_words"].split("; ")
    stands, chosen, newcomers = found["stands"], found["estimators"][0], found["newcomers"]
    for said, exact in (
        (now, stands["half_width"]),
        (more, chosen["half_width"]),
        (new, newcomers["half_width"]),
    ):
        said = float(said.split("± ")[1].split(",")[0])
        assert exact <= said <= 1.1 * exact + 1e-12, "two digits, rounded up"
    assert now.startswith("now ")
    assert more.startswith("for another 0.5 of each epsilon ± ")
    assert more.endswith(f", which costs a person at most {chosen['epsilon_max']:g}")
    assert new.startswith("newcomers only: ± ")
    assert new.endswith(", which costs the 1,230 new people at most 0.05")
    spread = await plan(service, statistic="sd", estimator="uniform", share=1)
    said = spread["in_words"].split("; ")
    assert spread["stands"]["estimate"] != stands["estimate"], "what stands is the standard deviation, too"
    for part, exact in zip(said[1:], (spread["estimators"][0], spread["newcomers"]), strict=True):
        number = float(part.split("± ")[1].split(" or less,")[0])
        assert exact["half_width"] <= number <= 1.1 * exact["half_width"], "an upper bound, and it says so"


@pytest.mark.long
async def test_a_plan_of_noise_of_its_own_has_its_full_price(service: Service) -> None:
    await crowded(service, PEOPLE)
    await ask(service, estimator="adpm", share=0.4)
    step = await plan(service, estimator="adpm", share=0.5)
    fresh = await plan(service, estimator="adpm", share=0.5, fresh="true")
    assert (step["share_before"], fresh["share_before"]) == (0.4, 0)
    assert fresh["estimators"][0]["epsilon_max"] > 2 * step["estimators"][0]["epsilon_max"]
    assert "with noise of its own for 0.5 of each epsilon ± " in fresh["in_words"]
    assert fresh["newcomers"] is None
    made = await ask(service, estimator="adpm", share=0.5, fresh=True)
    kept(fresh["estimators"][0], made)
    for wrong in ("1", "yes", ""):
        refused = await service.call("GET", f"{STUDY}/plan", "analyse", params={"fresh": wrong})
        assert_problem(refused, "invalid_request", 422, "fresh")


@pytest.mark.long
async def test_what_would_be_no_gain_is_no_offer(service: Service) -> None:
    await crowded(service, PEOPLE)
    await ask(service, estimator="adpm", share=0.5)
    found = await plan(service, estimator="adpm", share=0.1, fresh="true")
    assert found["estimators"][0]["answers_left"] == 0
    refused = await service.call(
        "POST", RELEASES, "analyse", json={"estimator": "adpm", "share": 0.1, "fresh": True}
    )
    problem = assert_problem(refused, "no_gain", 409)
    assert found["refusal"] == {
        **{name: problem[name] for name in ("code", "detail")},
        **dict.fromkeys(("share", "people", "half_width")),
    }
    assert found["in_words"].endswith(f"; it is refused: {problem['detail']}")
    # Of far more newcomers than people were there, nothing useful is known at a share of next to nothing.
    await join(service, 9000, prefix="new", epsilon=0.001)
    crowd = await plan(service, estimator="adpm", share=0.5)
    assert (crowd["newcomers"] is None) is (crowd["estimators"][0]["answers_left"] == 0)


async def test_secret_studies_say_what_is_published_and_nothing_of_who_came(service: Service) -> None:
    await service.study(slug="minutes", lower=0, upper=120, relation="add_remove_one", trust=["central"])
    empty = await plan(service, expected_size=400)
    assert (empty["stands"], empty["newcomers"]) == (None, None)
    assert [row["half_width"] for row in empty["estimators"]] == [None] * len(empty["estimators"])
    await join(service, 400, prefix="p")
    assert await plan(service, expected_size=400) == empty
    made = await ask(service, expected_size=400)
    full = await plan(service, expected_size=400)
    assert full["stands"]["release"] == made["id"]
    assert full["stands"]["people"] is None
    assert full["in_words"].startswith("now ")
    await join(service, 200, prefix="new")
    assert await plan(service, expected_size=400) == full
    gone = await service.call("DELETE", f"{STUDY}/contributions/p1", "contribute")
    assert gone.status_code == 204
    assert await plan(service, expected_size=400) == full


@pytest.mark.parametrize("statistic", ["histogram", "median"])
async def test_shapes_say_what_stands(service: Service, statistic: str) -> None:
    await crowded(service, 300)
    bins = {"bins": "4"} if statistic == "histogram" else {}
    before = await plan(service, statistic=statistic, **bins)
    assert before["stands"] is None
    question = {"statistic": statistic, "parameters": bins, "share": 0.2}
    made = await service.call("POST", RELEASES, "analyse", json=question)
    assert made.status_code == 201, made.text
    found = await plan(service, statistic=statistic, share=0.3, **bins)
    stands = found["stands"]
    assert (stands["release"], stands["share"]) == (made.json()["id"], 0.2)
    assert (stands["estimate"] is None) is (statistic == "histogram")
    costs = f"{found['estimators'][0]['epsilon_max']:g}"
    more, always = "0.3 of each epsilon", found["estimators"][0]["anytime_half_width"]
    if statistic == "histogram":
        more = (
            f"another 0.1 of each epsilon, ± {margin(always)} at all steps at once, as a part of the people,"
        )
    assert found["in_words"].endswith(f"an answer for {more} costs a person at most {costs}")
    assert (always is None) is (statistic == "median")


async def test_a_named_estimator_has_its_step_planned_once(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That step is what answers: the plan has its numbers, and the control without a name weighs each."""
    await crowded(service, 50, default_share=0.25, tilt=0)
    planned: list[object] = []

    def counted(*asked: Any) -> Any:
        planned.append(asked)
        return plan_step(*asked)

    monkeypatch.setattr(release_request, "plan_step", counted)
    named = await plan(service, estimator="uniform")
    assert len(planned) == 1
    planned.clear()
    every = await plan(service)
    assert len(planned) == 1 + len(every["estimators"])
    assert named["estimators"][0] | {"chosen": False} in every["estimators"]
    kept(named["estimators"][0], await ask(service, estimator="uniform"))
