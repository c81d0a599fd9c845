"""What both clients are made of."""

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from dither._device import Device
from dither._errors import PROXY, InvalidRequest
from dither._flow import Pairs, Reply, Request, Retry
from dither._ledger import Ledger
from dither._operations import Operations
from dither._stores import AnyDevice, NoLedger, Store, StoreDevice
from dither.device.numbers import NotANumber, Numeric, epsilon_limit

__version__ = "1.0.0"

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

    def _http_options(
        self, timeout: Timeout, proxy: Proxy, ca: Directory | None, transport: object
    ) -> dict[str, Any]:
        if not isinstance(timeout, httpx.Timeout):
            # Waiting for a free connection is not the service's fault and ends by itself.
            timeout = httpx.Timeout(timeout, pool=None)
        self._timeout = timeout
        self._proxy = _proxy_for(self._base_url, proxy, transport)
        return {
            "transport": transport,
            "base_url": self._base_url,
            "headers": self._headers,
            "timeout": timeout,
            "proxy": proxy,
            "verify": _tls(str(ca or os.environ.get("DITHER_CA") or "")),
        }

    def _request_options(self, request: Request) -> dict[str, Any]:
        """A request as httpx takes it."""
        options: dict[str, Any] = {
            "method": request.method,
            "url": _join(self._base_url, request.path, request.query),
            "content": request.body,
            "headers": dict(request.headers),
        }
        if self._proxy is not None:
            # What went wrong may be its fault.
            options["extensions"] = {PROXY: self._proxy}
        if request.patience and self._timeout.read is not None:
            parts = self._timeout.as_dict()
            options["timeout"] = httpx.Timeout(**{**parts, "read": self._timeout.read + request.patience})
        return options


@lru_cache(maxsize=8)
def _tls(ca: str) -> ssl.SSLContext:
    """One TLS configuration for all clients: reading the certificates takes longer than all the rest.

    Args:
        ca: A file, or a directory, of certificates that are trusted besides the usual ones; may be empty.

    Raises:
        InvalidRequest: there is none.
    """
    try:
        context = httpx.create_ssl_context()
    except OSError as fault:
        raise InvalidRequest("SSL_CERT_FILE", f"names no certificates: {fault}") from None
    if ca:
        try:
            context.load_verify_locations(**{"capath" if Path(ca).is_dir() else "cafile": ca})
        except OSError as fault:
            raise InvalidRequest("ca", f"(DITHER_CA) names no certificates in PEM, {ca}: {fault}") from None
    return context


@contextmanager
def configured() -> Iterator[None]:
    """Names what httpx cannot use of its configuration.

    Raises:
        InvalidRequest: the proxy.
    """
    try:
        yield
    except (httpx.InvalidURL, ValueError, ImportError) as fault:
        reason = "is none that can be used; look at proxy=, HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
        raise InvalidRequest("proxy", f"{reason}: {fault}") from None


def _proxy_for(url: httpx.URL, proxy: Proxy, transport: object) -> str | None:
    """Where requests go to first, without what it takes to log in there; None for the service itself."""
    if transport is not None:
        return None
    if proxy is None:
        found = {} if proxy_bypass(url.host) else getproxies()
        proxy = found.get(url.scheme) or found.get("all")
    if not proxy:
        return None
    with configured():
        own = proxy.url if isinstance(proxy, httpx.Proxy) else httpx.URL(proxy)
    return f"{own.scheme}://{own.netloc.decode()}" if own.host else str(own)


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
        raise InvalidRequest("token", "is missing, or is none that a service gives out")
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
