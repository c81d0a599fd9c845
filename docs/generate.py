"""The reference pages that are made from the code.

`python -m docs.generate` (or `make docs`) writes them; tests/architecture/test_docs.py fails when one has
drifted from the code.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from app.cli import build
from app.settings import COMMAND_VARIABLES, SECRETS_DIRECTORY, Settings

DIRECTORY = Path(__file__).parent
WIDTH = 100
NOTE = "<!-- Made by `make docs` from the code. Do not edit. -->"

COMMAND_VARIABLE_MEANINGS: Mapping[str, str] = {
    "DITHER_HOST": "Address that `dither serve` listens on, instead of `--host`.",
    "DITHER_PORT": "Port that `dither serve` listens on, instead of `--port`.",
    "DITHER_WORKERS": "API processes of `dither serve`, instead of `--workers`.",
    "DITHER_URL": "Service that the commands which talk HTTP ask, instead of `--url`.",
    "DITHER_TOKEN": "Bearer token of those commands, instead of `--token`.",
}


def cli_page() -> str:
    """Every command with its `--help`."""
    parts = [
        NOTE,
        "# The command `dither`",
        "`make setup` installs it as `.venv/bin/dither`; `python -m app.cli` is the same.\n\n"
        "Commands that work on the database itself (`serve`, `migrate`, `audit`, `token recover`) take "
        "`--data-dir DIR` for the embedded database, or use `DITHER_DATABASE_URL`. All others talk HTTP and "
        "take `--url` and `--token`, or `DITHER_URL` and `DITHER_TOKEN`.\n\n"
        "Exit status: 0 done, 1 failed or refused, 2 the command line or the settings cannot be meant. "
        "Results go to standard output, progress and errors to standard error; `--json` prints what a script "
        "would read.",
    ]
    for path, text in commands():
        parts.append(f"## {path}\n\n```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def commands() -> Iterator[tuple[str, str]]:
    """(command line, help) of every command, groups before what is in them."""
    command = typer.main.get_command(build())
    assert isinstance(command, TyperGroup), "dither has subcommands"
    yield from _commands("dither", command, None)


def _commands(path: str, command: TyperCommand | TyperGroup, parent: Any) -> Iterator[tuple[str, str]]:
    # The plain layout: no boxes, and the same at every terminal.
    command.rich_markup_mode = None
    context = command.make_context(
        path.rpartition(" ")[2],
        [],
        parent=parent,
        resilient_parsing=True,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
    )
    yield path, "\n".join(line.rstrip() for line in command.get_help(context).splitlines()).strip()
    if isinstance(command, TyperGroup):
        for name, found in command.commands.items():
            assert isinstance(found, TyperCommand | TyperGroup), "typer makes nothing else"
            yield from _commands(f"{path} {name}", found, context)


def settings_page() -> str:
    """Every environment variable."""
    parts = [
        NOTE,
        "# Settings",
        "Settings are environment variables, read once when a process starts. A variable that begins with "
        "`DITHER_` and is not listed here stops the service with exit status 2: a misspelled budget that is "
        "silently ignored would be a broken promise. An empty variable counts as not set.\n\n"
        f"A file named like a variable in lower case under `{SECRETS_DIRECTORY}` counts as that variable, "
        f"for example `{SECRETS_DIRECTORY}/dither_subject_key`; the environment wins.",
        "## The service",
        _table(
            (f"`{name}`", _default(name), description) for name, description in Settings.variables().items()
        ),
        "## Commands",
        _table((f"`{name}`", "", COMMAND_VARIABLE_MEANINGS[name]) for name in sorted(COMMAND_VARIABLES)),
    ]
    return "\n\n".join(parts) + "\n"


def _default(variable: str) -> str:
    default = Settings.model_fields[variable.removeprefix("DITHER_").lower()].default
    if default is None or default == ():
        return "not set"
    return f"`{default:f}`" if isinstance(default, Decimal) else f"`{default}`"


def _table(rows: Iterator[tuple[str, str, str]]) -> str:
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {default} | {meaning} |" for name, default, meaning in rows])


PAGES: Mapping[str, Callable[[], str]] = {"cli.md": cli_page, "settings.md": settings_page}
"""File names under docs/ and what writes them."""


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (DIRECTORY / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
