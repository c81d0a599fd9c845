"""kill -9 at random moments under load: nothing acknowledged is lost, nothing is charged in vain."""

import asyncio
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from tests.conftest import LiveServer
from tests.support.live import LiveService
from tests.system.load import (
    PATIENCE,
    Crowd,
    Reply,
    at_once,
    audit,
    await_recovery,
    findings,
    make_study,
    postmaster,
)

pytestmark = pytest.mark.system

ROUNDS = 10
"""Kills of each kind."""

CLIENTS = 12
CONTRIBUTIONS = (5, 100)
ANSWERS = (1, 10)
"""A kill comes at a random moment: after so many acknowledgements of each kind, and a little later."""

SHARE = 0.001
PEOPLE = 50


@dataclass
class Journal:
    """What the clients sent, and what they were told."""

    contributions: dict[str, bool] = field(default_factory=dict)
    """Subject to whether it was acknowledged."""

    releases: dict[str, bytes | None] = field(default_factory=dict)
    """Idempotency key to the acknowledged answer, if any."""

    @property
    def acknowledged(self) -> int:
        return sum(self.contributions.values())

    @property
    def answered(self) -> int:
        return sum(body is not None for body in self.releases.values())


def contribution(subject: str) -> dict[str, object]:
    return {"subject": subject, "value": len(subject), "epsilon": 1, "trust": "central"}


QUESTION = {"statistic": "mean", "estimator": "uniform", "share": SHARE, "fresh": True, "allow_worse": True}


async def load(contribute: Crowd, analyse: Crowd, journal: Journal, stop: asyncio.Event, name: str) -> None:
    """Contribute, and ask now and then, until told to stop."""
    turn = 0
    while not stop.is_set():
        turn += 1
        if turn % 3 == 0:
            key = f"{name}-{turn}"
            journal.releases[key] = None
            reply = await analyse.post("/v1/studies/age/releases", QUESTION, key=key)
            if reply.acknowledged:
                journal.releases[key] = reply.body
        else:
            subject = f"{name}-{turn}"
            journal.contributions[subject] = False
            reply = await contribute.post("/v1/studies/age/contributions", contribution(subject))
            journal.contributions[subject] = reply.acknowledged
        if not reply.acknowledged:
            assert reply.status in (0, 503), contribute.service.output()[-2000:]
            await asyncio.sleep(0.05)


async def under_load(
    service: LiveService, tokens: tuple[str, str], number: int, kill: Callable[[], None]
) -> Journal:
    """Run the load, kill something at a random moment, let the clients notice."""
    journal, stop = Journal(), asyncio.Event()
    async with (
        Crowd(service, tokens[0]) as contribute,
        Crowd(service, tokens[1]) as analyse,
        asyncio.TaskGroup() as clients,
    ):
        for client in range(CLIENTS):
            clients.create_task(load(contribute, analyse, journal, stop, f"r{number}c{client}"))
        moment = random.Random(number)
        contributions, answers = moment.randint(*CONTRIBUTIONS), moment.randint(*ANSWERS)
        async with asyncio.timeout(PATIENCE):
            while journal.acknowledged < contributions or journal.answered < answers:  # noqa: ASYNC110 (an event would need one more rule for who sets it)
                await asyncio.sleep(0.01)
        await asyncio.sleep(moment.uniform(0, 0.1))
        await asyncio.to_thread(kill)
        stop.set()
    return journal


async def check(service: LiveService, tokens: tuple[str, str], journal: Journal) -> None:
    """Everything acknowledged is there, with the same bytes; the rest can be sent again."""
    subjects = list(journal.contributions)
    with service.client(tokens[0]) as client:
        again = client.post(
            "/v1/studies/age/contributions/batch", json=[contribution(subject) for subject in subjects]
        )
    assert again.status_code == 200, again.text
    for subject, result in zip(subjects, again.json()["results"], strict=True):
        expected = {"unchanged"} if journal.contributions[subject] else {"created", "unchanged"}
        assert result["status"] in expected, subject

    async with Crowd(service, tokens[1]) as crowd:

        async def retry(key: str) -> Reply:
            reply = await crowd.post("/v1/studies/age/releases", QUESTION, key=key)
            if reply.status:
                return reply
            # The service closes a connection that idles, which a busy machine makes of one in use.
            return await crowd.post("/v1/studies/age/releases", QUESTION, key=key)

        keys = list(journal.releases)
        replies = await at_once(keys, retry, CLIENTS)
    for key, reply in zip(keys, replies, strict=True):
        assert reply.status == 201, (reply, service.output()[-2000:])
        assert journal.releases[key] in (None, reply.body), key


def stored_releases(service: LiveService) -> set[str]:
    """The ids of every release that is stored."""
    found, cursor = set(), None
    with service.client() as admin:
        while True:
            page = admin.get(
                "/v1/studies/age/releases", params={"limit": 200} | ({"cursor": cursor} if cursor else {})
            ).json()
            found |= {item["id"] for item in page["items"]}
            cursor = page["next_cursor"]
            if cursor is None:
                return found


@pytest.mark.parametrize("victim", ["service", "database"])
async def test_a_kill_loses_nothing_that_was_acknowledged(live_server: LiveServer, victim: str) -> None:
    service = live_server(embedded=True, env={"DITHER_LIFETIME_EPSILON": "10"})
    make_study(service, "age", epsilon={"min": 1, "max": 1})
    tokens = service.create_token("contribute"), service.create_token("analyse")
    people = [contribution(f"founder-{number}") for number in range(PEOPLE)]
    with service.client(tokens[0]) as client:
        assert client.post("/v1/studies/age/contributions/batch", json=people).json()["created"] == PEOPLE

    keys: set[str] = set()
    for number in range(ROUNDS):
        if victim == "service":
            journal = await under_load(service, tokens, number, service.kill)
            service.start(0)
        else:
            killed = postmaster(service)
            journal = await under_load(service, tokens, number, partial(os.kill, killed, signal.SIGKILL))
            await_recovery(service, killed)
        await check(service, tokens, journal)
        assert await findings(service) == []
        keys |= set(journal.releases)

    # Each key has one release and no release is without a key: nobody paid for an answer that is not kept.
    assert len(stored_releases(service)) == len(keys)
    with service.client() as admin:
        statement = admin.get("/v1/subjects/founder-0/budget").json()["studies"][0]
    assert statement["spent"] == pytest.approx(SHARE * len(keys), abs=1e-9)
    report = audit(service)
    assert report.returncode == 0, report.stdout
