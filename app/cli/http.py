"""What the commands that talk HTTP share: where the service is, who asks, and what a problem says."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Annotated

import httpx
import typer
from dither import Client, DitherError, ProblemError, Retry, StudyChanged, TransportError
from dither.device.table import NotOneNumber, check_meant

from app.cli.common import CommandFailed, notes, usage_error
from app.core.grid import NotANumber
from app.core.numbers import to_decimal, why_no_number

TIMEOUT_SECONDS = 60
PORTS = range(1, 65536)


def _address(text: str) -> str:
    """The address of a service; a usage error if it is none."""
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        url = None
    known = url is not None and url.scheme in ("http", "https") and url.host
    if url is None or not known or (url.port is not None and url.port not in PORTS):
        raise usage_error("must be an address such as http://127.0.0.1:8000 (--url, or DITHER_URL)")
    return text


def _bearer(text: str | None) -> str | None:
    """A token that fits a header; a usage error, which does not show it, if it cannot be one."""
    if text and not (text.isascii() and text.isprintable() and " " not in text):
        raise usage_error("must be printable ASCII without spaces (--token, or DITHER_TOKEN)")
    return text


Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="DITHER_URL",
        show_envvar=False,
        callback=_address,
        help="Address of the service (DITHER_URL).",
    ),
]

Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        envvar="DITHER_TOKEN",
        show_envvar=False,
        callback=_bearer,
        help="Bearer token (DITHER_TOKEN).",
    ),
]

StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="Slug of the study.")]

DEFAULT_URL = "http://127.0.0.1:8000"


def needed(token: str | None) -> str:
    """The token, which every command needs."""
    if not token:
        raise usage_error("give --token, or set DITHER_TOKEN")
    return token


@contextmanager
def service(
    url: str, token: str | None, *, directory: Path | None = None, max_epsilon: str | None = None
) -> Iterator[Client]:
    """The service at an address, as the bearer of a token.

    Args:
        url, token: From the command line.
        directory: Where a device remembers what it gave away; None: it gives nothing.
        max_epsilon: That device's own limit.

    Raises:
        CommandFailed: there was no answer, or a study is not the one that this device saw before.
    """
    client = Client(
        url,
        needed(token),
        directory=directory,
        max_epsilon=max_epsilon,
        timeout=TIMEOUT_SECONDS,
        retry=Retry(on_wait=_say_waiting),
    )
    with client:
        try:
            yield client
        except StudyChanged as error:
            other = f"what it saw is in {directory}; another service takes a --directory of its own"
            raise CommandFailed(f"{error}; {other}") from error
        except TransportError as error:
            raise CommandFailed(f"no answer from {url} (--url, or DITHER_URL): {error}") from error


def _say_waiting(seconds: float) -> None:
    notes.print(f"The service asks to come back later: waiting {ceil(seconds):,} s.")


def number(text: str, option: str) -> Decimal:
    """A decimal number from the command line, with every digit."""
    try:
        return to_decimal(text)
    except NotANumber:
        raise usage_error(f"{option}: {text!r} {why_no_number(text)}") from None


def range_end(text: str, option: str) -> Decimal:
    """An end of a range, which stays for good: what may mean two numbers is asked back."""
    try:
        check_meant(text)
    except NotOneNumber as question:
        raise usage_error(f"{option}: {text} {question}") from None
    return number(text, option)


def optional(text: str | None, option: str) -> Decimal | None:
    """The same, of an option that need not be given."""
    return None if text is None else number(text, option)


def integer(text: str, option: str) -> int:
    """An integer from the command line."""
    value = number(text, option)
    if value != value.to_integral_value():
        raise usage_error(f"{option}: {text!r} is not an integer")
    return int(value)


def explain(error: ProblemError) -> str:
    """What the service refused, and why, for a person."""
    reason = f"{error.detail} ({error.code})" if error.detail else f"the service answered {error}"
    if error.detail and error.retry_after is not None:
        reason += f"; it may be asked again in {ceil(error.retry_after):,} s"
    if error.status >= 500 and error.request_id:
        reason += f", request {error.request_id} in the service's log"
    # The detail of a single field is that field and its reason.
    rows = [f"{field.field}: {field.reason}" for field in error.errors]
    rows = [*getattr(error, "__notes__", ()), *(row for row in rows if row != error.detail)]
    return reason + "".join(f"\n  {row}" for row in rows)


def failure_of(error: Exception) -> tuple[str, int] | None:
    """What is reported of an error in place of a traceback, and the exit status; None for a fault of ours."""
    from app.core.errors import SchemaMismatch, ServiceError
    from app.postgres.embedded import EmbeddedPostgresError
    from app.settings import SettingsError
    from app.store.keyfile import KeyFileError

    match error:
        case SettingsError():
            return str(error), 2
        case ProblemError():
            return explain(error), 1
        case (
            CommandFailed()
            | DitherError()
            | EmbeddedPostgresError()
            | KeyFileError()
            | SchemaMismatch()
            | ServiceError()
            | httpx.HTTPError()
        ):
            return str(error) or type(error).__name__, 1
        case OSError():
            return str(error), 1
    return None
