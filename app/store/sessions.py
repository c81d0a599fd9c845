"""Sessions, who takes part in them, and the answers.

Lock order: the session's row, the study's enrol lock (shared, only for answers), then subjects in the order
of their ids. Whoever holds the row is alone with the session's enrolments and answers, so what is read
afterwards stays true until the transaction ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.session import (
    Answer,
    SessionDefinition,
    SessionHead,
    SessionProtocol,
    SessionRecord,
    SessionState,
    Terms,
)
from app.core.study import StudyState
from app.store.contributions import ENROL_LOCK, LOCK_SUBJECTS, Allowance, array_literal, reserve
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

# The CTE takes the row first: whoever waits for it holds no enrol lock, and so does not hold up a closing.
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

# OFFSET 0 keeps a lookup of one person from becoming a join with everybody who takes part.
LOOK_UP = """
    SELECT given.answer, given.sender, enrolled.spent, enrolled.report,
           enrolled.report_sender,
           (SELECT study.state FROM session JOIN study ON study.id = session.study_id
            WHERE session.id = $1) AS study_state
    FROM unnest($2::bytea[], $3::int[]) WITH ORDINALITY AS asked (subject_id, round, place)
    LEFT JOIN LATERAL (
        SELECT spent, report, report_sender FROM enrolment
        WHERE session_id = $1 AND subject_id = asked.subject_id OFFSET 0
    ) AS enrolled ON true
    LEFT JOIN LATERAL (
        SELECT answer, sender FROM answer
        WHERE session_id = $1 AND round = asked.round AND subject_id = asked.subject_id OFFSET 0
    ) AS given ON true
    ORDER BY place
"""

# Subjects who are new; everybody else is left for the statements below.
ENROL_NEW = """
    WITH given AS MATERIALIZED (
        SELECT subject_id, answer, sender
        FROM unnest($2::bytea[], $3::int[], $9::uuid[]) AS given (subject_id, answer, sender)
    ),
    fresh AS (
        INSERT INTO subject (id, budget, reserved, delta_budget, delta_reserved)
        SELECT subject_id, $4, $5, $6, 0 FROM given WHERE $5::bigint <= $4::bigint
        ORDER BY subject_id
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    ),
    enrolled AS (
        INSERT INTO enrolment (session_id, subject_id, reserved, spent) SELECT $1, id, $5, $7 FROM fresh
    ),
    written AS (
        INSERT INTO answer (session_id, round, subject_id, answer, sender)
        SELECT $1, $8, subject_id, answer, sender FROM given
        WHERE (subject_id IN (SELECT id FROM fresh)) IS TRUE
    )
    SELECT id FROM fresh
"""

ENROL = """
    INSERT INTO enrolment (session_id, subject_id, reserved, spent)
    SELECT $1, subject_id, $3, 0 FROM unnest($2::bytea[]) AS joining (subject_id)
"""

# Rows are found by their key: places within a table repeat from partition to partition.
ANSWER = """
    WITH given AS MATERIALIZED (
        SELECT subject_id, answer, cost, sender
        FROM unnest($3::bytea[], $4::int[], $5::bigint[], $6::uuid[])
            AS given (subject_id, answer, cost, sender)
    ),
    paid AS (
        UPDATE enrolment SET spent = spent + given.cost FROM given
        WHERE enrolment.session_id = $1 AND enrolment.subject_id = given.subject_id
        RETURNING enrolment.subject_id
    )
    INSERT INTO answer (session_id, round, subject_id, answer, sender)
    SELECT $1, $2, subject_id, answer, sender FROM given
    WHERE (subject_id IN (SELECT subject_id FROM paid)) IS TRUE
    RETURNING subject_id
"""

WRITE_REPORTS = """
    UPDATE enrolment SET report = CAST(given.report AS bigint[]), report_sender = given.sender
    FROM unnest($2::bytea[], $3::text[], $4::uuid[]) AS given (subject_id, report, sender)
    WHERE enrolment.session_id = $1 AND enrolment.subject_id = given.subject_id
"""

COUNT_ANSWERS = "UPDATE session SET answers = answers + $2 WHERE id = $1"

TALLY = text("""
    SELECT answer, count(*) AS count FROM answer
    WHERE session_id = :session_id AND round = :round GROUP BY answer
""")

TALLY_REPORTS = """
    SELECT answer.answer, {sums}
    FROM answer JOIN enrolment
      ON enrolment.session_id = answer.session_id AND enrolment.subject_id = answer.subject_id
    WHERE answer.session_id = :session_id AND answer.round = :round GROUP BY answer.answer
"""

MOVE = text("""
    UPDATE session
    SET state = CAST(:state AS session_state), round = :round, answers = 0,
        round_closes_at = :round_closes_at, document = CAST(:document AS jsonb), finished_at = :finished_at
    WHERE id = :session_id
""")

LOCK_UNSPENT = text("""
    SELECT subject.id FROM subject JOIN enrolment ON enrolment.subject_id = subject.id
    WHERE enrolment.session_id = :session_id AND enrolment.spent < enrolment.reserved
    ORDER BY subject.id FOR UPDATE OF subject
