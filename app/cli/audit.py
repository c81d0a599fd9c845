"""`dither audit`: of the ledger, and of the privacy of what draws noise."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from typing import Annotated

import typer

from app.cli.common import AsJson, DataDir, console, in_database, load_settings, print_json
from app.cli.extensions import add_extension
from app.core.clock import SystemClock
from app.services.admin.ledger import AuditReport, Ledger
from app.services.admin.restoring import export_lines
from app.services.observer import NullObserver, Observer
from app.settings import Settings, SettingsError
from app.store.database import Database

audits = typer.Typer(invoke_without_command=True)


@audits.callback()
def audit(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Recompute the whole ledger and verify its hash chain; or audit the privacy of the mechanisms.

    Without a subcommand: reads one snapshot, also of a running service, and records what it found for the
    dashboard. Exit status 1 if anything does not match.
    """
    if context.invoked_subcommand is not None:
        return
    settings = load_settings(data_dir)
    with _followed(settings) as observer:
        report = in_database(settings, lambda database: _audit(database, observer))
    if as_json:
        print_json({"clean": report.clean, **asdict(report)})
    else:
        _print_report(report)
    if not report.clean:
        raise typer.Exit(1)


add_extension(audits, "audit privacy")


@audits.command()
def export(
    data_dir: DataDir = None,
    after: Annotated[
        int,
        typer.Option(
            min=0,
            max=(1 << 63) - 1,
            metavar="NUMBER",
            help="Only releases after this number; all sessions.",
        ),
    ] = 0,
) -> None:
    """Write what was published as lines of JSON, for `dither restore-check`; also of a running service.

    A line has a release with the most that anyone was charged, or a session with the number of its answers.
    Nothing in it is secret from an admin, and nothing is about one person. Keep it apart from the database.
    """

    async def write(database: Database) -> None:
        async for line in export_lines(database, after):
            sys.stdout.write(line)

    in_database(load_settings(data_dir), write)


@contextmanager
def _followed(settings: Settings) -> Iterator[Observer]:
    """A span for the audit where the settings want spans; nothing is loaded for them where not.

    Raises:
        SettingsError: what they take is not installed.
    """
    if not settings.telemetry:
        yield NullObserver()
        return
    from app.web.metrics import Metrics
    from app.web.tracing import OpenTelemetry, TracingNotInstalled

    try:
        tracing = OpenTelemetry(version("dither-server"))
    except TracingNotInstalled as error:
        raise SettingsError(f"DITHER_TELEMETRY: {error}") from None
    try:
        yield Metrics(version("dither-server"), tracing)
    finally:
        tracing.close()


async def _audit(database: Database, observer: Observer) -> AuditReport:
    ledger = Ledger(database, observer)
    report = await ledger.audit()
    await ledger.record(report, at=SystemClock().now(), actor="command line")
    return report


def _print_report(report: AuditReport) -> None:
    rows = ", ".join(f"{name} {count:,}" for name, count in report.counts.items())
    console.print(f"Looked at: {rows}.")
    if report.clean:
        console.print(f"All {len(report.checked)} rules hold: the ledger is clean.")
        return
    for finding in report.findings:
        console.print(f"[bold red]BROKEN[/] {finding.rule}")
        for example in finding.examples:
            console.print("  " + ", ".join(f"{key}={value}" for key, value in example.items()))
    broken = len(report.findings)
    console.print(f"{broken} of {len(report.checked)} rules {'is' if broken == 1 else 'are'} broken.")
