"""Commands that work on the database itself: migrate, audit, and a way back in for an admin."""

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.common import AsJson, CommandFailed, DataDir, console, load_settings, open_database, print_json
from app.cli.privacy import privacy
from app.core.clock import SystemClock
from app.core.principal import Role
from app.services.ledger import AuditReport, Ledger
from app.services.tokens import Tokens
from app.store.database import Database
from app.store.migrate import require_head, upgrade
from app.store.tools import run_tool


def migrate(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Bring the database's schema up to date.

    Safe to repeat, and safe while a service of the same version runs.
    """
    settings = load_settings(data_dir)
    with open_database(settings, create=True) as (url, _):
        done = asyncio.run(upgrade(url))
    if as_json:
        print_json(asdict(done))
    elif done.before == done.after:
        console.print(f"The schema is at revision {done.after}: nothing to do.")
    else:
        console.print(f"The schema went from revision {done.before or 'nothing'} to {done.after}.")


audits = typer.Typer(invoke_without_command=True)
audits.command()(privacy)


@audits.callback()
def audit(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Recompute the whole ledger and verify its hash chain; or audit the privacy of the mechanisms.

    Without a subcommand: reads one snapshot, also of a running service, and records what it found for the
    dashboard. Exit status 1 if anything does not match.
    """
    if context.invoked_subcommand is not None:
        return
    settings = load_settings(data_dir)
    with open_database(settings) as (url, _):
        asyncio.run(require_head(url))
        report = asyncio.run(_audit(url))
    if as_json:
        print_json({"clean": report.clean, **asdict(report)})
    else:
        _print_report(report)
    if not report.clean:
        raise typer.Exit(1)


def recover(
    data_dir: DataDir = None,
    name: Annotated[str, typer.Option(help="What to call it.")] = "recovered",
) -> None:
    """Make a new admin token straight in the database, and print it.

    For whoever has the database but lost every admin token. It shows in the audit trail.
    """
    settings = load_settings(data_dir)
    with open_database(settings) as (url, _):
        asyncio.run(require_head(url))
        typer.echo(asyncio.run(_make_token(url, name)))


def postgres(
    context: typer.Context,
    program: Annotated[str, typer.Argument(help="psql, pg_dump, pg_restore or another one of PostgreSQL's.")],
    data_dir: DataDir = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make an embedded database where there is none.")
    ] = False,
) -> None:
    """Run one of PostgreSQL's own programs on the service's database: dither postgres psql -c "SELECT 1".

    What follows the program is passed on to it. Programs are those that come with the embedded PostgreSQL;
    where the database is, they are told by their environment, not by arguments that others could see.
    """
    settings = load_settings(data_dir)
    with open_database(settings, create=create) as (url, _):
        try:
            status = run_tool(url, program, context.args)
        except ValueError as error:
            raise CommandFailed(str(error)) from None
    raise typer.Exit(status)


async def _audit(url: str) -> AuditReport:
    database = Database.open(url, pool_size=1)
    try:
        ledger = Ledger(database)
        report = await ledger.audit()
        await ledger.record(report, at=SystemClock().now(), actor="command line")
        return report
    finally:
        await database.close()


async def _make_token(url: str, name: str) -> str:
    database = Database.open(url, pool_size=1)
    try:
        _, secret = await Tokens(database, SystemClock()).create(
            name=name, role=Role.ADMIN, actor="command line"
        )
        return secret
    finally:
        await database.close()


def _print_report(report: AuditReport) -> None:
    rows = ", ".join(f"{count:,} {name}" for name, count in report.counts.items())
    console.print(f"Looked at {rows}.")
    if report.clean:
        console.print(f"All {len(report.checked)} rules hold: the ledger is clean.")
        return
    for finding in report.findings:
        console.print(f"[bold red]BROKEN[/] {finding.rule}", soft_wrap=True)
        for example in finding.examples:
            console.print(
                "  " + ", ".join(f"{key}={value}" for key, value in example.items()), soft_wrap=True
            )
    console.print(f"{len(report.findings)} of {len(report.checked)} rules are broken.")
