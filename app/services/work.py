"""Heavy work: plans, answers, pages and batches, in threads of their own, with few places for one token.

A thread that computes keeps the interpreter from all other requests. So one thread computes for a token at
a time. A token computes freely for a second in all, and from then on for a twentieth of the time. What it
computes beyond that is *long*: one thread of the process does long work at a time, in slices, and rests three
times as long as each slice took while requests of others are answered. Threads get their slices in the order
in which they ask, those of one token one by one.

What computes calls `run`, and within it `checkpoint` between two steps: there it rests, and there it ends if
the request has ended that it is for.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from app.core.errors import Unavailable

AT_ONCE = 16
"""Requests with heavy work that are under way in a process."""

BATCHES_AT_ONCE = 8
"""Batches under way beside them: each holds its records until they are stored."""

OF_ONE_TOKEN = 4
"""Of either at most as many for one token: a body that arrives slowly holds its place."""

PATIENCE_SECONDS = 10.0
"""How long a further request waits for its place."""

LINE_OF_ONE = 100
"""Most requests of one token that wait for a place of its own."""

FREE_SECONDS = 1.0
"""Seconds that a token computes before its work is long."""

FREE_PART = 0.05
"""Part of the time by which that grows again."""

SLICE = 0.01
"""Seconds of long work between two rests, where the work has a checkpoint."""

REST = 3
"""Times as long as a slice took that long work rests while others are answered: then it has a quarter of the
time."""

LATELY = 1.0
"""Seconds for which others count as answered: they may be slow because of the long work itself."""

NAP = 0.05
"""Seconds after which a thread that waits looks whether its request has ended."""

MOST_ACCOUNTS = 10_000
"""Tokens that are remembered before those that have computed nothing lately are forgotten."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Ended(Exception):
    """The request that the work is for has ended: its result is for no one."""


class Line:
    """A lock for threads that get it in the order in which they ask.

    A plain one goes back to the thread that has just released it, for as long as that asks again.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting = deque[object]()

    @property
    def waiting(self) -> int:
        """Threads that have it or wait for it."""
        return len(self._waiting)

    @contextmanager
    def turn(self, ended: threading.Event) -> Iterator[None]:
        """Have it within the block.

        Raises:
            Ended: the request has ended meanwhile.
        """
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
        try:
            with self._changed:
                while self._waiting[0] is not ticket:
                    self._changed.wait(NAP)
                    _go_on(ended)
            yield
        finally:
            with self._changed:
                self._waiting.remove(ticket)
                self._changed.notify_all()


class Answered:
    """When requests were answered last: the newest one, and the newest that is not of its token."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._newest: tuple[UUID | None, float] = (None, -math.inf)
        self._of_another = -math.inf

    def note(self, token: UUID | None) -> None:
        """A request was answered, with heavy work for a token or with none, which is another's than any."""
        newest, at = self._newest
        if newest is None or newest != token:
            self._of_another = at
        self._newest = token, self._clock()

    def beside(self, token: UUID) -> float:
        """When one was that was no heavy work for this token, by the clock; minus infinity for never."""
        newest, at = self._newest
        return self._of_another if newest == token else at


class Computed:
    """What one token has computed, and the line of its threads."""

    def __init__(self, token: UUID, now: float) -> None:
        self.token, self.line = token, Line()
        self._free = FREE_SECONDS
        self._then = now

    def free(self, now: float) -> float:
        """Seconds that it may compute before its work is long; below zero: it has computed more."""
        return min(FREE_SECONDS, self._free + FREE_PART * (now - self._then))

    def take(self, seconds: float, now: float) -> None:
        """Note what it computed."""
        self._free, self._then = self.free(now) - seconds, now


