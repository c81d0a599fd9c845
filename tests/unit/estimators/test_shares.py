"""Shares by bin: weights against a solver, projections against their definitions, intervals and bands."""

import itertools
import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import cvxpy
import numpy as np
import pytest

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.study import Currency, Relation, Trust
from app.estimators import shares, tree_levels
from app.estimators.bin_shares import on_simplex, rising_band
from app.estimators.interface import NotApplicable
from app.estimators.quantiles import error_law
from app.estimators.shares import SharesPlan
from app.estimators.weighing import Weighing, weigh_public, weigh_secret


def central(*offers: tuple[float, int]) -> list[Group]:
    return [
        Group(trust=Trust.CENTRAL, epsilon=round(epsilon * MICRO), count=count) for epsilon, count in offers
    ]


CROWD = central((0.05, 40), (0.3, 60), (2, 30), (9, 20))


@pytest.mark.parametrize("tilt", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("kind", [2, 5, 40, "rank", "gaussian"])
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_weights_reach_the_smallest_worst_case_error_that_a_solver_finds(
    share: float, kind: int | str, tilt: float
):
    """Under Gaussian noise an offer of mu^2 weighs sqrt(2) mu, and a bin has the variance (2 eta)^2.

    At a share of what is offered noise has the scale over it, Gaussian noise the variance over it.
    """
    counts = np.array([group.count for group in CROWD], dtype=float)
    offers = np.array([group.epsilon for group in CROWD]) / MICRO
    currency = Currency.LAPLACE
    people = int(counts.sum())
    if kind == "gaussian":
        currency, offers = Currency.GAUSSIAN, np.sqrt(2 * offers)
        target = shares.target_of(5, tilt, currency)
        spread, noise, bias = 1 - 1 / 5, 4.0 * 4, 2 * tilt**2
    elif isinstance(kind, str):
        # The rank of the middle of six cells, for nine sixteenths of the price.
        target, spread, noise, bias = tree_levels.target_of(tilt), 0.25, 8 * (16 / 9) ** 2, tilt**2
    else:
        target = shares.target_of(kind, tilt)
        # Of two bins one is counted, at half of the price that two counts have.
        spread, noise, bias = 1 - 1 / kind, (4.0 if kind == 2 else 8.0) * (kind - 1), 2 * tilt**2
    target = target.louder(currency.louder(round(share * MICRO)))
    noise /= share if kind == "gaussian" else share**2
    weighing = weigh_public(CROWD, people, target, tilt, currency=currency)
    weights = np.array(weighing.weights) / weighing.mass
    eta = float(np.max(weights / offers))

    cp: Any = cvxpy

    def error(w, eta, variation):
        return spread * cp.sum_squares(np.diag(np.sqrt(counts)) @ w) + noise * eta**2 + bias * variation**2

    w, scale, variation = (
        cp.Variable(4, nonneg=True),
        cp.Variable(nonneg=True),
        cp.Variable(nonneg=True),
    )
    problem = cp.Problem(
        cp.Minimize(error(w, scale, variation)),
        [
            counts @ w == 1,
            w <= offers * scale,
            variation >= cp.norm1(np.diag(counts) @ (w - 1 / people)) / 2,
        ],
    )
    problem.solve(solver=cp.CLARABEL)
    ours = error(weights, eta, float(counts @ np.abs(weights - 1 / people) / 2)).value
    assert ours <= problem.value * (1 + 1e-5)
    assert weighing.squares == pytest.approx(float(counts @ weights**2))
    assert weighing.bias == pytest.approx(tilt * float(counts @ np.abs(weights - 1 / people)) / 2)


def test_the_predicted_error_is_the_closed_form_for_equal_epsilons():
    """K = 5 at epsilon 1: all bins err by 8 (K - 1) / (n epsilon)^2 about the people who are there."""
    people, bins = 1000, 5
    weighing = weigh_public(central((1, people)), people, shares.target_of(bins, 0), 0)
    plan = SharesPlan(bins=bins, weighing=weighing)
    total = 8 * (bins - 1) / people**2
    assert bins * plan.predicted_error**2 == pytest.approx(total)
    # Personal epsilons are never worse than the least epsilon for all.
    mixed = central((1, people // 2), (4, people // 2))
    better = SharesPlan(bins=bins, weighing=weigh_public(mixed, people, shares.target_of(bins, 0), 0))
    assert better.predicted_error < plan.predicted_error


@pytest.mark.parametrize("currency", Currency)
def test_of_two_bins_one_count_has_all_noise_there_is(currency: Currency):
    """The shares are it over the public total, and the rest, with the noise of one number of [0, 1]."""
    people = 1000
    group = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)]
    weighing = weigh_public(group, people, shares.target_of(2, 0, currency), 0, currency=currency)
    plan, weight = SharesPlan(bins=2, weighing=weighing), weighing.weights[0]
    assert plan.drawn == 1
    read = plan.read([300 * weight])
    assert [one.share for one in read.bins] == pytest.approx([0.7, 0.3])
    # Epsilon 1 leaves a variance of 2 / n^2, and mu = 1 one of 1 / n^2, in each of both shares.
    noise = currency.variance / people**2
    assert 2 * plan.predicted_error**2 == pytest.approx(2 * noise, rel=1e-4)
    (half,) = {round((one.interval.upper - one.interval.lower) / 2, 12) for one in read.bins}
    quantile = NormalDist().inv_cdf(0.975) if currency.is_gaussian else -math.log(0.05)
    assert half == pytest.approx(quantile / people, rel=1e-3)
    # Where both have a count, as pieces of former versions do, the half-width of Laplace noise is larger.
    both = replace(plan, both=True).read([700 * weight, 300 * weight])
    assert [one.share for one in both.bins] == pytest.approx([0.7, 0.3])
    wider = (both.bins[0].interval.upper - both.bins[0].interval.lower) / 2
    assert wider > 1.2 * half if currency is Currency.LAPLACE else wider == pytest.approx(half, rel=1e-3)


def test_public_people_alone_have_next_to_no_noise_and_nobody_has_no_answer():
    weighing = weigh_public(
        [Group(trust=Trust.PUBLIC, epsilon=0, count=10)], 10, shares.target_of(4, 0.1), 0.1
    )
    assert SharesPlan(bins=4, weighing=weighing).scale / weighing.mass < 1e-6
    with pytest.raises(NotApplicable):
        weigh_public([], 0, shares.target_of(4, 0.1), 0.1)


def test_secret_weights_look_at_no_size():
    for count in (0, 1, 10**6):
        groups = central((0.5, count), (3, count))
        assert weigh_secret(groups, cap=2 * MICRO, floor=MICRO).weights == (MICRO // 2, 2 * MICRO)


def test_the_simplex_projection_meets_its_optimality_conditions():
    rng = np.random.default_rng(5)
    for _ in range(200):
        point = rng.normal(0.2, 0.6, rng.integers(2, 12))
        found = on_simplex(point)
        assert found.sum() == pytest.approx(1)
        assert found.min() >= 0
        # It is the nearest: no vertex of the simplex lies beyond the plane through it.
        for vertex in np.eye(point.size):
            assert (point - found) @ (vertex - found) <= 1e-9


def public_plan(bins: int, people: int = 1000) -> SharesPlan:
    weighing = weigh_public(central((1, people)), people, shares.target_of(bins, 0), 0)
    return SharesPlan(bins=bins, weighing=weighing)


def test_without_noise_the_shares_are_the_shares():
    counts = [100 * MICRO, 0, 600 * MICRO, 300 * MICRO]
    read = public_plan(4).read(counts)
    assert [one.share for one in read.bins] == pytest.approx([0.1, 0, 0.6, 0.3])
    assert [one.share for one in read.cumulative] == pytest.approx([0.1, 0.1, 0.7])
    secret = SharesPlan(bins=4, weighing=weigh_secret(central((1, 1)), cap=MICRO, floor=MICRO)).read(counts)
    assert [one.share for one in secret.bins] == pytest.approx([0.1, 0, 0.6, 0.3])
    assert secret.noisy_count == 1000


@pytest.mark.parametrize("relation", Relation)
def test_whatever_the_noise_every_answer_is_a_distribution_with_its_intervals(relation: Relation):
    rng = np.random.default_rng(3)
    weighing = weigh_secret(central((1, 1)), cap=MICRO, floor=MICRO // 4)
    plan = public_plan(5, 10) if relation is Relation.REPLACE_ONE else SharesPlan(bins=5, weighing=weighing)
    for _ in range(8):
        read = plan.read([int(value) for value in rng.laplace(2e6, 4e6, 5)])
        assert sum(one.share for one in read.bins) == pytest.approx(1)
        for kind in (read.bins, read.cumulative):
            for one in kind:
                for interval in (one.interval, one.population_interval, one.simultaneous):
                    assert 0 <= interval.lower <= one.share <= interval.upper <= 1
        for first, second in itertools.pairwise(read.cumulative):
            assert first.share <= second.share
            assert first.interval.lower <= second.interval.lower
            assert first.interval.upper <= second.interval.upper


def test_the_noise_on_the_plane_has_the_stated_variance():
    """Cumulated noise less its part of the whole is a bridge: 2 b^2 j (K - j) / K."""
    plan, b = public_plan(10), 2 * MICRO / (1000 * MICRO)
    for inside in range(1, 10):
        law = error_law(normal_variance=0, laplaces=((1 - inside / 10, inside), (inside / 10, 10 - inside)))
        assert law.variance * b**2 == pytest.approx(2 * b**2 * inside * (10 - inside) / 10)
        assert plan._margins([(inside, 0.0)], [0.95], 0.0)[0, 0] == pytest.approx(
            law.quantile() * b, rel=1e-3
        )


def test_a_band_keeps_every_rising_function_that_it_held():
    lower, upper = np.array([0.1, 0.0, 0.3]), np.array([0.5, 0.4, 0.9])
    low, high = rising_band(lower, upper)
    assert low.tolist() == [0.1, 0.1, 0.3]
    assert high.tolist() == [0.4, 0.4, 0.9]
    for function in itertools.combinations_with_replacement(np.linspace(0, 1, 11), 3):
        held = all(a <= f <= b for a, f, b in zip(lower, function, upper, strict=True))
        assert held == all(a <= f <= b for a, f, b in zip(low, function, high, strict=True))


def test_hulls_hold_exactly_the_shares_that_are_not_rejected():
    groups = central((0.2, 300), (1, 700))
    weighing: Weighing = weigh_public(groups, 1000, shares.target_of(4, 0), 0)
    plan = SharesPlan(bins=4, weighing=weighing)
    plane = np.array([0.02, 0.5, 0.3, 0.18])
    lower, upper = (end[0] for end in plan._hulls(plane, weighing.squares, [0.95], 0.0))

    def margin_of(variance: float) -> float:
        return float(plan._margins([(1, variance)], [0.95], 0.0)[0, 0])

    for center, low, high in zip(plane, lower, upper, strict=True):
        for share in np.linspace(0, 1, 401):
            variance = share * (1 - share) * weighing.squares
            rejected = abs(share - center) > margin_of(variance)
            assert rejected or low - 1e-9 <= share <= high + 1e-9
        # Not wider than the next of the variances that are looked at makes them.
        for end in (low, high):
            deviation = (
                math.ceil(math.sqrt(end * (1 - end)) * 2 * shares._VARIANCES - 1e-9) / 2 / shares._VARIANCES
            )
            margin = margin_of(deviation**2 * weighing.squares)
            assert abs(end - center) <= margin + 1e-9
    assert math.isclose(float(upper[1] - lower[1]), 2 * margin_of(0.25 * weighing.squares))
