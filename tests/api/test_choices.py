"""Studies that ask for a choice: declared, contributed, answered by shares, refused by name."""

import json
from typing import Any

import asyncpg
import pytest
from dither.device.choices import ChoiceRandomizer, choice_points
from dither.device.gaussian import micro_mu2

from app.core.epsilon import MICRO
from tests.api.service import Service, assert_problem
from tests.api.test_shapes import ADD_REMOVE, get, spent
from tests.client.bits import Seeded

PARTIES = ["red", "green", "blue", "1", "none of them"]
RECORDS: list[dict[str, Any]] = [
    {"subject": "alice", "value": "green", "epsilon": 1, "trust": "central"},
    {"subject": "bob", "value": "1", "trust": "public"},
    {"subject": "cyd", "value": "none of them", "epsilon": 1, "trust": "central"},
    {"subject": "dan", "value": "Green", "epsilon": 1, "trust": "central"},
    {"subject": "eve", "epsilon": 1, "trust": "central"},
    {"subject": "alice", "value": "red", "epsilon": 1, "trust": "central"},
]
CSV = """subject;value;epsilon;trust
alice;green;1;central
bob;1;;public
cyd; none of them ;1;central
dan;Green;1;central
eve;;1;central
alice;red;1;central
"""
FORMS = {
    "application/json": json.dumps(RECORDS),
    "application/x-ndjson": "\n".join(map(json.dumps, RECORDS)),
    "text/csv": CSV,
}


async def poll(service: Service, **definition: Any) -> str:
    """A study of five parties."""
    document = {"choices": PARTIES, "trust": ["central", "public"], **definition}
    return await service.study(**{"lower": None, "upper": None, **document})


