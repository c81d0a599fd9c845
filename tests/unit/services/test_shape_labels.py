"""Shares by an attribute: prices against all neighbors, the law of the whole, coverage with a control."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from app.accounting.measurement import Workload
from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.errors import BudgetExhausted, InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace
from app.core.study import Currency, Relation, Trust
from app.estimators.interface import NoContributions
from app.services.shapes.counts import CountPlan
from app.services.shapes.descriptions import Description
from app.services.shapes.kinds import resolve
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.plans import ShapePlan
from app.services.shapes.quantiles import QuantilePlan
from app.services.shapes.questions import COUNT, DESCRIBE, MEDIAN, SHARES
from app.services.statistics.questions import Ask
from dither_research.histories import STUDY, cohort_of
from tests.support.choices import plan_of, study_of_choices
from tests.support.trees import all_grown

CHOICES = 3
LABELS = ("north", "south", "east")
ADD_REMOVE: dict[str, Any] = {"relation": Relation.ADD_REMOVE_ONE, "epsilon_min": MICRO, "epsilon_max": MICRO}
RUNS = 400


def cohort(number: int, segment: int, count: int, epsilon: float = 1, spent: float = 0) -> Cohort:
    return Cohort(
        id=number,
        trust=Trust.CENTRAL,
        epsilon=round(epsilon * MICRO),
        carried=0,
        spent=round(spent * MICRO),
        count=count,
        total=0,
        total_squares=0,
        segment=segment,
    )


def by_region(people: Sequence[Cohort], tilt: float = 0, share: int = MICRO, **terms: Any) -> LabelsPlan:
    study = study_of_choices(CHOICES, attributes=Attributes.of({"region": LABELS}), **terms)
    own = None if "relation" in terms else round(tilt * MICRO)
    return LabelsPlan.of(
        study, resolve(study, Ask(statistic=SHARES, by="region", share=share, tilt=own)), people
    )


def of_all(plan: LabelsPlan) -> ShapePlan:
    assert isinstance(plan.whole, ShapePlan)
    return plan.whole


@pytest.mark.parametrize("relation", list(Relation))
def test_a_person_pays_what_the_worst_neighbor_moves_all_counts_by(relation: Relation):
    """Brute force: every label and choice of a person before and after; the sum of |moves| over scales."""
    terms: dict[str, Any] = ADD_REMOVE if relation is Relation.ADD_REMOVE_ONE else {}
    plan = by_region([cohort(1, 0, 3), cohort(2, 1, 3, 1 if terms else 0.4)], **terms)
    charged = {one.cohort_id: one.epsilon for one in plan.charges()}
    for place, own in ((0, 1), (1, 2)):
        label = plan.labels[place].plan
        assert isinstance(label, ShapePlan)
        weight = label.plan.weighing.weights[0]
        scale = label.plan.scale
        present = [tuple(int(one == choice) for one in range(CHOICES)) for choice in range(CHOICES)]
        if relation is Relation.ADD_REMOVE_ONE:
            pairs = [((0,) * CHOICES, after) for after in present]
        else:
            pairs = list(product(present, present))
        loss = max(
            sum(weight * abs(one - other) / scale for one, other in zip(before, after, strict=True))
            for before, after in pairs
        )
        assert loss * MICRO <= charged[own] <= loss * MICRO + 1
    alone = plan_of([(Trust.CENTRAL, 1, 6)], CHOICES, **terms)
    assert plan.most == alone.most, "whatever the number of labels"


@pytest.mark.long
@pytest.mark.parametrize("relation", list(Relation))
def test_intervals_for_all_people_cover_and_narrower_ones_do_not(relation: Relation):
    """False alarms at 5 standard deviations of 95 %: one in a million. The control is a quarter."""
    terms: dict[str, Any] = ADD_REMOVE if relation is Relation.ADD_REMOVE_ONE else {}
    epsilons = (1, 1, 1) if terms else (1, 0.3, 2)
    people = [cohort(number, number, 120, epsilons[number]) for number in range(3)]
    counts = {0: (60, 60, 0), 1: (0, 60, 60), 2: (120, 0, 0)}
    truth = np.array([180, 120, 60]) / 360
    plan = by_region(people, **terms)
    runs = 100 if terms else RUNS
    squares, covered, control, whole = [], 0, 0, np.array([1.0] * runs)
    for run in range(runs):
        answer = plan.answer(counts)
        choices: Any = answer["choices"]
        groups: Any = answer["groups"]
        assert len(groups) == 3
        whole[run] = sum(one["share"] for one in choices)
        for one, share in zip(choices, truth, strict=True):
            lower, upper = one["interval"]["lower"], one["interval"]["upper"]
            covered += lower <= share <= upper
            middle = (lower + upper) / 2
            control += abs(share - middle) <= (upper - lower) / 8
            squares.append((one["share"] - share) ** 2)
    assert whole == pytest.approx(1)
    trials = runs * CHOICES
    # Choices of one answer are dependent: at worst as one.
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / runs)
    assert covered / trials >= least
    assert control / trials < least
    assert math.sqrt(np.mean(squares)) < 1.5 * plan.predicted_error + 1e-3 or bool(terms)


def test_the_whole_of_equal_labels_is_the_shares_of_all_with_the_noise_of_all_labels():
    """Two labels of n people have noise of twice the variance of one answer over 2 n people."""
    halves = by_region([cohort(1, 0, 500), cohort(2, 1, 500)])
    alone = plan_of([(Trust.CENTRAL, 1, 1000)], CHOICES)
    own, whole = alone.plan, of_all(halves).plan
    assert whole._variance == pytest.approx(2 * own._variance)
    assert whole.weighing.squares == pytest.approx(own.weighing.squares)
    assert whole.weighing.uneven == own.weighing.uneven == 0
    one = by_region([cohort(1, 0, 1000)])
    assert one.predicted_error == pytest.approx(alone.predicted_error)
    assert one.interval_width == pytest.approx(alone.interval_width)


def test_labels_without_an_answer_weigh_nothing_and_the_interval_of_the_whole_knows_it():
    able = by_region([cohort(1, 0, 300), cohort(2, 1, 100)], tilt=0.1)
    unable = by_region([cohort(1, 0, 300), cohort(2, 1, 100, spent=1)], tilt=0.1)
    assert [one.plan is None for one in unable.labels] == [False, True, True]
    assert unable.crowd.people == 400
    assert unable.crowd.left_out == 100
    weighing = of_all(unable).plan.weighing
    assert weighing.bias == pytest.approx(0.1 * 100 / 400)
    assert weighing.uneven == pytest.approx(1 / 300 - 1 / 400)
    assert unable.interval_width > able.interval_width
    assert [one.cohort_id for one in unable.charges()] == [1]


def median_by_region(people: Sequence[Cohort], **terms: Any) -> LabelsPlan:
    own: dict[str, Any] = {
        "attributes": Attributes.of({"region": LABELS}),
        "epsilon_min": 10_000,
        "epsilon_max": 9 * MICRO,
    }
    study = replace(STUDY, **own | terms)
    asked = Ask(statistic=MEDIAN, by="region", share=MICRO)
    return LabelsPlan.of(study, resolve(study, asked), people)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("currency", list(Currency))
def test_a_person_pays_for_the_trees_of_the_label_and_of_all_people(relation: Relation, currency: Currency):
    """Brute force: every cell of a person before and after, in each level of both trees."""
    terms: dict[str, Any] = ADD_REMOVE if relation is Relation.ADD_REMOVE_ONE else {}
    if currency is Currency.GAUSSIAN:
        terms = {**terms, "delta": DELTA_UNIT // 10**6}
    plan = median_by_region([cohort(1, 0, 2), cohort(2, 1, 2, 1 if terms else 0.4)], **terms)
    charged = {one.cohort_id: one.epsilon for one in plan.charges()}
    assert len(charged) == 2
    cells = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    before_it = [(0, 0, 0)] if relation is Relation.ADD_REMOVE_ONE else cells
    for label, cohort_id in ((0, 1), (1, 2)):
        worst: Any = 0
        trees = [tree for tree in plan.trees if cohort_id in tree.sizes]
        assert len(trees) == 2, "the label's, and that of all people"
        for tree in trees:
            noise = tree.plan.noise
            sizes = noise.scales if isinstance(noise, DiscreteLaplace) else noise.sigmas
            mine = tree.plan.weighing.weights[label if len(tree.plan.weighing.weights) > 1 else 0]
            for size in sizes:
                # A level has cells of its own: any before and any after.
                worst += max(
                    sum(
                        (mine * move) ** 2 / (Fraction(size) ** 2 - 9)
                        if currency is Currency.GAUSSIAN
                        else mine * abs(move) / Fraction(size)
                        for move in (y - x for x, y in zip(before, after, strict=True))
                    )
                    for before, after in product(before_it, cells)
                )
        assert worst * MICRO <= charged[cohort_id] <= worst * MICRO + 2, "one part each is rounded up"
    offer = max(cohort.epsilon for cohort in plan.crowd.groups)
    assert max(charged.values()) <= plan.most <= offer


@pytest.mark.parametrize("relation", list(Relation))
def test_intervals_of_a_median_by_labels_cover_and_those_of_another_label_do_not(relation: Relation):
    """False alarms at 5 standard deviations of 95 %: one in a million. The control is the other label."""
    terms: dict[str, Any] = ADD_REMOVE if relation is Relation.ADD_REMOVE_ONE else {}
    plan = median_by_region([cohort(1, 0, 300), cohort(2, 1, 300)], **terms)
    points = {1: np.full(300, GRID_SIZE // 4), 2: np.full(300, 3 * GRID_SIZE // 4)}
    assert isinstance(plan.whole, QuantilePlan)
    low, high = (float(plan.whole.grid.to_unit(Fraction(cell, 4))) for cell in (1, 3))
    covered, control, runs = [0, 0, 0], 0, 200
    for _ in range(runs):
        answer: Any = plan.answer({}, all_grown(plan.trees, points))
        first, second, third = answer["groups"]
        assert (third["estimate"] is None) is not bool(terms)
        spans = [(first, low), (second, high), (answer, low)]
        covered = [
            sum_ + (one["interval"]["lower"] <= truth <= one["interval"]["upper"])
            for sum_, (one, truth) in zip(covered, spans, strict=True)
        ]
        control += first["interval"]["lower"] <= high <= first["interval"]["upper"]
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / runs)
    assert min(covered) / runs >= least
    assert control / runs < least


def test_without_people_who_can_pay_it_is_refused_and_a_cohort_has_one_label():
    for people, refusal in (([cohort(1, 0, 3, spent=1)], BudgetExhausted), ([], NoContributions)):
        with pytest.raises(refusal):
            by_region(people)
    with pytest.raises(InternalFault, match="charged twice"):
        by_region([cohort(1, 0, 3), cohort(1, 1, 3)]).charges()
    secret = by_region([], **ADD_REMOVE)
    assert all(one.plan is not None for one in secret.labels)
    assert secret.most == by_region([cohort(1, 0, 900)], **ADD_REMOVE).most
    assert secret.noise_json() == by_region([cohort(1, 0, 900)], **ADD_REMOVE).noise_json()


def counted_by_region(people: Sequence[Cohort], **terms: Any) -> LabelsPlan:
    study = replace(
        STUDY, attributes=Attributes.of({"region": LABELS}), epsilon_min=MICRO, epsilon_max=9 * MICRO, **terms
    )
    return LabelsPlan.of(study, resolve(study, Ask(statistic=COUNT, by="region", share=MICRO)), people)


def test_a_person_who_comes_pays_for_the_count_of_the_label_alone():
    """Brute force: a person more in either label moves one sum of weights, for any offer."""
    people = [cohort(1, 0, 2), cohort(2, 1, 3, 9)]
    plan = counted_by_region(people, relation=Relation.ADD_REMOVE_ONE)
    charged = {one.cohort_id: one.epsilon for one in plan.charges()}
    assert len(plan.measured()) == len(LABELS), "the whole measures nothing"
    for place, own in ((0, 1), (1, 2)):
        one = plan.labels[place].plan
        assert isinstance(one, CountPlan)
        assert one.weighing is not None
        assert isinstance(one.noise, DiscreteLaplace)
        assert set(one.weighing.weights) == {MICRO}, "all of the least offer"
        loss = Fraction(MICRO * GRID_SIZE) / Fraction(one.noise.scales[0])
        assert loss * MICRO <= charged[own] <= loss * MICRO + 1
        assert charged[own] <= MICRO == plan.most


@pytest.mark.parametrize("delta", [0, DELTA_UNIT // 10**6])
def test_a_secret_number_is_the_sum_of_those_of_labels_and_holds_with_their_noise(delta: int):
    """False alarms at 5 standard deviations of 95 %: one in a million. The control has one label's noise."""
    people = [cohort(number, number, 900) for number in range(3)]
    plan = counted_by_region(people, relation=Relation.ADD_REMOVE_ONE, delta=delta)
    one = plan.labels[0].plan
    assert one is not None
    assert plan.predicted_error == pytest.approx(math.sqrt(3) * one.predicted_error)
    covered = control = 0
    for _ in range(RUNS):
        answer: Any = plan.answer({})
        assert answer["estimate"] == pytest.approx(sum(label["estimate"] for label in answer["groups"]))
        covered += answer["interval"]["lower"] <= 2700 <= answer["interval"]["upper"]
        control += abs(answer["estimate"] - 2700) <= (one.half_width or 0)
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / RUNS)
    assert covered / RUNS >= least
    assert control / RUNS < least


