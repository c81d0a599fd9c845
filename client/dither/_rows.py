"""Rows as callers have them: records, dictionaries, tuples, data frames. Pure."""

import dataclasses
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, cast

from dither._documents import Measure, Study, Trust
from dither._errors import Faults, InvalidRequest
from dither._models import Record
from dither.device.table import (
    Decimals,
    Marks,
    NotAnId,
    NotOneNumber,
    check_subject_cell,
    tidy_name,
    two_readings,
)
from dither.device.texts import spelled

Row = Record | InvalidRequest
"""A row that was read, or why it could not be."""

FIELDS = ("subject", "value", "epsilon", "trust")

LOST_DIGITS = 1e15
"""From here on a spreadsheet writes zeros in place of digits."""

_NOTHING = frozenset({"NAType", "NaTType"})
"""What pandas calls its missing values; equal to nothing, they cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The columns that a study names.

    Attributes:
        attributes: Those of labels of people.
        measures: Those of its measures, in place of a value.
        ignored: Those that are no field, and are left out on purpose.
        decimals: What their text has before decimals; None: the numbers tell.
        labels: Those of attributes and of columns of choices.
        missing, ignore_case: As in `RecordFile`.
    """

    attributes: Sequence[str] = ()
    measures: Sequence[str] = ()
    ignored: Sequence[str] = ()
    decimals: Decimals | None = None
    labels: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    missing: Sequence[str] = ()
    ignore_case: bool = False

    @classmethod
    def of(cls, study: Study, ignored: Iterable[str] = (), decimals: Decimals | None = None) -> "Named":
        """Those of a study."""
        measures: Mapping[str, Study | Measure] = study.measures or {"value": study}
        choices = {name: one.choices for name, one in measures.items() if one.choices}
        return cls(
            attributes=tuple(study.attributes),
            measures=tuple(study.measures),
            labels={**study.attributes, **choices},
            ignored=names_of(ignored),
            decimals=check_decimals(decimals),
        )


NOT_NAMED = Named()


def check_decimals(decimals: Decimals | None) -> Decimals | None:
    """What is said of decimals.

    Raises:
        InvalidRequest: it is none of the marks.
    """
    if decimals not in (None, ".", ","):
        raise InvalidRequest("decimals", "must be '.' or ','")
    return decimals