async def vote(service: Service, study: str, votes: dict[str, int], epsilon: float = 1) -> None:
    """Central people: how many make each choice."""
    choices = [choice for choice, number in votes.items() for _ in range(number)]
    records = [
        {"subject": f"p{number}", "value": choice, "epsilon": epsilon, "trust": "central"}
        for number, choice in enumerate(choices)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == len(records), response.text


async def test_a_study_says_its_choices_in_their_order_and_fixes_them(service: Service):
    document = {"slug": "party", "choices": PARTIES}
    made = await service.call("POST", "/v1/studies", "admin", json=document)
    assert made.status_code == 201, made.text
    for path in ("/v1/studies/party", "/v1/studies"):
        shown = (await service.call("GET", path, "contribute")).json()
        shown = shown["items"][0] if "items" in shown else shown
        assert (shown["choices"], shown["lower"], shown["upper"]) == (PARTIES, 0, 4)
    assert (await service.call("POST", "/v1/studies", "admin", json=document)).status_code == 200
    other = {**document, "choices": PARTIES[::-1]}
    assert_problem(await service.call("POST", "/v1/studies", "admin", json=other), "study_exists", 409)
    edit = {"choices": ["a", "b"], "reason": "no"}
    refused = await service.call("PATCH", "/v1/studies/party", "admin", json=edit)
    assert_problem(refused, "invalid_request", 422, "choices")


@pytest.mark.parametrize(
    ("terms", "fields"),
    [
        ({"choices": ["a"]}, ["choices"]),
        ({"choices": []}, ["choices"]),
        ({"choices": ["a", "a"]}, ["choices"]),
        ({"choices": [f"c{number}" for number in range(51)]}, ["choices"]),
        ({"choices": ["a", ""]}, ["choices.1"]),
        ({"choices": ["a", 2]}, ["choices.1"]),
        ({"choices": ["a", "b,c"]}, ["choices.1"]),
        ({"choices": ["a", " b"]}, ["choices.1"]),
        ({"choices": "a,b"}, ["choices"]),
        ({"choices": ["a", "b"], "lower": 0, "upper": 1}, ["lower", "upper"]),
        ({"choices": ["a", "b"], "upper": 1}, ["upper"]),
        ({"choices": ["a", "b"], "dimension": 2}, ["dimension"]),
        ({"choices": ["a", "b"], "local_mechanism": "hybrid"}, ["local_mechanism"]),
        ({"choices": ["a", "b"], "relation": "add_remove_one", "trust": ["local"]}, ["trust"]),
        ({}, ["lower", "upper"]),
        ({"lower": 0}, ["upper"]),
    ],
)
async def test_what_cannot_be_declared_is_refused(
    service: Service, terms: dict[str, object], fields: list[str]
):
    refused = await service.call("POST", "/v1/studies", "admin", json={"slug": "odd", **terms})
    assert_problem(refused, "invalid_request", 422, *fields)


@pytest.mark.parametrize("form", FORMS)
async def test_every_form_of_a_batch_takes_labels_and_refuses_others_with_row_and_reason(
    service: Service, form: str
):
    study = await poll(service)
    path = f"/v1/studies/{study}/contributions/batch"
    sent = await service.call("POST", path, "contribute", content=FORMS[form], headers={"Content-Type": form})
    assert sent.status_code == 200, sent.text
    found = sent.json()
    assert [one["status"] for one in found["results"]] == ["created"] * 3 + ["refused"] * 3
    assert [one["code"] for one in found["results"][3:]] == ["invalid_request"] * 2 + ["contribution_exists"]
    (wrong,), (missing,) = (one["errors"] for one in found["results"][3:5])
    reason = f"must be one of the study's choices, as text: {', '.join(PARTIES)}"
    assert wrong == {"field": "value", "reason": reason}
    assert missing == {"field": "value", "reason": "missing"}
    again = await service.call(
        "POST", path, "contribute", content=FORMS[form], headers={"Content-Type": form}
    )
    assert again.json()["unchanged"] == 3
    assert (await service.api.services.ledger.audit()).clean


async def test_a_choice_is_replaced_and_withdrawn_and_a_number_is_none(service: Service):
    study = await poll(service)
    path = f"/v1/studies/{study}/contributions"
    alice = RECORDS[0]
    for status in (201, 200):
        assert (await service.call("POST", path, "contribute", json=alice)).status_code == status
    moved = {"value": "red", "epsilon": 1, "trust": "central"}
    assert (await service.call("PUT", f"{path}/alice", "contribute", json=moved)).status_code == 200
    assert await values(service) == [0]
    for value in (1, 0.5, "yellow", None, ["red"], ""):
        refused = await service.call("POST", path, "contribute", json={**alice, "value": value})
        assert_problem(refused, "invalid_request", 422, "value")
    report = {"subject": "lou", "report": 1, "epsilon": 1, "trust": "local"}
    assert_problem(
        await service.call("POST", path, "contribute", json=report),
        *("invalid_request", 422, "trust", "report", "value"),
    )
    assert (await service.call("DELETE", f"{path}/alice", "contribute")).status_code == 204
    assert await values(service) == [None]
    numbers = await service.study()
    text = await service.call("POST", f"/v1/studies/{numbers}/contributions", "contribute", json=alice)
    assert_problem(text, "invalid_request", 422, "value")


async def values(service: Service) -> list[int | None]:
    """What the database has."""
    connection = await asyncpg.connect(service.database_url)
    try:
        return [row["value"] for row in await connection.fetch("SELECT value FROM contribution")]
    finally:
        await connection.close()


@pytest.mark.parametrize("terms", [{}, ADD_REMOVE])
async def test_shares_have_one_price_labels_and_intervals(service: Service, terms: dict[str, Any]):
    study = await poll(service, default_share=0.5, **terms)
    await vote(service, study, {"red": 200, "green": 120, "1": 80})
    (planned,) = (await get(service, study, "plan", statistic="shares"))["estimators"]
    answer = await get(service, study, "statistics/shares")
    assert answer["statistic"] == answer["estimator"] == "shares"
    assert [one["choice"] for one in answer["choices"]] == PARTIES
    assert sum(one["share"] for one in answer["choices"]) == pytest.approx(1)
    for one in answer["choices"]:
        for name in ("interval", "population_interval", "simultaneous"):
            assert 0 <= one[name]["lower"] <= one["share"] <= one[name]["upper"] <= 1
        assert one["simultaneous"]["lower"] <= one["interval"]["lower"]
    for choice, share in (("red", 0.5), ("green", 0.3), ("none of them", 0)):
        (one,) = [one for one in answer["choices"] if one["choice"] == choice]
        assert abs(one["share"] - share) < 0.15, "ten standard deviations"
    assert answer["epsilon_max"] == planned["epsilon_max"] == 0.5
    assert await spent(service, study, "p7") == 0.5
    assert (await get(service, study, "statistics/shares"))["id"] == answer["id"]
    secret = bool(terms)
    assert ("people" in answer) == (not secret)
    assert ("noisy_count" in answer) == secret
    if secret:
        assert answer["least_epsilon"] == answer["most_epsilon"] == 1
        assert answer["assumption"] == "holds however privacy and values go together"
    else:
        assert "distributed as" in answer["assumption"] or "differ from the others'" in answer["assumption"]


async def test_public_choices_alone_are_counted_as_they_are(service: Service):
    study = await poll(service, trust=["public"])
    records = [
        {"subject": f"p{number}", "value": PARTIES[number % 3], "trust": "public"} for number in range(30)
    ]
    path = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", path, "contribute", json=records)).json()["created"] == 30
    answer = await get(service, study, "statistics/shares")
    assert [round(one["share"], 4) for one in answer["choices"]] == [0.3333, 0.3333, 0.3333, 0, 0]
    assert answer["epsilon_max"] == 0


async def test_local_people_report_a_choice_and_have_a_part_in_the_shares(service: Service):
    study = await poll(service, trust=["central", "local"], default_share=0.5)
    assert (await service.call("GET", f"/v1/studies/{study}", "analyse")).json()[
        "local_mechanism"
    ] == "choice"
    await vote(service, study, {"red": 30, "blue": 10})
    (central,) = (await get(service, study, "plan", statistic="shares"))["estimators"]
    assert central["one_report_moves"] is None
    device, bits = ChoiceRandomizer(5), Seeded(3)
    points, truth = choice_points(5), [0] * 120 + [4] * 80
    records = [
        {
            "subject": f"l{n}",
            "trust": "local",
            "epsilon": e,
            "report": device.report(points[t], round(e * MICRO), bits),
        }
        for n, t in enumerate(truth)
        for e in [(0.1, 4)[n % 2]]
    ]
    path = f"/v1/studies/{study}/contributions"
    for _ in range(2):
        sent = await service.call("POST", f"{path}/batch", "contribute", json=records)
        assert sent.json()["refused"] == 0, sent.text
    (both,) = (await get(service, study, "plan", statistic="shares"))["estimators"]
    assert both["predicted_error"] < central["predicted_error"]
    assert 0 < both["one_report_moves"] < 0.1
    answer = await get(service, study, "statistics/shares")
    assert (answer["people"], answer["people_left_out"], answer["left_out_because"]) == (240, 0, None)
    assert sum(one["share"] for one in answer["choices"]) == pytest.approx(1)
    for one, share in zip(answer["choices"], (150 / 240, 0, 10 / 240, 0, 80 / 240), strict=True):
        assert abs(one["share"] - share) < 7 * answer["predicted_error"]
    assert await spent(service, study, "l1") == 4, "spent when it arrived"
    admin = (await service.call("GET", f"/v1/releases/{answer['id']}", "admin")).json()
    assert len(admin["charges"]) == 1, "central people alone pay"
    gone = await service.call("DELETE", f"{path}/l1", "contribute")
    assert gone.status_code == 204
    question = {"statistic": "shares", "share": 0.5, "fresh": True}
    again = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert again.json()["people"] == 239
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize(
    ("report", "epsilon", "field"),
    [
        (0, 4, "report"),
        (3, 4, "report"),
        (32, 4, "report"),
        (32, 0.1, "report"),
        (-1, 0.1, "report"),
        (1.5, 4, "report"),
    ],
)
async def test_what_no_device_reports_is_refused(service: Service, report: float, epsilon: float, field: str):
    """At epsilon 4 of five choices a report is one of them, at 0.1 any set of them."""
    study = await poll(service, trust=["local"])
    path = f"/v1/studies/{study}/contributions"
    document = {"subject": "lou", "report": report, "epsilon": epsilon, "trust": "local"}
    refused = await service.call("POST", path, "contribute", json=document)
    assert_problem(refused, "invalid_request", 422, field)
    honest = {**document, "report": 16 if epsilon == 4 else 31}
    assert (await service.call("POST", path, "contribute", json=honest)).status_code == 201
    value = {"subject": "mia", "value": "red", "epsilon": epsilon, "trust": "local"}
    assert_problem(
        await service.call("POST", path, "contribute", json=value), "invalid_request", 422, "report", "value"
    )


async def test_the_predicted_error_over_http_is_the_closed_form(service: Service):
    """K = 5, n people of epsilon 1: sqrt(8 (K - 1) / K) / n a share, within 2 %."""
    study = await poll(service, default_share=1, tilt=0)
    await vote(service, study, {"red": 300, "blue": 200})
    (planned,) = (await get(service, study, "plan", statistic="shares"))["estimators"]
    assert planned["predicted_error"] == pytest.approx((32 / 5) ** 0.5 / 500, rel=0.02)
    assert planned["answers_left"] == 1


@pytest.mark.parametrize(
    "statistic", ["mean", "sum", "variance", "sd", "histogram", "distribution", "median", "describe"]
)
async def test_a_study_of_choices_has_shares_only(service: Service, statistic: str):
    study = await poll(service)
    for method, path, options in (
        ("GET", f"/v1/studies/{study}/statistics/{statistic}", {}),
        ("POST", f"/v1/studies/{study}/releases", {"json": {"statistic": statistic}}),
        ("GET", f"/v1/studies/{study}/plan", {"params": {"statistic": statistic}}),
    ):
        refused = await service.call(method, path, "analyse", **options)
        problem = assert_problem(refused, "invalid_request", 422, "statistic")
        assert "ask for its shares" in problem["errors"][0]["reason"]


async def test_what_has_no_shares_says_why(service: Service):
    numbers = await service.study()
    refused = await service.call("GET", f"/v1/studies/{numbers}/statistics/shares", "analyse")
    problem = assert_problem(refused, "invalid_request", 422, "statistic")
    assert "ask for a histogram" in problem["errors"][0]["reason"]
    study = await poll(service)
    path = f"/v1/studies/{study}/statistics/shares"
    for question in ({"bins": 3}, {"edges": "1,2"}, {"q": 0.5}, {"estimator": "adpm"}, {"where": "a:b"}):
        refused = await service.call("GET", path, "analyse", params=question)
        assert_problem(refused, "invalid_request", 422, *question)
    session = {"protocol": "quantile", "quantile": 0.5, "epsilon": 1, "participants": 10}
    started = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=session)
    assert_problem(started, "invalid_request", 422, "protocol")


