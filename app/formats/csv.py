"""CSV (RFC 4180) with a header line, in any case; an empty cell is a missing field."""

import csv
import io
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from app.core.errors import MalformedDocument
from app.core.numbers import JsonNumber
from app.formats.records import Record, Unreadable, check_lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What the columns of a document may be.

    Attributes:
        names: All of them.
        required: The one that must be there.
        numbers: Those that hold numbers.
        lists: Those whose cells hold several numbers: 1.5;-2;0.25.
    """

    names: Set[str]
    required: str
    numbers: Set[str]
    lists: Set[str]


class Csv:
    """One document."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._rest = ""
        self._header: list[str] | None = None

    def feed(self, text: str) -> Iterator[Record | Unreadable]:
        """The records of complete lines."""
        text = self._rest + text
        end = text.rfind("\n") + 1
        quotes = text.count('"', 0, end)
        # A line end within quotes ends no record. Every quote is counted once forwards and once back.
        while quotes % 2:
            # All line ends behind the last quote are within quotes: go on before it, whatever their number.
            start = text.rfind("\n", 0, text.rfind('"', 0, end)) + 1
            quotes -= text.count('"', start, end)
            end = start
        self._rest = text[end:]
        check_lengths(self._rest)
        return self._records(text[:end])

    def finish(self) -> Iterator[Record | Unreadable]:
        """The record of a last line without an end."""
        if self._rest.count('"') % 2:
            raise MalformedDocument("the document breaks off within quotes")
        yield from self._records(self._rest)
        if self._header is None:
            raise MalformedDocument("the document has no header line")

    def _records(self, text: str) -> Iterator[Record | Unreadable]:
        try:
            for row in csv.reader(io.StringIO(text, newline=""), strict=True):
                if self._header is None:
                    self._header = self._read_header(row)
                elif row:
                    check_lengths(*row)
                    yield self._record(row, self._header)
        except csv.Error:
            raise MalformedDocument("the document is not CSV") from None

    def _read_header(self, row: Sequence[str]) -> list[str]:
        header, allowed = [name.lstrip("\ufeff").strip().lower() for name in row], self._columns
        if (
            len(set(header)) != len(header)
            or not set(header) <= allowed.names
            or allowed.required not in header
        ):
            names = ",".join(sorted(allowed.names))
            raise MalformedDocument(f"the header line must name fields out of {names}, each once")
        return header

    def _record(self, row: Sequence[str], header: Sequence[str]) -> Record | Unreadable:
        if len(row) != len(header):
            return Unreadable(code="malformed_row")
        return {name: self._cell(name, cell) for name, cell in zip(header, row, strict=True) if cell}

    def _cell(self, name: str, cell: str) -> object:
        if name in self._columns.lists:
            return [JsonNumber(number.strip()) for number in cell.split(";")]
        return JsonNumber(cell) if name in self._columns.numbers else cell
