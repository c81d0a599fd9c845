"""Who is asking."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Role(StrEnum):
    """What a token may do. No role includes another one."""

    CONTRIBUTE = "contribute"
    ANALYSE = "analyse"
    ADMIN = "admin"
    OBSERVE = "observe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The bearer of a valid token.

    Attributes:
        token_id: The token's row.
        name: The token's name, for the audit trail.
        role: What it may do.
        studies: Slugs it is limited to; None for all.
        subject: The one subject it may act for (HMAC digest); None for all.
    """

    token_id: UUID
    name: str
    role: Role
    studies: frozenset[str] | None
    subject: bytes | None
