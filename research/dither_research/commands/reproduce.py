"""`dither reproduce`: the papers' tables and figures, recomputed."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from app.cli.common import AsJson, console, notes, print_json, print_table, show, usage_error
from dither_research.catalogue import REPRODUCTIONS
from dither_research.results import Check, Outcome, Reproduction, Track, csv_text

T = TypeVar("T")

DIRECTORY = Path("reproduction")


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Table or figure; without one they are listed.", show_default=False
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them, one after the other.")] = False,
    runs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Simulated runs; by default enough for the figure."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", file_okay=False, help="Directory for the CSV and PNG files.")
    ] = DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Recompute the tables and figures of the four papers.

    Writes NAME.csv and NAME.png and shows what the paper says beside what comes out. Simulations are
    seeded: the same runs give the same files.
    """
    if name is not None and everything:
        raise usage_error("give either a name or --all")
    if name is None and not everything:
        _list(as_json)
        return
    if name is not None and name not in REPRODUCTIONS:
        raise usage_error(f"{name!r} is none of the names that `dither reproduce` lists")
    chosen = list(REPRODUCTIONS.values()) if name is None else [REPRODUCTIONS[name]]
    out.mkdir(parents=True, exist_ok=True)
    documents = []
    for reproduction in chosen:
        started = time.monotonic()
        with _progress(reproduction.name) as track:
            outcome = reproduction.reproduce(runs, track)
        files = write(reproduction, outcome, out)
        if as_json:
            documents.append(_document(reproduction, outcome, files))
        else:
            _show(reproduction, outcome, files, time.monotonic() - started)
    if as_json:
        print_json(documents)


def write(reproduction: Reproduction, outcome: Outcome, directory: Path) -> tuple[Path, Path]:
    """Write the CSV and the PNG of an outcome; returns their paths."""
    from dither_research.plots import save  # matplotlib takes longer to load than most commands run

    table = directory / f"{reproduction.name}.csv"
    table.write_text(csv_text(tuple(reproduction.columns), outcome.rows), encoding="utf-8")
    picture = directory / f"{reproduction.name}.png"
    save(reproduction.figure, outcome.rows, reproduction.title, picture)
    return table, picture


@contextmanager
def _progress(name: str) -> Iterator[Track]:
    """A progress bar on standard error, gone when done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True) as progress:

        def track(steps: Sequence[T]) -> Iterator[T]:
            return iter(progress.track(steps, description=name))

        yield track


def _list(as_json: bool) -> None:
    rows = [
        {
            "name": one.name,
            "title": one.title,
            "paper": one.paper,
            "runs": "exact" if one.runs is None else f"{one.runs} {one.run}",
        }
        for one in REPRODUCTIONS.values()
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(rows, {"name": "name", "title": "what it shows", "paper": "paper", "runs": "runs"})


def _show(reproduction: Reproduction, outcome: Outcome, files: Sequence[Path], seconds: float) -> None:
    rows = [
        {
            "quantity": check.quantity,
            "paper": show(check.paper),
            "ours": show(check.ours),
            "deviation": _deviation(check),
            "note": check.note,
        }
        for check in outcome.checks
    ]
    headings = {"quantity": "quantity", "paper": "paper", "ours": "ours", "deviation": "deviation"}
    if any(check.note for check in outcome.checks):
        headings["note"] = "note"
    print_table(rows, headings, title=f"{reproduction.name}: {reproduction.title}\n{reproduction.paper}")
    for erratum in reproduction.errata:
        kind, _, text = erratum.partition(": ")
        style = {"Not private": "bold red", "Wrong": "yellow"}.get(kind, "cyan")
        console.print(Text.assemble(("  " + kind + " in the paper: ", style), text))
    written = " and ".join(str(file) for file in files)
    console.print(f"  {written}, {len(outcome.rows)} rows, {seconds:.1f} s\n", markup=False)


def _deviation(check: Check) -> str:
    deviation = check.deviation
    if deviation is None:
        return ""
    if isinstance(check.paper, float) and abs(check.paper) >= 1e-3:
        return f"{deviation:+.3g} ({deviation / abs(check.paper):+.2%})"
    return f"{deviation:+.3g}"


def _document(reproduction: Reproduction, outcome: Outcome, files: Sequence[Path]) -> dict[str, object]:
    return {
        "name": reproduction.name,
        "title": reproduction.title,
        "paper": reproduction.paper,
        "rows": len(outcome.rows),
        "checks": [
            {
                "quantity": check.quantity,
                "paper": check.paper,
                "ours": check.ours,
                "deviation": check.deviation,
                "note": check.note,
            }
            for check in outcome.checks
        ],
        "errata": list(reproduction.errata),
        "files": [str(file) for file in files],
    }
