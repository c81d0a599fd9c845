"""What a statistic declares is what can be asked of it: over HTTP, by the command and on the form."""

from dataclasses import fields
from typing import Any

import pytest

from app.cli.ask import ANSWERS, NEEDED, OPTIONS
from app.cli.tree import COMMANDS
from app.core.question import ALLOW_WORSE, FIELDS, FRESH, STATISTICS, Kind
from app.estimators.registry import ESTIMATORS
from app.services.shapes.questions import SHAPES
from app.services.statistics.questions import Ask
from app.services.statistics.reading import READ
from app.web.question_params import PARAMETERS, query_parameters, request_body
from tests.api.service import Service

SAID = {
    "estimator": "uniform",
    "share": "0.2",
    "until": "20",
    "epsilon": "1",
    "expected_size": "100",
    "tilt": "0.1",
    "least_epsilon": "1",
    "where": "sex:f",
    "by": "region",
    "simultaneous": "true",
    "standardize": "region:north=.5,south=.5",
    "of": "mean",
    "between": "region:north,south",
    "measure": "income",
    "edges": "10,20",
    "bins": "5",
    "q": "0.5",
    "candidates": "100",
    "for": "estimate",
    "range": "found",
    "measures": "income,age",
    "on": "age",
    "at": "40",
    "range_part": "0.2",
    "level": "0.9",
}
"""A proper value of every field."""

EXPLAINED = {"of": "income"}
"""What a regression is of: a measure, where a difference is of a mean."""

MORE = {"simultaneous": {"by": "region"}, "range_part": {"range": "found"}}
"""What a field is about."""


def test_every_statistic_and_every_field_has_its_place():
    assert list(STATISTICS) == [*READ, *SHAPES]
    assert SAID.keys() == FIELDS.keys() - {"statistic"}
    assert {name for one in STATISTICS.values() for name in one.fields} == SAID.keys()
    for one in STATISTICS.values():
        assert set(one.needs) <= set(one.fields)
    named = {one.name for one in fields(Ask)}
    assert {name for name, one in FIELDS.items() if not one.own} <= named


def test_every_field_is_said_over_http_with_its_one_text():
    query = {one["name"]: one["description"] for one in query_parameters(plan=True)}
    body = request_body()["content"]["application/json"]["schema"]["properties"]
    own = body["parameters"]["properties"]
    for name, field in FIELDS.items():
        assert query[name] == (own if field.own else body)[name]["description"] == field.description
    assert query.keys() == FIELDS.keys() | PARAMETERS.keys() | {"fresh"}
    # Within `parameters` an estimator's have the names that they have in answers.
    answered = {one.name for estimator in ESTIMATORS.values() for one in estimator.parameters}
    assert own.keys() == answered | {name for name, field in FIELDS.items() if field.own}
    assert query["fresh"] == body["fresh"]["description"] == FRESH.description
    assert body["allow_worse"]["description"] == ALLOW_WORSE.description


def test_every_field_has_an_option_and_every_statistic_its_command():
    assert OPTIONS.keys() == FIELDS.keys() | {"parameter"}
    for name, field in FIELDS.items():
        if name != "statistic":
            assert OPTIONS[name].__metadata__[0].help == field.help
            assert field.metavar or field.kind is Kind.FLAG
    assert ANSWERS.keys() == STATISTICS.keys() <= COMMANDS.keys()
    assert NEEDED.keys() == {name for name, one in STATISTICS.items() if one.needs}


@pytest.fixture
async def studies(service: Service) -> list[str]:
    measures: dict[str, Any] = {
        "income": {"lower": 0, "upper": 100},
        "age": {"lower": 0, "upper": 90},
        "party": {"choices": ["red", "green"]},
        "pet": {"choices": ["cat", "dog"]},
    }
    labels = {"region": ["north", "south"], "sex": ["f", "m"]}
    made = []
    for relation in ("replace_one", "add_remove_one"):
        for asked in (measures, {**measures, "income": {"choices": ["low", "high"]}}):
            study = await service.study(
                relation=relation, measures=asked, attributes=labels, lower=None, upper=None
            )
            made.append(study)
    return made


async def refused(service: Service, study: str, question: dict[str, str]) -> dict[str, str]:
    """The fields that the service refuses, and why."""
    query = "&".join(f"{name}={value}" for name, value in question.items())
    answer = await service.call("GET", f"/v1/studies/{study}/plan?{query}", "analyse")
    if answer.status_code == 200:
        return {}
    assert answer.status_code == 422, answer.text
    return {error["field"]: error["reason"] for error in answer.json()["errors"]}


@pytest.mark.long
@pytest.mark.parametrize("statistic", STATISTICS)
async def test_a_field_is_taken_by_the_statistics_that_declare_it_alone(
    service: Service, studies: list[str], statistic: str
):
    asked = STATISTICS[statistic]
    proper = SAID | (EXPLAINED if "on" in asked.fields else {})
    proper |= {"measures": "party,pet"} if statistic == "table" else {}
    least = {"statistic": statistic} | {name: proper[name] for name in asked.needs}
    if "measure" in asked.fields:
        least["measure"] = "income"
    fitting = [study for study in studies if not await refused(service, study, least)]
    assert fitting
    for name, value in proper.items():
        question = least | {name: value} | MORE.get(name, {})
        said = [await refused(service, study, question) for study in fitting]
        taken = {} in said
        assert taken or all(name in one for one in said), (name, said)
        assert taken is (name in asked.fields), (name, said)
