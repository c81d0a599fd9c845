"""Local people in studies of measures: reports of some of them, over HTTP, and what they add up to."""

import json
from typing import Any

import numpy as np
import pytest
from dither.device.measures import reports
from dither.device.randomizers import randomizer

from tests.api.service import Service, assert_problem
from tests.api.test_measures import household, vectors
from tests.api.test_shapes import get, spent

NAMES = ("income", "age", "size")
THREE = {
    "income": {"lower": 0, "upper": 9000},
    "age": {"lower": 18, "upper": 98},
    "size": {"lower": 0, "upper": 9},
}
MICRO = 1_000_000
PLACES = (1 << 30, 1 << 29, 1 << 28)
"""Grid points of what people have: 9,000, 58 and 2.25."""


def record(subject: str, epsilon: int = 1, **fields: Any) -> dict[str, Any]:
    """What an honest device sends."""
    drawn = reports([randomizer("hybrid")] * 3, PLACES, epsilon * MICRO)
    sent = {NAMES[place]: report for place, report in drawn.items()}
    return {"subject": subject, "reports": sent, "epsilon": epsilon, "trust": "local", **fields}


async def study_of(service: Service, **terms: Any) -> str:
    return await household(service, measures=THREE, trust=["central", "local", "public"], **terms)


async def load(service: Service, study: str, records: list[dict[str, Any]]) -> None:
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == len(records), response.text


async def test_each_measure_is_answered_from_those_who_reported_it(service: Service):
    """Within six standard errors (a false alarm of 6e-9); each is reported by a third of those
    with epsilon 1, by two thirds with 5."""
    study = await study_of(service)
    people = [record(f"p{number}", 1 if number < 600 else 5) for number in range(1200)]
    await load(service, study, people)
    planned = await get(service, study, "plan", measure="age")
    total = 0
    for name, mean in (("income", 9000), ("age", 58), ("size", 2.25)):
        answer = await get(service, study, "statistics/mean", measure=name)
        reporters = sum(name in one["reports"] for one in people)
        total += reporters
        assert (answer["people"], answer["people_left_out"]) == (1200, 1200 - reporters)
        assert answer["left_out_because"] == "measure_not_reported"
        assert answer["epsilon_max"] == 0
        assert abs(answer["estimate"] - mean) < 6 * answer["standard_error"] + 1e-3 * mean
        width = THREE[name]["upper"] - THREE[name]["lower"]
        assert 0.01 * width < answer["standard_error"] < 0.08 * width
        if name == "age":
            assert planned["estimators"][0]["predicted_error"] == answer["predicted_error"], "and unfolded"
            sums = await get(service, study, "statistics/sum", measure=name)
            assert sums["estimate"] == pytest.approx(1200 * answer["estimate"])
            later = await get(service, study, "plan", measure=name)
            assert later["estimators"][0]["predicted_error"] == answer["predicted_error"]
    assert total == 600 + 2 * 600
    assert (await spent(service, study, "p1"), await spent(service, study, "p1199")) == (1, 5)
    assert (await service.api.services.ledger.audit()).clean


