"""Invitations: links by which people answer a study without an app."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class InvitationKind(StrEnum):
    """For whom a link is."""

    OPEN = "open"
    """One link for all. The promise holds for each answer: the ledger takes one who answers twice for two."""

    SINGLE = "single"
    """A link for each person, which takes one answer."""


class InvitationState(StrEnum):
    """Whether its links take answers."""

    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An invitation without the codes of its links.

    Attributes:
        id: Also the sender of what its links contribute.
        study: Slug.
        kind: For whom its links are.
        name: For admins.
        most: Answers that it takes; of single links how many there are.
        token_id: Who made it.
        created_at: When.
        expires_at, revoked_at: From then on its links take no answer; None for never.
        used: Answers that came by it, withdrawn ones too; None where presence is secret.
    """

    id: UUID
    study: str
    kind: InvitationKind
    name: str
    most: int
    token_id: UUID
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used: int | None

    def state_at(self, now: datetime) -> InvitationState:
        """Whether its links take answers."""
        if self.revoked_at is not None:
            return InvitationState.REVOKED
        if self.expires_at is not None and self.expires_at <= now:
            return InvitationState.EXPIRED
        return InvitationState.VALID


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a code leads to.

    Attributes:
        invitation: Its invitation.
        subject: The one person (HMAC digest) that it is for; None of an open one.
        receipt: SHA-256 of the receipt of its answer; None before it was used, and of an open one.
    """

    invitation: Invitation
    subject: bytes | None
    receipt: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Whose answer a receipt is for.

    Attributes:
        subject: The person (HMAC digest).
        invitation_id: By which it came.
        study: Slug.
    """

    subject: bytes
    invitation_id: UUID
    study: str
