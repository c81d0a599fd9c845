"""PgBouncer, as Debian packages it, in front of a database of the test's own."""

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import make_url

from benchmarks.services import free_port
from tests.support.databases import scratch_directory


class PgBouncer:
    """A pooler on 127.0.0.1.

    Args:
        url: Of the database behind it.
        directory: Everything of it goes there; the owner of the database's socket may read it.
    """

    def __init__(self, url: str, directory: Path, program: str) -> None:
        self._target = make_url(url)
        self._directory = directory
        self._program = program
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        name, user = self._target.database, self._target.username
        self.url = f"postgresql://{user}@127.0.0.1:{self._port}/{name}"

    def start(self, mode: str, *more: str) -> None:
        """Run with a pool mode; again with another one, so that its clients are cut off."""
        self.stop()
        socket = Path(str(self._target.query["host"]))
        port = self._target.query.get("port", 5432)
        lines = (
            "[databases]",
            # Its user may not enter the directories above the socket's, but is put there.
            f"* = host=/proc/self/cwd port={port} user={self._target.username}",
            "[pgbouncer]",
            "listen_addr = 127.0.0.1",
            f"listen_port = {self._port}",
            "unix_socket_dir =",
            "auth_type = any",
            f"pool_mode = {mode}",
            "default_pool_size = 30",
            *more,
        )
        config = self._directory / "pgbouncer.ini"
        config.write_text("\n".join(lines) + "\n")
        owner = socket.stat().st_uid
        switch = {} if os.geteuid() != 0 else {"user": owner, "extra_groups": []}
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, config],
                stdout=log,
                stderr=log,
                cwd=socket,
                **switch,  # type: ignore[call-overload]
            )

    async def ready(self) -> None:
        """Wait until it lets clients in."""
        deadline = time.monotonic() + 60
        while True:
            try:
                await (await asyncpg.connect(self.url, statement_cache_size=0, timeout=5)).close()
            except OSError:
                assert time.monotonic() < deadline, (self._directory / "log").read_text()
                await asyncio.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """End it, and cut off its clients."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(20)
            self._process = None


@contextmanager
def pgbouncer(url: str) -> Iterator[PgBouncer]:
    """A pooler that is not started yet; without the program the test is skipped, and fails in CI."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        reason = "there is no pgbouncer; install Debian's package of this name"
        assert os.environ.get("DITHER_TEST_POSTGRES") != "required", reason
        pytest.skip(reason)
    with scratch_directory() as directory:
        directory.chmod(0o711)
        pooler = PgBouncer(url, directory, program)
        try:
            yield pooler
        finally:
            pooler.stop()
