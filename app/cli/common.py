"""What the commands share: options, output, and the choice of the database."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

if TYPE_CHECKING:
    from app.postgres.embedded import EmbeddedPostgres
    from app.settings import Settings
    from app.store.database import Database

T = TypeVar("T")

# Commands that talk HTTP need no database: what does is loaded where it is used.


def _console(*, stderr: bool = False) -> Console:
    """A console that breaks lines between words, at a terminal alone: programs find them unbroken."""
    stream = sys.stderr if stderr else sys.stdout
    at_terminal = stream is not None and stream.isatty()
    return Console(stderr=stderr, highlight=False, soft_wrap=not at_terminal)


console = _console()
"""Results go to standard output."""

notes = _console(stderr=True)
"""Progress and errors go to standard error."""

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        file_okay=False,
        help="Data directory with the embedded database; or set DITHER_DATABASE_URL.",
    ),
]

MOMENT: Mapping[str, Any] = {
    "metavar": "YYYY-MM-DD[THH:MM:SS]",
    "formats": ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"],
    "callback": lambda when: None if when is None else when.replace(tzinfo=UTC),
}
"""How an option takes a moment, which is in UTC."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]


class CommandFailed(Exception):
    """The command did not succeed; the message is for the person who typed it."""


def usage_error(message: str) -> typer.BadParameter:
    """The error for an invalid command line; exits with status 2."""
    return typer.BadParameter(message)


def readable(file: str) -> str:
    """A file that a command reads, or - for standard input; a usage error if it cannot be opened."""
    if file != "-":
        try:
            # Opening a pipe would end what writes into it.
            if not Path(file).is_fifo():
                Path(file).open("rb").close()
        except OSError as error:
            raise usage_error(f"{file}: {error.strerror}") from None
    return file


def load_settings(data_dir: Path | None, *, quiet: bool = True) -> "Settings":
    """The settings of the environment, with a data directory from the command line on top.

    Configures logging, too: for a person if standard error is a terminal.

    Args:
        data_dir: From the command line.
        quiet: Keep what is no problem out of the log, unless a level was asked for.
    """
    from app.logging import configure_logging
    from app.settings import Settings

    settings = Settings.load()
    if data_dir is not None:
        settings = settings.model_copy(update={"data_dir": data_dir})
    if settings.data_dir is not None:
        settings = settings.model_copy(update={"data_dir": settings.data_dir.expanduser().resolve()})
    level = "warning" if quiet and "log_level" not in settings.model_fields_set else settings.log_level
    configure_logging(level, plain=sys.stderr.isatty())
    return settings


@contextmanager
def open_database(
    settings: "Settings", *, create: bool = False
) -> Iterator[tuple[str, "EmbeddedPostgres | None"]]:
    """The URL of the database, and the embedded server behind it if that is ours to keep running.

    Args:
        settings: Say where it is.
        create: Make an embedded database where there is none.

    Raises:
        CommandFailed: there is none, and none is to be made.
    """
    if settings.database_url is not None:
        if settings.data_dir is not None and (settings.data_dir / "postgres").exists():
            notes.print("Using the database of DITHER_DATABASE_URL, not the one in the data directory.")
        yield settings.database_url.get_secret_value(), None
    elif settings.data_dir is not None:
        if not create and not (settings.data_dir / "postgres").exists():
            raise CommandFailed(f"there is no database in {settings.data_dir}")
        from app.postgres.embedded import EmbeddedPostgres

        with EmbeddedPostgres(settings.data_dir, settings.postgres_bin) as embedded:
            yield embedded.url, embedded
    else:
        raise usage_error("give --data-dir DIR, or set DITHER_DATABASE_URL")


def in_database(settings: "Settings", work: Callable[["Database"], Awaitable[T]]) -> T:
    """What is done in the database, whose schema must be that of this version."""
    from app.store.database import Database
    from app.store.migrate import require_head

    async def done(url: str) -> T:
        await require_head(url)
        async with Database.open(url, pool_size=1) as database:
            return await work(database)

    with open_database(settings) as (url, _):
        return asyncio.run(done(url))


