"""kill -9 between a fold and its commit: each person is counted once, whichever way the commit went."""

import asyncio
import os
import signal
from contextlib import suppress

import asyncpg
import pytest

from tests.conftest import LiveServer
from tests.support.live import LiveService
from tests.system.load import Crowd, audit, await_recovery, findings, make_study, postmaster
from tests.system.moments import HOLD, LET_GO, WAITING, connected, hold_commits, until

pytestmark = pytest.mark.system

EPSILONS = (0.1, 0.333, 1)
PEOPLE = 30
"""Who come before each fold."""

FOLDED = "SELECT folded_epoch FROM study WHERE slug = 'minutes'"
# The cohorts, and what they should be: whoever is stored with a value and in a folded epoch.
COUNTED = "SELECT coalesce(sum(count), 0), coalesce(sum(total), 0) FROM cohort"
STORED = """SELECT count(*), coalesce(sum(value), 0) FROM contribution JOIN study ON study.id = study_id
            WHERE value IS NOT NULL AND contribution.epoch <= folded_epoch"""
CONTRIBUTIONS = "/v1/studies/minutes/contributions"
RELEASES = "/v1/studies/minutes/releases"
QUESTION = {"estimator": "optimal", "share": 0.01, "fresh": True, "allow_worse": True}


def person(subject: str, place: int) -> dict[str, object]:
    return {"subject": subject, "value": place, "epsilon": EPSILONS[place % 3], "trust": "central"}


async def strike(service: LiveService, victim: str) -> None:
    """Kill the service or its database while the commit of a fold waits."""
    if victim == "database":
        killed = postmaster(service)
        os.kill(killed, signal.SIGKILL)
        await asyncio.to_thread(await_recovery, service, killed)
    else:
        service.kill()


async def crash(service: LiveService, crowds: tuple[Crowd, Crowd], victim: str) -> None:
    """Ask for a release, and kill while its fold is done and not committed.

    Meanwhile a person comes, who is acknowledged, and one of those who are being folded withdraws, who waits.
    """
    contribute, analyse = crowds
    with suppress(asyncpg.PostgresConnectionError, asyncpg.InterfaceError):
        async with connected(service) as watcher, connected(service) as holder:
            before = await watcher.fetchval(FOLDED)
            await holder.execute(HOLD)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(analyse.post(RELEASES, QUESTION, key=victim))
                await until(watcher, 1, WAITING, "COMMIT%")
                assert (await contribute.post(CONTRIBUTIONS, person(f"{victim}-late", 7))).acknowledged
                tasks.create_task(leave(contribute, victim))
                await until(watcher, 2, WAITING, "%")
                assert await watcher.fetchval(FOLDED) == before
                await strike(service, victim)
            if victim == "service":
                # The database does not know that its client is dead, and commits.
                await holder.execute(LET_GO)
                await until(watcher, before + 1, FOLDED)
    if victim == "service":
        await asyncio.to_thread(service.start)


async def leave(contribute: Crowd, name: str) -> int:
    """Withdraw one person; 0 where the connection broke."""
    return (await contribute.send("DELETE", f"{CONTRIBUTIONS}/{name}-3")).status


async def test_a_kill_before_the_commit_of_a_fold_counts_each_person_once(live_server: LiveServer) -> None:
    service = live_server(embedded=True)
    make_study(service, "minutes")
    async with connected(service) as connection:
        await hold_commits(connection, "lineage")
    async with (
        Crowd(service, service.create_token("contribute")) as contribute,
        Crowd(service, service.create_token("analyse")) as analyse,
    ):
        for rounds, victim in enumerate(("service", "database"), start=1):
            records = [person(f"{victim}-{place}", place) for place in range(PEOPLE)]
            assert (await contribute.post(f"{CONTRIBUTIONS}/batch", records)).acknowledged
            await crash(service, (contribute, analyse), victim)
            assert await leave(contribute, victim) == 204, service.output()[-2000:]
            assert (await analyse.post(RELEASES, QUESTION, key=victim)).acknowledged
            async with connected(service) as connection:
                counted = tuple(await connection.fetchrow(COUNTED))
                assert counted == tuple(await connection.fetchrow(STORED))
            # In each round one person left, and one came during the fold.
            assert counted[0] == rounds * PEOPLE
            assert await findings(service) == []
    report = audit(service)
    assert report.returncode == 0, report.stdout
