"""The real service: `dither serve` in processes of its own, spoken to over HTTP.

They are forked from one process that has loaded the service's modules and done nothing else: loading them
takes longer than most tests do.
"""

import multiprocessing
import os
import runpy
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import httpx

from benchmarks.services import free_port
from tests.support.databases import scratch_directory

ROOT = Path(__file__).parents[2]
START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 60

_loaded = multiprocessing.get_context("forkserver")
_loaded.set_forkserver_preload(["app.cli.serve", "app.main"])

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For clients that speak plain HTTP: without it each of them reads all certificates, which takes 20 ms."""


def is_ready(base_url: str) -> bool:
    """Whether a service answers there, and can use its database."""
    try:
        return httpx.get(f"{base_url}/health/ready", timeout=5, verify=NO_TLS).status_code == 200
    except httpx.TransportError:
        return False


def _run(
    program: str, arguments: Sequence[str], environment: Mapping[str, str], output: Path, errors: Path
) -> None:
    """Be `python -m PROGRAM ARGUMENTS` in a session of its own."""
    os.setsid()
    os.chdir(ROOT)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, path in ((1, output), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - uvicorn hands its number to the workers.
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    runpy.run_module(program, run_name="__main__", alter_sys=True)


def run_command(
    *arguments: str, environment: Mapping[str, str], patience_seconds: float = 180
) -> subprocess.CompletedProcess[str]:
    """`dither ARGUMENTS` in a process of its own, to its end."""
    with tempfile.TemporaryDirectory() as directory:
        output, errors = Path(directory) / "output", Path(directory) / "errors"
        process = _loaded.Process(target=_run, args=("app.cli", arguments, environment, output, errors))
        process.start()
        process.join(patience_seconds)
        code = process.exitcode
        process.kill()  # What hangs must not outlive its test.
        assert code is not None, "the command did not end"
        return subprocess.CompletedProcess(arguments, code, output.read_text(), errors.read_text())


@dataclass
class LiveProcess:
    """One `dither serve`, with all its workers."""

    port: int
    log: Path
    process: BaseProcess | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        assert self.process.pid is not None
        return self.process.pid

    def wait(self) -> int:
        """The exit code, once it has ended."""
        assert self.process is not None
        self.process.join(STOP_TIMEOUT_SECONDS)
        assert self.process.exitcode is not None, "the service did not end"
        code, self.process = self.process.exitcode, None
        return code


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
            environment |= {"DITHER_LIFETIME_GAUSSIAN": "10,0.00001", **self.environment}
            if self.database_url is not None:
                environment["DITHER_DATABASE_URL"] = self.database_url
            one.log.unlink(missing_ok=True)
            arguments = (
                "serve",
                *("--data-dir", str(self.data_directory), "--port", str(one.port)),
                *("--workers", str(self.workers)),
                *self.arguments,
            )
            one.process = _loaded.Process(
                target=_run, args=(self.program, arguments, environment, one.log, one.log)
            )
            one.process.start()
        for one in chosen:
            self._await_ready(one)

    def kill(self, index: int = 0) -> None:
        """kill -9 a process and its workers; the embedded database survives it."""
        one = self.processes[index]
        os.killpg(one.pid, signal.SIGKILL)
        one.wait()

    def terminate(self, index: int = 0) -> int:
        """SIGTERM a process and return its exit code."""
        one = self.processes[index]
        os.kill(one.pid, signal.SIGTERM)
        return one.wait()

    def stop(self) -> None:
        """Stop what still runs."""
        for index, one in enumerate(self.processes):
            if one.process is None:
                continue
            try:
                self.terminate(index)
            except AssertionError:
                self.kill(index)

    def output(self, index: int = 0) -> str:
        """What a process wrote since its last start."""
        return self.processes[index].log.read_text(errors="replace")

    def _await_ready(self, one: LiveProcess) -> None:
        assert one.process is not None
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            code = one.process.exitcode
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


@contextmanager
def live_service(
    database_url: str | None,
    *,
    processes: int = 1,
    workers: int = 1,
    env: Mapping[str, str] | None = None,
    data_dir: Path | None = None,
    arguments: Sequence[str] = (),
    program: str = "app.cli",
) -> Iterator[LiveService]:
    """Services on one data directory and one database, the embedded one where no URL is given."""
    with scratch_directory() as directory:
        service = LiveService(
            data_directory=data_dir or directory / "data",
            database_url=database_url,
            workers=workers,
            environment=env or {},
            arguments=arguments,
            program=program,
            processes=[
                LiveProcess(port=free_port(), log=directory / f"serve-{number}.log")
                for number in range(processes)
            ],
        )
        try:
            # The first start of a service makes the key and the admin token.
            service.start(0)
            if processes > 1:
                service.start(*range(1, processes))
            yield service
        finally:
            service.stop()
