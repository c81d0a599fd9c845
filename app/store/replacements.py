"""Replacing and withdrawing: what changes the value that one person holds.

Locks are those of `app.store.contributions`.
"""

from app.core.contribution import Offer, Outcome
from app.core.ledger import Holding, entry, same_value
from app.core.study import StudyState, Trust
from app.store.contributions import (
    ACCOUNTS_LOCK,
    EPOCH_LOCK,
    FOLD_LOCK,
    Epoch,
    closed_outcome,
    enter,
    note,
    read_holdings,
    reserve,
)
from app.store.membership import IS_MEMBER, square, summand
from app.store.sql import Connection, Sql

LOCK_SUBJECT = Sql("SELECT id FROM subject WHERE id = :subject FOR UPDATE")

REPLACE = Sql("""
    UPDATE contribution
    SET trust = CAST(:trust AS trust), epsilon = :epsilon, carried = :carried, value = :value,
        vector = CAST(:vector AS bigint[]), epoch = :epoch, sender = :sender, segment = :segment
    WHERE study_id = :study_id AND subject_id = :subject
""")

WITHDRAW = Sql("""
    UPDATE contribution
    SET value = NULL, vector = NULL, sender = NULL, epsilon = :spent, carried = :spent, segment = 0
    WHERE study_id = :study_id AND subject_id = :subject
""")

LEAVE_COHORT = Sql.of(int)(f"""
    UPDATE cohort
    SET count = count - 1, total = total - {summand()},
        total_squares = total_squares - {square("c", summand())}
    FROM contribution c JOIN lineage ON {IS_MEMBER}
    WHERE c.study_id = :study_id AND c.subject_id = :subject AND cohort.id = lineage.cohort_id
    RETURNING cohort.spent
""")


class Refused(Exception):
    """Rolls a half-done replacement back."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.value)
        self.outcome = outcome


async def replace(connection: Connection, study_id: int, offer: Offer) -> Outcome | None:
    """Put a value in the place of a live one; what was spent stays spent.

    The same central or public value again is a replacement like any other: it leaves its cohort and enters
    the current epoch, so that nothing shows whether the value changed. A local report costs its whole
    epsilon, and of the same epsilon only the very same report is accepted; its retry changes nothing.

    Returns:
        REPLACED, UNCHANGED or STUDY_CLOSED; None where the subject holds nothing live.

    Raises:
        Refused: the offer is less than what was spent, or does not fit the budget.
    """
    epoch, holding = await _locked_holding(connection, study_id, offer.subject)
    if epoch.state is not StudyState.OPEN:
        return closed_outcome(holding, offer)
    if holding is None or not holding.live:
        return None
    if holding.trust is Trust.LOCAL and same_value(holding, offer):
        return Outcome.UNCHANGED
    spent = await _leave(connection, study_id, offer.subject, holding, epoch)
    result = entry(offer, spent=spent)
    if isinstance(result, Outcome):
        raise Refused(result)
    more = {offer.subject: result.epsilon - holding.epsilon}
    if not await reserve(connection, more, epoch.currency):
        raise Refused(Outcome.BUDGET_EXHAUSTED)
    await note(connection, study_id, epoch.current, 1)
    await REPLACE.run(connection, result, study_id=study_id, subject=offer.subject, epoch=epoch.current)
    return Outcome.REPLACED


async def withdraw(connection: Connection, study_id: int, subject: bytes) -> bool:
    """Delete a value and free the unspent part of its reservation.

    In a retired study all of it is spent; in an archived one the unspent part is free already.

    Returns:
        False where the subject never contributed to the study.
    """
    epoch, holding = await _locked_holding(connection, study_id, subject)
    if holding is None:
        return False
    if not holding.live:
        return True
    spent = await _leave(connection, study_id, subject, holding, epoch)
    if epoch.state is StudyState.RETIRED:
        # The ledger may have forgotten charges here, but no one was ever charged more than they reserved.
        spent = holding.epsilon
    await WITHDRAW.run(connection, study_id=study_id, subject=subject, spent=spent)
    # Freeing nothing, in an archived study, keeps a distributed database from committing this in one phase.
    less = 0 if epoch.state is StudyState.ARCHIVED else spent - holding.epsilon
    await reserve(connection, {subject: less}, epoch.currency)
    return True


async def _locked_holding(
    connection: Connection, study_id: int, subject: bytes
) -> tuple[Epoch, Holding | None]:
    epoch = await enter(connection, study_id, locks=(FOLD_LOCK, EPOCH_LOCK, ACCOUNTS_LOCK))
    await LOCK_SUBJECT.run(connection, subject=subject)
    return epoch, (await read_holdings(connection, study_id, [subject])).get(subject)


async def _leave(
    connection: Connection, study_id: int, subject: bytes, holding: Holding, epoch: Epoch
) -> int:
    """Take a live value out of the cohort it was folded into, if any; return what its owner has spent."""
    if holding.epoch > epoch.folded:
        await note(connection, study_id, holding.epoch, -1)
        return holding.epsilon if holding.trust is Trust.LOCAL else holding.carried
    spent = await LEAVE_COHORT.one(connection, study_id=study_id, subject=subject)
    return holding.carried if holding.trust is Trust.PUBLIC else spent
