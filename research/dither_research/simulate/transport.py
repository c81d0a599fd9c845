"""HTTP for a crowd: many devices on a few keep-alive connections, at little cost a request.

httpx is made for a handful of requests at a time: with many that wait, it takes longer to choose the next one
than the service takes to answer. Of 500 devices it carried 46 answers a second where this carries 420, and it
gets worse with their number (`python -m benchmarks fleet`, two cores). Here they queue, first come, first
served. A response that no person waits for any more, because its device went offline, is read to its end, so
its connection stays good.

The devices run the SDK's own operations; only what carries their requests is replaced.
"""

import asyncio
import ssl
from collections import deque
from decimal import Decimal
from pathlib import Path
from typing import cast

import httptools
import httpx
from dither import AsyncClient
from dither._flow import Reply, Request

READ_SECONDS = 60.0
CONNECT_SECONDS = 10.0
DEFAULT_PORTS = {"http": 80, "https": 443}


class CrowdClient(AsyncClient):
    """An `AsyncClient` for thousands of people at a time.

    Args:
        url, token: Where the service is, and as whom to talk to it.
        directory: Of the ledger.
        max_epsilon: The limit of each of them.
        connections: Limit of connections at a time.
    """

    def __init__(
        self, url: str, token: str, *, directory: Path, max_epsilon: Decimal | None, connections: int
    ) -> None:
        super().__init__(url, token, directory=directory, max_epsilon=max_epsilon)
        self._wire = Wire(self._base_url, dict(self._headers), connections)

    async def _send(self, request: Request) -> Reply:
        return await self._wire.send(request)

    async def aclose(self) -> None:
        """See `Client.close`."""
        await super().aclose()
        await self._wire.aclose()


class Wire:
    """Keep-alive connections to one service, and the queue for them.

    Args:
        base: Address of the service.
        headers: Of every request.
        connections: Limit of connections at a time.
    """

    def __init__(self, base: httpx.URL, headers: dict[str, str], connections: int) -> None:
        self._base = base
        self._prefix = base.raw_path.rstrip(b"/").decode()
        common = {"host": base.netloc.decode(), **headers}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in common.items())
        self._free = connections
        self._idle: list[_Connection] = []
        self._queue: deque[asyncio.Future[None]] = deque()
        self._under_way: set[asyncio.Task[Reply]] = set()

    async def send(self, request: Request) -> Reply:
        """The response to a request, sent when it is its turn."""
        await self._turn()
        task = asyncio.create_task(self._exchange(request))
        self._under_way.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """Stop what is under way and close the connections."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        for connection in self._idle:
            connection.close()

    async def _turn(self) -> None:
        if self._free:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Pass a turn on, or put it back."""
        while self._queue:
            place = self._queue.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1

    def _done(self, task: "asyncio.Task[Reply]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # no person may be left to look at it
        self._pass_on()

    async def _exchange(self, request: Request) -> Reply:
        connection = await self._connection()
        try:
            async with asyncio.timeout(READ_SECONDS + request.patience):
                reply = await connection.send(self._to_bytes(request))
        except TimeoutError as error:
            connection.close()
            raise httpx.ReadTimeout("no response in time") from error
        except BaseException:
            connection.close()
            raise
        if connection.open:
            self._idle.append(connection)
        return reply

    async def _connection(self) -> "_Connection":
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
        tls = ssl.create_default_context() if self._base.scheme == "https" else None
        port = self._base.port or DEFAULT_PORTS[self._base.scheme]
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await loop.create_connection(_Connection, self._base.host, port, ssl=tls)
        except TimeoutError as error:
            raise httpx.ConnectTimeout("no connection in time") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return connection

    def _to_bytes(self, request: Request) -> bytes:
        path, body = self._prefix + request.path, request.body or b""
        if request.query:
            path += f"?{httpx.QueryParams(list(request.query))}"
        own = "".join(f"{name}: {value}\r\n" for name, value in request.headers)
        head = f"{request.method} {path} HTTP/1.1\r\n{self._head}{own}content-length: {len(body)}\r\n\r\n"
        return head.encode() + body


class _Connection(asyncio.Protocol):
    """One connection, and the one response that it may be waiting for."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Reply] | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self.open = True

    def send(self, data: bytes) -> "asyncio.Future[Reply]":
        """Send a request; the future is its response."""
        if self._transport is None or not self.open:
            raise httpx.WriteError("the connection is closed")
        self._waiting = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._retry_after: str | None = None
        self._body: list[bytes] = []
        self._transport.write(data)
        return self._waiting

    def close(self) -> None:
        """Close it."""
        self.open = False
        if self._transport is not None:
            self._transport.close()

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            if self._parser is None:
                raise httptools.HttpParserError("nothing was asked")
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(httpx.RemoteProtocolError(f"not a response: {error}"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self._fail(httpx.ReadError(str(error) if error else "the connection was cut"))

    def _fail(self, error: httpx.TransportError) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser is None or self._waiting is None or self._waiting.done():
            return
        if not self._parser.should_keep_alive():
            self.close()
        self._waiting.set_result(
            Reply(
                status=self._parser.get_status_code(),
                body=b"".join(self._body),
                retry_after=self._retry_after,
            )
        )
