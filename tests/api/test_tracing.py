"""Spans: of requests and of our own steps, on request only, and without a person or a path in them."""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from app.settings import SettingsError
from app.web.tracing import OpenTelemetry, TracingNotInstalled
from tests.api.service import open_service
from tests.support.commands import dither

__all__ = ["dither"]

STEPS = {"seal", "fold", "plan", "draw", "publish"}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


class Collector:
    """What an OTLP collector is sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                zipped = self.headers.get("content-encoding") == "gzip"
                bodies.append(gzip.decompress(body) if zipped else body)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        return [
            span
            for body in self.bodies
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra telemetry")
    collector = Collector()
    thread = Thread(target=collector.server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    yield collector
    collector.server.shutdown()
    thread.join()
    collector.server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


async def test_a_release_is_a_span_with_one_for_each_step(database_url: str, collector: Collector) -> None:
    async with open_service(database_url, telemetry=True) as service:
        study = await service.study()
        await service.contribute(study, "homer.simpson")
        await service.crowd(study, 20)
        await service.call("GET", "/v1/subjects/homer.simpson/budget?x=homer.simpson", "admin")
        await service.call("GET", "/nowhere/homer.simpson")
        await service.call("DELETE", f"/v1/studies/{study}/contributions/homer.simpson", "contribute")
        sent = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "homer=simpson"}
        response = await service.call(
            "POST", f"/v1/studies/{study}/releases", "analyse", headers=sent, json={}
        )
        assert response.status_code == 201
        assert collector.bodies == [], "a batch is sent in the background"
    spans = collector.spans()
    [release] = [span for span in spans if span.name == "POST /v1/studies/{study}/releases"]
    assert (release.trace_id.hex(), release.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes(release) == {
        "http.request.method": "POST",
        "http.route": "/v1/studies/{study}/releases",
        "http.response.status_code": 201,
        "dither.request_id": response.headers["x-request-id"],
    }
    steps = {span.name for span in spans if span.parent_span_id == release.span_id}
    assert steps == STEPS
    assert b"simpson" not in b"".join(collector.bodies)


async def test_a_step_that_fails_says_how_and_not_why(
    database_url: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("the value was 42.5")

    monkeypatch.setattr("app.services.statistics.planning.choose", broken)
    async with open_service(database_url, telemetry=True) as service:
        study = await service.study()
        await service.crowd(study, 20)
        await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={})
    spans = collector.spans()
    [plan] = [span for span in spans if span.name == "plan"]
    assert attributes(plan) == {"error.type": "ValueError"}
    [release] = [span for span in spans if span.span_id == plan.parent_span_id]
    assert attributes(release)["http.response.status_code"] == 500
    assert release.status.code == release.status.STATUS_CODE_ERROR
    assert b"42.5" not in b"".join(collector.bodies)


def test_an_audit_is_a_span(database_url: str, collector: Collector, dither: Any) -> None:
    done = dither("audit", DITHER_DATABASE_URL=database_url, DITHER_TELEMETRY="true")
    assert done.status == 0, done.errors
    assert [span.name for span in collector.spans()] == ["audit"]


async def test_there_are_none_unless_they_are_wanted(database_url: str, collector: Collector) -> None:
    async with open_service(database_url) as service:
        await service.study()
    assert collector.bodies == []


@pytest.mark.long
def test_nothing_is_loaded_for_them_unless_they_are_wanted() -> None:
    program = (
        "import sys; from app.main import create_app; from app.settings import Settings;"
        "create_app(Settings(database_url='postgresql://nowhere/none', subject_key='5a' * 32));"
        "import app.cli.audit;"
        "print([name for name in sys.modules if name.startswith('opentelemetry.') and "
        "name.split('.')[1] in ('sdk', 'exporter')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_without_the_extra_the_start_says_what_is_missing(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(TracingNotInstalled, match=r"dither-server\[telemetry\]"):
        OpenTelemetry("1")
    with pytest.raises(SettingsError, match=r"DITHER_TELEMETRY: .*dither-server\[telemetry\]"):
        async with open_service(database_url, telemetry=True):
            pass