def described_by_region(people: Sequence[Cohort], **terms: Any) -> LabelsPlan:
    study = replace(STUDY, attributes=Attributes.of({"region": LABELS}), **terms)
    return LabelsPlan.of(study, resolve(study, Ask(statistic=DESCRIBE, by="region", share=MICRO)), people)


@pytest.mark.parametrize("relation", list(Relation))
def test_a_description_by_label_pays_for_both_trees_and_once_for_all_sums(relation: Relation):
    terms: dict[str, Any] = ADD_REMOVE if relation is Relation.ADD_REMOVE_ONE else {}
    study = replace(STUDY, attributes=Attributes.of({"region": LABELS}), **terms)
    people = [cohort(1, 0, 40), cohort(2, 1, 30, 1 if terms else 0.4)]
    question = resolve(study, Ask(statistic=DESCRIBE, by="region", share=MICRO))
    plan = LabelsPlan.of(study, question, people)
    charged = {one.cohort_id: one.epsilon for one in plan.charges()}
    for place, own in ((0, 1), (1, 2)):
        label = plan.labels[place].plan
        assert isinstance(label, Description)
        assert charged[own] == label.costs[0] + plan.whole.costs[place] <= people[place].epsilon
        alone = replace(question, by="", where={"region": LABELS[place]})
        whole = Description.of_crowd(study, alone, label.crowd)
        assert label.mean.queries == whole.mean.queries, "sums take what they take without labels"
        trees = [tree.plan.weighing.weights[0] for tree in (*label.trees, *whole.trees)]
        assert trees[0] <= trees[1] * 2 / 3 + 1, "two thirds of what trees take"
        assert charged[own] == pytest.approx(whole.costs[0], rel=1e-4)
    assert [part.workload for part in plan.whole.measured()] == [Workload.TREE], "of the whole the tree alone"


