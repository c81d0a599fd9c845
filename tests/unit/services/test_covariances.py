"""The covariance of two numbers: coverage, errors and a control. `test_laws` has what all statistics keep."""

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
from app.core.study import Currency, Relation, StudyDefinition, Trust
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.covariances import PairPlan
from app.services.shapes.kinds import resolve
from app.services.shapes.questions import COVARIANCE
from app.services.statistics.questions import PAIR, Ask
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
SECRET, SECRET_GAUSSIAN = (
    replace(study, relation=Relation.ADD_REMOVE_ONE) for study in (HOUSEHOLD, GAUSSIAN)
)
"""Where the number of people is secret."""


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


def plan_of(
    people: list[Cohort], study: StudyDefinition = HOUSEHOLD, tilt: int = 0, size: float | None = None
) -> PairPlan:
    own = None if study.relation is Relation.ADD_REMOVE_ONE else tilt
    ask = Ask(
        statistic=COVARIANCE, share=MICRO, tilt=own, expected_size=size, parameters={PAIR: "income,age"}
    )
    found = shape_kinds.make(study, resolve(study, ask), people)
    assert isinstance(found, PairPlan)
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


@pytest.mark.long
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
    assert 0.8 < math.sqrt(np.mean(np.square(errors))) / plan.predicted_error < 1.2


SAME: dict[str, Any] = {"epsilon_min": MICRO, "epsilon_max": MICRO}
FIVE: dict[str, Any] = {"epsilon_min": MICRO, "epsilon_max": 5 * MICRO}


@pytest.mark.long
@pytest.mark.parametrize("terms", [SAME, FIVE], ids=["one epsilon", "1 to 5"])
@pytest.mark.parametrize("study", [SECRET, SECRET_GAUSSIAN])
def test_intervals_for_a_secret_number_cover_and_those_of_a_third_do_not(study: StudyDefinition, terms):
    """600 draws as above. Of several epsilons they allow for the worst, so that a third holds them, too."""
    rng = np.random.default_rng(6)
    study = replace(study, **terms)
    most, least_offer = study.amount(study.epsilon_max), study.amount(study.epsilon_min)
    plan = plan_of([cohort(1, most, 200), cohort(2, least_offer, 100)], study)
    held = control = population = 0
    everyone = true(drawn(rng, 400_000))
    runs = 600
    for _ in range(runs):
        many, few = drawn(rng, 200), drawn(rng, 100)
        truth = true(np.concatenate([many, few]))
        answer: Any = plan.answer({1: sums_of(many), 2: sums_of(few)})
        (lower, upper), (low, high) = (
            (answer[name]["lower"], answer[name]["upper"]) for name in ("interval", "population_interval")
        )
        held += lower <= truth <= upper
        control += abs(truth - (lower + upper) / 2) <= (upper - lower) / 6
        population += low <= everyone <= high
        assert low <= lower <= answer["estimate"] <= upper <= high
        assert answer["interval"]["coverage"] == ("at_least" if terms is SAME else "worst_case")
    least = runs * 0.95 - 5 * math.sqrt(runs * 0.95 * 0.05)
    assert min(held, population) >= least
    assert terms is FIVE or control < least


@pytest.mark.long
@pytest.mark.parametrize("place", [(0.1, 0.1), (0.9, 0.1), (0.5, 0.5)])
@pytest.mark.parametrize("study", [SECRET, SECRET_GAUSSIAN])
def test_of_a_secret_number_it_errs_at_most_as_predicted(study: StudyDefinition, place):
    """All people at one point. The mean of 600 squares has a relative standard error below .1: five are half.

    Where all are at one point the squares of the noise's coefficients have a closed form.
    """
    study = replace(study, **SAME)
    plan = plan_of([cohort(1, study.least, 3000)], study, size=3000)
    sums = sums_of(np.round(np.array([place] * 3000) * GRID_SIZE))
    answers: list[Any] = [plan.answer({1: sums}) for _ in range(600)]
    ratio = np.mean([(one["estimate"] / plan.predicted_error) ** 2 for one in answers])
    x, y = place
    squares = ((1 - x) ** 2 + x**2) * ((1 - y) ** 2 + y**2)
    assert 0.5 * squares < ratio < 1.5 * squares
    assert squares <= 1
    # The count has the noise of four sums with a coefficient of 1.
    of_count = 2 * plan.predicted_error / plan.plan.unit * 3000
    noisy = np.mean([one["noisy_count"] for one in answers])
    assert abs(noisy - 3000) < 5 * of_count / math.sqrt(600)


