"""Commands that work on the database itself: its schema, and PostgreSQL's own programs."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.common import AsJson, CommandFailed, DataDir, console, load_settings, open_database, print_json
from app.postgres.programs import run_tool
from app.store.migrate import upgrade
from app.store.partitions import MOST


def migrate(
    data_dir: DataDir = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=MOST,
            metavar="N",
            help="Split the tables with a row or more a person into N parts, by the hash of the person. "
            "Refused where one of them has rows or other partitions, and on Citus.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database's schema up to date.

    Safe to repeat, and safe while a service of the same version runs.
    """
    settings = load_settings(data_dir)
    with open_database(settings, create=True) as (url, _):
        done = asyncio.run(upgrade(url, partitions=partitions))
    if as_json:
        print_json(asdict(done))
        return
    if done.before != done.after:
        made = f"went from revision {done.before} to" if done.before else "was made, at revision"
        console.print(f"The schema {made} {done.after}.")
    elif not done.partitioned:
        console.print(f"The schema is at revision {done.after}: nothing to do.")
    if done.partitioned:
        console.print(f"The tables of people have {partitions} partitions.")
    if done.reader is not None:
        console.print(f"Note: {done.reader}.")


def postgres(
    context: typer.Context,
    program: Annotated[str, typer.Argument(help="psql, pg_dump, pg_restore or another one of PostgreSQL's.")],
    data_dir: DataDir = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make an embedded database where there is none.")
    ] = False,
) -> None:
    """Run one of PostgreSQL's own programs on the service's database: dither postgres psql -c "SELECT 1".

    What follows the program is passed on to it. Programs are those in DITHER_POSTGRES_BIN, else those that
    come with the embedded PostgreSQL, which are built without TLS. Where the database is, they read in their
    environment, not in arguments that others could see.
    """
    settings = load_settings(data_dir)
    with open_database(settings, create=create) as (url, _):
        try:
            status = run_tool(url, program, context.args, settings.postgres_bin)
        except ValueError as error:
            raise CommandFailed(str(error)) from None
    raise typer.Exit(status)
