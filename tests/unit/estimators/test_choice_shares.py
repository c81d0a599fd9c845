"""Shares of choices of central, local and public people together: weights, errors, who pays."""

import math
from typing import Any

import cvxpy
import numpy as np
import pytest
from dither.device.choices import ChoiceRandomizer

from app.core.epsilon import MICRO
from app.core.noise import DiscreteLaplace
from app.core.study import Relation, Trust
from app.estimators.choice_reports import report_noise
from tests.support.choices import error, plan_of, shares_of

PROFILE = [
    (Trust.CENTRAL, 0.1, 60),
    (Trust.CENTRAL, 0.8, 80),
    (Trust.CENTRAL, 5, 40),
    (Trust.LOCAL, 1, 300),
    (Trust.LOCAL, 4, 90),
    (Trust.PUBLIC, 0, 7),
]


@pytest.mark.parametrize("tilt", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("choices", "delta"), [(2, 0), (5, 0), (12, 0), (2, 1_000_000), (5, 1_000_000)])
def test_weights_reach_the_smallest_worst_case_error_that_a_solver_finds(
    choices: int, delta: int, tilt: float
):
    """Under Gaussian noise an offer of mu^2 weighs sqrt(2) mu, and a bin has the variance (2 eta)^2."""
    plan = plan_of(PROFILE, choices, round(tilt * MICRO), delta=delta)
    order = [(group.trust, group.epsilon / MICRO) for group in plan.crowd.groups]
    if delta:
        order = [(t, math.sqrt(2 * e) if t is Trust.CENTRAL else e) for t, e in order]
    counts = np.array([group.count for group in plan.crowd.groups], dtype=float)
    weighing, people = plan.plan.weighing, counts.sum()
    ours = np.array(weighing.weights) / weighing.mass * weighing.private + np.array(weighing.reports)
    assert counts @ ours == pytest.approx(1)
    noises = np.array(
        [report_noise(choices, round(e * MICRO)).total if t is Trust.LOCAL else 0.0 for t, e in order]
    )
    eta = max(w / e for w, (t, e) in zip(ours, order, strict=True) if t is Trust.CENTRAL)
    cp: Any = cvxpy
    square, diagonal = cp.sum_squares, np.diag(np.sqrt(counts))

    def target(w, scale, variation):
        sampled = (1 - 1 / choices) * square(diagonal @ w) + square(np.diag(np.sqrt(counts * noises)) @ w)
        # Of two choices one is counted, at half of the price that two counts have.
        return (
            sampled
            + (4 if choices == 2 or delta else 8) * (choices - 1) * scale**2
            + 2 * tilt**2 * variation**2
        )

    w, scale, variation = (
        cp.Variable(len(order), nonneg=True),
        cp.Variable(nonneg=True),
        cp.Variable(nonneg=True),
    )
    limits = [w[i] <= e * scale for i, (t, e) in enumerate(order) if t is Trust.CENTRAL]
    away = cp.norm1(np.diag(counts) @ (w - 1 / people)) / 2
    problem = cp.Problem(
        cp.Minimize(target(w, scale, variation)), [*limits, counts @ w == 1, variation >= away]
    )
    problem.solve(solver=cp.CLARABEL)
    mine = target(ours, eta, float(counts @ np.abs(ours - 1 / people) / 2)).value
    assert mine <= problem.value * (1 + 1e-4)
    # About the people who are there; what they are drawn from adds the same for all weights.
    assert error(plan, choices) == pytest.approx(mine - (1 - 1 / choices) / people, rel=1e-3)


def test_the_error_of_five_choices_at_one_epsilon_is_the_closed_form():
    """8 (K - 1) / (n epsilon)^2 about the people who are there, exactly."""
    for people, epsilon in ((100, 1), (1000, 1), (10_000, 0.1)):
        plan = plan_of([(Trust.CENTRAL, epsilon, people)])
        assert error(plan, 5) == pytest.approx(32 / (people * epsilon) ** 2, rel=1e-6)


def test_it_is_never_worse_than_a_laplace_for_each_choice_at_the_least_epsilon():
    rng = np.random.default_rng(1)
    for _ in range(60):
        choices = int(rng.integers(2, 20))
        offers = np.round(np.exp(rng.normal(-0.5, 1, rng.integers(1, 6))).clip(0.01, 9), 3)
        sizes = rng.integers(1, 2000, offers.size)
        profile = [(Trust.CENTRAL, float(e), int(n)) for e, n in zip(offers, sizes, strict=True)]
        people = int(sizes.sum())
        by_hand = 8 * choices / (people * offers.min()) ** 2
        assert error(plan_of(profile, choices), choices) <= min(by_hand, choices) * (1 + 1e-6)


def test_together_they_are_better_than_either_part():
    rng = np.random.default_rng(2)
    for _ in range(40):
        choices = int(rng.integers(2, 20))
        central = [(Trust.CENTRAL, float(rng.choice([0.1, 0.5, 2])), int(rng.integers(50, 2000)))]
        local = [(Trust.LOCAL, float(rng.choice([0.5, 1, 4])), int(rng.integers(50, 20_000)))]
        both, first, second = (plan_of(part, choices) for part in (central + local, central, local))
        if max(first.predicted_error, second.predicted_error) < 1:
            # About whom they are drawn from: each part has other people.
            errors = [
                error(plan, choices) + (1 - 1 / choices) / sum(count for _, _, count in part)
                for plan, part in ((both, central + local), (first, central), (second, local))
            ]
            assert errors[0] < min(errors[1:])
        assert both.crowd.local == first.crowd.local == 0


def test_local_people_pay_nothing_more_and_local_people_alone_have_an_answer():
    plan = plan_of(PROFILE)
    paid = {charge.cohort_id for charge in plan.charges()}
    assert paid == {1, 2, 3}
    assert {used.cohort_id: used.offer for used in plan.crowd.used()}[4] == 0
    assert plan.one_report_moves is not None
    alone = plan_of([(Trust.LOCAL, 2, 1000)])
    assert (alone.most, alone.charges()) == (0, ())
    reports = ChoiceRandomizer(5).range(2 * MICRO)
    assert reports.is_single
    counts = [round(1000 * float(reports.kept if place == 2 else reports.other)) for place in range(5)]
    answer: Any = alone.answer({1: counts})
    assert [round(one["share"], 2) for one in answer["choices"]] == [0, 0, 1, 0, 0]
    assert alone.one_report_moves == pytest.approx(0.001 / float(reports.kept - reports.other))


def test_the_noise_is_that_of_two_bins_or_of_one_where_people_come_and_go():
    everyone = plan_of(PROFILE)
    assert (everyone.crowd.unable, everyone.crowd.local) == (0, 0)
    secret = plan_of([(Trust.CENTRAL, 1, 10)], relation=Relation.ADD_REMOVE_ONE)
    assert shares_of(secret).noise == DiscreteLaplace(scales=(float(MICRO),) * 5)
    assert shares_of(everyone).noise == DiscreteLaplace(scales=(2.0 * MICRO,) * 5)
