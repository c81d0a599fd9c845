"""PostgreSQL as Debian packages it, with TLS: a server of the test's own."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from app.postgres.service_user import service_user
from benchmarks.services import free_port

INSTALLED = Path("/usr/lib/postgresql")


def debian_binaries() -> Path:
    """The programs of the oldest version installed; without one the test is skipped, and fails in CI."""
    versions = [int(path.parents[1].name) for path in INSTALLED.glob("*/bin/initdb")]
    if not versions:
        reason = f"there is no PostgreSQL in {INSTALLED}; install Debian's package postgresql"
        assert os.environ.get("DITHER_TEST_POSTGRES") != "required", reason
        pytest.skip(reason)
    return INSTALLED / str(min(versions)) / "bin"


class DebianPostgres:
    """A server on 127.0.0.1, with a directory that its user owns.

    Args:
        directory: Everything of it goes there.
        settings: Lines of postgresql.conf.
        access: The whole pg_hba.conf.
        files: Name and content of further files in the data directory, for its user only.
    """

    def __init__(
        self, directory: Path, settings: Mapping[str, str], access: str, files: Mapping[str, bytes]
    ) -> None:
        self.binaries = debian_binaries()
        self.port = free_port()
        self._data = directory / "server"
        self._user = service_user(self._data)
        self._data.mkdir(mode=0o700)
        self._own(directory, 0o711)
        self._own(self._data, 0o700)
        self.run(
            "initdb", "-D", self._data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"
        )
        with (self._data / "postgresql.conf").open("a") as file:
            lines = {"port": str(self.port), "unix_socket_directories": str(self._data), **settings}
            file.writelines(f"{name} = '{value}'\n" for name, value in lines.items())
        (self._data / "pg_hba.conf").write_text(access)
        for name, content in files.items():
            (self._data / name).write_bytes(content)
            self._own(self._data / name, 0o600)
        self.run("pg_ctl", "-D", self._data, "-w", "-l", self._data / "log", "start")

    def sql(self, *statements: str) -> None:
        """Run statements as the superuser."""
        commands = [part for statement in statements for part in ("-c", statement)]
        self.run("psql", "-Xq", "-h", self._data, "-p", str(self.port), "-U", "postgres", *commands)

    def stop(self) -> None:
        """End it at once."""
        self.run("pg_ctl", "-D", self._data, "-m", "immediate", "stop")

    def run(self, program: str, *arguments: str | Path) -> None:
        """Run one of its programs as its user."""
        user = self._user
        subprocess.run(
            [self.binaries / program, *arguments],
            user=user and user.pw_uid,
            group=user and user.pw_gid,
            extra_groups=user and [],
            env={"LC_ALL": "C"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=60,
        )

    def _own(self, path: Path, mode: int) -> None:
        path.chmod(mode)
        if self._user is not None and path != self._data.parent:
            os.chown(path, self._user.pw_uid, self._user.pw_gid)
