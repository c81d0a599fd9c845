"""Closing rounds that take a central part, which is made before the transaction that closes them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import UUID

import structlog

from app.core.clock import Clock
from app.core.session import SessionDefinition
from app.services.kmeans_release import Central, Prepared
from app.services.releases import FREE_ATTEMPTS
from app.services.session_reader import SessionReader
from app.sessions.protocols import restore_protocol
from app.store import cohorts
from app.store import sessions as store
from app.store.database import Connection, Database, within
from app.store.releases import CohortsChanged

Prepare = Callable[[Connection], Awaitable[Prepared | None]]
"""The central part of a round, for the transaction that closes it."""


class SessionCloser(SessionReader):
    """Looks at sessions, and closes rounds that are over."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._central = Central(database, clock)
        self._closing: dict[UUID, asyncio.Task[None]] = {}
        self._log = structlog.get_logger("dither.sessions")

    async def _catch_up(self, definition: SessionDefinition) -> None:
        await super()._catch_up(definition)
        if definition.protocol.has_central_part:
            await asyncio.shield(self._start_closing(definition))

    def _start_closing(self, definition: SessionDefinition) -> asyncio.Task[None]:
        """Close the open round if it is over; one attempt at a time in a process."""
        task = self._closing.get(definition.id)
        if task is None:
            task = self._closing[definition.id] = asyncio.create_task(self._close_over(definition))
            task.add_done_callback(lambda done: self._closed(definition.id, done))
        return task

    def _closed(self, session_id: UUID, task: asyncio.Task[None]) -> None:
        del self._closing[session_id]
        if not task.cancelled() and (fault := task.exception()) is not None:
            # Whoever waits for it gets it; the next look for what is due tries again.
            self._log.warning("session_round_not_closed", session=str(session_id), error=repr(fault))

    async def _stop_closing(self) -> None:
        """Give up what is under way: nothing of it was published, and whoever is started next closes."""
        for task in tuple(self._closing.values()):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _close_over(self, definition: SessionDefinition) -> None:
        session = await self._read(definition.id)
        round_number = session.head.round
        if round_number is None or not self._rounds.is_due(definition, session.head):
            return

        async def body(connection: Connection, prepare: Prepare) -> None:
            head = await store.lock_session(connection, definition.id)
            if head.round == round_number and self._rounds.is_due(definition, head):
                await self._rounds.close(connection, definition, head, await prepare(connection))

        await self._close_prepared(definition, round_number, body)

    async def _close_prepared(
        self,
        definition: SessionDefinition,
        round_number: int,
        body: Callable[[Connection, Prepare], Awaitable[None]],
    ) -> None:
        """Run the transaction that closes a round, with its central part where its protocol has one.

        The central part is made while people may leave and releases be quicker. If they keep doing so, it is
        made once more within the transaction, and they wait for it.
        """

        async def attempt(prepare: Prepare) -> None:
            await self._database.run_tx("session.close_round", lambda c: body(c, prepare))
            self._waiting.wake(definition.id)

        async def held(connection: Connection) -> Prepared:
            await cohorts.hold(connection, definition.study_id)
            document = await store.read_document(connection, definition.id)
            running = restore_protocol(definition.protocol, document)
            return await self._central.prepare(within(connection), definition, running)

        for _ in range(FREE_ATTEMPTS):
            prepared = await self._prepared(definition, round_number)

            async def ready(_: Connection, prepared: Prepared | None = prepared) -> Prepared | None:
                return prepared

            with suppress(CohortsChanged):
                return await attempt(ready)
        await attempt(held)

    async def _prepared(self, definition: SessionDefinition, round_number: int) -> Prepared | None:
        """What central people say in a round; None where they are not asked or the session has moved on."""
        if not definition.protocol.has_central_part:
            return None
        session = await self._read(definition.id)
        if session.head.round != round_number:
            return None
        await self._central.fold(definition, session.running)
        return await self._central.prepare(self._database.run_tx, definition, session.running)
