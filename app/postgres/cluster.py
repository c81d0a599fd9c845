"""One PostgreSQL cluster on disk: initialize, start, find and stop its server.

Nothing here takes a lock; `app.postgres.embedded` does, and is the one that others use.
"""

import contextlib
import hashlib
import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import psutil
import structlog

from app.postgres.service_user import (
    EmbeddedPostgresError,
    can_reach,
    major_version,
    postgres_binaries,
    service_user,
    within_reach,
)

PORT = 5432
"""Part of the socket's file name; nothing listens on TCP."""

SOCKET_NAME = f".s.PGSQL.{PORT}"
SOCKET_PATH_LIMIT = 100
"""sun_path holds 108 bytes on Linux and 104 on macOS."""

START_TIMEOUT_SECONDS = 300
"""Crash recovery replays at most `max_wal_size` of log."""

STOP_TIMEOUT_SECONDS = 60

SETTINGS = {
    "timezone": "UTC",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "jit": "off",
    "autovacuum_naptime": "15s",
    "autovacuum_analyze_scale_factor": "0.05",
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_truncate_on_rotation": "on",
    # The details of a constraint violation quote the offending row, and rows are people's data.
    "log_error_verbosity": "terse",
    "log_min_error_statement": "panic",
}
"""Written into postgresql.conf once, where an operator may change them. fsync and synchronous_commit keep
PostgreSQL's defaults."""

_CREATE_DATABASE = """
SELECT 'CREATE ROLE dither LOGIN CREATEDB'
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'dither') \\gexec
-- It makes the role that reads published answers.
SELECT 'ALTER ROLE dither CREATEROLE' FROM pg_roles WHERE rolname = 'dither' AND NOT rolcreaterole \\gexec
SELECT 'CREATE DATABASE dither OWNER dither'
 WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'dither') \\gexec
"""

_log = structlog.get_logger(__name__)


