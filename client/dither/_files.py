"""Files of records as people have them: CSV in many forms, Excel, Parquet."""

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from dither._errors import InvalidRequest
from dither._rows import (
    FIELDS,
    LOST_DIGITS,
    NOT_NAMED,
    Columns,
    Named,
    Row,
    check_decimals,
    is_missing,
    names_of,
)
from dither.device.table import CsvReader, Decimals, NotATable, encoding_of

_GZIP = b"\x1f\x8b"
_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh", b"7z\xbc\xaf", b"Rar!", b"\x1f\x9d")
"""How files begin that zstd, xz, bzip2, 7-Zip, RAR and compress write."""

_PIECE = 65_536
"""Characters of a CSV that are read at a time."""

_MAX_ROW = 1 << 20
"""Characters of one row of a CSV."""

_REMEDY = "; name yours with subject= and value= (--subject-column, --value-column)"


class RecordFile:
    r"""A file with a header, for `contribute_many`. The whole file is read once before a row is used.

    CSV with commas, semicolons or tabs, in UTF-8 or UTF-16, also in gzip; Excel (.xlsx) with the extra
    `excel`; Parquet with the extra `parquet`. Columns: subject, value, and perhaps epsilon, trust and the
    attributes of the study; in a study of measures their columns stand in place of value. Case and spaces of
    names do not count; a column that is no field is refused. Spaces around cells are cut off. Coordinates of
    a vector stand in one cell, with semicolons between them.

    A number such as 1,234 or 1.234 may be one or a thousand, and is refused until `decimals`, or with a point
    the other numbers, say which.

    Args:
        source: A path, or a binary file that is read to its end.
        subject, value: What these two columns are called.
        decimals: `.` or `,`: what text has before decimals, the other one may stand between thousands; None:
            the numbers tell.
        ignore: Columns that are no field, and are left out.
        sheet: The sheet of an Excel file; needed where several have cells.
        encoding: Of a CSV, as cp1252; None: UTF-8, or UTF-16 as its start tells.
        missing: Words for a cell that is missing, in any case, where they are no label and no id.
        ignore_case: Whether labels and choices may be in another case.

    Attributes:
        columns: What the file's columns are called.
        separator: Between the cells of a CSV; None of others.

    Raises:
        InvalidRequest: the file cannot be read, with the line, the column and what to do.
        OSError: from the operating system.

    Examples:
        >>> import io
        >>> [*RecordFile(io.BytesIO(b"Subject;Value\nada;12,5"))]
        [Record(subject='ada', value='12.5', epsilon=None, trust=None, attributes=None)]
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        *,
        subject: str = "subject",
        value: str = "value",
        decimals: Decimals | None = None,
        ignore: Iterable[str] = (),
        sheet: str | None = None,
        encoding: str | None = None,
        missing: Iterable[str] = (),
        ignore_case: bool = False,
    ) -> None:
        self._content: Path | bytes
        if isinstance(source, str | os.PathLike):
            # A pipe can be read once only.
            self._content = path if (path := Path(source)).is_file() else path.read_bytes()
            self._name = path.name
        else:
            self._content, self._name = source.read(), "the file"
        self._wanted = {"subject": subject, "value": value}
        self._sheet = sheet
        self.encoding = encoding
        self.separator: str | None = None
        self._missing = names_of(missing, "missing")
        self._ignore_case = ignore_case
        self._points = False
        self._read = self._reader()
        rows = self._read()
        header = [str("" if cell is None else cell) for cell in next(rows, ())]
        if not any(header):
            raise self._refuse(
                "is empty; its first line must name the columns subject,value[,epsilon][,trust]"
            )
        self._columns = Columns(header, subject=subject, value=value, what=self._name, remedy=_REMEDY)
        self._decimals = check_decimals(decimals)
        self._ignored = names_of(ignore)
        self._length = sum(1 for _ in rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the file's columns are called."""
        return tuple(self._columns.names)

    def has(self, field: str) -> bool:
        """Whether there is a column for this field of a `Record`."""
        return field in self._columns

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Row]:
        return self.rows_with(NOT_NAMED)

    def rows_with(self, named: Named) -> Iterator[Row]:
        """The rows, with the columns that a study names.

        Raises:
            InvalidRequest: there is no column of the value, or one that is no field.
        """
        named = replace(
            named,
            ignored=(*named.ignored, *self._ignored),
            decimals=named.decimals or self._decimals,
            missing=self._missing,
            ignore_case=self._ignore_case,
        )
        yield from self._columns.naming(named, self._below, self._points).records(self._below())

    @property
    def decimals(self) -> Decimals | None:
        """What stands before decimals by all rows; None: they do not tell, or differ."""
        return self._columns.mark()

    def _below(self) -> Iterator[Sequence[object]]:
        """The rows below the header."""
        rows = self._read()
        next(rows)
        for cells in rows:
            yield [_plain(cell) for cell in cells]

    def _refuse(self, reason: str) -> InvalidRequest:
        return InvalidRequest(self._name, reason)

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        with ExitStack() as opened:
            content = self._content
            file: BinaryIO = io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")
            opened.enter_context(file)
            if file.read(len(_GZIP)) == _GZIP:
                file.seek(0)
                file = cast(BinaryIO, opened.enter_context(gzip.open(file)))
            file.seek(0)
            try:
                yield file
            except (gzip.BadGzipFile, EOFError, zlib.error):
                raise self._refuse("is a gzip file that is damaged, or breaks off") from None

    def _reader(self) -> Any:
        """What yields the rows, the header first, chosen by how the file begins."""
        with self._open() as file:
            start = file.read(8)
        if start.startswith(b"PK\3\4"):
            return self._excel
        if self._sheet is not None:
            raise self._refuse(f"has no sheet {self._sheet}: it is no Excel file")
        if start.startswith(_COMPRESSED):
            raise self._refuse("is compressed; unpack it, or compress it with gzip")
        if start.startswith(b"PAR1"):
            return self._parquet
        if start.startswith(b"\xd0\xcf\x11\xe0"):
            raise self._refuse("is an Excel file of the old kind; save it as .xlsx or as CSV")
        if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
            raise self._refuse("holds JSON; save it as CSV, or send it to the service's batch route as it is")
        self.encoding = self.encoding or encoding_of(start)
        return self._csv

    def _csv(self) -> Iterator[Sequence[object]]:
        encoding = cast(str, self.encoding)
        names = {*self._wanted.values(), *FIELDS[len(self._wanted) :]}
        reader = CsvReader(names, _MAX_ROW)
        try:
            "".encode(encoding)
        except LookupError:
            raise InvalidRequest("encoding", "is none that Python knows") from None
        with self._open() as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
            try:
                while piece := text.read(_PIECE):
                    yield from reader.feed(piece)
                yield from reader.finish()
                self.separator = reader.delimiter
                self._points = reader.delimiter == ","
            except NotATable as error:
                raise self._refuse(str(error)) from None
            except UnicodeDecodeError:
                western = {"encoding": "cp1252"} if encoding == "utf-8-sig" else {}
                raise InvalidRequest(self._name, self._undecodable(encoding), western) from None

    def _undecodable(self, encoding: str) -> str:
        with self._open() as file:
            content = file.read()
        try:
            content.decode(encoding)
        except UnicodeDecodeError as error:
            line = content[: error.start].decode(encoding, errors="ignore").count("\n") + 1
            if ending := re.search(r"\.(xlsx|parquet)\Z", self._name, re.IGNORECASE):
                return f"ends in {ending[0]} and is no such file, or a damaged one; save it again, or as CSV"
            return f"is not {encoding.upper().removesuffix('-SIG')} in line {line}; save it as CSV in UTF-8"
        return "changed while it was read"

    def _excel(self) -> Iterator[Sequence[object]]:
        try:
            import openpyxl
        except ImportError:
            raise self._refuse("is an Excel file: pip install 'dither[excel]', or save it as CSV") from None
        with self._open() as file:
            try:
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            except Exception as error:  # whatever a broken archive makes of it
                raise self._refuse("looks like an Excel file and is none; save it as .xlsx or CSV") from error
            width = 0
            for row in self._chosen_sheet(book).iter_rows(values_only=True):
                cells = [_as_excel_has_it(cell) for cell in _without_empty_end(row)]
                if cells:
                    # Excel does not write what is empty at the end of a row.
                    width = width or len(cells)
                    yield [*cells, *[None] * (width - len(cells))]
            book.close()

    def _chosen_sheet(self, book: Any) -> Any:
        """The sheet that was named, or the only one with cells.

        Raises:
            InvalidRequest: there is no such one, or several have cells and none was named.
        """
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        if self._sheet is not None:
            if self._sheet not in sheets:
                raise self._refuse(f"has no sheet {self._sheet}; its sheets are: {', '.join(sheets)}")
            return sheets[self._sheet]
        full = [title for title, sheet in sheets.items() if _has_cells(sheet)]
        if len(full) > 1:
            reason = f"has several sheets: {', '.join(full)}; say which with sheet= (--sheet)"
            raise InvalidRequest(self._name, reason, {"sheet": full[0]})
        return sheets[full[0] if full else next(iter(sheets))]

    def _parquet(self) -> Iterator[Sequence[object]]:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise self._refuse(
                "is a Parquet file: pip install 'dither[parquet]', or save it as CSV"
            ) from None
        with self._open() as file:
            try:
                table = parquet.ParquetFile(file)
            except ArrowException as error:
                raise self._refuse("looks like a Parquet file and is none") from error
            yield table.schema_arrow.names
            for batch in table.iter_batches():
                yield from zip(*batch.to_pydict().values(), strict=True)


def _has_cells(sheet: Any) -> bool:
    rows = sheet.iter_rows(values_only=True)
    return any(_without_empty_end(row) for row in rows)


def _as_excel_has_it(cell: object) -> object:
    """A cell; a whole number of many digits is none of Excel's, which keeps fifteen of them."""
    return float(cell) if isinstance(cell, int) and abs(cell) >= LOST_DIGITS else cell


def _without_empty_end(cells: Sequence[object]) -> Sequence[object]:
    """The cells up to the last one that says something."""
    end = len(cells)
    while end and is_missing(cells[end - 1]):
        end -= 1
    return cells[:end]


def _plain(cell: object) -> object:
    return cell.strip() if isinstance(cell, str) else cell
