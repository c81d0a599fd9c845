"""Studies of several measures: declared, contributed through every door, answered and refused by name."""

import json
from typing import Any

import asyncpg
import pytest

from tests.api.service import Service, assert_problem
from tests.api.test_shapes import get, spent

MEASURES = {"income": {"lower": 0, "upper": 9000}, "age": {"lower": 18, "upper": 98}}
ALICE: dict[str, Any] = {
    "subject": "alice",
    "values": {"age": 58, "income": 4500},
    "epsilon": 1,
    "trust": "central",
}
RECORDS: list[dict[str, Any]] = [
    ALICE,
    {"subject": "bob", "values": {"income": 9000, "age": 18}, "trust": "public"},
    {**ALICE, "subject": "cyd", "values": {"income": 9001, "age": 17}},
    {**ALICE, "subject": "dan", "values": {"income": 1}},
    {**ALICE, "values": {"income": 4500, "age": 59}},
]
CSV = """subject,Age,income,epsilon,trust
alice,58,4500,1,central
bob,18,9000,,public
cyd,17,9001,1,central
dan,,1,1,central
alice,59,4500,1,central
"""
FORMS = {
    "application/json": json.dumps(RECORDS),
    "application/x-ndjson": "\n".join(map(json.dumps, RECORDS)),
    "text/csv": CSV,
}
PEOPLE = 300


async def household(service: Service, **definition: Any) -> str:
    """A study of two measures."""
    document = {"measures": MEASURES, "trust": ["central", "public"], **definition}
    return await service.study(**{"lower": None, "upper": None, **document})


