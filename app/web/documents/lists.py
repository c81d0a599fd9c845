"""Lists: pages addressed by an opaque cursor."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import AfterValidator

from app.web.documents.types import WireOut
from app.web.validation_messages import InvalidValue

Item = TypeVar("Item")


def shaped(pattern: str) -> Callable[[str], str]:
    """Refuses what is no cursor of a list, before the database sees it."""
    shape = re.compile(pattern, re.ASCII)

    def check(cursor: str) -> str:
        try:
            padded = cursor + "=" * (-len(cursor) % 4)
            text = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
        except (binascii.Error, ValueError):
            text = ""
        if shape.fullmatch(text) is None:
            raise InvalidValue("is not a cursor of this list")
        return cursor

    return check


is_slug = shaped("[a-z0-9-]{1,63}")
is_number = shaped(r"\d{1,18}")
is_numbers = shaped(r"\d{1,18}( \d{1,18})?")
is_uuid = shaped("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_CURSOR = Query(max_length=500, description="Where the page starts: `next_cursor` of the page before.")

Limit = Annotated[int, Query(ge=1, le=200, description="Most entries on the page.")]

SlugCursor = Annotated[str, AfterValidator(is_slug), _CURSOR]

NumbersCursor = Annotated[str, AfterValidator(is_numbers), _CURSOR]

NumberCursor = Annotated[str, AfterValidator(is_number), _CURSOR]

DayCursor = Annotated[str, AfterValidator(shaped(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")), _CURSOR]

UuidCursor = Annotated[str, AfterValidator(is_uuid), _CURSOR]

DigestCursor = Annotated[str, AfterValidator(shaped("[0-9a-f]{64}")), _CURSOR]


class PageOut(WireOut, Generic[Item]):
    """One page of a list; `next_cursor` is null on the last one."""

    items: list[Item]
    next_cursor: str | None

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """In the OpenAPI document: `StudyPage`, not `PageOut[StudyOut]`."""
        names = [getattr(one, "__name__", "") for one in params]
        return f"{names[0].removesuffix('Out') or 'Release'}Page"
