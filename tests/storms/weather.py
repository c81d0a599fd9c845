"""One seed decides in which order statements of several processes run, where they die, and what time it is.

All processes run in this one, each with its own services and connections. Every statement of a request waits
until it is its turn, and then runs alone until it is done or waits for a lock. So one seed is one storm, on
every machine.
"""

import asyncio
import contextlib
import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar, cast

import asyncpg
import pytest

from app import main
from app.core.clock import SystemClock
from app.services import replies, work
from app.services.sessions import session_watch
from app.services.statistics import publishing, saturation
from app.store import database
from app.web import schedules, webhooks

T = TypeVar("T")

Label = tuple[str, int, int]

BEGINNING = datetime(2030, 1, 1, tzinfo=UTC)

JUMPS = (-9 * 86_400.0, -3_600.0, -1.0, 0.0, 5.0, 3_600.0, 9 * 86_400.0)
"""Where clocks are put [s]. Idempotency keys outlive the longest way between two of them."""

LOCKED = 0.003
"""Seconds without any news after which the server is asked whether statements wait for locks."""

BLOCKERS = "SELECT pid, pg_blocking_pids(pid) FROM unnest(CAST($1 AS int[])) AS pid"

BLOCKERS_ON_WORKERS = """
WITH waits AS MATERIALIZED (
  SELECT
    CAST(waiting_gpid % 10000000000 AS int) AS waiting,
    CAST(blocking_gpid % 10000000000 AS int) AS blocking
  FROM citus_lock_waits
)
SELECT pid, pg_blocking_pids(pid) || ARRAY(SELECT blocking FROM waits WHERE waiting = pid)
FROM unnest(CAST($1 AS int[])) AS pid
"""
"""`BLOCKERS` on a Citus cluster, where a session of the coordinator waits for locks of workers, too."""

END = "SELECT pg_terminate_backend(CAST($1 AS int), CAST(10000 AS bigint))"

DIED_BEFORE, DIED_AFTER, LOST_BEFORE, LOST_AFTER = "died before", "died after", "lost before", "lost after"
AFTER_COMMIT = (DIED_AFTER, LOST_AFTER)
CLOCK = "clock"
"""What strikes: a process dies or loses its connection before or after a statement; a clock jumps."""

LOST = asyncpg.ConnectionDoesNotExistError


class Stuck(Exception):
    """Everything that is under way waits for a lock that nobody frees."""


@dataclass(eq=False)
class Turn:
    """A request of a client to a process.

    Attributes:
        client, number: Which one.
        process: Where it is done; None: nowhere yet.
        steps: How many statements it has come to.
    """

    client: str
    number: int
    process: int | None
    steps: int = 0


TURN: ContextVar[Turn | None] = ContextVar("turn", default=None)

PROCESS: ContextVar[int] = ContextVar("process")
"""Whose connections are opened."""


class GatedConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
    """A connection whose statements wait for their turn, where they are part of a request."""

    weather: "Weather"
    ready: bool = False

    async def execute(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._passed(query, lambda: asyncpg.Connection.execute(self, query, *args, **options))

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._passed(query, lambda: asyncpg.Connection.fetch(self, query, *args, **options))

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        result = await self._passed(query, lambda: asyncpg.Connection.fetchval(self, query, *args, **options))
        if not self.ready:
            self.ready = True
            self.weather.busy -= 1
        return result

    async def close(self, **options: Any) -> None:
        self.weather.busy += 1
        try:
            await asyncpg.Connection.close(self, **options)
        finally:
            self.weather.busy -= 1

    async def _passed(self, query: str, run: Callable[[], Awaitable[T]]) -> T:
        turn = TURN.get()
        if turn is None or not self.ready:
            return await run()
        return await self.weather.pass_gate(turn, query, self, run)


class AtOnce(ThreadPoolExecutor):
    """Does work at once, in the thread that asks for it."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> "Future[T]":
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@dataclass(eq=False)
class Parked:
    """Something that waits for its turn: a statement, or the beginning of a request."""

    turn: Turn
    what: str
    go: asyncio.Future[str]

    @property
    def commits(self) -> bool:
        """Whether it ends a transaction: what strikes after it is not what strikes before it."""
        return self.what == "COMMIT"


class Course(Protocol):
    """What decides whose turn it is, and what strikes there."""

    def choose(self, labels: Sequence[Label]) -> Label:
        """One of those who wait for their turn, in order."""

    def fate(self, parked: Parked) -> str | float:
        """What strikes at a turn; a number: where its clock is put [s]; empty: it goes well."""


@dataclass
class Chance:
    """Decides by one seed.

    Attributes:
        draw: What decides.
        strikes: How often a strike falls, of a thousand turns.
        stay: How often the client that had a turn has the next one, too, of a hundred.
        last: The client that had the last one.
    """

    draw: random.Random
    strikes: int
    stay: int
    last: str = ""

    def choose(self, labels: Sequence[Label]) -> Label:
        """See `Course`."""
        mine = [label for label in labels if label[0] == self.last]
        chosen = self.draw.choice(mine if mine and self.draw.randrange(100) < self.stay else labels)
        self.last = chosen[0]
        return chosen

    def fate(self, parked: Parked) -> str | float:
        """See `Course`."""
        if parked.turn.process is None or self.draw.randrange(1000) >= self.strikes:
            return ""
        strike = self.draw.choice((DIED_BEFORE, LOST_BEFORE, CLOCK, *(AFTER_COMMIT * parked.commits)))
        return self.draw.choice(JUMPS) if strike == CLOCK else strike


@dataclass
class Weather:
    """The order of everything, as a course decides it.

    Attributes:
        course: What decides.
        control: A connection beside the storm.
        blockers: The statement that tells which sessions wait for which.
        die: Kills a process.
        busy: What goes on beside: connections that are opened or ended, processes that start again.
        sessions: Of each process, on the server.
        steps: Turns so far.
        struck: How often each strike fell.
        told: All that was decided.
        story: Digest of it: one seed has one.
    """

    course: Course
    control: asyncpg.Connection
    blockers: str
    die: Callable[[int], Awaitable[None]]
    busy: int = 0
    steps: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    sessions: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    offsets: dict[int, float] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    _parked: dict[Label, Parked] = field(default_factory=dict)
    _flying: dict[int, int] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def story(self) -> str:
        return hashlib.sha256("\n".join(self.told).encode()).hexdigest()[:16]

    # ------------------------------------------------------------------------------------ what waits

    async def begin(self, turn: Turn) -> None:
        """Wait until a request may begin."""
        await self._park(turn, "begins")

    async def pass_gate(
        self, turn: Turn, query: str, connection: GatedConnection, run: Callable[[], Awaitable[T]]
    ) -> T:
        """Wait for the turn of a statement, and run it; the process or the connection may be lost there."""
        pid = connection.get_server_pid()
        fate = await self._park(turn, " ".join(query.split())[:60])
        if fate == LOST_BEFORE:
            await self.end(pid)
            raise LOST("the storm ended the session")
        self._flying[pid] = self.steps
        try:
            result = await run()
        finally:
            self._flying.pop(pid, None)
            self._changed.set()
        if fate == LOST_AFTER:
            await self.end(pid)
            raise LOST("the storm ended the session")
        if fate == DIED_AFTER:
            await self.die(cast(int, turn.process))
            raise asyncio.CancelledError
        return result

    async def _park(self, turn: Turn, what: str) -> str:
        label = (turn.client, turn.number, turn.steps)
        turn.steps += 1
        assert label not in self._parked
        parked = self._parked[label] = Parked(turn, what, asyncio.get_running_loop().create_future())
        try:
            return await parked.go
        finally:
            self._parked.pop(label, None)

    async def end(self, pid: int) -> None:
        """End a session of the database, whatever it is at."""
        self.busy += 1
        try:
            async with self._asking:
                await self.control.fetchval(END, pid)
        finally:
            self.busy -= 1

    # ------------------------------------------------------------------------------------ what is decided

    async def blow(self, does: Sequence[Awaitable[None]]) -> None:
        """Let one thing after another go on, until all clients are done with what they do."""
        clients = asyncio.gather(*does)
        try:
            await self._decide(clients)
        finally:
            clients.cancel()
            done = await asyncio.gather(clients, return_exceptions=True)
        if isinstance(done[0], Exception):
            raise done[0]

    async def _decide(self, clients: "asyncio.Future[Any]") -> None:
        while True:
            await self._settle()
            if clients.done():
                return
            labels = sorted(self._parked)
            if not labels:
                raise Stuck(f"{len(self._flying)} statements wait for locks")
            chosen = self.course.choose(labels)
            self.steps += 1
            parked = self._parked.pop(chosen)
            fate = self._fate(parked)
            self.told.append(f"{chosen} {parked.turn.process} {parked.what}{': ' + fate if fate else ''}")
            if fate == DIED_BEFORE:
                await self.die(cast(int, parked.turn.process))
            else:
                parked.go.set_result(fate)

    def _fate(self, parked: Parked) -> str:
        """What strikes at a turn; a clock is put elsewhere, and the turn goes well."""
        strike = self.course.fate(parked)
        if isinstance(strike, float):
            self.struck[CLOCK] += 1
            self.offsets[cast(int, parked.turn.process)] = strike
            return ""
        if strike:
            self.struck[strike] += 1
        return strike

    async def _settle(self) -> None:
        """Wait until nothing goes on any more but what waits for its turn, or for a lock of such."""
        waiting: dict[int, int] = {}
        while True:
            await asyncio.sleep(0)
            if asyncio.get_running_loop()._ready:  # type: ignore[attr-defined]  # what runs next, if anything
                continue
            if not self.busy and self._flying == waiting:
                # Nothing has happened since these were seen to wait.
                return
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), LOCKED)
                continue
            flying = dict(self._flying)
            if not self.busy and flying:
                waiting = flying if await self._all_wait(flying) else {}

    async def _all_wait(self, flying: Mapping[int, int]) -> bool:
        """Whether all of these wait for locks, and not in a circle, which the server ends by itself."""
        async with self._asking:
            rows = await self.control.fetch(self.blockers, list(flying))
        blockers = {pid: by for pid, by in rows if by}
        if self._flying.keys() != flying.keys() or blockers.keys() != flying.keys():
            return False
        free = set(blockers)
        while rest := {pid for pid in free if any(by in free for by in blockers[pid])}:
            if rest == free:
                return False
            free = rest
        return bool(flying)

    # ------------------------------------------------------------------------------------ the time

    def now(self) -> datetime:
        """The time on the clock of the process of this request."""
        turn = TURN.get()
        process = None if turn is None else turn.process
        offset = 0.0 if process is None else self.offsets.get(process, 0.0)
        return BEGINNING + timedelta(seconds=offset, milliseconds=self.steps)

    def monotonic(self) -> float:
        """Seconds since the beginning: a turn takes a hundredth."""
        return self.steps / 100


def connecting(weather: Weather) -> Callable[..., Awaitable[asyncpg.Connection]]:
    """What opens connections in a storm."""

    async def connect(*args: Any, **options: Any) -> asyncpg.Connection:
        weather.busy += 1
        try:
            connection = await asyncpg.connect(*args, **options, connection_class=GatedConnection)
        except BaseException:
            weather.busy -= 1
            raise
        connection.weather = weather
        weather.sessions[PROCESS.get()].append(connection.get_server_pid())
        return connection

    return connect


@contextlib.asynccontextmanager
async def _nothing(running: Any) -> AsyncIterator[None]:
    """In place of what goes on beside the requests."""
    running.close()
    yield


async def _no_time(_: float) -> None:
    """In place of a pause."""
    await asyncio.sleep(0)


@contextlib.contextmanager
def governed(weather: Weather, *, free_attempts: int) -> Any:
    """Within this, the weather decides over time, threads, connections and pauses."""
    open_engine = database.open_engine
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemClock, "now", lambda _: weather.now())
        patch.setattr(saturation, "time", SimpleNamespace(monotonic=weather.monotonic))
        patch.setattr(database, "asyncio", SimpleNamespace(sleep=_no_time))
        patch.setattr(publishing, "FREE_ATTEMPTS", free_attempts)
        patch.setattr(work, "ThreadPoolExecutor", AtOnce)
        patch.setattr(work, "FREE_SECONDS", float("inf"))
        patch.setattr(main, "on_shutdown_signal", contextlib.nullcontext)
        for module in (replies, schedules, session_watch, webhooks):
            patch.setattr(module, "running", _nothing)
        patch.setattr(
            database,
            "open_engine",
            lambda url, **options: open_engine(
                url,
                **{
                    **options,
                    "connect_args": {
                        **options.get("connect_args", {}),
                        "async_creator_fn": connecting(weather),
                    },
                },
            ),
        )
        yield
