"""Answers to sessions: what is known of those who send them, storing them, counting them.

Everything here needs a transaction that holds the session's row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.session import Answer
from app.core.study import StudyState
from app.store.database import driver

# OFFSET 0 keeps a lookup of one person from becoming a join with all people who take part.
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
