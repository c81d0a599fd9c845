"""Who takes part in sessions: what they reserve, what they have spent, and their report.

What people tell sessions is protected by pure epsilon, whatever the study's noise, and reserved from that
account. Everything here needs a transaction that holds the session's row.
"""

from collections.abc import Sequence
from uuid import UUID

from app.core.session import Answer, Terms
from app.core.study import Currency
from app.store.answers import accept_enrolled
from app.store.arrays import array_literal
from app.store.contributions import ACCOUNTS_LOCK, LOCK_SHARED, Allowance, reserve, starting
from app.store.database import Overtaken
from app.store.sql import Connection, Sql

# Subjects who are new; all others are left for the statements below.
ENROL_NEW = Sql.of(bytes)("""
    WITH given AS MATERIALIZED (
        SELECT subject_id, answer, sender
        FROM unnest(CAST(:subjects AS bytea[]), CAST(:answers AS int[]), CAST(:senders AS uuid[]))
            AS given (subject_id, answer, sender)
        WHERE subject_key_holds()
    ),
    fresh AS (
        INSERT INTO subject (id, budget, reserved, gaussian_budget, gaussian_reserved)
        SELECT subject_id, :budget, :epsilon, :gaussian_budget, 0 FROM given
        WHERE CAST(:epsilon AS bigint) <= CAST(:budget AS bigint)
        ORDER BY subject_id
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    ),
    enrolled AS (
        INSERT INTO enrolment (session_id, subject_id, reserved, spent)
        SELECT :session_id, id, :epsilon, :cost FROM fresh
    ),
    written AS (
        INSERT INTO answer (session_id, round, subject_id, answer, sender)
        SELECT :session_id, :round, subject_id, answer, sender FROM given
        WHERE (subject_id IN (SELECT id FROM fresh)) IS TRUE
    )
    SELECT id FROM fresh
""")

ENROL = Sql.of(bytes)("""
    INSERT INTO enrolment (session_id, subject_id, reserved, spent)
    SELECT CAST(:session_id AS uuid), subject_id, CAST(:epsilon AS bigint), 0
    FROM unnest(CAST(:subjects AS bytea[])) AS joining (subject_id)
    ON CONFLICT (subject_id, session_id) DO NOTHING
    RETURNING subject_id
""")

WRITE_REPORTS = Sql("""
    WITH given AS MATERIALIZED (
        SELECT subject_id, CAST(report AS bigint[]) AS report, sender
        FROM unnest(CAST(:subjects AS bytea[]), CAST(:reports AS text[]), CAST(:senders AS uuid[]))
            AS given (subject_id, report, sender)
    )
    UPDATE enrolment SET report = given.report, report_sender = given.sender FROM given
    WHERE enrolment.session_id IS NOT DISTINCT FROM CAST(:session_id AS uuid)
      AND enrolment.subject_id = given.subject_id
""")

FREE_UNSPENT = Sql("""
    UPDATE subject SET reserved = subject.reserved - (enrolment.reserved - enrolment.spent) FROM enrolment
    WHERE enrolment.session_id = :session_id AND enrolment.spent < enrolment.reserved
      AND subject.id = enrolment.subject_id
""")

RESERVE_SPENT = Sql(
    "UPDATE enrolment SET reserved = spent WHERE session_id = :session_id AND spent < reserved"
)


async def accept_new(
    connection: Connection,
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
        allowance: Budget of subjects who are seen for the first time, before it was raised.

    Returns:
        The subjects whose answers are stored.
    """
    allowance = await starting(connection, allowance)
    enrolled = await ENROL_NEW.all(
        connection,
        session_id=session_id,
        round=answers[0].round,
        subjects=[answer.subject for answer in answers],
        answers=[answer.answer for answer in answers],
        senders=[answer.sender for answer in answers],
        budget=allowance.epsilon,
        gaussian_budget=allowance.mu2,
        epsilon=terms.epsilon_total,
        cost=terms.cost(first=True),
    )
    fresh = set(enrolled)
    rest = [answer for answer in answers if answer.subject not in fresh]
    accepted = fresh | await _join(connection, session_id, rest, terms)
    reports = [answer for answer in answers if answer.report is not None and answer.subject in accepted]
    if reports:
        await WRITE_REPORTS.run(
            connection,
            session_id=session_id,
            subjects=[answer.subject for answer in reports],
            reports=[array_literal(answer.report or ()) for answer in reports],
            senders=[answer.sender for answer in reports],
        )
    return accepted


async def _join(connection: Connection, session_id: UUID, rest: Sequence[Answer], terms: Terms) -> set[bytes]:
    """Enrol people who are known already, wherever the budget allows it, and store their answers."""
    if not rest:
        return set()
    more = {answer.subject: terms.epsilon_total for answer in rest}
    able = await reserve(connection, more, Currency.LAPLACE)
    enrolled = await ENROL.all(
        connection, session_id=session_id, subjects=sorted(able), epsilon=terms.epsilon_total
    )
    # Someone takes part already, who was not seen when the answers were judged: a node was recovering.
    if set(enrolled) != able:
        raise Overtaken
    joined = [answer for answer in rest if answer.subject in able]
    costs = [terms.cost(first=True)] * len(joined)
    return await accept_enrolled(connection, session_id, joined, costs)


async def free_unspent(connection: Connection, session_id: UUID) -> None:
    """Free what enrolments reserve and have not spent; call with the session locked, when it has ended."""
    await LOCK_SHARED.run(connection, locks=(ACCOUNTS_LOCK,), study_id=0)
    await FREE_UNSPENT.run(connection, session_id=session_id)
    await RESERVE_SPENT.run(connection, session_id=session_id)
