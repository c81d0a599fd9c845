"""Means by coordinate: spread, closed forms, coverage, labels. `test_laws` has what all statistics keep."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from app.accounting.gaussian import effective_variance
from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, InternalFault
from app.core.grid import GRID_SIZE, square
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, repeated
from app.core.study import Relation, StudyDefinition, Trust
from app.services.shapes import coordinates
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.coordinates import CoordinatesPlan
from app.services.shapes.kinds import resolve
from app.services.shapes.labels import LabelsPlan
from app.services.statistics.questions import Ask
from dither_research.histories import STUDY

SECRET, PUBLIC = Relation.ADD_REMOVE_ONE, Relation.REPLACE_ONE
STUDIES = [
    replace(STUDY, dimension=3, epsilon_min=10_000, epsilon_max=9 * MICRO, relation=relation, delta=delta)
    for relation in (PUBLIC, SECRET)
    for delta in (0, 1_000_000)
]
WIDTH = float(STUDY.grid.width)


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


def plan_of(study: StudyDefinition, people: list[Cohort], statistic: str = "mean") -> CoordinatesPlan:
    tilt = 0 if study.relation is PUBLIC else None
    found = shape_kinds.make(study, resolve(study, Ask(statistic=statistic, share=MICRO, tilt=tilt)), people)
    assert isinstance(found, CoordinatesPlan)
    return found


def sums_of(points: np.ndarray) -> tuple[int, ...]:
    """What the database says of people at these grid points, shape (n, d)."""
    rows = [[int(point) for point in row] for row in points]
    totals, squares = (
        [sum(column) for column in zip(*of, strict=True)]
        for of in (rows, [list(map(square, row)) for row in rows])
    )
    return len(rows), *totals, *squares


def drawn(rng: np.random.Generator, count: int) -> np.ndarray:
    """Three coordinates that go together, one near an end of the range."""
    first = rng.beta(2, 4, count)
    others = [np.clip(0.2 + 0.6 * first + rng.normal(0, 0.1, count), 0, 1), rng.beta(1, 20, count)]
    return np.round(np.stack([first, *others], axis=1) * GRID_SIZE)


def data(points: np.ndarray) -> np.ndarray:
    return float(STUDY.grid.lower) + points / GRID_SIZE * WIDTH


def losses(plan: CoordinatesPlan, moves: list[int]) -> Fraction:
    """What a neighbor loses whose queries move by this much [epsilon, or mu^2]."""
    match plan.noise:
        case DiscreteLaplace(scales=scales):
            return sum(
                (Fraction(abs(a)) / Fraction(b) for a, b in zip(moves, scales, strict=True)), Fraction()
            )
        case DiscreteGaussian(sigmas=sigmas):
            return sum(
                (a * a / effective_variance(b) for a, b in zip(moves, sigmas, strict=True)), Fraction()
            )
    raise AssertionError(plan.noise)


@pytest.mark.parametrize("study", STUDIES)
def test_without_noise_these_are_the_means_and_variances_that_numpy_has(study: StudyDefinition, monkeypatch):
    monkeypatch.setattr(coordinates, "draw", lambda noise, queries: [0] * queries)
    points = drawn(np.random.default_rng(1), 5_000)
    offer = MICRO if not study.delta else MICRO // 10
    plan = plan_of(study, [cohort(1, offer, 5_000)], "variance")
    answer: Any = plan.answer({1: sums_of(points)})
    found = answer["coordinates"]
    assert [one["estimate"] for one in found] == pytest.approx(data(points).mean(axis=0).tolist(), rel=1e-6)
    if study.relation is SECRET:
        true = data(points).var(axis=0).tolist()
        assert [one["variance"]["estimate"] for one in found] == pytest.approx(true, rel=1e-3)


@pytest.mark.parametrize("delta", [0, 1_000_000])
def test_errors_have_their_closed_form(delta: int):
    """n people of one offer: Laplace noise of scale W d / (n eps), Gaussian of W sqrt(d) / (n mu)."""
    people, offer = 400, MICRO
    for dimension in (2, 5, 64):
        study = replace(STUDIES[0], dimension=dimension, delta=delta)
        plan = plan_of(study, [cohort(1, offer, people)])
        sd = WIDTH / people * (math.sqrt(dimension) if delta else math.sqrt(2) * dimension)
        read = plan.plan.conclude([0] * len(plan.plan.queries))
        assert read.standard_error == pytest.approx(sd, rel=1e-3)
        assert plan.predicted_error == pytest.approx(sd, rel=1e-3)
        square_error = WIDTH**2 / 4 / people + sd**2
        assert plan.plan.population_error == pytest.approx(math.sqrt(square_error), rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("study", STUDIES)
def test_intervals_cover_and_those_of_a_third_do_not(study: StudyDefinition):
    """400 draws over new people each: at least 95 % within five standard errors (one in a million)."""
    rng, secret = np.random.default_rng(5), study.relation is SECRET
    offers = (MICRO, 3 * MICRO) if not study.delta else (MICRO // 10, 3 * MICRO // 10)
    if secret:
        offers = offers[:1] * 2
        study = replace(study, epsilon_min=9 * MICRO)
    plan = plan_of(study, [cohort(1, offers[0], 200), cohort(2, offers[1], 100)])
    held, together, control, population = np.zeros(3), 0, np.zeros(3), np.zeros(3)
    errors, runs, everyone = [], 400, data(drawn(rng, 400_000)).mean(axis=0)
    for _ in range(runs):
        few, many = drawn(rng, 200), drawn(rng, 100)
        truth = data(np.concatenate([few, many])).mean(axis=0)
        answer: Any = plan.answer({1: sums_of(few), 2: sums_of(many)})
        found = answer["coordinates"]
        ends = {
            name: np.array([(one[name]["lower"], one[name]["upper"]) for one in found])
            for name in ("interval", "population_interval", "simultaneous")
            if name in found[0]
        }
        lower, upper = ends["interval"].T
        held += (lower <= truth) & (truth <= upper)
        center = np.array([one["estimate"] for one in found])
        control += np.abs(truth - center) <= (upper - lower) / 6
        lower, upper = ends["population_interval"].T
        population += (lower <= everyone) & (everyone <= upper)
        if not secret:
            lower, upper = ends["simultaneous"].T
            together += bool(np.all((lower <= truth) & (truth <= upper)))
        errors.append(center - truth)
    least = runs * 0.95 - 5 * math.sqrt(runs * 0.95 * 0.05)
    assert min(*held, *population) >= least
    assert control.max() < least
    if not secret:
        assert together >= least
        assert math.sqrt(np.mean(np.square(errors))) < 1.1 * plan.predicted_error


@pytest.mark.long
def test_simultaneous_intervals_hold_at_once_and_those_of_each_coordinate_do_not():
    """Ten coordinates: at least 95 % of 400 draws within five standard errors (one in a million)."""
    plan = plan_of(replace(STUDIES[0], dimension=10), [cohort(1, MICRO, 1000)])
    points = np.round(np.random.default_rng(3).uniform(0.2, 0.8, (1000, 10)) * GRID_SIZE)
    truth, sums, runs = data(points).mean(axis=0), sums_of(points), 400
    held = dict.fromkeys(("simultaneous", "interval"), 0)
    for _ in range(runs):
        answer: Any = plan.answer({1: sums})
        for name in held:
            held[name] += all(
                one[name]["lower"] <= true <= one[name]["upper"]
                for one, true in zip(answer["coordinates"], truth, strict=True)
            )
    least = runs * 0.95 - 5 * math.sqrt(runs * 0.95 * 0.05)
    assert held["simultaneous"] >= least > held["interval"]


@pytest.mark.parametrize("study", STUDIES[:2])
def test_people_who_cannot_pay_for_each_coordinate_are_left_out(study: StudyDefinition):
    plan = plan_of(study, [cohort(1, MICRO, 50), cohort(2, MICRO, 30, spent=MICRO), cohort(3, 2, 20)])
    assert plan.crowd.left_out == 50
    assert [one.cohort_id for one in plan.charges()] == [1]
    assert [one.cohort_id for one in plan.crowd.used()] == [1]
    for people in ([cohort(1, MICRO, 50, spent=MICRO)], [cohort(1, 2, 50)]):
        with pytest.raises(BudgetExhausted):
            plan_of(study, people)


@pytest.mark.parametrize("study", STUDIES)
def test_by_labels_a_person_pays_for_the_label_and_nothing_for_all_people(study: StudyDefinition):
    """Brute force over ends and quarters of one person's values: the queries of the label alone move."""
    study = replace(study, dimension=2, attributes=Attributes.of({"region": ["north", "south"]}))
    offer = 5 * MICRO // (50 if study.delta else 1)
    people = [cohort(1, offer, 400), replace(cohort(2, offer // 3, 400), segment=1)]
    tilt = 0 if study.relation is PUBLIC else None
    plan = LabelsPlan.of(study, resolve(study, Ask(by="region", share=MICRO, tilt=tilt)), people)
    charged = {one.cohort_id: one.epsilon for one in plan.charges()}
    grid = (0, GRID_SIZE // 4, 3 * GRID_SIZE // 4, GRID_SIZE)
    for place in (0, 1):
        asked = [(plan.labels[place].plan, 0)]
        worst = Fraction()
        pairs = product(grid, repeat=2) if study.relation is PUBLIC else [(point, None) for point in grid]
        for before, after in pairs:  # Both coordinates move so: their queries are the same.
            loss = Fraction()
            for own, group in asked:
                assert isinstance(own, CoordinatesPlan)
                moves = []
                for query in own.queries:
                    (weights,) = [term[1:] for term in query.terms if term[0] == group]
                    ends = [
                        weights[0] * point + weights[1] * GRID_SIZE + weights[2] * square(point)
                        for point in (before, after)
                        if point is not None
                    ]
                    moves.append(ends[0] - (ends[1] if len(ends) > 1 else 0))
                loss += losses(own, moves)
            worst = max(worst, loss)
        assert worst * MICRO <= charged[place + 1] <= worst * MICRO + 2
        assert charged[place + 1] <= people[place].epsilon
    assert isinstance(plan.whole, CoordinatesPlan)
    assert not plan.whole.queries
    assert charged[2] > 0.9 * people[1].epsilon, "the whole price, and no half of it"


def test_too_few_people_have_the_middle_of_the_range_for_nothing():
    plan = plan_of(replace(STUDIES[0], dimension=64), [cohort(1, MICRO // 10, 3)])
    assert plan.most == 0
    assert plan.statistics == ("mean", "sum")
    answer: Any = plan.answer({1: (3, *[0] * 128)})
    one = answer["coordinates"][63]
    assert one["estimate"] == float(STUDY.grid.lower) + WIDTH / 2
    assert one["simultaneous"] == one["interval"]


def test_an_hourglass_is_not_repeated():
    with pytest.raises(InternalFault):
        repeated(Hourglass(sensitivity=2, epsilon=1, step=0), 2)