async def test_central_and_local_people_answer_together_and_by_label(service: Service):
    study = await study_of(service, attributes={"region": ["north", "south"]}, default_share=0.25)
    where = [{"attributes": {"region": label}} for label in ("north", "south")]
    await load(service, study, [record(f"l{number}", 5, **where[number % 2]) for number in range(200)])
    values = {"income": 9000, "age": 58, "size": 2.25}
    central = {"values": values, "epsilon": 5, "trust": "central"}
    await load(service, study, [{"subject": f"c{number}", **central, **where[0]} for number in range(50)])
    plan = await get(service, study, "plan", measure="age", estimator="optimal")
    answer = await get(service, study, "statistics/mean", measure="age", estimator="optimal")
    assert answer["epsilon_max"] == plan["estimators"][0]["epsilon_max"] == 1.25
    assert answer["people"] == 250
    assert 30 < answer["people_left_out"] < 110
    assert answer["left_out_because"] == "measure_not_reported"
    # Laplace noise of fifty people beside reports: twelve deviations are a false alarm of 4e-8 at most.
    assert abs(answer["estimate"] - 58) < 12 * answer["standard_error"]
    grouped = await get(service, study, "statistics/mean", measure="size", by="region", estimator="optimal")
    assert sum(group["people_left_out"] for group in grouped["groups"]) == grouped["people_left_out"] > 0
    for group in grouped["groups"]:
        assert abs(group["estimate"] - 2.25) < 12 * group["standard_error"]
    for shape in ("histogram", "describe"):
        found = await get(service, study, f"statistics/{shape}", measure="age")
        assert (found["people"], found["people_left_out"]) == (250, 200)
        assert found["left_out_because"] == "local_reports_not_used"
    # Those who cannot pay any more are another reason, beside the first.
    for share in (0.9, 1):
        question = {
            "measure": "age",
            "estimator": "optimal",
            "share": share,
            "fresh": True,
            "allow_worse": True,
        }
        last = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert last.status_code == 201, last.text
    assert last.json()["left_out_because"] == "budget_exhausted measure_not_reported"
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.long
async def test_intervals_cover_the_mean_of_all_and_not_where_values_choose_what_is_reported(service: Service):
    """54 answers, each missed with a probability of at most 5 %: more than 13 in 3e-7 of all runs."""
    rng, device, names = np.random.default_rng(11), randomizer("hybrid"), list(THREE)
    widths = {name: one["upper"] - one["lower"] for name, one in THREE.items()}
    missed = {True: 0, False: 0}
    for number in range(24):
        honest, values = number % 4 > 0, rng.beta(2, 3, size=(210, 3))
        study = await study_of(service, slug=f"household-{number}", tilt=0)
        people = []
        for person, own in enumerate(values):
            fields: dict[str, Any] = {"subject": f"p{number}-{person}"}
            if person < 10:
                named = {
                    name: THREE[name]["lower"] + own[place] * widths[name] for place, name in enumerate(names)
                }
                fields |= {"values": named, "epsilon": 0.5, "trust": "central"}
            else:
                points = [round(one * (1 << 30)) for one in own]
                drawn = reports([device] * 3, points, 4_900_000)
                if not honest:
                    largest = int(own.argmax())
                    drawn = {largest: device.report(points[largest], 4_900_000)}
                sent = {names[place]: report for place, report in drawn.items()}
                fields |= {"reports": sent, "epsilon": 4.9, "trust": "local"}
            people.append(fields)
        await load(service, study, people)
        for place, name in enumerate(names):
            found = await get(service, study, "statistics/mean", measure=name, estimator="optimal")
            truth = THREE[name]["lower"] + values[:, place].mean() * widths[name]
            missed[honest] += not found["interval"]["lower"] <= truth <= found["interval"]["upper"]
    assert missed[True] <= 13
    assert missed[False] > 10


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"reports": None}, {"reports": "must be an object"}),
        ({"reports": {}}, {"reports": "a device reports 1 of 3 measures with this epsilon"}),
        (
            {"reports": {"age": 0, "size": 0}},
            {"reports": "a device reports 1 of 3 measures with this epsilon"},
        ),
        (
            {"epsilon": 5, "reports": {"age": 0}},
            {"reports": "a device reports 2 of 3 measures with this epsilon"},
        ),
        (
            {"reports": {"age": 1 << 40}},
            {"reports.age": "not a report of this study's mechanism with this epsilon"},
        ),
        ({"reports": {"age": 0.5}}, {"reports.age": "must be an integer on the study's grid"}),
        ({"reports": {"age": "0"}}, {"reports.age": "must be a number"}),
        ({"reports": {"weight": 0}}, {"reports.weight": "unknown measure"}),
        ({"values": {"age": 20}}, {"values": "not for trust local"}),
        ({"report": 0}, {"report": "this study asks for reports"}),
        ({"trust": "central"}, {"reports": "not for trust central", "values": "missing"}),
    ],
)
async def test_what_no_device_sends_is_refused(
    service: Service, fields: dict[str, Any], errors: dict[str, str]
):
    study = await study_of(service)
    sent = {"subject": "p", "reports": {"age": 1 << 29}, "epsilon": 1, "trust": "local", **fields}
    path = f"/v1/studies/{study}/contributions"
    refused = await service.call("POST", path, "contribute", json=sent)
    problem = assert_problem(refused, "invalid_request", 422, *errors)
    assert {one["field"]: one["reason"] for one in problem["errors"]} == errors
    batch = await service.call("POST", f"{path}/batch", "contribute", json=[sent])
    assert batch.json()["results"][0]["errors"] == problem["errors"]
    assert await vectors(service) == []


