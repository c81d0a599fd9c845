"""Pages of a list, addressed by an opaque cursor."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.core.errors import InvalidRequest

Item = TypeVar("Item")
Key = TypeVar("Key")
Start = TypeVar("Start")

NOT_A_CURSOR = "not a cursor of this list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[Item]):
    """One page and where the next one starts; None at the end."""

    items: Sequence[Item]
    next_cursor: str | None


def page_of(
    items: Sequence[Item], limit: int, cursor: Callable[[Item], str], *, behind: object = None
) -> Page[Item]:
    """A page of `limit` out of the `limit + 1` items that were read.

    Args:
        items: What was read.
        limit: Most items of a page.
        cursor: What stands for an item in a cursor.
        behind: The id of the item behind which the page begins. A cursor is given only where items follow,
            so an id behind which there are none, known elsewhere or nowhere, is no cursor of this list.

    Raises:
        InvalidRequest: nothing is behind it.
    """
    if behind is not None and not items:
        raise InvalidRequest.field("cursor", NOT_A_CURSOR)
    if len(items) <= limit:
        return Page(items=items, next_cursor=None)
    return Page(items=items[:limit], next_cursor=encode_cursor(cursor(items[limit - 1])))


def encode_cursor(text: str) -> str:
    """An opaque cursor."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None, parse: Callable[[str], Key], start: Start) -> Key | Start:
    """What a cursor stands for; `start` where there is none.

    Raises:
        InvalidRequest: it is not one of this list's cursors.
    """
    if cursor is None:
        return start
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return parse(base64.b64decode(padded, altchars=b"-_", validate=True).decode())
    except (binascii.Error, ValueError) as error:
        raise InvalidRequest.field("cursor", NOT_A_CURSOR) from error
