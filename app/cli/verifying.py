"""`dither verify`: whether a published file is as it was signed. Asks no service."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.common import AsJson, console, notes, print_json
from app.core.numbers import counted
from app.formats.publication import NoPublication, Verdict, read_keys, verify

CHANGED, NO_FORM = 1, 2


def verify_file(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", exists=True, dir_okay=False, help="A published file, from /p/SLUG.json."
        ),
    ],
    keys: Annotated[
        Path,
        typer.Option(
            metavar="KEYS",
            exists=True,
            dir_okay=False,
            help="The keys of the service, from /.well-known/dither-keys.json.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check without the service that a published file is as it was signed, down to the last digit.

    Exit status 0 if it holds, 1 if something was changed, 2 if the file or the keys have another form. What
    it cannot show: that the service signed no other history for others. No signature excludes that without
    a witness who has seen the signed roots.
    """
    read = keys
    try:
        known = read_keys(keys.read_bytes())
        read = file
        verdict = verify(file.read_bytes(), known)
    except NoPublication as error:
        notes.print(f"{read}: {error}", markup=False)
        raise typer.Exit(NO_FORM) from None
    if as_json:
        print_json(
            {
                "holds": verdict.fault is None,
                "fault": None if verdict.fault is None else verdict.fault.name.lower(),
                "answers": verdict.answers,
                "log": verdict.log,
                "size": verdict.size,
                "expires_at": verdict.expires_at,
            }
        )
    else:
        _print(file, verdict)
    if verdict.fault is not None:
        raise typer.Exit(CHANGED)


def _print(file: Path, verdict: Verdict) -> None:
    if verdict.fault is not None:
        console.print(f"{file} does not hold: {verdict.fault}.", markup=False)
        return
    answers = "its answer is" if verdict.answers == 1 else f"its {verdict.answers:,} answers are"
    console.print(
        f"{file} holds: it is as it was signed, and {answers} in the tree {verdict.log} of "
        f"{counted(verdict.size, 'release')}.",
        markup=False,
    )
    if verdict.expires_at is not None:
        console.print(f"It was to be read until {verdict.expires_at}.", markup=False)
    console.print("Without a witness no signature excludes that others were shown another tree.")
