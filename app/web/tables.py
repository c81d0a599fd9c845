"""Answers as tables: a row for each number that has an interval, as CSV, Parquet or Arrow.

Columns never depend on the answers, and what one has not is empty.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from starlette.responses import Response

from app.formats.strict_json import decode_foreign
from app.services.work import run
from app.web.request import JSON, ApiRequest, stored

CSV, PARQUET, ARROW = "text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"

TABLES = (CSV, PARQUET, ARROW)

SIX = ("release", "statistic", "of", "estimate", "lower", "upper")
"""Columns of a CSV."""

_MANY = (
    "release",
    "created_at",
    "study",
    "statistic",
    "measure",
    "of",
    "estimate",
    "lower",
    "upper",
    "level",
    "standard_error",
    "people",
)
"""Columns of Parquet and Arrow: text up to `of`, numbers from there on."""

RESPONSES: Mapping[str, Any] = {
    kind: {"schema": {"type": "string", **({} if kind == CSV else {"format": "binary"})}} for kind in TABLES
}
"""For the OpenAPI document, beside JSON."""

Row = Mapping[str, Any]


async def answered(
    request: ApiRequest, documents: Sequence[bytes], whole: bytes, status: int = 200, link: str | None = None
) -> Response:
    """Answers as the client asks for them by `Accept`: JSON, or a table.

    Args:
        request: The request.
        documents: Answers as JSON.
        whole: The JSON document to give.
        status: Of the response.
        link: Where the next page of a table is.
    """
    kind = request.wanted(JSON, *TABLES)
    response = stored(whole, status)
    if kind is not None and kind != JSON:
        write = _WRITERS[kind]
        response = Response(await run(lambda: write(rows(documents))), status_code=status, media_type=kind)
        if link is not None:
            response.headers["Link"] = f'<{link}>; rel="next"'
    response.headers["Vary"] = "Accept"
    return response


def rows(documents: Iterable[bytes]) -> Iterator[Row]:
    """The rows of answers, as they are stored or shown."""
    for document in documents:
        yield from rows_of(decode_foreign(document, len(document)))


def rows_of(answer: Mapping[str, Any]) -> Iterator[Row]:
    """A row for every number of an answer that has an interval, the whole before its parts."""
    about = {
        "release": answer["id"],
        "created_at": answer["created_at"],
        "study": answer["study"],
        "statistic": answer["statistic"],
        "measure": answer.get("measure") or "",
    }
    for of, numbers in _numbers(answer, ()):
        interval = numbers["interval"]
        yield about | {
            "of": "; ".join(of),
            "estimate": numbers.get("estimate", numbers.get("share")),
            "lower": interval["lower"],
            "upper": interval["upper"],
            "level": interval["level"],
            "standard_error": numbers.get("standard_error"),
            "people": numbers.get("people"),
        }


def written(columns: Sequence[str], lines: Iterable[Row]) -> str:
    """Rows as CSV with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(line[column]) for column in columns] for line in lines)
    return text.getvalue()


def _numbers(value: object, of: Sequence[str]) -> Iterator[tuple[Sequence[str], Mapping[str, Any]]]:
    """Every number with an interval in an answer, and of what it is."""
    if isinstance(value, list):
        for one in value:
            yield from _numbers(one, of)
        return
    if not isinstance(value, dict):
        return
    of = (*of, *_named(value))
    if value.get("interval") and (value.get("estimate", value.get("share")) is not None):
        yield of, value
    for name, part in value.items():
        if isinstance(part, list):
            yield from _numbers(part, (*of, "below") if name == "cumulative" else of)
        elif isinstance(part, dict) and name not in ("parameters", "where", "interval"):
            yield from _numbers(part, (*of, name))


def _named(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Which one of its list a part of an answer is."""
    where = value.get("where") or {}
    named = [f"{name}={label}" for name, label in where.items()]
    if "choice" in value:
        named.append(str(value["choice"]))
    if "coordinate" in value:
        named.append(f"coordinate {value['coordinate']}")
    if "q" in value:
        named.append(f"quantile {value['q']}")
    if "at" in value:
        named.append(f"at {value['at']}")
    if "share" in value and "lower" in value:
        named.append(f"{value['lower']} to {value['upper']}")
    return tuple(named)


def _cell(value: object) -> object:
    """A cell; a text is none that a spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _csv(lines: Iterable[Row]) -> bytes:
    return written(SIX, lines).encode()


def _table(lines: Iterable[Row]) -> Any:
    # Only what writes such a table needs it, and it takes longer than all else of a start.
    import pyarrow

    texts = _MANY[: _MANY.index("estimate")]
    kinds = {
        name: pyarrow.timestamp("us", "UTC")
        if name == "created_at"
        else pyarrow.string()
        if name in texts
        else pyarrow.float64()
        for name in _MANY
    }
    found = list(lines)
    columns = [
        pyarrow.array([_typed(name, line[name], text=name in texts) for line in found], kind)
        for name, kind in kinds.items()
    ]
    return pyarrow.table(columns, names=list(_MANY))


def _typed(name: str, value: Any, *, text: bool) -> Any:
    if name == "created_at":
        return datetime.fromisoformat(value)
    return value if text or value is None else float(value)


def _parquet(lines: Iterable[Row]) -> bytes:
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(_table(lines), sink)
    return sink.getvalue()


def _arrow(lines: Iterable[Row]) -> bytes:
    from pyarrow import ipc

    table, sink = _table(lines), io.BytesIO()
    with ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


_WRITERS = {CSV: _csv, PARQUET: _parquet, ARROW: _arrow}
