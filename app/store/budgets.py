"""Lifetime budgets and what is left of them."""

from dataclasses import replace
from uuid import UUID

from app.core.records import Account, PersonalCharge, SessionLine, Statement, StatementLine
from app.core.study import Currency
from app.store.cohorts import LOCK_EXCLUSIVE
from app.store.contributions import ACCOUNTS, ACCOUNTS_LOCK, LOCK_SHARED, Allowance, starting
from app.store.database import Overtaken
from app.store.membership import IS_MEMBER
from app.store.sql import Connection, Sql

READ = Sql("SELECT budget, reserved, gaussian_budget, gaussian_reserved FROM subject WHERE id = :subject")

# What was spent: a local report costs everything on arrival, a folded central value what its cohort was
# charged, any other value what its owner had spent before.
SPENT = """
    CASE WHEN c.trust = 'local' AND c.value IS NOT NULL THEN c.epsilon
         WHEN c.trust = 'central' AND c.value IS NOT NULL THEN coalesce(g.spent, c.carried)
         ELSE c.carried END
"""
IN_COHORT = f"lineage ON c.value IS NOT NULL AND {IS_MEMBER}"
JOIN_COHORT = f"LEFT JOIN {IN_COHORT} LEFT JOIN cohort g ON g.id = lineage.cohort_id"

# What a contribution holds of its owner's budget: an archived study holds what was spent and no more. The
# contribution and its cohort keep what was offered, which is how they know each other.
RESERVED = f"CASE WHEN study.state = 'archived' THEN {SPENT} ELSE c.epsilon END"

UNSPENT = f"""
    SELECT c.subject_id, study.delta, c.epsilon - {SPENT} AS amount
    FROM contribution c JOIN study ON study.id = c.study_id {JOIN_COHORT}
"""

FREE_UNSPENT = {
    currency: Sql(f"""
        UPDATE subject SET {reserved} = {reserved} - unspent.amount
        FROM ({UNSPENT} WHERE study.id = :study_id) unspent
        WHERE subject.id = unspent.subject_id AND unspent.amount > 0
    """)
    for currency, (reserved, _) in ACCOUNTS.items()
}

READ_HOLDINGS = Sql.of(StatementLine)(f"""
    SELECT study.slug AS study, study.state, study.delta, c.trust, c.value IS NOT NULL AS live,
           c.contributed_on, {RESERVED} AS amount, {SPENT} AS amount_spent,
           CASE WHEN c.value IS NULL THEN '{{}}' ELSE study.attributes END AS declared, c.segment
    FROM contribution c JOIN study ON study.id = c.study_id {JOIN_COHORT}
    WHERE c.subject_id = :subject ORDER BY study.slug
""")

# What the present values of one person were charged; `carried` holds what former ones were.
PAGE_CHARGES = Sql.of(PersonalCharge)(f"""
    SELECT release.id AS release, study.slug AS study, release.estimator, release.created_at,
           amounts[array_position(cohorts, was_in)] AS cost, study.delta
    FROM contribution c JOIN study ON study.id = c.study_id JOIN {IN_COHORT}
    JOIN release ON release.study_id = c.study_id JOIN charge_block ON charge_block.release_id = release.id
    JOIN unnest(lineage.former || lineage.cohort_id) AS was_in ON array_position(cohorts, was_in) > 0
    WHERE c.subject_id = :subject AND (CAST(:before AS uuid) IS NULL
           OR release.number < (SELECT last.number FROM release last JOIN study ON study.id = last.study_id
                WHERE last.id = :before
                  AND last.study_id IN (SELECT study_id FROM contribution WHERE subject_id = :subject)
                  AND (CAST(:slugs AS text[]) IS NULL OR study.slug = ANY(CAST(:slugs AS text[])))))
      AND (CAST(:slugs AS text[]) IS NULL OR study.slug = ANY(CAST(:slugs AS text[])))
    ORDER BY release.number DESC LIMIT :limit
""")

READ_ENROLMENTS = Sql.of(SessionLine)("""
    SELECT CAST(session.id AS text) AS session, study.slug AS study, session.protocol,
           enrolment.reserved AS epsilon, enrolment.spent
    FROM session JOIN study ON study.id = session.study_id
    JOIN enrolment ON enrolment.session_id = session.id AND enrolment.subject_id = :subject
    ORDER BY session.number
""")

# What people have spent is added up apart, by `SPENT_BY`.
PAGE = Sql.of(Account)("""
    SELECT id AS subject, budget, reserved, 0 AS spent, gaussian_budget, gaussian_reserved,
           0 AS gaussian_spent, CAST(:delta AS bigint) AS delta
    FROM subject WHERE id > :after ORDER BY id LIMIT :limit
""")

SPENT_BY = Sql(f"""
    SELECT subject_id, sum(spent) AS spent, sum(gaussian_spent) AS gaussian_spent FROM (
        SELECT c.subject_id, CASE WHEN study.delta = 0 THEN {SPENT} ELSE 0 END AS spent,
               CASE WHEN study.delta > 0 THEN {SPENT} ELSE 0 END AS gaussian_spent
        FROM contribution c JOIN study ON study.id = c.study_id {JOIN_COHORT}
        WHERE c.subject_id = ANY(CAST(:subjects AS bytea[]))
        UNION ALL
        SELECT subject_id, spent, 0 FROM enrolment WHERE subject_id = ANY(CAST(:subjects AS bytea[]))
    ) part GROUP BY subject_id
""")

