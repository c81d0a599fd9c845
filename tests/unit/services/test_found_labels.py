"""Means over a found range by labels: prices against all neighbors, what the whole is read off, refusals."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from app.accounting.gaussian import effective_variance
from app.accounting.shape_prices import bins_cost
from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators.confidence import LEVEL
from app.estimators.found_range import FoundRange, narrowed
from app.estimators.interface import NoContributions, NotApplicable
from app.estimators.quantiles import error_law
from app.services.shapes import found_means
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.kinds import resolve
from app.services.statistics.label_weights import LabelWeights
from app.services.statistics.questions import Ask
from dither_research.histories import STUDY, cohort_of

PUBLIC, SECRET = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE
LABELS = ("north", "south", "east")
STUDIES = [
    replace(
        STUDY,
        attributes=Attributes.of({"region": LABELS}),
        relation=relation,
        delta=delta,
        epsilon_min=MICRO // 2,
        epsilon_max=MICRO,
    )
    for relation in (PUBLIC, SECRET)
    for delta in (0, 1_000_000)
]
WHOLE = FoundRange(low=0, high=GRID_SIZE, outside=0.0)


def cohort(
    number: int, segment: int, count: int, epsilon: int = MICRO, trust: Trust = Trust.CENTRAL
) -> Cohort:
    return cohort_of(number, epsilon, [0] * count, trust, segment=segment)


def by_region(study: StudyDefinition, people: Sequence[Cohort], **terms: Any) -> FoundPlan:
    tilt = 0 if study.relation is PUBLIC else None
    asked: dict[str, Any] = {
        "by": "region",
        "share": MICRO,
        "tilt": tilt,
        "parameters": {"range": "found"},
    } | terms
    return FoundPlan.of(study, resolve(study, Ask(**asked)), people)


def loss(moves: Sequence[int], noise: Noise) -> Fraction:
    """What the worst noise says of two neighbors whose queries are so far apart [1e-6]."""
    match noise:
        case DiscreteLaplace(scales=scales):
            pairs = zip(moves, scales, strict=True)
            return sum((abs(move) / Fraction(one) for move, one in pairs), Fraction()) * MICRO
        case DiscreteGaussian(sigmas=sigmas):
            pairs = zip(moves, sigmas, strict=True)
            return sum((move**2 / effective_variance(one) for move, one in pairs), Fraction()) * MICRO
    raise AssertionError(noise)


def moved(plan: FoundPlan, place: int, value: int | None, found: FoundRange) -> list[list[int]]:
    """What a person of a group adds: to the counts of the lowest and the highest bin, and to all sums."""
    weight = plan.bins.weighing.weights[place]
    added = [[0, 0] if value is None else [weight * (value == 0), weight * (value == GRID_SIZE)]]
    start = 0
    for one in plan.means.sums:
        size, own = len(one.crowd.groups), place - start
        totals, counts = [0] * size, [0] * size
        if value is not None and 0 <= own < size:
            totals[own] = min(max(value, found.low), found.high) - found.low
            counts[own] = found.width
        queries = () if one.plan is None else one.plan.queries
        added.append([query.value(totals, counts, [0] * size) for query in queries])
        start += size
    return added


def lost(plan: FoundPlan, one: list[list[int]], other: list[list[int]], found: FoundRange) -> Fraction:
    """Over counts and all sums, given the range: independent noises add up."""
    bins = plan.bins.noise
    sizes = bins.scales if isinstance(bins, DiscreteLaplace) else bins.sigmas
    two: Noise = DiscreteLaplace(scales=sizes[:2])
    if isinstance(bins, DiscreteGaussian):
        two = DiscreteGaussian(sigmas=sizes[:2])
    noises = [two, *(narrowed(sums.plan.noise, found.width) for sums in plan.means.sums if sums.plan)]
    moves = [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(one, other, strict=True)]
    return sum(
        (loss(move, noise) for move, noise in zip(filter(None, moves), noises, strict=True)), Fraction()
    )


@pytest.mark.parametrize("study", STUDIES, ids=lambda one: f"{one.relation} {one.noise}")
def test_a_person_of_any_label_pays_what_the_worst_neighbor_loses_and_no_more(study: StudyDefinition):
    """All pairs of values on a grid of five points, over the whole range and over two parts of it.

    Each of both parts is rounded up: two micro at most in all. The control is a price without labels' sums.
    """
    people = [cohort(1, 0, 30), cohort(2, 1, 20, MICRO // 2), cohort(3, 1, 9), cohort(4, 2, 30)]
    plan = by_region(study, people)
    grid = (0, 1, GRID_SIZE // 2, GRID_SIZE - 1, GRID_SIZE)
    ranges = (WHOLE, FoundRange(low=0, high=2**29, outside=0), FoundRange(low=2**28, high=2**30, outside=0))
    pairs = list(product(grid, grid)) if study.relation is PUBLIC else [(None, value) for value in grid]
    for place, cost in enumerate(plan.costs):
        worst = max(
            lost(plan, moved(plan, place, x, found), moved(plan, place, y, found), found)
            for found in ranges
            for x, y in pairs
        )
        assert worst <= cost <= worst + 2
        weight = plan.bins.weighing.weights[place]
        assert worst > 2 * bins_cost(weight, plan.bins.noise, study.relation), "the control"
    alone = by_region(study, [cohort(1, 0, 300)], by="")
    offers = {one.cohort_id: one.epsilon for one in plan.charges()}
    assert max(offers.values()) <= plan.most <= alone.most
    assert offers[1] == offers[3], "whatever the size of the label"


@pytest.mark.parametrize("study", STUDIES, ids=lambda one: f"{one.relation} {one.noise}")
def test_a_cohort_in_two_labels_would_be_charged_twice_and_is_refused(study: StudyDefinition):
    plan = by_region(study, [cohort(1, 0, 300), cohort(1, 1, 300)])
    with pytest.raises(InternalFault, match="charged twice"):
        plan.charges()


def sums_of(values: Sequence[np.ndarray], found: FoundRange) -> dict[int, tuple[int, int]]:
    return {
        number: (len(mine), int((np.clip(mine, found.low, found.high) - found.low).sum()))
        for number, mine in enumerate(values, start=1)
    }


def test_the_whole_is_the_mean_of_labels_by_their_people_with_their_noise(monkeypatch: pytest.MonkeyPatch):
    """Against numpy, and the law of the noise against that of the labels': sums of Laplaces by scale."""
    study = STUDIES[0]
    values = [np.arange(size) * (GRID_SIZE // 4000) for size in (3000, 1000, 500)]
    people = [cohort(number, number - 1, len(one)) for number, one in enumerate(values, start=1)]
    plan = by_region(study, people)
    monkeypatch.setattr(found_means, "draw", lambda noise, queries: (0,) * queries)
    answer: Any = plan.answer(WHOLE, sums_of(values, WHOLE))
    means = [float(one.mean()) / GRID_SIZE for one in values]
    assert [one["estimate"] for one in answer["groups"]] == pytest.approx(means, abs=1e-8)
    assert answer["estimate"] == pytest.approx(np.average(means, weights=(3000, 1000, 500)), abs=1e-8)
    # All offer the same: a label's noise is that of one sum of its people, 1 / (0.85 n_l), times n_l / n.
    law = error_law(normal_variance=0.0, laplaces=((1 / (0.85 * 4500), 3),))
    assert answer["interval"]["coverage"] == "exact"
    half = (answer["interval"]["upper"] - answer["interval"]["lower"]) / 2
    assert half == pytest.approx(law.quantile(LEVEL), rel=1e-6)
    assert answer["standard_error"] == pytest.approx(np.sqrt(law.variance), rel=1e-6)
    one: Any = by_region(study, [cohort(1, 0, 4500)])
    alone: Any = by_region(study, [cohort(1, 0, 4500)], by="")
    assert one.predicted_error == pytest.approx(alone.predicted_error)
    assert one.interval_width == pytest.approx(alone.interval_width)
    assert one.gain == pytest.approx(alone.gain)


def test_public_people_and_people_who_cannot_pay_have_their_place_in_labels():
    study = STUDIES[0]
    public = replace(cohort(2, 1, 50, 0), trust=Trust.PUBLIC)
    broke = replace(cohort(3, 2, 100), spent=MICRO)
    plan = by_region(study, [cohort(1, 0, 300), public, broke], tilt=MICRO)
    values = [np.full(size, GRID_SIZE // 2) for size in (300, 50, 100)]
    answer: Any = plan.answer(WHOLE, sums_of(values[:2], WHOLE))
    north, south, east = answer["groups"]
    assert (south["estimate"], south["standard_error"]) == (pytest.approx(0.5), 0), "public, and free"
    assert (east["estimate"], east["people"], east["people_left_out"]) == (None, 100, 100)
    assert (plan.crowd.left_out, plan.crowd.unable, plan.crowd.of_small) == (100, 100, 0)
    assert {one.cohort_id for one in plan.charges()} == {1}
    whole, label = (one["interval"]["upper"] - one["interval"]["lower"] for one in (answer, north))
    assert whole > 100 / 450 > label, "of a part of all nothing is known"
    between = LabelWeights(cells=study.attributes.cells("region"), fixed={"north": 1, "east": -1})
    with pytest.raises(NotApplicable, match="region:east"):
        by_region(study, [cohort(1, 0, 300), broke], label_weights=between)
    with pytest.raises(BudgetExhausted):
        by_region(study, [broke])
    with pytest.raises(NoContributions):
        by_region(study, [])
