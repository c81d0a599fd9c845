"""Attributes of studies: declared, contributed through every door, refused by name, shown, withdrawn."""

import json
from typing import Any

import asyncpg
import pytest

from tests.api.service import Service, assert_problem
from tests.support.noiseless import without_noise

JSON = {"Content-Type": "application/json"}
DECLARED = {"region": ["north", "south"], "age": ["-29", "30-59", "60-"]}
ALICE: dict[str, Any] = {
    "subject": "alice",
    "value": 40,
    "epsilon": 1,
    "trust": "central",
    "attributes": {"region": "south", "age": "30-59"},
}
BOB = {"subject": "bob", "value": 10, "trust": "public", "attributes": {"age": "-29", "region": "north"}}
RECORDS: list[dict[str, Any]] = [
    ALICE,
    BOB,
    {**ALICE, "subject": "cyd", "attributes": {"region": "south"}},
    {**ALICE, "subject": "dan", "attributes": {"region": "west", "age": "60-"}},
    {**ALICE, "subject": "eve", "attributes": {"region": "north", "age": "60-"}},
    {**ALICE, "attributes": {"region": "north", "age": "30-59"}},
]
CSV = """subject,value,epsilon,trust,Age,region
alice,40,1,central,30-59,south
bob,10,,public,-29,north
cyd,40,1,central,,south
dan,40,1,central,60-,west
eve,40,1,central,60-,north
alice,40,1,central,30-59,north
"""
FORMS = {
    "application/json": json.dumps(RECORDS),
    "application/x-ndjson": "\n".join(map(json.dumps, RECORDS)),
    "text/csv": CSV,
}
WITHDRAWN = "withdrawn"


@pytest.fixture
async def survey(service: Service) -> str:
    """A study with two attributes that takes every trust tag."""
    return await service.study(trust=["central", "local", "public"], attributes=DECLARED)


async def rows(service: Service, query: str) -> list[tuple[Any, ...]]:
    """What the database has."""
    connection = await asyncpg.connect(service.database_url)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def release(service: Service, survey: str) -> dict[str, Any]:
    """A new answer; what came before it is folded."""
    path, wanted = f"/v1/studies/{survey}/releases", {"share": 0.1, "fresh": True}
    answer = await service.call("POST", path, "analyse", json=wanted)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def segments(service: Service) -> dict[str, int | str]:
    """Person -> segment of the contribution."""
    digest = service.api.services.subject_key.digest
    names = {digest(name): name for name in ("alice", "bob", "cyd", "dan", "eve", "lou")}
    found = await rows(service, "SELECT subject_id, segment, value IS NULL FROM contribution")
    return {
        names[subject]: WITHDRAWN if gone and not segment else segment for subject, segment, gone in found
    }


async def test_a_study_says_what_it_declares_in_its_order(service: Service, survey: str):
    for path in (f"/v1/studies/{survey}", "/v1/studies"):
        document = (await service.call("GET", path, "contribute")).json()
        document = document["items"][0] if "items" in document else document
        assert list(document["attributes"].items()) == list(DECLARED.items())
    trust, epsilon = ["central", "local", "public"], {"max": 10}
    again = {"slug": survey, "lower": 0, "upper": 100, "trust": trust, "epsilon": epsilon}
    same = await service.call("POST", "/v1/studies", "admin", json={**again, "attributes": DECLARED})
    assert same.status_code == 200, same.text
    other = {"age": DECLARED["age"], "region": DECLARED["region"]}
    refused = await service.call("POST", "/v1/studies", "admin", json={**again, "attributes": other})
    assert_problem(refused, "study_exists", 409)


@pytest.mark.parametrize(
    ("attributes", "field"),
    [
        ({"Region": ["north"]}, "attributes.Region"),
        ({"region": []}, "attributes"),
        ({"value": ["a"]}, "attributes"),
        ({"region": ["north", "north"]}, "attributes.region"),
        ({"region": ["a,b"]}, "attributes.region.0"),
        ({"region": [" a"]}, "attributes.region.0"),
        ({"region": [1]}, "attributes.region.0"),
        ({"region": ["a" * 65]}, "attributes.region.0"),
        ({"region": "north"}, "attributes.region"),
        (["region"], "attributes"),
        ({name: [str(label) for label in range(11)] for name in ("a", "b", "c")}, "attributes"),
    ],
)
async def test_what_cannot_be_declared_is_refused(service: Service, attributes: object, field: str):
    study = {"slug": "odd", "lower": 0, "upper": 1, "attributes": attributes}
    assert_problem(
        await service.call("POST", "/v1/studies", "admin", json=study), "invalid_request", 422, field
    )


