"""One call asks until half of an interval is small enough: the smallest share, or nothing is spent."""

import itertools
from typing import Any

import pytest

from app.services.statistics import says_nothing
from tests.api.service import Service, assert_problem
from tests.api.test_quotas import Analyst as Analyst
from tests.api.test_quotas import analyst as analyst
from tests.api.test_says_nothing import GAUSSIAN, ONE, POINTS, SECRET, TWO, studied

STEP = 0.000001
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mean": (ONE, {}),
    "mean by label": (ONE, {"by": "region"}),
    "of some": (ONE, {"where": "region:north"}),
    "uniform": (ONE, {"estimator": "uniform"}),
    "fresh": (ONE, {"fresh": True}),
    "sum": (ONE, {"statistic": "sum"}),
    "difference": (ONE, {"statistic": "difference", "between": "region:north,south"}),
    "standardized": (ONE, {"standardize": "region:north=.3,south=.7"}),
    "coordinates": (POINTS, {"statistic": "mean"}),
    "measure": (TWO, {"measure": "a"}),
}


async def ask(service: Service, study: str, question: dict[str, Any], key: str = "") -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    path = f"/v1/studies/{study}/releases"
    return await service.call("POST", path, "analyse", json=question, headers=headers)


async def plan(service: Service, study: str, question: dict[str, Any]) -> dict[str, Any]:
    terms = {name: str(value).lower() if value is True else value for name, value in question.items()}
    found = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params=terms)
    assert found.status_code == 200, found.text
    return dict(found.json())


async def half(service: Service, study: str, question: dict[str, Any]) -> float:
    """What a plan predicts."""
    chosen = next(one for one in (await plan(service, study, question))["estimators"] if one["chosen"])
    return float(chosen["half_width"])


async def spent(service: Service) -> dict[str, int]:
    return {**await service.rows(), "cohort": 0}


@pytest.mark.parametrize("noise", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
async def test_it_takes_the_smallest_share_that_is_predicted_to_be_enough(
    service: Service, kind: str, noise: dict[str, Any]
) -> None:
    definition, question = KINDS[kind]
    if noise and kind == "uniform":
        pytest.skip("has Laplace noise alone")
    study = await studied(service, 300, definition, **noise)
    wanted = await half(service, study, {**question, "share": 0.3}) * 1.2
    asked = {**question, "until": wanted}
    planned = await plan(service, study, asked)
    share = planned["share"]
    assert 0 < share < 0.3
    assert await half(service, study, {**question, "share": share}) <= wanted
    assert await half(service, study, {**question, "share": round(share - STEP, 6)}) > wanted
    answered = await ask(service, study, {**question, "until": {"half_width": wanted}})
    assert answered.status_code == 201, answered.text
    found = answered.json()
    assert found["share"] == share
    assert found["epsilon_max"] == next(one for one in planned["estimators"] if one["chosen"])["epsilon_max"]
    if "interval" in found:
        assert (found["interval"]["upper"] - found["interval"]["lower"]) / 2 <= wanted * (1 + 1e-9)
    if kind == "fresh":
        return
    # It stands for all who ask for no more, and charges no one again.
    before = await spent(service)
    terms = {name: value for name, value in asked.items() if name != "statistic"}
    path = f"/v1/studies/{study}/statistics/{question.get('statistic', 'mean')}"
    read = await service.call("GET", path, "analyse", params=terms)
    assert read.status_code == 200, read.text
    assert read.json()["id"] == found["id"]
    again = await ask(service, study, asked)
    assert (again.status_code, again.json()["id"]) == (200, found["id"])
    assert await spent(service) == before


async def test_what_no_share_reaches_is_refused_before_anything_is_spent(service: Service) -> None:
    study = await studied(service, 300, ONE)
    reached = await half(service, study, {"share": 1})
    before = await spent(service)
    for question in ({}, {"by": "region"}, {"statistic": "difference", "between": "region:north,south"}):
        whole = await half(service, study, {**question, "share": 1})
        asked = {**question, "until": whole * 0.999}
        problem = assert_problem(await ask(service, study, asked, "once"), "out_of_reach", 409)
        assert problem["half_width"] == pytest.approx(whole)
        path = f"/v1/studies/{study}/statistics/{question.get('statistic', 'mean')}"
        terms = {name: value for name, value in asked.items() if name != "statistic"}
        read = assert_problem(await service.call("GET", path, "analyse", params=terms), "out_of_reach", 409)
        planned = await plan(service, study, asked)
        assert planned["refusal"]["half_width"] == problem["half_width"] == read["half_width"]
        assert planned["refusal"]["detail"] == problem["detail"]
        assert problem["detail"] in planned["in_words"]
        assert planned["share"] == 1
    assert await spent(service) == before
    # The key was not used up by a refusal.
    answered = await ask(service, study, {"until": reached}, "once")
    assert answered.status_code == 201, answered.text


async def test_a_key_gives_the_same_answer_again_also_to_a_larger_step_between(service: Service) -> None:
    study = await studied(service, 300, ONE)
    wanted = await half(service, study, {"share": 0.2})
    first = await ask(service, study, {"until": wanted}, "first")
    larger = await ask(service, study, {"until": wanted / 2})
    assert larger.json()["refines"] == first.json()["id"]
    again = await ask(service, study, {"until": wanted}, "first")
    assert (again.status_code, again.json()) == (201, first.json())
    other = await ask(service, study, {"until": wanted / 3}, "first")
    assert_problem(other, "idempotency_key_reused", 409)
    # What has been used is more than enough by now.
    stands = await ask(service, study, {"until": wanted})
    assert (stands.status_code, stands.json()["id"]) == (200, larger.json()["id"])


async def test_a_quota_pays_the_share_that_is_found_and_no_more(service: Service, analyst: Analyst) -> None:
    study = await studied(service, 300, ONE)
    wanted = await half(service, study, {"share": 0.4})
    await analyst.limit(0.3)

    async def tried(half_width: float) -> Any:
        document = {"until": {"half_width": half_width}}
        return await service.call("POST", f"/v1/studies/{study}/releases", analyst.secret, json=document)

    before = await spent(service)
    assert_problem(await tried(wanted), "quota_exhausted", 429)
    assert await spent(service) == before
    assert (await tried(wanted * 2)).status_code == 201


@pytest.mark.parametrize(
    ("definition", "question"),
    [
        (ONE, {"share": 0.1}),
        (ONE, {"epsilon": 0.1}),
        (ONE, {"range": "found"}),
        (ONE, {"statistic": "variance"}),
        (ONE, {"statistic": "sd"}),
        (ONE, {"statistic": "median"}),
        (ONE, {"statistic": "histogram"}),
        (ONE, {"statistic": "describe"}),
        (ONE, {"statistic": "count"}),
        (TWO, {"statistic": "covariance", "measures": "a,b"}),
        ({**ONE, **SECRET}, {}),
        ({**ONE, **SECRET}, {"statistic": "median"}),
    ],
)
async def test_what_is_not_predicted_or_only_bounded_is_refused_by_name(
    service: Service, definition: dict[str, Any], question: dict[str, Any]
) -> None:
    study = await studied(service, 30, definition)
    path = f"/v1/studies/{study}/statistics/{question.get('statistic', 'mean')}"
    terms = {"until": 5, **{name: value for name, value in question.items() if name != "statistic"}}
    before = await spent(service)
    for refusal in (
        await ask(service, study, {**question, "until": 5}),
        await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params={**question, "until": 5}),
        await service.call("GET", path, "analyse", params=terms),
    ):
        fields = [one["field"] for one in assert_problem(refusal, "invalid_request", 422)["errors"]]
        assert fields == ["until"]
    assert await spent(service) == before


