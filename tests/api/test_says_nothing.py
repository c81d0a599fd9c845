"""What will say nothing is refused before anyone is charged, with what would do; every kind of answer."""

import math
from typing import Any

import pytest

from app.services.statistics import says_nothing
from tests.api.service import Service, assert_problem

pytestmark = pytest.mark.refuses

GAUSSIAN: dict[str, Any] = {"noise": "gaussian", "delta": 1e-6}
SECRET: dict[str, Any] = {"relation": "add_remove_one", "epsilon": {"min": 1, "max": 1}}
ONE: dict[str, Any] = {"lower": 0, "upper": 100, "attributes": {"region": ["north", "south"]}}
CHOICES: dict[str, Any] = {"choices": ["bus", "car", "bike"], "attributes": {"region": ["north", "south"]}}
POINTS: dict[str, Any] = {"lower": 0, "upper": 100, "dimension": 2}
PAIRED = {"measures": {"a": {"choices": ["x", "y", "z"]}, "b": {"choices": ["p", "q"]}}}
TWO: dict[str, Any] = {"measures": {"a": {"lower": 0, "upper": 10}, "b": {"lower": 0, "upper": 10}}}

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "mean": (ONE, {}),
    "mean by label": (ONE, {"by": "region"}),
    "of some": (ONE, {"where": "region:north"}),
    "uniform": (ONE, {"estimator": "uniform"}),
    "sum": (ONE, {"statistic": "sum"}),
    "variance": (ONE, {"statistic": "variance"}),
    "sd": (ONE, {"statistic": "sd"}),
    "difference": (ONE, {"statistic": "difference", "between": "region:north,south"}),
    "found range": (ONE, {"range": "found"}),
    "histogram": (ONE, {"statistic": "histogram", "bins": 4}),
    "histogram by label": (ONE, {"statistic": "histogram", "bins": 4, "by": "region"}),
    "median": (ONE, {"statistic": "median"}),
    "quantile by label": (ONE, {"statistic": "quantile", "q": 0.9, "by": "region"}),
    "describe": (ONE, {"statistic": "describe"}),
    "shares": (CHOICES, {"statistic": "shares"}),
    "coordinates": (POINTS, {"statistic": "mean"}),
    "covariance": (TWO, {"statistic": "covariance", "measures": "a,b"}),
    "correlation": (TWO, {"statistic": "correlation", "measures": "a,b"}),
    "table": (PAIRED, {"statistic": "table", "measures": "a,b"}),
}
LAPLACE_ONLY = ("uniform",)
SECRET_KINDS = [name for name in KINDS if name not in ("uniform", "sum")]


def value_of(definition: dict[str, Any], place: int) -> Any:
    """What a person sends."""
    if "choices" in definition:
        return {"value": definition["choices"][place % 3]}
    if "measures" in definition:
        if "choices" in definition["measures"]["a"]:
            return {"values": {"a": "xyz"[place % 3], "b": "p"}}
        return {"values": {"a": place % 10, "b": 5}}
    value = 37 * place % 100
    return {"value": [value, 50] if "dimension" in definition else value}


async def studied(service: Service, people: int, definition: dict[str, Any], **more: Any) -> str:
    study = await service.study(**{"lower": None, "upper": None, **definition, **more})
    return await join(service, study, people, definition)


async def join(service: Service, study: str, people: int, definition: dict[str, Any]) -> str:
    regions = definition.get("attributes")
    records = [
        {
            "subject": f"p{place}",
            "epsilon": 1,
            "trust": "central",
            **value_of(definition, place),
            **({"attributes": {"region": "north" if place % 2 else "south"}} if regions else {}),
        }
        for place in range(people)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    done = await service.call("POST", path, "contribute", json=records)
    assert done.json()["created"] == people, done.text
    return study


async def ask(service: Service, study: str, question: dict[str, Any], **more: Any) -> Any:
    document = {"share": 0.1, **question, **more}
    return await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=document)


