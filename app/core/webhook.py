"""Webhooks: addresses that learns what happened, never anything about people."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class EventType(StrEnum):
    """What a webhook can learn."""

    RELEASED = "released"
    """An answer was published."""

    BUDGET_LOW = "budget_low"
    """The answers of a study have come to use four fifths of what people offered, or more."""

    SESSION_CLOSED = "session_closed"
    """A session has ended."""

    STUDY_CLOSED = "study_closed"
    """A study was closed, archived or retired."""

    SCHEDULE_REFUSED = "schedule_refused"
    """A question that is asked by a schedule was refused; no one was charged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that learns what happens, without the secret that events are signed with.

    Attributes:
        id: Random id.
        url: Where events go.
        events: Which ones.
        token_id: Who made it.
        created_at: When.
        waiting: Events that it has not taken yet and that are tried again.
        given_up: Events that it did not take in `ATTEMPTS` attempts.
    """

    id: UUID
    url: str
    events: Sequence[str]
    token_id: UUID
    created_at: datetime
    waiting: int = 0
    given_up: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """An event that is due at a webhook.

    Attributes:
        id: The same in every attempt.
        webhook_id, url: Where it goes.
        body: JSON text.
    """

    id: UUID
    webhook_id: UUID
    url: str
    body: str
