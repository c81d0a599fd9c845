"""`dither doctor`: what is wrong with an installation, and what to do about it."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from app.cli.checkup import Line, State, check_database, check_disk, check_entropy, check_settings
from app.cli.common import (
    AsJson,
    CommandFailed,
    DataDir,
    load_settings,
    open_database,
    print_json,
    print_table,
)
from app.postgres.embedded import EmbeddedPostgresError
from app.settings import SettingsError


def doctor(
    data_dir: DataDir = None,
    backups: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="Where deploy/backup.sh puts its backups."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for what is wrong with an installation, and say what to do about it.

    Checks settings, database, schema, subject key, clock, disk, entropy, replicas, webhooks, the last audit
    and the last backup; changes nothing, also of a running service. Each is ok, a warning or a failure.
    Exit status 1 if any is a failure.
    """
    lines = sorted(_checks(data_dir, backups), key=lambda line: list(State).index(line.state), reverse=True)
    healthy = all(line.state is not State.FAILURE for line in lines)
    if as_json:
        print_json({"healthy": healthy, "checks": [asdict(line) for line in lines]})
    else:
        columns = {"check": "Check", "state": "", "found": "Found", "remedy": "What to do"}
        print_table([asdict(line) for line in lines], columns)
    if not healthy:
        raise typer.Exit(1)


def _checks(data_dir: Path | None, backups: Path | None) -> list[Line]:
    from app.main import require_installed

    try:
        settings = load_settings(data_dir)
        require_installed(settings)
    except SettingsError as error:
        return [
            Line("settings", State.FAILURE, str(error), "docs/settings.md has every one"),
            check_entropy(),
        ]
    lines = [check_settings(settings), check_entropy()]
    try:
        with open_database(settings) as (url, _):
            return [*lines, *asyncio.run(check_database(settings, url, backups))]
    except (CommandFailed, EmbeddedPostgresError) as error:
        remedy = "where there is none, dither serve makes one; postgres/log in the data directory says more"
        return [*lines, Line("database", State.FAILURE, str(error), remedy), check_disk(settings)]
