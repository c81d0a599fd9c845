"""Answers about several measures: what a person pays for all of them, against all neighbors."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.measures import MAX_MEASURES, Measure, Measures
from app.services.statistics.piece_noise import step_scale
from app.services.statistics.questions import Ask, Resolved, resolve
from app.services.statistics.steps import MeanStep, plan_step
from dither_research import histories
from dither_research.histories import cohort_of
from dither_research.measure_audit import HOUSEHOLD

GRID = [place * GRID_SIZE // 2 for place in range(3)]
EPSILONS = (MICRO // 4, MICRO, 3 * MICRO)
OTHERS = [GRID_SIZE // 3, GRID_SIZE]


def asked(measure: str, estimator: str = "uniform") -> Resolved:
    return resolve(HOUSEHOLD, Ask(measure=measure, estimator=estimator, share=MICRO // 2, tilt=0))


def cohorts(own: int, place: int) -> list[Cohort]:
    """Of each epsilon two people and, in the one at this place, a person with a value of their own."""
    return [
        cohort_of(number, epsilon, [*OTHERS, own] if number == place else OTHERS)
        for number, epsilon in enumerate(EPSILONS)
    ]


def planned(measure: str, rows: list[Cohort], estimator: str) -> MeanStep:
    resolved, definition = asked(measure, estimator), HOUSEHOLD.of_measure(measure)
    question = resolved.question(definition, people=sum(one.count for one in rows))
    step = plan_step(definition, rows, resolved, question, [], None)
    assert step is not None
    return step


def loss(step: MeanStep, rows: list[Cohort], moved: list[Cohort]) -> Fraction:
    """The largest log-likelihood ratio of a step's noisy sums between two neighbors [micro-epsilon]."""
    total = Fraction(0)
    for piece in step.pieces:
        scale = Fraction(step_scale(piece.unit, piece.share))
        for name in ("total", "total_squares"):
            differences = [
                member.weight
                * (getattr(rows[member.cohort_id], name) - getattr(moved[member.cohort_id], name))
                for member in piece.members
            ]
            total += abs(sum(differences)) / scale
    return total * MICRO


@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal"])
def test_all_answers_together_cost_what_the_worst_neighbors_lose_and_at_most_a_micro_more_each(
    estimator: str,
):
    """Every replacement of both values of a person at once, on a grid of three points for each."""
    for place in range(len(EPSILONS)):
        losses = {}
        charges = 0
        for measure in HOUSEHOLD.measures.named:
            step = planned(measure, cohorts(0, place), estimator)
            charges += sum(charge.epsilon for charge in step.charges if charge.cohort_id == place)
            losses[measure] = {
                (old, new): loss(step, cohorts(old, place), cohorts(new, place))
                for old, new in product(GRID, GRID)
            }
        worst = max(
            losses["income"][before[0], after[0]] + losses["age"][before[1], after[1]]
            for before, after in product(product(GRID, GRID), product(GRID, GRID))
        )
        assert worst <= charges <= worst + 2
        single = max(losses["income"].values())
        assert charges > 1.5 * single, "the price of one would be far below"


@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal"])
def test_an_answer_about_a_measure_costs_what_the_mean_of_a_study_of_one_value_costs(estimator: str):
    rows = cohorts(0, 0)
    resolved = resolve(histories.STUDY, Ask(estimator=estimator, share=MICRO // 2, tilt=0))
    question = resolved.question(histories.STUDY, people=sum(one.count for one in rows))
    alone = plan_step(histories.STUDY, rows, resolved, question, [], None)
    assert alone is not None
    for measure in HOUSEHOLD.measures.named:
        step = planned(measure, rows, estimator)
        assert step.charges == alone.charges
        assert step.pieces == alone.pieces
        width = float(HOUSEHOLD.of_measure(measure).grid.width)
        assert step.plan.predicted_error == pytest.approx(width * alone.plan.predicted_error)


def test_questions_about_different_measures_share_nothing():
    income, age = asked("income"), asked("age")
    assert income.digest != age.digest
    assert income.by_parts.family != age.by_parts.family
    assert replace(income, share=1).by_parts.family == income.by_parts.family
    without = resolve(histories.STUDY, Ask(estimator="uniform", share=MICRO // 2, tilt=0))
    assert "measure" not in without.to_json(), "questions of before keep their digests"


def test_measures_keep_their_order_and_compare_by_their_numbers():
    named = {f"m{number}": Measure(Decimal("0.50"), Decimal(number + 1)) for number in range(MAX_MEASURES)}
    named["m2"] = Measure.of_choices(['"red"', "a:b, or [c]", "weiß"])
    measures = Measures.of(named)
    assert Measures(measures.texts).named == named
    assert [measures.place(name) for name in named] == list(range(MAX_MEASURES))
    same = Measures.of({**named, "m1": Measure(Decimal("0.5"), Decimal(2))})
    assert same == measures
    assert hash(same) == hash(measures)
    assert Measures.of(dict(reversed(named.items()))) != measures
    assert not Measures()
