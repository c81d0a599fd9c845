"""What all answers share on their way out: tries while people come and go, and what stands already."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from app.core.errors import InternalFault, Unavailable
from app.core.release import Draft, StoredRelease
from app.core.study import Study
from app.services.replies import Idempotency, Replies
from app.store import cohorts
from app.store import releases as store
from app.store.database import Connection, Database, Result, Run, within
from app.store.journal import Reply

FREE_ATTEMPTS = 3
"""Times a release is planned while people may leave or other releases be quicker; then they wait for it."""


async def tried(free: Callable[[], Awaitable[Result]], held: Callable[[], Awaitable[Result]]) -> Result:
    """What is published while people may leave; if they keep leaving, what `held` publishes, who holds them.

    An attempt that raises `CohortsChanged` has ended its transaction, with all that it wrote.

    Raises:
        Unavailable: cohorts change although they are held: a node of the database is recovering.
    """
    for _ in range(FREE_ATTEMPTS):
        with suppress(store.CohortsChanged):
            return await free()
    try:
        return await held()
    except store.CohortsChanged:
        # No person could leave: not everything that was folded is to be seen.
        raise Unavailable("a node of the database is recovering; ask again") from None


async def persist(
    database: Database, study: Study, attempt: Callable[[Run], Awaitable[StoredRelease]]
) -> StoredRelease:
    """Try to publish; `attempt` returns what was published, or what stands in its place.

    In the end all of an attempt runs in one transaction, which keeps what it writes if it returns, and
    nothing if it raises.

    Raises:
        Unavailable: as `tried`.
    """

    async def held(connection: Connection) -> StoredRelease:
        await cohorts.hold(connection, study.id)
        return await attempt(within(connection))

    return await tried(lambda: attempt(database.run_tx), lambda: database.run_tx("release.held", held))


async def standing(
    run: Run, replies: Replies, study: Study, release_id: UUID, idempotency: Idempotency | None
) -> StoredRelease:
    """The answer for which all people have given the share that is asked for; a key remembers it."""

    async def body(connection: Connection) -> StoredRelease:
        if idempotency is not None and (known := await replies.claim(connection, idempotency)):
            return await replayed(connection, known)
        release = await store.read_release(connection, release_id)
        if release is None:
            raise InternalFault("a stored release has vanished")
        if idempotency is not None:
            made = str(release_id).encode()
            await replies.store(connection, idempotency, study_id=study.id, status=200, body=made)
        return replace(release, replayed=True, stands=True)

    return await run("release.stands", body)


def published(study: Study, draft: Draft) -> StoredRelease:
    """A draft that has been published, as a release."""
    return StoredRelease(
        id=draft.id,
        study_id=study.id,
        study=study.definition.slug,
        epoch=draft.epoch,
        body=draft.body,
        noisy_count=draft.facts.noisy_count,
        variance=draft.facts.variance,
        created_at=draft.created_at,
    )


async def replayed(connection: Connection, reply: Reply) -> StoredRelease:
    """The release that a key stands for.

    Raises:
        InternalFault: it is not there.
    """
    release = await store.read_release(connection, UUID(reply.body.decode()))
    if release is None:
        raise InternalFault("a stored release has vanished")
    return replace(release, replayed=True, stands=reply.status == 200)
