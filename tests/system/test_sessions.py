"""A session over two processes, one of which dies in the middle of it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.sessions.response import Tally
from app.sessions.search import Mode, Search, Target, advance, make_rules
from tests.conftest import LiveServer
from tests.system.load import PATIENCE, Crowd, audit, findings, make_study

pytestmark = pytest.mark.system

PEOPLE = 150
ROUNDS = 5
KILLED_IN = 3
EPSILON = 20


@dataclass
class Device:
    """One person's device. What it sent once it sends again until that is acknowledged."""

    number: int
    given: dict[int, int] = field(default_factory=dict)

    @property
    def value(self) -> int:
        """In the study's range, 40 for three people."""
        return 40 + self.number % 50

    async def answer(self, crowd: Crowd, session: str, asked: dict[str, Any]) -> None:
        yes = int(self.value <= asked["threshold_value"])
        document = {"subject": f"p{self.number}", "round": asked["round"], "answer": yes}
        while True:
            reply = await crowd.post(f"/v1/sessions/{session}/answers", document, turn=self.number)
            if reply.acknowledged:
                self.given[asked["round"]] = yes
                return
            assert reply.status in (0, 503), reply
            await asyncio.sleep(0.1)


async def question(crowd: Crowd, session: str, after: int) -> dict[str, Any]:
    """What is asked after a round, by whichever process answers."""
    path = f"/v1/sessions/{session}/round"
    while True:
        for client in crowd.clients:
            try:
                reply = await client.get(path, params={"after": after, "wait": 5})
            except httpx.TransportError:
                continue
            asked = dict(reply.json())
            if reply.status_code == 200 and asked["round"] != after:
                return asked


def expected_interval() -> tuple[float, float]:
    """What the answers of all devices decide."""
    rules = make_rules(
        target=Target.MINIMUM,
        epsilon=EPSILON * MICRO,
        participants=PEOPLE,
        mode=Mode.BUDGET_SPLIT,
        rounds=ROUNDS,
    )
    search = Search(rules=rules)
    while not search.finished:
        threshold = search.threshold * 100 / GRID_SIZE
        positives = sum(Device(number).value <= threshold for number in range(PEOPLE))
        search = advance(search, Tally(answers=PEOPLE, positives=positives))
    low, high = search.interval
    return low * 100 / GRID_SIZE, high * 100 / GRID_SIZE


async def test_a_session_survives_the_death_of_a_process_in_its_third_round(live_server: LiveServer) -> None:
    service = live_server(processes=2, env={"DITHER_LIFETIME_EPSILON": str(EPSILON)})
    make_study(service, "age")
    token = service.create_token("contribute")
    wish = {"protocol": "minimum", "mode": "budget_split", "epsilon": EPSILON, "rounds": ROUNDS}
    with service.client() as admin:
        made = admin.post("/v1/studies/age/sessions", json={**wish, "participants": PEOPLE})
    assert made.status_code == 201, made.text
    session = made.json()["id"]
    devices = [Device(number) for number in range(PEOPLE)]

    async def killed_amid(answering: list[asyncio.Task[None]]) -> None:
        """Wait for a third of the answers, then kill a process that is taking others, and start it again."""
        await asyncio.gather(*answering[: PEOPLE // 3])
        await asyncio.to_thread(service.kill, 0)
        assert len(devices[-1].given) < KILLED_IN, "the round was over before the process died"
        await asyncio.to_thread(service.start, 0)

    async with Crowd(service, token) as crowd, asyncio.timeout(2 * PATIENCE):
        places = asyncio.Semaphore(8)

        async def one(device: Device, asked: dict[str, Any]) -> None:
            async with places:
                await device.answer(crowd, session, asked)

        for number in range(1, ROUNDS + 1):
            asked = await question(crowd, session, number - 1)
            assert asked["round"] == number
            answering = [asyncio.create_task(one(device, asked)) for device in devices]
            if number == KILLED_IN:
                await killed_amid(answering)
            await asyncio.gather(*answering)

    with service.client(index=1) as admin:
        done = admin.get(f"/v1/sessions/{session}").json()
        budget = admin.get("/v1/subjects/p0/budget").json()
    assert done["state"] == "finished"
    assert [step["answers"] for step in done["path"]] == [PEOPLE] * ROUNDS
    assert all(device.given.keys() == set(range(1, ROUNDS + 1)) for device in devices)
    assert (done["interval"]["lower"], done["interval"]["upper"]) == expected_interval()
    assert budget["epsilon"]["spent"] == EPSILON
    assert await findings(service) == []
    assert audit(service).returncode == 0
