"""`dither restore-check`: what a restored database has forgotten, and what became of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from app.cli.common import (
    AsJson,
    CommandFailed,
    DataDir,
    console,
    in_database,
    load_settings,
    notes,
    print_json,
)
from app.core.clock import SystemClock
from app.core.numbers import counted
from app.services.admin.restoring import Export, Lost, RetireOutcome, UnreadableExport, check, read_export

MEANINGS: Mapping[RetireOutcome, str] = {
    RetireOutcome.RETIRED: "retired: {study}; it gives stored answers only and frees nothing reserved there",
    RetireOutcome.RETIRED_BEFORE: "retired before: {study}",
    RetireOutcome.ARCHIVED_BEFORE: "archived before: {study}; its people may spend again what was lost",
    RetireOutcome.UNKNOWN: "unknown: {study} is not in the database, no one is charged; do not make it again",
}


NOT_MENDED = (RetireOutcome.UNKNOWN, RetireOutcome.ARCHIVED_BEFORE)
"""Outcomes after which charges stay lost."""


def restore_check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            exists=True,
            dir_okay=False,
            help="Exports of the database that was lost: from `dither audit export`, or lists over HTTP.",
        ),
    ],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare a restored database with exports, and retire the studies of which it has forgotten charges.

    Run it after a restore and before the service starts; running it again changes nothing. Takes the lines
    of `dither audit export`, JSON lists of releases as GET /v1/admin/releases and
    GET /v1/studies/STUDY/releases give them, and the CSV of GET /v1/admin/ledger/export. Exit status 1 if
    charges were lost of a study that is not in the database, or that was archived meanwhile, or where a page
    of a list was given without those that follow it.
    """
    export = Export.together([_read(file) for file in files])
    lost = in_database(load_settings(data_dir), lambda database: check(database, SystemClock(), export))
    if as_json:
        print_json({study: found.to_json() for study, found in lost.items()})
    else:
        _print(export, lost)
    if cut := export.is_cut(lost):
        notes.print(
            "A list goes on after a release that is lost, and what follows is missing, so more may be lost: "
            "give the pages that follow, too, or lines of `dither audit export`."
        )
    if cut or any(found.outcome in NOT_MENDED for found in lost.values()):
        raise typer.Exit(1)


def _read(file: Path) -> Export:
    try:
        return read_export(file.read_text(encoding="utf-8-sig"))
    except UnreadableExport as error:
        raise CommandFailed(f"{file} is no export: {error}") from None
    except UnicodeDecodeError:
        raise CommandFailed(f"{file} is no export: it is not UTF-8") from None


def _print(export: Export, lost: Mapping[str, Lost]) -> None:
    releases, sessions = counted(len(export.releases), "release"), counted(len(export.answers), "session")
    console.print(f"Compared {releases} and {sessions}.")
    for study, found in lost.items():
        for release in found.releases:
            console.print(f"lost: release {release} of {study}", markup=False)
        for session in found.sessions:
            console.print(f"lost: answers to session {session} of {study}", markup=False)
        console.print(MEANINGS[found.outcome].format(study=study), markup=False)
    if not lost:
        console.print("The database knows all of them: nothing to retire.")
