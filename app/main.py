"""The application: settings in, ASGI out. Nothing is made at import."""

import asyncio
import gc
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import FrameType
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from app.api import application
from app.core.clock import SystemClock
from app.core.epsilon import delta_limit, epsilon_limit
from app.core.errors import Unavailable
from app.core.principal import Role
from app.dashboard import application as dashboard
from app.estimators import registry
from app.logging import configure_logging
from app.postgres.embedded import EmbeddedPostgres
from app.services import Services
from app.services.subjects import SubjectKey
from app.services.work import Work
from app.settings import Settings, SettingsError
from app.store.database import Database
from app.store.keyfile import KEY_FILE, load_or_create_key
from app.store.migrate import head_revision, require_head, unsafe_words, upgrade
from app.web.metrics import Metrics
from app.web.oidc import Grant, Provider, Verifier
from app.web.rate import RateLimit
from app.web.schedules import Asker
from app.web.sign_in import SignIn
from app.web.state import Api, Limits, State
from app.web.tracing import OpenTelemetry, Tracing, TracingNotInstalled, require_telemetry
from app.web.webhooks import Teller

if TYPE_CHECKING:
    import httpx

PROVIDER_TIMEOUT_SECONDS = 5.0
RECORDS_BETWEEN_COLLECTIONS = 20_000

SECONDS_BETWEEN_THREADS = 0.001
"""How long a thread that computes keeps the interpreter from the event loop, which often asks for it."""


def require_installed(settings: Settings) -> None:
    """Allow the estimators of other distributions, and make sure that what settings name is installed.

    Raises:
        SettingsError: it is not.
    """
    try:
        registry.allow(settings.estimators)
    except ValueError as error:
        raise SettingsError(f"DITHER_ESTIMATORS: {error}") from None
    try:
        if settings.telemetry:
            require_telemetry()
    except TracingNotInstalled as error:
        raise SettingsError(f"DITHER_TELEMETRY: {error}") from None


