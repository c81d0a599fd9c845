"""What a document of records is read into, piece by piece, whatever its format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.errors import FieldError, MalformedDocument

MAX_RECORD = 65_536
"""Characters of one record."""

Record = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A record that is refused where the document goes on.

    Attributes:
        code: Of the refusal.
        fields: Which fields are to blame.
    """

    code: str
    fields: Sequence[FieldError]


class Records(Protocol):
    """Reads one document of a format. What it yields must be taken to the end."""

    def feed(self, text: str) -> Iterator[Record | Unreadable]:
        """The records that the next piece of text completes.

        Raises:
            MalformedDocument: it is no document of this format.
        """

    def finish(self) -> Iterator[Record | Unreadable]:
        """The rest.

        Raises:
            MalformedDocument: the document breaks off.
        """


def record_of(value: object) -> Record | Unreadable:
    """A value as a record, which is an object."""
    if isinstance(value, dict):
        return value
    return Unreadable(code="invalid_request", fields=[FieldError("record", "must be an object")])


def check_lengths(*records: str) -> None:
    """Hold records, and what may be the beginning of one, to their length.

    Raises:
        MalformedDocument: one is longer.
    """
    if any(len(record) > MAX_RECORD for record in records):
        raise MalformedDocument(f"a record is malformed, or longer than {MAX_RECORD} characters")
