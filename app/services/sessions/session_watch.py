"""Watching the clock for sessions: rounds close and sessions end by time, without a request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from app.core.clock import Clock
from app.services.background import for_ever, running
from app.services.sessions.round_closer import RoundCloser
from app.services.sessions.session_cache import SessionCache
from app.store import sessions as store
from app.store.database import Database

WATCH_SECONDS = 0.5
"""Time between two looks for sessions of which something is due."""

DUE_AT_ONCE = 100


class SessionWatch:
    """Finds sessions of which something is due, and does it."""

    def __init__(self, database: Database, clock: Clock, cache: SessionCache, closer: RoundCloser) -> None:
        self._database = database
        self._clock = clock
        self._cache = cache
        self._closer = closer
        self._log = structlog.get_logger("dither.sessions")

    async def close_due(self) -> int:
        """Do whatever is due by time, in any session; returns the number of sessions with something due."""
        due = await store.due_sessions(self._database, self._clock.now(), DUE_AT_ONCE)
        for session_id in due:
            try:
                await self._closer.catch_up((await self._cache.find(session_id)).definition)
            except Exception:
                # What is wrong with one session must not keep the others from closing.
                self._log.exception("session_not_closed", session=str(session_id))
        return len(due)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """While this is open, rounds close and sessions end by time even if no request asks for them.

        Every process does it: closing is safe to try at once, and the next process goes on with what a
        process that died left open.
        """
        try:
            async with running(self._watch()):
                yield
        finally:
            await self._closer.stop()

    async def _watch(self) -> None:
        failed, recovered = "session_watch_failed", "session_watch_recovered"
        await for_ever(self._look, WATCH_SECONDS, self._log, failed=failed, recovered=recovered)

    async def _look(self) -> bool:
        await self.close_due()
        return False
