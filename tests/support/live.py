"""The real service: `dither serve` in processes of its own, spoken to over HTTP."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
START_TIMEOUT_SECONDS = 60

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients that speak plain HTTP: without it each of them reads all certificates, which takes 20 ms."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ready(base_url: str) -> bool:
    """Whether a service answers there, and can use its database."""
    try:
        return httpx.get(f"{base_url}/health/ready", timeout=5, verify=NO_TLS).status_code == 200
    except httpx.TransportError:
        return False


@dataclass
class LiveProcess:
    """One `dither serve`, with all its workers."""

    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid


@dataclass
class LiveService:
    """One or more processes on one database.

    Attributes:
        data_directory: Holds admin.token, subject.key and, when it is embedded, the database.
        database_url: None for the embedded database.
        workers: API processes of each service.
        environment: Additional variables for the processes.
        arguments: Additional arguments of `dither serve`.
        program: The module that is `dither`.
    """

    data_directory: Path
    database_url: str | None
    workers: int
    environment: Mapping[str, str]
    arguments: Sequence[str]
    program: str = "app.cli"
    processes: list[LiveProcess] = field(default_factory=list)

    # ------------------------------------------------------------------------------ running it

    def start(self, *indexes: int) -> None:
        """Start processes that are not running, all where none is named, and wait until they are ready."""
        chosen = [self.processes[index] for index in indexes] or self.processes
        for one in chosen:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("DITHER_")}
            environment |= self.environment
            if self.database_url is not None:
                environment["DITHER_DATABASE_URL"] = self.database_url
            one.log.unlink(missing_ok=True)
            with one.log.open("ab") as log:
                one.process = subprocess.Popen(
                    [
                        *(sys.executable, "-m", self.program, "serve"),
                        *("--data-dir", str(self.data_directory), "--port", str(one.port)),
                        *("--workers", str(self.workers)),
                        *self.arguments,
                    ],
                    cwd=ROOT,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
        for one in chosen:
            self._await_ready(one)

    def kill(self, index: int = 0) -> None:
        """kill -9 a process and its workers; the embedded database survives it."""
        one = self.processes[index]
        assert one.process is not None
        os.killpg(one.process.pid, signal.SIGKILL)
        one.process.wait()
        one.process = None

    def terminate(self, index: int = 0) -> int:
        """SIGTERM a process and return its exit code."""
        one = self.processes[index]
        assert one.process is not None
        one.process.terminate()
        code = one.process.wait(timeout=60)
        one.process = None
        return code

    def stop(self) -> None:
        """Stop what still runs."""
        for index, one in enumerate(self.processes):
            if one.process is None:
                continue
            try:
                self.terminate(index)
            except subprocess.TimeoutExpired:
                self.kill(index)

    def output(self, index: int = 0) -> str:
        """What a process wrote since its last start."""
        return self.processes[index].log.read_text(errors="replace")

    def _await_ready(self, one: LiveProcess) -> None:
        assert one.process is not None
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            code = one.process.poll()
            if code is not None or time.monotonic() > deadline:
                state = "did not get ready" if code is None else f"exited with {code}"
                raise AssertionError(f"the service {state}:\n{one.log.read_text(errors='replace')[-4000:]}")
            # One worker that is ready does not mean that all are.
            if (
                is_ready(one.base_url)
                and one.log.read_bytes().count(b"Application startup complete") >= self.workers
            ):
                return
            time.sleep(0.05)

    # -------------------------------------------------------------------------------- using it

    @property
    def base_url(self) -> str:
        return self.processes[0].base_url

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self.processes if one.process is not None]

    @property
    def admin_token(self) -> str:
        return (self.data_directory / "admin.token").read_text().strip()

    def client(self, token: str | None = None, index: int = 0, **options: Any) -> httpx.Client:
        """A client of one process; with the admin token unless another is given."""
        return httpx.Client(
            base_url=self.processes[index].base_url,
            headers={"Authorization": f"Bearer {token or self.admin_token}"},
            timeout=options.pop("timeout", 30),
            verify=NO_TLS,
            **options,
        )

    def create_token(self, role: str, **body: Any) -> str:
        """A new token of a role."""
        with self.client() as admin:
            response = admin.post("/v1/admin/tokens", json={"name": f"test {role}", "role": role, **body})
        assert response.status_code == 201, response.text
        return str(response.json()["token"])
