"""Prometheus metrics: how many requests took how long, and what the service did for them. No values.

How many people contributed is itself private in an add_remove_one study, and every counter of requests
moves with them. Without a token for it there is only whether the service is up, and its version.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from app.services.observer import Step
from app.services.work import Answered
from app.web.request_log import WORKED, method_of, note_step, template_of
from app.web.tracing import Tracing

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

UNMATCHED = "unmatched"
"""The route label of requests that no route took."""


class Metrics:
    """The metrics of one application, in registries of their own.

    Args:
        version: Of the service.
        tracing: Who follows the steps as spans.
    """

    def __init__(self, version: str, tracing: Tracing | None = None) -> None:
        self.tracing = tracing or Tracing()
        self._public = CollectorRegistry()
        self._up = Gauge("dither_up", "Whether the service is ready: 1 or 0.", registry=self._public)
        Info("dither", "The version of the service.", registry=self._public).info({"version": version})
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        timer = partial(Histogram, registry=self._registry, buckets=BUCKETS)
        self._requests = counter(
            "dither_http_requests",
            "Requests, by method, route template and status.",
            ("method", "route", "status"),
        )
        self._seconds = timer(
            "dither_http_request_seconds",
            "Time until the response was complete, by method and route template.",
            ("method", "route"),
        )
        self._refusals = counter(
            "dither_refusals", "Refused requests, by the code of the problem.", ("code",)
        )
        self._commits = Histogram(
            "dither_commit_contributions",
            "Single contributions that were decided in one commit.",
            registry=self._registry,
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500),
        )
        self._folds = timer("dither_fold_seconds", "Time to fold a study's new contributions into cohorts.")
        self._releases = timer(
            "dither_release_seconds", "Time to make a release, from the question to the commit."
        )
        self._sessions = Gauge(
            "dither_sessions",
            "Sessions of the whole installation, by state.",
            ("state",),
            registry=self._registry,
        )
        self.answered = Answered()
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def observe(self, scope: Mapping[str, Any], status: int, seconds: float) -> None:
        """Count one finished request.

        Args:
            scope: The ASGI scope after routing.
            status: Status of the response; 499 where the client left before it.
            seconds: How long it took.
        """
        method, template = method_of(scope), template_of(scope) or UNMATCHED
        key = (method, template, status)
        self.answered.note(scope.get(WORKED))
        children = self._children.get(key)
        if children is None:
            children = self._children[key] = (
                self._requests.labels(method, template, str(status)),
                self._seconds.labels(method, template),
            )
        children[0].inc()
        children[1].observe(seconds)

    def refused(self, code: str) -> None:
        """A request was answered with a problem."""
        self._refusals.labels(code).inc()

    def committed(self, contributions: int) -> None:
        """A transaction committed this many single-request contributions."""
        self._commits.observe(contributions)

    @contextmanager
    def step(self, name: Step) -> Iterator[None]:
        """While a step is done: for the request's line in the log, and for a span where there are spans."""
        started = time.perf_counter()
        with self.tracing.step(name):
            yield
        seconds = time.perf_counter() - started
        note_step(name, seconds)
        if name == "fold":
            self._folds.observe(seconds)

    def released(self, seconds: float) -> None:
        """A release was made, from the question to the commit."""
        self._releases.observe(seconds)

    def count_sessions(self, states: Mapping[str, int]) -> None:
        """How many sessions are in each state now."""
        for state in ("open", "finished"):
            self._sessions.labels(state).set(states.get(state, 0))

    def set_up(self, ready: bool) -> None:
        """Whether the service is ready now."""
        self._up.set(ready)

    def exposition(self, *, private: bool) -> bytes:
        """The metrics in the text format.

        Args:
            private: Whether to include more than whether the service is up, and its version.
        """
        text: bytes = generate_latest(self._public)
        if private:
            text += generate_latest(self._registry)
        return text
