"""One JSON array of objects, read element by element."""

import json
import re
from collections.abc import Iterator

from app.core.errors import MalformedDocument
from app.formats.records import Record, Unreadable, check_lengths, record_of
from app.formats.strict_json import DuplicateKey, decode_element

_WHITE_SPACE = re.compile(r"[ \t\r\n]*")


class JsonArray:
    """One JSON array. It is malformed as a whole or not at all."""

    def __init__(self) -> None:
        self._rest = ""
        self._expect = "["
        self._records = 0

    def feed(self, text: str) -> Iterator[Record | Unreadable]:
        """The elements that are complete."""
        text = self._rest + text
        place = _skip(text, 0)
        while place < len(text):
            mark = text[place]
            if not self._expect:
                raise MalformedDocument("something follows the array")
            if mark == "]" and self._expect in ("first", ","):
                self._expect = ""
                place = _skip(text, place + 1)
            elif mark == self._expect:
                self._expect = "first" if mark == "[" else "next"
                place = _skip(text, place + 1)
            elif self._expect in ("first", "next"):
                element = _element(text, place)
                if element is None:
                    break
                self._expect = ","
                record, place = element
                self._records += 1
                yield record
            else:
                raise MalformedDocument("the document is not a JSON array of objects")
        self._rest = text[place:]
        check_lengths(self._rest)

    def finish(self) -> Iterator[Record | Unreadable]:
        """Nothing: what is left is no element."""
        if self._rest.strip():
            last = self._records + 1
            raise MalformedDocument(f"record {last} is malformed, or the document ends before the array does")
        if self._expect:
            raise MalformedDocument("the document ends before the array does")
        return iter(())


def _element(text: str, place: int) -> tuple[Record | Unreadable, int] | None:
    """The element that starts at a place, and where the next sign is; None where it may go on."""
    try:
        record, end = decode_element(text, place)
    except json.JSONDecodeError:
        return None
    check_lengths(text[place:end])
    end = _skip(text, end)
    if end == len(text):
        return None
    if isinstance(record, DuplicateKey):
        return Unreadable(code=record.code, fields=record.fields), end
    return record_of(record), end


def _skip(text: str, place: int) -> int:
    """The next place that is no white space."""
    match = _WHITE_SPACE.match(text, place)
    return place if match is None else match.end()
