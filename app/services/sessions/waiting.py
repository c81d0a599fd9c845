"""Waiting for a session to move on, without a database connection a client.

Who waits is woken by this process at once where it moved the session itself, and otherwise by one look a
moment at all sessions that a client waits for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

import structlog

from app.core.session import SessionHead

LOOK_SECONDS = 0.25
"""Time between two looks."""

ReadHeads = Callable[[Sequence[UUID]], Awaitable[Mapping[UUID, SessionHead]]]

Place = tuple[UUID, int | None]


class Waiting:
    """The clients of this process that wait for a round to end.

    Args:
        read_heads: Looks up where sessions stand.

    Attributes:
        closed: Whether the process is about to end, so that no client is to wait any more.
    """

    def __init__(self, read_heads: ReadHeads) -> None:
        self._read_heads = read_heads
        self._ended: dict[Place, asyncio.Event] = {}
        self._crowds: dict[Place, int] = {}
        self._looking: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("dither.sessions")
        self.closed = False

    async def wait(self, session_id: UUID, round_number: int | None, seconds: float) -> None:
        """Return when the session leaves this round, `seconds` have passed, or this is closed."""
        if self.closed:
            return
        place = (session_id, round_number)
        ended = self._ended.setdefault(place, asyncio.Event())
        self._crowds[place] = self._crowds.get(place, 0) + 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await ended.wait()
        finally:
            self._crowds[place] -= 1
            if not self._crowds[place]:
                del self._crowds[place]
                self._ended.pop(place, None)

    def wake(self, session_id: UUID) -> None:
        """The session has moved: wake every client that waits for it."""
        for (waited, _), ended in self._ended.items():
            if waited == session_id:
                ended.set()

    def close(self) -> None:
        """Wake every client, and let none wait from now on."""
        self.closed = True
        for ended in self._ended.values():
            ended.set()

    async def _look(self) -> None:
        try:
            while self._ended:
                await asyncio.sleep(LOOK_SECONDS)
                await self._look_once()
        finally:
            self._looking = None

    async def _look_once(self) -> None:
        ids = list({session_id for session_id, _ in self._ended})
        if not ids:
            return
        try:
            heads = await self._read_heads(ids)
        except Exception:
            self._log.warning("session_heads_not_read", exc_info=True)
            return
        for (session_id, round_number), ended in self._ended.items():
            head = heads.get(session_id)
            if head is None or head.round != round_number:
                ended.set()
