"""Invitations on the wire."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import ConfigDict, Field

from app.core.errors import InvalidRequest
from app.core.invitation import Invitation, InvitationKind, InvitationState
from app.web.documents.token import Moment
from app.web.documents.types import Distinct, Integer, NewSubjectId, Text, WireIn, WireOut

MOST_LINKS = 10_000
"""Single links that are made at once."""

MOST_SUBJECTS = 1_000
"""People with ids of their own who are invited at once: a document holds no more."""

MOST_ANSWERS = 100_000
"""Answers that an open link may take."""

ANSWERS = 1_000
"""Answers that an open link takes where its maker does not say."""

TAKE_PATH = "/take/"
"""Where a link leads; its code follows."""

RECEIPT_PATH = "/take/receipt"
"""Where people look at what they gave; the receipt follows behind #, where no server sees it."""


class InvitationIn(WireIn):
    """A new invitation."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"kind": "open", "limit": 200, "name": "poster at the entrance"},
                {"kind": "single", "count": 50, "name": "by mail"},
            ],
            "oneOf": [
                {
                    "properties": {
                        "kind": {"const": "open"},
                        "count": {"type": "null"},
                        "subjects": {"type": "null"},
                    }
                },
                {
                    "properties": {
                        "kind": {"const": "single"},
                        "limit": {"type": "null"},
                        "subjects": {"type": "null"},
                        "count": {"type": "integer"},
                    },
                    "required": ["count"],
                },
                {
                    "properties": {
                        "kind": {"const": "single"},
                        "limit": {"type": "null"},
                        "count": {"type": "null"},
                        "subjects": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["subjects"],
                },
            ],
        }
    )

    kind: InvitationKind = Field(
        description="`open`: one link for all; `single`: a link for each person, which takes one answer."
    )
    name: Text = Field("Invitation", description="For admins.")
    count: Annotated[Integer, Field(ge=1, le=MOST_LINKS)] | None = Field(
        None, description="How many single links, each for a person of its own."
    )
    subjects: Annotated[list[NewSubjectId], Distinct] | None = Field(
        None,
        min_length=1,
        max_length=MOST_SUBJECTS,
        description="In place of `count`: external ids of the people of the single links, so that each has "
        "one lifetime budget over all studies.",
    )
    limit: Annotated[Integer, Field(ge=1, le=MOST_ANSWERS)] | None = Field(
        None, description=f"Answers that an open link takes; {ANSWERS:,} if not given."
    )
    expires_at: Moment | None = Field(
        None, description="From then on the links take no answer; never if not given."
    )

    @property
    def most(self) -> int:
        """Answers that it takes.

        Raises:
            InvalidRequest: it has what its kind does not have, or not what it needs.
        """
        if self.kind is InvitationKind.OPEN:
            for name in ("count", "subjects"):
                if getattr(self, name) is not None:
                    raise InvalidRequest.field(name, "is for single links; an open one has a limit")
            return self.limit or ANSWERS
        if self.limit is not None:
            raise InvalidRequest.field("limit", "is for open links; a single one takes one answer")
        if (self.count is None) == (self.subjects is None):
            reason = "single links need either a count or subjects"
            raise InvalidRequest.field("count", reason)
        return self.count or len(self.subjects or ())


class InvitationMadeOut(WireOut):
    """A new invitation with its links, which are shown this once; only an open one can be shown again."""

    id: UUID
    urls: list[str] = Field(description="An open link, or single ones in the order of `subjects`.")


class InvitationOut(WireOut):
    """An invitation without its links."""

    id: UUID
    study: str
    kind: InvitationKind
    name: str
    limit: int = Field(description="Answers that it takes.")
    used: int | None = Field(
        description="Answers that came by it; null where the number of people is secret."
    )
    state: InvitationState
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, one: Invitation, state: InvitationState) -> Self:
        """The wire form of an invitation in this state."""
        return cls.made_of(one, limit=one.most, state=state)


def urls_csv(urls: Sequence[str], subjects: Sequence[str] | None) -> str:
    """Links as CSV, beside the people that they are for."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\r\n")
    columns = {"url": urls} if subjects is None else {"subject": subjects, "url": urls}
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return lines.getvalue()