def loaded(number: int, values: np.ndarray) -> Cohort:
    return cohort_of(number, MICRO, [int(value) for value in values], segment=number)


@pytest.mark.long
@pytest.mark.parametrize("relation", list(Relation))
def test_what_a_description_says_of_all_people_off_labels_holds(relation: Relation):
    """False alarms at 5 standard deviations of 95 %: one in a million. The control is a label's interval."""
    rng = np.random.default_rng(1)
    points = {number: rng.integers(0, (number + 1) * GRID_SIZE // 3, 400) for number in range(3)}
    terms: dict[str, Any] = ADD_REMOVE if relation is Relation.ADD_REMOVE_ONE else {"tilt": 0}
    plan = described_by_region([loaded(number, mine) for number, mine in points.items()], **terms)
    everyone = np.concatenate(list(points.values())) / GRID_SIZE
    grid = STUDY.grid
    unit = float(grid.width)
    truths = {"mean": float(grid.lower) + unit * everyone.mean(), "sd": unit * everyone.std(), "count": 1200}
    runs, hits, control = 200, dict.fromkeys(truths, 0), 0
    for _ in range(runs):
        answer: Any = plan.answer({}, all_grown(plan.trees, points))
        groups = answer["groups"]
        for name, truth in truths.items():
            one = answer[name]
            hits[name] += (
                one["interval"]["lower"] <= truth + 1e-9 and truth - 1e-9 <= one["interval"]["upper"]
            )
        own = groups[0]["mean"]["interval"]
        control += own["lower"] <= truths["mean"] <= own["upper"]
        if not terms.get("relation"):
            middle = sum(label["mean"]["estimate"] for label in groups) / 3
            assert answer["mean"]["estimate"] == pytest.approx(middle, abs=1e-6 * unit)
    least = runs * 0.95 - 5 * math.sqrt(runs * 0.95 * 0.05)
    assert min(hits.values()) >= least, hits
    assert control < least
    if not terms.get("relation"):
        labels = [one.plan for one in plan.labels if one.plan is not None]
        alike = labels[0].predicted_error / math.sqrt(3)
        assert plan.predicted_error == pytest.approx(alike, rel=1e-6), "independent noise of three sums"


def test_a_label_too_small_for_a_mean_has_quartiles_and_no_part_in_the_mean_of_all():
    people = [loaded(0, np.full(900, GRID_SIZE // 4)), loaded(1, np.full(1, GRID_SIZE))]
    plan = described_by_region(people, tilt=0)
    small = plan.labels[1].plan
    assert isinstance(small, Description)
    assert not small.tells_mean
    points = {0: np.full(900, GRID_SIZE // 4), 1: np.full(1, GRID_SIZE)}
    answer: Any = plan.answer({}, all_grown(plan.trees, points))
    grid = STUDY.grid
    quarter = float(grid.to_unit(Fraction(1, 4)))
    assert abs(answer["mean"]["estimate"] - quarter) < 0.1 * float(grid.width)
    assert answer["groups"][1]["mean"]["estimate"] == pytest.approx(float(grid.to_unit(Fraction(1, 2))))
    nobody = described_by_region([loaded(1, np.full(1, GRID_SIZE))], tilt=0)
    alone: Any = nobody.answer({}, all_grown(nobody.trees, {1: points[1]}))
    assert alone["mean"]["estimate"] == pytest.approx(float(grid.to_unit(Fraction(1, 2))))