@pytest.mark.parametrize(
    "until", [0, -1, "x", True, None, [1], {}, {"half_width": 0}, {"half_width": [1]}, {"width": 1}]
)
async def test_a_bad_one_is_named(service: Service, until: Any) -> None:
    study = await studied(service, 3, ONE)
    problem = assert_problem(await ask(service, study, {"until": until}), "invalid_request", 422)
    assert [one["field"] for one in problem["errors"]] == ["until"]


async def test_secret_counts_have_equal_shares_and_equal_refusals_whoever_is_there(service: Service) -> None:
    count = {"statistic": "count"}
    studies = [await studied(service, people, ONE, **SECRET) for people in (0, 1, 60)]
    found = []
    for study in studies:
        wanted = await half(service, study, {**count, "share": 0.25})
        planned = await plan(service, study, {**count, "until": wanted})
        problem = assert_problem(await ask(service, study, {**count, "until": 0.01}), "out_of_reach", 409)
        problem.pop("request_id", None)
        answered = await ask(service, study, {**count, "until": wanted})
        assert answered.status_code == 201, answered.text
        found.append((planned["share"], answered.json()["share"], problem))
    assert found[0] == found[1] == found[2]
    assert found[0][0] == found[0][1] == 0.25


@pytest.mark.refuses
async def test_what_would_say_nothing_is_refused_all_the_same(service: Service) -> None:
    study = await studied(service, 300, ONE)
    problem = assert_problem(await ask(service, study, {"until": 60}), "says_nothing", 409)
    assert problem["share"] is not None
    assert says_nothing.WHOLE == 1


async def test_newcomers_are_asked_where_they_are_needed(service: Service) -> None:
    study = await studied(service, 300, ONE)
    wanted = await half(service, study, {"share": 0.2})
    first = await ask(service, study, {"until": wanted})
    records = [
        {
            "subject": f"new{place}",
            "epsilon": 1,
            "trust": "central",
            "value": 50,
            "attributes": {"region": region},
        }
        for place, region in zip(range(300), itertools.cycle(("north", "south")), strict=False)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == 300
    read = await service.call(
        "GET", f"/v1/studies/{study}/statistics/mean", "analyse", params={"until": wanted}
    )
    assert read.json()["id"] == first.json()["id"], "what stands is enough for who reads"
    renewed = await ask(service, study, {"until": wanted})
    assert renewed.status_code == 201
    assert renewed.json()["people"] == 600
    assert renewed.json()["share"] >= first.json()["share"]


async def test_where_people_cannot_pay_the_whole_share_any_more_the_best_that_they_can_is_said(
    service: Service,
) -> None:
    study = await studied(service, 300, ONE)
    first = await ask(service, study, {"share": 0.5, "fresh": True})
    assert first.status_code == 201
    asked = {"fresh": True, "until": 0.001}
    problem = assert_problem(await ask(service, study, asked), "out_of_reach", 409)
    possible = await half(service, study, {"fresh": True, "share": 0.5})
    assert possible <= problem["half_width"] < 2 * possible, "shares are tried by doubling"
    enough = await ask(service, study, {"fresh": True, "until": 1.2 * possible})
    assert enough.status_code == 201
