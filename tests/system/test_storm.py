"""Everything goes wrong at once, and nothing that was acknowledged is lost, overspent or answered twice
differently.
"""

import asyncio
import os
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from dither import AsyncClient

from app.postgres.embedded import EmbeddedPostgres
from tests.conftest import LiveServer
from tests.support.databases import scratch_directory
from tests.support.live import LiveService
from tests.support.shifted_clock import OFFSETS
from tests.system.load import findings, make_study
from tests.system.storm import FITTING, PATIENT, SHARE, STUDIES, Clients, Journal, Spread, Storm, small_disk

pytestmark = pytest.mark.system

PROCESSES = 3
PEOPLE = 4
ANALYSTS = 2
FOUNDERS = 20
ROUNDS = 40
"""Of the long storm: each has every strike once, in any order."""


@pytest.fixture
def disk() -> Iterator[Path | None]:
    """A small file system for the data. Only root can make one: for others it is None, and is not filled."""
    if os.geteuid() != 0:
        yield None
        return
    with scratch_directory() as scratch, small_disk(scratch / "disk") as made:
        yield made


async def test_a_storm_loses_overspends_and_contradicts_nothing(
    disk: Path | None, live_server: LiveServer, tmp_path: Path
) -> None:
    await storm(disk, live_server, tmp_path, seed=1, rounds=1)


@pytest.mark.slow
async def test_a_long_storm_loses_overspends_and_contradicts_nothing(
    disk: Path | None, live_server: LiveServer, tmp_path: Path
) -> None:
    await storm(disk, live_server, tmp_path, seed=secrets.randbits(32), rounds=ROUNDS)


async def storm(
    disk: Path | None, live_server: LiveServer, tmp_path: Path, *, seed: int, rounds: int
) -> None:
    print(f"seed {seed}")  # shown where the test fails
    offsets = tmp_path / "clocks"
    offsets.mkdir()
    service = live_server(
        processes=PROCESSES,
        embedded=True,
        data_dir=None if disk is None else disk / "data",
        env={
            "DITHER_LIFETIME_EPSILON": str(FITTING),
            "DITHER_DATABASE_POOL_SIZE": "5",
            OFFSETS: str(offsets),
        },
        program="tests.support.shifted_clock",
    )
    for study in STUDIES:
        make_study(service, study, epsilon={"min": 1, "max": 1})
    contribute, analyse = service.create_token("contribute"), service.create_token("analyse")
    people = [
        {"subject": f"founder-{n}", "value": n, "epsilon": 1, "trust": "central"} for n in range(FOUNDERS)
    ]
    with service.client(contribute) as client:
        founded = client.post(f"/v1/studies/{STUDIES[0]}/contributions/batch", json=people)
    assert founded.json()["created"] == FOUNDERS

    draw = random.Random(seed)
    spread = Spread(service)
    weather = Storm(service=service, spread=spread, offsets=offsets, disk=disk, draw=draw)
    options: dict[str, Any] = {"retry": PATIENT, "transport": spread}
    async with (
        AsyncClient(service.base_url, contribute, directory=tmp_path / "device", **options) as sdk,
        AsyncClient(service.base_url, analyse, **options) as asking,
    ):
        clients = Clients(people=sdk, analysts=asking)
        async with asyncio.TaskGroup() as group:
            for number in range(PEOPLE):
                group.create_task(clients.person(f"p{number}"))
            for number in range(ANALYSTS):
                group.create_task(clients.analyst(f"k{number}"))
            for _ in range(rounds):
                strikes = list(weather.strikes)
                draw.shuffle(strikes)
                await weather.strike(strikes)
            clients.stopped = True
        assert weather.struck == dict.fromkeys((strike.__name__ for strike in weather.strikes), rounds)
        assert 500 not in spread.statuses
        await nothing_is_answered_differently(clients)
    nobody_is_lost(service, contribute, clients.journal)
    await nobody_overspent(service, clients.journal)
    assert await findings(service) == []


async def nothing_is_answered_differently(clients: Clients) -> None:
    """A key has one release, whichever process is asked, during the storm and after it."""
    answers = clients.journal.answers
    assert answers
    for key, told in answers.items():
        for _ in range(PROCESSES):
            told.append(await clients.ask(key))
        assert all(release.raw == told[0].raw for release in told), key


def nobody_is_lost(service: LiveService, token: str, journal: Journal) -> None:
    """What was acknowledged last is what is stored."""
    for study in STUDIES:
        live = {person: value for (place, person), value in journal.accepted.items() if place == study}
        records = [
            {"subject": person, "value": value, "epsilon": 1, "trust": "central"}
            for person, value in live.items()
            if value is not None
        ]
        assert records
        with service.client(token) as client:
            again = client.post(f"/v1/studies/{study}/contributions/batch", json=records).json()
        assert again["unchanged"] == len(records), again


async def nobody_overspent(service: LiveService, journal: Journal) -> None:
    """Everybody got in exactly as often as the budget allows, and each release is paid for once."""
    for person in {person for _, person in journal.accepted}:
        places = [(study, person) in journal.accepted for study in STUDIES]
        refused = [(study, person) in journal.refused for study in STUDIES]
        assert (sum(places), sum(refused)) == (FITTING, len(STUDIES) - FITTING), person
    connection = await asyncpg.connect(EmbeddedPostgres(service.data_directory).url)
    try:
        over = await connection.fetchval("SELECT count(*) FROM subject WHERE reserved > budget")
        live = await connection.fetchval("SELECT count(*) FROM contribution WHERE value IS NOT NULL")
        releases = await connection.fetchval("SELECT count(*) FROM release")
    finally:
        await connection.close()
    assert over == 0
    assert live == FOUNDERS + sum(value is not None for value in journal.accepted.values())
    assert releases == len(journal.answers)
    with service.client() as admin:
        lines = admin.get("/v1/subjects/founder-0/budget").json()["studies"]
    spent = [line["spent"] for line in lines if line["study"] == STUDIES[0]]
    assert spent == [pytest.approx(SHARE * releases, abs=1e-9)]