async def test_a_label_lives_replaces_and_leaves(service: Service, survey: str):
    path = f"/v1/studies/{survey}/contributions"
    for status in (201, 200):
        assert (await service.call("POST", path, "contribute", json=ALICE)).status_code == status
    moved = {**ALICE, "attributes": {"region": "north", "age": "30-59"}}
    assert_problem(await service.call("POST", path, "contribute", json=moved), "contribution_exists", 409)
    assert await segments(service) == {"alice": 4}
    statement = (await service.call("GET", "/v1/subjects/alice/budget", "admin")).json()
    assert statement["studies"][0]["attributes"] == ALICE["attributes"]
    await release(service, survey)  # folds
    del moved["subject"]
    assert (await service.call("PUT", f"{path}/alice", "contribute", json=moved)).status_code == 200
    assert await segments(service) == {"alice": 1}
    await service.call("POST", path, "contribute", json={**ALICE, "subject": "bob"})
    await release(service, survey)
    cohorts = (await service.call("GET", f"/v1/admin/studies/{survey}/cohorts", "admin")).json()["items"]
    assert [cohort["attributes"] for cohort in cohorts] == [ALICE["attributes"], moved["attributes"]]
    assert (await service.call("DELETE", f"{path}/alice", "contribute")).status_code == 204
    assert await segments(service) == {"alice": WITHDRAWN, "bob": 4}
    statement = (await service.call("GET", "/v1/subjects/alice/budget", "admin")).json()
    assert statement["studies"][0]["attributes"] == {}
    assert (await service.api.services.ledger.audit()).clean


async def test_a_local_report_has_labels(service: Service, survey: str):
    report = {**ALICE, "subject": "lou", "report": 1 << 29, "trust": "local"}
    del report["value"]
    path = f"/v1/studies/{survey}/contributions"
    assert (await service.call("POST", path, "contribute", json=report)).status_code == 201
    assert await segments(service) == {"lou": 4}


@pytest.mark.parametrize(
    ("attributes", "fields"),
    [
        (None, ["attributes"]),
        ({}, ["attributes.age", "attributes.region"]),
        ({"region": "north"}, ["attributes.age"]),
        ({"region": "north", "age": "60-", "sex": "f"}, ["attributes.sex"]),
        ({"region": "North", "age": "60-"}, ["attributes.region"]),
        ({"region": "North", "age": "60"}, ["attributes.age", "attributes.region"]),
        ({"region": 1, "age": "60-"}, ["attributes.region"]),
        ({"region": ["north"], "age": "60-"}, ["attributes.region"]),
    ],
)
async def test_refusals_name_the_attribute(
    service: Service, survey: str, attributes: object, fields: list[str]
):
    path, sent = f"/v1/studies/{survey}/contributions", {**ALICE, "attributes": attributes}
    assert_problem(await service.call("POST", path, "contribute", json=sent), "invalid_request", 422, *fields)
    if attributes is None:
        del sent["attributes"]
        missing = await service.call("POST", path, "contribute", json=sent)
        assert_problem(missing, "invalid_request", 422, "attributes.age", "attributes.region")
    assert await segments(service) == {}


async def test_cells_of_trust_have_any_case_and_labels_are_exact(service: Service, survey: str):
    rows = (
        "Subject,VALUE,epsilon,trust,Age,REGION\nann,1,1, Central ,60-, north \nbob,1,1,central,60-,North\n"
    )
    path, headers = f"/v1/studies/{survey}/contributions/batch", {"Content-Type": "text/csv"}
    done = (await service.call("POST", path, "contribute", content=rows, headers=headers)).json()
    assert [one["status"] for one in done["results"]] == ["created", "refused"]
    reason = "must be one of the study's labels, as text: north, south"
    assert done["results"][1]["errors"] == [{"field": "attributes.region", "reason": reason}]
    assert done["results"][1]["row"] == 2


async def test_a_refusal_lists_the_first_of_many_labels(service: Service):
    survey = await service.study(attributes={"ward": [f"w{number}" for number in range(100)]})
    sent = {**ALICE, "attributes": {"ward": "w100"}}
    refused = await service.call("POST", f"/v1/studies/{survey}/contributions", "contribute", json=sent)
    (error,) = assert_problem(refused, "invalid_request", 422, "attributes.ward")["errors"]
    assert error["reason"].endswith(": w0, w1, " + ", ".join(f"w{n}" for n in range(2, 20)) + ", ...")


