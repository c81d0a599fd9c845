"""The demo's own service: `dither serve` as a process of its own, in a directory of its own."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from app.cli.common import CommandFailed
from app.postgres.embedded import EmbeddedPostgres

LOCK_FILE = "demo.lock"
USUAL_PORT = 8000
START_SECONDS = 120
STOP_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A running service.

    Attributes:
        base_url: Its address.
        data: Its data directory.
        devices: Where the simulated devices keep their ledger.
        log: What it writes.
        process: The process.
    """

    base_url: str
    data: Path
    devices: Path
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def admin_token(self) -> str:
        """The token that the first start wrote."""
        return (self.data / "admin.token").read_text().strip()

    def check(self) -> None:
        """Notice when it has died.

        Raises:
            CommandFailed: it has.
        """
        code = self.process.poll()
        if code is not None:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
            raise CommandFailed(f"the service ended with status {code}; the end of {self.log}:\n{tail}")


@contextmanager
def running_service(directory: Path, port: int | None) -> Iterator[Service]:
    """Start a service without any data, and stop it with its database at the end.

    Args:
        directory: The demo's own. What an earlier demo left in it is removed.
        port: None: the usual one, or any that is free.

    Raises:
        CommandFailed: the directory holds something else, another demo uses it, or the service does not
            start.
    """
    directory = directory.expanduser().resolve()
    with _claimed(directory):
        data, devices, log = directory / "service", directory / "devices", directory / "serve.log"
        _clear(data, devices, log)
        port = _choose_port(port)
        process = _launch(data, port, log)
        try:
            service = Service(
                base_url=f"http://127.0.0.1:{port}", data=data, devices=devices, log=log, process=process
            )
            _await_ready(service)
            yield service
        finally:
            _stop(process)


@contextmanager
def _claimed(directory: Path) -> Iterator[None]:
    """Hold a directory that is empty or was a demo's before."""
    if directory.exists() and not (directory / LOCK_FILE).exists() and any(directory.iterdir()):
        raise CommandFailed(f"{directory} holds something else than a demo: choose another --data-dir")
    directory.mkdir(parents=True, exist_ok=True, mode=0o711)
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandFailed(
                f"another demo is running in {directory}: interrupt it, or choose another --data-dir"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _clear(data: Path, devices: Path, log: Path) -> None:
    """Remove what an earlier demo left, also one that was killed and could not stop its service."""
    for process in _left_behind(data):
        process.terminate()
        with suppress(psutil.TimeoutExpired):
            process.wait(STOP_SECONDS)
    embedded = EmbeddedPostgres(data)
    if data.exists() and embedded.postmaster_pid is not None:
        with embedded:
            pass  # its last user stops it
    for path in (data, devices):
        if path.exists():
            shutil.rmtree(path)
    log.unlink(missing_ok=True)


def _left_behind(data: Path) -> list[psutil.Process]:
    """Services that work in this directory, which no demo holds at the moment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            arguments = process.cmdline()
            if "serve" in arguments and str(data) in arguments:
                found.append(process)
    return found


def _choose_port(port: int | None) -> int:
    for candidate in (USUAL_PORT, 0) if port is None else (port,):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise CommandFailed(f"port {port} is taken: choose another --port")


def _launch(data: Path, port: int, log: Path) -> subprocess.Popen[bytes]:
    # The settings of a real installation on this machine are none of the demo's business.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    arguments = ["serve", "--data-dir", str(data), "--port", str(port)]
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 (ourselves, no shell)
            [sys.executable, "-m", "app.cli", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C in a terminal is for the demo, which then stops the service in good order.
            start_new_session=True,
        )


def _await_ready(service: Service) -> None:
    deadline = time.monotonic() + START_SECONDS
    with httpx.Client(base_url=service.base_url, trust_env=False, timeout=5) as client:
        while time.monotonic() < deadline:
            service.check()
            with suppress(httpx.TransportError):
                if client.get("/health/ready").status_code == 200:
                    return
            time.sleep(0.05)
    raise CommandFailed(f"the service did not get ready within {START_SECONDS} seconds; see {service.log}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the service; a second interrupt cannot leave its database running."""
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
