"""Tables as people write them down: which encoding, which delimiter, which decimals. Pure, in pieces.

The SDK reads files with this, and the service batches: a table means the same to both.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Set
from typing import Literal

Decimals = Literal[".", ","]
"""What stands before the decimals of a number in text."""

DELIMITERS = (",", ";", "\t")

_LOOKED_AT = 65_536
"""Characters of a line that tell its cells, for the delimiter and for refusals."""

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_FORMS: Mapping[Decimals, re.Pattern[str]] = {
    ".": re.compile(rf"[+-]?(?:\d*|[1-9]\d{{0,2}}(?:,\d{{3}})+)(?:\.\d*)?{_EXPONENT}", re.ASCII),
    ",": re.compile(rf"[+-]?(?:\d*|[1-9]\d{{0,2}}(?:\.\d{{3}})+)(?:,\d*)?{_EXPONENT}", re.ASCII),
}
"""A number by the mark before its decimals; the other mark may stand between its thousands."""

_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
"""A number whose mark may be of either kind."""

_OTHER: Mapping[Decimals, Decimals] = {".": ",", ",": "."}
_CALLED: Mapping[Decimals, str] = {".": "point", ",": "comma"}

_NO_ID = re.compile(r"\d+\.0+|\d(?:[.,]\d+)?[eE]\+\d+", re.ASCII)
"""What a table makes of a whole number that it takes for a decimal one."""


class NotATable(ValueError):
    """The text cannot be read. The message says where and what to do; it goes on after the table's name."""


class NotOneNumber(ValueError):
    """A cell may mean two numbers."""


class NotAnId(ValueError):
    """A cell is no id of a person, as it was written."""


def encoding_of(start: bytes) -> str:
    """The encoding of text that begins so: by its mark; without one UTF-16 shows by a zero beside ASCII.

    >>> encoding_of("subject".encode("utf-16-le")), encoding_of(b"subject")
    ('utf-16-le', 'utf-8-sig')
    """
    if start.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
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


def two_readings(text: str) -> tuple[str, str] | None:
    """The two numbers that a text may mean, where its one mark may stand before decimals or thousands.

    >>> two_readings("15.000"), two_readings("1,234"), two_readings("0.125")
    (('15', '15000'), ('1.2340', '1234'), None)
    """
    text = text.strip()
    if _EITHER.fullmatch(text) is None:
        return None
    whole, decimals = text.lstrip("+").replace(",", ".").split(".")
    # With a fourth digit it can be no thousands.
    return (f"{whole}.{decimals}0" if decimals.strip("0") else whole), whole + decimals


def check_meant(text: str) -> None:
    """Ask back where a person typed a number that may mean two.

    Raises:
        NotOneNumber: with both.
    """
    if (readings := two_readings(text)) is not None:
        raise NotOneNumber(f"may mean {readings[0]} or {readings[1]}: write it like that")


def check_subject_cell(text: str) -> None:
    """Refuse the id of a person that a table has rewritten: different ones may have become the same.

    Raises:
        NotAnId: with what to do.
    """
    if _NO_ID.fullmatch(text.strip()) is not None:
        raise NotAnId(
            "looks like a whole number that a table made a decimal one (7.0, 1.2E+11); keep ids as text there"
        )


class Marks:
    """What stands before the decimals of the numbers of one table.

    A number such as 12,5 or 0.125 or 1.234,5 can mean one thing only. One such as 1,234 or 1.234 may be one
    or a thousand, and is a question. With a point it is none where others have a decimal point, and none a
    comma.

    Args:
        declared: What the table's owner says; the other mark may stand between thousands then.

    Attributes:
        points: Whether decimals follow a point where no other number tells.
    """

    def __init__(self, declared: Decimals | None = None) -> None:
        self.declared = declared
        self.points = False
        self._told: set[Decimals] = set()
        self._trusted = False

    @property
    def mark(self) -> Decimals | None:
        """What was declared, or seen alone."""
        return self.declared or (next(iter(self._told)) if len(self._told) == 1 else None)

    def see(self, text: str) -> None:
        """Take a number as evidence.

        Raises:
            NotATable: it has a decimal comma, and one before it was read with a point that may be none.
        """
        if self.declared is None and (mark := _mark(text.strip())) is not None:
            self._told.add(mark)
            if mark == "," and self._trusted:
                raise NotATable(
                    "has numbers with a decimal comma behind others such as 1.234: say which mark it is"
                )

    def number(self, text: str) -> str:
        """A number as text with a decimal point and no other mark. What is no number stays what it is.

        Raises:
            NotOneNumber: it may mean two numbers, or is not written as was declared.

        >>> Marks().number(" 12,5"), Marks(",").number("1.234,5"), Marks(".").number("1,234")
        ('12.5', '1234.5', '1234')
        """
        text = text.strip()
        if "," not in text and "." not in text:
            return text
        mark = self.declared or _mark(text) or self._asked(text)
        if mark is None:
            return text
        other = _OTHER[mark]
        if _FORMS[mark].fullmatch(text) is None:
            if _FORMS[other].fullmatch(text) is None:
                return text
            raise NotOneNumber(f"has a {_CALLED[other]} where decimals follow a {_CALLED[mark]}")
        return text.replace(other, "").replace(mark, ".")

    def _asked(self, text: str) -> Decimals | None:
        """How to read a number that may mean two; None where it is no number.

        Raises:
            NotOneNumber: it is a question.
        """
        if _EITHER.fullmatch(text) is None:
            return None
        if "." in text and (self._told == {"."} or (self.points and not self._told)):
            self._trusted = True
            return "."
        mark = "comma" if "," in text else "point"
        raise NotOneNumber(f"may have a {mark} before decimals, or one between thousands: say which")


def _mark(text: str) -> Decimals | None:
    """What stands before the decimals of a number that can mean one thing only; None of any other text."""
    if ("," not in text and "." not in text) or _EITHER.fullmatch(text) is not None:
        return None
    point, comma = (_FORMS[mark].fullmatch(text) is not None for mark in (".", ","))
    if point == comma:
        return None
    return "." if point else ","


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
        self.delimiter: str | None = None
        """What stands between cells, once the header is read."""
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
        delimiter = self.delimiter or self._choose(self._rest[:end])
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
                self._header, self.delimiter = cells, delimiter
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
            broken = next(csv.reader([line], delimiter=self.delimiter or ","), [""])
            column = self._header[min(len(broken), len(self._header)) - 1]
        number = self._row + bool(self._header)
        return NotATable(f"cannot be read in row {number} (line {self._line + 1}), column {column}: {reason}")
