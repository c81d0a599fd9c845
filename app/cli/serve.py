"""`dither serve`: the service in the foreground, with everything that it needs."""

import asyncio
import errno
import fcntl
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import structlog
import typer
import uvicorn
from pydantic import SecretStr

from app.cli import collector_at_rest
from app.cli.common import CommandFailed, DataDir, load_settings, notes, open_database, usage_error
from app.core.clock import SystemClock
from app.core.principal import Role
from app.postgres.embedded import EmbeddedPostgres, EmbeddedPostgresError
from app.services.admin.tokens import Tokens
from app.services.subjects import SubjectKey
from app.settings import Settings
from app.store.database import Database
from app.store.journal import read_fact
from app.store.keyfile import KEY_FILE, load_key, load_or_create_key, replace_secret
from app.store.migrate import require_durable, require_head, upgrade
from app.web.bounded_protocol import BoundedProtocol

if TYPE_CHECKING:
    from fastapi import FastAPI

ADMIN_FILE = "admin.token"
SUPERVISION_SECONDS = 1.0
SHUTDOWN_SECONDS = 15
WORKER_PATIENCE_SECONDS = 60
"""A worker that answers its supervisor later than that is taken for hung and replaced."""

_log = structlog.get_logger(__name__)


def serve(
    data_dir: DataDir = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on.", envvar="DITHER_HOST", show_envvar=False)
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(help="Port to listen on.", envvar="DITHER_PORT", min=1, max=65535, show_envvar=False),
    ] = 8000,
    workers: Annotated[
        int, typer.Option(help="API processes.", envvar="DITHER_WORKERS", min=1, max=256, show_envvar=False)
    ] = 1,
) -> None:
    """Run the service until it is interrupted.

    With --data-dir alone, an embedded PostgreSQL is started there, or found and shared if another service
    uses it, and its schema is brought up to date. With DITHER_DATABASE_URL, that server is used, and
    `dither migrate` is up to you. The first start writes DIR/admin.token and DIR/subject.key.
    """
    settings = load_settings(data_dir, quiet=False)
    if settings.data_dir is None and (settings.database_url is None or settings.subject_key is None):
        raise usage_error("give --data-dir DIR, or set both DITHER_DATABASE_URL and DITHER_SUBJECT_KEY")
    from app.main import require_installed

    # Here, since a worker that cannot start would be started for ever.
    require_installed(settings)
    _check_port(host, port)
    with _stopped_by_signals(), open_database(settings, create=True) as (url, embedded):
        prepare(settings, url, migrate=embedded is not None)
        if not settings.allow_unsafe_database:
            asyncio.run(require_durable(url))
        settings = settings.model_copy(update={"database_url": SecretStr(url)})
        with _supervised(embedded):
            notes.print(_greeting(f"http://{host}:{port}", settings))
            _run(settings, host, port, workers)


def prepare(settings: Settings, url: str, *, migrate: bool) -> None:
    """Bring the schema up to date, or refuse it; make the key and the first token where there are none.

    Raises:
        SchemaMismatch: the schema is not ours to migrate and not the one that is needed.
        KeyFileError: the key in the data directory cannot be used.
        CommandFailed: it is not the key that the database was filled under.
    """
    if settings.data_dir is None:
        asyncio.run(require_head(url))
        asyncio.run(_check_key(settings, url))
        return
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o711)
    with _exclusive(settings.data_dir / "setup.lock"):
        asyncio.run(upgrade(url) if migrate else require_head(url))
        asyncio.run(_check_key(settings, url))
        if settings.subject_key is None:
            load_or_create_key(settings.data_dir / KEY_FILE)
        asyncio.run(_first_token(url, settings.data_dir / ADMIN_FILE))