async def move_in(service: Service, study: str, epsilon: float = 10, **fields: Any) -> None:
    """Central people with incomes 0 to 2,990 and ages 20 to 49: means 1,495 and 34.5."""
    records = [
        {
            "subject": f"p{number}",
            "values": {"income": 10 * number, "age": 20 + number % 30},
            "epsilon": epsilon,
            "trust": "central",
            **fields,
        }
        for number in range(PEOPLE)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == PEOPLE, response.text


async def vectors(service: Service) -> list[list[int] | None]:
    """What the database has."""
    connection = await asyncpg.connect(service.database_url)
    try:
        return [row["vector"] for row in await connection.fetch("SELECT vector FROM contribution")]
    finally:
        await connection.close()


async def release(service: Service, study: str, status: int = 201, **question: Any) -> dict[str, Any]:
    response = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert response.status_code == status, response.text
    return dict(response.json())


async def test_a_study_says_its_measures_in_their_order_and_fixes_them(service: Service):
    document = {"slug": "household", "measures": MEASURES}
    made = await service.call("POST", "/v1/studies", "admin", json=document)
    assert made.status_code == 201, made.text
    for path in ("/v1/studies/household", "/v1/studies"):
        shown = (await service.call("GET", path, "contribute")).json()
        shown = shown["items"][0] if "items" in shown else shown
        assert list(shown["measures"].items()) == [
            (name, {**one, "step": (one["upper"] - one["lower"]) / 2**30, "choices": [], "dimension": 1})
            for name, one in MEASURES.items()
        ]
        assert (shown["lower"], shown["upper"], shown["dimension"]) == (0, 1, 2)
    assert (await service.call("POST", "/v1/studies", "admin", json=document)).status_code == 200
    other = {**document, "measures": dict(reversed(MEASURES.items()))}
    assert_problem(await service.call("POST", "/v1/studies", "admin", json=other), "study_exists", 409)
    edit = {"measures": MEASURES, "reason": "no"}
    refused = await service.call("PATCH", "/v1/studies/household", "admin", json=edit)
    assert_problem(refused, "invalid_request", 422, "measures")


ONE = {"lower": 0, "upper": 1}
TWO = {"a": ONE, "b": ONE}


@pytest.mark.parametrize(
    ("terms", "fields"),
    [
        ({"measures": {}}, ["measures"]),
        ({"measures": {"epsilon": ONE}}, ["measures.epsilon"]),
        ({"measures": {f"m{number}": ONE for number in range(17)}}, ["measures"]),
        ({"measures": {"a": ONE, "b": {"lower": 1, "upper": 1}}}, ["measures.b.upper"]),
        ({"measures": {"a": ONE, "b": {"lower": 1}}}, ["measures.b.upper"]),
        ({"measures": {"a": ONE, "value": ONE}}, ["measures.value"]),
        ({"measures": {"a": ONE, "B": ONE}}, ["measures.B"]),
        ({"measures": ["a", "b"]}, ["measures"]),
        ({"measures": TWO, "lower": 0, "upper": 1}, ["lower", "upper"]),
        ({"measures": TWO, "choices": ["x", "y"]}, ["measures"]),
        ({"measures": TWO, "dimension": 2}, ["dimension"]),
        ({"measures": TWO, "trust": ["local"], "relation": "add_remove_one"}, ["trust"]),
        ({"measures": TWO, "trust": ["local"], "local_mechanism": "laplace"}, ["local_mechanism"]),
        ({"measures": TWO, "attributes": {"a": ["x", "y"]}}, ["attributes"]),
    ],
)
async def test_what_cannot_be_declared_is_refused(
    service: Service, terms: dict[str, object], fields: list[str]
):
    refused = await service.call("POST", "/v1/studies", "admin", json={"slug": "odd", **terms})
    assert_problem(refused, "invalid_request", 422, *fields)


async def test_a_cell_that_may_be_two_numbers_is_named_as_the_value_that_it_is(service: Service):
    study = await household(service)
    content = 'subject,age,income,epsilon,trust\nann,40,"1,234",1,central\n'
    path, headers = f"/v1/studies/{study}/contributions/batch", {"Content-Type": "text/csv"}
    done = await service.call("POST", path, "contribute", content=content, headers=headers)
    (refused,) = done.json()["results"]
    assert [error["field"] for error in refused["errors"]] == ["values.income"]


@pytest.mark.parametrize("form", FORMS)
async def test_every_form_of_a_batch_takes_measures_and_refuses_with_row_and_reason(
    service: Service, form: str
):
    study = await household(service)
    path = f"/v1/studies/{study}/contributions/batch"
    sent = await service.call("POST", path, "contribute", content=FORMS[form], headers={"Content-Type": form})
    assert sent.status_code == 200, sent.text
    results = sent.json()["results"]
    assert [one["status"] for one in results] == ["created"] * 2 + ["refused"] * 3
    assert [one["code"] for one in results[2:]] == ["invalid_request"] * 2 + ["contribution_exists"]
    assert results[2]["errors"] == [
        {"field": "values.income", "reason": "outside the measure's range, 0 to 9000"},
        {"field": "values.age", "reason": "outside the measure's range, 18 to 98"},
    ]
    assert results[3]["errors"] == [{"field": "values.age", "reason": "missing"}]
    again = await service.call(
        "POST", path, "contribute", content=FORMS[form], headers={"Content-Type": form}
    )
    assert again.json()["unchanged"] == 2
    assert sorted(filter(None, await vectors(service))) == [[1 << 29, 1 << 29], [1 << 30, 0]]
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"values": None}, ["values"]),
        ({"values": [1, 44]}, ["values"]),
        ({"values": {}}, ["values.age", "values.income"]),
        ({"values": {"income": 1, "age": 44, "size": 2}}, ["values.size"]),
        ({"values": {"income": "1", "age": 44}}, ["values.income"]),
        ({"values": {"income": True, "age": 44}}, ["values.income"]),
        ({"value": 3}, ["value"]),
        ({"trust": "local", "report": 1}, ["report", "trust"]),
    ],
)
async def test_what_cannot_be_contributed_is_refused(
    service: Service, fields: dict[str, Any], named: list[str]
):
    study = await household(service)
    record = {**ALICE, **fields}
    refused = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=record)
    assert_problem(refused, "invalid_request", 422, *named)
    assert await vectors(service) == []


