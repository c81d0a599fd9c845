"""`dither contribute`: a file through the SDK, randomized here where the trust tag is local."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from dither import BatchProgress, BatchResult, FieldProblem, InvalidRequest, RecordFile, Study
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.cli.common import (
    AsJson,
    CommandFailed,
    console,
    notes,
    print_json,
    print_table,
    readable,
    usage_error,
)
from app.cli.http import DEFAULT_URL, StudyName, Token, Url, needed, number, service
from app.cli.subjects import SubjectName
from app.core.numbers import counted
from app.core.study import Trust
from app.web.file_check import FileCheck, check_file, reading_of

Tag = Literal["central", "local", "public"]


class Decimals(StrEnum):
    """What stands before decimals."""

    POINT = "."
    COMMA = ","


_OPTIONS = {
    "subject": "--subject-column",
    "value": "--value-column",
    "ignore": "--ignore-columns",
    "ignore_case": "--ignore-case",
}
"""The options of the command by arguments of `RecordFile`; others have the same name."""

SHOWN_ROWS = 5
"""Rows that are named for each reason of a refusal."""

DEVICE_DIRECTORY = Path(typer.get_app_dir("dither")) / "device"

Directory = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        file_okay=False,
        show_default="the user's configuration directory",
        help="Where this device remembers what it gave away, so that no noise is drawn twice. Keep it.",
    ),
]


def contribute(
    study: StudyName,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            callback=readable,
            help="CSV (commas, semicolons or tabs; also .gz), Excel or Parquet with a header: "
            "subject,value[,epsilon][,trust], and the attributes of the study; - for input. In a study of "
            "measures their columns stand in place of value. Coordinates of a vector stand in one cell, with "
            "semicolons between them. Case does not count in names of columns and trust tags; labels and "
            "choices are those of the study, exactly unless --ignore-case.",
        ),
    ],
    trust: Annotated[Trust | None, typer.Option(help="For rows that give none.")] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="Personal epsilon of rows that give none.")
    ] = None,
    directory: Directory = DEVICE_DIRECTORY,
    max_epsilon: Annotated[
        str | None, typer.Option(metavar="EPSILON", help="This device's own limit for each person.")
    ] = None,
    check_spent: Annotated[
        bool,
        typer.Option(help="Ask what each local subject has spent, as another device may have contributed."),
    ] = True,
    subject_column: Annotated[str, typer.Option(metavar="NAME", help="Column of the subject.")] = "subject",
    value_column: Annotated[str, typer.Option(metavar="NAME", help="Column of the value.")] = "value",
    decimals: Annotated[
        Decimals | None,
        typer.Option(
            show_default="the file's numbers tell",
            help="What stands before decimals; the other mark may stand between thousands.",
        ),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="Sheet of an Excel file that has several.")
    ] = None,
    ignore_columns: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column that is no field, to be left out; any number of times."),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default="UTF-8 or UTF-16, as its start tells", help="Of a CSV, as cp1252."
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="What says that a cell is missing, as 'k. A.', where it is no label; any number of times.",
        ),
    ] = None,
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", help="Labels and choices may be in another case.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Send and store nothing: say how the file would be read, what is wrong with each row, and "
            "the command that imports it. What people have left of their budgets is not asked. Exit status 1 "
            "if a row would be refused.",
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="After --check, import by the reading that it proposes.")
    ] = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Contribute the values of a file, with a result for every row; row 1 is the first below the header.

    Refused rows do not sink the others; exit status 1 if there are any. Where it breaks off, run it again:
    what has arrived counts once.
    """
    for text, option in ((epsilon, "--epsilon"), (max_epsilon, "--max-epsilon")):
        if text is not None:
            number(text, option)
    tag: Tag | None = None if trust is None else trust.value
    bearer = needed(token)
    if yes and not check:
        raise usage_error("--yes is for --check, which it confirms")
    reading: dict[str, Any] = {
        "subject": subject_column,
        "value": value_column,
        "decimals": None if decimals is None else decimals.value,
        "ignore": tuple(ignore_columns or ()),
        "sheet": sheet,
        "encoding": encoding,
        "missing": tuple(missing or ()),
        "ignore_case": ignore_case,
    }
    source = sys.stdin.buffer if file == "-" else file
    try:
        if check:
            # Without a directory: a device remembers nothing of it.
            with service(url, bearer) as reader:
                described = reader.study(study)
            found = check_file(source, described, epsilon=epsilon, trust=tag, options=reading)
            given = [study, file]
            for option, word in (
                ("--trust", tag),
                ("--epsilon", epsilon),
                ("--max-epsilon", max_epsilon),
                ("--directory", None if directory == DEVICE_DIRECTORY else str(directory)),
                ("--url", None if url == DEFAULT_URL else url),
            ):
                given += [] if word is None else [option, word]
            given += [] if check_spent else ["--no-check-spent"]
            if not (yes and as_json):
                _show_check(found, described, given, as_json=as_json)
            if not yes:
                raise typer.Exit(found.faulty > 0)
        records = found.file if check else RecordFile(source, **reading)
    except InvalidRequest as refusal:
        raise CommandFailed(_with_options(str(refusal))) from None
    if tag is None and not records.has("trust"):
        raise usage_error(f"give --trust, or a column trust; the columns are: {', '.join(records.columns)}")
    device = service(url, bearer, directory=directory, max_epsilon=max_epsilon)
    with _progress(len(records)) as advance, device as client:
        try:
            result = client.contribute_many(
                study, records, epsilon=epsilon, trust=tag, check_spent=check_spent, on_progress=advance
            )
        except InvalidRequest as refusal:
            raise CommandFailed(_with_options(str(refusal))) from None
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


