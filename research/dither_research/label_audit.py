"""What `dither audit privacy` looks at of answers by labels, and their planted bug.

Answers come out of the code that plans and takes them (`app.services.by_label`), with the charges that it
makes. One person in a label has either end of the range as their value, beside companions in this label and
in another one. What is looked at are the noisy sums of both labels, in units of what the person moves the
first of them by: everything else is post-processing of them.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import StudyDefinition
from app.estimators.interface import Conclusion, Interval
from app.services.by_label import plan_by
from app.services.questions import Ask, resolve
from app.services.steps import Step, take
from dither_research.histories import STUDY, cohort_of
from dither_research.privacy_audit import Cells, Subject

BY_REGION: StudyDefinition = replace(STUDY, attributes=Attributes.of({"region": ["north", "south"]}))
SHARE = MICRO // 2
EPSILON = 4 * MICRO
COMPANIONS = 5
PERSON = 1
EDGES = np.linspace(-1, 1, 5)
ANYWHERE = Interval(level=1.0, lower=0.0, upper=1.0, coverage="worst_case")
NOTHING = Conclusion(estimate=0.0, standard_error=0.0, interval=ANYWHERE, population_interval=ANYWHERE)


def label_subjects() -> Iterator[Subject]:
    """Answers by labels as the service makes them."""
    yield _subject("a mean by region, in one region", part=1.0)


def label_controls() -> Iterator[Subject]:
    """The planted bug."""
    yield _subject("a label charged only for half of its move", part=0.5, planted=True)


def _subject(name: str, *, part: float, planted: bool = False) -> Subject:
    """An answer by labels, of which a person is charged a part of what it costs."""

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (_cells(value, draws) for value in (0, GRID_SIZE))
        return one, other

    charged = {charge.cohort_id: charge.epsilon for charge in _planned(0)[1].charges}[PERSON]
    return Subject(
        name=name,
        claimed=part * charged / MICRO,
        outputs=outputs,
        planted=planted,
        effort=0.4 if planted else 1,
    )


def _planned(value: int) -> tuple[list[Cohort], Step]:
    cohorts = [
        cohort_of(PERSON, EPSILON, [value]),
        cohort_of(2, EPSILON, [GRID_SIZE] * COMPANIONS),
        cohort_of(3, EPSILON, [GRID_SIZE] * COMPANIONS, segment=1),
    ]
    resolved = resolve(BY_REGION, Ask(by="region", estimator="uniform", share=SHARE, tilt=0))
    question = resolved.question(BY_REGION, people=sum(cohort.count for cohort in cohorts))
    return cohorts, plan_by(BY_REGION, cohorts, resolved, question, [], None)


def _cells(value: int, draws: int) -> Cells:
    """Where the noisy sum of the person's label lies, and whether that of the other is above its mean."""
    cohorts, step = _planned(value)
    read = replace(step, parts=(), plan=replace(step.plan, conclude=lambda _: NOTHING))
    sums = np.empty((draws, 2))
    for draw in range(draws):
        sums[draw] = [piece.first for piece in take(read, cohorts)[1].changed]
    weights = np.array([piece.members[0].weight for piece in step.pieces], dtype=np.float64)
    own, other = (sums / (weights * GRID_SIZE) - COMPANIONS).T
    found: Cells = np.digitize(np.abs(own - 1) - np.abs(own), EDGES) * 2 + (other > 0)
    return found
