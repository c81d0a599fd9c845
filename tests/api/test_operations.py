"""Health, metrics, and the outermost layer."""

import asyncio
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import make_url
from starlette.requests import ClientDisconnect
from structlog.testing import capture_logs

from app.core.errors import InternalFault, SchemaMismatch
from app.core.question import FIELDS
from app.main import create_app
from app.settings import Settings, SettingsError
from app.web import reference
from app.web.limits_middleware import BrokenResponse, LimitsMiddleware
from app.web.metrics import Metrics
from tests.api.service import SUBJECT_KEY, VALUE, Service, assert_problem, open_service
from tests.support.databases import DISCONNECT_OTHERS, scratch_directory


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def test_a_running_service_lives_and_is_ready(service: Service) -> None:
    assert (await service.call("GET", "/health/live")).json() == {"status": "live"}
    assert (await service.call("GET", "/health/ready")).json() == {"status": "ready"}


async def test_a_service_says_what_it_has_to_programs_that_read(service: Service) -> None:
    listed = await service.call("GET", "/llms.txt")
    links = re.findall(r"^- \[.+\]\((.+)\): .+\.$", listed.text, re.MULTILINE)
    assert links == ["/llms-full.txt", "/openapi.json"]
    whole, document = [await service.call("GET", link) for link in links]
    assert {answer.headers["content-type"] for answer in (listed, whole)} == {"text/plain; charset=utf-8"}
    described = {
        f"### `{method.upper()} {path}`"
        for path, operations in document.json()["paths"].items()
        for method in operations
    }
    assert described == set(re.findall(r"^### .+$", whole.text, re.MULTILINE))
    assert all(f"| `{field}` |" in whole.text for field in FIELDS)
    assert "](" not in whole.text, "no page that a service has not"


async def test_the_reference_is_written_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await service.call("GET", "/llms-full.txt")
    monkeypatch.delattr(reference, "whole")
    assert (await service.call("GET", "/llms-full.txt")).text == first.text


async def test_a_service_on_another_schema_lives_and_is_not_ready(service: Service) -> None:
    await execute(service.database_url, "UPDATE alembic_version SET version_num = version_num || 'x'")
    try:
        assert (await service.call("GET", "/health/live")).status_code == 200
        assert_problem(await service.call("GET", "/health/ready"), "unavailable", 503)
    finally:
        await execute(
            service.database_url, "UPDATE alembic_version SET version_num = rtrim(version_num, 'x')"
        )
    assert (await service.call("GET", "/health/ready")).status_code == 200


@pytest.mark.parametrize("level", ["DATABASE", "ROLE"])
async def test_a_service_whose_session_may_lose_commits_does_not_start_and_is_not_ready(
    database_url: str, level: str
) -> None:
    url = make_url(database_url)
    name = url.database if level == "DATABASE" else f"{url.username} IN DATABASE {url.database}"
    async with open_service(database_url) as service:
        assert (await service.call("GET", "/health/ready")).status_code == 200
        await execute(database_url, f"ALTER {level} {name} SET synchronous_commit = off")
        try:
            await execute(database_url, DISCONNECT_OTHERS)
            for _ in range(2):  # the first one finds its connection broken
                refused = await service.call("GET", "/health/ready")
            problem = assert_problem(refused, "unavailable", 503)
            assert "synchronous_commit = off" in problem["detail"]
            with pytest.raises(SchemaMismatch, match="synchronous_commit = off"):
                async with open_service(database_url):
                    pass
            async with open_service(database_url, allow_unsafe_database=True) as allowed:
                assert (await allowed.call("GET", "/health/ready")).status_code == 200
        finally:
            await execute(database_url, f"ALTER {level} {name} RESET synchronous_commit")


async def test_a_service_without_its_database_lives_and_is_not_ready(database_url: str) -> None:
    with scratch_directory() as directory:
        detour = Detour(database_url, directory)
        await detour.open()
        async with open_service(detour.url) as service:
            assert (await service.call("GET", "/health/ready")).status_code == 200
            await detour.close()
            assert (await service.call("GET", "/health/live")).status_code == 200
            assert_problem(await service.call("GET", "/health/ready"), "unavailable", 503)
            response = await service.call("GET", "/v1/studies", "analyse")
            assert_problem(response, "unavailable", 503)
            assert response.headers["retry-after"] == "1"
            await detour.open()
            assert (await service.call("GET", "/health/ready")).status_code == 200
            assert (await service.call("GET", "/v1/studies", "analyse")).status_code == 200
        await detour.close()


class Detour:
    """A way to the database that can be cut."""

    def __init__(self, url: str, directory: Path) -> None:
        target = make_url(url)
        self._target = Path(str(target.query["host"])) / ".s.PGSQL.5432"
        self._socket = directory / ".s.PGSQL.5432"
        query = {"host": str(directory), "port": "5432"}
        self.url = target.set(query=query).render_as_string(hide_password=False)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._forward, self._socket)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in self._writers:
                writer.transport.abort()
            self._socket.unlink(missing_ok=True)
            self._server = None
            await asyncio.sleep(0.05)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_unix_connection(self._target)
        ends = {writer, far_writer}
        self._writers |= ends
        await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        self._writers -= ends

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


async def test_a_service_does_not_start_on_a_schema_it_does_not_know(empty_database_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="no schema yet"):
        async with open_service(empty_database_url):
            pass