async def test_a_range_belongs_to_the_part_that_each_report_has(service: Service):
    """What epsilon 5 / 2 explains is taken, what 5 does not need is no report of a device at 5."""
    study = await study_of(service)
    path, device = f"/v1/studies/{study}/contributions", randomizer("hybrid")
    far = device.range(2_500_000).upper
    assert far not in device.range(5 * MICRO)
    for subject, report, status in (("p", far, 201), ("q", far + 1, 422)):
        sent = {"subject": subject, "reports": {"age": report, "size": 0}, "epsilon": 5, "trust": "local"}
        assert (await service.call("POST", path, "contribute", json=sent)).status_code == status


@pytest.mark.parametrize("form", ["application/json", "application/x-ndjson", "text/csv"])
async def test_reports_come_in_batches(service: Service, form: str):
    study = await study_of(service)
    people = [record("ada", 5), record("bob", 10)]
    cells = [[str(one["reports"].get(name, "")) for name in NAMES] for one in people]
    bodies = {
        "application/json": json.dumps(people),
        "application/x-ndjson": "\n".join(map(json.dumps, people)),
        "text/csv": f"subject,{','.join(NAMES)},epsilon,trust\nada,{','.join(cells[0])},5,LOCAL\n"
        f"bob,{','.join(cells[1])},10,local\n",
    }
    path = f"/v1/studies/{study}/contributions/batch"
    headers = {"Content-Type": form}
    sent = await service.call("POST", path, "contribute", content=bodies[form], headers=headers)
    assert sent.json()["created"] == 2, sent.text
    again = await service.call("POST", path, "contribute", content=bodies[form], headers=headers)
    assert again.json()["unchanged"] == 2
    expected = [[one["reports"].get(name) for name in NAMES] for one in people]
    assert sorted(map(str, await vectors(service))) == sorted(map(str, expected))
    assert (await service.api.services.ledger.audit()).clean


async def test_a_person_reports_once(service: Service):
    """A new set would show more than its epsilon pays for."""
    study = await study_of(service)
    path, first = f"/v1/studies/{study}/contributions", record("p")
    assert (await service.call("POST", path, "contribute", json=first)).status_code == 201
    assert (await service.call("POST", path, "contribute", json=first)).status_code == 200
    other = {**record("p", 5)}
    assert_problem(await service.call("POST", path, "contribute", json=other), "contribution_exists", 409)
    del other["subject"]
    assert_problem(
        await service.call("PUT", f"{path}/p", "contribute", json=other), "report_after_spending", 409
    )
    assert (await service.call("DELETE", f"{path}/p", "contribute")).status_code == 204
    gone = await service.call("POST", path, "contribute", json={**other, "subject": "p"})
    assert_problem(gone, "report_after_spending", 409)
    assert await spent(service, study, "p") == 1
    assert await vectors(service) == [None]
    assert (await service.api.services.ledger.audit()).clean