def create_app(settings: Settings | None = None) -> FastAPI:
    """The ASGI application. `dither serve` runs it, under the protocol of `app.web.bounded_protocol`.

    Args:
        settings: What the operator decided; read from the environment if not given.

    Raises:
        SettingsError: the environment does not describe a service.
    """
    if settings is None:
        settings = Settings.load()
        configure_logging(settings.log_level)
    require_installed(settings)
    tracing = OpenTelemetry(_version()) if settings.telemetry else Tracing()
    metrics = Metrics(_version(), tracing)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        async with open_api(settings, metrics) as api:
            # What start-up made stays for good; under load the collector would walk it again and again. So
            # it would the records of a release, of which there may be some for each of thousands of cohorts.
            gc.freeze()
            sys.setswitchinterval(SECONDS_BETWEEN_THREADS)
            gc.set_threshold(RECORDS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
            with on_shutdown_signal(api.services.sessions.stop_waiting):
                yield State(api=api)
            gc.unfreeze()
            await asyncio.to_thread(metrics.tracing.close)

    app = application.Application(
        title="Dither",
        version=_version(),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Its spans and logs would carry paths, which name subjects, and the messages of exceptions.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    application.install(
        app,
        metrics,
        timeout_seconds=settings.request_timeout_seconds,
        cors_origins=settings.cors_origins,
    )
    dashboard.install(app)
    return app


@contextmanager
def on_shutdown_signal(call: Callable[[], None]) -> Iterator[None]:
    """Within this context, call this as soon as the process gets the signal to end.

    The lifespan hears of it only after the last open request, and a request that waits for a session to
    move on would be cut off when the server's time limit is over. So the server's own handlers are wrapped;
    where it has none, or runs in another thread, there is nothing to wrap.
    """
    loop = asyncio.get_running_loop()
    wrapped: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def tell(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(call)
        wrapped[number](number, frame)

    if threading.current_thread() is threading.main_thread():
        for ending in (signal.SIGTERM, signal.SIGINT):
            handler = signal.getsignal(ending)
            if callable(handler):
                wrapped[ending] = handler
                signal.signal(ending, tell)
    try:
        yield
    finally:
        for number, handler in wrapped.items():
            signal.signal(number, handler)


@asynccontextmanager
async def open_api(settings: Settings, metrics: Metrics) -> AsyncIterator[Api]:
    """Open the database and the services, and close them again.

    Raises:
        SettingsError: there is no database or no subject key to be had.
        SchemaMismatch: the database has another schema than this program works on, or may lose commits.
        InternalFault: the database was filled under another subject key.
    """
    async with AsyncExitStack() as stack:
        url = await _database_url(settings, stack)
        subject_key = SubjectKey(_subject_key(settings))
        head = head_revision()
        database = Database.open(
            url, pool_size=settings.database_pool_size, subject_key=subject_key.fingerprint(), schema=head
        )
        stack.push_async_callback(database.close)
        await require_head(database.pool, durable=not settings.allow_unsafe_database)
        gaussian, delta = settings.lifetime_gaussian_parts
        services = Services.build(
            database,
            SystemClock(),
            subject_key,
            lifetime_epsilon=epsilon_limit(settings.lifetime_epsilon),
            lifetime_gaussian=(epsilon_limit(gaussian), delta_limit(delta)),
            observer=metrics,
            login_seconds=settings.login_minutes * 60,
            idempotency_days=settings.idempotency_days,
        )
        stack.push_async_callback(services.figures.close)
        await services.check_subject_key()
        await stack.enter_async_context(services.session_watch.watching())
        await stack.enter_async_context(services.replies.purged())
        teller = Teller(services.webhooks, private=settings.webhook_private_addresses)
        await stack.enter_async_context(teller.telling())

        async def check_ready() -> None:
            condition = await database.ping()
            if list(condition.revisions) != [head]:
                raise Unavailable("The database has another schema than this version of the service.")
            if condition.unsafe and not settings.allow_unsafe_database:
                raise Unavailable(unsafe_words(condition.unsafe))
            if condition.full:
                raise Unavailable("The disk of the database is full.")
            await services.require_subject_key()

        work = Work(
            metrics.answered,
            at_once=settings.work_at_once,
            of_one=settings.work_of_one_token,
            patience=settings.work_patience_seconds,
        )
        stack.callback(work.close)
        await stack.enter_async_context(Asker(services, work).asking())

        verifier = sign_in = None
        if (provider := _provider(settings)) is not None:
            import httpx  # as much as a web framework: only who has a provider loads it

            http = httpx.AsyncClient(timeout=PROVIDER_TIMEOUT_SECONDS, follow_redirects=False)
            await stack.enter_async_context(http)
            verifier = Verifier(provider, http)
            sign_in = _sign_in(settings, verifier, http)

        yield Api(
            services=services,
            work=work,
            limits=Limits(
                document=settings.max_body_bytes,
                batch=settings.max_batch_bytes,
                batch_content=settings.max_batch_bytes,
            ),
            metrics=metrics,
            rate=RateLimit(settings.rate_limit_per_minute),
            oidc=verifier,
            sign_in=sign_in,
            public_url=settings.public_url,
            embed_origins=settings.embed_origins,
            webhook_private_addresses=settings.webhook_private_addresses,
            check_ready=check_ready,
        )


async def _database_url(settings: Settings, stack: AsyncExitStack) -> str:
    """The database of the settings, or the embedded one, found or started, and brought up to date."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    if settings.data_dir is None:
        raise SettingsError("set DITHER_DATABASE_URL, or DITHER_DATA_DIR for an embedded database")
    embedded = EmbeddedPostgres(settings.data_dir, settings.postgres_bin)
    url = await asyncio.to_thread(embedded.start)
    stack.push_async_callback(asyncio.to_thread, embedded.stop)
    await upgrade(url)
    return url


def _provider(settings: Settings) -> Provider | None:
    """The identity provider whose JWTs are taken; None where there is none."""
    if settings.oidc_issuer is None or settings.oidc_audience is None:
        return None
    return Provider(
        issuer=settings.oidc_issuer,
        audience=settings.oidc_audience,
        jwks_url=settings.oidc_jwks_url,
        role_claim=settings.oidc_role_claim,
        name_claim=settings.oidc_name_claim,
        roles={
            value: Grant(
                roles=frozenset(map(Role, found.names)),
                studies=None if found.studies is None else frozenset(found.studies),
            )
            for value, found in settings.oidc_roles.items()
        },
    )


def _sign_in(settings: Settings, verifier: Verifier, http: "httpx.AsyncClient") -> SignIn | None:
    if settings.oidc_client_id is None:
        return None
    secret = settings.oidc_client_secret
    return SignIn(
        verifier, http, settings.oidc_client_id, None if secret is None else secret.get_secret_value()
    )


def _subject_key(settings: Settings) -> bytes:
    key = settings.subject_key_bytes
    if key is not None:
        return key
    if settings.data_dir is None:
        raise SettingsError("set DITHER_SUBJECT_KEY, or DITHER_DATA_DIR for a key in a file")
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    return load_or_create_key(settings.data_dir / KEY_FILE)


@cache
def _version() -> str:
    try:
        return version("dither-server")
    except PackageNotFoundError:
        return "0.0.0"