@pytest.mark.parametrize("terms", [{}, ADD_REMOVE])
async def test_a_poll_with_gaussian_noise_costs_what_a_mean_costs(service: Service, terms: dict[str, Any]):
    """mu^2 of epsilon 10 at delta 1e-6; sigma of a share is about .004 and .003 then."""
    epsilons = {**terms, "epsilon": {"min": 10, "max": 10}}
    study = await poll(service, noise="gaussian", delta=1e-6, default_share=0.5, **epsilons)
    votes = {"red": 300, "green": 100, "1": 50}
    await vote(service, study, votes, epsilon=10)
    (planned,) = (await get(service, study, "plan", statistic="shares"))["estimators"]
    answer = await get(service, study, "statistics/shares")
    assert answer["epsilon_max"] == planned["epsilon_max"] == await spent(service, study, "p7")
    assert answer["mu2_max"] <= micro_mu2(10 * MICRO, 10**6) / 2e6
    assert [one["choice"] for one in answer["choices"]] == PARTIES
    assert sum(one["share"] for one in answer["choices"]) == pytest.approx(1)
    for one in answer["choices"]:
        assert abs(one["share"] - votes.get(one["choice"], 0) / 450) < 0.05
    assert (await service.api.services.ledger.audit()).clean


async def test_a_measure_of_choices_has_shares_with_gaussian_noise(service: Service):
    measures = {"party": {"choices": PARTIES}, "age": {"lower": 18, "upper": 98}}
    terms = {"noise": "gaussian", "delta": 1e-6, "epsilon": {"min": 10, "max": 10}}
    study = await service.study(lower=None, upper=None, trust=["central"], measures=measures, **terms)
    records = [
        {"subject": f"p{number}", "values": {"party": "red", "age": 40}, "epsilon": 10, "trust": "central"}
        for number in range(200)
    ]
    sent = await service.call("POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=records)
    assert sent.json()["created"] == 200, sent.text
    answer = await get(service, study, "statistics/shares", measure="party")
    assert answer["choices"][0]["share"] > 0.9
    assert (await get(service, study, "statistics/median", measure="age"))["mu2_max"] > 0
    assert (await service.api.services.ledger.audit()).clean
