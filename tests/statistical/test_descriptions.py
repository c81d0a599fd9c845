"""Descriptions: every interval covers, half as wide they do not, and the price is that of all parts.

Expected verdicts fail with a probability below 1e-6 each.
"""

import math
from dataclasses import replace
from decimal import Decimal
from itertools import product

import numpy as np
import pytest

from app.accounting.costs import group_costs
from app.accounting.shape_prices import tree_cost
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Relation, StudyDefinition, Trust
from app.services.shapes.descriptions import Description, of_count, of_moments, of_quartiles
from app.services.shapes.kinds import resolve
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask
from dither_research.histories import cohort_of
from tests.support.trees import all_grown

pytestmark = pytest.mark.statistical

SIZES, RUNS = (900, 600), 120


def study_of(relation: Relation, epsilons: tuple[float, ...], delta: int) -> StudyDefinition:
    return StudyDefinition(
        slug="study",
        title="A question",
        lower=Decimal(0),
        upper=Decimal(1),
        relation=relation,
        trust=frozenset(Trust),
        epsilon_min=round(min(epsilons) * MICRO),
        epsilon_max=round(max(epsilons) * MICRO),
        default_share=MICRO,
        tilt=0,
        delta=delta,
    )


def described(
    relation: Relation, epsilons: tuple[float, ...], points: list[np.ndarray], delta: int = 0
) -> Description:
    study = study_of(relation, epsilons, delta)
    cohorts = [
        cohort_of(number, study.amount(round(epsilon * MICRO)), mine.tolist())
        for number, (mine, epsilon) in enumerate(zip(points, epsilons, strict=True), start=1)
    ]
    question = resolve(study, Ask(statistic="describe"))
    return Description.of_crowd(study, question, Crowd.of(study, cohorts, question))


@pytest.mark.parametrize(
    ("relation", "epsilons", "delta"),
    [
        *product(Relation, [(1, 1), (0.5, 3)], [0]),
        *product(Relation, [(3, 10)], [10**6]),
    ],
)
def test_every_interval_covers_and_the_quartiles_are_in_order(
    relation: Relation, epsilons: tuple[float, ...], delta: int
):
    rng = np.random.default_rng()
    hits: dict[str, int] = {}
    narrow = 0
    for _ in range(RUNS):
        values = [rng.beta(2, 5, size) for size in SIZES]
        points = [np.floor(one * GRID_SIZE + 0.5).astype(np.int64) for one in values]
        plan = described(relation, epsilons, points, delta)
        said = plan.answer({}, all_grown(plan.trees, dict(enumerate(points, start=1))))
        everyone = np.concatenate(values)
        truths = {"count": everyone.size, "mean": everyone.mean(), "sd": everyone.std()}
        for name, truth in truths.items():
            one = said[name]
            assert isinstance(one, dict)
            low, high = one["interval"]["lower"], one["interval"]["upper"]
            hits[name] = hits.get(name, 0) + (low <= truth <= high)
            if name == "mean":
                narrow += abs(truth - (low + high) / 2) <= (high - low) / 8
        estimates = []
        quartiles = said["quartiles"]
        assert isinstance(quartiles, list)
        for one in quartiles:
            name = f"quantile {one['q']}"
            truth = float(np.quantile(everyone, one["q"], method="inverted_cdf"))
            holds = one["interval"]["lower"] <= truth <= one["interval"]["upper"]
            hits[name] = hits.get(name, 0) + holds
            estimates.append(one["estimate"])
        assert estimates == sorted(estimates)
    least = RUNS * 0.95 - 5 * math.sqrt(RUNS * 0.95 * 0.05)
    assert len(hits) == 6
    assert all(count >= least for count in hits.values()), hits
    if len(set(epsilons)) == 1 and relation is Relation.REPLACE_ONE:
        assert narrow < least, "the control"


@pytest.mark.parametrize("relation", Relation)
def test_the_price_is_the_sum_over_all_parts_and_never_more_than_an_offer(relation: Relation):
    rng = np.random.default_rng()
    # Of .9 the moments get what nine ninths of a mean cost exactly.
    epsilons = (0.000007, 0.3, 0.9, 20)
    points = [rng.integers(0, GRID_SIZE, 50) for _ in epsilons]
    plan = described(relation, epsilons, points)
    of_mean = group_costs(plan.mean.queries, plan.mean.noise, relation, plan.moments.groups)
    for place, group in enumerate(plan.crowd.groups):
        weight = plan.quartiles.weighing.weights[place]
        cost = of_mean[place] + tree_cost(weight, plan.quartiles.noise, relation)
        if plan.count is not None:
            assert plan.count.costs[place] == plan.count.most == of_count(7), "the same of each person"
            cost += plan.count.most
        assert plan.costs[place] == cost
        assert cost <= min(group.epsilon, plan.most)
    assert of_moments(10**6) + of_quartiles(10**6) == 10**6
    assert plan.costs[0] > 0
    without = replace(plan, costs=tuple(of_mean))
    assert sum(one.epsilon for one in plan.charges()) > sum(one.epsilon for one in without.charges())
