"""Fixtures: a service in memory and clients of it, synchronous and asynchronous alike."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from dither import AsyncClient, Client, Retry

from tests.client.service import FakeService

IMPATIENT = Retry(base_seconds=0)


class Portal:
    """An `AsyncClient` that is called like a `Client`."""

    def __init__(self, client: AsyncClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, "aclose" if name == "close" else name)

        @wraps(method)
        def call(*args: Any, **keywords: Any) -> Any:
            done = method(*args, **keywords)
            if isinstance(done, AsyncIterator):
                return self._collect(done)
            return self._loop.run_until_complete(done)

        return call

    def _collect(self, items: AsyncIterator[Any]) -> list[Any]:
        async def collect() -> list[Any]:
            return [item async for item in items]

        return self._loop.run_until_complete(collect())


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture(params=["Client", "AsyncClient"])
def connect(
    request: pytest.FixtureRequest, service: FakeService, tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    """Makes clients; all of one test share a directory unless they say otherwise."""
    loop = asyncio.new_event_loop()
    made: list[Any] = []

    def make(**options: Any) -> Any:
        defaults = {
            "directory": tmp_path / "device",
            "retry": IMPATIENT,
            "transport": service.transport,
        }
        options = {**defaults, **options}
        client: Any
        if request.param == "Client":
            client = Client("https://dither.example", "token", **options)
        else:
            client = Portal(AsyncClient("https://dither.example", "token", **options), loop)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@pytest.fixture
def client(connect: Callable[..., Any]) -> Any:
    return connect()
