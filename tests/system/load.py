"""Concurrent clients of a live service."""

import asyncio
import json
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from app.postgres.embedded import EmbeddedPostgres
from app.services.admin.ledger import Finding, Ledger
from app.store.database import Database
from tests.support.live import NO_TLS, LiveService, is_ready, run_command

Item = TypeVar("Item")

PATIENCE = 60.0
"""Seconds that a request may take on a machine that is busy with many processes."""


@dataclass
class Reply:
    """What a request was answered, or that it was not."""

    status: int
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body).get("code", ""))

    @property
    def acknowledged(self) -> bool:
        return self.status in (200, 201)


NO_REPLY = Reply(status=0, body=b"{}")


@dataclass
class Crowd:
    """Clients of every process of a service, each bearing one token."""

    service: LiveService
    token: str
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    async def __aenter__(self) -> "Crowd":
        self.clients = [
            httpx.AsyncClient(
                base_url=process.base_url,
                headers={"Authorization": f"Bearer {self.token}"},
                timeout=PATIENCE,
                limits=httpx.Limits(max_connections=None),
                verify=NO_TLS,
            )
            for process in self.service.processes
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self.clients:
            await client.aclose()

    async def post(self, path: str, document: Any, *, turn: int = 0, key: str | None = None) -> Reply:
        """POST to one of the processes; NO_REPLY where the connection broke."""
        return await self.send("POST", path, document, turn=turn, key=key)

    async def send(
        self, method: str, path: str, document: Any = None, *, turn: int = 0, key: str | None = None
    ) -> Reply:
        """Any request to one of the processes; NO_REPLY where the connection broke."""
        headers = {} if key is None else {"Idempotency-Key": key}
        client = self.clients[turn % len(self.clients)]
        try:
            response = await client.request(method, path, json=document, headers=headers)
        except httpx.TransportError:
            return NO_REPLY
        return Reply(status=response.status_code, body=response.content)


async def at_once(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Reply]], clients: int
) -> list[Reply]:
    """Work on items by so many clients at a time, in order of the items."""
    places = asyncio.Semaphore(clients)

    async def one(item: Item) -> Reply:
        async with places:
            return await work(item)

    return list(await asyncio.gather(*(one(item) for item in items)))


def make_study(service: LiveService, slug: str, **fields: Any) -> None:
    """A study for numbers in [0, 100]."""
    document = {"slug": slug, "lower": 0, "upper": 100, "trust": ["central"], **fields}
    with service.client() as admin:
        response = admin.post("/v1/studies", json=document)
    assert response.status_code == 201, response.text


def await_recovery(service: LiveService, killed: int) -> None:
    """Wait until the service is ready again, on another postmaster than the one that was killed.

    A session outlives its postmaster by a moment: until then the service is still ready on the lost database.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with suppress(OSError, IndexError):
            if postmaster(service) != killed and is_ready(service.base_url):
                return
        time.sleep(0.1)
    raise AssertionError(f"the service did not recover:\n{service.output()[-4000:]}")


def postmaster(service: LiveService) -> int:
    return int((service.data_directory / "postgres" / "postmaster.pid").read_text().split()[0])


async def findings(service: LiveService) -> Sequence[Finding]:
    """What the audit finds, without starting a process for it."""
    url = service.database_url or EmbeddedPostgres(service.data_directory).url
    async with Database.open(url, pool_size=1) as database:
        return (await Ledger(database).audit()).findings


def audit(service: LiveService, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `dither audit` on the service's database."""
    target: Sequence[str] = ("--data-dir", str(service.data_directory))
    environment = dict(service.environment)
    if service.database_url is not None:
        environment["DITHER_DATABASE_URL"] = service.database_url
        target = ()
    return run_command("audit", *target, *arguments, environment={"PATH": "/usr/bin:/bin", **environment})
