"""Studies that name their local mechanism: the SDK randomizes for it, the service checks what it can."""

import pytest
from dither.device.randomizers import randomizer

from app.core.study import LocalMechanism
from tests.api.service import Service, assert_problem
from tests.support.reports import report_range

MECHANISMS = ["laplace", "gaussian", "duchi", "piecewise", "hybrid", "optimal"]
DELTA = 1e-6
EPSILON = 1_000_000


def noise_of(mechanism: str) -> dict[str, object]:
    """The noise of a study that takes these reports."""
    return {"noise": "gaussian", "delta": DELTA} if mechanism == "gaussian" else {}


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_the_devices_reports_are_taken_and_answered(service: Service, mechanism: str) -> None:
    delta = DELTA if mechanism == "gaussian" else 0
    study = await service.study(trust=["local"], local_mechanism=mechanism, **noise_of(mechanism))
    device = randomizer(mechanism, 1_000_000 if delta else 0)
    for number in range(20):
        report = device.report(2**29, EPSILON)
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
    """A Gaussian one needs the whole offer, as a bounded one does; Laplace noise needs the rest."""
    delta = DELTA if mechanism == "gaussian" else 0
    study = await service.study(trust=["central", "local"], local_mechanism=mechanism, **noise_of(mechanism))
    path = f"/v1/studies/{study}/contributions"
    device = randomizer(mechanism, 1_000_000 if delta else 0)
    await service.crowd(study, 40)
    report = {"subject": "p", "report": device.report(2**29, EPSILON), "epsilon": 1, "trust": "local"}
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
    again = {"report": device.report(2**29, 2 * EPSILON), "epsilon": 2, "trust": "local"}
    if before == "withdrawn":
        second = await service.call("POST", path, "contribute", json={"subject": "p", **again})
    else:
        second = await service.call("PUT", f"{path}/p", "contribute", json=again)
    if mechanism == "laplace":
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


async def send(service: Service, study: str, record: dict[str, object], way: str) -> object:
    """What becomes of a record by itself or in a batch: "created", or the fields that are to blame."""
    path, subject = f"/v1/studies/{study}/contributions", record["subject"]
    if way == "batch":
        response = await service.call("POST", f"{path}/batch", "contribute", json=[record])
        [document] = response.json()["results"]
    elif way == "replace":
        public = {"subject": subject, "value": 1, "trust": "public"}
        assert (await service.call("POST", path, "contribute", json=public)).status_code == 201
        fields = {name: field for name, field in record.items() if name != "subject"}
        response = await service.call("PUT", f"{path}/{subject}", "contribute", json=fields)
        document = response.json()
    else:
        response = await service.call("POST", path, "contribute", json=record)
        document = response.json()
    if "code" not in document:
        return "created"
    assert document["code"] == "invalid_request", document
    return [error["field"] for error in document["errors"]]


@pytest.mark.parametrize("way", ["single", "batch", "replace"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_report_that_no_device_makes_is_refused(service: Service, mechanism: str, way: str) -> None:
    gaussian = mechanism == "gaussian"
    delta = 1_000_000 if gaussian else 0
    study = await service.study(trust=["local", "public"], local_mechanism=mechanism, **noise_of(mechanism))
    possible = report_range(LocalMechanism(mechanism), EPSILON, delta)
    for number, (report, expected) in enumerate(
        [
            (possible.upper, "created"),
            (possible.upper + 1, ["report"]),
            (possible.lower - 1, ["report"]),
            (2**62, ["report"]),
            (-(2**62), ["report"]),
        ]
    ):
        record = {"subject": f"p{number}", "report": report, "epsilon": 1, "trust": "local"}
        assert await send(service, study, record, way) == expected


@pytest.mark.parametrize("way", ["single", "batch"])
async def test_a_report_is_as_far_out_as_what_its_owner_has_left_explains(service: Service, way: str) -> None:
    study = await service.study(trust=["local"], local_mechanism="laplace")
    first = {"subject": "p", "report": 2**29, "epsilon": 1.9, "trust": "local"}
    assert await send(service, study, first, way) == "created"
    response = await service.call("DELETE", f"/v1/studies/{study}/contributions/p", "contribute")
    assert response.status_code == 204
    drawn = report_range(LocalMechanism.LAPLACE, EPSILON // 10)
    second = {"subject": "p", "report": drawn.upper + 1, "epsilon": 2, "trust": "local"}
    assert await send(service, study, second, way) == ["report"]
    second["report"] = drawn.upper
    assert await send(service, study, second | {"subject": "q"}, way) == ["report"]
    assert await send(service, study, second, way) == "created"


@pytest.mark.parametrize("mechanism", ["duchi", "piecewise", "hybrid", "optimal"])
@pytest.mark.parametrize("way", ["single", "batch"])
async def test_a_bounded_report_stays_the_only_one_also_in_a_batch(
    service: Service, mechanism: str, way: str
) -> None:
    study = await service.study(trust=["local"], local_mechanism=mechanism)
    path, device = f"/v1/studies/{study}/contributions", randomizer(mechanism)
    first = {"subject": "p", "report": device.report(2**29, EPSILON), "epsilon": 1, "trust": "local"}
    assert (await service.call("POST", f"{path}/batch", "contribute", json=[first])).json()["created"] == 1
    assert (await service.call("DELETE", f"{path}/p", "contribute")).status_code == 204
    again = first | {"report": device.report(2**29, 2 * EPSILON), "epsilon": 2}
    if way == "batch":
        response = await service.call("POST", f"{path}/batch", "contribute", json=[again])
        [result] = response.json()["results"]
        assert (result["status"], result["code"], result["row"]) == ("refused", "report_after_spending", 1)
        assert [error["field"] for error in result["errors"]] == ["epsilon"]
    else:
        response = await service.call("POST", path, "contribute", json=again)
        assert_problem(response, "report_after_spending", 409)


@pytest.mark.parametrize(
    ("given", "mechanism"),
    [
        ({}, "hybrid"),
        ({"noise": "gaussian", "delta": DELTA}, "gaussian"),
        ({"dimension": 2}, "laplace"),
        ({"dimension": 2, "local_mechanism": "laplace"}, "laplace"),
    ],
)
async def test_a_study_takes_hybrid_reports_unless_it_says_otherwise_or_is_of_vectors(
    service: Service, given: dict[str, object], mechanism: str
) -> None:
    study = await service.study(trust=["local"], **given)
    described = (await service.call("GET", f"/v1/studies/{study}", "analyse")).json()
    assert described["local_mechanism"] == mechanism


@pytest.mark.parametrize(
    "given", [{"local_mechanism": "hybrid", "dimension": 2}, {"local_mechanism": "gaussian"}]
)
async def test_a_mechanism_that_cannot_be_is_refused_by_name(
    service: Service, given: dict[str, object]
) -> None:
    document = {"slug": "impossible", "lower": 0, "upper": 1, "trust": ["local"], **given}
    response = await service.call("POST", "/v1/studies", "admin", json=document)
    assert_problem(response, "invalid_request", 422, "local_mechanism")