async def test_a_service_does_not_start_under_another_subject_key(service: Service) -> None:
    app = create_app(Settings(database_url=service.database_url, subject_key="6b" * 32))
    with pytest.raises(InternalFault, match="another subject key"):
        async with app.router.lifespan_context(app):
            pass


async def test_a_service_does_not_start_without_a_database_or_a_key(database_url: str) -> None:
    for settings in (Settings(), Settings(database_url=database_url)):
        app = create_app(settings)
        with pytest.raises(SettingsError, match="set DITHER_"):
            async with app.router.lifespan_context(app):
                pass


@pytest.mark.long
def test_applications_share_nothing() -> None:
    first, second = (create_app(Settings(subject_key=SUBJECT_KEY)) for _ in range(2))
    assert first is not second
    assert first.openapi() is not second.openapi()
    assert first.openapi() == second.openapi()


def families(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def counted(text: str) -> dict[tuple[str, str, str], float]:
    return {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for sample in families(text)["dither_http_requests"].samples
        if sample.name.endswith("_total")
    }


async def test_requests_are_counted_by_route_and_status(service: Service, study: str) -> None:
    for _ in range(3):
        await service.call("GET", f"/v1/studies/{study}", "analyse")
    await service.call("GET", f"/v1/studies/{study}?x=1", "analyse")
    response = await service.call("GET", "/metrics", "observe")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    counts = counted(response.text)
    assert counts["GET", "/v1/studies/{study}", "200"] == 3
    assert counts["GET", "/v1/studies/{study}", "422"] == 1
    assert study not in response.text
    buckets = [
        sample
        for sample in families(response.text)["dither_http_request_seconds"].samples
        if sample.labels.get("route") == "/v1/studies/{study}" and sample.name.endswith("_count")
    ]
    assert [sample.value for sample in buckets] == [4]


async def test_heavy_work_of_a_token_rests_for_others_and_not_for_its_own_answers(
    service: Service, study: str
) -> None:
    """A person with two tokens: plans, then any other request, of either."""
    made = await service.call("POST", "/v1/admin/tokens", "admin", json={"name": "a", "role": "analyse"})
    token, secret = UUID(made.json()["id"]), made.json()["token"]

    async def beside(path: str, who: str) -> float:
        await service.call("GET", path, who)
        return service.api.metrics.answered.beside(token)

    plan = f"/v1/studies/{study}/plan"
    before = await beside(plan, secret)
    assert await beside(plan, secret) == before
    assert (light := await beside(f"/v1/studies/{study}", secret)) > before
    assert await beside(plan, secret) == light
    assert await beside(plan, "analyse") > light


async def run_edge(inner: Any, *, path: str = "/x") -> tuple[list[dict[str, Any]], Metrics]:
    metrics = Metrics("1.2.3")
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    await LimitsMiddleware(inner, metrics=metrics)(
        {"type": "http", "method": "GET", "path": path}, receive, send
    )
    return sent, metrics


async def test_an_unexpected_error_is_a_bare_500() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("the value is 37.5")

    with capture_logs() as lines:
        sent, metrics = await run_edge(broken)
    assert sent[0]["status"] == 500
    assert b"37.5" not in sent[1]["body"]
    assert "37.5" not in str(lines)
    assert lines[0]["causes"][0]["type"] == "builtins.ValueError"
    assert ("any", "unmatched", "500") in counted(metrics.exposition(private=True).decode())


async def test_an_error_within_a_response_breaks_the_connection() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("the value is 37.5")

    with capture_logs(), pytest.raises(BrokenResponse) as caught:
        await run_edge(broken)
    assert "37.5" not in str(caught.value)
    assert caught.value.__suppress_context__


async def test_a_client_that_leaves_is_no_fault() -> None:
    async def left(scope: Any, receive: Any, send: Any) -> None:
        raise ClientDisconnect

    with capture_logs() as lines:
        sent, metrics = await run_edge(left)
    assert sent == []
    [line] = lines
    assert (line["log_level"], line["status"]) == ("info", 499)
    assert ("any", "unmatched", "499") in counted(metrics.exposition(private=True).decode())


async def test_a_client_that_leaves_within_its_document_stores_nothing(service: Service, study: str) -> None:
    before = await service.rows()
    for path, form in (("", "application/json"), ("/batch", "text/csv")):
        messages = iter(
            [
                {
                    "type": "http.request",
                    "body": b"subject,value,epsilon,trust\na,1,1,central\n",
                    "more_body": True,
                },
                {"type": "http.disconnect"},
            ]
        )
        sent: list[Any] = []

        async def receive(messages: Any = messages) -> Any:
            return next(messages)

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        token = service.tokens["contribute"]
        scope = {
            "type": "http",
            "method": "POST",
            "path": f"/v1/studies/{study}/contributions{path}",
            "raw_path": b"",
            "root_path": "",
            "query_string": b"",
            "headers": [
                (b"authorization", f"Bearer {token}".encode()),
                (b"content-type", form.encode()),
            ],
            "state": {"api": service.api},
        }
        await service.app(scope, receive, send)
        assert sent == []
    assert await service.rows() == before


async def test_many_requests_at_once_are_all_answered(service: Service, study: str) -> None:
    async def one(number: int) -> httpx.Response:
        return await service.call(
            "POST",
            f"/v1/studies/{study}/contributions",
            "contribute",
            json={**VALUE, "subject": f"p{number}"},
        )

    responses = await asyncio.gather(*(one(number) for number in range(200)))
    assert {response.status_code for response in responses} == {201}
    assert (await service.rows())["contribution"] == 200
