"""Studies that name their local mechanism: the SDK randomizes for it, the service checks what it can."""

import pytest
from dither._randomizers import Randomizer

from tests.api.service import Service, assert_problem

MECHANISMS = ["laplace", "gaussian", "duchi", "piecewise", "hybrid"]
DELTA = 1e-6
EPSILON = 1_000_000


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_the_devices_reports_are_taken_and_answered(service: Service, mechanism: str) -> None:
    delta = DELTA if mechanism == "gaussian" else 0
    study = await service.study(trust=["local"], local_mechanism=mechanism, delta=delta)
    randomizer = Randomizer(mechanism, 1_000_000 if delta else 0)  # type: ignore[arg-type]  # one of them
    for number in range(20):
        report = randomizer.report(2**29, EPSILON)
        body = {"subject": f"p{number}", "report": report, "epsilon": 1, "trust": "local"}
        response = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=body)
        assert response.status_code == 201, response.text
    answer = await service.call(
        "GET", f"/v1/studies/{study}/statistics/mean", "analyse", params={"estimator": "optimal"}
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["epsilon_max"] == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("before", ["local", "withdrawn", "central"])
async def test_a_report_that_needs_everything_is_refused_where_something_is_gone(
    service: Service, mechanism: str, before: str
) -> None:
    """A Gaussian one needs the whole delta, a bounded one the whole epsilon; Laplace noise needs the rest.

    The control is the answer: it failed on a second Gaussian report, which had no delta left to be made of.
    """
    delta = DELTA if mechanism == "gaussian" else 0
    study = await service.study(trust=["central", "local"], local_mechanism=mechanism, delta=delta)
    path = f"/v1/studies/{study}/contributions"
    randomizer = Randomizer(mechanism, 1_000_000 if delta else 0)  # type: ignore[arg-type]  # one of them
    await service.crowd(study, 40)
    report = {"subject": "p", "report": randomizer.report(2**29, EPSILON), "epsilon": 1, "trust": "local"}
    value = {"subject": "p", "value": 50, "epsilon": 1, "trust": "central"}
    first = await service.call("POST", path, "contribute", json=value if before == "central" else report)
    assert first.status_code == 201
    if before == "central":
        question = {"estimator": "kvh", "share": 1}
        spent = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
        assert spent.status_code == 201
    if before == "withdrawn":
        assert (await service.call("DELETE", f"{path}/p", "contribute")).status_code == 204
    rows = await service.rows()
    again = {"report": randomizer.report(2**29, 2 * EPSILON), "epsilon": 2, "trust": "local"}
    if before == "withdrawn":
        second = await service.call("POST", path, "contribute", json={"subject": "p", **again})
    else:
        second = await service.call("PUT", f"{path}/p", "contribute", json=again)
    if mechanism == "laplace" or (mechanism == "gaussian" and before == "central"):
        assert second.status_code in (200, 201), second.text
    else:
        assert_problem(second, "report_after_spending", 409)
        assert await service.rows() == rows
    if before == "local":
        unchanged = await service.call("POST", path, "contribute", json=report)
        assert unchanged.status_code == (409 if mechanism == "laplace" else 200)
    for asked in ("plan", "statistics/mean"):
        answer = await service.call("GET", f"/v1/studies/{study}/{asked}?share=0.01", "analyse")
        assert answer.status_code in (200, 409), answer.text


@pytest.mark.parametrize("mechanism", ["duchi", "piecewise", "hybrid"])
async def test_a_report_that_the_mechanism_cannot_make_is_refused(service: Service, mechanism: str) -> None:
    study = await service.study(trust=["local"], local_mechanism=mechanism)
    body = {"subject": "p", "report": 2**50, "epsilon": 1, "trust": "local"}
    response = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=body)
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == ["report"]
