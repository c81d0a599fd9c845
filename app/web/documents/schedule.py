"""Schedules on the wire."""

import json
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import ConfigDict, Field

from app.core.schedule import Every, Schedule
from app.services.admin.schedules import Times
from app.web.documents.token import Moment
from app.web.documents.types import Share, ShareOut, Shares, WireIn, WireOut


class ScheduleIn(WireIn):
    """A question, and when it is asked."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "question": {"statistic": "mean", "share": 0.1},
                    "every": "week",
                    "newcomers": True,
                    "quota": 5,
                }
            ]
        }
    )

    question: dict[str, Any] = Field(
        description="As it is posted to `releases`, without `allow_worse`, `fresh` and `until`. Its share is "
        "that of each time."
    )
    every: Every = Field(description="How often; times that were missed are not made up for.")
    starts_at: Moment | None = Field(
        None, description="The first time, from which others count. Now if not given."
    )
    newcomers: bool = Field(
        False,
        description="Ask those who came since the last time alone. Only where answers sharpen each other: "
        "where the number of people is public.",
    )
    until: Share | None = Field(
        None,
        description="Take the question's share again each time until it has taken this in all; then it ends.",
    )
    quota: Shares = Field(
        description="The most that its answers may take of any person's epsilon, together. One that takes "
        "more is refused, and charges no one."
    )

    def times(self) -> Times:
        """What the services take."""
        return Times(
            every=self.every,
            starts_at=self.starts_at,
            newcomers=self.newcomers,
            until=self.until,
            quota=self.quota,
        )


class ScheduleOut(WireOut):
    """A schedule."""

    id: UUID
    study: str
    question: dict[str, Any]
    every: Every
    starts_at: datetime
    share: ShareOut = Field(description="What it takes of each epsilon every time.")
    newcomers: bool
    until: ShareOut | None
    quota: ShareOut
    token_id: UUID = Field(
        description="The token whose quota this is, and who asks in the ledger. No one bears it."
    )
    created_at: datetime
    due_at: datetime | None = Field(description="When it is asked next; null: it has ended.")
    answered: int = Field(description="How many times it was answered.")
    asked_at: datetime | None = Field(description="When it was asked last.")
    release: UUID | None = Field(description="Its last answer.")
    refusal: str | None = Field(
        description="Code of what it was refused for the last time; null: it was answered."
    )

    @classmethod
    def of(cls, one: Schedule) -> Self:
        """The wire form of a schedule."""
        return cls.made_of(one, question=json.loads(one.question), newcomers=one.until is None)