async def test_a_study_without_attributes_takes_none(service: Service):
    path = f"/v1/studies/{await service.study()}/contributions"
    assert_problem(
        await service.call("POST", path, "contribute", json=ALICE), "invalid_request", 422, "attributes"
    )


@pytest.mark.parametrize("form", FORMS)
async def test_batches_of_every_form_have_labels(service: Service, survey: str, form: str):
    path = f"/v1/studies/{survey}/contributions/batch"
    answer = await service.call(
        "POST", path, "contribute", content=FORMS[form], headers={"Content-Type": form}
    )
    assert answer.status_code == 200, answer.text
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [
        "created",
        "created",
        *["refused"] * 2,
        "created",
        "refused",
    ]
    assert results[2]["errors"] == [{"field": "attributes.age", "reason": "missing"}]
    assert results[3]["errors"][0]["field"] == "attributes.region"
    assert results[5]["code"] == "contribution_exists"
    assert await segments(service) == {"alice": 4, "bob": 0, "eve": 2}
    again = await service.call(
        "POST", path, "contribute", content=FORMS[form], headers={"Content-Type": form}
    )
    assert again.json()["unchanged"] == 3
    estimate = await release(service, survey)
    assert estimate["people"] == 3
    folded = await rows(service, "SELECT trust, segment, count FROM cohort ORDER BY trust, segment")
    assert folded == [("central", 2, 1), ("central", 4, 1), ("public", 0, 1)]
    assert (await service.api.services.ledger.audit()).clean


async def test_a_key_tells_labels_apart(service: Service, survey: str):
    path = f"/v1/studies/{survey}/contributions"
    headers = {**JSON, "Idempotency-Key": "one"}
    sent = json.dumps(ALICE)
    for _ in range(2):
        first = await service.call("POST", path, "contribute", content=sent, headers=headers)
        assert first.status_code == 201
    moved = json.dumps({**ALICE, "attributes": {"region": "north", "age": "30-59"}})
    reused = await service.call("POST", path, "contribute", content=moved, headers=headers)
    assert_problem(reused, "idempotency_key_reused", 409)


async def test_the_audit_finds_labels_that_were_never_declared(service: Service, survey: str):
    await service.call("POST", f"/v1/studies/{survey}/contributions", "contribute", json=ALICE)
    assert (await service.api.services.ledger.audit()).clean
    await rows(service, "UPDATE contribution SET segment = 6")
    findings = (await service.api.services.ledger.audit()).findings
    [finding] = [found for found in findings if "labels" in found.rule]
    assert finding.examples[0]["segment"] == 6


async def people(service: Service, survey: str, each: int = 40) -> None:
    """People of every region and age: northern values are 20, southern ones 80."""
    records = [
        {
            "subject": f"{region}-{age}-{number}",
            "value": 20 if region == "north" else 80,
            "epsilon": 10,
            "trust": "central",
            "attributes": {"region": region, "age": age},
        }
        for region in DECLARED["region"]
        for age in DECLARED["age"]
        for number in range(each)
    ]
    path = f"/v1/studies/{survey}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == len(records)


def near(answer: dict[str, Any], mean: float) -> bool:
    """Whether the mean is within four intervals of 95 %: Laplace noise misses them once in 10^10 times."""
    width = answer["interval"]["upper"] - answer["interval"]["lower"]
    return bool(abs(answer["estimate"] - mean) <= 4 * width)


