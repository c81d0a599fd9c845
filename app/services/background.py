"""Work of the whole service, beside its requests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from structlog.typing import FilteringBoundLogger


@asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """While this is open, work without an end goes on; then it is cancelled."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def for_ever(
    step: Callable[[], Awaitable[bool]],
    rest: float,
    log: FilteringBoundLogger,
    *,
    failed: str,
    recovered: str = "",
) -> None:
    """Do one step after the other, whatever fails.

    Of a database that is down for an hour it writes one line, not thousands. A service that starts has its
    connections for those who ask, so the first step comes after a rest, too.

    Args:
        step: Says whether there is more to do at once.
        rest: Seconds before the first step, and before the next one where there is not, or this one failed.
        log: Where failures are written.
        failed: The event of the first failure in a row.
        recovered: That of the first step that works again, if it is to be written.
    """
    failing, more = False, False
    while True:
        if not more:
            await asyncio.sleep(rest)
        more = False
        try:
            more = await step()
            if failing and recovered:
                log.info(recovered)
            failing = False
        except Exception:
            if not failing:
                log.warning(failed, exc_info=True)
            failing = True
