"""What looks like another question and is the same, and what is refused before anything is made."""

from typing import Any

import pytest

from tests.api.service import VALUE, Service, assert_problem


async def spent(service: Service, subject: str) -> float:
    response = await service.call("GET", f"/v1/subjects/{subject}/budget", "admin")
    return float(response.json()["epsilon"]["spent"])


async def load(service: Service, study: str, records: list[dict[str, Any]]) -> None:
    people = [{"epsilon": 1, "trust": "central", **record} for record in records]
    sent = await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=people)
    assert {one["status"] for one in sent.json()["results"]} == {"created"}


async def test_the_two_numbers_of_a_covariance_have_no_order(service: Service) -> None:
    ranges = {name: {"lower": 0, "upper": 10} for name in ("x", "y")}
    made = await service.call("POST", "/v1/studies", "admin", json={"slug": "pairs", "measures": ranges})
    assert made.status_code == 201
    await load(
        service, "pairs", [{"subject": f"p{n}", "values": {"x": n % 10, "y": n % 7}} for n in range(60)]
    )
    path = "/v1/studies/pairs/statistics/covariance"
    one = await service.call("GET", path, "analyse", params={"measures": "x,y", "share": "0.1"})
    paid = await spent(service, "p7")
    other = await service.call("GET", path, "analyse", params={"measures": "y,x", "share": "0.1"})
    assert one.json()["id"] == other.json()["id"]
    assert await spent(service, "p7") == paid > 0


@pytest.mark.parametrize("statistic", ["mean", "sum", "sd"])
async def test_a_size_makes_no_other_question_where_the_number_of_people_is_public(
    service: Service, statistic: str
) -> None:
    study = await service.study()
    await service.crowd(study, 30)
    params = {"statistic": statistic, "share": 0.1, "expected_size": 5}
    refused = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=params)
    assert_problem(refused, "invalid_request", 422, "expected_size")
    assert await spent(service, "p7") == 0


@pytest.mark.parametrize("by", [{}, {"by": "region"}])
@pytest.mark.parametrize("statistic", ["sd", "variance"])
async def test_a_spread_of_coordinates_that_cannot_be_said_makes_no_release(
    service: Service, statistic: str, by: dict[str, str]
) -> None:
    study = await service.study(
        dimension=2, local_mechanism="laplace", attributes={"region": ["north", "south"]}
    )
    people = [
        {"subject": f"p{n}", "value": [n, n], "epsilon": 0.1, "attributes": {"region": "north"}}
        for n in range(5)
    ]
    await load(service, study, people)
    question = {"statistic": statistic, "share": 0.01, **by}
    path = f"/v1/studies/{study}/releases"
    before = await service.rows()
    for _ in range(2):
        refused = await service.call("POST", path, "analyse", json=question)
        assert_problem(refused, "estimator_not_applicable", 409)
    after = await service.rows()
    assert after["release"] == before["release"] == 0
    plan = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params=question)
    assert plan.json()["estimators"] == []
    why = "people offer too little for that", "no person central or public can take part"
    assert plan.json()["in_words"].startswith("no estimator has an answer to this question now: ")
    assert plan.json()["in_words"].endswith(why)
    assert "." not in plan.json()["in_words"]


@pytest.mark.parametrize("end", ["archive", "retire"])
@pytest.mark.parametrize("statistic", ["mean", "histogram"])
async def test_a_plan_of_a_study_that_has_ended_offers_nothing(
    service: Service, end: str, statistic: str
) -> None:
    study = await service.study()
    await service.crowd(study, 30)
    question = {"statistic": statistic, "share": 0.1}
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert made.status_code == 201
    document = {"reason": "the week is over"} if end == "archive" else None
    ended = await service.call("POST", f"/v1/studies/{study}/{end}", "admin", json=document)
    assert ended.status_code == 200, ended.text
    plan = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params={"statistic": statistic})
    assert plan.json()["estimators"] == []
    assert plan.json()["stands"] is not None
    state = "archived" if end == "archive" else "retired"
    assert plan.json()["in_words"].endswith(f"the study is {state} and makes no new answers")


async def test_a_plan_without_an_estimator_says_so_beside_what_stands(service: Service) -> None:
    study = await service.study()
    await service.crowd(study, 30)
    question = {"share": 0.5}
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert made.status_code == 201
    withdrawn = [
        await service.call("DELETE", f"/v1/studies/{study}/contributions/p{number}", "contribute")
        for number in range(30)
    ]
    assert {one.status_code for one in withdrawn} == {204}
    plan = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params=question)
    assert plan.json()["estimators"] == []
    stands, none = plan.json()["in_words"].split("; ")
    assert stands.startswith("now ")
    assert none == "no person who is asked has a contribution now"


async def test_a_plan_of_an_answer_that_is_free_says_so(service: Service) -> None:
    study = await service.study()
    await service.crowd(study, 30)
    plan = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params={"statistic": "count"})
    assert plan.json()["in_words"] == "an answer costs no person anything"


