"""Answers to sessions: what is known of those who send them, storing them, counting them.

Everything here needs a transaction that holds the session's row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from uuid import UUID

from app.core.grid import GRID_SIZE
from app.core.session import Answer
from app.core.study import StudyState
from app.store.database import Overtaken
from app.store.sql import Connection, Sql


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    subject: bytes | None
    round: int | None
    known: Known


# Here and below, IS NOT DISTINCT FROM and IS TRUE keep a look at a few people from becoming one at all who
# take part: no index serves them. A session grows from nothing to thousands in seconds, and PostgreSQL would
# take it for small until it is analyzed again.
# A row for each person who takes part and each of these rounds that they answered; one without a person where
# none of them takes part.
LOOK_UP = Sql.of(_Found)("""
    SELECT part.subject, part.round, part.answer, part.sender, part.spent, part.report, part.report_sender,
           study.state AS study
    FROM session JOIN study ON study.id = session.study_id
    LEFT JOIN (
        SELECT enrolment.subject_id AS subject, answer.round, answer.answer, answer.sender, enrolment.spent,
               enrolment.report, enrolment.report_sender
        FROM enrolment LEFT JOIN answer
          ON answer.subject_id = enrolment.subject_id
         AND answer.session_id IS NOT DISTINCT FROM enrolment.session_id
         AND (answer.round = ANY(CAST(:rounds AS int[]))) IS TRUE
        WHERE enrolment.session_id IS NOT DISTINCT FROM CAST(:session_id AS uuid)
          AND enrolment.subject_id = ANY(CAST(:subjects AS bytea[]))
    ) AS part ON true
    WHERE session.id = :session_id
""")

# Rows are found by their key: places within a table repeat from partition to partition.
ANSWER = Sql.of(bytes)("""
    WITH given AS MATERIALIZED (
        SELECT subject_id, answer, cost, sender
        FROM unnest(CAST(:subjects AS bytea[]), CAST(:answers AS int[]), CAST(:costs AS bigint[]),
                    CAST(:senders AS uuid[]))
            AS given (subject_id, answer, cost, sender)
    ),
    paid AS (
        UPDATE enrolment SET spent = spent + given.cost FROM given
        WHERE enrolment.session_id IS NOT DISTINCT FROM CAST(:session_id AS uuid)
          AND enrolment.subject_id = given.subject_id
        RETURNING enrolment.subject_id
    )
    INSERT INTO answer (session_id, round, subject_id, answer, sender)
    SELECT :session_id, :round, subject_id, answer, sender FROM given
    WHERE (subject_id IN (SELECT subject_id FROM paid)) IS TRUE
    ON CONFLICT (subject_id, session_id, round) DO NOTHING
    RETURNING subject_id
""")

TALLY = Sql("""
    SELECT answer, count(*) AS count FROM answer
    WHERE session_id = :session_id AND round = :round GROUP BY answer
""")


@cache
def _tally_reports(dimension: int) -> Sql[Any]:
    sums = ", ".join(
        f"""sum(CASE WHEN enrolment.report[{axis}] < 0 THEN -CAST(:beyond AS bigint)
                     WHEN enrolment.report[{axis}] > {GRID_SIZE} THEN {GRID_SIZE} + CAST(:beyond AS bigint)
                     ELSE enrolment.report[{axis}] END) AS sum_{axis}"""
        for axis in range(1, dimension + 1)
    )
    return Sql(f"""
        SELECT answer.answer, {sums}
        FROM answer JOIN enrolment
          ON enrolment.session_id = answer.session_id AND enrolment.subject_id = answer.subject_id
        WHERE answer.session_id = :session_id AND answer.round = :round GROUP BY answer.answer
    """)


async def look_up(connection: Connection, session_id: UUID, answers: Sequence[Answer]) -> list[Known]:
    """What the ledger holds for each of these answers; call with the session locked for answers."""
    rows = await LOOK_UP.all(
        connection,
        session_id=session_id,
        subjects=[answer.subject for answer in answers],
        rounds=sorted({answer.round for answer in answers}),
    )
    enrolled = {row.subject: replace(row.known, answer=None, sender=None) for row in rows}
    given = {(row.subject, row.round): row.known for row in rows}
    stranger = replace(rows[0].known, answer=None, sender=None, spent=None, report=None, report_sender=None)
    return [
        given.get((answer.subject, answer.round)) or enrolled.get(answer.subject, stranger)
        for answer in answers
    ]


async def accept_enrolled(
    connection: Connection, session_id: UUID, answers: Sequence[Answer], costs: Sequence[int]
) -> set[bytes]:
    """Store answers, all of one round, of people who take part already, and spend what they cost.

    Args:
        connection: A transaction that holds the session.
        session_id: The session.
        answers: At most one a subject.
        costs: Of each [micro-epsilon].

    Returns:
        The subjects whose answers are stored: all of them.

    Raises:
        Overtaken: one of them was not seen to have answered, or to take part, as a node was recovering.
    """
    if not answers:
        return set()
    stored = await ANSWER.all(
        connection,
        session_id=session_id,
        round=answers[0].round,
        subjects=[answer.subject for answer in answers],
        answers=[answer.answer for answer in answers],
        costs=costs,
        senders=[answer.sender for answer in answers],
    )
    if len(stored) != len(answers):
        raise Overtaken
    return set(stored)


async def tally(connection: Connection, session_id: UUID, round_number: int) -> dict[int, int]:
    """How many gave each answer in a round."""
    return dict(await TALLY.all(connection, session_id=session_id, round=round_number))


async def tally_reports(
    connection: Connection, session_id: UUID, round_number: int, dimension: int, beyond: int
) -> dict[int, list[int]]:
    """For each answer of a round, the sums of the reports of those who gave it [grid steps].

    Coordinates outside of the range count as so far beyond its end.
    """
    rows = await _tally_reports(dimension).all(
        connection, session_id=session_id, round=round_number, beyond=beyond
    )
    return {answer: sums for answer, *sums in rows}