async def test_each_measure_has_answers_of_its_own_at_the_price_of_one_mean(service: Service):
    study = await household(service, default_share=0.1)
    await move_in(service, study)
    planned = await get(service, study, "plan", measure="income")
    income = await get(service, study, "statistics/mean", measure="income")
    assert income["measure"] == "income"
    assert income["epsilon_max"] == planned["estimators"][0]["epsilon_max"] == 1
    assert income["predicted_error"] == planned["estimators"][0]["predicted_error"]
    assert income["estimate"] == pytest.approx(1495, abs=400)
    assert await spent(service, study, "p7") == 1
    age = await get(service, study, "statistics/mean", measure="age")
    assert age["id"] != income["id"]
    assert age["estimate"] == pytest.approx(34.5, abs=4)
    assert await spent(service, study, "p7") == 2, "two measures cost what two means cost"
    total = await get(service, study, "statistics/sum", measure="income")
    assert total["id"] == income["id"]
    assert total["estimate"] == pytest.approx(PEOPLE * 1495, rel=0.3)
    sd = await get(service, study, "statistics/sd", measure="age")
    assert sd["id"] == age["id"]
    assert await spent(service, study, "p7") == 2
    # Steps of one measure sharpen that one, and charge the difference.
    sharper = await release(service, study, measure="income", share=0.5)
    assert (sharper["share_before"], sharper["refines"], sharper["epsilon_max"]) == (0.1, income["id"], 4)
    assert sharper["standard_error"] < income["standard_error"] / 4
    assert sharper["estimate"] == pytest.approx(1495, abs=400)
    assert await spent(service, study, "p7") == 6
    fresh = await release(service, study, measure="age", share=0.1, fresh=True)
    assert fresh["estimate"] == pytest.approx(34.5, abs=4)
    assert await spent(service, study, "p7") == 7
    # Answers about one measure are combined, and never across measures.
    assert (await get(service, study, "statistics/mean", measure="income"))["id"] == sharper["id"]
    both = await get(service, study, "statistics/mean", measure="age")
    assert both["combines"] == [age["id"], fresh["id"]]
    assert await spent(service, study, "p7") == 7
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("terms", [{}, {"noise": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
async def test_answers_about_two_measures_are_never_mixed(service: Service, terms: dict[str, Any]):
    study = await household(service, default_share=0.2, **terms)
    await move_in(service, study)
    path = f"/v1/studies/{study}/statistics/mean"
    bodies: dict[str, bytes] = {}
    for measure, mean, within in (("age", 34.5, 4), ("income", 1495, 400)):
        for fresh in (False, True):
            made = await release(service, study, measure=measure, share=0.2, fresh=fresh, allow_worse=True)
            assert made["estimate"] == pytest.approx(mean, abs=within)
    for _ in range(2):
        for measure, mean, within in (("age", 34.5, 4), ("income", 1495, 400)):
            read = await service.call("GET", path, "analyse", params={"measure": measure})
            assert bodies.setdefault(measure, read.content) == read.content
            assert read.json()["measure"] == measure
            assert read.json()["estimate"] == pytest.approx(mean, abs=within)
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize(
    "terms",
    [{"relation": "add_remove_one"}, {"noise": "gaussian", "delta": 1e-6}],
    ids=["add_remove_one", "gaussian"],
)
async def test_each_relation_and_noise_answers_by_measure(service: Service, terms: dict[str, Any]):
    study = await household(service, default_share=0.5, **terms)
    await move_in(service, study)
    for measure, mean, within in (("income", 1495, 300), ("age", 34.5, 3)):
        answer = await get(service, study, "statistics/mean", measure=measure)
        assert answer["measure"] == measure
        assert answer["estimate"] == pytest.approx(mean, abs=within)
    assert (await service.api.services.ledger.audit()).clean


async def test_public_people_alone_are_summed_as_they_are(service: Service):
    study = await household(service, trust=["public"])
    records = [
        {"subject": f"p{number}", "values": {"income": 90 * number, "age": 18 + number}, "trust": "public"}
        for number in range(11)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == 11
    for measure, mean, variance in (("income", 450, 8100 * 10), ("age", 23, 10)):
        answer = await get(service, study, "statistics/mean", measure=measure)
        assert answer["estimate"] == pytest.approx(mean, abs=1e-4)
        assert answer["epsilon_max"] == 0
        spread = await get(service, study, "statistics/variance", measure=measure)
        assert spread["estimate"] == pytest.approx(variance, rel=1e-3)


async def test_labels_are_asked_of_a_measure(service: Service):
    study = await household(service, default_share=0.5, attributes={"region": ["north", "south"]})
    await move_in(service, study, attributes={"region": "north"})
    # Fifty of 4,500: their mean is ten errors and more inside of 0 and 9,000, and is not moved there.
    in_south = {**ALICE, "epsilon": 10, "attributes": {"region": "south"}}
    path = f"/v1/studies/{study}/contributions/batch"
    south = [{**in_south, "subject": f"bob{number}"} for number in range(50)]
    assert (await service.call("POST", path, "contribute", json=south)).json()["created"] == 50
    north = await get(service, study, "statistics/mean", measure="age", where="region:north")
    assert (north["measure"], north["where"]) == ("age", {"region": "north"})
    assert north["estimate"] == pytest.approx(34.5, abs=4)
    assert (await spent(service, study, "p7"), await spent(service, study, "bob7")) == (5, 0)
    grouped = await get(service, study, "statistics/mean", measure="income", by="region")
    first, second = grouped["groups"]
    assert first["estimate"] == pytest.approx(1495, abs=400)
    assert second["estimate"] == pytest.approx(4500, abs=900)
    assert (await spent(service, study, "p7"), await spent(service, study, "bob7")) == (10, 5)
    together = {"measure": "income", "by": "region", "simultaneous": "true"}
    wider = await get(service, study, "statistics/mean", **together)
    assert wider["groups"][1]["simultaneous"]["upper"] > 1000, "in the range of the measure"
    between = {"measure": "income", "between": "region:north,south"}
    difference = await get(service, study, "statistics/difference", **between)
    assert (difference["id"], difference["measure"]) == (grouped["id"], "income")
    weighed = {"measure": "income", "standardize": "region:north=.5,south=.5"}
    standardized = await get(service, study, "statistics/mean", **weighed)
    # Both are made of labels before these are drawn to the middle.
    of_first = standardized["estimate"] + difference["estimate"] / 2
    assert of_first == pytest.approx(first["estimate"], abs=first["standard_error"] / 4)
    for one in (difference, standardized):
        assert one["interval"]["lower"] <= one["estimate"] <= one["interval"]["upper"]
    assert (await spent(service, study, "p7"), await spent(service, study, "bob7")) == (10, 5)
    assert (await service.api.services.ledger.audit()).clean


async def test_labels_that_are_secret_are_asked_of_a_measure(service: Service):
    terms = {"relation": "add_remove_one", "default_share": 0.5}
    study = await household(service, attributes={"region": ["north", "south"]}, **terms)
    await move_in(service, study, attributes={"region": "north"})
    asked = {"measure": "age", "by": "region"}
    plan = await get(service, study, "plan", **asked)
    # Who takes part is asked first: who offers 10 may pay half of that, and no one more.
    assert plan["least_epsilon"] is None
    assert plan["estimators"][0]["epsilon_max"] == 5
    answer = await get(service, study, "statistics/mean", **asked, least_epsilon=10)
    assert answer["groups"][0]["estimate"] == pytest.approx(34.5, abs=4)
    assert await spent(service, study, "p7") == answer["epsilon_max"] == 5
    assert (await service.api.services.ledger.audit()).clean


async def test_a_replaced_or_withdrawn_value_is_in_no_later_answer(service: Service):
    study = await household(service, trust=["central", "public"])
    path = f"/v1/studies/{study}/contributions"
    for number in range(4):
        public = {"subject": f"p{number}", "values": {"income": 1000, "age": 40}, "trust": "public"}
        assert (await service.call("POST", path, "contribute", json=public)).status_code == 201
    assert (await service.call("POST", path, "contribute", json=ALICE)).status_code == 201
    await release(service, study, measure="age", share=0.1)
    moved = {"values": {"income": 2000, "age": 80}, "trust": "public"}
    assert (await service.call("PUT", f"{path}/p0", "contribute", json=moved)).status_code == 200
    assert (await service.call("DELETE", f"{path}/p1", "contribute")).status_code == 204
    assert (await service.call("DELETE", f"{path}/alice", "contribute")).status_code == 204
    for measure, mean in (("age", 160 / 3), ("income", 4000 / 3)):
        question: dict[str, Any] = {"measure": measure, "share": 0.3, "fresh": True, "allow_worse": True}
        answer = await release(service, study, **question)
        assert answer["estimate"] == pytest.approx(mean, abs=1e-3)
    assert sorted(map(bool, await vectors(service))) == [False, False, True, True, True]
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_the_distribution_of_a_measure_is_asked_for_like_that_of_one_value(
    service: Service, relation: str, monkeypatch: pytest.MonkeyPatch
):
    """Ages 20 to 49, ten people each; incomes 0 to 2,990. Without noise: with it prices are the same."""
    for module in (
        "shapes.plans",
        "shapes.found_means",
        "statistics.planning",
        "statistics.piece_noise",
    ):
        monkeypatch.setattr(f"app.services.{module}.draw", lambda _noise, queries: (0,) * queries)
    study = await household(
        service, trust=["central"], relation=relation, epsilon={"min": 10, "max": 10}, default_share=0.1
    )
    await move_in(service, study)
    ages = await get(service, study, "statistics/histogram", measure="age", edges="30,40")
    assert (ages["measure"], ages["epsilon_max"]) == ("age", 1)
    assert [one["share"] for one in ages["bins"]] == pytest.approx([1 / 3] * 3)
    incomes = await get(service, study, "statistics/histogram", measure="income", edges="1500")
    assert [one["share"] for one in incomes["bins"]] == pytest.approx([0.5, 0.5])
    assert incomes["id"] != ages["id"]
    median = await get(service, study, "statistics/median", measure="age")
    assert median["measure"] == "age"
    assert 18 <= median["interval"]["lower"] <= median["estimate"] <= median["interval"]["upper"] <= 98
    described = await get(service, study, "statistics/describe", measure="income")
    assert described["mean"]["estimate"] == pytest.approx(1495, abs=1e-3)
    found = await get(service, study, "statistics/mean", measure="age", range="found")
    assert found["range"]["lower"] >= 18
    assert found["estimate"] == pytest.approx(34.5, abs=1e-3)
    plan = await get(service, study, "plan", statistic="histogram", measure="age", edges="30,40")
    assert plan["estimators"][0]["epsilon_max"] == 1
    assert await spent(service, study, "p3") == pytest.approx(5, abs=1e-5)
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize(
    ("path", "question", "field", "reason"),
    [
        ("mean", {}, "measure", "is required in a study of several: income, age"),
        ("mean", {"measure": "size"}, "measure", "must be one of the study's measures: income, age"),
        ("median", {}, "measure", "is required in a study of several: income, age"),
        ("histogram", {"measure": "size"}, "measure", "must be one of the study's measures: income, age"),
    ],
)
async def test_questions_without_an_answer_are_refused_with_a_reason(
    service: Service, path: str, question: dict[str, str], field: str, reason: str
):
    study = await household(service)
    refused = [
        await service.call("GET", f"/v1/studies/{study}/statistics/{path}", "analyse", params=question),
        await service.call(
            "GET", f"/v1/studies/{study}/plan", "analyse", params={"statistic": path, **question}
        ),
        await service.call(
            "POST", f"/v1/studies/{study}/releases", "analyse", json={"statistic": path, **question}
        ),
    ]
    for response in refused:
        problem = assert_problem(response, "invalid_request", 422, field)
        assert problem["errors"][0]["reason"].startswith(reason)


@pytest.mark.parametrize("path", ["mean", "histogram"])
async def test_a_study_of_one_value_has_no_measure(service: Service, study: str, path: str):
    question = {"measure": "income"}
    refused = await service.call("GET", f"/v1/studies/{study}/statistics/{path}", "analyse", params=question)
    assert_problem(refused, "invalid_request", 422, "measure")


async def test_sessions_are_refused(service: Service):
    study = await household(service)
    session = {"protocol": "kmeans", "rounds": 2, "epsilon": 1, "centres": [[0, 0], [1, 1]]}
    refused = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=session)
    assert_problem(refused, "invalid_request", 422, "protocol")
