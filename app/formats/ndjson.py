"""NDJSON: one JSON object a line."""

from collections.abc import Iterator

from app.core.errors import FieldError, MalformedDocument, ServiceError
from app.formats.records import Record, Unreadable, check_lengths, record_of
from app.formats.strict_json import decode_json


class Lines:
    """NDJSON. A line that is not JSON is one refused record, since the others stand on their own."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> Iterator[Record | Unreadable]:
        """The records of complete lines."""
        *lines, self._rest = (self._rest + text).split("\n")
        check_lengths(*lines, self._rest)
        for line in lines:
            yield from _records(line)

    def finish(self) -> Iterator[Record | Unreadable]:
        """The record of a last line without an end."""
        return _records(self._rest)


def _records(line: str) -> Iterator[Record | Unreadable]:
    if not line or line.isspace():
        return
    try:
        record = decode_json(line)
    except MalformedDocument as refusal:
        yield Unreadable(code="malformed_json", fields=[FieldError("record", refusal.detail)])
    except ServiceError as refusal:
        yield Unreadable(code=refusal.code, fields=refusal.fields)
    else:
        yield record_of(record)
