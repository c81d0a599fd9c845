"""The table in estimators.md that shows what known shares of labels mend, made by the service's own plans.

All noise is left out, so what an answer is off by is what its weights move it by. Its interval is that of the
answer with noise.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from decimal import Decimal

from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.piece import Piece
from app.services.statistics.kept_ends import written
from app.services.statistics.piece_noise import LaplaceNoise
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.reading import Reading
from app.services.statistics.readings import read_off
from app.services.statistics.steps import plan_step, take
from dither_research.histories import STUDY, cohort_of

ASKED = replace(STUDY, upper=Decimal(100), attributes=Attributes.of({"age": ["-39", "40-"]}))
PEOPLE = 500
"""With each label and epsilon."""

LABELS = (((2, 3, 4), 30), ((Decimal("0.02"), Decimal("0.05"), Decimal("0.1")), 60))
"""For each label the epsilons of its people, and their mean."""

BEGIN, END = "<!-- table: known shares -->\n", "<!-- end of table -->\n"


class Silent(LaplaceNoise):
    """No noise, planned for as if there were some."""

    def drawn(self, piece: Piece, had: int, exact: tuple[int, int]) -> Piece:
        """The exact sums."""
        return replace(piece, sums=tuple(exact))


def _cohorts() -> Iterator[Cohort]:
    number = 0
    for segment, (epsilons, mean) in enumerate(LABELS):
        # Half of the people lie 20 below their mean, and half 20 above.
        values = [(mean + move) * GRID_SIZE // 100 for move in (-20, 20)] * (PEOPLE // 2)
        for epsilon in epsilons:
            number += 1
            yield cohort_of(number, int(epsilon * MICRO), values, segment=segment)


def _answer(ask: Ask) -> tuple[float, float, float]:
    """An answer and the ends of its interval."""
    reading = Reading.of(ASKED, ask)
    cohorts = list(_cohorts())
    resolved = resolve(ASKED, reading.ask)
    question = resolved.question(ASKED, people=sum(cohort.count for cohort in cohorts))
    step = plan_step(ASKED, cohorts, resolved, question, [], None)
    assert step is not None
    found, _ = take(replace(step, noise=Silent()), cohorts)
    body, _ = written({**asdict(found), **found.details})
    shown = json.loads(read_off(body, reading, ASKED))
    return shown["estimate"], shown["interval"]["lower"], shown["interval"]["upper"]


def table() -> str:
    """The table, as Markdown."""
    truth = sum(mean for _, mean in LABELS) / len(LABELS)
    share = {"estimator": "adpm", "share": 3 * MICRO // 10}
    known = "age:-39=.5,40-=.5"
    rows = [
        ("the mean at tilt 0", Ask(**share, tilt=0)),
        ("the mean at tilt 0.1", Ask(**share, tilt=MICRO // 10)),
        ("the mean at tilt 0.3", Ask(**share, tilt=3 * MICRO // 10)),
        (f"`standardize={known}` at tilt 0", Ask(**share, tilt=0, standardize=known)),
    ]
    lines = [
        f"| asked | answer without noise | 95 % interval | holds the mean, {truth:g} |",
        "|---|---|---|---|",
    ]
    for name, ask in rows:
        estimate, lower, upper = _answer(ask)
        holds = "yes" if lower <= truth <= upper else "no"
        lines.append(f"| {name} | {estimate:.1f} | {lower:.1f} to {upper:.1f} | {holds} |")
    return "\n".join(lines) + "\n"


def within(page: str) -> str:
    """A page with the table renewed."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + table() + "\n" + END + after
