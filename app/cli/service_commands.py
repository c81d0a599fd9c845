"""A command that asks the service: where that is, who asks, and how the answer is printed."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from dither import save_table

from app.cli.common import AsJson, CommandFailed, notes, print_json, usage_error
from app.cli.http import DEFAULT_URL, Token, Url, service
from app.core.numbers import counted

Command = Callable[..., None]


def _writable(path: Path | None) -> Path | None:
    """Refuse a file that could not be written, before an answer is paid for."""
    if path is not None:
        if path.suffix not in (".csv", ".parquet"):
            raise usage_error("must end in .csv or .parquet")
        if not path.parent.is_dir():
            raise usage_error(f"No such directory: {path.parent}")
    return path


Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        dir_okay=False,
        callback=_writable,
        help="Write all that is known to FILE, .csv or .parquet: a row an answer, label, bin or choice.",
    ),
]


def option(name: str, kind: Any, default: object = None) -> inspect.Parameter:
    """An option of a command, as typer reads it from a signature."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def with_options(command: Command, options: Iterable[inspect.Parameter]) -> Command:
    """A command with these options in place of its own parameters: typer reads both attributes."""
    shown = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in options]
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in shown}
    return command


def asks_service(
    show: Callable[[Any], None] | None = None, *, saves: bool = False
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function that gets a client first; it has the options --url and --token besides.

    Args:
        show: Prints what the function returns, which is a document of the service or a list of them. The
            command then has --json, too. None: the function prints what is to be said.
        saves: Whether the command has --output.
    """

    def decorate(ask: Callable[..., Any]) -> Command:
        @wraps(ask)
        def run(
            *given: Any,
            url: str,
            token: str | None,
            output: Path | None = None,
            as_json: bool = False,
            **named: Any,
        ) -> None:
            with service(url, token) as client:
                found = ask(client, *given, **named)
            if output is not None:
                _save(found if isinstance(found, list) else [found], output)
            elif as_json:
                print_json([one.raw for one in found] if isinstance(found, list) else found.raw)
            elif show is not None:
                show(found)

        _, *own = inspect.signature(ask).parameters.values()
        own += [option("url", Url, DEFAULT_URL), option("token", Token)]
        own += [option("output", Output)] if saves else []
        own += [] if show is None else [option("as_json", AsJson, False)]
        return with_options(run, own)

    return decorate


def _save(found: list[Any], output: Path) -> None:
    """Write answers to a file.

    Raises:
        CommandFailed: it cannot be written.
    """
    try:
        rows = save_table(found, output)
    except OSError as error:
        raise CommandFailed(f"{output}: {error.strerror}") from error
    notes.print(f"{counted(rows, 'row')} in {output}", markup=False, soft_wrap=True)
