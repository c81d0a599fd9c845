"""The command `dither`."""

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import httpx
import typer
from dither import DitherError, ProblemError

from app.cli.common import CommandFailed, notes
from app.cli.examples import add_examples
from app.cli.extensions import add, add_extension, installed
from app.cli.http import explain
from app.core.errors import SchemaMismatch, ServiceError
from app.postgres.embedded import EmbeddedPostgresError
from app.settings import SettingsError
from app.store.keyfile import KeyFileError

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

PASSED_ON = {"allow_extra_args": True, "allow_interspersed_args": False, "ignore_unknown_options": True}
"""Of a command that hands what follows its argument to another program."""

COMMANDS = {
    "serve": "serve:serve",
    "migrate": "database:migrate",
    "size": "size:size",
    "plan": "ask:plan",
    "mean": "ask:mean",
    "release": "ask:release",
    "releases": "ask:releases",
    "contribute": "contribute:contribute",
    "withdraw": "contribute:withdraw",
    "budget": "subjects:show_budget",
    "demo": "",
    "reproduce": "",
    "compare": "",
    "postgres": "database:postgres",
    "audit": "audit:audits",
    "restore-check": "restoring:restore_check",
    "token": "tokens:tokens",
    "study": "studies:studies",
    "session": "sessions:sessions",
    "subject": "subjects:subjects",
    "simulate": "",
}
"""Module under `app.cli` and name in it, of a command or a group; empty for a command of another
distribution. Loading all of them takes longer than most of them run, so only the one that is asked for is
loaded."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dither {version('dither-server')}")
        raise typer.Exit


def build(names: Iterable[str] | None = None) -> typer.Typer:
    """The command with these subcommands, or with all of them, those of other distributions too."""
    app = typer.Typer(
        name="dither",
        help="Differentially private statistics with personal budgets.",
        no_args_is_help=True,
        # A traceback would show local variables: tokens, values, keys.
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in _every() if names is None else names:
        module, _, attribute = COMMANDS.get(name, "").partition(":")
        if not module:
            add_extension(app, name)
            continue
        found = getattr(import_module(f"app.cli.{module}"), attribute)
        add(app, name, found, PASSED_ON if name == "postgres" else None)
    add_examples(app)
    return app


def _every() -> list[str]:
    """Commands of this distribution first; what another one calls the same is not reached."""
    return [*COMMANDS, *(name for name in installed() if " " not in name and name not in COMMANDS)]


def _options(
    _: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Differentially private statistics with personal budgets."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 not understood."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        build(_needed(given))(args=given, prog_name="dither")
    except SettingsError as error:
        _fail(str(error), 2)
    except ProblemError as error:
        _fail(explain(error), 1)
    except FAILURES as error:
        _fail(str(error) or type(error).__name__, 1)


def _needed(given: Sequence[str]) -> list[str] | None:
    """The one command that is asked for; None: help and completion need all."""
    if given and given[0] in COMMANDS:
        return [given[0]]
    return [] if given == ["--version"] else None


def _fail(message: str, status: int) -> None:
    notes.print("error:", message, style="red", markup=False, soft_wrap=True)
    raise SystemExit(status)
