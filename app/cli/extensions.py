"""Commands of other distributions: the entry points `dither.commands`."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer

GROUP = "dither.commands"

RESEARCH = "dither-research"
"""The distribution of this repository that has the commands of `research/`."""


def installed() -> dict[str, EntryPoint]:
    """What is installed: entry points by the words after `dither`, as in `audit privacy`."""
    return {found.name: found for found in entry_points(group=GROUP)}


def add_extension(app: typer.Typer, name: str) -> None:
    """Add a command or group of another distribution; where that is missing, one that says what to install.

    Args:
        app: The command or group that it is added to.
        name: The words after `dither`; the last one is the command's name in `app`.
    """
    found = installed().get(name)
    word = name.rpartition(" ")[2]
    if found is not None:
        add(app, word, found.load())
        return

    def missing() -> None:
        from app.cli.common import CommandFailed

        raise CommandFailed(
            f"`dither {name}` needs {RESEARCH}, which is not installed: install its wheel of this version, "
            "which is made beside the server's (no package index has it)"
        )

    # Whatever options the real one has: all are taken, and none is looked at.
    settings = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(word, help=f"Part of {RESEARCH}, which is not installed.", context_settings=settings)(missing)


def add(app: typer.Typer, name: str, found: Any, settings: dict[str, Any] | None = None) -> None:
    """Add what a module calls a command: a function, or a group of them."""
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
    else:
        app.command(name, context_settings=settings)(found)


def add_summary(app: typer.Typer, name: str, summary: str) -> None:
    """Add the name of a command that is not loaded, for the list of commands."""
    app.command(name, help=summary)(lambda: None)
