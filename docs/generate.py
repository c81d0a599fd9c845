"""The reference pages that are made from the code.

`python -m docs.generate` (or `make docs`) writes them; tests/architecture/test_docs.py fails when one has
drifted from the code.
"""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import typer
from nbconvert import MarkdownExporter
from typer.core import TyperCommand, TyperGroup

from app.cli.extensions import installed
from app.cli.tree import build
from app.main import create_app
from app.settings import COMMAND_VARIABLES, SECRETS_DIRECTORY, Settings
from app.web import reference
from benchmarks import scale_page
from docs import known_shares

DIRECTORY = Path(__file__).parent
NOTEBOOKS = (DIRECTORY / "tutorial.ipynb", DIRECTORY / "gallery.ipynb")
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
        "Commands that work on the database itself (`serve`, `migrate`, `postgres`, `doctor`, `audit`, "
        "`audit export`, `restore-check`, `subject rekey`, `token recover`) take "
        "`--data-dir DIR` for the embedded database, or use `DITHER_DATABASE_URL`. All others talk HTTP and "
        "take `--url` and `--token`, or `DITHER_URL` and `DITHER_TOKEN`.\n\n"
        "Exit status: 0 done, 1 failed or refused, 2 invalid command line or settings. "
        "Results go to standard output, progress and errors to standard error; `--json` prints what a script "
        "would read. Where standard output is no terminal, tables have tabs between their cells. "
        "`dither --install-completion` teaches the shell that you use commands and options.",
    ]
    if "demo" not in installed():
        raise SystemExit("dither-research is missing or old: pip install --no-deps -e ./research")
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
    default = Settings.model_fields[variable.removeprefix("DITHER_").lower()].get_default(
        call_default_factory=True
    )
    if default in (None, (), {}):
        return "not set"
    return f"`{default:f}`" if isinstance(default, Decimal) else f"`{default}`"


def _table(rows: Iterator[tuple[str, str, str]]) -> str:
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    return "\n".join(lines + [f"| {name} | {default} | {meaning} |" for name, default, meaning in rows])


def routes_page() -> str:
    """Every route, from the OpenAPI document."""
    intro = (
        "Made from the OpenAPI document, which a running service has at `/openapi.json`; this list is at "
        "`/llms-full.txt` there. [HTTP](http.md) explains; this page lists. Every refusal is a "
        "[problem](problems.md)."
    )
    return (
        "\n\n".join([NOTE, "# Every route", intro, *reference.parts(create_app(Settings()).openapi())]) + "\n"
    )


def notebook_page(notebook: Path) -> str:
    """A notebook, as a page."""
    return f"{NOTE}\n\n{_exported(notebook)[0].strip()}\n"


def plots() -> Mapping[str, bytes]:
    """The plots of all notebooks by file name under docs/."""
    return {name: plot for notebook in NOTEBOOKS for name, plot in _exported(notebook)[1].items()}


def _exported(notebook: Path) -> tuple[str, Mapping[str, bytes]]:
    names = {"unique_key": notebook.stem, "output_files_dir": ""}
    content = nbformat.read(notebook, as_version=4)
    text, resources = MarkdownExporter().from_notebook_node(content, resources=names)
    return text.replace("![png](/", "![Plot](").replace("![png](", "![Plot]("), {
        name.lstrip("/"): content for name, content in resources["outputs"].items()
    }


PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "estimators.md": lambda: known_shares.within((DIRECTORY / "estimators.md").read_text(encoding="utf-8")),
    "scale.md": scale_page.page,
    "settings.md": settings_page,
    "http-reference.md": routes_page,
    **{f"{one.stem}.md": partial(notebook_page, one) for one in NOTEBOOKS},
}
"""File names under docs/ and what writes them."""


def main() -> None:
    """Write every page."""
    for name, page in PAGES.items():
        (DIRECTORY / name).write_text(page(), encoding="utf-8")
    for name, plot in plots().items():
        (DIRECTORY / name).write_bytes(plot)
    scale_page.plot()


if __name__ == "__main__":
    main()
