"""Ending a study for good: from then on it gives only the answers that are stored.

There are two ways. In an archived study everything that people reserved and have not spent is free again; in
a retired one, of which the ledger may have forgotten charges, all that they reserved counts as spent.
"""

from collections.abc import Mapping
from typing import Literal

from app.core.clock import Clock
from app.core.study import Study, StudyState
from app.core.webhook import EventType
from app.services.sessions.rounds import Rounds
from app.store import budgets, cohorts, journal, outbox, sessions, studies
from app.store.database import Connection

Ended = Literal[StudyState.ARCHIVED, StudyState.RETIRED]

ACTIONS: Mapping[Ended, str] = {StudyState.ARCHIVED: "study.archive", StudyState.RETIRED: "study.retire"}
"""Names of the two in the audit trail."""


async def end(
    connection: Connection,
    study: Study,
    state: Ended,
    *,
    clock: Clock,
    actor: str,
    detail: Mapping[str, object],
) -> bool:
    """End a study and its sessions.

    Args:
        connection: An open transaction.
        study: Which one.
        state: Archived frees what was not spent. Retired frees nothing: that is an upper bound of what people
            may have spent there, whatever the ledger has forgotten.
        clock: For the moment in the audit trail, and of its sessions' end.
        actor: Who does it, for the audit trail.
        detail: Why, for the audit trail.

    Returns:
        False where it had ended before, in either way; nothing was changed.
    """
    free = state is StudyState.ARCHIVED
    # Sessions first, in the order of an answer or of a round's end; then the lock that releases hold.
    await sessions.lock_open(connection, study.id)
    await cohorts.hold(connection, study.id)
    if not await studies.end_study(connection, study.id, state):
        return False
    if free:
        await budgets.hold_accounts(connection)
        await budgets.free_unspent(connection, study.id, study.definition.noise)
    await outbox.emit(connection, EventType.STUDY_CLOSED, study.id, {"state": state.value})
    rounds = Rounds(clock)
    # Now that no session can be started, those that were since the first look are here too.
    for record in await sessions.lock_open(connection, study.id):
        await rounds.finish(connection, record.definition, record.head, free=free)
    await journal.record(connection, clock.now(), actor, ACTIONS[state], study.definition.slug, **detail)
    return True
