"""Lifetime budgets and what is left of them."""

from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.records import Account, PersonalCharge, SessionLine, Statement, StudyLine
from app.store.contributions import Allowance
from app.store.membership import is_member

READ = text("SELECT id, budget, reserved, delta_budget, delta_reserved FROM subject WHERE id = :subject")

# What was spent: a local report costs everything on arrival, a folded central value what its cohort was
# charged, any other value what its owner had spent before.
SPENT = """
    CASE WHEN c.trust = 'local' AND c.value IS NOT NULL THEN c.{kind}
         WHEN c.trust = 'central' AND c.value IS NOT NULL THEN coalesce(g.{column}, c.{carried})
         ELSE c.{carried} END
"""
SPENT_EPSILON = SPENT.format(kind="epsilon", column="spent", carried="carried")
SPENT_DELTA = SPENT.format(kind="delta", column="delta_spent", carried="delta_carried")
IN_COHORT = f"cohort g ON c.value IS NOT NULL AND {is_member('c', 'g')}"
JOIN_COHORT = f"LEFT JOIN {IN_COHORT}"

READ_HOLDINGS = text(f"""
    SELECT study.slug AS study, c.trust, c.epsilon, c.delta, c.value IS NOT NULL AS live, c.contributed_on,
           {SPENT_EPSILON} AS spent, {SPENT_DELTA} AS delta_spent
    FROM contribution c JOIN study ON study.id = c.study_id {JOIN_COHORT}
    WHERE c.subject_id = :subject ORDER BY study.slug
""")

# What the present values of one person were charged; `carried` holds what former ones were.
PAGE_CHARGES = text(f"""
    SELECT release.id AS release, study.slug AS study, release.estimator, release.created_at,
           charge.epsilon, charge.delta
    FROM contribution c JOIN study ON study.id = c.study_id JOIN {IN_COHORT}
    JOIN charge ON charge.cohort_id = g.id JOIN release ON release.id = charge.release_id
    WHERE c.subject_id = :subject AND (CAST(:before AS uuid) IS NULL
           OR release.number < (SELECT last.number FROM release last JOIN study ON study.id = last.study_id
                WHERE last.id = :before
                  AND last.study_id IN (SELECT study_id FROM contribution WHERE subject_id = :subject)
                  AND (CAST(:slugs AS text[]) IS NULL OR study.slug = ANY(CAST(:slugs AS text[])))))
      AND (CAST(:slugs AS text[]) IS NULL OR study.slug = ANY(CAST(:slugs AS text[])))
    ORDER BY release.number DESC LIMIT :limit
""")

READ_ENROLMENTS = text("""
    SELECT CAST(session.id AS text) AS session, study.slug AS study, session.protocol,
           enrolment.reserved AS epsilon, enrolment.spent
    FROM session JOIN study ON study.id = session.study_id
    JOIN enrolment ON enrolment.session_id = session.id AND enrolment.subject_id = :subject
    ORDER BY session.number
""")

SPENT_IN_SESSIONS = """
    SELECT sum(enrolment.spent) FROM session
    JOIN enrolment ON enrolment.session_id = session.id AND enrolment.subject_id = s.id
"""

PAGE = text(f"""
    SELECT s.id, s.budget, s.reserved, s.delta_budget, s.delta_reserved,
           coalesce(sum({SPENT_EPSILON}), 0) + coalesce(({SPENT_IN_SESSIONS}), 0) AS spent,
           coalesce(sum({SPENT_DELTA}), 0) AS delta_spent
    FROM (SELECT * FROM subject WHERE id > :after ORDER BY id LIMIT :limit) s
    LEFT JOIN contribution c ON c.subject_id = s.id {JOIN_COHORT}
    GROUP BY s.id, s.budget, s.reserved, s.delta_budget, s.delta_reserved ORDER BY s.id
""")

SET_BUDGET = text("""
    INSERT INTO subject (id, budget, reserved, delta_budget, delta_reserved)
    VALUES (:subject, :budget, 0, coalesce(CAST(:delta_budget AS bigint), :default_delta), 0)
    ON CONFLICT (id) DO UPDATE
    SET budget = excluded.budget, delta_budget = coalesce(CAST(:delta_budget AS bigint), subject.delta_budget)
    WHERE subject.reserved <= excluded.budget
      AND subject.delta_reserved <= coalesce(CAST(:delta_budget AS bigint), subject.delta_budget)
    RETURNING id
""")


async def read_statement(connection: AsyncConnection, subject: bytes, allowance: Allowance) -> Statement:
    """A subject's statement; a person never seen has the budget of a new subject."""
    row = (await connection.execute(READ, {"subject": subject})).one_or_none()
    holdings = await connection.execute(READ_HOLDINGS, {"subject": subject})
    enrolments = await connection.execute(READ_ENROLMENTS, {"subject": subject})
    lines = tuple(StudyLine(**line) for line in holdings.mappings())
    sessions = tuple(SessionLine(**line) for line in enrolments.mappings())
    account = Account(
        subject=subject,
        budget=row.budget if row else allowance.epsilon,
        reserved=row.reserved if row else 0,
        spent=sum(line.spent for line in lines) + sum(line.spent for line in sessions),
        delta_budget=row.delta_budget if row else allowance.delta,
        delta_reserved=row.delta_reserved if row else 0,
        delta_spent=sum(line.delta_spent for line in lines),
    )
    return Statement(account=account, studies=lines, sessions=sessions)


async def page_charges(
    connection: AsyncConnection,
    subject: bytes,
    *,
    before: UUID | None,
    limit: int,
    slugs: frozenset[str] | None,
) -> list[PersonalCharge]:
    """What releases cost one person, newest first, in these studies only unless None."""
    rows = await connection.execute(
        PAGE_CHARGES,
        {
            "subject": subject,
            "before": before,
            "limit": limit,
            "slugs": None if slugs is None else sorted(slugs),
        },
    )
    return [PersonalCharge(**row) for row in rows.mappings()]


async def set_budget(
    connection: AsyncConnection, subject: bytes, *, epsilon: int, delta: int | None, allowance: Allowance
) -> bool:
    """Set a lifetime budget; False where more than that is reserved already."""
    row = await connection.execute(
        SET_BUDGET,
        {
            "subject": subject,
            "budget": epsilon,
            "delta_budget": delta,
            "default_delta": allowance.delta,
        },
    )
    return row.one_or_none() is not None


async def page_accounts(connection: AsyncConnection, *, after: bytes, limit: int) -> list[Account]:
    """Accounts in the order of their subjects' ids; costs O(limit)."""
    rows = await connection.execute(PAGE, {"after": after, "limit": limit})
    return [_account(row) for row in rows]


def _account(row: Row[Any]) -> Account:
    return Account(
        subject=row.id,
        budget=row.budget,
        reserved=row.reserved,
        spent=int(row.spent),
        delta_budget=row.delta_budget,
        delta_reserved=row.delta_reserved,
        delta_spent=int(row.delta_spent),
    )
