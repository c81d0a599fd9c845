"""A year of daily releases over a million people with labels: all there from the first day, and growing."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

from benchmarks.batches import send
from benchmarks.points import PIECE, Size
from benchmarks.releases import release
from benchmarks.report import Ratio
from benchmarks.scale import contributions
from benchmarks.services import Caller, Installation, installation
from benchmarks.studies import definition

PEOPLE, QUICK_PEOPLE = 1_000_000, 10_000
DAYS, QUICK_DAYS = 365, 12
LABELS = 50
EPSILONS = 5
COMPARED = 5
"""First and last days that are compared."""
GOAL = 3.0
GROWING_GOAL = 10.0
"""Of fresh answers while people come, which charge every cohort there is."""


def run(*, quick: bool) -> list[Ratio]:
    """Both studies, the last days beside the first ones; the audit must find nothing."""
    people, days = (QUICK_PEOPLE, QUICK_DAYS) if quick else (PEOPLE, DAYS)
    size = Size(people=people, epsilons=EPSILONS, labels=LABELS)
    with installation() as here:
        here.create_study(definition("still", epsilon_max=Decimal(1), labels=LABELS))
        here.create_study(definition("growing", epsilon_max=Decimal(1), labels=LABELS))
        with here.serve(workers=1) as port:
            still = list(_still(port, here, size, days))
            growing = list(_growing(port, here, size, days))
        if findings := here.use(lambda services: services.ledger.audit()).findings:
            raise RuntimeError(f"the audit found {findings}")
    note = f"days: {people:,} people, {LABELS} labels, {EPSILONS} epsilons; the last days beside the first"
    return [
        Ratio(
            section="days",
            name=name,
            unit="s",
            subject=took[-COMPARED:],
            baseline=took[:COMPARED],
            goal=goal,
            better="lower",
            note=note,
        )
        for name, took, goal in (
            (f"{days} daily releases by label, the same people", still, GOAL),
            (f"{days} daily means, people come every day", growing, GROWING_GOAL),
        )
    ]


def _still(port: int, here: Installation, size: Size, days: int) -> Iterator[float]:
    """Seconds of each day's release by label; all people are there. The first day's fold is not counted."""
    for first in range(0, size.people, PIECE):
        body = contributions(size, first, min(first + PIECE, size.people))
        send(port, here, "still", "ndjson", body)
    release(port, here, "still", "optimal")
    with Caller(port) as caller:
        for day in range(1, days + 1):
            question = {"statistic": "mean", "by": "group", "share": day / 1_000, "allow_worse": True}
            with _clock("still", day) as took:
                caller.call("POST", "/v1/studies/still/releases", here.analyse, question)
            yield took[0]


def _growing(port: int, here: Installation, size: Size, days: int) -> Iterator[float]:
    """Seconds of each day's fold and mean, after a part of the people have come."""
    for day in range(1, days + 1):
        first, last = size.people * (day - 1) // days, size.people * day // days
        send(port, here, "growing", "ndjson", contributions(size, first, last))
        with _clock("growing", day) as took:
            release(port, here, "growing", "optimal")
        yield took[0]


@contextmanager
def _clock(study: str, day: int) -> Iterator[list[float]]:
    took: list[float] = []
    started = time.perf_counter()
    yield took
    took.append(time.perf_counter() - started)
    if day in {1, 3, 10} or day % 30 == 0:
        print(f"{time.strftime('%H:%M:%S')} {study}, day {day}: {took[0]:.3f} s", file=sys.stderr, flush=True)
