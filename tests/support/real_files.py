"""Ten files as people have them, and what becomes of each."""

import io
from collections.abc import Callable

import openpyxl
import pyarrow
from pyarrow import parquet

PEOPLE = [("ada", 34, "0.5"), ("bob", 51.25, "1")]
"""Subject, value, epsilon of every file that can be read."""

NAMES = ("subject", "value", "epsilon")


def text(delimiter: str, *, names: tuple[str, ...] = NAMES, comma: bool = False) -> str:
    rows = [names, *((subject, str(value), epsilon) for subject, value, epsilon in PEOPLE)]
    lines = "\r\n".join(delimiter.join(row) for row in rows) + "\r\n"
    return lines.replace(".", ",") if comma else lines


def excel() -> bytes:
    book = openpyxl.Workbook()
    for row in [NAMES, (), *((subject, value, float(epsilon)) for subject, value, epsilon in PEOPLE)]:
        book.worksheets[0].append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def columnar() -> bytes:
    file = io.BytesIO()
    columns = dict(zip(NAMES, map(list, zip(*PEOPLE, strict=True)), strict=True))
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()


FILES: dict[str, tuple[Callable[[], bytes], tuple[str, ...]]] = {
    "semicolon.csv": (lambda: text(";").encode(), ()),
    "tab.tsv": (lambda: text("\t").encode("utf-8-sig"), ()),
    "utf16.csv": (lambda: text(",").encode("utf-16"), ()),
    "people.xlsx": (excel, ()),
    "people.parquet": (columnar, ()),
    "header_case.csv": (lambda: text(",", names=(" Subject", "VALUE ", "Epsilon")).encode(), ()),
    "decimal_comma.csv": (lambda: text(";", comma=True).encode(), ()),
    "open_quote.csv": (
        lambda: b'subject,value,epsilon\nada,34,0.5\nbob,"51.25,1\n',
        ("open_quote.csv", "row 2 (line 3), column value", "close it"),
    ),
    "missing_column.csv": (
        lambda: b"name,value\nada,34\n",
        ("missing_column.csv has no column subject", "the columns are: name, value", "--subject-column"),
    ),
    "empty.csv": (lambda: b"\n", ("empty.csv is empty", "subject,value[,epsilon][,trust]")),
}
"""Name of a file to what is in it, and what the refusal says; nothing where it is read."""
