"""Shared fixtures: a real PostgreSQL for the session, a fresh database per test, the live service."""

import gc
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings

from app.postgres.embedded import EmbeddedPostgres
from app.services.statistics import publishing, says_nothing
from tests.support.citus import CitusServer
from tests.support.databases import Server, crash, scratch_directory
from tests.support.live import LiveService, live_service
from tests.support.provider import Provider, provider

# Like the draws of the statistical tests: the same on every run, others with DITHER_TEST_ENTROPY=os.
# There is no deadline: how long an example takes says more about the machine than about the code.
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.register_profile("fresh", print_blob=True, deadline=None)
settings.register_profile("quick", settings.get_profile("seeded"), max_examples=20)
settings.load_profile("fresh" if os.environ.get("DITHER_TEST_ENTROPY") == "os" else "seeded")

# httpx looks for it at each request to an application in this process, in every directory, and finds nothing.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]  # None: it cannot be imported

# Lines of services in this process are read where a test fails: without columns and colors they cost a third.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(),
    ]
)

# What collection makes stays for good: the garbage collector, which would walk it again and again, waits.
gc.disable()


WAITING = ("store", "system")
"""Directories of tests that wait, more than they compute, for processes that start, crash and recover."""

WAITED = 0.6
"""Part of the other files among which these are spread: only short ones are left for the end of a run."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the tests, have files that wait spread among those that compute."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    files: dict[bool, dict[Path, None]] = {True: {}, False: {}}
    for item in items:
        files[item.path.parent.name in WAITING][item.path] = None
    turns = {
        path: place / len(group) * (WAITED if waits else 1)
        for waits, group in files.items()
        for place, path in enumerate(group)
    }
    items.sort(key=lambda item: turns[item.path])


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but not among the modules and the tests."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One embedded PostgreSQL for the whole session, with its durable defaults.

    With DITHER_TEST_DATABASES=partitions the tables of people have hash partitions, with `citus` there is a
    cluster of three nodes.
    """
    kind = os.environ.get("DITHER_TEST_DATABASES")
    with scratch_directory() as directory:
        if kind == "citus":
            with closing(CitusServer(directory)) as cluster:
                yield cluster
            return
        with (
            EmbeddedPostgres(directory) as embedded,
            closing(Server(embedded.url, partitions=4 if kind == "partitions" else None)) as server,
        ):
            yield server
            crash(embedded)


@pytest.fixture
def database_url(postgres_server: Server) -> Iterator[str]:
    """A migrated database without rows, this test's own while it runs."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture
def empty_database_url(postgres_server: Server) -> Iterator[str]:
    """A fresh database without a schema."""
    with postgres_server.empty_database() as url:
        yield url


@pytest.fixture(autouse=True)
def _few_people(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few people answered in this process, as most tests ask them, without `allow_worse`.

    That would let through what is no gain, too. Tests with the marker `refuses` see what is refused.
    """
    if "refuses" not in request.keywords:
        monkeypatch.setattr(says_nothing, "WHOLE", math.inf)


@pytest.fixture(params=[publishing.FREE_ATTEMPTS, 0], ids=["tried", "held"])
def free_attempts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Every answer is made as usual, and then as after attempts that came to nothing: in one transaction."""
    attempts: int = request.param
    monkeypatch.setattr(publishing, "FREE_ATTEMPTS", attempts)
    return attempts


@pytest.fixture
def issuer() -> Iterator[Provider]:
    """An OpenID Connect provider; its `settings` are for a service that takes its tokens."""
    with provider() as made:
        yield made


LiveServer = Callable[..., LiveService]


@pytest.fixture
def live_server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """A function that starts the real service; everything it started is stopped after the test.

    live_server(processes=1, workers=1, embedded=False, env=None, data_dir=None, arguments=(),
                program="app.cli")

    All processes share one data directory and one database: a fresh one of this test's, or with
    `embedded=True` the one under the data directory.
    """
    with ExitStack() as stack:

        def start(*, embedded: bool = False, **options: Any) -> LiveService:
            url = None if embedded else request.getfixturevalue("database_url")
            return stack.enter_context(live_service(url, **options))

        yield start
