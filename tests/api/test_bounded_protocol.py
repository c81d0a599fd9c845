"""What a connection may hold and how long it may be silent, before any token is seen."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import psutil
import pytest
import uvicorn
from uvicorn.server import ServerState

from app.web.bounded_protocol import MAX_HEAD_BYTES, MAX_PIPELINED, BoundedProtocol
from tests.conftest import LiveServer

HEAD_SECONDS = 0.3
PATIENCE_SECONDS = 20
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = b"x" * (4 * MAX_HEAD_BYTES)

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body and the number of header fields; without reading at /deaf."""
    length, more = 0, scope["path"] != "/deaf"
    while more:
        message = await receive()
        length += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = json.dumps([length, len(scope["headers"])]).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """A function that opens a connection to a server with a short patience."""
    config = uvicorn.Config(_echo, lifespan="off", ws="none", log_config=None, timeout_keep_alive=3600)
    config.load()
    state = ServerState()
    protocol = partial(
        BoundedProtocol, head_seconds=HEAD_SECONDS, config=config, server_state=state, app_state={}
    )
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    writers = []

    async def opened() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        return reader, writer

    async with server:
        yield opened
        for writer in writers:
            writer.close()
    # Every connection is gone, and nothing waits for it.
    for _ in range(PATIENCE_SECONDS * 100):
        if not state.connections and not state.tasks:
            break
        await asyncio.sleep(0.01)
    assert not state.connections
    assert not state.tasks


async def all_of(reader: asyncio.StreamReader) -> bytes:
    """Everything until the server closes."""
    answer = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        with suppress(ConnectionResetError):
            while part := await reader.read(65536):
                answer += part
    return answer


async def answers(reader: asyncio.StreamReader, count: int) -> list[Any]:
    """The documents of the next answers."""
    found = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(count):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            found.append(json.loads(await reader.readexactly(length)))
    return found


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + ENDLESS,
        b"GET / HTTP/1.1\r\n" + ENDLESS,
        b"GET / HTTP/1.1\r\nx: " + ENDLESS,
        b"GET / HTTP/1.1\r\n" + b"a:\r\n" * MAX_HEAD_BYTES,
        b"G" + b"\r\n" * 10 + GET[1:-2] + b"x: " + ENDLESS,
        b"\r\n" * MAX_HEAD_BYTES,
    ],
    ids=["target", "name", "value", "fields", "nonsense", "empty lines"],
)
async def test_a_head_that_does_not_end_is_refused(connect: Connect, head: bytes) -> None:
    reader, writer = await connect()
    writer.write(head)
    answer = await all_of(reader)
    assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
    assert answer.count(b"HTTP/1.1") == 1


async def test_the_refusal_of_a_head_is_a_problem_document(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(GET + b"GET / HTTP/1.1\r\nx: ")
    await answers(reader, 1)
    writer.write(ENDLESS)
    head, _, body = (await all_of(reader)).partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"connection: close" in head.lower()
    assert json.loads(body)["code"] == "head_too_large"


async def test_a_trailer_that_does_not_end_is_cut_off(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(CHUNKED + b"1\r\nx\r\n0\r\nx: " + ENDLESS)
    assert await all_of(reader) == b""


@pytest.mark.parametrize("extension", [b"1;x=" + ENDLESS, b"0" * len(ENDLESS)])
async def test_a_chunk_that_does_not_begin_is_cut_off(connect: Connect, extension: bytes) -> None:
    reader, writer = await connect()
    writer.write(CHUNKED + extension)
    answer = await all_of(reader)
    assert not answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [b"", b"G", GET[:-2], b"\r\n", GET, GET + GET[:-2], GET + b"\r\n"],
    ids=["nothing", "a letter", "a head", "a line", "a request", "a second head", "a second line"],
)
async def test_a_connection_that_falls_silent_is_closed(connect: Connect, sent: bytes) -> None:
    reader, writer = await connect()
    writer.write(sent[: len(GET)])
    if sent.startswith(GET):
        await answers(reader, 1)
        # A byte between two requests ends the server's patience with idle connections, and begins ours.
        writer.write(sent[len(GET) :] or b"\r\n")
    assert await all_of(reader) == b""


async def test_a_head_that_dribbles_in_is_cut_off(connect: Connect) -> None:
    reader, writer = await connect()

    async def dribble() -> None:
        with suppress(ConnectionError):
            writer.write(GET[:-2])
            while True:
                writer.write(b"a: b\r\n")
                await writer.drain()
                await asyncio.sleep(HEAD_SECONDS / 10)

    task = asyncio.create_task(dribble())
    assert await all_of(reader) == b""
    task.cancel()


async def test_a_body_that_was_not_waited_for_may_not_fall_silent(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(b"POST /deaf HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
    await answers(reader, 1)
    writer.write(b"x")
    assert await all_of(reader) == b""


async def test_requests_that_wait_for_no_answer_are_limited(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(GET * MAX_PIPELINED)
    assert await answers(reader, MAX_PIPELINED) == [[0, 1]] * MAX_PIPELINED
    writer.write(GET * 20_000)
    assert b"HTTP/1.1 400" not in await all_of(reader)


async def test_long_bodies_and_long_heads_within_the_bounds_are_taken(connect: Connect) -> None:
    reader, writer = await connect()
    size = 3_000_000
    long = b"Authorization: " + b"x" * (MAX_HEAD_BYTES - 200) + b"\r\n"
    writer.write(POST + long + b"Content-Length: %d\r\n\r\n" % size + b"y" * size)
    chunks = b"".join(b"%x;e=1\r\n%s\r\n" % (length, b"z" * length) for length in (1, 100, 100_000))
    writer.write(CHUNKED + chunks + b"0\r\nauthorization: trailer\r\n\r\n" + GET)
    assert await answers(reader, 3) == [[size, 3], [100_101, 2], [0, 1]]
    # Tiny chunks are slow, and no reason to refuse anything.
    writer.write(CHUNKED + b"1\r\nx\r\n" * 50_000 + b"0\r\n\r\n")
    assert await answers(reader, 1) == [[50_000, 2]]


@pytest.mark.system
def test_the_service_holds_little_for_strangers(live_server: LiveServer) -> None:
    """300 MiB of unfinished heads on 100 connections: none is read to its end, and memory stays."""
    service = live_server(workers=2)
    family = [psutil.Process(service.pids[0]), *psutil.Process(service.pids[0]).children(recursive=True)]

    def resident() -> int:
        return sum(process.memory_info().rss for process in family)

    before = resident()
    piece = b"x" * 65536
    with ExitStack() as connections:
        for _ in range(100):
            opened = socket.create_connection(("127.0.0.1", service.processes[0].port), timeout=30)
            connection = connections.enter_context(opened)
            connection.sendall(b"GET / HTTP/1.1\r\nx: ")
            with suppress(ConnectionError):
                for _ in range(48):
                    connection.sendall(piece)
            assert refused(connection)
        grown = resident() - before
    with service.client() as client:
        assert client.get("/v1/studies").status_code == 200
    assert grown < 50 << 20


def refused(connection: socket.socket) -> bool:
    """Whether the server answers with 431, or has closed before all was sent."""
    try:
        return connection.recv(12) in (b"HTTP/1.1 431", b"")
    except ConnectionError:
        return True