def test_no_coefficients_of_its_noise_have_more_squares_than_one():
    """Over all means, and the covariances that these leave (Frechet's bounds)."""
    for x, y in np.random.default_rng(7).random((500, 2)):
        low, high = max(-x * y, -(1 - x) * (1 - y)), min(x * (1 - y), y * (1 - x))
        for covariance in (low, 0.0, high):
            corners = np.array([(1 - x) * (1 - y), -(1 - x) * y, -x * (1 - y), x * y])
            assert float(np.square(corners - covariance).sum()) <= 1


@pytest.mark.parametrize("study", [SECRET, SECRET_GAUSSIAN])
def test_numbers_in_the_other_order_or_turned_round_read_alike(study: StudyDefinition):
    reader: Any = plan_of([], replace(study, **FIVE)).plan
    unit = float(reader.noise.scales[0] if study.noise is Currency.LAPLACE else reader.noise.sigmas[0])
    for sums in np.random.default_rng(8).normal(60, 60, (20, 4)):
        both, first, second, neither = (round(one * unit) for one in sums)
        own = reader.read((both, first, second, neither))
        other = reader.read((both, second, first, neither))
        assert other["estimate"] == pytest.approx(own["estimate"])
        assert other["interval"] == pytest.approx(own["interval"])
        turned = reader.read((second, neither, both, first))
        assert turned["estimate"] == pytest.approx(-own["estimate"])
        for name in ("interval", "population_interval"):
            assert turned[name]["lower"] == pytest.approx(-own[name]["upper"], abs=1e-2)
            assert turned[name]["upper"] == pytest.approx(-own[name]["lower"], abs=1e-2)


@pytest.mark.parametrize("study", [SECRET, SECRET_GAUSSIAN])
def test_nothing_but_sums_says_how_many_people_there_are(study: StudyDefinition):
    none, one, many = (
        plan_of([cohort(1, study.least, count)] if count else [], study) for count in (0, 1, 9)
    )
    for other in (one, many):
        assert other.plan.noise == none.plan.noise
        assert (other.most, other.predicted_error) == (none.most, none.predicted_error)
        assert other.noise_json() == none.noise_json()
    assert none.most <= study.amount(study.epsilon_max)
    answer: Any = none.answer({})
    assert answer["interval"]["lower"] <= 0 <= answer["interval"]["upper"]


def test_public_people_weigh_the_most_and_pay_nothing():
    public = replace(cohort(2, 0, 10), trust=Trust.PUBLIC)
    for study in (SECRET, SECRET_GAUSSIAN):
        plan = plan_of([cohort(1, study.least, 10), public], study)
        assert plan.plan.weighing.weights[1] == plan.plan.weighing.cap
        assert [one.cohort_id for one in plan.charges()] == [1]


def test_people_who_cannot_pay_are_left_out_and_without_any_it_is_refused():
    plan = plan_of([cohort(1, MICRO, 50), cohort(2, MICRO, 30, spent=MICRO)], tilt=MICRO // 10)
    assert plan.crowd.left_out == 30
    assert plan.interval_width > plan_of([cohort(1, MICRO, 80)], tilt=MICRO // 10).interval_width
    with pytest.raises(BudgetExhausted):
        plan_of([cohort(1, MICRO, 50, spent=MICRO)])
