"""Publications on the wire."""

import re
from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field

from app.core.publication import MOST_RELEASES, Publication, PublicationState
from app.services.admin.publications import KnownKey, Wish
from app.web.documents.token import Moment
from app.web.documents.types import Distinct, Slug, Text, WireIn, WireOut
from app.web.validation_messages import InvalidValue

PUBLIC_PATH = "/p/"
"""Where publications are read; the slug follows."""

KEYS_PATH = "/.well-known/dither-keys.json"

MOST_FRAMES = 10

_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?")


def _origin(text: str) -> str:
    if _ORIGIN.fullmatch(text) is None:
        raise InvalidValue("must be an origin, such as https://example.org")
    return text


class PublicationChangeIn(WireIn):
    """What a publication shows from now on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "releases": ["3b1d7c5e-7a42-4a0c-9a57-3f3f9a0d1f60"],
                    "title": "How long people commute",
                }
            ]
        }
    )

    releases: Annotated[list[UUID], Distinct] = Field(
        min_length=1, max_length=MOST_RELEASES, description="The answers, in this order."
    )
    title: Text = Field(description="For people.")
    expires_at: Moment | None = Field(
        None, description="From then on no one can read it; never if not given."
    )
    frames: Annotated[list[Annotated[str, AfterValidator(_origin)]], Distinct] = Field(
        default_factory=list,
        max_length=MOST_FRAMES,
        description="Origins whose pages may show it in a frame, such as https://example.org.",
    )

    def wish(self) -> Wish:
        """What the services take."""
        return Wish(
            title=self.title,
            releases=self.releases,
            frames=self.frames,
            expires_at=self.expires_at,
        )


class PublicationIn(PublicationChangeIn):
    """A new publication."""

    slug: Slug | None = Field(None, description="Its address, behind `/p/`; a new one if not given.")


class PublicationOut(WireOut):
    """A publication."""

    slug: str
    url: str | None = Field(description="Where everyone reads it; null where no one knows the address.")
    study: str
    title: str
    releases: list[UUID]
    frames: list[str]
    state: PublicationState
    created_at: datetime
    changed_at: datetime
    expires_at: datetime | None
    withdrawn_at: datetime | None

    @classmethod
    def of(cls, one: Publication, state: PublicationState, base: str | None) -> Self:
        """The wire form of a publication in this state.

        Args:
            one: The publication.
            state: Whether it can be read.
            base: Where people reach the service.
        """
        url = None if base is None else f"{base}{PUBLIC_PATH}{one.slug}"
        return cls.made_of(one, url=url, state=state)


class KeyOut(WireOut):
    """A public key by which files of publications may be signed."""

    key: str = Field(description="As tools for signed notes (C2SP) take it: name, id and key.")
    since: datetime | None = Field(description="When it signed first; null where it has signed nothing yet.")
    current: bool

    @classmethod
    def of(cls, one: KnownKey) -> Self:
        """The wire form of a key."""
        return cls.made_of(one, key=one.key.text)


class KeysOut(WireOut):
    """Every public key by which files of publications may be signed, the oldest first."""

    keys: list[KeyOut]
