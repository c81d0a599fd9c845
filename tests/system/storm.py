"""A storm over three API processes on one PostgreSQL, and clients that go on as the SDK does.

What is struck: API processes and PostgreSQL (kill -9), all sessions of the database, the clocks, the disk.
"""

import asyncio
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import asyncpg
import httpx
from dither import AsyncClient, ProblemError, Release, Retry, TransportError

from app.postgres.embedded import EmbeddedPostgres
from tests.support.databases import DISCONNECT_OTHERS
from tests.support.live import LiveService
from tests.system.load import PATIENCE

T = TypeVar("T")

DISK = "400m"
"""More than a database of a storm needs, and little enough to fill at once."""

PAUSE = 0.05
"""Seconds between two turns of a client: enough is going on, and processes must start beside it."""

BALLAST = bytes(1 << 20)

PATIENT = Retry(attempts=200, base_seconds=0.05, cap_seconds=0.4)
"""Longer than any strike lasts."""

STUDIES = ("first", "second", "third")
FITTING = 2
"""Each person offers 1 to every study and has a lifetime budget of 2."""

SHARE = 0.0001
"""So small that no storm lasts until the founders, who pay for each answer, have nothing left."""

DAY = 86_400.0
JUMPS = (-9 * DAY, -3_600.0, -1.0, 0.0, 5.0, 3_600.0, 9 * DAY)
"""Where clocks are put. Idempotency keys outlive the longest way between two of them."""


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system of its own, gone afterwards. Needs root."""
    directory.mkdir(mode=0o711)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0711", "tmpfs", str(directory)], check=True
    )
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


class Spread(httpx.AsyncBaseTransport):
    """Sends each try to the next process, as a load balancer that knows nothing of their health."""

    def __init__(self, service: LiveService) -> None:
        self._inner = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=None))
        self._ports = [process.port for process in service.processes]
        self._turn = 0
        self.statuses: Counter[int] = Counter()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._turn += 1
        port = self._ports[self._turn % len(self._ports)]
        request.url = request.url.copy_with(port=port)
        response = await self._inner.handle_async_request(request)
        self.statuses[response.status_code] += 1
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass
class Journal:
    """What people and analysts were told, at last.

    Attributes:
        accepted: (study, person) to the value that was acknowledged last; None where it was withdrawn.
        refused: (study, person) that did not fit into the person's budget.
        answers: Idempotency key to the releases that it was answered with.
    """

    accepted: dict[tuple[str, str], int | None] = field(default_factory=dict)
    refused: set[tuple[str, str]] = field(default_factory=set)
    answers: dict[str, list[Release]] = field(default_factory=dict)


@dataclass
class Clients:
    """People and analysts, who go on until they are told to stop and then finish what they began."""

    people: AsyncClient
    analysts: AsyncClient
    journal: Journal = field(default_factory=Journal)
    stopped: bool = False

    async def person(self, name: str) -> None:
        """One person after another: offers to all studies at once, perhaps replaces, perhaps withdraws."""
        turn = 0
        while not self.stopped:
            turn += 1
            subject = f"{name}-{turn}"
            await asyncio.sleep(PAUSE)
            await asyncio.gather(*(self._give(study, subject, turn % 100) for study in STUDIES))
            for study in STUDIES:
                if (study, subject) in self.journal.accepted and turn % 3 == 0:
                    await self._change(study, subject, 100 - turn % 100)
                if (study, subject) in self.journal.accepted and turn % 5 == 0:
                    await self._leave(study, subject)

    async def _give(self, study: str, subject: str, value: int) -> None:
        async def give() -> None:
            await self.people.contribute(study, subject=subject, value=value, epsilon=1, trust="central")

        try:
            await _until_answered(give)
        except ProblemError as refusal:
            if refusal.code != "budget_exhausted":
                raise
            self.journal.refused.add((study, subject))
        else:
            self.journal.accepted[study, subject] = value

    async def _change(self, study: str, subject: str, value: int) -> None:
        async def change() -> None:
            await self.people.replace(study, subject=subject, value=value, epsilon=1, trust="central")

        await _until_answered(change)
        self.journal.accepted[study, subject] = value

    async def _leave(self, study: str, subject: str) -> None:
        await _until_answered(lambda: self.people.withdraw(study, subject=subject))
        self.journal.accepted[study, subject] = None

    async def analyst(self, name: str) -> None:
        """Asks with one key after another, each twice at once."""
        turn = 0
        while not self.stopped:
            turn += 1
            key = f"{name}-{turn}"
            await asyncio.sleep(PAUSE)
            self.journal.answers[key] = list(await asyncio.gather(self.ask(key), self.ask(key)))

    async def ask(self, key: str) -> Release:
        """The release of a key."""

        async def ask() -> Release:
            return await self.analysts.release(
                STUDIES[0],
                idempotency_key=key,
                estimator="uniform",
                share=SHARE,
                fresh=True,
                allow_worse=True,
            )

        return await _until_answered(ask)


async def _until_answered(request: Callable[[], Awaitable[T]]) -> T:
    """What a request is answered at last; the SDK has tried often already where it gives up."""
    async with asyncio.timeout(2 * PATIENCE):
        while True:
            try:
                return await request()
            except TransportError:
                continue
            except ProblemError as problem:
                if problem.status not in (429, 503):
                    raise


@dataclass
class Storm:
    """What strikes.

    Attributes:
        service: What is struck: it has a database of its own.
        spread: Counts what the clients are answered.
        offsets: Directory of the clocks' offsets.
        disk: The file system of the database, where it has one of its own.
        draw: Decides who is hit.
        struck: How often each strike fell.
    """

    service: LiveService
    spread: Spread
    offsets: Path
    disk: Path | None
    draw: random.Random
    struck: Counter[str] = field(default_factory=Counter)

    @property
    def strikes(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """All that can be done here."""
        always = (self.kill_process, self.kill_database, self.end_sessions, self.move_clocks)
        return always if self.disk is None else (*always, self.fill_disk)

    async def strike(self, strikes: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Let strikes fall, one after another, each once the clients have got on a little."""
        for strike in strikes:
            await self._answers(20)
            await asyncio.sleep(self.draw.uniform(0, 0.2))
            await strike()
            self.struck[strike.__name__] += 1
        await self._answers(20)

    async def kill_process(self) -> None:
        """kill -9 one API process, and start it again."""
        index = self.draw.randrange(len(self.service.processes))
        self.service.kill(index)
        await asyncio.to_thread(self.service.start, index)

    async def kill_database(self) -> None:
        """kill -9 the postmaster; the first process that notices starts it again."""
        pid = EmbeddedPostgres(self.service.data_directory).postmaster_pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(self.draw.uniform(0, 1))

    async def end_sessions(self) -> None:
        """End every session of the database, whatever it is at."""
        connection = await asyncpg.connect(EmbeddedPostgres(self.service.data_directory).url)
        try:
            await connection.execute(DISCONNECT_OTHERS)
        finally:
            await connection.close()

    async def move_clocks(self) -> None:
        """Put the clock of each process somewhere else."""
        for process in self.service.processes:
            (self.offsets / str(process.port)).write_text(str(self.draw.choice(JUMPS)))

    async def fill_disk(self) -> None:
        """Leave no room on the disk until the clients feel it, and a little longer."""
        assert self.disk is not None
        ballast = self.disk / "ballast"
        refused = self.spread.statuses[503]
        try:
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while file.write(BALLAST):
                    pass
            async with asyncio.timeout(PATIENCE):
                while self.spread.statuses[503] == refused:  # noqa: ASYNC110 (the transport counts, and knows nobody who waits)
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.5)
        finally:
            ballast.unlink()

    async def _answers(self, more: int) -> None:
        """Wait for further requests to be answered well: the service is up."""

        def good() -> int:
            return sum(count for status, count in self.spread.statuses.items() if status < 300)

        wanted = good() + more
        async with asyncio.timeout(2 * PATIENCE):
            while good() < wanted:  # noqa: ASYNC110 (as above)
                await asyncio.sleep(0.02)
