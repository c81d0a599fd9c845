"""Tokens on the wire."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, Field

from app.api.reasons import Refused
from app.api.wire.types import Distinct, Slug, SubjectId, Text, WireIn, WireOut
from app.core.principal import Role


def _moment(value: object) -> object:
    if type(value) is not str:
        raise Refused("must be a date and time such as 2030-01-31T12:00:00Z")
    return value


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise Refused("must be a date and time such as 2030-01-31T12:00:00Z") from None


def _hex(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


class TokenIn(WireIn):
    """A new token."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "survey app", "role": "contribute", "studies": ["commute-minutes"]}],
            "if": {"required": ["role"], "properties": {"role": {"enum": ["analyse", "admin"]}}},
            "then": {"properties": {"subject": {"type": "null"}}},
        }
    )

    name: Text
    role: Role
    studies: Annotated[list[Slug], Distinct] | None = Field(
        None, min_length=1, max_length=1000, description="Slugs it is limited to; all if not given."
    )
    subject: SubjectId | None = Field(
        None, description="The one person it acts for; only with the role contribute."
    )
    expires_at: Annotated[AwareDatetime, BeforeValidator(_moment), AfterValidator(_in_utc)] | None = Field(
        None, description="From then on it is refused; never if not given."
    )


def _in_order(value: object) -> object:
    return sorted(value) if isinstance(value, frozenset) else value


class TokenOut(WireOut):
    """A token without its secret."""

    id: UUID
    name: str
    role: Role
    studies: Annotated[list[str] | None, BeforeValidator(_in_order)]
    subject: Annotated[str | None, BeforeValidator(_hex)] = Field(
        description="Digest of the one person it acts for."
    )
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime


class NewTokenOut(TokenOut):
    """A token with its secret, which is shown this once."""

    token: str
