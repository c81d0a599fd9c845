"""Tokens on the wire."""

from datetime import UTC, date, datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, Field, model_validator

from app.core.errors import InvalidRequest
from app.core.principal import Role, in_order
from app.web.documents.types import (
    DigestOut,
    Distinct,
    Integer,
    Share,
    ShareOut,
    Slug,
    SubjectId,
    Text,
    WireIn,
    WireOut,
)
from app.web.validation_messages import InvalidValue

MAX_PERIOD_SECONDS = 366 * 24 * 3600

MAX_GRACE_SECONDS = 30 * 24 * 3600


def _moment(value: object) -> object:
    if type(value) is not str:
        raise InvalidValue("must be a date and time such as 2030-01-31T12:00:00Z")
    return value


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidValue("must be a date and time such as 2030-01-31T12:00:00Z") from None


def _in_order(value: object) -> object:
    return sorted(value) if isinstance(value, frozenset) else value


def _listed(value: object) -> object:
    return in_order(value) if isinstance(value, frozenset) else value


Moment = Annotated[AwareDatetime, BeforeValidator(_moment), AfterValidator(_in_utc)]
"""A date and time with its offset, in UTC from here on."""


class TokenIn(WireIn):
    """A new token."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "survey app", "role": "contribute", "studies": ["commute-minutes"]}],
            "if": {"required": ["subject"], "properties": {"subject": {"type": "string"}}},
            "then": {
                "anyOf": [
                    {"required": ["role"], "properties": {"role": {"const": "contribute"}}},
                    {"required": ["roles"], "properties": {"roles": {"const": ["contribute"]}}},
                ]
            },
            # Not as alternatives: generators of clients make a class of each.
            "not": {
                "anyOf": [
                    {"properties": {"role": {"type": "null"}, "roles": {"type": "null"}}},
                    {
                        "required": ["role", "roles"],
                        "properties": {"role": {"type": "string"}, "roles": {"type": "array"}},
                    },
                    {
                        "required": ["role", "studies"],
                        "properties": {"role": {"const": "observe"}, "studies": {"type": "array"}},
                    },
                    {
                        "required": ["roles", "studies"],
                        "properties": {
                            "roles": {"type": "array", "contains": {"const": "observe"}},
                            "studies": {"type": "array"},
                        },
                    },
                ]
            },
        }
    )

    name: Text
    role: Role | None = Field(None, description="The only one that it has; or `roles`.")
    roles: Annotated[list[Role], Distinct] | None = Field(
        None, min_length=1, description="All that it has: it may do what one of them may."
    )
    studies: Annotated[list[Slug], Distinct] | None = Field(
        None, min_length=1, max_length=1000, description="Slugs it is limited to; all if not given."
    )
    subject: SubjectId | None = Field(
        None, description="The one person it acts for; only with the role contribute alone."
    )
    expires_at: Moment | None = Field(None, description="From then on it is refused; never if not given.")

    @model_validator(mode="after")
    def _says_what_it_may(self) -> Self:
        if (self.role is None) is (self.roles is None):
            raise InvalidRequest.field("role", "give one role, or several as roles")
        return self

    @property
    def all_roles(self) -> frozenset[Role]:
        """What it may do."""
        return frozenset(self.roles or filter(None, [self.role]))


class QuotaIn(WireIn):
    """What a token may use of each study."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"share": 0.2, "period_seconds": 86400}]})

    share: Share
    period_seconds: Annotated[
        Integer, Field(ge=1, le=MAX_PERIOD_SECONDS, description="Length of the sliding period.")
    ]


class RotateIn(WireIn):
    """How to change a secret."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"grace_seconds": 3600}]})

    grace_seconds: Annotated[
        Integer,
        Field(ge=0, le=MAX_GRACE_SECONDS, description="How long the old secret stays valid after rotation."),
    ] = 0


class QuotaOut(WireOut):
    """What a token may use of each study: a share of every person's epsilon within the period."""

    share: ShareOut
    period_seconds: int


class UsageOut(WireOut):
    """What a token used of one study, in its quota's period or, without a quota, ever."""

    study: str
    releases: int
    used: ShareOut = Field(description="The most that its releases took of any person's epsilon, together.")


class TokenOut(WireOut):
    """A token without its secret."""

    id: UUID
    name: str
    role: Role
    roles: Annotated[list[Role], BeforeValidator(_listed)] = Field(
        description="All that it has, of which `role` is the first: it may do what one of them may."
    )
    studies: Annotated[list[str] | None, BeforeValidator(_in_order)] = Field(
        description="Slugs it is limited to; null: all."
    )
    subject: DigestOut | None = Field(description="Digest of the one person it acts for.")
    expires_at: datetime | None = Field(description="From then on it is refused; null: never.")
    revoked_at: datetime | None
    created_at: datetime
    last_used_on: date | None = Field(description="The last day (UTC) on which it was used.")
    quota: QuotaOut | None = Field(description="What it may use of each study; null without a limit.")
    by_provider: bool = Field(description="Whether it stands for an identity of the OIDC provider.")


class NewTokenOut(TokenOut):
    """A token with its secret, which is shown this once."""

    token: str
