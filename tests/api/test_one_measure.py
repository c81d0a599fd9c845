"""Studies of one measure: the value of a study by its name, declared, contributed, asked for and refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from dither import AsyncClient, InvalidRequest

from tests.api.service import Service, assert_problem
from tests.api.test_shapes import get, spent

INCOME = {"lower": 0, "upper": 100}
CHOICE = {"choices": ["red", "green"]}
TRUST = ["central", "local", "public"]


async def declare(service: Service, name: str = "income", of: Any = INCOME, **terms: Any) -> str:
    """A study of one measure, by its name."""
    return await service.study(**{"lower": None, "upper": None, "measures": {name: of}, **terms})


async def crowd(service: Service, study: str, name: str, region: str) -> None:
    """A hundred central people of a region, with values 0 to 99."""
    records = [
        {
            "subject": f"{region}-{one}",
            "values": {name: one},
            "epsilon": 1,
            "trust": "central",
            "attributes": {"region": region},
        }
        for one in range(100)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == len(records), response.text


async def send(service: Service, study: str, **fields: Any) -> Any:
    record = {"subject": "ann", "epsilon": 1, "trust": "central", **fields}
    return await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=record)


async def shown(service: Service, study: str) -> dict[str, Any]:
    response = await service.call("GET", f"/v1/studies/{study}", "contribute")
    return dict(response.json())


@pytest.mark.parametrize(
    ("of", "terms"),
    [
        (INCOME, {"trust": TRUST}),
        (INCOME, {"trust": TRUST, "local_mechanism": "laplace"}),
        (INCOME, {"trust": TRUST, "noise": "gaussian", "delta": 1e-6}),
        (INCOME, {"relation": "add_remove_one"}),
        (CHOICE, {"trust": TRUST}),
        ({**INCOME, "dimension": 3}, {"trust": TRUST}),
    ],
)
async def test_a_measure_named_value_is_the_study_of_one_value(
    service: Service, of: dict[str, Any], terms: dict[str, Any]
):
    terms = {"epsilon": {"max": 5}, **terms}
    short = await service.study(**{"lower": None, "upper": None, **of, **terms})
    named = {"slug": short, "measures": {"value": of}, **terms}
    same = await service.call("POST", "/v1/studies", "admin", json=named)
    assert same.status_code == 200, same.text
    assert same.json() == await shown(service, short)
    other = await declare(service, of=of, **terms)
    document, plain = await shown(service, other), await shown(service, short)
    own = ("slug", "title", "created_at", "measures")
    assert {**document, **{name: plain[name] for name in own}} == plain
    assert list(document["measures"]) == ["income"]
    assert document["measures"]["income"] == {
        name: plain[name] for name in ("lower", "upper", "choices", "dimension", "step")
    }


@pytest.mark.parametrize(
    ("terms", "fields"),
    [
        ({"measures": {"income": {"lower": 0}}}, ["measures.income.upper"]),
        ({"measures": {"value": {"lower": 1, "upper": 1}}}, ["measures.value.upper"]),
        ({"measures": {"value": INCOME}, "lower": 0, "upper": 1}, ["lower", "upper"]),
        ({"measures": {"income": INCOME}, "choices": ["x", "y"]}, ["measures"]),
        ({"measures": {"income": INCOME}, "dimension": 2}, ["dimension"]),
        ({"measures": {"income": INCOME}, "attributes": {"income": ["x"]}}, ["attributes"]),
        ({"measures": {"party": CHOICE}, "local_mechanism": "hybrid"}, ["local_mechanism"]),
        (
            {"measures": {"place": {**INCOME, "dimension": 2}}, "local_mechanism": "duchi"},
            ["local_mechanism"],
        ),
    ],
)
async def test_what_a_study_of_one_measure_cannot_be_is_refused(
    service: Service, terms: dict[str, Any], fields: list[str]
):
    refused = await service.call("POST", "/v1/studies", "admin", json={"slug": "odd", **terms})
    assert_problem(refused, "invalid_request", 422, *fields)


@pytest.mark.parametrize("name", ["value", "income"])
async def test_a_value_and_a_report_are_the_same_with_and_without_their_name(service: Service, name: str):
    study = await declare(service, name, trust=TRUST, local_mechanism="laplace")
    assert (await send(service, study, values={name: 50})).status_code == 201
    assert (await send(service, study, value=50)).status_code == 200
    assert (await send(service, study, subject="bob", value=60, trust="central")).status_code == 201
    assert (await send(service, study, subject="bob", values={name: 60})).status_code == 200
    local: dict[str, Any] = {"subject": "lou", "trust": "local"}
    assert (await send(service, study, **local, reports={name: 1 << 29})).status_code == 201
    assert (await send(service, study, **local, report=1 << 29)).status_code == 200
    changed = {"values": {name: 70}, "epsilon": 1, "trust": "central"}
    path = f"/v1/studies/{study}/contributions/ann"
    assert (await service.call("PUT", path, "contribute", json=changed)).status_code == 200
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, ["value"]),
        ({"values": {}}, ["values.income"]),
        ({"values": [5]}, ["values"]),
        ({"values": None}, ["values"]),
        ({"values": {"income": 101}}, ["values.income"]),
        ({"values": {"income": "5"}}, ["values.income"]),
        ({"values": {"income": 5, "age": 5}}, ["values.age"]),
        ({"values": {"value": 5}}, ["values.income", "values.value"]),
        ({"values": {"income": 5}, "value": 5}, ["values"]),
        ({"reports": {"income": 5}}, ["reports", "value"]),
        ({"reports": {"income": 1.5}, "trust": "local"}, ["reports.income"]),
        ({"reports": {"income": 1 << 62}, "trust": "local"}, ["reports.income"]),
        ({"values": {"income": 5}, "trust": "local"}, ["report", "values"]),
    ],
)
async def test_a_refusal_names_what_was_given(service: Service, fields: dict[str, Any], named: list[str]):
    study = await declare(service, trust=TRUST)
    assert_problem(await send(service, study, **fields), "invalid_request", 422, *named)


async def test_coordinates_and_choices_have_a_name_too(service: Service):
    place = await declare(service, "place", {**INCOME, "dimension": 2})
    assert (await send(service, place, values={"place": [1, 2]})).status_code == 201
    assert (await send(service, place, value=[1, 2])).status_code == 200
    refused = await send(service, place, values={"place": [1, 101]})
    assert_problem(refused, "invalid_request", 422, "values.place.1")
    party = await declare(service, "party", CHOICE)
    assert (await send(service, party, values={"party": "red"})).status_code == 201
    assert (await send(service, party, value="red")).status_code == 200
    shares = await get(service, party, "statistics/shares", measure="party")
    assert [one["choice"] for one in shares["choices"]] == ["red", "green"]


@pytest.mark.parametrize("name", ["value", "income"])
async def test_every_form_of_a_batch_takes_the_name(service: Service, name: str):
    study = await declare(service, name, trust=TRUST, local_mechanism="laplace")
    records: list[dict[str, Any]] = [
        {"subject": "ann", "values": {name: 5}, "epsilon": 1, "trust": "central"},
        {"subject": "lou", "reports": {name: 1 << 29}, "epsilon": 1, "trust": "local"},
        {"subject": "bad", "values": {name: 500}, "epsilon": 1, "trust": "central"},
    ]
    table = f"subject,{name},epsilon,trust\nann,5,1,central\n"
    if name == "income":
        table += f"lou,{1 << 29},1,local\n"
    else:
        table = f"subject,value,report,epsilon,trust\nann,5,,1,central\nlou,,{1 << 29},1,local\n"
    table += "bad,500,1,central\n" if name == "income" else "bad,500,,1,central\n"
    found = []
    for form, text in (
        ("application/json", json.dumps(records)),
        ("application/x-ndjson", "\n".join(map(json.dumps, records))),
        ("text/csv", table),
    ):
        response = await service.call(
            *("POST", f"/v1/studies/{study}/contributions/batch", "contribute"),
            content=text,
            headers={"Content-Type": form},
        )
        found.append([one["status"] for one in response.json()["results"]])
    assert found == [["created", "created", "refused"], *[["unchanged", "unchanged", "refused"]] * 2]


@pytest.mark.parametrize("name", ["value", "income"])
@pytest.mark.parametrize(
    ("statistic", "question"),
    [
        ("mean", {}),
        ("sd", {}),
        ("mean", {"by": "region"}),
        ("mean", {"where": "region:north", "share": 0.2}),
        ("difference", {"between": "region:north,south"}),
        ("mean", {"range": "found"}),
        ("histogram", {"bins": 4}),
        ("median", {}),
        ("describe", {}),
        ("count", {}),
    ],
)
async def test_a_question_is_the_same_with_and_without_the_name_and_is_paid_for_once(
    service: Service, name: str, statistic: str, question: dict[str, Any]
):
    study = await declare(service, name, attributes={"region": ["north", "south"]}, default_share=0.2)
    for region in ("north", "south"):
        await crowd(service, study, name, region)
    path = f"statistics/{statistic}"
    plan = await get(service, study, "plan", statistic=statistic, **question)
    assert await get(service, study, "plan", statistic=statistic, measure=name, **question) == plan
    by_name = await get(service, study, path, measure=name, **question)
    charged = await spent(service, study, "north-1")
    assert await get(service, study, path, **question) == by_name
    assert "measure" not in by_name
    assert await spent(service, study, "north-1") == charged
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize("question", [{"statistic": "mean"}, {"statistic": "histogram", "bins": 4}])
async def test_shares_of_a_question_add_up_over_both_spellings(service: Service, question: dict[str, Any]):
    study = await service.study(default_share=0.1)
    await service.crowd(study, 200)
    path = f"/v1/studies/{study}/releases"
    steps: list[tuple[int, dict[str, Any]]] = [
        (201, {"measure": "value", "share": 0.1}),
        (201, {"share": 0.3}),
        (201, {"measure": "value"}),
        (200, {"measure": "value", "share": 0.4}),
    ]
    found = []
    for status, step in steps:
        response = await service.call("POST", path, "analyse", json={**question, **step})
        assert response.status_code == status, response.text
        found.append(response.json())
    first, second, third, stands = found
    assert (second["refines"], second["share_before"]) == (first["id"], 0.1)
    assert (third["refines"], third["share"]) == (second["id"], 0.4)
    assert stands["id"] == third["id"]
    assert await spent(service, study, "p1") == 0.4


async def test_another_name_is_refused_with_the_one_that_there_is(service: Service):
    for name, study in (("value", await service.study()), ("income", await declare(service))):
        for path in ("plan", "statistics/mean", "statistics/histogram", "statistics/difference"):
            params = {"measure": "age", "bins": "2"} if "histogram" in path else {"measure": "age"}
            refused = await service.call("GET", f"/v1/studies/{study}/{path}", "analyse", params=params)
            if "difference" in path:
                assert refused.status_code == 422
                continue
            problem = assert_problem(refused, "invalid_request", 422, "measure")
            assert problem["errors"][0]["reason"] == f"must be {name}, or left out"


async def test_a_study_of_one_named_number_has_sessions(service: Service):
    study = await declare(service, trust=["central", "local"])
    terms = {"protocol": "minimum", "mode": "budget_split", "epsilon": 4, "participants": 4, "rounds": 2}
    made = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=terms)
    assert made.status_code == 201, made.text


async def test_the_sdk_sends_and_asks_by_name(service: Service, tmp_path: Path):
    options: dict[str, Any] = {"transport": service.transport}
    async with AsyncClient("http://test", service.tokens["admin"], **options) as admin:
        study = await admin.create_study(
            "household", measures={"income": INCOME}, trust=["central", "local"], local_mechanism="laplace"
        )
        assert list(study.measures) == ["income"]
        await admin.create_study("plain", measures={"value": INCOME})
        place = {"place": {**INCOME, "dimension": 2}}
        await admin.create_study("place", measures=place, trust=["central", "local"])
    async with AsyncClient(
        "http://test", service.tokens["contribute"], directory=tmp_path, **options
    ) as device:
        ann: dict[str, Any] = {"subject": "ann", "epsilon": 1, "trust": "central"}
        assert (await device.contribute("household", value={"income": 5}, **ann)).status == "created"
        assert (await device.contribute("household", value=5, **ann)).status == "unchanged"
        lou = {**ann, "subject": "lou", "trust": "local"}
        assert (await device.contribute("household", value={"income": 5}, **lou)).status == "created"
        assert (await device.contribute("plain", value={"value": 5}, **ann)).status == "created"
        assert (await device.contribute("place", value={"place": [5, 6]}, **ann)).status == "created"
        for wrong, field in (
            ({"income": 101}, "values.income"),
            ({"age": 5}, "values.age"),
            ({}, "values.income"),
        ):
            with pytest.raises(InvalidRequest) as refused:
                await device.contribute("household", value=wrong, **{**ann, "subject": "bob"})
            assert refused.value.field == field
        rows = [{"subject": f"p{one}", "income": one} for one in range(100)]
        done = await device.contribute_many("household", rows, epsilon=1, trust="central")
        assert (done.created, done.refused) == (100, 0)
    async with AsyncClient("http://test", service.tokens["analyse"], **options) as analyst:
        plan = await analyst.plan("household", measure="income")
        mean = await analyst.mean("household", measure="income")
        assert plan.estimators
        assert (await analyst.mean("household")).id == mean.id