class Slices:
    """The time that long work of a process gets.

    Args:
        answered: The requests that the process has answered.
        clock, computed: Seconds that pass, and that this thread has computed.
        sleep: Lets seconds pass.
    """

    def __init__(
        self,
        answered: Answered,
        clock: Callable[[], float] = time.monotonic,
        computed: Callable[[], float] = time.thread_time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._answered, self.clock, self.computed, self._sleep = answered, clock, computed, sleep
        self._accounts: dict[UUID, Computed] = {}
        self._line = Line()
        self._free_at = 0.0

    def account(self, token: UUID) -> Computed:
        """The account of a token."""
        found = self._accounts.get(token)
        if found is None:
            now = self.clock()
            if len(self._accounts) >= MOST_ACCOUNTS:
                busy = {one: its for one, its in self._accounts.items() if its.free(now) < FREE_SECONDS}
                self._accounts = busy
            found = self._accounts[token] = Computed(token, now)
        return found

    @contextmanager
    def slice(self, account: Computed, ended: threading.Event) -> Iterator[None]:
        """Compute within the block: beside other tokens while this one does so freely, else in turn."""
        with ExitStack() as held:
            held.enter_context(account.line.turn(ended))
            long = account.free(self.clock()) <= 0
            if long:
                held.enter_context(self._line.turn(ended))
                while (left := self._free_at - self.clock()) > 0:
                    self._sleep(min(NAP, left))
                    _go_on(ended)
            began, computed = self.clock(), self.computed()
            try:
                yield
            finally:
                now = self.clock()
                account.take(self.computed() - computed, now)
                # Others, if they were answered before the slice: during it few could be.
                if long and began - self._answered.beside(account.token) < LATELY:
                    self._free_at = now + REST * (now - began)


def _go_on(ended: threading.Event) -> None:
    if ended.is_set():
        raise Ended


class Turn:
    """One request's place among those with heavy work.

    Attributes:
        ended: Set once the request has ended, or its client has left.
    """

    def __init__(self, threads: ThreadPoolExecutor, slices: Slices, account: Computed) -> None:
        self.ended = threading.Event()
        self.under_way: set[asyncio.Future[Any]] = set()
        self._threads, self._slices, self._account = threads, slices, account

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do work in a thread. Cancelled, the thread goes on to its next checkpoint.

        Raises:
            Ended: the client has left.
        """
        _go_on(self.ended)
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, partial(copy_context().run, self._work, work))
        self.under_way.add(future)
        future.add_done_callback(self.under_way.discard)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self.ended.set()
            raise

    def _work(self, work: Callable[[], Result]) -> Result:
        step = _Step(self._slices, self._account, self.ended)
        _STEP.set(step)
        with step.held:
            step.begin()
            return work()

    def when_idle(self, call: Callable[[], None]) -> None:
        """Call this once no thread works for the request: what it holds is held until then."""
        if not self.under_way:
            call()
            return
        left = asyncio.gather(*self.under_way, return_exceptions=True)
        left.add_done_callback(lambda _: call())


class _Step:
    """What one thread does for a request, slice by slice."""

    def __init__(self, slices: Slices, account: Computed, ended: threading.Event) -> None:
        self.held = ExitStack()
        self._slices, self._account, self._ended = slices, account, ended
        self._began = 0.0

    def begin(self) -> None:
        _go_on(self._ended)
        self.held.enter_context(self._slices.slice(self._account, self._ended))
        self._began = self._slices.computed()

    def checkpoint(self) -> None:
        _go_on(self._ended)
        if self._slices.computed() - self._began >= SLICE:
            self.held.close()
            self.begin()


_TURN: ContextVar[Turn | None] = ContextVar("turn", default=None)
_STEP: ContextVar[_Step | None] = ContextVar("step", default=None)


def checkpoint() -> None:
    """Between two steps of work: where it is for a request, let others have their turn.

    Raises:
        Ended: the request has ended.
    """
    step = _STEP.get()
    if step is not None:
        step.checkpoint()


async def run(
    work: Callable[Arguments, Result], *arguments: Arguments.args, **options: Arguments.kwargs
) -> Result:
    """Do work in a thread, in the turn of the request that it is for; without one as any thread.

    Raises:
        Ended: the client of that request has left.
    """
    turn = _TURN.get()
    if turn is None:
        return await asyncio.to_thread(work, *arguments, **options)
    return await turn.run(partial(work, *arguments, **options))


class _Line:
    """Places for requests of one kind, and the lines of those that wait: one a token, and one of all."""

    def __init__(self, at_once: int, of_one: int, patience: float) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._of_one, self._patience = of_one, patience
        self._of_token: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()
        self._waiting: dict[UUID, int] = {}

    async def place(self, token: UUID) -> ExitStack:
        """Wait for a place; it is free again once what is returned is closed.

        Raises:
            Unavailable: too many wait, or for too long.
        """
        own = self._of_token.setdefault(token, asyncio.Semaphore(self._of_one))
        waiting = self._waiting.get(token, 0)
        if own.locked() and waiting >= LINE_OF_ONE:
            raise Unavailable("Too many requests of this token wait for others of it. Send this one later.")
        self._waiting[token] = waiting + 1
        with ExitStack() as held:
            try:
                async with asyncio.timeout(self._patience):
                    for places in (own, self._places):
                        await places.acquire()
                        held.callback(places.release)
            except TimeoutError:
                raise Unavailable("Too much work is under way. Send this request later.") from None
            finally:
                self._waiting[token] -= 1
                if not self._waiting[token]:
                    del self._waiting[token]
            return held.pop_all()


class Work:
    """The places and threads of heavy work of one process.

    Args:
        answered: The requests that the process has answered.
        at_once, batches, of_one, patience: As the constants above.
        slices: The time of long work, if it is another one.
    """

    def __init__(
        self,
        answered: Answered | None = None,
        *,
        at_once: int = AT_ONCE,
        batches: int = BATCHES_AT_ONCE,
        of_one: int = OF_ONE_TOKEN,
        patience: float = PATIENCE_SECONDS,
        slices: Slices | None = None,
    ) -> None:
        self._threads = ThreadPoolExecutor(at_once + batches, thread_name_prefix="work")
        self._slices = slices or Slices(answered or Answered())
        self._answers, self._batches = _Line(at_once, of_one, patience), _Line(batches, of_one, patience)

    @asynccontextmanager
    async def turn(
        self, token: UUID, ends: Callable[[], Awaitable[object]] | None = None, *, batch: bool = False
    ) -> AsyncIterator[Turn]:
        """Wait until fewer requests are under way, of this token and in all, and be one of them.

        Args:
            token: Who asks.
            ends: Returns once the client has left: then the work ends at its next checkpoint.
            batch: Whether it is a batch.

        Raises:
            Unavailable: too many are, for too long.
        """
        place = await (self._batches if batch else self._answers).place(token)
        turn = Turn(self._threads, self._slices, self._slices.account(token))
        watch = None if ends is None else asyncio.create_task(_watched(turn, ends))
        before = _TURN.set(turn)
        try:
            yield turn
        finally:
            _TURN.reset(before)
            turn.ended.set()
            turn.when_idle(place.close)
            if watch is not None:
                watch.cancel()
                with suppress(asyncio.CancelledError):
                    await watch

    def close(self) -> None:
        """End the threads once their steps are done."""
        self._threads.shutdown(wait=False, cancel_futures=True)


async def _watched(turn: Turn, ends: Callable[[], Awaitable[object]]) -> None:
    try:
        await ends()
    finally:
        turn.ended.set()
