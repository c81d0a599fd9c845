"""`dither audit privacy`: what mechanisms, estimators and sessions cost, bounded from below by outputs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import numpy as np

# The device's own, as black boxes.
from dither._laplace import discrete_laplace
from dither._randomizers import MECHANISMS, Randomizer
from dither._response import respond
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.cli.common import notes, print_json, print_table
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE
from app.experiments.privacy_audit import DELTA, Cells, Subject, Verdict, judge, off_grid_subject, subjects
from app.experiments.privacy_controls import controls
from app.experiments.protocol_audit import Device, protocol_subjects


def audit_privacy(draws: int, as_json: bool) -> bool:
    """Judge every subject and print the verdicts.

    Args:
        draws: Outputs of each subject on either neighbor.
        as_json: For a script.

    Returns:
        Whether nothing exceeds its claim and every planted bug is caught.
    """
    queue = [*subjects(), off_grid_subject(), *report_subjects(), *protocol_subjects(device()), *controls()]
    verdicts = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=notes,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=len(queue))
        for subject in queue:
            progress.update(task, description=subject.name)
            verdicts.append(judge(subject, draws))
            progress.advance(task)
    as_expected = all(verdict.as_expected for verdict in verdicts)
    if as_json:
        results = [{**asdict(verdict), "caught": verdict.exceeded} for verdict in verdicts]
        print_json({"as_expected": as_expected, "results": results})
    else:
        _print(verdicts)
    return as_expected


def device() -> Device:
    """What a device does in a session."""
    return Device(respond=respond, report=_session_report)


def _session_report(points: Sequence[int], epsilon: int) -> list[int]:
    return [point + discrete_laplace(len(points) * GRID_SIZE * MICRO, epsilon) for point in points]


def report_subjects() -> Iterator[Subject]:
    """The randomizers that devices use, on values at the two ends of the range."""
    for mechanism in MECHANISMS:
        delta = DELTA if mechanism == "gaussian" else 0
        yield Subject(
            name=f"local {mechanism}",
            claimed=1.0,
            delta=delta / DELTA_UNIT,
            outputs=_reports(Randomizer(mechanism, delta)),
        )


def _reports(randomizer: Randomizer) -> Callable[[int], tuple[Cells, Cells]]:
    steps = np.linspace(-12, 13, 51)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (
            np.digitize([randomizer.report(point, MICRO) / GRID_SIZE for _ in range(draws)], steps).astype(
                np.int64
            )
            for point in (0, GRID_SIZE)
        )
        return first, second

    return outputs


def _print(verdicts: list[Verdict]) -> None:
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
