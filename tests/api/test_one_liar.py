"""One device among 1,000 that follows no protocol, at epsilon 1, seen over HTTP."""

from typing import Any

import pytest
from dither.device.randomizers import randomizer

from app.core.grid import GRID_SIZE
from tests.api.service import Service

PEOPLE = 1_000
EPSILON = 1_000_000
MIDDLE = GRID_SIZE // 2


async def answers(
    service: Service, mechanism: str, reports: list[int]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the plan and the release say of a study from 0 to 1 with these reports."""
    study = await service.study(
        trust=["local"], local_mechanism=mechanism, lower=0, upper=1, relation="replace_one"
    )
    records = [
        {"subject": f"p{number}", "report": report, "epsilon": 1, "trust": "local"}
        for number, report in enumerate(reports)
    ]
    path = f"/v1/studies/{study}"
    sent = await service.call("POST", f"{path}/contributions/batch", "contribute", json=records)
    assert sent.json()["created"] == PEOPLE, sent.text
    plan = await service.call("GET", f"{path}/plan", "analyse", params={"estimator": "optimal"})
    release = await service.call("GET", f"{path}/statistics/mean", "analyse", params={"estimator": "optimal"})
    return plan.json()["estimators"][0], release.json()


async def moved(service: Service, mechanism: str) -> tuple[float, float, float]:
    """How far a liar whose value is in the middle moves the answer up and down, and what the plan says."""
    device = randomizer(mechanism)
    honest = [device.report(MIDDLE, EPSILON) for _ in range(PEOPLE - 1)]
    taken = device.range(EPSILON)
    plan, truth = await answers(service, mechanism, [*honest, MIDDLE])
    _, high = await answers(service, mechanism, [*honest, taken.upper])
    _, low = await answers(service, mechanism, [*honest, taken.lower])
    return high["estimate"] - truth["estimate"], truth["estimate"] - low["estimate"], plan["one_report_moves"]


@pytest.mark.long
@pytest.mark.parametrize(("mechanism", "most"), [("hybrid", 0.0021), ("optimal", 0.0015), ("laplace", 0.013)])
async def test_one_liar_among_a_thousand_moves_the_mean_by_little(
    service: Service, mechanism: str, most: float
) -> None:
    up, down, stated = await moved(service, mechanism)
    assert 0 < down <= most
    assert 0 < up <= most
    # The plan counts a liar whose value is at the other end: half a width of the range more.
    assert stated == pytest.approx(max(up, down) + 0.5 / PEOPLE, rel=0.05)
    assert max(up, down) < stated


@pytest.mark.long
async def test_control_reports_that_count_as_they_are_let_a_liar_move_it_far(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was before reports were winsorised."""
    monkeypatch.setattr("app.store.cohorts.report_reach", lambda randomizer, epsilon, reports: None)
    up, down, stated = await moved(service, "laplace")
    assert min(up, down) > 0.06 > 0.013
    assert stated > max(up, down)


async def test_a_plan_without_reports_says_nothing_of_liars(service: Service) -> None:
    study = await service.study(trust=["central"])
    await service.crowd(study, 20)
    plan = await service.call("GET", f"/v1/studies/{study}/plan", "analyse")
    assert {entry["one_report_moves"] for entry in plan.json()["estimators"]} == {None}
