"""The covariance by an attribute: prices against all neighbors, the law of the whole, coverage, a control."""

import math
from collections.abc import Mapping, Sequence
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
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian
from app.core.study import Relation, StudyDefinition, Trust
from app.services.shapes import covariances
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.covariances import PairPlan
from app.services.shapes.kinds import resolve
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.questions import COVARIANCE
from app.services.statistics.questions import PAIR, Ask
from tests.unit.services.test_covariances import (
    GAUSSIAN,
    HOUSEHOLD,
    SAME,
    SECRET,
    SECRET_GAUSSIAN,
    drawn,
    plan_of,
    sums_of,
    true,
)
from tests.unit.services.test_covariances import cohort as of_all

LABELS = ("north", "south", "east")
STUDIES = [HOUSEHOLD, GAUSSIAN, SECRET, SECRET_GAUSSIAN]
POINTS = (0, 1, GRID_SIZE // 3, GRID_SIZE // 2 - 1, GRID_SIZE // 2, GRID_SIZE - 1, GRID_SIZE)


def cohort(number: int, label: int, count: int, epsilon: float = 1, spent: float = 0) -> Cohort:
    made = of_all(number, round(epsilon * MICRO), count, round(spent * MICRO))
    return replace(made, segment=label)


def is_secret(study: StudyDefinition) -> bool:
    return study.relation is Relation.ADD_REMOVE_ONE


def by_region(
    people: Sequence[Cohort],
    study: StudyDefinition = HOUSEHOLD,
    tilt: float = 0,
    size: float | None = None,
    labels: Sequence[str] = LABELS,
) -> LabelsPlan:
    study = replace(study, attributes=Attributes.of({"region": labels}), **SAME if is_secret(study) else {})
    ask = Ask(
        statistic=COVARIANCE,
        by="region",
        share=MICRO,
        tilt=None if is_secret(study) else round(tilt * MICRO),
        expected_size=size if is_secret(study) else None,
        parameters={PAIR: "income,age"},
    )
    found = shape_kinds.make(study, resolve(study, ask), people)
    assert isinstance(found, LabelsPlan)
    return found


def plans_of(plan: LabelsPlan) -> dict[int, PairPlan]:
    """Those of labels with an answer, by their places."""
    return {place: label.plan for place, label in enumerate(plan.labels) if isinstance(label.plan, PairPlan)}


def reader_of(plan: LabelsPlan) -> Any:
    assert isinstance(plan.whole, PairPlan)
    return plan.whole.plan


def lost(plan: LabelsPlan, before: Mapping[int, Any], after: Mapping[int, Any]) -> Fraction:
    """The loss of all noisy sums together between two databases; of Gaussian noise mu^2. The draws are 0."""
    loss = Fraction()
    for one in plans_of(plan).values():
        noise = one.plan.noise
        moves = [abs(a - b) for a, b in zip(one.noisy(before)[0], one.noisy(after)[0], strict=True)]
        if isinstance(noise, DiscreteGaussian):
            rates = [1 / effective_variance(sigma) for sigma in noise.sigmas]
            loss += sum(move**2 * rate for move, rate in zip(moves, rates, strict=True))
        else:
            loss += sum(Fraction(move) / Fraction(b) for move, b in zip(moves, noise.scales, strict=True))
    return loss


@pytest.mark.parametrize("study", STUDIES)
def test_a_person_pays_what_the_worst_neighbor_moves_all_sums_by(study: StudyDefinition, monkeypatch):
    """Brute force: every pair of grid points before and after, or of a person who comes, in each label."""
    monkeypatch.setattr(covariances, "draw", lambda noise, queries: [0] * queries)
    other = 1 if is_secret(study) else 0.4
    plan = by_region([cohort(1, 0, 2), cohort(2, 1, 3, other)], study)
    charged = {one.cohort_id: one.epsilon for one in plan.charges()}
    companions = {1: sums_of(np.array([[5, GRID_SIZE]])), 2: sums_of(np.array([[GRID_SIZE, 9]] * 2))}
    people = [sums_of(np.array([numbers])) for numbers in product(POINTS, repeat=2)]
    starts = [(0, 0, 0, 0)] if is_secret(study) else people
    for own, label in ((1, 0), (2, 1)):
        weight, worst = plans_of(plan)[label].plan.weighing.weights[0], Fraction()
        for before, after in product(starts, people):
            both = [
                {**companions, own: [a + b for a, b in zip(companions[own], person, strict=True)]}
                for person in (before, after)
            ]
            worst = max(worst, lost(plan, *both))
        # A product moves by at most a step less than it is priced for.
        assert worst * MICRO <= charged[own] <= worst * MICRO + 1 + 16 * weight / GRID_SIZE
    alone = plan_of([of_all(1, MICRO, 5)], replace(study, **SAME) if is_secret(study) else study)
    assert plan.most == alone.most, "whatever the number of labels"


@pytest.mark.parametrize("study", STUDIES)
def test_without_noise_all_people_and_each_label_have_the_covariance_of_numpy(
    study: StudyDefinition, monkeypatch
):
    monkeypatch.setattr(covariances, "draw", lambda noise, queries: [0] * queries)
    rng = np.random.default_rng(1)
    north, south = drawn(rng, 300), drawn(rng, 100)
    south[:, 1] = GRID_SIZE - south[:, 1]
    plan = by_region([cohort(1, 0, 300), cohort(2, 1, 100)], study)
    answer: Any = plan.answer({1: sums_of(north), 2: sums_of(south)})
    both = np.concatenate([north, south])
    assert answer["estimate"] == pytest.approx(true(both), rel=1e-6)
    assert answer["means"] == pytest.approx(((both / GRID_SIZE).mean(axis=0) * (9000, 80) + (0, 18)).tolist())
    assert [one["where"] for one in answer["groups"]] == [{"region": label} for label in LABELS]
    for one, points in zip(answer["groups"][:2], (north, south), strict=True):
        assert one["estimate"] == pytest.approx(true(points), rel=1e-6)
    east = answer["groups"][2]
    if is_secret(study):
        assert (east["noisy_count"], "people" in east) == (0, False)
        assert east["estimate"] == 0
    else:
        assert east["people"] == 0
        assert {east[name] for name in ("estimate", "interval", "population_interval", "means")} == {None}


@pytest.mark.parametrize("study", STUDIES)
def test_the_whole_has_the_noise_of_all_labels(study: StudyDefinition):
    """Of labels of one size its standard deviation is the root of their number times that without labels."""
    terms: dict[str, Any] = SAME if is_secret(study) else {}
    for count in (1, 3):
        people = [cohort(number, number, 100) for number in range(count)]
        found = by_region(people, study, size=100 * count, labels=LABELS[:count])
        size = 100 * count if is_secret(study) else None
        reader: Any = plan_of([of_all(1, MICRO, 100 * count)], replace(study, **terms), size=size).plan
        whole = reader_of(found)
        if is_secret(study):
            assert found.predicted_error == pytest.approx(math.sqrt(count) * reader.predicted_error)
            continue
        assert math.hypot(*whole.scales) == pytest.approx(math.sqrt(count) * reader.scales[0])
        assert whole.weighing.squares == pytest.approx(reader.weighing.squares)
        assert (whole.weighing.uneven, whole.weighing.bias) == (0, 0)
        if count == 1:
            assert found.predicted_error == pytest.approx(reader.predicted_error)
            assert found.interval_width == pytest.approx(reader.interval_width)


def test_labels_who_cannot_pay_weigh_nothing_and_the_interval_of_the_whole_knows_it():
    able = by_region([cohort(1, 0, 300), cohort(2, 1, 100)], tilt=0.1)
    unable = by_region([cohort(1, 0, 300), cohort(2, 1, 100, spent=1)], tilt=0.1)
    assert list(plans_of(unable)) == [0]
    assert (unable.crowd.people, unable.crowd.left_out) == (400, 100)
    weighing = reader_of(unable).weighing
    assert weighing.bias == pytest.approx(0.1 * 100 / 400)
    assert weighing.uneven == pytest.approx(1 / 300 - 1 / 400)
    assert unable.interval_width > able.interval_width
    assert [one.cohort_id for one in unable.charges()] == [1]
    with pytest.raises(BudgetExhausted):
        by_region([cohort(1, 0, 3, spent=1)])
    with pytest.raises(InternalFault, match="charged twice"):
        by_region([cohort(1, 0, 3), cohort(1, 1, 3)]).charges()


def test_public_people_of_a_label_alone_have_an_exact_answer_and_pay_nothing():
    public = replace(cohort(2, 1, 50, 0), trust=Trust.PUBLIC)
    plan = by_region([cohort(1, 0, 100), public])
    assert [one.cohort_id for one in plan.charges()] == [1]
    points = drawn(np.random.default_rng(2), 50)
    answer: Any = plan.answer({1: sums_of(drawn(np.random.default_rng(3), 100)), 2: sums_of(points)})
    assert answer["groups"][1]["estimate"] == pytest.approx(true(points), abs=1)


@pytest.mark.parametrize("study", [SECRET, SECRET_GAUSSIAN])
def test_nothing_but_sums_says_who_has_which_label(study: StudyDefinition):
    none, some = by_region([], study), by_region([cohort(1, 0, 9), cohort(2, 1, 1)], study)
    assert list(plans_of(none)) == list(plans_of(some)) == [0, 1, 2]
    assert (none.most, none.predicted_error) == (some.most, some.predicted_error)
    assert none.noise_json() == some.noise_json()


@pytest.mark.long
@pytest.mark.parametrize("study", STUDIES)
def test_intervals_cover_and_those_of_a_fifth_do_not(study: StudyDefinition):
    """300 draws over new people: at least 95 % within five standard errors (one in a million).

    Of labels of unequal epsilons, whose number is public, and of all people; one label has other numbers.
    """
    rng = np.random.default_rng(7)
    offers = (1, 1, 1) if is_secret(study) else (1, 0.3, 2)
    sizes = (200, 150, 100)
    cohorts = [cohort(place, place, sizes[place], offers[place]) for place in range(3)]
    plan = by_region(cohorts, study, size=450)
    runs, held, populations, control = 300, np.zeros(4), np.zeros(4), np.zeros(4)

    def people(place: int, count: int) -> np.ndarray:
        points = drawn(rng, count)
        if place == 1:
            points[:, 1] = GRID_SIZE - points[:, 1]
        return points

    many = [people(place, 100 * sizes[place]) for place in range(3)]
    expected = [true(np.concatenate(many)), *map(true, many)]
    errors = []
    for _ in range(runs):
        points = [people(place, sizes[place]) for place in range(3)]
        truths = [true(np.concatenate(points)), *map(true, points)]
        answer: Any = plan.answer({place: sums_of(own) for place, own in enumerate(points)})
        for place, (one, truth) in enumerate(zip((answer, *answer["groups"]), truths, strict=True)):
            lower, upper = one["interval"]["lower"], one["interval"]["upper"]
            low, high = one["population_interval"]["lower"], one["population_interval"]["upper"]
            held[place] += lower <= truth <= upper
            populations[place] += low <= expected[place] <= high
            control[place] += abs(truth - (lower + upper) / 2) <= (upper - lower) / 10
            assert low <= lower <= one["estimate"] <= upper <= high
        errors.append(answer["estimate"] - truths[0])
    least = runs * 0.95 - 5 * math.sqrt(runs * 0.95 * 0.05)
    assert min(*held, *populations) >= least
    assert control.max() < least
    assert math.sqrt(np.mean(np.square(errors))) < 1.2 * plan.predicted_error
