"""Sessions: what was announced, and where they stand.

Lock order: the session's row, the study's enrol lock (shared, only for answers), then subjects in the order
of their ids. A transaction that holds the row is alone with the session's enrolments (`enrolments`) and
answers (`answers`), so what it reads afterwards stays true until it ends.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.core.session import SessionDefinition, SessionHead, SessionProtocol, SessionRecord, Terms
from app.store.contributions import ACCOUNTS_LOCK, ENROL_LOCK
from app.store.database import Database
from app.store.sql import Connection, Sql

COLUMNS = """session.id, session.number, session.study_id, study.slug AS study, session.protocol,
    session.state, session.round, session.answers, session.assignment_key, session.answers_per_round,
    session.round_seconds, session.round_closes_at, session.deadline,
    CAST(session.document AS text) AS document, session.created_at, session.finished_at"""

INSERT = Sql.of(int)("""
    INSERT INTO session (id, study_id, protocol, rounds, round, epsilon, epsilon_per_answer, epsilon_report,
                         assignment_key, answers_per_round, round_seconds, round_closes_at, deadline,
                         document, created_at)
    VALUES (:id, :study_id, :protocol, :rounds, :round, :epsilon, :epsilon_per_answer, :epsilon_report,
            :assignment_key, :answers_per_round, :round_seconds, :round_closes_at, :deadline,
            CAST(:document AS jsonb), :created_at)
    RETURNING number
""")

READ = Sql.of(SessionRecord)(f"""
    SELECT {COLUMNS} FROM session JOIN study ON study.id = session.study_id
    WHERE session.id = ANY(CAST(:ids AS uuid[]))
""")

PAGE = Sql.of(SessionRecord)(f"""
    SELECT {COLUMNS} FROM session JOIN study ON study.id = session.study_id
    WHERE session.study_id = :study_id AND (CAST(:before AS uuid) IS NULL OR session.number <
        (SELECT number FROM session WHERE id = :before AND study_id = :study_id))
    ORDER BY session.number DESC LIMIT :limit
""")

LOCK_OPEN = Sql.of(SessionRecord)(f"""
    SELECT {COLUMNS} FROM session JOIN study ON study.id = session.study_id
    WHERE session.study_id = :study_id AND session.state = 'open'
    ORDER BY session.number FOR UPDATE OF session
""")

LOCK = Sql.of(SessionHead)(
    "SELECT state, round, answers, round_closes_at FROM session WHERE id = :session_id FOR UPDATE"
)

# The CTE takes the row first: a transaction that waits for it holds no enrol lock, and so delays no closing.
# Until the transaction ends, people are looked up by indexes only. A session grows from nothing to thousands
# in seconds, and PostgreSQL keeps a plan that reads all of a small table until it is analyzed again.
LOCK_FOR_ANSWERS = Sql.of(SessionHead)(f"""
    WITH locked AS MATERIALIZED (
        SELECT study_id, state, round, answers, round_closes_at FROM session WHERE id = :session_id FOR UPDATE
    ),
    prepared AS MATERIALIZED (
        SELECT pg_advisory_xact_lock_shared({ENROL_LOCK}, study_id),
               pg_advisory_xact_lock_shared({ACCOUNTS_LOCK}, 0),
               set_config('enable_seqscan', 'off', true)
        FROM locked
    )
    SELECT state, round, answers, round_closes_at FROM locked, prepared
""")

FINISHED = Sql.of(SessionRecord)(f"""
    SELECT {COLUMNS} FROM session JOIN study ON study.id = session.study_id
    WHERE session.study_id = :study_id AND session.state = 'finished' AND session.protocol = :protocol
    ORDER BY session.number
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleAnswering:
    """People who answered sessions.

    Attributes:
        people: Who answered at least once.
        reporting: Those of them who have a live local report in the study.
    """

    people: int
    reporting: int


COUNT_PEOPLE = Sql.of(PeopleAnswering)("""
    SELECT count(DISTINCT enrolment.subject_id) AS people,
           count(DISTINCT contribution.subject_id) AS reporting
    FROM enrolment LEFT JOIN contribution ON contribution.study_id = :study_id
        AND contribution.subject_id = enrolment.subject_id
        AND contribution.trust = 'local' AND contribution.value IS NOT NULL
    WHERE enrolment.session_id = ANY(CAST(:ids AS uuid[])) AND enrolment.spent > 0
""")

