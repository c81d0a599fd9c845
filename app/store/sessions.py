"""Sessions: what was announced, and where they stand.

Lock order: the session's row, the study's enrol lock (shared, only for answers), then subjects in the order
of their ids. A transaction that holds the row is alone with the session's enrolments (`enrolments`) and
answers (`answers`), so what it reads afterwards stays true until it ends.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.session import (
    SessionDefinition,
    SessionHead,
    SessionProtocol,
    SessionRecord,
    SessionState,
    Terms,
)
from app.store.contributions import ENROL_LOCK
from app.store.database import Database, driver

COLUMNS = """session.id, session.number, session.study_id, study.slug AS study, session.protocol,
    session.state, session.round, session.answers, session.assignment_key, session.answers_per_round,
    session.round_seconds, session.round_closes_at, session.deadline,
    CAST(session.document AS text) AS document, session.created_at, session.finished_at"""

INSERT = text("""
    INSERT INTO session (id, study_id, protocol, rounds, round, epsilon, epsilon_per_answer, epsilon_report,
                         assignment_key, answers_per_round, round_seconds, round_closes_at, deadline,
                         document, created_at)
    VALUES (:id, :study_id, :protocol, :rounds, :round, :epsilon, :epsilon_per_answer, :epsilon_report,
            :assignment_key, :answers_per_round, :round_seconds, :round_closes_at, :deadline,
            CAST(:document AS jsonb), :created_at)
    RETURNING number
""")

READ = f"""
    SELECT {COLUMNS} FROM session JOIN study ON study.id = session.study_id
    WHERE session.id = ANY($1::uuid[])
"""

PAGE = text(f"""
    SELECT {COLUMNS} FROM session JOIN study ON study.id = session.study_id
    WHERE session.study_id = :study_id AND (CAST(:before AS uuid) IS NULL OR session.number <
        (SELECT number FROM session WHERE id = :before AND study_id = :study_id))
    ORDER BY session.number DESC LIMIT :limit
""")

LOCK_OPEN = text(f"""
    SELECT {COLUMNS} FROM session JOIN study ON study.id = session.study_id
    WHERE session.study_id = :study_id AND session.state = 'open'
    ORDER BY session.number FOR UPDATE OF session
""")

LOCK = "SELECT state, round, answers, round_closes_at FROM session WHERE id = $1 FOR UPDATE"

# The CTE takes the row first: a transaction that waits for it holds no enrol lock, and so delays no closing.
# Until the transaction ends, people are looked up by indexes only. A session grows from nothing to thousands
# in seconds, and PostgreSQL keeps a plan that reads all of a small table until it is analyzed again.
LOCK_FOR_ANSWERS = f"""
    WITH locked AS MATERIALIZED (
        SELECT study_id, state, round, answers, round_closes_at FROM session WHERE id = $1 FOR UPDATE
    )
    SELECT state, round, answers, round_closes_at, pg_advisory_xact_lock_shared({ENROL_LOCK}, study_id),
           set_config('enable_seqscan', 'off', true)
    FROM locked
"""

READ_DOCUMENT = text("SELECT CAST(document AS text) FROM session WHERE id = :session_id")

READ_HEADS = """
    SELECT id, state, round, answers, round_closes_at FROM session WHERE id = ANY($1::uuid[])
"""

DUE = """
    SELECT id FROM session
    WHERE state = 'open' AND (least(deadline, round_closes_at) <= $1 OR answers >= answers_per_round)
    ORDER BY number LIMIT $2
"""

COUNT_ANSWERS = "UPDATE session SET answers = answers + $2 WHERE id = $1"

MOVE = text("""
    UPDATE session
    SET state = CAST(:state AS session_state), round = :round, answers = 0,
        round_closes_at = :round_closes_at, document = CAST(:document AS jsonb), finished_at = :finished_at
    WHERE id = :session_id
