"""How a session moves on: a round closes, the next one opens, the last one ends it.

Everything here runs inside a transaction that holds the session's row, so a round closes exactly once,
whichever process gets there first.
"""

from datetime import datetime, timedelta

from app.core.clock import Clock
from app.core.errors import Unavailable
from app.core.session import SessionDefinition, SessionHead, SessionState
from app.core.webhook import EventType
from app.services.sessions.kmeans_release import Prepared, publish
from app.sessions.protocol import RoundAnswers, RunningProtocol
from app.sessions.protocols import protocol_document, restore_protocol
from app.store import answers as stored_answers
from app.store import enrolments, outbox
from app.store import sessions as store
from app.store.database import Connection
from app.store.releases import lock_cohorts


class Rounds:
    """Closes rounds and ends sessions."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def first(self, running: RunningProtocol, round_seconds: float | None) -> SessionHead:
        """Where a new session stands."""
        return _head(running, round_seconds, self._clock.now())

    async def close(
        self,
        connection: Connection,
        definition: SessionDefinition,
        head: SessionHead,
        prepared: Prepared | None = None,
    ) -> SessionHead:
        """Close the open round; the last one ends the session.

        Args:
            connection: A transaction that holds the session.
            definition: Of the session.
            head: Where it stands; open.
            prepared: What central people say in this round. Without it a round of a protocol that has a
                central part stays as it is.

        Raises:
            CohortsChanged: the central part is void; nothing was changed.
        """
        if definition.protocol.has_central_part and prepared is None:
            return head
        return await self._move(connection, definition, head, stop=False, prepared=prepared)

    async def finish(
        self, connection: Connection, definition: SessionDefinition, head: SessionHead, *, free: bool = True
    ) -> SessionHead:
        """End the session now, with what there is. Arguments as for `close`.

        `free` frees what people reserved and have not spent.
        """
        return await self._move(connection, definition, head, stop=True, free=free)

    async def catch_up(
        self, connection: Connection, definition: SessionDefinition, head: SessionHead
    ) -> SessionHead:
        """Do what is due by time: end the session, or close its round. Arguments as for `close`."""
        now = self._clock.now()
        if head.state is SessionState.FINISHED or not is_due(definition, head, now):
            return head
        if definition.deadline <= now:
            return await self.finish(connection, definition, head)
        return await self.close(connection, definition, head)

    def is_due(self, definition: SessionDefinition, head: SessionHead) -> bool:
        """Whether something is due at this moment."""
        return is_due(definition, head, self._clock.now())

    def is_closing(self, definition: SessionDefinition, head: SessionHead) -> bool:
        """Whether the round is over and waits for its central part."""
        return definition.protocol.has_central_part and self.is_due(definition, head)

    async def _move(
        self,
        connection: Connection,
        definition: SessionDefinition,
        head: SessionHead,
        *,
        stop: bool,
        prepared: Prepared | None = None,
        free: bool = True,
    ) -> SessionHead:
        assert head.round is not None, "only an open session moves"
        before = restore_protocol(definition.protocol, await store.read_document(connection, definition.id))
        part = None if prepared is None else prepared.part
        if part is not None:
            # Before people are locked, as a person who leaves a cohort does.
            await lock_cohorts(connection, definition.study_id)
        terms = before.terms
        counts = await stored_answers.tally(connection, definition.id, head.round)
        if sum(counts.values()) != head.answers:
            raise Unavailable("a node of the database is recovering; ask again")
        answers = RoundAnswers(
            counts=counts,
            sums={}
            if terms.report_dimension is None
            else await stored_answers.tally_reports(
                connection, definition.id, head.round, terms.report_dimension, terms.report_beyond
            ),
            central=None if part is None else part.sums,
        )
        running = before.stop(answers) if stop else before.close(answers)
        now = self._clock.now()
        moved = _head(running, definition.round_seconds, now)
        finished = moved.state is SessionState.FINISHED
        await store.move(
            connection, definition.id, moved, protocol_document(running), now if finished else None
        )
        if finished:
            ended = {"session": str(definition.id)}
            await outbox.emit(connection, EventType.SESSION_CLOSED, definition.study_id, ended)
        if finished and free:
            await enrolments.free_unspent(connection, definition.id)
        if part is not None:
            await publish(connection, part)
        return moved


def is_due(definition: SessionDefinition, head: SessionHead, now: datetime) -> bool:
    """Whether a session's time is over, or that of its open round, or that has its answers."""
    if head.state is SessionState.FINISHED:
        return False
    if definition.answers_per_round is not None and head.answers >= definition.answers_per_round:
        return True
    return definition.deadline <= now or (head.round_closes_at is not None and head.round_closes_at <= now)


def _head(running: RunningProtocol, round_seconds: float | None, now: datetime) -> SessionHead:
    if running.round is None:
        return SessionHead(state=SessionState.FINISHED, round=None, answers=0, round_closes_at=None)
    closes_at = None if round_seconds is None else now + timedelta(seconds=round_seconds)
    return SessionHead(state=SessionState.OPEN, round=running.round, answers=0, round_closes_at=closes_at)
