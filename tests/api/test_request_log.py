"""The request log: a line a request, under the id that the client gets too, and without a person in it."""

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import structlog

from app.logging import configure_logging
from app.store.database import Database
from tests.api.service import VALUE, Service, assert_problem

ID = re.compile("[0-9a-f]{32}")

Lines = list[dict[str, Any]]


@pytest.fixture
def log(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Reads the lines that were written since the last look."""
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", stream)
        configure_logging("info")

    def read() -> Lines:
        lines = stream.getvalue().splitlines()
        stream.seek(0)
        stream.truncate()
        return [json.loads(line) for line in lines]

    yield read
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def requests(lines: Lines) -> Lines:
    return [line for line in lines if line["event"] == "request"]


@contextmanager
def no_database(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every connection is refused, as by a server that is down."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("connection refused")

    with monkeypatch.context() as patch:
        patch.setattr("sqlalchemy.ext.asyncio.AsyncEngine.connect", refuse)
        patch.setattr("sqlalchemy.ext.asyncio.AsyncEngine.raw_connection", refuse)
        yield


async def test_a_line_says_which_route_took_how_long_for_which_token(service: Service, log: Any) -> None:
    study = await service.study()
    made = await service.call(
        "POST", "/v1/admin/tokens", "admin", json={"name": "app", "role": "contribute", "studies": [study]}
    )
    log()
    response = await service.call(
        "POST", f"/v1/studies/{study}/contributions", made.json()["token"], json=VALUE
    )
    [line] = log()
    assert line.pop("timestamp")
    assert 0 < line.pop("seconds") < 60
    assert line == {
        "event": "request",
        "level": "info",
        "method": "POST",
        "route": "/v1/studies/{study}/contributions",
        "status": 201,
        "token": made.json()["id"],
        "request_id": response.headers["x-request-id"],
    }
    assert ID.fullmatch(line["request_id"])


async def test_a_503_is_found_by_the_id_that_its_client_saw(
    service: Service, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = await service.study()
    path = f"/v1/studies/{study}/statistics/mean"
    await service.crowd(study, 10)
    await service.call("GET", path, "analyse")
    with no_database(monkeypatch):
        refused = await service.call("GET", path, "analyse")
    document, request_id = refused.json(), refused.headers["x-request-id"]
    assert_problem(refused, "unavailable", 503)
    await service.call("GET", path, "analyse")
    found = [line for line in log() if line["request_id"] == request_id]
    [line] = requests(found)
    assert (line["status"], line["code"], line["level"]) == (503, "unavailable", "warning")
    assert line["route"] == "/v1/studies/{study}/statistics/{statistic}"
    assert line["detail"] == document["detail"]


async def test_a_slow_request_is_found_by_its_minute_and_its_id(
    service: Service, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = await service.study()
    await service.crowd(study, 10)
    read, clock = Database.run_tx, [0.0]
    monkeypatch.setattr("app.web.limits_middleware.time.perf_counter", lambda: clock[0])

    async def slow(self: Database, name: str, *arguments: Any, **options: Any) -> Any:
        clock[0] += 7 if name == "release.fold" else 0.001
        return await read(self, name, *arguments, **options)

    monkeypatch.setattr(Database, "run_tx", slow)
    log()
    asked = [await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse") for _ in range(5)]
    [line] = [line for line in requests(log()) if line["seconds"] > 5]
    assert line["request_id"] == asked[0].headers["x-request-id"]
    assert line["timestamp"].endswith("Z")
    assert set(line["steps"]) == {"seal", "fold", "plan", "draw", "publish"}
    assert line["steps"]["fold"] >= 7 > sum(line["steps"].values()) - line["steps"]["fold"]


async def test_an_internal_fault_has_one_id_in_all_its_lines(
    service: Service, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("the value was 42.5")

    monkeypatch.setattr(type(service.api.services.studies), "page", broken)
    response = await service.call("GET", "/v1/studies", "analyse")
    assert_problem(response, "internal_fault", 500)
    lines = log()
    assert {line["event"] for line in lines} == {"request.failed", "request"}
    assert [line["code"] for line in requests(lines)] == ["internal_fault"]
    assert {line["request_id"] for line in lines} == {response.headers["x-request-id"]}
    assert "42.5" not in json.dumps(lines)


@pytest.mark.parametrize("given", ["4bf92f3577b34da6a3ce929d0e0e4736", "order-7", "a" * 64])
async def test_a_sane_id_of_the_client_is_kept(service: Service, log: Any, given: str) -> None:
    response = await service.call("GET", "/v1/studies", headers={"X-Request-Id": given})
    assert_problem(response, "unauthenticated", 401)
    assert response.headers["x-request-id"] == given
    assert [line["request_id"] for line in requests(log())] == [given]


@pytest.mark.parametrize("given", ["", "a" * 65, "ann@example.com", "a b", '"}\n{"', "\xe4", "-x"])
async def test_another_one_is_replaced(service: Service, log: Any, given: str) -> None:
    response = await service.call("GET", "/v1/studies", headers=[("X-Request-Id", given.encode("latin-1"))])
    assert ID.fullmatch(response.headers["x-request-id"])
    assert [line["request_id"] for line in requests(log())] == [response.headers["x-request-id"]]


async def test_no_line_names_a_person(service: Service, log: Any) -> None:
    study = await service.study()
    await service.contribute(study, "homer.simpson")
    person = "homer.simpson"
    log()
    for method, path, role in (
        ("GET", f"/v1/subjects/{person}/budget", "contribute"),
        ("GET", f"/v1/subjects/{person}/budget?person={person}", "contribute"),
        ("DELETE", f"/v1/studies/{study}/contributions/{person}", "contribute"),
        ("GET", f"/nowhere/{person}", None),
        ("GET", f"/dashboard/subjects?id={person}", None),
        ("BREW", f"/v1/subjects/{person}/budget", None),
        (person.upper(), "/v1/studies", None),
    ):
        await service.call(method, path, role)
    lines = requests(log())
    assert len(lines) == 7
    assert "simpson" not in json.dumps(lines).lower()
    assert {line["route"] for line in lines} == {
        "/dashboard/{path}",
        "/v1/subjects/{subject}/budget",
        "/v1/studies/{study}/contributions/{subject}",
        "/v1/studies",
        None,
    }
    text = (await service.call("GET", "/metrics", "admin")).text
    assert "simpson" not in text.lower()


async def test_probes_are_quiet_until_they_fail(
    service: Service, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("/health/live", "/health/ready", "/metrics"):
        assert (await service.call("GET", path)).headers["x-request-id"]
    assert log() == []
    with no_database(monkeypatch):
        await service.call("GET", "/health/ready")
    assert [line["status"] for line in requests(log())] == [503]


async def test_pages_have_lines_too(service: Service, log: Any) -> None:
    login: httpx.Response = await service.client.get("/dashboard/studies")
    [line] = requests(log())
    assert (line["route"], line["status"]) == ("/dashboard/studies", 303)
    assert line["request_id"] == login.headers["x-request-id"]
