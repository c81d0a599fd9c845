"""What carries out the effects of a flow: for `Client` one after the other, for `AsyncClient` together.

These two classes are all that differs between the clients. Everything else is written once, in `_async`, of
which `unasync.py` makes `_sync`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from dither._flow import Effect, Reply, Request, Send, Sleep
from dither._ledger import Ledger

Task = Callable[[], object]

LARGEST_BATCH = 128
"""Tasks that share an fsync, at most: the first of many shall not wait for the last to be worked out."""


class Carrier:
    """Carries out effects in the calling thread.

    Args:
        send: Sends one request.
        ledger: The device's; None where there is none to write to.
    """

    def __init__(self, send: Callable[[Request], Reply], ledger: Ledger | None) -> None:
        self._send = send
        self._ledger = ledger

    def do(self, effect: Effect) -> object:
        """The outcome of an effect."""
        if isinstance(effect, Send):
            return self._send(effect.request)
        if isinstance(effect, Sleep):
            time.sleep(effect.seconds)
            return None
        return effect.task()

    def close(self) -> None:
        """Close the ledger."""
        if self._ledger is not None:
            self._ledger.close()


class AsyncCarrier:
    """Carries out effects on the event loop, and what blocks in a thread.

    Args:
        send: Sends one request.
        ledger: The device's; None where there is none to write to.
    """

    def __init__(self, send: Callable[[Request], Awaitable[Reply]], ledger: Ledger | None) -> None:
        self._send = send
        self._ledger = ledger
        self._shared = Shared(send)
        self._works = Works(ledger)

    async def do(self, effect: Effect) -> object:
        """The outcome of an effect."""
        if isinstance(effect, Send):
            return await (self._shared if effect.request.shared else self._send)(effect.request)
        if isinstance(effect, Sleep):
            await asyncio.sleep(effect.seconds)
            return None
        return await self._works.do(effect.task)

    async def aclose(self) -> None:
        """Stop what many wait for, and close the ledger."""
        await self._shared.aclose()
        if self._ledger is not None:
            await asyncio.to_thread(self._ledger.close)


class Shared:
    """Sends equal requests that are under way at the same time once.

    Args:
        send: Sends one request.
    """

    def __init__(self, send: Callable[[Request], Awaitable[Reply]]) -> None:
        self._send = send
        self._under_way: dict[Request, asyncio.Future[Reply]] = {}

    async def __call__(self, request: Request) -> Reply:
        """The answer to a request. Who stops waiting does not take it from the others."""
        future = self._under_way.get(request)
        if future is None:
            future = asyncio.ensure_future(self._send(request))
            self._under_way[request] = future
            future.add_done_callback(lambda done: self._forget(request, done))
        return await asyncio.shield(future)

    async def aclose(self) -> None:
        """Stop what is under way."""
        futures = list(self._under_way.values())
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)

    def _forget(self, request: Request, future: "asyncio.Future[Reply]") -> None:
        del self._under_way[request]
        if not future.cancelled():
            future.exception()  # perhaps no task is left to look at it


class Works:
    """Does blocking pieces of work in a thread, one batch after the other.

    What comes in while a batch is written to the disk is the next batch, and its tasks share an fsync.

    Args:
        ledger: The device's; None where there is none to write to.
    """

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._waiting: list[tuple[Task, asyncio.Future[object]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def do(self, task: Task) -> object:
        """What a piece of work returns or raises."""
        if self._ledger is None:
            return await asyncio.to_thread(task)
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting.append((task, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(self._ledger))
        return await future

    async def _work(self, ledger: Ledger) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:LARGEST_BATCH], self._waiting[LARGEST_BATCH:]
            outcomes = await asyncio.to_thread(ledger.run, [task for task, _ in batch])
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if future.cancelled():
                    continue
                if outcome.fault is None:
                    future.set_result(outcome.result)
                else:
                    future.set_exception(outcome.fault)
