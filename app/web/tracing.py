"""Spans of requests and of our own steps, for OpenTelemetry; nothing of it is loaded where it is off.

A span carries a route template, a status, an id of a request or the name of a step: no path, no query, no
message of an exception, nothing of what a request or an answer holds.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from app.web.request_log import current_request_id, method_of, template_of

NAME = "dither"

PARENT = b"traceparent"
"""The one header of W3C Trace Context that is read: others carry what their sender likes."""


class TracingNotInstalled(Exception):
    """The packages of the extra `telemetry` are missing."""


class Tracing:
    """Who follows requests and steps; this one follows nothing."""

    def request(self, scope: Mapping[str, Any]) -> AbstractContextManager[dict[str, int]]:
        """While one request is answered; its status is put into what this gives."""
        return nullcontext({})

    def step(self, name: str) -> AbstractContextManager[None]:
        """While one step is done."""
        return nullcontext()

    def close(self) -> None:
        """Send what is left."""


def require_telemetry() -> None:
    """Make sure that spans can be sent.

    Raises:
        TracingNotInstalled: the extra `telemetry` is missing.
    """
    try:
        import opentelemetry.exporter.otlp.proto.http.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401  # whether it is there
    except ImportError as error:
        raise TracingNotInstalled(
            f"{error.name} is not installed: it comes with dither-server[telemetry]"
        ) from None


class OpenTelemetry(Tracing):
    """Sends spans by OTLP over HTTP, as the variables `OTEL_*` say.

    The provider is our own and not the process's: no library that could put paths into its spans finds it.

    Args:
        version: Of the service.

    Raises:
        TracingNotInstalled: see `require_telemetry`.
    """

    def __init__(self, version: str) -> None:
        require_telemetry()
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._parents = TraceContextTextMapPropagator()
        resource = {"service.name": os.environ.get("OTEL_SERVICE_NAME", NAME), "service.version": version}
        self._provider = TracerProvider(resource=Resource.create(resource), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(NAME, version)

    @contextmanager
    def request(self, scope: Mapping[str, Any]) -> Iterator[dict[str, int]]:
        """A span of a server, below that of the client where it names one; named once it was routed."""
        parent = self._parents.extract(_parent(scope.get("headers", ())))
        outcome: dict[str, int] = {}
        with self._tracer.start_as_current_span(
            "request",
            context=parent,
            kind=self._trace.SpanKind.SERVER,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield outcome
            finally:
                method, route = method_of(scope), template_of(scope)
                span.update_name(f"{method} {route}" if route else method)
                span.set_attribute("http.request.method", method)
                span.set_attribute("http.route", route or "")
                span.set_attribute("http.response.status_code", outcome.get("status", 500))
                span.set_attribute("dither.request_id", current_request_id() or "")
                if outcome.get("status", 500) >= 500:
                    span.set_status(self._trace.StatusCode.ERROR)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A span within that of the request; of an exception it has the class and not the message."""
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except Exception as error:
                span.set_attribute("error.type", type(error).__qualname__)
                raise

    def close(self) -> None:
        """Send what is left; the next span is lost."""
        self._provider.shutdown()


def _parent(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {PARENT.decode(): value.decode("latin-1") for name, value in headers if name == PARENT}
