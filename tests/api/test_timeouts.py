"""How long a request may take: bodies that dribble in are cut off, answers that do not come are given up."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from app.web import limits_middleware
from tests.api.service import VALUE, Service, assert_problem, open_service
from tests.conftest import LiveServer
from tests.system.load import make_study

TIMEOUT = 0.4


@pytest.fixture
async def service(database_url: str) -> AsyncIterator[Service]:
    async with open_service(database_url, request_timeout_seconds=TIMEOUT) as service:
        yield service


async def dribble(parts: list[bytes], seconds: float) -> AsyncIterator[bytes]:
    for part in parts:
        await asyncio.sleep(seconds)
        yield part


async def send_slowly(
    service: Service, path: str, document: object, *, size: int, seconds: float
) -> httpx.Response:
    """Contribute a document in parts of a size [bytes], one after every so many seconds."""
    text = json.dumps(document).encode()
    return await service.call(
        "POST",
        path,
        "contribute",
        content=dribble([text[start : start + size] for start in range(0, len(text), size)], seconds),
        headers={"Content-Type": "application/json"},
    )


@pytest.mark.parametrize("path", ["", "/batch"])
async def test_a_body_that_dribbles_in_is_cut_off(service: Service, path: str) -> None:
    study = await service.study()
    before = await service.rows()
    document: object = [VALUE] if path else VALUE
    response = await send_slowly(
        service, f"/v1/studies/{study}/contributions{path}", document, size=10, seconds=TIMEOUT / 5
    )
    assert_problem(response, "request_timeout", 408)
    assert response.headers["connection"] == "close"
    assert await service.rows() == before


async def test_a_body_that_comes_in_time_is_taken(service: Service) -> None:
    study = await service.study()
    response = await send_slowly(
        service, f"/v1/studies/{study}/contributions", VALUE, size=40, seconds=TIMEOUT / 10
    )
    assert response.status_code == 201


async def test_a_long_body_has_longer(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_middleware, "SLOWEST_BYTES_PER_SECOND", 100)
    study = await service.study()
    people = [{**VALUE, "subject": f"p{number}"} for number in range(20)]
    response = await send_slowly(
        service, f"/v1/studies/{study}/contributions/batch", people, size=300, seconds=TIMEOUT / 3
    )
    assert response.json()["created"] == 20


async def test_an_answer_that_does_not_come_is_given_up(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(60)

    study = await service.study()
    monkeypatch.setattr(type(service.api.services.releases), "plan", endless)
    started = time.monotonic()
    response = await service.call("GET", f"/v1/studies/{study}/plan", "analyse")
    assert_problem(response, "unavailable", 503)
    assert TIMEOUT <= time.monotonic() - started < 10
    assert (await service.call("GET", f"/v1/studies/{study}", "analyse")).status_code == 200


async def test_an_answer_that_does_not_come_is_given_up_after_its_document_too(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One timer is for both: what has arrived does not stop it."""

    async def endless(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(60)

    study = await service.study()
    monkeypatch.setattr(type(service.api.services.contributions), "contribute", endless)
    started = time.monotonic()
    response = await send_slowly(
        service, f"/v1/studies/{study}/contributions", VALUE, size=40, seconds=TIMEOUT / 10
    )
    assert_problem(response, "unavailable", 503)
    assert TIMEOUT <= time.monotonic() - started < 10


@pytest.mark.system
def test_a_dribbling_client_loses_its_connection(live_server: LiveServer) -> None:
    """On a socket: the problem is sent and the connection closed, whatever else would have come."""
    service = live_server(env={"DITHER_REQUEST_TIMEOUT_SECONDS": "0.5"})
    make_study(service, "age")
    token = service.create_token("contribute")
    head = (
        "POST /v1/studies/age/contributions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: 1000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", service.processes[0].port), timeout=20) as client:
        client.sendall(head.encode() + b'{"subject"')
        answer = b""
        while part := client.recv(4096):
            answer += part
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer.lower()
