"""`dither audit privacy`: what mechanisms, estimators and sessions cost, bounded from below by outputs."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.cli.common import AsJson, notes, print_json, print_table

if TYPE_CHECKING:
    from dither_research.privacy_audit import Verdict


def privacy(
    draws: Annotated[
        int, typer.Option(min=10_000, help="Outputs of each subject on either neighbor.")
    ] = 20_000,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; by default one for each processor.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Audit the privacy of every mechanism, every estimator and whole sessions, as black boxes.

    Draws outputs on worst-case neighbors and bounds epsilon from below (Clopper-Pearson, each bound wrong
    with probability at most 1e-6). Exit status 1 if anything costs more than it claims, or if a planted bug
    is not caught. Passing proves nothing; it is the proofs and prices that do.
    """
    from dither_research.audited import (
        everything,  # with the estimators, longer to load than other audits take
    )

    queue = everything()
    verdicts: dict[int, Verdict] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as progress:
        task = progress.add_task("", total=len(queue))
        for place, verdict in _judged(len(queue), draws, jobs or len(os.sched_getaffinity(0))):
            verdicts[place] = verdict
            progress.update(task, advance=1, description=verdict.name)
    ordered = [verdicts[place] for place in range(len(queue))]
    as_expected = all(verdict.as_expected for verdict in ordered)
    if as_json:
        results = [{**asdict(verdict), "caught": verdict.exceeded} for verdict in ordered]
        print_json({"as_expected": as_expected, "results": results})
    else:
        _print(ordered)
    if not as_expected:
        raise typer.Exit(1)


def _judged(subjects: int, draws: int, jobs: int) -> "Iterator[tuple[int, Verdict]]":
    """Verdicts as they come. Fresh processes: a forked one would share what is open here."""
    from dither_research.audited import judge_one

    if jobs == 1:
        yield from ((place, judge_one(place, draws)) for place in range(subjects))
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        places = {pool.submit(judge_one, place, draws): place for place in range(subjects)}
        for done in as_completed(places):
            yield places[done], done.result()


def _print(verdicts: "list[Verdict]") -> None:
    rows = []
    for verdict in verdicts:
        if verdict.planted:
            word = "caught" if verdict.exceeded else "NOT CAUGHT"
            name = f"control {verdict.name}"
        else:
            word = "EXCEEDED" if verdict.exceeded else "not exceeded"
            name = verdict.name
        claim = f"{verdict.claimed:.4g}" + (f", delta {verdict.delta:.0e}" if verdict.delta else "")
        rows.append({"name": name, "claimed": claim, "audited": f"{verdict.audited:.4g}", "verdict": word})
    print_table(rows, {"name": "mechanism", "claimed": "claimed", "audited": "audited", "verdict": ""})
