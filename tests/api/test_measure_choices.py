"""Choices among the measures of a study, over HTTP: declared, contributed, answered as polls are, refused."""

import json
from typing import Any

import numpy as np
import pytest
from dither.device.choices import ChoiceRandomizer
from dither.device.measures import reports
from dither.device.randomizers import randomizer

from app.core.study import NOT_OF_CHOICES
from tests.api.service import Service, assert_problem
from tests.api.test_measures import household, vectors
from tests.api.test_shapes import get, spent

MEASURES: dict[str, Any] = {
    "income": {"lower": 0, "upper": 9000},
    "party": {"choices": ["red", "green", "blue"]},
}
MICRO = 1_000_000
NAMES = tuple(MEASURES)
DEVICES = (randomizer("hybrid"), ChoiceRandomizer(3))
GREEN = 1 << 29


async def load(service: Service, study: str, records: list[dict[str, Any]]) -> None:
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == len(records), response.text


def central(number: int, party: str, epsilon: float = 4, **fields: Any) -> dict[str, Any]:
    values = {"income": 4500, "party": party}
    return {"subject": f"c{number}", "values": values, "epsilon": epsilon, "trust": "central", **fields}


def local(number: int, epsilon: int) -> dict[str, Any]:
    """What the device of a person sends who chose green."""
    drawn = reports(DEVICES, (1 << 30, GREEN), epsilon * MICRO)
    sent = {NAMES[place]: report for place, report in drawn.items()}
    return {"subject": f"l{number}", "reports": sent, "epsilon": epsilon, "trust": "local"}


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_a_choice_is_answered_as_a_poll_at_the_price_of_a_poll(service: Service, relation: str):
    """Shares within 28 of their standard errors of .0018 at most; the other measure keeps its mean."""
    terms = {"relation": relation, "default_share": 0.5, "epsilon": {"min": 4, "max": 4}}
    study = await household(service, measures=MEASURES, trust=["central"], **terms)
    poll = await service.study(
        lower=None, upper=None, choices=["red", "green", "blue"], trust=["central"], **terms
    )
    parties = ["red"] * 100 + ["green"] * 250 + ["blue"] * 50
    await load(service, study, [central(number, party) for number, party in enumerate(parties)])
    alone = [{**central(number, party), "value": party} for number, party in enumerate(parties)]
    for one in alone:
        del one["values"]
    await load(service, poll, alone)
    plan = await get(service, study, "plan", statistic="shares", measure="party")
    found = await get(service, study, "statistics/shares", measure="party")
    like = await get(service, poll, "statistics/shares")
    assert [one["choice"] for one in found["choices"]] == MEASURES["party"]["choices"]
    assert found["measure"] == "party"
    assert plan["estimators"][0]["epsilon_max"] == found["epsilon_max"] == like["epsilon_max"] == 2
    assert found["predicted_error"] == like["predicted_error"]
    for one, truth in zip(found["choices"], (0.25, 0.625, 0.125), strict=True):
        assert abs(one["share"] - truth) < 0.05
    mean = await get(service, study, "statistics/mean", measure="income")
    # Laplace noise: a false alarm of 4e-8.
    assert abs(mean["estimate"] - 4500) < 12 * mean["standard_error"]
    assert await spent(service, study, "c1") == 4
    assert (await service.api.services.ledger.audit()).clean


async def test_local_people_report_some_measures_and_the_shares_hear_those_who_reported_the_choice(
    service: Service,
):
    """All of them chose green: within five predicted errors, alone and beside central people."""
    study = await household(service, measures=MEASURES, trust=["central", "local"], default_share=0.5)
    people = [local(number, 2 if number < 300 else 5) for number in range(600)]
    await load(service, study, people)
    silent = sum("party" not in one["reports"] for one in people)
    assert 90 < silent < 210
    planned = await get(service, study, "plan", statistic="shares", measure="party")
    found = await get(service, study, "statistics/shares", measure="party")
    assert planned["estimators"][0]["predicted_error"] == found["predicted_error"], "also of unfolded rows"
    assert (found["people"], found["people_left_out"]) == (600, silent)
    assert found["left_out_because"] == "measure_not_reported"
    assert found["epsilon_max"] == 0
    (green,) = [one for one in found["choices"] if one["choice"] == "green"]
    assert abs(green["share"] - 1) < 5 * found["predicted_error"]
    await load(service, study, [central(number, "green") for number in range(300)])
    both = await service.call(
        "POST", f"/v1/studies/{study}/releases", "analyse", json={"statistic": "shares", "measure": "party"}
    )
    assert both.status_code == 201, both.text
    assert both.json()["predicted_error"] < found["predicted_error"]
    assert both.json()["people_left_out"] == silent
    mean = await get(service, study, "statistics/mean", measure="income", estimator="optimal")
    assert mean["people_left_out"] == sum("income" not in one["reports"] for one in people)
    assert (await service.api.services.ledger.audit()).clean


