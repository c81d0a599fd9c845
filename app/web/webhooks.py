"""Telling webhooks what happened, by the Standard Webhooks scheme: signed, and again until it is taken."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import httpcore
import structlog

from app.core.errors import InvalidRequest
from app.core.webhook import Delivery
from app.services.admin.webhooks import Webhooks
from app.services.background import for_ever, running

WATCH_SECONDS = 0.5
AT_ONCE = 50
PATIENCE_SECONDS = 4.0
"""Less than the time to the next attempt: none begins before the one before has ended."""

_IPV4_IN_IPV6 = IPv6Network("64:ff9b::/96")

PRIVATE = "leads to an address that is not public; DITHER_WEBHOOK_PRIVATE_ADDRESSES allows these"


def is_public(address: str) -> bool:
    """Whether an address is one of the internet, also where it holds another one.

    >>> [is_public(one) for one in ("1.1.1.1", "10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1")]
    [True, False, False, False]
    """
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo and found.teredo[1])
        if found in _IPV4_IN_IPV6:
            inner = IPv4Address(int(found) & 0xFFFFFFFF)
        if inner:
            return is_public(str(inner))
    return found.is_global and not found.is_multicast


async def addresses_of(host: str, port: int) -> list[str]:
    """The addresses of a host, each once.

    Raises:
        OSError: it has none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def check_url(url: str, *, private: bool) -> None:
    """Refuse an address that nothing may be sent to.

    A name that cannot be resolved now is taken: it is looked at again at each connection.

    Raises:
        InvalidRequest: it is no https:// URL, or leads to a private address where that is not allowed.
    """
    if " " in url or not (url.isascii() and url.isprintable()):
        raise InvalidRequest.field("url", "must be printable ASCII without spaces")
    if not url.lower().startswith(("https://", "http://") if private else "https://"):
        raise InvalidRequest.field("url", f"must be an {'http:// or https' if private else 'https'}:// URL")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidRequest.field("url", "has no host that can be read") from None
    if not parts.hostname:
        raise InvalidRequest.field("url", "has no host")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise InvalidRequest.field("url", "must have a port from 1 to 65535, or none")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidRequest.field("url", "must have no password and no fragment")
    if private:
        return
    with suppress(OSError, UnicodeError):
        if not all(map(is_public, await addresses_of(parts.hostname, port or 443))):
            raise InvalidRequest.field("url", PRIVATE)


class Guarded(httpcore.AsyncNetworkBackend):
    """Connects to the very addresses that it has checked: a name cannot lead elsewhere in between.

    Args:
        private: Whether addresses that are not public are allowed.
    """

    def __init__(self, *, private: bool) -> None:
        self._private = private
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - as the interface has it
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the host.

        Raises:
            httpcore.ConnectError: there is none to be had, or one of its addresses is not public.
        """
        try:
            addresses = await addresses_of(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError("the name has no address") from error
        if not self._private and not all(map(is_public, addresses)):
            raise httpcore.ConnectError(PRIVATE)
        refused: Exception | None = None
        for address in addresses:
            try:
                return await self._backend.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.ConnectError as error:
                refused = error
        raise httpcore.ConnectError("nothing answers there") from refused

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await self._backend.sleep(seconds)


def signed(delivery: Delivery, secret: str, now: datetime) -> list[tuple[bytes, bytes]]:
    """The headers of an attempt, by the Standard Webhooks scheme."""
    # Only what sends needs it, so that a service without webhooks starts without it.
    from standardwebhooks.webhooks import Webhook

    signature = Webhook(secret).sign(str(delivery.id), now, delivery.body)
    headers = {
        "content-type": "application/json",
        "user-agent": "dither",
        "webhook-id": str(delivery.id),
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signature,
    }
    return [(name.encode(), value.encode()) for name, value in headers.items()]


class Teller:
    """Sends what is due, in every process; no redirect is followed and no proxy used.

    Args:
        webhooks: What is due.
        private: Whether addresses that are not public are allowed.
    """

    def __init__(self, webhooks: Webhooks, *, private: bool) -> None:
        self._webhooks = webhooks
        self._private = private
        self._trusted: ssl.SSLContext | None = None
        self._log = structlog.get_logger("dither.webhooks")

    @asynccontextmanager
    async def telling(self) -> AsyncIterator[None]:
        """While this is open, what is due is sent."""
        async with running(for_ever(self._tell, WATCH_SECONDS, self._log, failed="webhooks_not_told")):
            yield

    async def _tell(self) -> bool:
        """Try everything that is due, at most `AT_ONCE` events; True where there were as many."""
        due = await self._webhooks.claim(AT_ONCE)
        if not due:
            return False
        if self._trusted is None:
            # It takes as long as all else of a start: a service without webhooks does without.
            self._trusted = await asyncio.to_thread(ssl.create_default_context)
        async with httpcore.AsyncConnectionPool(
            ssl_context=self._trusted,
            max_keepalive_connections=0,
            network_backend=Guarded(private=self._private),
        ) as pool:
            await asyncio.gather(*(self._try(pool, delivery) for delivery in due))
        return len(due) == AT_ONCE

    async def _try(self, pool: httpcore.AsyncConnectionPool, delivery: Delivery) -> None:
        status: int | None = None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                headers = signed(delivery, self._webhooks.secret(delivery.webhook_id), datetime.now(UTC))
                async with pool.stream(
                    "POST", delivery.url, headers=headers, content=delivery.body.encode()
                ) as response:
                    status = response.status
        except (TimeoutError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
            pass
        taken = status is not None and 200 <= status < 300
        if not taken:
            self._log.info("webhook_not_told", webhook=str(delivery.webhook_id), status=status)
        await self._webhooks.settle(delivery.id, taken=taken)