def names_of(names: str | Iterable[str], argument: str = "ignore") -> tuple[str, ...]:
    """Names that are given; one alone is no list of letters.

    Raises:
        InvalidRequest: this is no list of them.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        names = (names,)
    several = tuple(names)
    if not all(isinstance(name, str) for name in several):
        raise InvalidRequest(argument, "must be a text, or a list of texts")
    return several


def read_rows(source: Iterable[Any], named: Named = NOT_NAMED) -> Iterator[Row]:
    """The records of whatever holds them.

    Args:
        source: Records, dictionaries or tuples; or a data frame of pandas or polars, or a table of pyarrow.
        named: The columns of the study.

    Raises:
        InvalidRequest: columns are missing, or no field of the study, or a row is none of these.
    """
    table: Any = source
    if hasattr(table, "rows_with"):
        yield from table.rows_with(named)
    elif hasattr(table, "itertuples"):
        rows = partial(table.itertuples, index=False, name=None)
        yield from Columns(map(str, table.columns)).naming(named, rows).records(rows())
    elif hasattr(table, "iter_rows"):
        yield from Columns(table.columns).naming(named, table.iter_rows).records(table.iter_rows())
    elif hasattr(table, "to_batches"):
        rows = partial(_rows_of_batches, table)
        yield from Columns(table.column_names).naming(named, rows).records(rows())
    else:
        _check_rows(source)
        known: dict[Shape, Columns] = {}
        for number, row in enumerate(source, start=1):
            yield _record(row, number, known, named, source)


def _rows_of_batches(table: Any) -> Iterator[Sequence[object]]:
    for batch in table.to_batches():
        yield from zip(*batch.to_pydict().values(), strict=True)


def _check_rows(source: object) -> None:
    """Refuse what is one thing and not several rows."""
    if isinstance(source, str | bytes | PathLike):
        raise InvalidRequest("records", "must be rows, not the name of a file: give RecordFile(path)")
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        kind = type(source).__name__
        reason = f"must be several, as a list, a data frame or a RecordFile, not one {kind}"
        raise InvalidRequest("records", reason)


Shape = tuple[bool, tuple[str, ...]]
"""Whether a row has names of its own, and its names."""


def _shape(row: object) -> Shape | None:
    """The columns of a row; None where it is no row."""
    if isinstance(row, Mapping):
        return True, tuple(map(str, row))
    if isinstance(row, Sequence) and not isinstance(row, str | bytes) and 2 <= len(row) <= len(FIELDS):
        return False, FIELDS[: len(row)]
    return None


def _cells(row: Any) -> Sequence[object]:
    return tuple(row.values()) if isinstance(row, Mapping) else row


def _record(
    row: object, number: int, known: dict[Shape, "Columns"], named: Named, source: Iterable[Any]
) -> Row:
    if isinstance(row, Record | InvalidRequest):
        return row
    shape = _shape(row)
    if shape is None:
        reason = (
            f"row {number} must be a Record, a dict, or a tuple of {', '.join(FIELDS)} or their beginning"
        )
        raise InvalidRequest("records", reason)
    columns = known.get(shape)
    if columns is None:
        by_name, names = shape
        columns = Columns(names, what=f"row {number}" if by_name else "records")
        # What can be read once only does not tell of its numbers before they are read.
        again = partial(_alike, source, shape) if isinstance(source, Sequence) else None
        columns.naming(named if by_name else replace(named, attributes=()), again)
        known[shape] = columns
    return columns.record(_cells(row))


def _alike(source: Iterable[Any], shape: Shape) -> Iterator[Sequence[object]]:
    """The rows with these columns."""
    return (_cells(row) for row in source if not isinstance(row, Record) and _shape(row) == shape)


class Columns:
    """Which cell of a row is which field. Case and spaces of names do not count.

    Args:
        names: Of the columns, in their order.
        subject, value: What these two are called.
        what: That has the columns, for refusals.
        remedy: What to do about a column that is missing, for refusals.

    Raises:
        InvalidRequest: a column is missing or there twice.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        subject: str = "subject",
        value: str = "value",
        what: str = "records",
        remedy: str = "",
    ) -> None:
        self.names = [tidy_name(name) for name in names]
        self._own = [name.casefold() for name in self.names]
        self._what = what
        self._remedy = remedy
        self._called = dict(zip(FIELDS, map(tidy_name, (subject, value, *FIELDS[2:])), strict=True))
        self._places = self._find(self._called)
        if "subject" not in self._places:
            raise self._refusal(f"has no column {subject}")
        self._labels: dict[str, int] = {}
        self._named = NOT_NAMED
        self._missing: Container[str] = ()
        self._measures: dict[str, int] | None = None
        self._marks = Marks()
        self._again: Callable[[], Iterable[Sequence[object]]] | None = None

    def naming(
        self,
        named: Named,
        again: Callable[[], Iterable[Sequence[object]]] | None = None,
        points: bool = False,
    ) -> "Columns":
        """These, with those that a study names; what is missing is refused with its row.

        Args:
            named: By the study.
            again: All rows, once more: where a number may mean two, the others tell how it is read.
            points: Whether decimals follow a point where they do not.

        Raises:
            InvalidRequest: there is no column of the value, or one that is no field.
        """
        self._measures = self._find({name: name for name in named.measures}) if named.measures else None
        if not named.measures and "value" not in self._places:
            raise self._refusal(f"has no column {self._called['value']}")
        self._labels = self._find({name: name for name in named.attributes})
        self._named = named
        self._missing = {word.strip().casefold() for word in named.missing}
        self._check_others(named)
        self._marks = Marks(named.decimals)
        self._marks.points = points
        self._again = again if named.decimals is None else None
        return self

    def _find(self, called: Mapping[str, str]) -> dict[str, int]:
        """Where the columns of fields are that are there."""
        wanted = {field: name.casefold() for field, name in called.items()}
        for field, name in wanted.items():
            if self._own.count(name) > 1:
                raise self._refusal(f"has two columns {called[field]}")
        return {field: self._own.index(name) for field, name in wanted.items() if name in self._own}

    def _check_others(self, named: Named) -> None:
        """Refuse columns that are no field: for a misspelt epsilon the default one would stand."""
        used = {*self._places.values(), *self._labels.values(), *(self._measures or {}).values()}
        ignored = {tidy_name(name).casefold() for name in named.ignored}
        for place in sorted(used):
            if self._own[place] in ignored:
                raise InvalidRequest("ignore", f"names {self.names[place]}, which is a field of the study")
        unknown = [
            name
            for place, name in enumerate(self.names)
            if place not in used and self._own[place] not in ignored
        ]
        if unknown:
            own = [name for field, name in self._called.items() if field != "value" or not named.measures]
            fields = ", ".join((*own, *named.attributes, *named.measures))
            shown = ", ".join(name or "(empty)" for name in unknown)[:200]
            raise InvalidRequest(
                self._what,
                f"has columns that are no field: {shown}; the fields are: {fields}; "
                "say what to leave out with ignore= (--ignore-columns)",
                {"ignore": tuple(unknown)},
            )

    def _refusal(self, reason: str) -> InvalidRequest:
        found = ", ".join(self.names) or "none"
        reason = f"{reason}; the columns are: {found}{self._remedy}"
        return InvalidRequest(self._what, reason, {"columns": self.names})

    def __contains__(self, field: str) -> bool:
        return field in self._places

    def records(self, rows: Iterable[Sequence[object]]) -> Iterator[Row]:
        """The records of rows."""
        return map(self.record, rows)

    def record(self, row: Sequence[object]) -> Row:
        """The record of a row, or why it is none."""
        if len(row) != len(self.names):
            # A missing cell may be the epsilon, for which the default would stand.
            remedy = "; put a number with a decimal comma in quotes" if len(row) > len(self.names) else ""
            reason = f"must have as many cells as the header line: {len(self.names)}, not {len(row)}"
            return InvalidRequest("row", reason + remedy)
        cells = {field: row[place] for field, place in self._places.items()}
        cells = {field: cell for field, cell in cells.items() if not self._is_missing(cell, field)}
        faults = Faults()
        subject = epsilon = None
        value: Any = None if self._measures is None else cells.get("value")
        with faults:
            subject = _subject(_given(cells, "subject"))
        with faults:
            epsilon = self._number(cells.get("epsilon"), "epsilon")
        if self._measures is None:
            with faults:
                value = self._cell(_given(cells, "value"), "value", "value")
        elif value is None:
            value = {}
            for name, place in self._measures.items():
                if not self._is_missing(row[place], name):
                    with faults:
                        value[name] = self._cell(row[place], name, f"values.{name}")
        labels = {name: row[place] for name, place in self._labels.items()}
        record = Record(
            subject=cast(str, subject),
            value=value,
            epsilon=cast(Any, epsilon),
            trust=cast(Trust | None, _tidy(cells.get("trust"))),
            attributes={
                name: self._label(cell, name)
                for name, cell in labels.items()
                if not self._is_missing(cell, name)
            }
            or None,
        )
        try:
            faults.check()
        except InvalidRequest as refusal:
            refusal.record = record
            return refusal
        return record

    def _is_missing(self, cell: object, field: str) -> bool:
        """Whether a cell is empty, or a word for that."""
        if field == "subject" or not isinstance(cell, str) or cell.strip().casefold() not in self._missing:
            return is_missing(cell)
        return spelled(cell.strip(), self._named.labels.get(field, ())) is None

    def _label(self, cell: object, field: str) -> str:
        """A label as text: that of a table may be a whole number, or in another case."""
        text = str(cell).strip()
        known = self._named.labels.get(field, ())
        return spelled(text, known, ignore_case=self._named.ignore_case) or text

    def _cell(self, cell: object, name: str, field: str) -> object:
        return self._label(cell, name) if name in self._named.labels else self._numbers(cell, field)

    def _numbers(self, cell: object, field: str) -> object:
        """A cell of one number, or of several with semicolons between them."""
        if isinstance(cell, str) and ";" in cell:
            return [self._number(part, field) for part in cell.split(";")]
        if getattr(cell, "shape", ()):
            return list(cast(Iterable[object], cell))
        return self._number(cell, field)

    def _number(self, cell: object, field: str) -> object:
        """A cell; text with a decimal point in place of other marks."""
        if not isinstance(cell, str):
            return cell
        try:
            if self._again is not None and two_readings(cell) is not None:
                self._look()
            return self._marks.number(cell)
        except NotOneNumber as refusal:
            raise InvalidRequest(field, f"{refusal}, with decimals=',' or '.' (--decimals)") from None

    def mark(self) -> Decimals | None:
        """What stands before decimals by all rows."""
        self._look()
        return self._marks.mark

    def _look(self) -> None:
        """Let all numbers of the table tell how they are written."""
        again, self._again = self._again, None
        named = {**self._places, **(self._measures or {})}
        numbers = {"value", "epsilon", *(self._measures or {})}
        places = [
            place for name, place in named.items() if name in numbers and name not in self._named.labels
        ]
        for row in again() if again is not None else ():
            for place in places:
                cell = row[place] if place < len(row) else None
                for number in cell.split(";") if isinstance(cell, str) else ():
                    self._marks.see(number)


def _given(cells: Mapping[str, object], field: str) -> object:
    if field not in cells:
        raise InvalidRequest(field, "is missing")
    return cells[field]


def is_missing(cell: object) -> bool:
    """Whether a cell is empty.

    >>> [is_missing(cell) for cell in (None, " ", float("nan"), 0)]
    [True, True, True, False]
    """
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or (isinstance(cell, float) and math.isnan(cell)) or type(cell).__name__ in _NOTHING


def _subject(cell: object) -> object:
    """An id: a table keeps whole numbers as decimal ones where some are missing.

    Raises:
        InvalidRequest: it has more digits than such a number, or was rewritten by a table.
    """
    if isinstance(cell, float) and cell.is_integer():
        if abs(cell) >= LOST_DIGITS:
            raise InvalidRequest(
                "subject", "has more digits than a number of a table; keep ids as text there"
            )
        return int(cell)
    if isinstance(cell, str):
        try:
            check_subject_cell(cell)
        except NotAnId as refusal:
            raise InvalidRequest("subject", str(refusal)) from None
    return cell


def _tidy(cell: object) -> object:
    return cell.strip().lower() if isinstance(cell, str) else cell