async def test_a_question_about_a_label_asks_and_charges_its_people_alone(service: Service, survey: str):
    await people(service, survey)
    path = f"/v1/studies/{survey}/statistics/mean"
    plan = await service.call("GET", f"/v1/studies/{survey}/plan?where=region:north&share=0.5", "analyse")
    assert plan.status_code == 200, plan.text
    north = (await service.call("GET", f"{path}?where=region:north&share=0.5", "analyse")).json()
    assert north["where"] == {"region": "north"}
    assert (north["people"], north["epsilon_max"]) == (120, 5)
    assert plan.json()["estimators"][0]["epsilon_max"] == 5
    assert near(north, 20)
    spent = "SELECT segment, spent FROM cohort WHERE trust = 'central' ORDER BY segment"
    assert await rows(service, spent) == [(0, 5e6), (1, 5e6), (2, 5e6), (3, 0), (4, 0), (5, 0)]
    old = await service.call("GET", f"{path}?where=age:60-&where=region:south&share=1", "analyse")
    same = await service.call("GET", f"{path}?where=region:south,age:60-", "analyse")
    assert old.json()["id"] == same.json()["id"]
    assert (old.json()["people"], old.json()["where"]) == (40, {"region": "south", "age": "60-"})
    body = {"where": ["region:north"], "share": 0.7}
    more = await service.call("POST", f"/v1/studies/{survey}/releases", "analyse", json=body)
    assert (more.json()["share_before"], more.json()["refines"]) == (0.5, north["id"])
    assert await rows(service, spent) == [(0, 7e6), (1, 7e6), (2, 7e6), (3, 0), (4, 0), (5, 1e7)]
    assert (await service.api.services.ledger.audit()).clean


async def test_one_answer_has_every_label_at_the_price_of_one_mean(service: Service):
    declared = {"region": ["north", "empty", "south", "east"], "age": DECLARED["age"]}
    survey = await service.study(trust=["central", "public"], attributes=declared)
    await people(service, survey)
    known = {**BOB, "value": 50, "attributes": {"region": "east", "age": "60-"}}
    await service.call("POST", f"/v1/studies/{survey}/contributions", "contribute", json=known)
    path = f"/v1/studies/{survey}"
    plan = (await service.call("GET", f"{path}/plan?by=region&share=0.5", "analyse")).json()
    asked = f"{path}/statistics/mean?by=region&share=0.5"
    answer = await service.call("GET", asked, "analyse")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["by"], found["people"], found["epsilon_max"]) == ("region", 241, 5)
    assert plan["estimators"][0]["epsilon_max"] == 5
    groups = {group["where"]["region"]: group for group in found["groups"]}
    assert [*groups] == declared["region"]
    for region, mean, count in (("north", 20, 120), ("south", 80, 120), ("east", 50, 1)):
        group = groups[region]
        assert (group["people"], group["people_left_out"]) == (count, 0)
        assert near(group, mean)
    assert groups["empty"] == {
        "where": {"region": "empty"},
        "people": 0,
        "people_left_out": 0,
        **dict.fromkeys(("estimate", "standard_error", "interval", "population_interval")),
        **dict.fromkeys(("error", "drawn_to_whole", "predicted_error", "predicted_bias")),
    }
    assert near(found, 50)
    spent = "SELECT DISTINCT spent FROM cohort WHERE trust = 'central'"
    assert await rows(service, spent) == [(5e6,)]
    for statistic in ("sum", "sd"):
        other = (await service.call("GET", f"{path}/statistics/{statistic}?by=region", "analyse")).json()
        assert other["id"] == found["id"]
    assert other["groups"][1]["estimate"] is None
    assert other["groups"][0]["estimate"] == groups["north"]["sd"]["estimate"]
    more = await service.call("POST", f"{path}/releases", "analyse", json={"by": "region", "share": 0.8})
    assert more.status_code == 201, more.text
    assert (more.json()["refines"], more.json()["share_before"]) == (found["id"], 0.5)
    assert await rows(service, spent) == [(8e6,)]
    # Someone new in one label alone: no one else pays.
    late = {**ALICE, "epsilon": 10, "attributes": {"region": "north", "age": "60-"}}
    await service.call("POST", f"{path}/contributions", "contribute", json=late)
    again = await service.call("POST", f"{path}/releases", "analyse", json={"by": "region", "share": 0.8})
    assert again.status_code == 201, again.text
    assert await rows(service, "SELECT DISTINCT spent FROM cohort WHERE trust = 'central'") == [(8e6,)]
    assert again.json()["groups"][0]["people"] == 121
    south = [document.json()["groups"][2]["estimate"] for document in (more, again)]
    assert abs(south[0] - south[1]) < 0.1, (
        "the same noisy sum, read with what is known of the variance by then"
    )
    stands = await service.call("POST", f"{path}/releases", "analyse", json={"by": "region", "share": 0.8})
    assert (stands.status_code, stands.json()["id"]) == (200, again.json()["id"])
    assert (await service.api.services.ledger.audit()).clean