SET_BUDGET = Sql.of(bytes)("""
    INSERT INTO subject (id, budget, reserved, gaussian_budget, gaussian_reserved)
    VALUES (:subject, :budget, CASE WHEN subject_key_holds() THEN 0 END,
            coalesce(CAST(:mu2 AS bigint), :default_mu2), 0)
    ON CONFLICT (id) DO UPDATE
    SET budget = excluded.budget, gaussian_budget = coalesce(CAST(:mu2 AS bigint), subject.gaussian_budget)
    WHERE subject.reserved <= excluded.budget
      AND subject.gaussian_reserved <= coalesce(CAST(:mu2 AS bigint), subject.gaussian_budget)
    RETURNING id
""")


RAISED = {
    currency: Sql.of(int)(f"""
        INSERT INTO allowance (id, {raised}, {other})
        VALUES (1, greatest(0, least(CAST(:amount AS bigint),
                                     CAST(:at_most AS bigint) - CAST(:setting AS bigint))), 0)
        ON CONFLICT (id) DO UPDATE
        SET {raised} = greatest(allowance.{raised}, least(allowance.{raised} + :amount, :at_most - :setting))
        RETURNING {raised}
    """)
    for currency, raised, other in (
        (Currency.LAPLACE, "raised", "gaussian_raised"),
        (Currency.GAUSSIAN, "gaussian_raised", "raised"),
    )
}

RAISE = {
    currency: Sql(
        f"UPDATE subject SET {budget} = least({budget} + :amount, :at_most) WHERE {budget} < :at_most"
    )
    for currency, (_, budget) in ACCOUNTS.items()
}


async def is_known(connection: Connection, subject: bytes) -> bool:
    """Whether a subject ever contributed, took part in a session or was given a budget."""
    return await READ.maybe(connection, subject=subject) is not None


async def read_statement(connection: Connection, subject: bytes, allowance: Allowance) -> Statement:
    """A subject's statement; a person never seen has the budget of a new subject. Call in a `SNAPSHOT`.

    Raises:
        Overtaken: the lines do not add up to what is reserved: of a distributed database, the nodes with
            people and the coordinator showed two moments.
    """
    row = await READ.maybe(connection, subject=subject)
    lines = await READ_HOLDINGS.all(connection, subject=subject)
    sessions = await READ_ENROLMENTS.all(connection, subject=subject)
    if row is None:
        new = await starting(connection, allowance)
        row = (new.epsilon, 0, new.mu2, 0)
    budget, reserved, gaussian_budget, gaussian_reserved = row
    held = sum(line.amount for line in lines if not line.delta) + sum(line.epsilon for line in sessions)
    if (reserved, gaussian_reserved) != (held, sum(line.amount for line in lines if line.delta)):
        raise Overtaken
    pure = [line.amount_spent for line in lines if not line.delta]
    account = Account(
        subject=subject,
        budget=budget,
        reserved=reserved,
        spent=sum(pure) + sum(line.spent for line in sessions),
        gaussian_budget=gaussian_budget,
        gaussian_reserved=gaussian_reserved,
        gaussian_spent=sum(line.amount_spent for line in lines if line.delta),
        delta=allowance.delta,
    )
    return Statement(account=account, studies=tuple(lines), sessions=tuple(sessions))


async def page_charges(
    connection: Connection,
    subject: bytes,
    *,
    before: UUID | None,
    limit: int,
    slugs: frozenset[str] | None,
) -> list[PersonalCharge]:
    """What releases cost one person, newest first, in these studies only unless None."""
    return await PAGE_CHARGES.all(connection, subject=subject, before=before, limit=limit, slugs=slugs)


async def set_budget(
    connection: Connection, subject: bytes, *, epsilon: int, mu2: int | None, allowance: Allowance
) -> bool:
    """Set a lifetime budget; False where more than that is reserved already."""
    # While this lock is held, what a new person starts with stays as it is.
    await LOCK_SHARED.run(connection, locks=(ACCOUNTS_LOCK,), study_id=0)
    new = await starting(connection, allowance)
    known = await SET_BUDGET.maybe(
        connection,
        subject=subject,
        budget=epsilon,
        mu2=mu2,
        default_mu2=new.mu2,
    )
    return known is not None


async def hold_accounts(connection: Connection) -> None:
    """Keep every account as it is for everyone but this transaction, until it ends."""
    await LOCK_EXCLUSIVE.run(connection, lock=ACCOUNTS_LOCK, study_id=0)


async def raise_all(
    connection: Connection, allowance: Allowance, currency: Currency, *, amount: int, at_most: int
) -> int:
    """Add to every budget in a currency; one that is at most or above stays. Call with all accounts held.

    Args:
        connection: In a transaction.
        allowance: Budget of new subjects, before it was raised.
        currency: Of the budgets.
        amount: What to add [the currency].
        at_most: Up to which budget [the currency].

    Returns:
        The budget of a person who is new from now on [the currency].
    """
    limits, setting = {"amount": amount, "at_most": at_most}, allowance.room(currency)
    raised = await RAISED[currency].one(connection, **limits, setting=setting)
    await RAISE[currency].run(connection, **limits)
    return setting + raised


async def free_unspent(connection: Connection, study_id: int, currency: Currency) -> None:
    """Free what people reserve in a study and have not spent.

    Call once, when the study is archived, with all accounts held.
    """
    await FREE_UNSPENT[currency].run(connection, study_id=study_id)


async def page_accounts(
    connection: Connection, allowance: Allowance, *, after: bytes, limit: int
) -> list[Account]:
    """Accounts in the order of their subjects' ids; costs O(limit)."""
    accounts = await PAGE.all(connection, after=after, limit=limit, delta=allowance.delta)
    rows = await SPENT_BY.all(connection, subjects=[account.subject for account in accounts])
    spent = {subject: (epsilon, mu2) for subject, epsilon, mu2 in rows}
    return [
        replace(account, spent=epsilon, gaussian_spent=mu2)
        for account in accounts
        for epsilon, mu2 in [spent.get(account.subject, (0, 0))]
    ]
