"""Tables as people write them down: which encoding, which delimiter, which decimals. Pure, in pieces.

The SDK reads files with this, and the service batches: a table means the same to both.
"""

import csv
import io
import re
from collections.abc import Iterator, Set
from typing import Literal

Decimals = Literal[".", ","]
"""What stands before the decimals of a number in text."""

DELIMITERS = (",", ";", "\t")

_LOOKED_AT = 65_536
"""Characters of a line that tell its cells, for the delimiter and for refusals."""

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_PERHAPS_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")


class NotATable(ValueError):
    """The text cannot be read. The message says where and what to do; it goes on after the table's name."""


class NotOneNumber(ValueError):
    """A cell may mean two numbers."""


def encoding_of(start: bytes) -> str:
    """The encoding of text that begins so: by its mark; without one UTF-16 shows by a zero beside ASCII.

    >>> encoding_of("subject".encode("utf-16-le")), encoding_of(b"subject")
    ('utf-16-le', 'utf-8-sig')
    """
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" in start[:2]:
        return "utf-16-be" if start[0] == 0 else "utf-16-le"
    return "utf-8-sig"


def tidy_name(text: str) -> str:
    """The name of a column, without what is no part of it.

    >>> tidy_name(" Travel  time ")
    'Travel time'
    """
    return " ".join(text.replace("\ufeff", " ").split())


def with_point(text: str, decimals: Decimals | None) -> str:
    """A number as text, with a decimal point in place of a comma. What is no number stays what it is.

    Args:
        text: A cell.
        decimals: How it writes decimals; None: a comma where it can be nothing else.

    Raises:
        NotOneNumber: a comma may mean two things, or a point is none of decimals.

    >>> with_point(" 12,5", None)
    '12.5'
    """
    text = text.strip()
    if decimals == "," and "." in text:
        raise NotOneNumber("has a point where decimals follow a comma")
    if decimals == "." or "," not in text:
        return text
    if decimals is None and _PERHAPS_THOUSANDS.fullmatch(text):
        raise NotOneNumber("may have a comma before decimals, or one between thousands: say which")
    return text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text


class CsvReader:
    """The rows of a CSV that is pushed in pieces, its header first; lines without a word are none.

    The delimiter is the one by which the header names most of what is looked for. At most one piece and
    one row are held.

    Args:
        names: Of the columns that are looked for; case and spaces do not count.
        max_row: Characters of one row.
    """

    def __init__(self, names: Set[str], max_row: int) -> None:
        self._names = {tidy_name(name).casefold() for name in names}
        self._max_row = max_row
        self._rest = ""
        self._kept = 0
        self._delimiter: str | None = None
        self._header: list[str] = []
        self._row = 0
        self._line = 0

    def feed(self, text: str) -> Iterator[list[str]]:
        """The rows that the next piece of text completes. They must be taken to the end.

        Raises:
            NotATable: a quote is not closed, or a row is too long.
        """
        self._rest += text
        # A carriage return at the end may be the first half of a line end.
        end = max(self._rest.rfind("\n"), self._rest.rfind("\r", 0, -1)) + 1
        # A row that goes on within quotes is read again once it is twice as long: linear work, however
        # small the pieces are.
        if end and (len(self._rest) >= 2 * self._kept or len(self._rest) > self._max_row):
            yield from self._rows(end, final=False)
            self._kept = len(self._rest)
        if len(self._rest) > self._max_row:
            raise self._refusal(self._rest, f"the row is longer than {self._max_row:,} characters")

    def finish(self) -> Iterator[list[str]]:
        """The row of a last line without an end.

        Raises:
            NotATable: as for `feed`.
        """
        return self._rows(len(self._rest), final=True)

    def _rows(self, end: int, *, final: bool) -> Iterator[list[str]]:
        """The rows up to a line end. One that goes on within quotes is kept."""
        stream = io.StringIO(self._rest[:end], newline="")
        delimiter = self._delimiter or self._choose(self._rest[:end])
        reader = csv.reader(stream, delimiter=delimiter, strict=True)
        place = line = 0
        while True:
            try:
                cells = next(reader, None)
            except csv.Error:
                if stream.tell() == end and not final:
                    break
                reason = (
                    'a quote is not closed there, or stands in a cell alone; close it, or write it twice ("")'
                )
                self._line += line
                raise self._refusal(self._rest[place : stream.tell()], reason) from None
            if cells is None:
                break
            here = stream.tell()
            if here - place > self._max_row:
                self._line += line
                raise self._refusal(cells[0], f"the row is longer than {self._max_row:,} characters")
            place, line = here, reader.line_num
            # A spreadsheet writes separators for the empty rows below a table.
            if not any(map(str.strip, cells)):
                continue
            if self._header:
                self._row += 1
            else:
                self._header, self._delimiter = cells, delimiter
            yield cells
        self._rest = self._rest[place:]
        self._line += line

    def _choose(self, text: str) -> str:
        header = text.lstrip("\ufeff\r\n ").partition("\n")[0].partition("\r")[0]
        return max(DELIMITERS, key=lambda mark: self._fit(header, mark))

    def _fit(self, header: str, delimiter: str) -> tuple[int, int]:
        """How well a delimiter fits a header: columns that are looked for, then columns."""
        names = next(csv.reader([header[:_LOOKED_AT]], delimiter=delimiter), [])
        own = {tidy_name(name).casefold() for name in names}
        return len(self._names & own), len(names)

    def _refusal(self, row: str, reason: str) -> NotATable:
        """Names the row, its line and the column in which it first breaks."""
        column = "of the header"
        if self._header:
            line = row.partition("\n")[0][:_LOOKED_AT]
            broken = next(csv.reader([line], delimiter=self._delimiter or ","), [""])
            column = self._header[min(len(broken), len(self._header)) - 1]
        number = self._row + bool(self._header)
        return NotATable(f"cannot be read in row {number} (line {self._line + 1}), column {column}: {reason}")