class Cluster:
    """The cluster in one directory, and the programs that work on it.

    Args:
        data: The cluster's data directory. It need not exist yet.
        binaries: The directory of PostgreSQL's programs; None: those of the wheel.

    Attributes:
        data: See the argument.
    """

    def __init__(self, data: Path, binaries: Path | None = None) -> None:
        self.data = data
        self._chosen = binaries
        self._version = 0
        self._user: pwd.struct_passwd | None = None
        self._binaries = Path()

    def prepare(self) -> None:
        """Choose the user and the binaries, and initialize the cluster where there is none.

        Raises:
            EmbeddedPostgresError: it cannot run here, or another major version made the directory.
        """
        binaries = postgres_binaries(self._chosen)
        self._version = major_version(binaries)
        self._check_version()
        self._user = service_user(self.data)
        self._binaries = within_reach(binaries, self._user)
        if not (self.data / "PG_VERSION").exists():
            self._initialize()

    def create_database(self) -> None:
        """Create the role and the database `dither` where there are none."""
        self._run("psql", *self._client_options, "-d", "postgres", script=_CREATE_DATABASE)

    @property
    def url(self) -> str:
        """URL of the database, for SQLAlchemy, asyncpg and psql alike. It holds no secret."""
        return f"postgresql://dither@/dither?host={quote(str(self._socket_directory), safe='/')}&port={PORT}"

    @property
    def postmaster_pid(self) -> int | None:
        """Process id of the running server, None when there is none."""
        recorded = self._recorded()
        return int(recorded[0]) if recorded and self.listening() else None

    def launch(self) -> bool:
        """Start the server unless it runs, and wait until it answers. True if it was started."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        started = False
        while True:
            # In the loop, because a server may die again before it has answered once.
            if not self.listening():
                self._forget_stale_pid()
                self._start_server(deadline)
                started = True
            if self._call("pg_isready", *self._client_options, "-q", "-t", "5")[0] == 0:
                break
            if time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"PostgreSQL in {self.data} does not answer; see {self.data}/log")
            time.sleep(0.05)
        if started:
            _log.info("postgres_started", directory=str(self.data), pid=self.postmaster_pid)
        return started

    def halt(self) -> None:
        """Stop the server if it runs: rolling back what is open, or crashing it if that takes too long."""
        if not self.listening():
            return
        arguments = (
            "-D",
            self._seen_by_server(self.data),
            "-w",
            "-t",
            str(STOP_TIMEOUT_SECONDS),
            "-s",
            "stop",
        )
        for mode in ("fast", "immediate"):
            code, output = self._call("pg_ctl", *arguments, "-m", mode, directory=self.data)
            if code == 0:
                _log.info("postgres_stopped", directory=str(self.data), mode=mode)
                if not self._socket_fits(self.data):
                    with contextlib.suppress(OSError):
                        self._short_directory().rmdir()
                return
            _log.warning(
                "postgres_did_not_stop", directory=str(self.data), mode=mode, output=output.strip()[-500:]
            )

    def listening(self) -> bool:
        """Whether a postmaster accepts connections. The kernel refuses as soon as it is dead."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(5)
            try:
                probe.connect(str(self._socket_directory / SOCKET_NAME))
            except (ConnectionRefusedError, FileNotFoundError):
                return False
            except (BlockingIOError, TimeoutError):
                return True
        return True

    def _check_version(self) -> None:
        if not self.data.exists() or not any(self.data.iterdir()):
            return
        try:
            found = (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise EmbeddedPostgresError(f"{self.data} is not a PostgreSQL data directory") from None
        if found != str(self._version):
            raise EmbeddedPostgresError(
                f"{self.data} was made by PostgreSQL {found}, the embedded one is {self._version}: move "
                f"the data with pg_upgrade or pg_dump, let DITHER_POSTGRES_BIN name the programs of {found}, "
                f"or run {found} and set DITHER_DATABASE_URL"
            )

    def _initialize(self) -> None:
        """Make the cluster, all or nothing: initdb works beside it and the result is renamed."""
        scratch = self.data.with_name(f"{self.data.name}.new")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(mode=0o700)
        if self._user is not None:
            os.chown(scratch, self._user.pw_uid, self._user.pw_gid)
        # Both sort by code point, wherever the data move; the latter exists since 17.
        locale = ("--locale=C",) if self._version < 17 else ("--locale-provider=builtin", "--locale=C.UTF-8")
        self._run(
            "initdb",
            *(
                "-D",
                self._seen_by_server(scratch),
                "-U",
                "postgres",
                "--auth-local=trust",
                "--auth-host=reject",
            ),
            *("--encoding=UTF8", *locale, "--lc-messages=C", "--no-instructions"),
            directory=scratch,
        )
        # Its own option for settings exists since 16.
        with (scratch / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in SETTINGS.items())
        scratch.rename(self.data)
        _log.info("postgres_initialized", directory=str(self.data))

    def _start_server(self, deadline: float) -> None:
        log = self.data / "start.log"
        options = f"-k {self._new_socket_directory()} -p {PORT} -c listen_addresses=''"
        arguments = ("-D", self._seen_by_server(self.data), "-w", "-t", str(START_TIMEOUT_SECONDS), "-s")
        while True:
            log.unlink(missing_ok=True)
            code, output = self._call(
                "pg_ctl", *arguments, "-l", "start.log", "-o", options, "start", directory=self.data
            )
            if code == 0:
                return
            output += log.read_text(errors="replace") if log.exists() else ""
            # The sessions of a killed server take a moment to notice that it is gone.
            if "still in use" not in output or time.monotonic() > deadline:
                raise EmbeddedPostgresError(
                    f"PostgreSQL did not start in {self.data}:\n{output}{self._last_words()}"
                )
            time.sleep(0.1)

    def _last_words(self) -> str:
        """The end of the server's newest log."""
        logs = sorted((self.data / "log").glob("*.log"), key=lambda path: path.stat().st_mtime)
        return logs[-1].read_text(errors="replace")[-1000:] if logs else ""

    def _recorded(self) -> list[str]:
        """The lines of postmaster.pid: pid, data directory, start time, port, socket directory, ..."""
        try:
            return (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _forget_stale_pid(self) -> None:
        """Remove the pid files if their process is not a postmaster of this directory.

        PostgreSQL does so itself when the process is gone, but takes a zombie (in a container whose first
        process does not reap) or a stranger who was given the same id for a running server.
        """
        recorded = self._recorded()
        if not recorded:
            return
        try:
            alive = Path(psutil.Process(abs(int(recorded[0]))).cwd()) == self.data
        except (psutil.Error, ValueError):
            alive = False
        if not alive:
            (self._socket_directory / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)
            (self.data / "postmaster.pid").unlink(missing_ok=True)

    @property
    def _socket_directory(self) -> Path:
        recorded = self._recorded()
        if len(recorded) > 4 and recorded[4] not in ("", "."):
            return Path(recorded[4])
        return self.data if self._socket_fits(self.data) else self._short_directory()

    @staticmethod
    def _socket_fits(directory: Path) -> bool:
        return len(os.fsencode(directory / SOCKET_NAME)) <= SOCKET_PATH_LIMIT

    def _short_directory(self) -> Path:
        """A private directory for the socket when the data directory's own path is too long for one."""
        digest = hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]
        name = f"dither-{os.geteuid()}-{digest}"
        runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
        if (
            os.geteuid() != 0
            and runtime.is_absolute()
            and runtime.is_dir()
            and self._socket_fits(runtime / name)
        ):
            return runtime / name
        return Path("/tmp") / name  # noqa: S108 (checked to be ours before use)

    def _new_socket_directory(self) -> str:
        """Where the server puts its socket, as the server sees it."""
        if self._socket_fits(self.data):
            return "."
        directory = self._short_directory()
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
            if self._user is not None:
                os.chown(directory, self._user.pw_uid, self._user.pw_gid)
        status = directory.lstat()
        owner = os.geteuid() if self._user is None else self._user.pw_uid
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != owner
            or stat.S_IMODE(status.st_mode) != 0o700
        ):
            raise EmbeddedPostgresError(f"{directory} is not a private directory of ours; remove it")
        return str(directory)

    @property
    def _client_options(self) -> Sequence[str]:
        return ("-h", str(self._socket_directory), "-p", str(PORT), "-U", "postgres")

    def _seen_by_server(self, directory: Path) -> str:
        """How the server names a directory that its process was started in.

        Root enters the directory before it becomes the server's user, so the user need not be able to
        traverse what lies above: then the directory is called by its link in /proc.
        """
        if can_reach(directory, self._user):
            return str(directory)
        # PostgreSQL 15 leaves its directory to find its own programs, and cannot come back.
        if self._version < 16 or not Path("/proc/self/cwd").exists():
            raise EmbeddedPostgresError(
                f"the system user of PostgreSQL may not traverse the directories above {directory}; "
                "choose another data directory or run the service as an ordinary user"
            )
        return "/proc/self/cwd"

    def _run(self, program: str, *arguments: str, directory: Path | None = None, script: str = "") -> None:
        code, output = self._call(program, *arguments, directory=directory, script=script)
        if code != 0:
            raise EmbeddedPostgresError(f"{program} failed in {self.data}:\n{output.strip()[-2000:]}")

    def _call(
        self, program: str, *arguments: str, directory: Path | None = None, script: str = ""
    ) -> tuple[int, str]:
        """Run a program; as the server's user, inside a directory of its own, if one is given."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")} | {
            "LC_ALL": "C"
        }
        user = self._user if directory is not None else None
        options = ("-X", "-q", "-v", "ON_ERROR_STOP=1") if program == "psql" else ()
        # Files, not pipes: a server started here keeps its output open for as long as it lives.
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as given:
            given.write(script.encode())
            given.seek(0)
            done = subprocess.run(  # noqa: S603 (fixed programs, no shell)
                [str(self._binaries / program), *options, *arguments],
                stdin=given,
                stdout=output,
                stderr=output,
                cwd=directory or "/",
                env=environment,
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
                umask=0o077,
                check=False,
            )
            output.seek(0)
            return done.returncode, output.read().decode(errors="replace")
