"""What `dither audit privacy` looks at of answers about several measures, and their planted bug.

Answers come out of the code that plans and takes steps (`app.services.steps`), one for each of two measures,
with the charges that it makes. One person has either end of both ranges as their values, beside companions.
What is looked at are the two noisy sums, in units of what the person moves them by: everything else is
post-processing of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.measures import Measures
from app.services.questions import Ask, resolve
from app.services.steps import Step, plan_step, take
from dither_research.histories import STUDY, cohort_of
from dither_research.label_audit import NOTHING
from dither_research.privacy_audit import Cells, Subject

MEASURES = Measures.of({"income": (Decimal(0), Decimal(9000)), "age": (Decimal(18), Decimal(98))})
HOUSEHOLD = replace(STUDY, measures=MEASURES, dimension=2, lower=Decimal(0), upper=Decimal(1))
SHARE = MICRO // 2
EPSILON = 2 * MICRO
COMPANIONS = 5
PERSON = 1
EDGES = np.linspace(-1.9, 1.9, 9)


def measure_subjects() -> Iterator[Subject]:
    """Two measures as the service answers them."""
    yield _subject("two measures of a person", paid=("income", "age"))


def measure_controls() -> Iterator[Subject]:
    """The planted bug."""
    yield _subject("two measures answered for the price of one", paid=("income",), planted=True)


def planned(values: Mapping[str, Sequence[int]], measure: str) -> tuple[list[Cohort], Step]:
    """The cohort of a person and companions as a question about one measure sees it, and the answer's step.

    Args:
        values: Of each measure the person's grid point.
        measure: Which one.
    """
    cohorts = [
        cohort_of(PERSON, EPSILON, values[measure]),
        cohort_of(2, EPSILON, [GRID_SIZE] * COMPANIONS),
    ]
    resolved = resolve(HOUSEHOLD, Ask(measure=measure, estimator="uniform", share=SHARE, tilt=0))
    definition = HOUSEHOLD.of_measure(measure)
    question = resolved.question(definition, people=sum(cohort.count for cohort in cohorts))
    step = plan_step(definition, cohorts, resolved, question, [], None)
    if step is None:
        raise ValueError("a mean of a replace_one study is answered by steps")
    return cohorts, step


def _subject(name: str, *, paid: Sequence[str], planted: bool = False) -> Subject:
    """Answers about both measures, of which a person is charged for some."""

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (_cells(value, draws) for value in (0, GRID_SIZE))
        return one, other

    at_zero = {name: [0] for name in MEASURES.ranges}
    charged = sum(
        charge.epsilon
        for measure in paid
        for charge in planned(at_zero, measure)[1].charges
        if charge.cohort_id == PERSON
    )
    return Subject(
        name=name,
        claimed=charged / MICRO,
        outputs=outputs,
        planted=planted,
        effort=0.4 if planted else 1,
    )


def _cells(value: int, draws: int) -> Cells:
    """Cells of the log-likelihood ratio of the two noisy sums together, in units of one charge."""
    ratio = np.zeros(draws)
    values = {name: [value] for name in MEASURES.ranges}
    for measure in MEASURES.ranges:
        cohorts, step = planned(values, measure)
        read = replace(step, plan=replace(step.plan, conclude=lambda _: NOTHING))
        sums = np.array([take(read, cohorts)[1].changed[0].first for _ in range(draws)], dtype=np.float64)
        (piece,) = step.pieces
        own = sums / (piece.members[0].weight * GRID_SIZE) - COMPANIONS
        ratio += np.abs(own - 1) - np.abs(own)
    found: Cells = np.digitize(ratio, EDGES)
    return found