READ_DOCUMENT = Sql.of(str)("SELECT CAST(document AS text) FROM session WHERE id = :session_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Headed:
    id: UUID
    head: SessionHead


READ_HEADS = Sql.of(_Headed)(
    "SELECT id, state, round, answers, round_closes_at FROM session WHERE id = ANY(CAST(:ids AS uuid[]))"
)

DUE = Sql.of(UUID)("""
    SELECT id FROM session
    WHERE state = 'open' AND (least(deadline, round_closes_at) <= :now OR answers >= answers_per_round)
    ORDER BY number LIMIT :limit
""")

COUNT_STATES = Sql("SELECT state, count(*) FROM session GROUP BY state")

COUNT_ANSWERS = Sql("UPDATE session SET answers = answers + :more WHERE id = :session_id")

MOVE = Sql("""
    UPDATE session
    SET state = CAST(:state AS session_state), round = :round, answers = 0,
        round_closes_at = :round_closes_at, document = CAST(:document AS jsonb), finished_at = :finished_at
    WHERE id = :session_id
""")


async def insert_session(
    connection: Connection,
    definition: SessionDefinition,
    terms: Terms,
    head: SessionHead,
    document: str,
) -> int:
    """Store a new session; returns its number."""
    return await INSERT.one(
        connection, definition, terms, head, epsilon=terms.epsilon_total, document=document
    )


async def read_sessions(database: Database, ids: Sequence[UUID]) -> dict[UUID, SessionRecord]:
    """Sessions by their ids; what does not exist is left out."""
    return {record.definition.id: record for record in await database.fetch("session.read", READ, ids=ids)}


async def page_sessions(
    connection: Connection, study_id: int, *, before: UUID | None, limit: int
) -> list[SessionRecord]:
    """A study's sessions, newest first."""
    return await PAGE.all(connection, study_id=study_id, before=before, limit=limit)


async def read_heads(database: Database, ids: Sequence[UUID]) -> dict[UUID, SessionHead]:
    """Where sessions stand."""
    return {row.id: row.head for row in await database.fetch("session.heads", READ_HEADS, ids=ids)}


async def due_sessions(database: Database, now: datetime, limit: int) -> list[UUID]:
    """Open sessions whose round or whole time is over, the oldest first."""
    return await database.fetch("session.due", DUE, now=now, limit=limit)


async def count_states(database: Database) -> dict[str, int]:
    """How many sessions are in each state."""
    return dict(await database.fetch("session.states", COUNT_STATES))


async def read_finished(
    connection: Connection, study_id: int, protocol: SessionProtocol
) -> list[SessionRecord]:
    """A study's sessions of one protocol that are over, the oldest first."""
    return await FINISHED.all(connection, study_id=study_id, protocol=protocol)


async def count_people(connection: Connection, study_id: int, ids: Sequence[UUID]) -> PeopleAnswering:
    """How many people answered any of these sessions of a study."""
    return await COUNT_PEOPLE.one(connection, study_id=study_id, ids=ids)


async def lock_session(connection: Connection, session_id: UUID) -> SessionHead:
    """Be alone with a session until this transaction ends, and read where it stands."""
    return await LOCK.one(connection, session_id=session_id)


async def lock_open(connection: Connection, study_id: int) -> list[SessionRecord]:
    """Be alone with every open session of a study."""
    return await LOCK_OPEN.all(connection, study_id=study_id)


async def lock_for_answers(connection: Connection, session_id: UUID) -> SessionHead:
    """The same; keep the session's study from being closed, and all accounts from being changed at once."""
    return await LOCK_FOR_ANSWERS.one(connection, session_id=session_id)


async def read_document(connection: Connection, session_id: UUID) -> str:
    """Rules and progress; call with the session locked."""
    return await READ_DOCUMENT.one(connection, session_id=session_id)


async def count_answers(connection: Connection, session_id: UUID, more: int) -> None:
    """Add to the number of answers in the open round."""
    await COUNT_ANSWERS.run(connection, session_id=session_id, more=more)


async def move(
    connection: Connection,
    session_id: UUID,
    head: SessionHead,
    document: str,
    finished_at: datetime | None,
) -> None:
    """Store where a session stands after a round was closed; call with the session locked."""
    await MOVE.run(connection, head, session_id=session_id, document=document, finished_at=finished_at)
