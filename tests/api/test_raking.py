"""A mean standardized to the known shares of several attributes at once, over HTTP."""

import math
from typing import Any

import pytest

from app.estimators.together import KnownError
from tests.api.service import Service, assert_problem

ATTRIBUTES = {"region": ["north", "south"], "age": ["young", "old", "oldest"], "wave": ["1"]}
PEOPLE = {("north", "young"): 20, ("north", "old"): 90, ("south", "young"): 60, ("south", "old"): 30}
VALUES = {("north", "young"): 10, ("north", "old"): 30, ("south", "young"): 50, ("south", "old"): 90}
SHARES = {"region": {"north": 0.3, "south": 0.7}, "age": {"young": 0.6, "old": 0.4, "oldest": 0}}
TEXT = "region:north=.3,south=.7;age:young=.6,old=.4,oldest=0"


async def survey(service: Service, people: dict[tuple[str, str], int] = PEOPLE, **definition: Any) -> str:
    """People in two regions, who are mostly old in one and young in the other."""
    slug = await service.study(attributes=ATTRIBUTES, **{"tilt": 0} | definition)
    records = [
        {
            "subject": f"{region}{age}{number}",
            "value": VALUES.get((region, age), 50),
            "epsilon": 4,
            "trust": "central",
            "attributes": {"region": region, "age": age, "wave": "1"},
        }
        for (region, age), many in people.items()
        for number in range(many)
    ]
    path = f"/v1/studies/{slug}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).status_code == 200
    return slug


async def ask(service: Service, study: str, what: str, **question: Any) -> dict[str, Any]:
    path = f"/v1/studies/{study}/{what}"
    answer = await service.call("GET", path, "analyse", params={"share": 0.3, **question})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def spent(service: Service) -> dict[str, int]:
    """Rows of all tables but cohorts: who answers is folded before a refusal."""
    return await service.rows() | {"cohort": 0}


def weights_of(people: dict[tuple[str, str], int]) -> dict[tuple[str, str], float]:
    """Of two by two cells in closed form: the odds ratio of the people stays."""
    row, column = SHARES["region"]["north"], SHARES["age"]["young"]
    a, b, c, d = (people[one] for one in PEOPLE)
    odds = a * d / (b * c)
    # One root of (1 - k) w² + (1 - r - c + k (r + c)) w - k r c = 0.
    square, linear, rest = 1 - odds, 1 - row - column + odds * (row + column), -odds * row * column
    first = (-linear + math.sqrt(linear**2 - 4 * square * rest)) / (2 * square)
    each = (first, row - first, column - first, 1 - row - column + first)
    return dict(zip(PEOPLE, each, strict=True))


@pytest.mark.parametrize("found", [{}, {"range": "found"}], ids=["declared", "found"])
async def test_all_margins_hold_and_the_answer_is_that_of_its_cells(
    service: Service, found: dict[str, str]
) -> None:
    study = await survey(service)
    plan = await ask(service, study, "plan", standardize=TEXT, **found)
    answer = await ask(service, study, "statistics/mean", standardize=TEXT, **found)
    assert (answer["by"], answer["standardize"]) == ("region,age", SHARES)
    groups = {(one["where"]["region"], one["where"]["age"]): one for one in answer["groups"]}
    weights = {cell: one["weight"] for cell, one in groups.items()}
    wanted = weights_of(PEOPLE) | {("north", "oldest"): 0, ("south", "oldest"): 0}
    assert weights == pytest.approx(wanted)
    errors = [(weight, KnownError.read(groups[cell]["error"])) for cell, weight in weights.items() if weight]
    together = KnownError.weighted(errors)
    assert answer["estimate"] == pytest.approx(min(100, max(0, together.center)))
    half = (answer["interval"]["upper"] - answer["interval"]["lower"]) / 2
    assert half == pytest.approx(together.dataset.half_width())
    noise = [weight * groups[cell]["standard_error"] for cell, weight in weights.items() if weight]
    assert answer["standard_error"] == pytest.approx(math.hypot(*noise))
    truth = math.fsum(weights[cell] * value for cell, value in VALUES.items())
    # Laplace noise: a false alarm of 4e-8 at most.
    assert abs(answer["estimate"] - truth) < 12 * answer["standard_error"] + (half if found else 0)
    (chosen,) = (one for one in plan["estimators"] if one["chosen"])
    assert chosen["epsilon_max"] == answer["epsilon_max"]
    if not found:
        assert chosen["half_width"] == pytest.approx(half)
        assert chosen["predicted_error"] == pytest.approx(answer["predicted_error"])


