"""`dither contribute`: a CSV through the SDK, randomized here where the trust tag is local."""

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, TextIO, cast

import typer
from dither import BatchProgress, BatchResult, FieldProblem, Record
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.cli.common import AsJson, CommandFailed, console, notes, print_json, print_table, usage_error
from app.cli.http import DEFAULT_URL, Token, Url, needed, number, service
from app.cli.studies import StudyName
from app.core.study import Trust

Tag = Literal["central", "local", "public"]

SHOWN_ROWS = 5
"""Rows that are named for each reason of a refusal."""

DEVICE_DIRECTORY = Path(typer.get_app_dir("dither")) / "device"


def contribute(
    study: StudyName,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV with a header: subject,value[,epsilon][,trust]; - for input. Coordinates of a vector "
            "stand in one cell, with semicolons between them.",
        ),
    ],
    trust: Annotated[Trust | None, typer.Option(help="For rows that give none.")] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="Personal epsilon of rows that give none.")
    ] = None,
    directory: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            show_default="the user's configuration directory",
            help="Where this device remembers what it gave away, so that no noise is drawn twice. Keep it.",
        ),
    ] = DEVICE_DIRECTORY,
    max_epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="This device's own limit for each person.")
    ] = None,
    check_spent: Annotated[
        bool,
        typer.Option(help="Ask what each local subject has spent, as another device may have contributed."),
    ] = True,
    subject_column: Annotated[str, typer.Option(metavar="NAME", help="Column of the subject.")] = "subject",
    value_column: Annotated[str, typer.Option(metavar="NAME", help="Column of the value.")] = "value",
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Contribute the values of a CSV file, with a result for every row.

    Refused rows do not sink the others; exit status 1 if there are any. Where it breaks off, run it again:
    what has arrived counts once.
    """
    for text, option in ((epsilon, "--epsilon"), (max_epsilon, "--max-epsilon")):
        if text is not None:
            number(text, option)
    tag: Tag | None = None if trust is None else trust.value
    bearer = needed(token)
    with _opened(file) as (source, rows), _progress(rows) as advance:
        records = _records(source, subject_column, value_column, trusted=trust is not None)
        with service(url, bearer, directory=directory, max_epsilon=max_epsilon) as client:
            result = client.contribute_many(
                study, records, epsilon=epsilon, trust=tag, check_spent=check_spent, on_progress=advance
            )
    if as_json:
        lines = [
            {"row": row, "code": refusal.code, "errors": [asdict(error) for error in refusal.errors]}
            for row, refusal in result.refusals
        ]
        counts = {"created": result.created, "unchanged": result.unchanged, "refused": result.refused}
        print_json({**counts, "refusals": lines})
    else:
        console.print(
            f"{result.created:,} created, {result.unchanged:,} unchanged, {result.refused:,} refused."
        )
        _show_refusals(result)
    if result.refused:
        raise typer.Exit(1)


def _show_refusals(result: BatchResult) -> None:
    """Why rows were refused, the commonest reason first, with the first rows of each."""
    rows: dict[tuple[str, str, str], list[int]] = {}
    for row, refusal in result.refusals:
        for error in refusal.errors or (FieldProblem("", refusal.detail),):
            rows.setdefault((refusal.code or "refused", error.field, error.reason), []).append(row)
    lines = [
        {"code": code, "field": field, "reason": reason or code, "rows": len(found), "which": _first(found)}
        for (code, field, reason), found in sorted(rows.items(), key=lambda item: -len(item[1]))
    ]
    if lines:
        headings = {"code": "refused because", "field": "field", "reason": "reason"}
        print_table(lines, {**headings, "rows": "rows", "which": "which"})


def _first(rows: Sequence[int]) -> str:
    """The first of the rows; 1 is the first below the header."""
    return ", ".join(map(str, rows[:SHOWN_ROWS])) + (", ..." if len(rows) > SHOWN_ROWS else "")


@contextmanager
def _opened(file: str) -> Iterator[tuple[TextIO, int | None]]:
    """The text of a file, or of standard input, and how many rows it has if that is known."""
    if file == "-":
        yield sys.stdin, None
        return
    try:
        with Path(file).open("rb") as raw:
            lines = sum(1 for _ in raw)
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror}") from error
    with Path(file).open(encoding="utf-8-sig", newline="") as source:
        yield source, max(lines - 1, 0)


def _records(source: TextIO, subject: str, value: str, *, trusted: bool) -> Iterator[Record]:
    """The rows of a CSV file, once its header makes sense."""
    reader = csv.DictReader(source, strict=True)
    with _readable():
        columns = reader.fieldnames or []
    missing = [name for name in (subject, value) if name not in columns]
    if missing:
        found = ", ".join(columns) or "none"
        raise usage_error(
            f"the file has no column {' and no column '.join(missing)}; its columns are: {found} "
            "(--subject-column, --value-column)"
        )
    if not trusted and "trust" not in columns:
        raise usage_error("give --trust, or a column trust")

    def rows() -> Iterator[Record]:
        with _readable():
            for row in reader:
                yield Record(
                    subject=row[subject] or "",
                    value=_value(row[value] or ""),
                    epsilon=row.get("epsilon") or None,
                    trust=cast(Tag | None, row.get("trust") or None),
                )

    return rows()


def _value(cell: str) -> str | list[str]:
    return [number.strip() for number in cell.split(";")] if ";" in cell else cell


@contextmanager
def _readable() -> Iterator[None]:
    """What cannot be read is the file's fault; the message quotes nothing of it."""
    try:
        yield
    except (csv.Error, UnicodeDecodeError) as error:
        raise CommandFailed(f"the file is no CSV in UTF-8: {type(error).__name__}") from error


@contextmanager
def _progress(rows: int | None) -> Iterator[Callable[[BatchProgress], None]]:
    """A progress bar on standard error, and what moves it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task("contributing", total=rows)

        def advance(done: BatchProgress) -> None:
            progress.update(task, completed=done.records)

        yield advance
