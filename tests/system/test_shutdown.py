"""SIGTERM under load: what was acknowledged is stored, and a process that drains answers no fault."""

import asyncio
from dataclasses import dataclass, field

import asyncpg
import httpx
import pytest

from app.services.subjects import SubjectKey
from app.store.keyfile import load_key
from tests.conftest import LiveServer
from tests.support.live import NO_TLS, LiveService
from tests.system.load import PATIENCE, findings, make_study

pytestmark = pytest.mark.system

CONNECTIONS = 64
REQUESTS_BEFORE = 400
REQUESTS_AFTER = 400


@dataclass
class Load:
    """Clients that contribute as fast as they can, each with a connection that is kept alive.

    Attributes:
        acknowledged: People who were told that they are stored.
        statuses: How many answers of each status.
        moved: Clients whose connection to the first process ended.
        all_moved: Whether that is all of them.
        stopped: Whether it is over.
        clients: Connections to each process, as many as there are clients.
        wanted, reached: How many answers somebody waits for.
    """

    service: LiveService
    token: str
    acknowledged: set[str] = field(default_factory=set)
    statuses: dict[int, int] = field(default_factory=dict)
    moved: set[int] = field(default_factory=set)
    all_moved: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False
    clients: list[httpx.AsyncClient] = field(default_factory=list)
    wanted: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> "Load":
        self.clients = [
            httpx.AsyncClient(
                base_url=process.base_url,
                headers={"Authorization": f"Bearer {self.token}"},
                timeout=PATIENCE,
                limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
                verify=NO_TLS,
            )
            for process in self.service.processes
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self.clients:
            await client.aclose()

    async def client(self, number: int) -> None:
        """One client: contributes until told to stop, at whichever process answers."""
        place = 0
        turn = 0
        while not self.stopped:
            name = f"p{number}-{turn}"
            document = {"subject": name, "value": 50, "epsilon": 1, "trust": "central"}
            try:
                response = await self.clients[place].post("/v1/studies/age/contributions", json=document)
            except httpx.TransportError:
                self.moved.add(number)
                if len(self.moved) == CONNECTIONS:
                    self.all_moved.set()
                place = (place + 1) % len(self.clients)
                await asyncio.sleep(0.02)
                continue
            self.statuses[response.status_code] = self.statuses.get(response.status_code, 0) + 1
            if sum(self.statuses.values()) >= self.wanted:
                self.reached.set()
            if response.status_code in (200, 201):
                self.acknowledged.add(name)
            turn += 1

    async def until(self, answers: int) -> None:
        """Wait for so many more answers."""
        self.wanted = sum(self.statuses.values()) + answers
        self.reached.clear()
        await asyncio.wait_for(self.reached.wait(), PATIENCE)


@pytest.mark.parametrize(("processes", "workers"), [(2, 1), (1, 2)])
async def test_no_acknowledged_request_is_lost(live_server: LiveServer, processes: int, workers: int) -> None:
    """Two services of which one goes on, and one service of two workers, which both end."""
    service = live_server(processes=processes, workers=workers, env={"DITHER_DATABASE_POOL_SIZE": "5"})
    make_study(service, "age")
    async with (
        Load(service, service.create_token("contribute")) as load,
        asyncio.TaskGroup() as group,
    ):
        for number in range(CONNECTIONS):
            group.create_task(load.client(number))
        await load.until(REQUESTS_BEFORE)
        code = await asyncio.to_thread(service.terminate)
        await asyncio.wait_for(load.all_moved.wait(), PATIENCE)
        if processes > 1:
            await load.until(REQUESTS_AFTER)
        load.stopped = True
    assert code == 0
    assert set(load.statuses) <= {200, 201}, load.statuses
    assert len(load.acknowledged) >= REQUESTS_BEFORE
    assert "Traceback" not in service.output(0)
    digest = SubjectKey(load_key(service.data_directory / "subject.key")).digest
    stored = await stored_people(service)
    assert {name for name in load.acknowledged if digest(name) not in stored} == set()
    assert await findings(service) == []


@pytest.mark.parametrize("workers", [1, 2])
async def test_who_waits_for_a_session_is_answered_with_the_session_as_it_stands(
    live_server: LiveServer, workers: int
) -> None:
    """They would have waited for 30 seconds, twice as long as a process that ends waits for its requests."""
    service = live_server(workers=workers)
    make_study(service, "age")
    wish = {"protocol": "minimum", "epsilon": 1, "participants": 1_000, "rounds": 4}
    async with httpx.AsyncClient(
        base_url=service.base_url,
        headers={"Authorization": f"Bearer {service.create_token('contribute')}"},
        timeout=PATIENCE,
    ) as client:
        headers = {"Authorization": f"Bearer {service.admin_token}"}
        made = await client.post("/v1/studies/age/sessions", json=wish, headers=headers)
        path = f"/v1/sessions/{made.json()['id']}/round"
        waiting = [
            asyncio.create_task(client.get(path, params={"after": 1, "wait": 30})) for _ in range(CONNECTIONS)
        ]
        await asyncio.sleep(2)
        assert (await client.get(path)).json()["round"] == 1
        assert not any(one.done() for one in waiting)
        ended = asyncio.create_task(asyncio.to_thread(service.terminate))
        answers = await asyncio.gather(*waiting)
    assert await ended == 0
    assert {(answer.status_code, answer.json()["round"]) for answer in answers} == {(200, 1)}
    assert "Traceback" not in service.output(0)


async def stored_people(service: LiveService) -> set[bytes]:
    """Everybody who has a live contribution."""
    assert service.database_url is not None
    connection = await asyncpg.connect(service.database_url)
    try:
        rows = await connection.fetch("SELECT subject_id FROM contribution WHERE value IS NOT NULL")
    finally:
        await connection.close()
    return {row["subject_id"] for row in rows}
