"""First responses to idempotency keys."""

from dataclasses import dataclass
from uuid import UUID

from app.core.errors import IdempotencyKeyReused, InternalFault
from app.store import journal
from app.store.database import Database
from app.store.journal import Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """A client's key for one request.

    Attributes:
        token_id: Keys of different tokens are different keys.
        key: The Idempotency-Key header.
        request: SHA-256 of the request.
    """

    token_id: UUID
    key: str
    request: bytes


class Replayed(Exception):
    """Another request with the same idempotency key was quicker; undo this one."""


async def stored_reply(database: Database, idempotency: Idempotency) -> Reply | None:
    """The first response to a key; None where there is none yet.

    Raises:
        IdempotencyKeyReused: the key belongs to another request.
    """
    reply = await database.run_tx(
        "idempotency.read", lambda c: journal.read_reply(c, idempotency.token_id, idempotency.key)
    )
    if reply is not None and reply.request != idempotency.request:
        raise IdempotencyKeyReused("this Idempotency-Key was used for another request")
    return reply


async def replayed_reply(database: Database, idempotency: Idempotency) -> Reply:
    """The first response to a key that another request was quicker with.

    Raises:
        IdempotencyKeyReused: the key belongs to another request.
    """
    reply = await stored_reply(database, idempotency)
    if reply is None:
        raise InternalFault("a stored response has vanished")
    return reply