def print_json(document: object) -> None:
    """Print a JSON document; decimal numbers stay numbers."""
    plain = "utf" not in (sys.stdout.encoding or "").lower()
    json.dump(document, sys.stdout, indent=2, ensure_ascii=plain, default=_to_json)
    sys.stdout.write("\n")


def print_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, title: str = "") -> None:
    """Print a table; cells with tabs between them where standard output is no terminal.

    Args:
        rows: One mapping a row.
        columns: Key in a row, and its heading. The first says which row it is and is never broken, so that
            it can be copied and searched for at any width.
        title: Above the table; on standard error where a program reads the table.

    That there are no rows is said on standard error, where no program takes it for one.
    """
    if not rows:
        notes.print("There are none.")
    if not console.is_terminal:
        if title:
            notes.print(title, markup=False)
        _print_cells(rows, columns)
        return
    table = new_table(title=title or None, show_header=any(columns.values()))
    for key, heading in columns.items():
        numeric = all(isinstance(row.get(key), int | float | Decimal | None) for row in rows)
        table.add_column(
            heading,
            justify="right" if numeric and rows else "left",
            overflow="fold",
            no_wrap=not table.columns or numeric,
        )
    for row in rows:
        table.add_row(*(show(row.get(key)) for key in columns))
    needed = Measurement.get(console, console.options.update_width(_UNBOUNDED), table).minimum
    if len(columns) > 2 and needed > console.width:
        # At this width numbers would be broken: each row becomes a table of its own.
        if title:
            console.print(title, markup=False)
        for number, row in enumerate(rows):
            console.line(min(number, 1))
            print_table([{"name": columns[key], "value": row.get(key)} for key in columns], _NAMELESS)
        return
    console.print(table, soft_wrap=False)


_UNBOUNDED = 100_000
"""Wider than any table."""

_NAMELESS = {"name": "", "value": ""}
"""Columns that need no headings."""


def print_details(details: Mapping[str, object]) -> None:
    """Print what is known of one thing, a line a name."""
    print_table([{"name": name, "value": value} for name, value in details.items()], _NAMELESS)


def _print_cells(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
    lines = [list(columns.values())] if any(columns.values()) else []
    lines += [[show(row.get(key)) for key in columns] for row in rows]
    for line in lines:
        sys.stdout.write("\t".join(" ".join(cell.split()) for cell in line) + "\n")


def new_table(**options: Any) -> Table:
    """A table in the style of this command, without columns yet."""
    return Table(
        box=SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        show_edge=False,
        title_justify="left",
        **options,
    )


def moment(when: datetime | None) -> str | None:
    """A moment to the minute, in UTC.

    >>> moment(datetime.fromisoformat("2026-11-23T04:52:23.457542+00:00"))
    '2026-11-23 04:52'
    """
    return None if when is None else f"{when.astimezone(UTC):%Y-%m-%d %H:%M}"


def show(value: object) -> str:
    """A value for a person: all digits of a decimal, as budgets and ranges are exact; six of a float.

    >>> show(Decimal("1.984999")), show(Decimal("20.0")), show(Decimal("1E+6")), show(1234567.8)
    ('1.984999', '20', '1000000', '1234570')
    """
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return _plain(f"{value.normalize(_ALL_DIGITS):g}")
        case float():
            return _plain(f"{value:.6g}")
        case list() | tuple():
            return ", ".join(show(item) for item in value)
    return str(value)


_ALL_DIGITS = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""Rounds nothing."""

_LONGEST = 1e15
"""Where numbers are so large that no one counts their digits."""


def _plain(text: str) -> str:
    """A large number without an exponent, up to a size that can be read."""
    return f"{Decimal(text):f}" if "e+" in text and abs(float(text)) < _LONGEST else text


def _to_json(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)