async def test_local_people_have_labels_that_are_answered_for_nothing(service: Service):
    survey = await service.study(trust=["local"], attributes=DECLARED)
    records = [
        {"subject": f"p{number}", "report": 1 << 29, "epsilon": 1, "trust": "local", "attributes": where}
        for number, where in enumerate({"region": "north", "age": age} for age in DECLARED["age"] * 20)
    ]
    path = f"/v1/studies/{survey}"
    await service.call("POST", f"{path}/contributions/batch", "contribute", json=records)
    found = (await service.call("GET", f"{path}/statistics/mean?by=region", "analyse")).json()
    north, south = found["groups"]
    assert (north["people"], north["estimate"], found["epsilon_max"]) == (60, found["estimate"], 0)
    assert south["estimate"] is None


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ("by=sex", "by"),
        ("by=region&where=region:north", "by"),
        ("by=region&fresh=true", "fresh"),
    ],
)
async def test_a_question_by_labels_is_checked(service: Service, survey: str, question: str, field: str):
    plan = await service.call("GET", f"/v1/studies/{survey}/plan?{question}", "analyse")
    assert_problem(plan, "invalid_request", 422, field)


@pytest.mark.parametrize(
    ("field", "given", "reason"),
    [
        ("where", {"region": "north"}, "must be a string such as region:north"),
        ("between", {"region": ["north", "south"]}, "must be a string such as region:north,south"),
        ("estimator", {"name": "uniform"}, "must be a string or a number"),
    ],
)
async def test_a_document_with_an_object_for_labels_is_told_how_they_are_written(
    service: Service, survey: str, field: str, given: object, reason: str
):
    question = {"statistic": "difference", field: given}
    refused = await service.call("POST", f"/v1/studies/{survey}/releases", "analyse", json=question)
    assert refused.status_code == 422
    assert {"field": field, "reason": reason} in refused.json()["errors"]


async def test_gaussian_studies_are_asked_by_labels_too(service: Service):
    slug = await service.study(noise="gaussian", delta=1e-6, attributes=DECLARED)
    await people(service, slug)
    asked = f"/v1/studies/{slug}/statistics/mean"
    found = (await service.call("GET", f"{asked}?by=region&share=0.5", "analyse")).json()
    one = (await service.call("GET", f"{asked}?share=0.5", "analyse")).json()
    assert found["mu2_max"] == one["mu2_max"]
    for group, mean in zip(found["groups"], (20, 80), strict=True):
        assert near(group, mean)
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("region", "name:label"),
        ("sex:f", "attributes of the study: region, age"),
        ("region:west", "label of region: north, south"),
        ("region:north,region:south", "names region twice"),
    ],
)
async def test_a_question_about_labels_that_are_not_declared_is_refused(
    service: Service, survey: str, where: str, reason: str
):
    for path in (f"plan?where={where}", f"statistics/mean?where={where}", f"statistics/median?where={where}"):
        answer = await service.call("GET", f"/v1/studies/{survey}/{path}", "analyse")
        assert reason in assert_problem(answer, "invalid_request", 422, "where")["errors"][0]["reason"]


async def test_of_a_secret_study_an_empty_label_is_answered_like_a_full_one(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    """Whether people are in a label shows in nothing but noise: the same fields, price and prediction.

    Published noisy numbers choose later levels. Without noise they are 0 and 1, which both count as one.
    """
    without_noise(monkeypatch)
    seen, numbers = [], []
    for region in DECLARED["region"]:
        study = await service.study(relation="add_remove_one", attributes=DECLARED)
        record = {**ALICE, "attributes": {"region": region, "age": "60-"}}
        await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=record)
        path, plan = f"/v1/studies/{study}/statistics", f"/v1/studies/{study}/plan?where=region:north"
        told = [(await service.call("GET", plan, "analyse")).json()]
        for statistic in ("mean", "sd"):
            answer = await service.call("GET", f"{path}/{statistic}?where=region:north", "analyse")
            assert answer.status_code == 200, answer.text
            told.append(answer.json())
        told.append((await service.call("GET", plan, "analyse")).json())
        assert told[0]["estimators"]
        numbers.append(told[1]["noisy_count"])
        for document in told[1:]:
            for name in NOISY:
                document.pop(name, None)
        seen.append(told)
    assert seen[0] == seen[1]
    assert numbers == [pytest.approx(1), 0], "one person takes part, or no one"


NOISY = (
    *("id", "study", "created_at", "estimate", "standard_error", "interval", "population_interval"),
    *("noisy_count", "offered", "about", "variance", "sd", "stands", "in_words"),
)
"""What has noise or a name in it."""