def withdraw(
    study: StudyName,
    subject: SubjectName,
    directory: Directory = DEVICE_DIRECTORY,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> None:
    """Withdraw a person's contribution: its value is deleted, what was not spent of its epsilon is free."""
    with service(url, token, directory=directory) as client:
        client.withdraw(study, subject=subject)
    console.print(f"Withdrawn. What was spent stays spent: dither budget {subject}", markup=False)


def _show_refusals(result: BatchResult) -> None:
    """Why rows were refused, the commonest reason first, with the first rows of each."""
    rows: dict[tuple[str, str, str], list[int]] = {}
    for row, refusal in result.refusals:
        for error in refusal.errors or (FieldProblem("", refusal.detail),):
            key = (refusal.code or "refused", error.field, _with_options(error.reason))
            rows.setdefault(key, []).append(row)
    lines = [
        {"code": code, "field": field, "reason": reason or code, "rows": len(found), "which": _first(found)}
        for (code, field, reason), found in sorted(rows.items(), key=lambda item: -len(item[1]))
    ]
    if lines:
        headings = {"code": "refused because", "field": "field", "reason": "reason"}
        print_table(lines, {**headings, "rows": "rows", "which": "which"})


def _with_options(reason: str) -> str:
    """A reason of the SDK, which names its arguments and then our options, with the options alone.

    >>> _with_options("say which, with decimals=',' or '.' (--decimals)")
    'say which, with --decimals'
    """
    return re.sub(r"\w+=[^(]*\((--[^)]*)\)", r"\1", reason)


def _first(rows: Sequence[int]) -> str:
    """The first of the rows; 1 is the first below the header."""
    return ", ".join(map(str, rows[:SHOWN_ROWS])) + (", ..." if len(rows) > SHOWN_ROWS else "")


def _show_check(found: FileCheck, study: Study, given: Sequence[str], *, as_json: bool) -> None:
    """How a file would be read, what is wrong with its rows, and the command that imports it."""
    words = ["dither", "contribute", *given]
    for name, value in found.options.items():
        option = _OPTIONS.get(name, f"--{name}")
        if value is True:
            words.append(option)
        elif value and value != name:
            words += [
                word for one in ([value] if isinstance(value, str) else value) for word in (option, one)
            ]
    command = shlex.join(words)
    if as_json:
        reading = {**found.options, "encoding": found.file.encoding, "separator": found.file.separator}
        faults = [
            {"row": row, "errors": [{"field": one.field, "reason": one.reason} for one in wrong]}
            for row, wrong in found.faults.items()
        ]
        counts = {"rows": len(found.file), "faulty": found.faulty, "ranges": dict(found.ranges)}
        print_json({**counts, "reading": reading, "faults": faults, "command": command})
        return
    lines = [f"{name}: {said}" for name, said in reading_of(found, study)]
    for row, wrong in found.faults.items():
        lines.append(f"row {row}: " + "; ".join(f"{one.field} {_with_options(one.reason)}" for one in wrong))
    if found.faulty > len(found.faults):
        lines.append(f"and {counted(found.faulty - len(found.faults), 'row')} more")
    refused = f"{found.faulty:,} of {counted(len(found.file), 'row')} would be refused"
    seen = refused if len(found.file) else "The file has no row below its header"
    lines.append(f"{seen}. Nothing was sent or stored.")
    if len(found.file):
        lines += ["To import it:", command]
    # One line each, however long: the command is copied.
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _progress(rows: int) -> Iterator[Callable[[BatchProgress], None]]:
    """A progress bar on standard error, and what moves it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task("contributing", total=rows)

        def advance(done: BatchProgress) -> None:
            progress.update(task, completed=done.records)

        yield advance
