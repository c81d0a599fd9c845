"""What arrives together is done together: group commit and coalesced look-ups.

While one group is under way, further items wait and form the next group, so a lone item is not held up
and a crowd shares the cost of a transaction.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST = 500
"""The largest group."""


class Grouper(Generic[Item, Result]):
    """Collects items and runs them in groups.

    Args:
        run: Turns a group into one result an item. What it raises is raised to each of the group.
        under_way: Groups that may run at the same time.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
        *,
        under_way: int = 1,
    ) -> None:
        self._run = run
        self._free = under_way
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item) -> Result:
        """The result for one item. An item that was submitted is run even if its caller goes away."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._free:
            self._free -= 1
            task = asyncio.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _work(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                await self._run_group(group)
        finally:
            self._free += 1

    async def _run_group(self, group: Sequence[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._run([item for item, _ in group])
        except Exception as error:
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), result in zip(group, results, strict=True):
            if not future.done():
                future.set_result(result)
