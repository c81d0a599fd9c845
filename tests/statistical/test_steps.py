"""Ten steps of a tenth of each epsilon, through the code that plans and takes them, beside one answer at all.

Verdicts: the mean of (noise / scale)^2 over `CHAINS` chains of two sums is 2 for Laplace noise of that scale.
Its standard error is .2, since the fourth moment is 24, so `Z` of them allow .85 to 3.15. Noise of four times
the variance has a mean of 8 and a standard error of .8: missed at 6 of them.
"""

import math
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.piece import LastStep, Piece
from app.core.study import Relation, StudyDefinition, Trust
from app.services.statistics import whole_plans
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.steps import MeanStep, plan_step, take
from app.services.statistics.whole_plans import planned_share
from tests.statistical import Z

pytestmark = pytest.mark.statistical

CHAINS = 250
STUDY = StudyDefinition(
    slug="minutes",
    title="Minutes",
    lower=Decimal(0),
    upper=Decimal(1),
    relation=Relation.REPLACE_ONE,
    trust=frozenset(Trust),
    epsilon_min=MICRO // 100,
    epsilon_max=4 * MICRO,
    default_share=MICRO // 10,
)
COHORTS = [
    Cohort(
        id=number,
        trust=Trust.CENTRAL,
        epsilon=epsilon,
        carried=0,
        spent=0,
        count=40,
        total=40 * 3**18,
        total_squares=40 * 2**20,
    )
    for number, epsilon in enumerate((MICRO // 10, 333_000, MICRO), start=1)
]


def steps_to(*shares: int, study: StudyDefinition = STUDY, estimator: str = "adpm") -> list[MeanStep]:
    """The steps of one question to these shares, as one follows the other."""
    found: list[MeanStep] = []
    pieces: list[Piece] = []
    before: LastStep | None = None
    spent = dict.fromkeys((cohort.id for cohort in COHORTS), 0)
    for number, share in enumerate(shares):
        cohorts = [replace(cohort, spent=spent[cohort.id]) for cohort in COHORTS]
        resolved = resolve(study, Ask(estimator=estimator, share=share))
        question = resolved.question(study, people=sum(cohort.count for cohort in cohorts))
        step = plan_step(study, cohorts, resolved, question, pieces, before)
        assert step is not None
        found.append(step)
        for charge in step.charges:
            spent[charge.cohort_id] += charge.epsilon
        _, taken = take(step, cohorts)
        pieces, before = list(taken.changed), LastStep(release=UUID(int=number + 1), share=share, epoch=1)
    return found


def charged(steps: list[MeanStep]) -> dict[int, int]:
    sums = {cohort.id: 0 for cohort in COHORTS}
    for step in steps:
        for charge in step.charges:
            sums[charge.cohort_id] += charge.epsilon
    return sums


def noises(chain: list[MeanStep]) -> tuple[list[float], float]:
    """What one chain leaves in both of its sums, in scales of an answer at share 1, and the variance said."""
    state: Piece | None = None
    for step in chain:
        (planned,) = step.pieces
        if state is not None:
            planned = replace(planned, scale=state.scale, sums=state.sums)
        conclusion, taken = take(replace(step, pieces=(planned,)), COHORTS)
        (state,) = taken.changed
    assert state is not None
    exact = [
        sum(member.weight * value for member, value in zip(state.members, values, strict=True))
        for values in (
            [cohort.total for cohort in COHORTS],
            [cohort.total_squares for cohort in COHORTS],
        )
    ]
    left = [
        (noisy - value) / state.unit for noisy, value in zip((state.first, state.second), exact, strict=True)
    ]
    return left, conclusion.standard_error


def verdict(samples: list[float]) -> bool:
    """Whether noise is Laplace noise of scale 1, by its mean square."""
    squares = np.square(samples)
    return abs(float(squares.mean()) - 2) <= Z * math.sqrt(20 / squares.size)


@pytest.fixture(scope="module")
def tenths() -> list[MeanStep]:
    return steps_to(*(MICRO * tenth // 10 for tenth in range(1, 11)))


def test_ten_tenths_charge_what_one_whole_answer_does(tenths: list[MeanStep]) -> None:
    # With the same weights: those of the first step.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_plans, "planned_share", lambda _: planned_share(MICRO // 10))
        assert charged(tenths) == charged(steps_to(MICRO))
    assert len(tenths[-1].pieces) == 1


def test_ten_steps_end_with_the_noise_of_one_answer(tenths: list[MeanStep]) -> None:
    assert verdict([left for _ in range(CHAINS) for left in noises(tenths)[0]])


def test_control_the_mean_of_ten_answers_at_a_tenth_is_caught(tenths: list[MeanStep]) -> None:
    means = []
    for _ in range(CHAINS // 5):
        answers = [noises(tenths[:1])[0] for _ in range(10)]
        means += [sum(column) / 10 for column in zip(*answers, strict=True)]
    assert not verdict(means)
    assert float(np.square(means).mean()) / 2 > 5


def test_control_a_chain_that_ends_half_way_is_caught(tenths: list[MeanStep]) -> None:
    """Without the last five refinements: noise of share .5 has four times the variance."""
    assert not verdict([left for _ in range(CHAINS) for left in noises(tenths[:5])[0]])
