"""Where batches are read: threads of their own, so that releases and plans never wait for them."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from app.core.errors import Unavailable

THREADS = 1
"""Reading holds the interpreter's lock: a second thread would slow requests down and read no faster."""

AT_ONCE = 8
"""Batches under way in a process: each holds its records until they are stored."""

OF_ONE_TOKEN = 4
"""Of these, at most as many for one token: a body that arrives slowly holds its turn."""

PATIENCE_SECONDS = 10.0
"""How long a further batch waits for its turn."""

REST = 3
"""Times as long as a piece took that reading rests after it while other requests are answered: a thread that
reads keeps the interpreter from them, so it gets a quarter of the time at most."""

Result = TypeVar("Result")


class BatchWorkers:
    """The threads of batches, and their turns.

    Args:
        answered: How many requests the process has answered so far.
        threads, at_once, of_one, patience: As the constants above.
        clock, sleep: Seconds that pass, and how to let them pass.
    """

    def __init__(
        self,
        answered: Callable[[], int] = lambda: 0,
        *,
        threads: int = THREADS,
        at_once: int = AT_ONCE,
        of_one: int = OF_ONE_TOKEN,
        patience: float = PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="batch")
        self._turns = asyncio.Semaphore(at_once)
        self._of_one = of_one
        self._of_token: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()
        self._patience = patience
        self._answered = answered
        self._seen = 0
        self._reading = asyncio.Lock()
        self._clock = clock
        self._sleep = sleep

    @asynccontextmanager
    async def turn(self, token: UUID) -> AsyncIterator[None]:
        """Wait until fewer batches are under way, of this token and in all, and be one of them.

        Raises:
            Unavailable: too many are, for too long.
        """
        own = self._of_token.setdefault(token, asyncio.Semaphore(self._of_one))
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._patience):
                    await held.enter_async_context(own)
                    await held.enter_async_context(self._turns)
            except TimeoutError:
                raise Unavailable("Too many batches are under way. Send this one later.") from None
            yield

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do a short piece of work in a thread. Pieces take turns, and rest for other requests."""
        async with self._reading:
            started = self._clock()
            result = await asyncio.get_running_loop().run_in_executor(self._executor, work)
            answered = self._answered()
            if answered > self._seen:
                self._seen = answered
                await self._sleep(REST * (self._clock() - started))
            return result

    def close(self) -> None:
        """End the threads once their pieces are done."""
        self._executor.shutdown(wait=False, cancel_futures=True)
