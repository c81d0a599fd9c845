"""A scratch database and real service processes, gone when the benchmark ends."""

import asyncio
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.core.clock import SystemClock
from app.core.principal import Principal, Role
from app.core.study import StudyDefinition
from app.postgres.embedded import EmbeddedPostgres
from app.services import Services
from app.services.subjects import SubjectKey
from app.store.database import Database
from app.store.migrate import upgrade

ROOT = Path(__file__).parents[1]
KEY = bytes(range(32))
LIFETIME_EPSILON = 10_000_000
START_SECONDS = 60
PRINCIPAL = Principal(
    token_id=uuid.UUID(int=0), name="benchmark", roles=frozenset({Role.ADMIN}), studies=None, subject=None
)


@dataclass(frozen=True, slots=True)
class Server:
    """A running `dither serve`: one process and its port."""

    pid: int
    port: int


class Refused(RuntimeError):
    """The service refuses a request of a benchmark."""


class Caller:
    """A connection to one port that is kept alive, and speaks JSON."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def call(self, method: str, path: str, token: str, document: object = None) -> Any:
        """The document that comes back; an error where the service refuses."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = None if document is None else json.dumps(document)
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status not in {200, 201}:
            raise Refused(f"{method} {path} was answered {response.status}: {answer!r}")
        return json.loads(answer)


@dataclass(frozen=True, kw_only=True)
class Installation:
    """A migrated database with tokens.

    Attributes:
        url: Of the database, which has PostgreSQL's own durability: fsync and synchronous_commit are on.
        postgres: Process id of the server.
        contribute, analyse, admin: Tokens of these roles.
    """

    url: str
    contribute: str
    analyse: str
    admin: str

    def token(self, role: Role) -> str:
        """Another token of a role."""
        return self.use(lambda services: _token(services, role))

    def create_study(self, definition: StudyDefinition) -> int:
        """Make a study; returns its number."""

        async def make(services: Services) -> int:
            study, _ = await services.studies.create(definition, PRINCIPAL)
            return study.id

        return self.use(make)

    def create(self, definitions: Iterable[StudyDefinition]) -> None:
        """Make many studies."""

        async def make(services: Services) -> None:
            for one in definitions:
                await services.studies.create(one, PRINCIPAL)

        self.use(make)

    def use(self, use):
        """What comes of using the services, in this process."""
        return asyncio.run(_with_services(self.url, use))

    @contextmanager
    def serve(self, *, workers: int, settings: Mapping[str, str] | None = None) -> Iterator[int]:
        """The service over HTTP, with some settings; yields its port."""
        with serve(
            "app.main:create_app",
            workers=workers,
            environment={
                "DITHER_DATABASE_URL": self.url,
                "DITHER_SUBJECT_KEY": KEY.hex(),
                **(settings or {}),
            },
        ) as port:
            yield port

    @contextmanager
    def serve_command(self) -> Iterator[Server]:
        """`dither serve` itself, with what the command puts around the application; one process."""
        port = free_port()
        with running(
            [*(sys.executable, "-m", "app.cli", "serve"), *("--port", str(port))], port, self._environment
        ) as process:
            yield Server(process.pid, port)

    @property
    def _environment(self) -> Mapping[str, str]:
        return {"DITHER_DATABASE_URL": self.url, "DITHER_SUBJECT_KEY": KEY.hex(), "DITHER_LOG_LEVEL": "error"}


async def _with_services(url, use):
    async with Database.open(url, pool_size=2) as database:
        return await use(
            Services.build(
                database,
                SystemClock(),
                SubjectKey(KEY),
                lifetime_epsilon=LIFETIME_EPSILON,
            )
        )


@contextmanager
def installation() -> Iterator[Installation]:
    """An embedded PostgreSQL of its own, migrated, with one token a role."""
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="dither-bench-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        directory.chmod(0o711)
        embedded = stack.enter_context(EmbeddedPostgres(directory / "data"))
        asyncio.run(upgrade(embedded.url))

        def token(role: Role) -> str:
            return asyncio.run(_with_services(embedded.url, lambda services: _token(services, role)))

        yield Installation(
            url=embedded.url,
            contribute=token(Role.CONTRIBUTE),
            analyse=token(Role.ANALYSE),
            admin=token(Role.ADMIN),
        )


async def _token(services: Services, role: Role) -> str:
    _, secret = await services.tokens.create(name="benchmark", roles={role}, actor="benchmark")
    return secret


@contextmanager
def serve(factory: str, *, workers: int, environment: Mapping[str, str]) -> Iterator[int]:
    """An application under uvicorn as `dither serve` runs it; yields its port."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "uvicorn", "--factory", factory),
        *("--host", "127.0.0.1", "--port", str(port), "--workers", str(workers)),
        *("--no-access-log", "--no-server-header", "--ws", "none", "--log-level", "warning"),
    ]
    with running(command, port, environment):
        yield port


@contextmanager
def running(
    command: Sequence[str], port: int, environment: Mapping[str, str], tree: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves a port, from its readiness on. Its log, a line a request, goes to a file."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env={**inherited, **environment},
            stdin=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
        try:
            _await_ready(process, port)
            yield process
        except RuntimeError:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            raise
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _await_ready(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("the service did not start")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
