"""The command `dither`."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import httpx
import typer
from dither import DitherError, ProblemError

from app.cli import (
    admin,
    ask,
    compare,
    contribute,
    database,
    demo,
    reproduce,
    serve,
    sessions,
    simulate,
    tokens,
)
from app.cli.common import CommandFailed, notes
from app.cli.http import explain
from app.core.errors import ServiceError
from app.settings import SettingsError
from app.store.embedded import EmbeddedPostgresError
from app.store.keyfile import KeyFileError
from app.store.migrate import SchemaMismatch

FAILURES = (
    CommandFailed,
    DitherError,
    EmbeddedPostgresError,
    KeyFileError,
    SchemaMismatch,
    ServiceError,
    httpx.HTTPError,
)
"""What is reported in one line, with exit status 1."""

PLAIN_COMMANDS = (
    serve.serve,
    database.migrate,
    ask.plan,
    ask.mean,
    ask.release,
    contribute.contribute,
    demo.demo,
    reproduce.reproduce,
    compare.compare,
)

PASSED_ON = {"allow_extra_args": True, "allow_interspersed_args": False, "ignore_unknown_options": True}
"""Of a command that hands what follows its argument to another program."""

GROUPS = {
    "audit": database.audits,
    "token": tokens.tokens,
    "study": admin.studies,
    "session": sessions.sessions,
    "subject": admin.subjects,
    "simulate": simulate.simulators,
}


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dither {version('dither-server')}")
        raise typer.Exit


def build() -> typer.Typer:
    """The command with all its subcommands."""
    app = typer.Typer(
        name="dither",
        help="Differentially private statistics with personal budgets.",
        no_args_is_help=True,
        add_completion=False,
        # A traceback would show local variables: tokens, values, keys.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for command in PLAIN_COMMANDS:
        app.command()(command)
    app.command(context_settings=PASSED_ON)(database.postgres)
    for name, group in GROUPS.items():
        app.add_typer(group, name=name)
    return app


def _options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Differentially private statistics with personal budgets."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 not understood."""
    try:
        build()(args=list(sys.argv[1:] if arguments is None else arguments), prog_name="dither")
    except SettingsError as error:
        _fail(str(error), 2)
    except ProblemError as error:
        _fail(explain(error), 1)
    except FAILURES as error:
        _fail(str(error) or type(error).__name__, 1)


def _fail(message: str, status: int) -> None:
    notes.print("error:", message, style="red", markup=False, soft_wrap=True)
    raise SystemExit(status)
