"""Publications: answers that everyone may read at an address of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

MOST_RELEASES = 20
"""Answers that one publication shows."""


class PublicationState(StrEnum):
    """Whether everyone can read it."""

    SHOWN = "shown"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A publication without its file.

    Attributes:
        slug: Its address; never that of another one.
        study: Slug.
        title: For people.
        releases: The answers that it shows, in this order.
        frames: Origins whose pages may show it in a frame.
        token_id: Who published or changed it last.
        created_at, changed_at: When.
        expires_at: From then on no one can read it; None for never.
        withdrawn_at: When it was taken back; None where it was not.
    """

    slug: str
    study: str
    title: str
    releases: Sequence[UUID]
    frames: Sequence[str]
    token_id: UUID
    created_at: datetime
    changed_at: datetime
    expires_at: datetime | None
    withdrawn_at: datetime | None

    def state_at(self, now: datetime) -> PublicationState:
        """Whether everyone can read it."""
        if self.withdrawn_at is not None:
            return PublicationState.WITHDRAWN
        if self.expires_at is not None and self.expires_at <= now:
            return PublicationState.EXPIRED
        return PublicationState.SHOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What a privacy label takes from the database, none of which depends on who is there.

    Attributes:
        charged: The most that all releases of the study can have charged one person, their sum
            [the study's currency].
        sessions: The same of its sessions [micro-epsilon].
        open_links: Whether people could answer by an open link.
        anonymous_links: Whether single links were made for people without an external id.
    """

    charged: int
    sessions: int
    open_links: bool
    anonymous_links: bool