async def test_it_costs_the_answer_by_these_labels_and_nothing_after_it(service: Service) -> None:
    study = await survey(service)
    cells = await ask(service, study, "statistics/mean", by="age,region")
    spent = await service.rows()
    turned = "age:old=.4,oldest=0,young=.6;region:south=.7,north=.3"
    one, other = [await ask(service, study, "statistics/mean", standardize=one) for one in (TEXT, turned)]
    assert one == other, "neither the order of labels nor that of attributes matters"
    assert one["id"] == cells["id"]
    await ask(service, study, "statistics/mean", standardize=TEXT, by="age,region", simultaneous=True)
    document = {"statistic": "mean", "share": 0.3, "standardize": SHARES}
    posted = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=document)
    assert posted.json()["estimate"] == one["estimate"]
    assert await service.rows() == spent
    assert all("weight" not in group for group in cells["groups"])
    # One attribute is what it was; one that says nothing more changes nothing.
    plain = "region:north=.3,south=.7"
    single = await ask(service, study, "statistics/mean", standardize=plain)
    same = await ask(service, study, "statistics/mean", standardize=f"{plain};wave:1=1")
    assert [group["weight"] for group in same["groups"]] == pytest.approx([0.3, 0.7])
    assert {group["where"]["region"]: group["weight"] for group in single["groups"]} == SHARES["region"]


async def test_it_is_asked_until_its_own_interval_is_small_enough(service: Service) -> None:
    study = await survey(service)
    plan = await ask(service, study, "plan", standardize=TEXT, share=0.4)
    wanted = next(one["half_width"] for one in plan["estimators"] if one["chosen"]) * 1.1
    path = f"/v1/studies/{study}/statistics/mean"
    question = {"standardize": TEXT, "until": wanted}
    first = (await service.call("GET", path, "analyse", params=question)).json()
    assert (first["interval"]["upper"] - first["interval"]["lower"]) / 2 <= wanted * (1 + 1e-9)
    assert first["share"] < 0.4
    spent = await service.rows()
    again = (await service.call("GET", path, "analyse", params=question)).json()
    assert again["id"] == first["id"]
    assert await service.rows() == spent


@pytest.mark.parametrize("question", [{}, {"range": "found"}, {"until": 5}], ids=["mean", "found", "until"])
@pytest.mark.parametrize(
    ("people", "text", "reason"),
    [
        (PEOPLE, TEXT.replace("old=.4,oldest=0", "old=.2,oldest=.2"), "No person with age:oldest is there"),
        (
            {**PEOPLE, ("north", "old"): 0, ("south", "young"): 0},
            TEXT,
            "meet the shares of region and of age at once",
        ),
    ],
)
async def test_margins_out_of_reach_are_refused_before_anything_is_spent(
    service: Service, question: dict[str, Any], people: dict[tuple[str, str], int], text: str, reason: str
) -> None:
    study = await survey(service, people)
    before = await spent(service)
    asked = {"standardize": text, **question}
    refused = await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse", params=asked)
    assert reason in assert_problem(refused, "estimator_not_applicable", 409)["detail"]
    plan = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params=asked)
    assert (plan.status_code, plan.json()["estimators"]) == (200, [])
    assert await spent(service) == before
    # Nor is it read off an answer that is there.
    made = await ask(service, study, "statistics/mean", by="region,age")
    refused = await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse", params=asked)
    assert reason in assert_problem(refused, "estimator_not_applicable", 409)["detail"]
    assert made["groups"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("region:north=.3,south=.7;age:young=.6,old=.5,oldest=0", "shares of age that sum to 1"),
        ("region:north=.3,south=.7;age:young=.6,old=.4", "every label of age"),
        ("region:north=.3,south=.7;age:young=.6,older=.4,oldest=0", "every label of age once"),
        ("region:north=.3,south=.7;sex:f=1", "an attribute of the study: region, age, wave"),
        ("region:north=.3,south=.7;", "such as region:north=.4,south=.6"),
        ("region:north=.3,south=.7;region:north=.3,south=.7", "names region twice"),
    ],
)
async def test_wrong_margins_are_refused_by_name(service: Service, text: str, reason: str) -> None:
    study = await survey(service)
    answer = await service.call("GET", f"/v1/studies/{study}/plan?standardize={text}", "analyse")
    (error,) = assert_problem(answer, "invalid_request", 422, "standardize")["errors"]
    assert reason in error["reason"]


async def test_it_is_by_these_attributes(service: Service) -> None:
    study = await survey(service)
    answer = await service.call("GET", f"/v1/studies/{study}/plan?standardize={TEXT}&by=region", "analyse")
    (error,) = assert_problem(answer, "invalid_request", 422, "by")["errors"]
    assert error["reason"] == "must be region,age here, or not be given"
    for wrong in ({"region": 0.3}, {"region": {"north": "x", "south": 0.7}}, ["region"]):
        document = {"statistic": "mean", "standardize": wrong}
        answer = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=document)
        assert_problem(answer, "invalid_request", 422, "standardize")


async def test_secret_numbers_of_people_have_no_weights(service: Service) -> None:
    study = await service.study(
        attributes=ATTRIBUTES, relation="add_remove_one", epsilon={"min": 4, "max": 4}
    )
    answer = await service.call("GET", f"/v1/studies/{study}/plan?standardize={TEXT}", "analyse")
    (error,) = assert_problem(answer, "invalid_request", 422, "standardize")["errors"]
    assert "one attribute where the number of people is secret" in error["reason"]
