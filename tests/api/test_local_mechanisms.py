"""Studies that name their local mechanism: the SDK randomizes for it, the service checks what it can."""

import pytest
from dither._randomizers import Randomizer

from tests.api.service import Service

MECHANISMS = ["laplace", "gaussian", "duchi", "piecewise", "hybrid"]
DELTA = 1e-6
EPSILON = 1_000_000


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_the_devices_reports_are_taken_and_answered(service: Service, mechanism: str) -> None:
    delta = DELTA if mechanism == "gaussian" else 0
    study = await service.study(trust=["local"], local_mechanism=mechanism, delta=delta)
    randomizer = Randomizer(mechanism, 1_000_000 if delta else 0)  # type: ignore[arg-type]
    for number in range(20):
        report = randomizer.report(2**29, EPSILON)
        body = {"subject": f"p{number}", "report": report, "epsilon": 1, "trust": "local"}
        response = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=body)
        assert response.status_code == 201, response.text
    answer = await service.call(
        "GET", f"/v1/studies/{study}/statistics/mean", "analyse", params={"estimator": "lm_only"}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["epsilon_max"] == 0


@pytest.mark.parametrize("mechanism", ["duchi", "piecewise", "hybrid"])
async def test_a_report_that_the_mechanism_cannot_make_is_refused(service: Service, mechanism: str) -> None:
    study = await service.study(trust=["local"], local_mechanism=mechanism)
    body = {"subject": "p", "report": 2**50, "epsilon": 1, "trust": "local"}
    response = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=body)
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == ["report"]
