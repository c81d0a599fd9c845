"""CSV as people have it, with a header line; an empty cell is a missing field."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from dither.device.table import (
    CsvReader,
    Decimals,
    Marks,
    NotAnId,
    NotATable,
    NotOneNumber,
    check_subject_cell,
    tidy_name,
)
from dither.device.texts import spelled

from app.core.errors import FieldError, MalformedDocument
from app.core.numbers import JsonNumber
from app.formats.records import MAX_RECORD, Record, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What the columns of a document may be.

    Attributes:
        names: All of them.
        subject: The one of the person, which must be there.
        numbers: Those that hold numbers.
        lists: Those whose cells hold several numbers: 1.5;-2;0.25.
        words: Those that hold words in any case.
        within: Those that are fields of an object within the record, by the name of that object.
        measures: Those that hold reports, which are numbers, where the trust of a row is local.
        labels: Those that hold labels or choices, and these.
    """

    names: Set[str]
    subject: str
    numbers: Set[str]
    lists: Set[str]
    words: Set[str]
    within: Mapping[str, str] = field(default_factory=dict)
    measures: Set[str] = frozenset()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Csv:
    """One document.

    A number such as 1.234 is read with a point where those that have arrived by then tell so. Where later
    ones have a decimal comma, the whole document is refused.

    Args:
        columns: What it may have.
        decimals: What it has before decimals; None: its numbers tell.
        missing: Words for a cell that is missing, in any case, where they are no label and no id.
    """

    def __init__(
        self, columns: Columns, decimals: Decimals | None = None, missing: Iterable[str] = ()
    ) -> None:
        self._columns = columns
        self._missing = {word.strip().casefold() for word in missing}
        self._marks = Marks(decimals)
        self._reader = CsvReader(columns.names, MAX_RECORD)
        self._header: list[str] | None = None
        self._telling: Sequence[int] = ()

    def feed(self, text: str) -> Iterator[Record | Unreadable]:
        """The records of complete lines."""
        return self._records(self._reader.feed(text))

    def finish(self) -> Iterator[Record | Unreadable]:
        """The record of a last line without an end."""
        yield from self._records(self._reader.finish())
        if self._header is None:
            raise MalformedDocument(f"the document has no header line; {self._remedy}")

    @property
    def _remedy(self) -> str:
        return f"its first line must name fields out of {','.join(sorted(self._columns.names))}, each once"

    def _records(self, rows: Iterable[Sequence[str]]) -> Iterator[Record | Unreadable]:
        try:
            # What has arrived tells of its numbers before the first of them is read.
            for row in (arrived := list(rows)):
                if self._header is None:
                    self._header = self._read_header(row)
                    self._marks.points = self._reader.delimiter == ","
                    arrived = arrived[1:]
                elif len(row) == len(self._header):
                    self._see(row)
            for row in arrived:
                yield self._record(row, self._header or ())
        except NotATable as error:
            raise MalformedDocument(f"the document {error}") from None

    def _read_header(self, row: Sequence[str]) -> list[str]:
        header, allowed = [tidy_name(name).lower() for name in row], self._columns
        tell = allowed.numbers | allowed.lists
        self._telling = [place for place, name in enumerate(header) if name in tell]
        unknown = [name or "(empty)" for name in header if name not in allowed.names]
        if unknown:
            fault = f"columns that are no field: {', '.join(unknown)[:200]}"
        elif len(set(header)) != len(header):
            fault = "a column twice"
        elif allowed.subject not in header:
            fault = f"no column {allowed.subject}"
        else:
            return header
        raise MalformedDocument(f"the header line has {fault}; {self._remedy}")

    def _see(self, row: Sequence[str]) -> None:
        for place in self._telling:
            for number in row[place].split(";"):
                self._marks.see(number)

    def _record(self, row: Sequence[str], header: Sequence[str]) -> Record | Unreadable:
        if len(row) != len(header):
            reason = f"must have as many cells as the header line: {len(header)}, not {len(row)}"
            remedy = "; put a number with a decimal comma in quotes" if len(row) > len(header) else ""
            return Unreadable(code="malformed_row", fields=[FieldError("row", reason + remedy)])
        record: dict[str, Any] = {}
        cells = dict(zip(header, map(str.strip, row), strict=True))
        reports = self._columns.measures if cells.get("trust", "").lower() == "local" else ()
        for name, cell in cells.items():
            if cell and not self._is_missing(name, cell):
                outer = "reports" if name in reports else self._columns.within.get(name)
                fields = record if outer is None else record.setdefault(outer, {})
                try:
                    fields[name] = self._cell(name, cell, number=name in reports)
                except (NotOneNumber, NotAnId) as refusal:
                    remedy = ", with ?decimals=, or ?decimals=." if isinstance(refusal, NotOneNumber) else ""
                    shown = name if outer is None else f"{outer}.{name}"
                    error = FieldError(shown, f"{refusal}{remedy}")
                    return Unreadable(code="invalid_request", fields=[error])
        return record

    def _is_missing(self, name: str, cell: str) -> bool:
        """Whether a cell holds a word for none."""
        if name == self._columns.subject or cell.casefold() not in self._missing:
            return False
        return spelled(cell, self._columns.labels.get(name, ())) is None

    def _cell(self, name: str, cell: str, *, number: bool) -> object:
        if name in self._columns.lists:
            return [JsonNumber(self._marks.number(number)) for number in cell.split(";")]
        if number or name in self._columns.numbers:
            return JsonNumber(self._marks.number(cell))
        if name == self._columns.subject:
            check_subject_cell(cell)
        return cell.lower() if name in self._columns.words else cell
