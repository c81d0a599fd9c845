"""How many more steps a question can take, beside taking one after the other."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted
from app.core.study import Relation, StudyDefinition, Trust
from app.services.statistics.answers_left import steps_left
from app.services.statistics.piece_ledger import priced
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.steps import MeanStep, plan_step

STUDY = StudyDefinition(
    slug="steps",
    title="Steps",
    lower=Decimal(0),
    upper=Decimal(1),
    relation=Relation.REPLACE_ONE,
    trust=frozenset({Trust.CENTRAL}),
    epsilon_min=1,
    epsilon_max=10 * MICRO,
    default_share=MICRO,
)


def one_by_one(step: MeanStep, cohorts: list[Cohort], share: int) -> int:
    """As many further steps as everyone can pay, each looked at."""
    spent = {charge.cohort_id: charge.epsilon for charge in step.charges}
    left = {cohort.id: cohort.epsilon - cohort.spent - spent.get(cohort.id, 0) for cohort in cohorts}
    times, further = 1, share
    while further < MICRO:
        further = min(MICRO, further + share)
        due = Counter[int]()
        for piece in step.pieces:
            for now, then in zip(
                piece.members, priced(replace(piece, share=further), step.noise).members, strict=True
            ):
                due[now.cohort_id] += then.charged - now.charged
        if any(cost > left[cohort] for cohort, cost in due.items()):
            break
        times += 1
    return times


@settings(max_examples=60, deadline=None)
@given(
    people=st.lists(
        st.tuples(st.integers(1, 50), st.integers(1_000, 5 * MICRO), st.integers(0, 100)),
        min_size=1,
        max_size=6,
    ),
    share=st.integers(MICRO // 60, MICRO),
)
def test_steps_are_counted_as_if_they_were_taken_one_by_one(people, share):
    cohorts = [
        Cohort(
            id=number,
            trust=Trust.CENTRAL,
            epsilon=epsilon,
            carried=0,
            spent=epsilon * percent // 100,
            count=count,
            total=0,
            total_squares=0,
        )
        for number, (count, epsilon, percent) in enumerate(people, start=1)
    ]
    resolved = resolve(STUDY, Ask(share=share))
    question = resolved.question(STUDY, people=sum(cohort.count for cohort in cohorts))
    try:
        step = plan_step(STUDY, cohorts, resolved, question, [], None)
    except BudgetExhausted:
        return
    assert step is not None
    assert steps_left(step, cohorts, share) == one_by_one(step, cohorts, share)


def test_a_person_who_has_spent_half_lets_half_of_the_steps_be_taken():
    half = Cohort(
        id=1,
        trust=Trust.CENTRAL,
        epsilon=MICRO,
        carried=0,
        spent=MICRO // 2,
        count=9,
        total=0,
        total_squares=0,
    )
    resolved = resolve(STUDY, Ask(share=MICRO // 10))
    step = plan_step(STUDY, [half], resolved, resolved.question(STUDY, people=9), [], None)
    assert step is not None
    assert steps_left(step, [half], MICRO // 10) == 5