async def test_an_id_with_line_ends_is_its_own_person_in_every_path(service: Service) -> None:
    study = await service.study()
    path = f"/v1/studies/{study}/contributions"
    for subject in ("ann", "ann\n", "bo\nb"):
        sent = await service.call("POST", path, "contribute", json=VALUE | {"subject": subject})
        assert sent.status_code == 201
    replaced = await service.call(
        "PUT", f"{path}/ann%0A", "contribute", json={"value": 7, "epsilon": 2, "trust": "central"}
    )
    assert replaced.json()["subject"] == "ann\n"
    assert (await service.call("DELETE", f"{path}/bo%0Ab", "contribute")).status_code == 204
    live = {}
    for subject in ("ann", "ann%0A", "bo%0Ab"):
        budget = await service.call("GET", f"/v1/subjects/{subject}/budget", "admin")
        [of_study] = budget.json()["studies"]
        live[subject] = (of_study["epsilon"], of_study["live"])
    assert live == {"ann": (VALUE["epsilon"], True), "ann%0A": (2, True), "bo%0Ab": (0, False)}


@pytest.mark.parametrize("statistic", ["mean", "histogram"])
@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
@pytest.mark.parametrize("cap", ["0.5", "1"])
async def test_a_cap_that_no_share_reaches_makes_no_other_question(
    service: Service, relation: str, statistic: str, cap: str
) -> None:
    """Of all who are asked: a first answer of a secret study is about those who offered at least 2."""
    study = await service.study(relation=relation, epsilon={"min": 1, "max": 5})
    await service.crowd(study, 30, epsilon=5)
    path = f"/v1/studies/{study}/statistics/{statistic}"
    one = await service.call("GET", path, "analyse", params={"share": "0.1"})
    paid = await spent(service, "p7")
    other = await service.call("GET", path, "analyse", params={"share": "0.1", "epsilon": cap})
    assert one.json()["id"] == other.json()["id"]
    assert await spent(service, "p7") == paid > 0


async def test_a_cap_that_a_share_reaches_makes_another_question(service: Service) -> None:
    study = await service.study(relation="add_remove_one", epsilon={"min": 1, "max": 5})
    await service.crowd(study, 30)
    path = f"/v1/studies/{study}/statistics/mean"
    ids = set()
    for cap in ("0.499999", "0.5"):
        answer = await service.call("GET", path, "analyse", params={"share": "0.1", "epsilon": cap})
        ids.add(answer.json()["id"])
    assert len(ids) == 2


@pytest.mark.parametrize(
    "reading", [{"standardize": "region:north=0.5,south=0.5"}, {"between": "region:north,south"}]
)
@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_a_plan_offers_no_answer_off_which_nothing_could_be_read(
    service: Service, relation: str, reading: dict[str, str]
) -> None:
    study = await service.study(relation=relation, attributes={"region": ["north", "south"]})
    north = [{"subject": f"p{n}", "value": n, "attributes": {"region": "north"}} for n in range(30)]
    await load(service, study, north)
    statistic = "difference" if "between" in reading else "mean"
    path, params = f"/v1/studies/{study}/plan", {"statistic": statistic, "share": "0.1", **reading}
    empty = (await service.call("GET", path, "analyse", params=params)).json()["estimators"]
    await load(service, study, [{"subject": "s", "value": 3, "attributes": {"region": "south"}}])
    both = (await service.call("GET", path, "analyse", params=params)).json()
    # Whether a label has people is secret in an add_remove_one study: there it has an answer.
    assert bool(empty) == (relation == "add_remove_one")
    assert both["estimators"]
    assert both["in_words"].startswith("an answer for" if empty else "for 0.1 of each epsilon ± ")


async def test_a_question_is_told_all_that_is_wrong_with_it(service: Service) -> None:
    study = await service.study(attributes={"region": ["north", "south"]})
    question = {"tilt": 0.1, "expected_size": 9, "bins": 4, "by": "town", "share": 0.1}
    asked = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert_problem(asked, "invalid_request", 422, "expected_size", "bins", "by")
    flagged = await service.call(
        "GET", f"/v1/studies/{study}/statistics/mean", "analyse", params={"fresh": "true"}
    )
    document = assert_problem(flagged, "invalid_request", 422, "fresh")
    assert document["errors"][0]["reason"] == "belongs in the document that is posted to releases"


@pytest.mark.parametrize(
    ("fields", "field", "reason"),
    [
        (
            {"slug": "Öl"},
            "slug",
            "must be 1 to 63 of the characters a to z, 0 to 9 and -, the first one no -",
        ),
        ({"attributes": {"region": ["north", ""]}}, "attributes.region.1", "must be 1 to 64 characters"),
        ({"noise": "gaussian", "delta": 1e-30}, "delta", "must be at least 1e-12 for gaussian noise"),
    ],
)
async def test_a_name_that_is_refused_is_told_what_a_name_is(
    service: Service, fields: dict[str, Any], field: str, reason: str
) -> None:
    document = {"slug": "made", "lower": 0, "upper": 100, **fields}
    refused = await service.call("POST", "/v1/studies", "admin", json=document)
    [error] = assert_problem(refused, "invalid_request", 422, field)["errors"]
    assert error["reason"].startswith(reason)
