"""Webhooks on the wire."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, StringConstraints

from app.core.webhook import EventType
from app.web.documents.types import Distinct, WireIn, WireOut

Url = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class WebhookIn(WireIn):
    """A new webhook."""

    url: Url = Field(
        description="Where events are sent by POST: https://. Addresses that are not public are refused, "
        "also where a name leads there later, unless `DITHER_WEBHOOK_PRIVATE_ADDRESSES` allows them."
    )
    events: Annotated[list[EventType], Distinct] = Field(
        min_length=1, description="What it learns.", examples=[["released", "study_closed"]]
    )


class WebhookOut(WireOut):
    """A webhook without its secret."""

    id: UUID
    url: str
    events: list[EventType]
    created_at: datetime
    waiting: int = Field(description="Events that it has not taken yet; they are tried again.")
    given_up: int = Field(description="Events that it did not take in four days.")


class NewWebhookOut(WebhookOut):
    """A webhook with its secret, which is shown this once."""

    secret: str = Field(description="`whsec_` and 32 bytes in base64: what events are signed with.")
