"""Histograms and quantiles on random data: coverage, size of errors, and controls that must fail.

Each verdict is a binomial test at five standard deviations, a false alarm in 3.5 million.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.study import Currency, Relation, Trust
from app.estimators import ranks, shares
from app.estimators.ranks import RankPlan
from app.estimators.shares import SharesPlan
from app.estimators.weighing import Target, Weighing, weigh_public, weigh_secret
from app.mechanisms.draw import draw
from app.mechanisms.permute_and_flip import choose
from app.services.shapes.shape_plans import drawn

pytestmark = pytest.mark.statistical

LAPLACE, GAUSSIAN = Currency.LAPLACE, Currency.GAUSSIAN

OFFERS = (0.2, 1.0, 2.0)
SIZES = (300, 500, 200)
GROUPS = [
    Group(trust=Trust.CENTRAL, epsilon=round(offer * MICRO), count=size)
    for offer, size in zip(OFFERS, SIZES, strict=True)
]
PEOPLE = sum(SIZES)
TRUE = np.array([0.02, 0.4, 0.25, 0.33])
RUNS = 150


def weighing_of(relation: Relation, target: Target, currency: Currency = Currency.LAPLACE) -> Weighing:
    if relation is Relation.ADD_REMOVE_ONE:
        equal = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=size) for size in SIZES]
        return weigh_secret(equal, cap=MICRO, floor=MICRO, currency=currency)
    return weigh_public(GROUPS, PEOPLE, target, 0.0, currency=currency)


def at_least(hits: int, tries: int, level: float) -> bool:
    """Whether so many hits are what a chance of `level` or more gives."""
    return hits >= tries * level - 5 * math.sqrt(tries * level * (1 - level))


@pytest.mark.parametrize("currency", Currency)
@pytest.mark.parametrize("relation", Relation)
def test_intervals_and_bands_cover_and_narrower_ones_do_not(relation: Relation, currency: Currency):
    rng = np.random.default_rng()
    weighing = weighing_of(relation, shares.target_of(4, 0, currency), currency)
    plan = SharesPlan(bins=4, weighing=weighing)
    weights = np.array(weighing.weights)
    covered = dict.fromkeys(("dataset", "population", "jointly", "band", "sampled band", "narrow"), 0)
    for _ in range(RUNS):
        counts = np.array([rng.multinomial(size, TRUE) for size in SIZES])
        dataset = counts.sum(axis=0) / PEOPLE
        exact = (weights @ counts).tolist()
        read = plan.read(
            [value + noise for value, noise in zip(exact, draw(plan.noise, queries=4), strict=True)]
        )

        def holds(intervals, truth, factor=1.0):
            return [
                one.lower <= value <= one.upper
                if factor == 1
                else abs(value - (one.lower + one.upper) / 2) <= factor * (one.upper - one.lower) / 2
                for one, value in zip(intervals, truth, strict=True)
            ]

        covered["dataset"] += sum(holds([one.interval for one in read.bins], dataset))
        covered["population"] += sum(holds([one.population_interval for one in read.bins], TRUE))
        covered["jointly"] += all(holds([one.simultaneous for one in read.bins], dataset))
        covered["band"] += all(holds([one.interval for one in read.cumulative], np.cumsum(dataset)[:-1]))
        sampled = [one.population_interval for one in read.cumulative]
        covered["sampled band"] += all(holds(sampled, np.cumsum(TRUE)[:-1]))
        covered["narrow"] += sum(holds([one.interval for one in read.bins], dataset, 0.5))
    assert at_least(covered["dataset"], 4 * RUNS, 0.95)
    assert at_least(covered["population"], 4 * RUNS, 0.95)
    for joint in ("jointly", "band", "sampled band"):
        assert at_least(covered[joint], RUNS, 0.95)
    assert not at_least(covered["narrow"], 4 * RUNS, 0.95)


@pytest.mark.parametrize("currency", Currency)
def test_shares_err_as_predicted(currency: Currency):
    """Mean square of the error over its prediction, for equal epsilons and uniform bins: 1 up to noise."""
    bins, people, runs = 5, 400, 600
    group = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)]
    target = shares.target_of(bins, 0, currency)
    plan = SharesPlan(bins=bins, weighing=weigh_public(group, people, target, 0.0, currency=currency))
    weight = plan.weighing.weights[0]
    rng = np.random.default_rng()
    squares = []
    for _ in range(runs):
        counts = rng.multinomial(people, np.full(bins, 1 / bins)) * weight
        noisy = np.array([int(c) + z for c, z in zip(counts, draw(plan.noise, queries=bins), strict=True)])
        plane = noisy / (people * weight)
        plane += (1 - plane.sum()) / bins
        squares.append(np.mean((plane - 1 / bins) ** 2))
    ratio = np.mean(squares) / plan.predicted_error**2
    error = np.std(squares) / plan.predicted_error**2 / math.sqrt(runs)
    assert abs(ratio - 1) < 5 * error
    assert abs(ratio - 1.5) > 5 * error, "the control"


@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(9, 10)])
def test_a_median_of_ten_thousand_at_epsilon_one_has_a_mean_rank_error_of_two_thousandths(quantile: Fraction):
    """The goal, on spread and on heavy-tailed data; the control at a hundredth of the epsilon misses it."""
    rng, people, cells, runs = np.random.default_rng(), 10_000, 1000, 60
    group = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)]
    plan = RankPlan.of(quantile, cells, weigh_public(group, people, ranks.target_of(0), 0.0))
    assert None not in plan.draws
    for kind in ("spread", "heavy"):
        errors: list[float] = []
        loose: list[float] = []
        ends: list[float] = []
        for _ in range(runs):
            heavy = np.clip(rng.lognormal(-4.5, 0.8, people), 0, 1)
            values = rng.random(people) if kind == "spread" else heavy
            cell = np.ceil(values * cells).astype(int)
            counts = np.bincount(cell, minlength=cells + 1)
            for scale, kept in ((1, errors), (100, loose)):
                scores = plan.scores(plan.draws[0], (counts * MICRO).tolist())
                found = choose(scores, plan.draws[0].scale * scale)
                below, at = counts[:found].sum() / people, counts[: found + 1].sum() / people
                kept.append(max(0.0, below - float(quantile), float(quantile) - at))
                if kept is errors:
                    ends.append(abs(at - float(quantile)))
        assert np.mean(errors) <= 0.002
        assert np.mean(loose) > 0.002
        # Of the answer itself, where a step of the range is not too coarse for the values.
        assert kind == "heavy" or np.mean(ends) <= 0.002


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(
    ("quantile", "currency"),
    [(Fraction(1, 2), LAPLACE), (Fraction(4, 5), LAPLACE), (Fraction(4, 5), GAUSSIAN)],
)
def test_the_interval_of_a_quantile_covers_and_its_answer_alone_does_not(
    relation: Relation, quantile: Fraction, currency: Currency
):
    rng, cells = np.random.default_rng(), 200
    weighing = weighing_of(relation, ranks.target_of(0, currency), currency)
    plan = RankPlan.of(quantile, cells, weighing)
    assert None not in plan.draws
    hits = dict.fromkeys(("dataset", "population", "the answer's cell"), 0)
    for _ in range(RUNS):
        values = [rng.random(size) for size in SIZES]
        counts = np.array([np.bincount(np.ceil(v * cells).astype(int), minlength=cells + 1) for v in values])
        weighted = (np.array(weighing.weights) @ counts).tolist()
        _, low, high = drawn(plan, weighted)
        assert low is not None
        assert high is not None
        truth = np.quantile(np.concatenate(values), float(quantile), method="inverted_cdf")
        hits["dataset"] += bool((low - 1) / cells <= truth <= high / cells)
        hits["population"] += (low - 1) / cells <= float(quantile) <= high / cells
        plain, *_ = drawn(plan, weighted)
        assert plain is not None
        hits["the answer's cell"] += bool((plain - 1) / cells <= truth <= plain / cells)
    assert at_least(hits["dataset"], RUNS, 0.95)
    if relation is Relation.REPLACE_ONE:
        assert at_least(hits["population"], RUNS, 0.95)
    assert not at_least(hits["the answer's cell"], RUNS, 0.95)
