"""Everything that `dither audit privacy` judges, in the order of its table."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

# The device's own, as black boxes.
from dither.device.exact import discrete_laplace
from dither.device.randomizers import LocalMechanism, Randomizer, randomizer
from dither.device.response import respond

from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE
from dither_research.choice_audit import choice_controls, choice_subjects
from dither_research.intake_audit import intake_subjects, without_range_check
from dither_research.label_audit import label_controls, label_subjects
from dither_research.label_step_audit import label_step_controls, label_step_subjects
from dither_research.measure_audit import measure_controls, measure_subjects
from dither_research.pair_audit import pair_controls, pair_subjects
from dither_research.privacy_audit import DELTA, Cells, Subject, Verdict, judge, off_grid_subject, subjects
from dither_research.privacy_controls import controls
from dither_research.protocol_audit import Device, protocol_subjects
from dither_research.shape_audit import shape_controls, shape_subjects


@cache
def everything() -> tuple[Subject, ...]:
    """Every subject, the planted bugs last."""
    return (
        *subjects(),
        *shape_subjects(),
        *choice_subjects(),
        *label_subjects(),
        *label_step_subjects(),
        *measure_subjects(),
        *pair_subjects(),
        off_grid_subject(),
        *report_subjects(),
        *intake_subjects(),
        *protocol_subjects(device()),
        *controls(),
        *shape_controls(),
        *choice_controls(),
        *label_controls(),
        *label_step_controls(),
        *measure_controls(),
        *pair_controls(),
        *intake_subjects(without_range_check, planted=True),
    )


def judge_one(place: int, draws: int) -> Verdict:
    """Audit the subject at a place of `everything`; a process of its own can be given no more than that."""
    return judge(everything()[place], draws)


def device() -> Device:
    """What a device does in a session."""
    return Device(respond=respond, report=_session_report)


def _session_report(points: Sequence[int], epsilon: int) -> list[int]:
    return [point + discrete_laplace(len(points) * GRID_SIZE * MICRO, epsilon) for point in points]


def report_subjects() -> Iterator[Subject]:
    """The randomizers that devices use, on values at the two ends of the range."""
    for mechanism in LocalMechanism:
        device = randomizer(mechanism, DELTA)
        yield Subject(
            name=f"local {mechanism}",
            claimed=1.0,
            delta=device.delta / DELTA_UNIT,
            outputs=_reports(device),
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