async def test_reports_of_a_choice_are_unbiased_and_too_large_an_epsilon_is_found(service: Service):
    """40 studies of 50 devices: the mean of what is read, not drawn to the simplex, is the truth within six
    standard errors (a false alarm of 6e-9); reports read as if they had the whole epsilon of 5 are not."""
    device, truth = ChoiceRandomizer(3), np.array([0.0, 1.0, 0.0])
    counted = np.zeros(3)
    draws = 0
    for _ in range(2000):
        drawn = reports(DEVICES, (1 << 30, GREEN), 5 * MICRO)
        draws += 1
        counted += [(drawn[1] >> bit) & 1 for bit in range(3)]
    for epsilon, holds in ((2_500_000, True), (5_000_000, False)):
        law = device.range(epsilon)
        kept, other = float(law.kept), float(law.other)
        read = (counted / draws - other) / (kept - other)
        error = np.sqrt(counted / draws * (1 - counted / draws) / draws) / (kept - other)
        assert bool(np.all(np.abs(read - truth) < 6 * error)) is holds


@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson", "text/csv"])
async def test_batches_have_choices_in_every_form(service: Service, form: str):
    study = await household(service, measures=MEASURES, trust=["central", "local"])
    device = {"subject": "l4", "reports": {"party": 2}, "epsilon": 1, "trust": "local"}
    people = [central(1, "blue"), central(2, "violet"), central(3, "red"), device]
    people.append({**device, "subject": "l5", "reports": {"party": 2, "income": 0}})
    bodies = {
        "application/json": json.dumps(people),
        "application/x-ndjson": "\n".join(map(json.dumps, people)),
        "text/csv": "subject,party,income,epsilon,trust\nc1,blue,4500,4,central\nc2,violet,4500,4,central\n"
        "c3,red,4500,4,central\nl4,2,,1,Local\nl5,2,0,1,local\n",
    }
    path, headers = f"/v1/studies/{study}/contributions/batch", {"Content-Type": form}
    done = (await service.call("POST", path, "contribute", content=bodies[form], headers=headers)).json()
    assert (done["created"], done["refused"]) == (3, 2)
    assert [one["errors"] for one in done["results"] if one["status"] == "refused"] == [
        [
            {
                "field": "values.party",
                "reason": "must be one of the measure's choices, as text: red, green, blue",
            }
        ],
        [{"field": "reports", "reason": "a device reports 1 of 2 measures with this epsilon"}],
    ]
    stored = sorted(map(str, await vectors(service)))
    assert stored == ["[536870912, 0]", "[536870912, 1073741824]", "[None, 2]"]


@pytest.mark.parametrize(
    ("statistic", "measure", "field", "reason"),
    [
        ("mean", "party", "statistic", NOT_OF_CHOICES),
        ("histogram", "party", "statistic", NOT_OF_CHOICES),
        ("median", "party", "statistic", NOT_OF_CHOICES),
        (
            "shares",
            "income",
            "statistic",
            "is for choices, and these values are numbers: ask for a histogram",
        ),
        ("shares", None, "measure", "is required in a study of several: income, party"),
    ],
)
async def test_a_statistic_that_a_measure_does_not_have_is_refused(
    service: Service, statistic: str, measure: str | None, field: str, reason: str
):
    study = await household(service, measures=MEASURES)
    params = {} if measure is None else {"measure": measure}
    path = f"/v1/studies/{study}/statistics/{statistic}"
    refused = await service.call("GET", path, "analyse", params=params)
    problem = assert_problem(refused, "invalid_request", 422, field)
    assert problem["errors"] == [{"field": field, "reason": reason}]


@pytest.mark.parametrize(
    ("party", "field", "reason"),
    [
        ({"choices": ["red"]}, "measures.party.choices", "2 or more"),
        ({"choices": ["red", "red"]}, "measures.party.choices", "names something twice"),
        ({"choices": ["red", "b"], "lower": 0}, "measures.party.lower", "a choice has no range"),
        ({}, "measures.party.lower", "unless there are choices"),
        ({"choices": ["red", "b"], "dimension": 2}, "measures.party.dimension", "must be 1 for choices"),
    ],
)
async def test_a_choice_that_is_declared_wrongly_is_refused_by_its_path(
    service: Service, party: dict[str, Any], field: str, reason: str
):
    document = {"slug": "s", "measures": {**MEASURES, "party": party}}
    refused = await service.call("POST", "/v1/studies", "admin", json=document)
    problem = assert_problem(refused, "invalid_request", 422)
    reasons = {one["field"]: one["reason"] for one in problem["errors"]}
    assert reason in reasons[field], reasons


async def test_a_study_says_what_it_asks_for(service: Service):
    study = await household(service, measures=MEASURES)
    described = (await service.call("GET", f"/v1/studies/{study}", "contribute")).json()
    assert described["measures"] == {
        "income": {"lower": 0, "upper": 9000, "step": 9000 / 2**30, "choices": [], "dimension": 1},
        "party": {
            "lower": 0,
            "upper": 2,
            "step": None,
            "choices": ["red", "green", "blue"],
            "dimension": 1,
        },
    }
    assert described["choices"] == []
