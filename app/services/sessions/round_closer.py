"""Closing rounds that are over, with the central part that some protocols draw before the transaction."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import UUID

import structlog

from app.core.clock import Clock
from app.core.session import SessionDefinition
from app.services.observer import Observer
from app.services.sessions.kmeans_release import Central, Prepared
from app.services.sessions.rounds import Rounds
from app.services.sessions.session_cache import Session, SessionCache
from app.services.sessions.waiting import Waiting
from app.services.statistics.publishing import tried
from app.sessions.protocols import restore_protocol
from app.store import cohorts
from app.store import sessions as store
from app.store.database import Connection, Database, Result, within

Prepare = Callable[[Connection], Awaitable[Prepared | None]]
"""The central part of a round, for the transaction that closes it."""


class RoundCloser:
    """Closes rounds in transactions of its own.

    Args:
        database: An open pool.
        clock: Where the time comes from.
        cache: Reads the sessions.
        waiting: Who waits for a round to end is woken when this closes it.
        observer: Who follows the steps of a central part.

    Attributes:
        rounds: How a session moves within a transaction.
        under_way: Rounds that this process is closing at the moment, by their session.
    """

    def __init__(
        self, database: Database, clock: Clock, cache: SessionCache, waiting: Waiting, observer: Observer
    ) -> None:
        self.rounds = Rounds(clock)
        self.under_way: dict[UUID, asyncio.Task[None]] = {}
        self._database = database
        self._cache = cache
        self._waiting = waiting
        self._central = Central(database, clock, observer)
        self._log = structlog.get_logger("dither.sessions")

    async def catch_up(self, definition: SessionDefinition) -> None:
        """Do what is due in a session: end it, or close its round."""

        async def body(connection: Connection) -> None:
            head = await store.lock_session(connection, definition.id)
            await self.rounds.catch_up(connection, definition, head)

        await self._database.run_tx("session.catch_up", body)
        self._waiting.wake(definition.id)
        if definition.protocol.has_central_part:
            await asyncio.shield(self.start(definition))

    def start(self, definition: SessionDefinition) -> asyncio.Task[None]:
        """Begin to close the open round if it is over; one attempt at a time in a process."""
        task = self.under_way.get(definition.id)
        if task is None:
            task = self.under_way[definition.id] = asyncio.create_task(self._close_over(definition))
            task.add_done_callback(lambda done: self._closed(definition.id, done))
        return task

    async def stop(self) -> None:
        """Give up what is under way: nothing of it was published, and the next process closes it."""
        for task in tuple(self.under_way.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def close(
        self,
        definition: SessionDefinition,
        round_number: int,
        body: Callable[[Connection, Prepare], Awaitable[Result]],
    ) -> Result:
        """Run the transaction that closes a round, with its central part where its protocol has one.

        The central part is made while people may leave and releases be quicker. If they keep doing so, it is
        made once more within the transaction, and they wait for it.

        Args:
            definition: Of the session.
            round_number: The round to close.
            body: The transaction; it gets the central part from what it is given.

        Raises:
            Unavailable: as `tried`.
        """

        async def attempt(prepare: Prepare) -> Result:
            result = await self._database.run_tx("session.close_round", lambda c: body(c, prepare))
            self._waiting.wake(definition.id)
            return result

        async def held(connection: Connection) -> Prepared | None:
            if not definition.protocol.has_central_part:
                return None
            await cohorts.hold(connection, definition.study_id)
            document = await store.read_document(connection, definition.id)
            running = restore_protocol(definition.protocol, document)
            return await self._central.prepare(within(connection), definition, running)

        async def free() -> Result:
            session = await self._folded(definition, round_number)
            prepared = None
            if session is not None:
                run = self._database.run_tx
                prepared = await self._central.prepare(run, definition, session.running)

            async def ready(_: Connection) -> Prepared | None:
                return prepared

            return await attempt(ready)

        async def last() -> Result:
            await self._folded(definition, round_number)
            return await attempt(held)

        return await tried(free, last)

    async def _close_over(self, definition: SessionDefinition) -> None:
        session = await self._cache.read(definition.id)
        round_number = session.head.round
        if round_number is None or not self.rounds.is_due(definition, session.head):
            return

        async def body(connection: Connection, prepare: Prepare) -> None:
            head = await store.lock_session(connection, definition.id)
            if head.round == round_number and self.rounds.is_due(definition, head):
                await self.rounds.close(connection, definition, head, await prepare(connection))

        await self.close(definition, round_number, body)

    def _closed(self, session_id: UUID, task: asyncio.Task[None]) -> None:
        del self.under_way[session_id]
        if not task.cancelled() and (fault := task.exception()) is not None:
            # A caller that waits for it gets it; the next look for what is due tries again.
            self._log.warning("session_round_not_closed", session=str(session_id), error=repr(fault))

    async def _folded(self, definition: SessionDefinition, round_number: int) -> Session | None:
        """The session, its people folded; None where none are asked at once, or it has moved on."""
        if not definition.protocol.has_central_part:
            return None
        session = await self._cache.read(definition.id)
        if session.head.round != round_number:
            return None
        await self._central.fold(definition, session.running)
        return session