def _check_port(host: str, port: int) -> None:
    """Refuse an address that cannot be listened on, before anything is made."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        reason = "another program listens there" if taken else error.strerror
        raise CommandFailed(
            f"cannot listen on {host}, port {port}: {reason}; choose another with --host and --port"
        ) from error


async def _check_key(settings: Settings, url: str) -> None:
    """Refuse a subject key that the database was not filled under, before a key or a token is made."""
    async with Database.open(url, pool_size=1) as database:
        kept = await database.run_tx("installation.read", lambda c: read_fact(c, "subject_key"))
    key = settings.subject_key_bytes
    if key is None and settings.data_dir is not None and (settings.data_dir / KEY_FILE).exists():
        key = load_key(settings.data_dir / KEY_FILE)
    if kept is not None and (key is None or SubjectKey(key).fingerprint() != kept):
        raise CommandFailed(
            "this database was filled under another subject key: put its subject.key back into the data "
            "directory, or set DITHER_SUBJECT_KEY to it; nothing was made"
        )


async def _first_token(url: str, path: Path) -> None:
    """Write an admin token for a database that has no token at all."""
    async with Database.open(url, pool_size=1) as database:
        tokens = Tokens(database, SystemClock())
        if (await tokens.page(1, None)).items:
            return
        _, secret = await tokens.create(name="first start", roles={Role.ADMIN}, actor="command line")
        replace_secret(path, secret)
        _log.info("admin_token_written", path=str(path))


def worker() -> "FastAPI":
    """The application of one worker process, which ends when its supervisor dies."""
    _end_with_supervisor()
    return _create_app()


def _create_app(settings: Settings | None = None) -> "FastAPI":
    with collector_at_rest():
        from app.main import create_app  # most of what there is: no other command shall wait for it

        return create_app(settings)


# --------------------------------------------------------------------------------------- processes


def _run(settings: Settings, host: str, port: int, workers: int) -> None:
    application: str | Callable[[], FastAPI] = partial(_create_app, settings)
    if workers > 1:
        application = "app.cli.serve:worker"
        _pass_on(settings)
    try:
        uvicorn.run(
            application,
            factory=True,
            host=host,
            port=port,
            workers=workers,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="on",
            http=BoundedProtocol,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            timeout_worker_healthcheck=WORKER_PATIENCE_SECONDS,
        )
    except SystemExit as status:
        if status.code:
            raise CommandFailed("the service did not start; the log says why") from status
        raise


def _pass_on(settings: Settings) -> None:
    """Hand what the command line decided to the workers, which read the environment."""
    assert settings.database_url is not None, "the database is open"
    os.environ["DITHER_DATABASE_URL"] = settings.database_url.get_secret_value()
    if settings.data_dir is not None:
        os.environ["DITHER_DATA_DIR"] = str(settings.data_dir)


@contextmanager
def _supervised(embedded: EmbeddedPostgres | None) -> Iterator[None]:
    """Start the embedded database again whenever it dies."""
    if embedded is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        while not done.wait(SUPERVISION_SECONDS):
            try:
                if embedded.ensure_running():
                    _log.warning("postgres_restarted")
            except EmbeddedPostgresError as error:
                _log.error("postgres_not_restarted", reason=str(error))
            except OSError as error:
                _log.error("postgres_not_restarted", reason=error.strerror)

    thread = threading.Thread(target=watch, name="postgres-supervisor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGINT unwind the stack, so that a server of ours is stopped, and end with status 0."""

    def stop(_number: int, _frame: object) -> NoReturn:
        # A second interrupt must not leave the database running.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        sys.exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    yield


def _end_with_supervisor() -> None:
    """Ask this process to stop, in good order, once its supervisor is gone.

    Otherwise the workers of a supervisor that was killed would go on serving and hold its port.
    """
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return

    def watch() -> None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Only one service sets a data directory up at a time."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _greeting(address: str, settings: Settings) -> str:
    """Where the service is, and how to get in."""
    path = None if settings.data_dir is None else settings.data_dir / ADMIN_FILE
    written = path is not None and path.exists()
    token = f"the token in {path}" if written else "an admin's token (dither token recover makes one)"
    return f"Starting on {address}\nDashboard: {address}/dashboard, log in with {token}"
