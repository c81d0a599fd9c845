"""Changing the subject key. The database knows digests only, so the external ids must be brought along."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.core.clock import Clock
from app.core.errors import Conflict, InternalFault
from app.core.numbers import counted
from app.services.subjects import SubjectKey
from app.store import journal, rekey
from app.store.database import Connection, Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    """What a change of the key did.

    Attributes:
        done: False where the database has the new key already.
        moved: People who are known under the new key now.
        left: People whose ids were not brought: their budgets can no longer be found.
    """

    done: bool
    moved: int
    left: int


async def rekey_subjects(
    database: Database,
    clock: Clock,
    ids: Iterable[str],
    *,
    old: SubjectKey,
    new: SubjectKey,
    leave_unknown: bool = False,
) -> Rekeyed:
    """Replace all people's digests under one key by that under another, in one transaction.

    Balances, contributions and charges stay as they are; only whose they are is written differently. Links to
    people's pages, pages that are open, invitations, and idempotency keys of people's requests end. Receipts
    of what came by invitations stay good.

    Args:
        database: Used by nothing else: no service may run.
        clock: For the audit trail.
        ids: External ids of all people, in any order; unknown ids do not matter.
        old: The key that the database was filled under.
        new: The key to change to.
        leave_unknown: Go on although there are people whose id was not brought. They would be taken for new
            when they come back, and get a second budget.

    Raises:
        Conflict: a service runs, or a person would be lost. Nothing was changed.
        InternalFault: the database was filled under another key than the old one.
    """
    digests = {old.digest(name): new.digest(name) for name in ids}

    async def body(connection: Connection) -> Rekeyed:
        await rekey.lock_everybody(connection)
        kept = await journal.read_fact(connection, "subject_key")
        if kept == new.fingerprint():
            return Rekeyed(done=False, moved=0, left=0)
        if kept != old.fingerprint():
            raise InternalFault("the database was filled under another subject key")
        if await rekey.services_connected(connection):
            raise Conflict("a service is running on this database: stop it first")
        await rekey.end_links(connection, clock.now())
        left = await rekey.load_digests(connection, digests)
        if left and not leave_unknown:
            raise Conflict(
                f"{counted(left, 'person in the database has', 'people in the database have')} none of these "
                "ids and would be lost: when they come back, they would be taken for new and get a second "
                "budget"
            )
        moved = await rekey.move_people(connection, new.fingerprint())
        await journal.record(
            connection, clock.now(), "command line", "subject.rekey", "subjects", moved=moved, left=left
        )
        return Rekeyed(done=True, moved=moved, left=left)

    return await database.run_tx("subject.rekey", body)
