"""kill -9 in the middle of a chain of refinements: each step is drawn, charged and answered once.

What is drawn and not committed was never seen, and the next attempt draws anew from the same stored sums: see
`tests/statistical/test_lost_drafts.py` for the law of what comes of that.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conftest import LiveServer
from tests.support.live import LiveService
from tests.system.load import Crowd, Reply, at_once, audit, findings, make_study
from tests.system.moments import HOLD, LET_GO, WAITING, connected, hold_commits, until

pytestmark = [pytest.mark.system, pytest.mark.long]

EPSILONS = (0.1, 0.333, 1)
STEPS = 10
CLIENTS = 6
KILLS = ("draft", "answer", "any", "answer")
"""When the processes of the first steps are killed: with a draft that is drawn, with an answer that is
committed and not yet sent, at a random moment."""

RELEASES = "SELECT count(*) FROM release JOIN study ON study.id = study_id WHERE slug = 'minutes'"


def fill(service: LiveService, slug: str, people: int = 30) -> None:
    make_study(service, slug)
    records = [
        {
            "subject": f"{slug}-{place}",
            "value": place % 60,
            "epsilon": EPSILONS[place % 3],
            "trust": "central",
        }
        for place in range(people)
    ]
    with service.client(service.create_token("contribute")) as contributor:
        batch = contributor.post(f"/v1/studies/{slug}/contributions/batch", json=records)
    assert batch.json()["created"] == people, batch.text


async def ask(crowd: Crowd, step: int, turn: int, begin: asyncio.Event) -> Reply:
    """Ask until there is an answer, at one process and then at the other."""
    question = {"estimator": "adpm", "share": step / STEPS, "allow_worse": True}
    await begin.wait()
    return await persist(
        lambda turn: crowd.post("/v1/studies/minutes/releases", question, turn=turn, key=f"step-{step}"), turn
    )


async def persist(send: Callable[[int], Awaitable[Reply]], turn: int) -> Reply:
    while True:
        reply = await send(turn)
        if reply.acknowledged:
            return reply
        assert reply.status in (0, 503), reply
        turn += 1
        await asyncio.sleep(0.05)


async def strike(service: LiveService, kill: str, moment: random.Random, begin: asyncio.Event) -> None:
    """Let clients ask, kill at that moment what works on the step, and start it again."""
    everything = range(len(service.processes))
    if kill == "any":
        begin.set()
        await asyncio.sleep(moment.uniform(0, 0.2))
        victim = moment.choice(everything)
        service.kill(victim)
        await asyncio.to_thread(service.start, victim)
        return
    async with connected(service) as watcher, connected(service) as holder:
        before = await watcher.fetchval(RELEASES)
        if kill == "draft":
            async with holder.transaction():
                await holder.fetch("SELECT FROM chain WHERE id = 1 FOR UPDATE")
                begin.set()
                # Nothing waits for the head of the chain but a draft, which is drawn.
                await until(watcher, 1, WAITING, "%FROM chain%FOR UPDATE%")
                for process in everything:
                    service.kill(process)
            assert await watcher.fetchval(RELEASES) == before
        else:
            await holder.execute(HOLD)
            begin.set()
            await until(watcher, 1, WAITING, "COMMIT%")
            for process in everything:
                service.kill(process)
            await holder.execute(LET_GO)
            await until(watcher, before + 1, RELEASES)
    await asyncio.to_thread(service.start)


def releases(service: LiveService, slug: str) -> list[dict[str, Any]]:
    """Those of a study, oldest first, with charges."""
    with service.client() as admin:
        page = admin.get(f"/v1/studies/{slug}/releases", params={"limit": 200}).json()
    assert page["next_cursor"] is None
    return list(reversed(page["items"]))


def charged(answers: list[dict[str, Any]]) -> dict[float, int]:
    """What each person was charged, by what they offered [micro-epsilon]."""
    sums: Counter[tuple[int, float]] = Counter()
    for answer in answers:
        for charge in answer["charges"]:
            sums[charge["cohort_id"], charge["offered"]] += round(charge["epsilon"] * 1e6)
    assert len(sums) == len(EPSILONS)
    return {offered: amount for (_, offered), amount in sums.items()}


async def test_a_chain_goes_on_after_every_kill(live_server: LiveServer) -> None:
    service = live_server(processes=2)
    fill(service, "minutes")
    fill(service, "once")
    async with connected(service) as connection:
        await hold_commits(connection, "release")
    moment = random.Random(0)
    acknowledged: dict[int, set[bytes]] = {}
    async with Crowd(service, service.create_token("analyse")) as crowd:
        for step in range(1, STEPS + 1):
            begin = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                asking = [tasks.create_task(ask(crowd, step, client, begin)) for client in range(CLIENTS)]
                if step <= len(KILLS):
                    await strike(service, KILLS[step - 1], moment, begin)
                begin.set()
            acknowledged[step] = {task.result().body for task in asking}
            assert len(acknowledged[step]) == 1, "one key has one answer"
        for step, known in acknowledged.items():
            for process in range(2):
                assert {(await ask(crowd, step, process, begin)).body} == known

    chain = releases(service, "minutes")
    # No step was lost, taken twice, or taken from another draw than the last one.
    assert [one["share"] for one in chain] == [step / STEPS for step in range(1, STEPS + 1)]
    assert [one["share_before"] for one in chain] == [step / STEPS for step in range(STEPS)]
    assert [one["refines"] for one in chain] == [None, *(one["id"] for one in chain[:-1])]
    with service.client(service.create_token("analyse")) as analyst:
        once = analyst.post(
            "/v1/studies/once/releases",
            json={"estimator": "adpm", "share": 1, "fresh": True, "allow_worse": True},
        )
    assert once.status_code == 201, once.text
    assert charged(chain) == charged(releases(service, "once"))
    assert await findings(service) == []
    report = audit(service)
    assert report.returncode == 0, report.stdout


async def test_of_many_who_ask_two_processes_at_once_one_takes_the_step(live_server: LiveServer) -> None:
    service = live_server(processes=2)
    fill(service, "minutes")
    async with Crowd(service, service.create_token("analyse")) as crowd:

        async def sharpen(turn: int, share: float = 0.3) -> Reply:
            return await crowd.post(
                "/v1/studies/minutes/releases", {"share": share, "allow_worse": True}, turn=turn
            )

        await sharpen(0, share=0.1)
        replies = await at_once(range(64), sharpen, 64)
    assert sorted(reply.status for reply in replies) == [200] * 63 + [201]
    assert len({reply.body for reply in replies}) == 1
    assert [one["share"] for one in releases(service, "minutes")] == [0.1, 0.3]
    assert await findings(service) == []


async def test_combinations_that_are_killed_exist_once_or_not_at_all(live_server: LiveServer) -> None:
    """The first one with its draft made, the second one when it is committed and not yet sent."""
    service = live_server(processes=2)
    fill(service, "minutes")
    async with connected(service) as connection:
        await hold_commits(connection, "release")
    answers: list[str] = []
    found: list[bytes] = []
    async with Crowd(service, service.create_token("analyse")) as crowd:

        async def read(turn: int) -> Reply:
            return await crowd.send("GET", "/v1/studies/minutes/statistics/mean", turn=turn)

        async def answer() -> None:
            made = await crowd.post(
                "/v1/studies/minutes/releases", {"share": 0.2, "fresh": True, "allow_worse": True}
            )
            assert made.status == 201, made.body
            answers.append(json.loads(made.body)["id"])

        async def reader(begin: asyncio.Event, turn: int) -> Reply:
            await begin.wait()
            return await persist(read, turn)

        await answer()
        for kill in ("draft", "answer"):
            await answer()
            begin = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                reading = [tasks.create_task(reader(begin, turn)) for turn in range(CLIENTS)]
                await strike(service, kill, random.Random(0), begin)
            bodies = {task.result().body for task in reading}
            bodies |= {(await read(turn)).body for turn in range(2)}
            assert len(bodies) == 1, "all read the same"
            found.append(bodies.pop())
            assert json.loads(found[-1])["combines"] == answers

    made = releases(service, "minutes")
    combinations = [json.loads(body)["id"] for body in found]
    assert [one["id"] for one in made] == [*answers[:2], combinations[0], answers[2], combinations[1]]
    assert [bool(one["charges"]) for one in made] == [True, True, False, True, False]
    assert await findings(service) == []
