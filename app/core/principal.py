"""Who is asking."""

from collections.abc import Set
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Role(StrEnum):
    """What a token may do. No role includes another one."""

    CONTRIBUTE = "contribute"
    ANALYSE = "analyse"
    ADMIN = "admin"
    OBSERVE = "observe"


def in_order(roles: Set[Role]) -> list[Role]:
    """Roles as they are listed everywhere.

    >>> in_order({Role.ADMIN, Role.ANALYSE})
    [<Role.ANALYSE: 'analyse'>, <Role.ADMIN: 'admin'>]
    """
    return [role for role in Role if role in roles]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The bearer of a valid token.

    Attributes:
        token_id: The token's row.
        name: The token's name, for the audit trail.
        roles: What it may do: all that one of them may.
        studies: Slugs it is limited to; None for all.
        subject: The one subject it may act for (HMAC digest); None for all.
    """

    token_id: UUID
    name: str
    roles: frozenset[Role]
    studies: frozenset[str] | None
    subject: bytes | None
