"""The covariance of two numbers: numpy's without noise, what it charges, coverage, and a control."""

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted
from app.core.grid import GRID_SIZE
from app.core.measures import Measures
from app.core.study import StudyDefinition, Trust
from app.services.shapes import covariances, shape_kinds
from app.services.shapes.covariances import CovariancePlan
from app.services.shapes.shape_parameters import PAIR
from app.services.shapes.shape_questions import COVARIANCE, resolve
from app.services.statistics.questions import Ask
from dither_research.histories import STUDY

MIDDLE = GRID_SIZE // 2
WIDTHS = (9000.0, 80.0)
HOUSEHOLD: StudyDefinition = replace(
    STUDY,
    measures=Measures(["income:0:9000", "age:18:98"]),
    dimension=2,
    lower=Decimal(0),
    upper=Decimal(1),
    epsilon_min=10_000,
    epsilon_max=9 * MICRO,
)
GAUSSIAN = replace(HOUSEHOLD, delta=1_000_000)


def cohort(number: int, epsilon: int, count: int, spent: int = 0) -> Cohort:
    return Cohort(
        id=number,
        trust=Trust.CENTRAL,
        epsilon=epsilon,
        carried=0,
        spent=spent,
        count=count,
        total=0,
        total_squares=0,
    )


def plan_of(people: list[Cohort], study: StudyDefinition = HOUSEHOLD, tilt: int = 0) -> CovariancePlan:
    ask = Ask(statistic=COVARIANCE, share=MICRO, tilt=tilt, parameters={PAIR: "income,age"})
    found = shape_kinds.make(study, resolve(study, ask), people)
    assert isinstance(found, CovariancePlan)
    return found


def sums_of(points: np.ndarray) -> tuple[int, int, int, int]:
    """What the database says of people at these grid points, shape (n, 2)."""
    rows = [(int(x), int(y)) for x, y in points]
    return (
        len(rows),
        sum(x for x, _ in rows),
        sum(y for _, y in rows),
        sum(((x - MIDDLE) * (y - MIDDLE)) >> 30 for x, y in rows),
    )


def drawn(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers that go together."""
    first = rng.beta(2, 4, count)
    second = np.clip(0.2 + 0.6 * first + rng.normal(0, 0.1, count), 0, 1)
    return np.round(np.stack([first, second], axis=1) * GRID_SIZE)


def true(points: np.ndarray) -> float:
    values = points / GRID_SIZE * np.array(WIDTHS)
    return float(np.cov(values.T, bias=True)[0, 1])


@pytest.mark.parametrize("study", [HOUSEHOLD, GAUSSIAN])
def test_without_noise_it_is_the_covariance_that_numpy_has(study: StudyDefinition, monkeypatch):
    monkeypatch.setattr(covariances, "draw", lambda noise, queries: [0] * queries)
    points = drawn(np.random.default_rng(1), 500)
    answer: Any = plan_of([cohort(1, MICRO, 500)], study).answer({1: sums_of(points)})
    assert answer["estimate"] == pytest.approx(true(points), rel=1e-6)
    means = (points / GRID_SIZE).mean(axis=0) * WIDTHS + np.array([0, 18])
    assert answer["means"] == pytest.approx(means.tolist())


@pytest.mark.parametrize(("study", "offer"), [(HOUSEHOLD, MICRO), (GAUSSIAN, MICRO // 10)])
def test_it_charges_the_offer_and_no_more(study: StudyDefinition, offer: int):
    for own in (offer, offer // 3, 12_347):
        plan = plan_of([cohort(1, own, 50)], study)
        (charge,) = plan.charges()
        assert 0.999 * own < charge.epsilon <= own
    capped = plan_of([cohort(1, offer, 50), cohort(2, 9 * offer, 1)], study)
    assert [one.cohort_id for one in capped.charges()] == [1, 2]


@pytest.mark.parametrize(("study", "offer"), [(HOUSEHOLD, MICRO), (GAUSSIAN, MICRO // 10)])
def test_intervals_cover_and_those_of_a_third_do_not(study: StudyDefinition, offer: int):
    """600 draws over new people each: at least 95 % within five standard errors (one in a million)."""
    rng = np.random.default_rng(5)
    plan = plan_of([cohort(1, offer, 200), cohort(2, 3 * offer, 100)], study)
    held = control = population = 0
    errors = []
    everyone = true(drawn(rng, 400_000))
    runs = 600
    for _ in range(runs):
        few, many = drawn(rng, 200), drawn(rng, 100)
        truth = true(np.concatenate([few, many]))
        answer: Any = plan.answer({1: sums_of(few), 2: sums_of(many)})
        lower, upper = answer["interval"]["lower"], answer["interval"]["upper"]
        held += lower <= truth <= upper
        control += abs(truth - (lower + upper) / 2) <= (upper - lower) / 12
        population += (
            answer["population_interval"]["lower"] <= everyone <= answer["population_interval"]["upper"]
        )
        errors.append(answer["estimate"] - truth)
    least = runs * 0.95 - 5 * math.sqrt(runs * 0.95 * 0.05)
    assert min(held, population) >= least
    assert control < least
    assert math.sqrt(np.mean(np.square(errors))) < 1.2 * plan.predicted_error


def test_people_who_cannot_pay_are_left_out_and_without_any_it_is_refused():
    plan = plan_of([cohort(1, MICRO, 50), cohort(2, MICRO, 30, spent=MICRO)], tilt=MICRO // 10)
    assert plan.crowd.left_out == 30
    assert plan.interval_width > plan_of([cohort(1, MICRO, 80)], tilt=MICRO // 10).interval_width
    with pytest.raises(BudgetExhausted):
        plan_of([cohort(1, MICRO, 50, spent=MICRO)])