""")

FREE_UNSPENT = text("""
    WITH unspent AS MATERIALIZED (
        SELECT subject_id, reserved - spent AS epsilon FROM enrolment
        WHERE session_id = :session_id AND spent < reserved
    ),
    freed AS (
        UPDATE enrolment SET reserved = spent WHERE session_id = :session_id AND spent < reserved
    )
    UPDATE subject SET reserved = reserved - unspent.epsilon
    FROM unspent WHERE subject.id = unspent.subject_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the ledger holds for one answer.

    Attributes:
        answer: What this person answered in this round before; None if nothing.
        sender: The token that sent it; None if nothing, or before senders were kept.
        spent: What they have spent in the session; None if they do not take part yet [micro-epsilon].
        report: What they reported with their first answer.
        report_sender: The token that sent that.
        study: State of the session's study.
    """

    answer: int | None
    sender: UUID | None
    spent: int | None
    report: tuple[int, ...] | None
    report_sender: UUID | None
    study: StudyState


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


async def look_up(connection: AsyncConnection, session_id: UUID, answers: Sequence[Answer]) -> list[Known]:
    """What the ledger holds for each of these answers; call with the session locked for answers."""
    rows = await driver(connection).fetch(
        LOOK_UP, session_id, [answer.subject for answer in answers], [answer.round for answer in answers]
    )
    return [
        Known(
            answer=row["answer"],
            sender=row["sender"],
            spent=row["spent"],
            report=None if row["report"] is None else tuple(row["report"]),
            report_sender=row["report_sender"],
            study=StudyState(row["study_state"]),
        )
        for row in rows
    ]


async def accept_new(
    connection: AsyncConnection,
    session_id: UUID,
    answers: Sequence[Answer],
    terms: Terms,
    allowance: Allowance,
) -> set[bytes]:
    """Enrol people and store their first answers, all of one round, wherever the budget allows it.

    Args:
        connection: A transaction that holds the session.
        session_id: The session.
        answers: At most one a subject, sorted by subject; none of them takes part yet.
        terms: What taking part costs.
        allowance: Budget of subjects who are seen for the first time.

    Returns:
        The subjects whose answers are stored.
    """
    session = driver(connection)
    cost = terms.cost(first=True)
    rows = await session.fetch(
        ENROL_NEW,
        session_id,
        [answer.subject for answer in answers],
        [answer.answer for answer in answers],
        allowance.epsilon,
        terms.epsilon_total,
        allowance.delta,
        cost,
        answers[0].round,
        [answer.sender for answer in answers],
    )
    fresh = {row["id"] for row in rows}
    rest = [answer for answer in answers if answer.subject not in fresh]
    accepted = fresh | await _join(connection, session_id, rest, terms)
    reports = [answer for answer in answers if answer.report is not None and answer.subject in accepted]
    if reports:
        await session.execute(
            WRITE_REPORTS,
            session_id,
            [answer.subject for answer in reports],
            [array_literal(answer.report or ()) for answer in reports],
            [answer.sender for answer in reports],
        )
    return accepted


async def _join(
    connection: AsyncConnection, session_id: UUID, rest: Sequence[Answer], terms: Terms
) -> set[bytes]:
    """Enrol people who are known already, wherever the budget allows it, and store their answers."""
    if not rest:
        return set()
    await connection.execute(LOCK_SUBJECTS, {"subjects": [answer.subject for answer in rest]})
    able = await reserve(connection, {answer.subject: (terms.epsilon_total, 0) for answer in rest})
    await driver(connection).execute(ENROL, session_id, sorted(able), terms.epsilon_total)
    joined = [answer for answer in rest if answer.subject in able]
    costs = [terms.cost(first=True)] * len(joined)
    return await accept_enrolled(connection, session_id, joined, costs)


async def accept_enrolled(
    connection: AsyncConnection, session_id: UUID, answers: Sequence[Answer], costs: Sequence[int]
) -> set[bytes]:
    """Store answers, all of one round, of people who take part already, and spend what they cost.

    Args:
        connection: A transaction that holds the session.
        session_id: The session.
        answers: At most one a subject.
        costs: Of each [micro-epsilon].

    Returns:
        The subjects whose answers are stored: all of them.
    """
    if not answers:
        return set()
    rows = await driver(connection).fetch(
        ANSWER,
        session_id,
        answers[0].round,
        [answer.subject for answer in answers],
        [answer.answer for answer in answers],
        list(costs),
        [answer.sender for answer in answers],
    )
    return {row["subject_id"] for row in rows}


async def count_answers(connection: AsyncConnection, session_id: UUID, more: int) -> None:
    """Add to the number of answers in the open round."""
    await driver(connection).execute(COUNT_ANSWERS, session_id, more)


async def tally(connection: AsyncConnection, session_id: UUID, round_number: int) -> dict[int, int]:
    """How many gave each answer in a round."""
    rows = await connection.execute(TALLY, {"session_id": session_id, "round": round_number})
    return {row["answer"]: row["count"] for row in rows.mappings()}


async def tally_reports(
    connection: AsyncConnection, session_id: UUID, round_number: int, dimension: int
) -> dict[int, list[int]]:
    """For each answer of a round, the sums of the reports of those who gave it [grid steps]."""
    columns = ", ".join(f"sum(enrolment.report[{axis + 1}]) AS sum_{axis}" for axis in range(dimension))
    rows = await connection.execute(
        text(TALLY_REPORTS.format(sums=columns)), {"session_id": session_id, "round": round_number}
    )
    return {row[0]: [int(total) for total in row[1:]] for row in rows}


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


async def free_unspent(connection: AsyncConnection, session_id: UUID) -> None:
    """Free what enrolments reserve and have not spent; call with the session locked, when it has ended."""
    await connection.execute(LOCK_UNSPENT, {"session_id": session_id})
    await connection.execute(FREE_UNSPENT, {"session_id": session_id})


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
