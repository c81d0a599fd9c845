"""Retiring a study: from then on it gives only the answers that are stored."""

from collections.abc import Mapping

from app.core.clock import Clock
from app.core.study import Study
from app.services.rounds import Rounds
from app.store import journal, releases, sessions, studies
from app.store.database import Connection


async def retire(
    connection: Connection, study: Study, *, clock: Clock, actor: str, detail: Mapping[str, object]
) -> bool:
    """Retire a study for good and end its sessions; everything people reserved in it counts as spent.

    That is an upper bound of what they may have spent there, whatever the ledger has forgotten.

    Args:
        connection: An open transaction.
        study: Which one.
        clock: For the moment in the audit trail, and of its sessions' end.
        actor: Who does it, for the audit trail.
        detail: Why, for the audit trail.

    Returns:
        False where it was retired before; nothing was changed.
    """
    # Sessions first, in the order of an answer or of a round's end; then the chain, which releases hold.
    await sessions.lock_open(connection, study.id)
    await releases.lock_chain(connection, study.id)
    if not await studies.retire_study(connection, study.id):
        return False
    rounds = Rounds(clock)
    # Now that no session can be started, those that were since the first look are here too.
    for record in await sessions.lock_open(connection, study.id):
        await rounds.finish(connection, record.definition, record.head, free=False)
    await journal.record(
        connection,
        at=clock.now(),
        actor=actor,
        action="study.retire",
        target=study.definition.slug,
        detail=detail,
    )
    return True
