"""What the commands that talk HTTP share: where the service is, who asks, and what a problem says."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import typer
from dither import ProblemError

from app.cli.common import CommandFailed, usage_error

TIMEOUT_SECONDS = 60
PAGE = 200
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

DEFAULT_URL = "http://127.0.0.1:8000"


def needed(token: str | None) -> str:
    """The token, without which no command can be meant."""
    if not token:
        raise usage_error("give --token, or set DITHER_TOKEN")
    return token


class Api:
    """The service, over HTTP; what is no success becomes `CommandFailed`."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def call(
        self, method: str, path: str, *, document: object = None, query: Mapping[str, str] | None = None
    ) -> Any:
        """The JSON document that a request is answered with; None where there is none."""
        try:
            response = self._http.request(
                method, f"/v1/{path}", json=document, params=None if query is None else dict(query)
            )
        except httpx.HTTPError as error:
            raise CommandFailed(
                f"no answer from {self._http.base_url}: {str(error) or type(error).__name__}"
            ) from error
        if response.is_success:
            return response.json() if response.content else None
        raise CommandFailed(_problem(response))

    def all(self, path: str) -> list[dict[str, Any]]:
        """All items of a list, page by page."""
        items: list[dict[str, Any]] = []
        query = {"limit": str(PAGE)}
        while True:
            page = self.call("GET", path, query=query)
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            query["cursor"] = page["next_cursor"]


@contextmanager
def service(url: str, token: str | None) -> Iterator[Api]:
    """The service at an address, as the bearer of a token."""
    headers = {"Authorization": f"Bearer {needed(token)}"}
    with httpx.Client(base_url=url, headers=headers, timeout=TIMEOUT_SECONDS) as http:
        yield Api(http)


def segment(text: str) -> str:
    """A piece of a path, percent-encoded."""
    return quote(text, safe="")


def number(text: str, option: str) -> int | float:
    """A decimal number from the command line, as JSON has it."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise usage_error(f"{option}: {text!r} is not a number") from None
    if not value.is_finite():
        raise usage_error(f"{option}: must be finite")
    return int(value) if value == value.to_integral_value() else float(value)


def explain(error: ProblemError) -> str:
    """The SDK's problem, for a person."""
    fields = "".join(f"\n  {field.field}: {field.reason}" for field in error.errors)
    return f"{error}{fields}"


def _problem(response: httpx.Response) -> str:
    try:
        problem = response.json()
        text = f"{problem['detail']} ({problem['code']})"
        fields = problem.get("errors") or ()
    except (ValueError, KeyError, TypeError):
        return f"the service answered {response.status_code} {response.reason_phrase}"
    return text + "".join(f"\n  {field['field']}: {field['reason']}" for field in fields)