async def planned(service: Service, study: str, question: dict[str, Any]) -> dict[str, Any]:
    path, terms = f"/v1/studies/{study}/plan", {"share": 0.1, **question}
    found = await service.call("GET", path, "analyse", params=terms)
    assert found.status_code == 200, found.text
    return dict(found.json())


async def refused(service: Service, study: str, question: dict[str, Any]) -> dict[str, Any]:
    """The refusal, which is the plan's, has charged nothing, and is that of who reads."""
    plan, before = await planned(service, study, question), await service.rows()
    problem = assert_problem(await ask(service, study, question), "says_nothing", 409)
    terms = {"share": 0.1, **question}
    path = f"/v1/studies/{study}/statistics/{terms.pop('statistic', 'mean')}"
    read = assert_problem(await service.call("GET", path, "analyse", params=terms), "says_nothing", 409)
    after = await service.rows()
    assert {**after, "cohort": 0} == {**before, "cohort": 0}
    said = {name: problem[name] for name in ("code", "detail", "share", "people")}
    assert said == {name: read[name] for name in said}
    assert plan["refusal"] == {**said, "half_width": None}
    assert plan["estimators"]
    assert "allow_worse" in said["detail"]
    assert said["detail"] in plan["in_words"]
    return problem


@pytest.mark.parametrize("noise", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_few_people_are_asked_for_nothing_less_than_would_do(
    service: Service, kind: str, noise: dict[str, Any]
) -> None:
    definition, question = KINDS[kind]
    if noise and kind in LAPLACE_ONLY:
        pytest.skip("has Laplace noise alone")
    study = await studied(service, 10, definition, **noise)
    problem = await refused(service, study, question)
    assert problem["people"] > 10
    # As many of those who are asked would do, and not half of them.
    whole = 2 if "where" in question else 1
    for people, status in ((problem["people"], 201), (problem["people"] // 2, 409)):
        other = await studied(service, whole * people, definition, **noise)
        answered = await ask(service, other, question)
        assert answered.status_code == status, (people, answered.text)
    if problem["share"] is not None:
        assert 0.1 < problem["share"] <= 1
        answered = await ask(service, study, question, share=problem["share"])
        assert answered.status_code == 201, answered.text
    # The answer before may have taken all that people offered.
    other = await studied(service, 10, definition, **noise)
    insisted = await ask(service, other, question, allow_worse=True, share=0.2)
    assert insisted.status_code == 201, insisted.text


@pytest.mark.parametrize("kind", ["describe", "histogram", "mean by label"])
async def test_the_share_that_would_do_is_named_where_another_answer_has_taken_of_the_offers(
    service: Service, kind: str
) -> None:
    definition, question = KINDS[kind]
    study = await studied(service, 150, definition)
    taken = await ask(service, study, {"statistic": "sd", "fresh": True}, share=0.1, allow_worse=True)
    assert taken.status_code == 201, taken.text
    problem = await refused(service, study, {**question, "share": 0.01})
    assert 0.01 < problem["share"] < 0.9
    assert f"a share of {problem['share']:g} or " in problem["detail"]
    answered = await ask(service, study, question, share=problem["share"])
    assert answered.status_code == 201, answered.text


@pytest.mark.parametrize("kind", KINDS)
async def test_public_values_alone_say_what_they_are(service: Service, kind: str) -> None:
    definition, question = KINDS[kind]
    study = await service.study(**{"lower": None, "upper": None, **definition, "trust": ["public"]})
    regions = {"attributes": {"region": "north"}} if definition.get("attributes") else {}
    given = {"subject": "pat", "trust": "public", **value_of(definition, 7), **regions}
    sent = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=given)
    assert sent.status_code == 201, sent.text
    assert "says_nothing" not in str(await planned(service, study, question))
    assert "says_nothing" not in (await ask(service, study, question)).text


@pytest.mark.parametrize("noise", [{}, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("kind", SECRET_KINDS)
async def test_secret_numbers_are_refused_where_one_is_stated_whoever_is_there(
    service: Service, kind: str, noise: dict[str, Any]
) -> None:
    definition, question = KINDS[kind]
    studies = [await studied(service, people, definition, **SECRET, **noise) for people in (0, 1, 60)]
    stated = {**question, "expected_size": 3}
    refusals = [await refused(service, study, stated) for study in studies]
    assert refusals[0] == refusals[1] == refusals[2]
    enough = refusals[0]["people"]
    assert enough > 3
    for study in studies:
        for size, status in ((enough, 201), (enough // 2, 409)):
            answered = await ask(service, study, question, expected_size=size)
            assert answered.status_code == status, (size, answered.text)
        insisted = await ask(service, study, stated, allow_worse=True)
        assert insisted.status_code == 201, insisted.text


@pytest.mark.parametrize("kind", [*SECRET_KINDS, "count"])
async def test_secret_studies_without_a_number_refuse_nothing(service: Service, kind: str) -> None:
    definition, question = KINDS.get(kind, (ONE, {"statistic": "count"}))
    study = await studied(service, 0, definition, **SECRET)
    assert (await planned(service, study, question))["refusal"] is None
    answered = await ask(service, study, question)
    assert answered.status_code == 201, answered.text


async def test_a_count_whose_error_exceeds_the_number_that_is_stated_is_refused(service: Service) -> None:
    count = {"statistic": "count"}
    study = await studied(service, 5, ONE, **SECRET)
    problem = await refused(service, study, {**count, "expected_size": 5})
    assert "predicted to exceed the number of people" in problem["detail"]
    assert problem["people"] == 15, "sqrt(2) / .1 = 14.1 people, of two digits"
    assert problem["share"] == pytest.approx(0.29), "sqrt(2) / 5 = .283"
    done = await ask(service, study, count, expected_size=5, share=problem["share"])
    assert done.status_code == 201, done.text


async def test_a_number_that_was_published_decides_in_the_place_of_one_that_is_stated(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies = [await studied(service, people, ONE, **SECRET) for people in (0, 400)]
    monkeypatch.setattr("app.mechanisms.draw.draw", lambda noise, queries: [0] * queries)
    codes = []
    for study in studies:
        first = await ask(service, study, {"statistic": "count"}, share=0.2)
        assert first.status_code == 201, first.text
        answered = await ask(service, study, {}, allow_worse=False)
        about = first.json()["estimate"]
        codes.append((about < 40, answered.status_code))
    assert dict(codes) == {True: 409, False: 201}, codes


async def test_the_number_of_people_of_a_public_study_is_never_refused(service: Service) -> None:
    study = await studied(service, 1, ONE)
    assert (await ask(service, study, {"statistic": "count"})).status_code == 201


async def test_what_stands_is_read_where_a_new_answer_would_say_nothing(service: Service) -> None:
    study = await studied(service, 10, ONE)
    made = await ask(service, study, {}, allow_worse=True)
    path = f"/v1/studies/{study}/statistics/mean"
    read = await service.call("GET", path, "analyse", params={"share": 0.2})
    assert (read.status_code, read.json()["id"]) == (200, made.json()["id"])


@pytest.mark.parametrize("kind", ["mean", "variance", "sd", "mean by label", "histogram"])
async def test_a_plan_at_the_share_that_stands_refuses_nothing(service: Service, kind: str) -> None:
    definition, question = KINDS[kind]
    study = await studied(service, 10, definition)
    made = await ask(service, study, question, allow_worse=True)
    plan, again = await planned(service, study, question), await ask(service, study, question)
    assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
    assert plan["refusal"] is None
    assert "refused" not in plan["in_words"]


async def test_where_no_share_and_no_number_would_do_the_problem_says_null(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = await studied(service, 10, ONE)
    monkeypatch.setattr(says_nothing, "WHOLE", 0.0)
    problem = assert_problem(await ask(service, study, {}), "says_nothing", 409)
    assert problem["share"] is problem["people"] is None
    assert "no share and no number of people would do" in problem["detail"]
    assert math.isfinite(says_nothing.MOST_PEOPLE)
