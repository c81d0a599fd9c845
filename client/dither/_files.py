"""Files of records as people have them: CSV in many forms, Excel, Parquet."""

import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from dither._errors import InvalidRequest
from dither._rows import FIELDS, NOT_NAMED, Columns, Named, Row, is_missing, names_of
from dither.device.table import CsvReader, Decimals, NotATable, encoding_of

_PIECE = 65_536
"""Characters of a CSV that are read at a time."""

_MAX_ROW = 1 << 20
"""Characters of one row of a CSV."""

_REMEDY = "; name yours with subject= and value= (--subject-column, --value-column)"


class RecordFile:
    r"""A file with a header, for `contribute_many`. The whole file is read once before a row is used.

    CSV with commas, semicolons or tabs, in UTF-8 or UTF-16; Excel (.xlsx, first sheet) with the extra
    `excel`; Parquet with the extra `parquet`. Columns: subject, value, and perhaps epsilon, trust and the
    attributes of the study; in a study of measures their columns stand in place of value. Case and spaces of
    names do not count; a column that is no field is refused. Spaces around cells are cut off. A whole number
    as subject is its digits. Coordinates of a vector stand in one cell, with semicolons between them.

    Args:
        source: A path, or a binary file that is read to its end.
        subject, value: What these two columns are called.
        decimals: `.` or `,`: how text writes decimals; None: a comma where it can be nothing else.
        ignore: Columns that are no field, and are left out.

    Attributes:
        columns: What the file's columns are called.

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
    ) -> None:
        if isinstance(source, str | os.PathLike):
            self._content: Path | bytes = Path(source)
            self._name = Path(source).name
        else:
            self._content, self._name = source.read(), "the file"
        self._wanted = {"subject": subject, "value": value}
        self._read = self._reader()
        rows = self._read()
        header = [str("" if cell is None else cell) for cell in next(rows, ())]
        if not any(header):
            raise self._refuse(
                "is empty; its first line must name the columns subject,value[,epsilon][,trust]"
            )
        self._columns = Columns(
            header, subject=subject, value=value, decimals=decimals, what=self._name, remedy=_REMEDY
        )
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
        columns = self._columns.naming(replace(named, ignored=(*named.ignored, *self._ignored)))
        rows = self._read()
        next(rows)
        for cells in rows:
            yield columns.record([_plain(cell) for cell in cells])

    def _refuse(self, reason: str) -> InvalidRequest:
        return InvalidRequest(self._name, reason)

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if isinstance(self._content, bytes):
            yield io.BytesIO(self._content)
        else:
            with self._content.open("rb") as file:
                yield file

    def _reader(self) -> Any:
        """What yields the rows, the header first, chosen by how the file begins."""
        with self._open() as file:
            start = file.read(8)
        if start.startswith(b"PK\3\4"):
            return self._excel
        if start.startswith(b"PAR1"):
            return self._parquet
        if start.startswith(b"\xd0\xcf\x11\xe0"):
            raise self._refuse("is an Excel file of the old kind; save it as .xlsx or as CSV")
        if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
            raise self._refuse("holds JSON; save it as CSV, or send it to the service's batch route as it is")
        return lambda: self._csv(encoding_of(start))

    def _csv(self, encoding: str) -> Iterator[Sequence[object]]:
        names = {*self._wanted.values(), *FIELDS[len(self._wanted) :]}
        reader = CsvReader(names, _MAX_ROW)
        with self._open() as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
            try:
                while piece := text.read(_PIECE):
                    yield from reader.feed(piece)
                yield from reader.finish()
            except NotATable as error:
                raise self._refuse(str(error)) from None
            except UnicodeDecodeError:
                raise self._refuse(self._undecodable(encoding)) from None

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
            for row in book.worksheets[0].iter_rows(values_only=True):
                cells = _without_empty_end(row)
                if cells:
                    # Excel does not write what is empty at the end of a row.
                    width = width or len(cells)
                    yield [*cells, *[None] * (width - len(cells))]
            book.close()

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


def _without_empty_end(cells: Sequence[object]) -> Sequence[object]:
    """The cells up to the last one that says something."""
    end = len(cells)
    while end and is_missing(cells[end - 1]):
        end -= 1
    return cells[:end]


def _plain(cell: object) -> object:
    return cell.strip() if isinstance(cell, str) else cell
