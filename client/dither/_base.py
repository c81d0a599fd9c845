"""What both clients are made of."""

import os
import ssl
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx

from dither._device import Device
from dither._errors import InvalidRequest
from dither._flow import Pairs, Reply, Request, Retry
from dither._ledger import Ledger
from dither._operations import Operations
from dither._stores import AnyDevice, NoLedger, Store, StoreDevice
from dither.device.numbers import NotANumber, Numeric, epsilon_limit

__version__ = "0.9.0"

DEFAULT_TIMEOUT = 30.0
DEFAULT_CHUNK = 5_000

Directory = str | os.PathLike[str]
Timeout = float | httpx.Timeout | None
Proxy = str | httpx.URL | httpx.Proxy | None


class BaseClient:
    """The configuration that the clients share."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        directory: Directory | None,
        store: Store | None,
        max_epsilon: Numeric | None,
        retry: Retry | None,
    ) -> None:
        self._base_url = _check_url(base_url)
        self._headers = _headers(token)
        self._ledger = None if directory is None else Ledger(Path(directory).expanduser())
        limit = _check_limit(max_epsilon)
        if store is not None and directory is not None:
            raise InvalidRequest("store", "cannot be given beside a directory: a ledger is in one place")
        if limit is not None and self._ledger is None and store is None:
            raise InvalidRequest("max_epsilon", "needs a directory, or a store, to keep count in")
        device: AnyDevice = NoLedger()
        if self._ledger is not None:
            device = Device(self._ledger, limit)
        elif store is not None:
            device = StoreDevice(store, limit)
        self._operations = Operations(retry=retry or Retry(), device=device)
        self._calls = self._operations.calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._base_url)!r})"

    def _http_options(self, timeout: Timeout, proxy: Proxy) -> dict[str, Any]:
        if not isinstance(timeout, httpx.Timeout):
            # Waiting for a free connection is not the service's fault and ends by itself.
            timeout = httpx.Timeout(timeout, pool=None)
        self._timeout = timeout
        return {
            "base_url": self._base_url,
            "headers": self._headers,
            "timeout": timeout,
            "proxy": proxy,
            "verify": _tls(),
        }

    def _request_options(self, request: Request) -> dict[str, Any]:
        """A request as httpx takes it."""
        options: dict[str, Any] = {
            "method": request.method,
            "url": _join(self._base_url, request.path, request.query),
            "content": request.body,
            "headers": dict(request.headers),
        }
        if request.patience and self._timeout.read is not None:
            parts = self._timeout.as_dict()
            options["timeout"] = httpx.Timeout(**{**parts, "read": self._timeout.read + request.patience})
        return options


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """One TLS configuration for all clients: reading the certificates takes longer than all the rest."""
    return httpx.create_ssl_context()


@lru_cache(maxsize=1024)
def _join(base: httpx.URL, path: str, query: Pairs) -> httpx.URL:
    """A whole address; taking addresses apart is most of what a request costs, and most come again."""
    whole = base.raw_path.rstrip(b"/") + path.encode()
    if query:
        whole += b"?" + str(httpx.QueryParams(list(query))).encode()
    return base.copy_with(raw_path=whole)


def to_reply(response: httpx.Response) -> Reply:
    """A response that httpx has read to its end."""
    return Reply(
        status=response.status_code, body=response.content, retry_after=response.headers.get("retry-after")
    )


def _check_url(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError, ValueError):
        url = None
    if url is None or url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest("base_url", "must be an http or https address")
    return url


def _headers(token: str) -> Mapping[str, str]:
    token = (token or "").strip()  # a file of one line ends with a line end
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidRequest("token", "is not one that this service gives out")
    return {
        "authorization": f"Bearer {token}",
        "accept": "application/json, application/problem+json",
        "user-agent": f"dither/{__version__}",
    }


def _check_limit(max_epsilon: Numeric | None) -> int | None:
    if max_epsilon is None:
        return None
    try:
        limit = epsilon_limit(max_epsilon)
    except NotANumber:
        raise InvalidRequest("max_epsilon", "is not a finite decimal number") from None
    if limit < 0:
        raise InvalidRequest("max_epsilon", "may not be negative")
    return limit