""")


async def insert_session(
    connection: AsyncConnection,
    definition: SessionDefinition,
    terms: Terms,
    head: SessionHead,
    document: str,
) -> int:
    """Store a new session; returns its number."""
    row = await connection.execute(
        INSERT,
        {
            "id": definition.id,
            "study_id": definition.study_id,
            "protocol": definition.protocol.value,
            "rounds": terms.rounds,
            "round": head.round,
            "epsilon": terms.epsilon_total,
            "epsilon_per_answer": terms.epsilon_per_answer,
            "epsilon_report": terms.epsilon_report,
            "assignment_key": definition.assignment_key,
            "answers_per_round": definition.answers_per_round,
            "round_seconds": definition.round_seconds,
            "round_closes_at": head.round_closes_at,
            "deadline": definition.deadline,
            "document": document,
            "created_at": definition.created_at,
        },
    )
    number: int = row.scalar_one()
    return number


async def read_sessions(database: Database, ids: Sequence[UUID]) -> dict[UUID, SessionRecord]:
    """Sessions by their ids; what does not exist is left out."""
    rows = await database.fetch("session.read", READ, list(ids))
    return {row["id"]: _record(row) for row in rows}


async def page_sessions(
    connection: AsyncConnection, study_id: int, *, before: UUID | None, limit: int
) -> list[SessionRecord]:
    """A study's sessions, newest first."""
    rows = await connection.execute(PAGE, {"study_id": study_id, "before": before, "limit": limit})
    return [_record(dict(row)) for row in rows.mappings()]


async def read_heads(database: Database, ids: Sequence[UUID]) -> dict[UUID, SessionHead]:
    """Where sessions stand."""
    rows = await database.fetch("session.heads", READ_HEADS, list(ids))
    return {row["id"]: _head(row) for row in rows}


async def due_sessions(database: Database, now: datetime, limit: int) -> list[UUID]:
    """Open sessions whose round or whole time is over, the oldest first."""
    return [row["id"] for row in await database.fetch("session.due", DUE, now, limit)]


async def count_states(database: Database) -> dict[str, int]:
    """How many sessions are in each state."""
    rows = await database.fetch(
        "session.states", "SELECT state, count(*) AS count FROM session GROUP BY state"
    )
    return {row["state"]: row["count"] for row in rows}


async def lock_session(connection: AsyncConnection, session_id: UUID) -> SessionHead:
    """Be alone with a session until this transaction ends, and read where it stands."""
    return _head(await driver(connection).fetchrow(LOCK, session_id))


async def lock_open(connection: AsyncConnection, study_id: int) -> list[SessionRecord]:
    """Be alone with every open session of a study."""
    rows = await connection.execute(LOCK_OPEN, {"study_id": study_id})
    return [_record(dict(row)) for row in rows.mappings()]


async def lock_for_answers(connection: AsyncConnection, session_id: UUID) -> SessionHead:
    """The same, and keep the session's study from being closed."""
    return _head(await driver(connection).fetchrow(LOCK_FOR_ANSWERS, session_id))


async def read_document(connection: AsyncConnection, session_id: UUID) -> str:
    """Rules and progress; call with the session locked."""
    document: str = (await connection.execute(READ_DOCUMENT, {"session_id": session_id})).scalar_one()
    return document


async def count_answers(connection: AsyncConnection, session_id: UUID, more: int) -> None:
    """Add to the number of answers in the open round."""
    await driver(connection).execute(COUNT_ANSWERS, session_id, more)


async def move(
    connection: AsyncConnection,
    session_id: UUID,
    head: SessionHead,
    document: str,
    finished_at: datetime | None,
) -> None:
    """Store where a session stands after a round was closed; call with the session locked."""
    await connection.execute(
        MOVE,
        {
            "session_id": session_id,
            "state": head.state.value,
            "round": head.round,
            "round_closes_at": head.round_closes_at,
            "document": document,
            "finished_at": finished_at,
        },
    )


def _head(row: Mapping[str, Any]) -> SessionHead:
    return SessionHead(
        state=SessionState(row["state"]),
        round=row["round"],
        answers=row["answers"],
        round_closes_at=row["round_closes_at"],
    )


def _record(row: Mapping[str, Any]) -> SessionRecord:
    return SessionRecord(
        number=row["number"],
        definition=SessionDefinition(
            id=row["id"],
            study_id=row["study_id"],
            study=row["study"],
            protocol=SessionProtocol(row["protocol"]),
            assignment_key=row["assignment_key"],
            answers_per_round=row["answers_per_round"],
            round_seconds=row["round_seconds"],
            deadline=row["deadline"],
            created_at=row["created_at"],
        ),
        head=_head(row),
        document=row["document"],
        finished_at=row["finished_at"],
    )
