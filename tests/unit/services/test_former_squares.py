"""Squares beside a mean with Gaussian noise: a third of its sigma, or the half that a piece began with.

What is read of several such sums has the noise of each.
"""

import math
from dataclasses import replace
from fractions import Fraction
from uuid import UUID

import numpy as np
import pytest

from app.core.cohort import Cohort, Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.piece import LastStep, Piece
from app.core.study import Relation, Trust
from app.estimators import labels_public, registry
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.calibration import GAUSSIAN_SIGMA
from app.estimators.combination import Sums, combination_plan
from app.estimators.interface import Conclusion, Linear
from app.estimators.moments import with_second_moment
from app.services.statistics.crowds import Crowd
from app.services.statistics.kept_sums import kept_of
from app.services.statistics.piece_noise import THIRDS, GaussianNoise
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.steps import MeanStep, plan_step, take
from tests.statistical.test_gaussian_steps import GAUSSIAN
from tests.statistical.test_steps import COHORTS
from tests.support.groups import central, replace_one
from tests.support.weights import weights_of

GAUSS = GaussianNoise()


def spread_error(conclusion: Conclusion) -> float:
    """The standard error of a variance, of values in the middle of the range where the mean adds nothing."""
    assert conclusion.variance is not None
    return conclusion.variance.standard_error


def step_to(share: int, cohorts: list[Cohort], pieces: list[Piece], before: LastStep | None) -> MeanStep:
    """The next step of a question."""
    resolved = resolve(GAUSSIAN, Ask(estimator="adpm", share=share))
    question = resolved.question(GAUSSIAN, people=sum(cohort.count for cohort in cohorts))
    step = plan_step(GAUSSIAN, cohorts, resolved, question, pieces, before)
    assert step is not None
    return step


def test_a_piece_that_began_with_half_of_the_sigma_goes_on_with_it(monkeypatch):
    """At the price that it had; newcomers' squares have a third of the sigma, and both are drawn so."""
    with monkeypatch.context() as former:
        former.setattr(GaussianNoise, "unit_of", lambda _, drawn: drawn)
        first = step_to(MICRO // 4, COHORTS, [], None)
        _, taken = take(first, COHORTS)
    (began,) = taken.changed
    assert began.unit == GAUSSIAN_SIGMA
    assert GAUSS.finer(began) == (1, 4)
    spent = {charge.cohort_id: charge.epsilon for charge in first.charges}
    here = [replace(cohort, spent=spent[cohort.id]) for cohort in COHORTS]
    newcomers = replace(COHORTS[0], id=9)
    before = LastStep(release=UUID(int=1), share=MICRO // 4, epoch=1)
    step = step_to(MICRO // 2, [*here, newcomers], [began], before)
    drawn = []

    def exactly(noisy: int, exact: int, variance: Fraction, part: int, bits: object) -> int:
        drawn.append(variance)
        return noisy + part * exact

    monkeypatch.setattr("app.services.statistics.piece_noise.more_gaussian", exactly)
    _, taken = take(step, [*here, newcomers])
    old, new = taken.changed
    assert (old.unit, new.unit) == (GAUSSIAN_SIGMA, THIRDS)
    assert [drawn[place] / drawn[place + 1] for place in (0, 2)] == [4, 9]
    assert [member.charged for member in old.members] == [
        GAUSS.price(GAUSSIAN_SIGMA, MICRO // 2)(member.weight) for member in old.members
    ]


def test_squares_of_several_sums_have_the_noise_of_each():
    people, scale = 400, 3.0 * GRID_SIZE
    sums = Sums(
        groups=[Group(trust=Trust.CENTRAL, epsilon=0, count=people)] * 2,
        weights=weights_of([{0: 1}, {1: 1}]),
        absent=np.array([False, False]),
        scales=(scale, scale),
        public_weight=0,
        normal=True,
        squares=(4, 9),
    )
    linear = Linear(
        reports=True,
        attached=False,
        steering=WORST_VARIANCE,
        variance=WORST_VARIANCE,
        expected_variance=WORST_VARIANCE,
        shrinkage=lambda squares, noise, bias: 1.0,
    )
    plan = combination_plan(sums, linear, replace_one(sums.groups))
    found = plan.conclude([people * GRID_SIZE // 2] * 2 + [0] + [people * GRID_SIZE // 16] * 2 + [0])
    noise = scale / GRID_SIZE / (2 * people)
    assert spread_error(found) == pytest.approx(math.hypot(noise / 2, noise / 3), rel=1e-6)
    wrong = combination_plan(replace(sums, squares=(4, 4)), linear, replace_one(sums.groups))
    control = wrong.conclude([people * GRID_SIZE // 2] * 2 + [0] + [people * GRID_SIZE // 16] * 2 + [0])
    assert spread_error(control) > 1.1 * spread_error(found)


@pytest.mark.parametrize("delta", [0, 10**6])
def test_squares_of_labels_have_the_noise_of_each(delta):
    """Of Laplace noise half of the scale, as in descriptions, which also decides how wide an interval is."""
    estimator = registry.get("adpm", Relation.REPLACE_ONE)
    labels, variance, values = [], 0.0, []
    for people, offer in ((300, 0.05), (100, 0.2)):
        groups = [central(offer, people)]
        question = replace(replace_one(groups), delta=delta)
        plan = estimator.plan(groups, registry.for_estimator(estimator, question))
        labels.append((groups, with_second_moment(plan, groups, question, halved=True)))
        noise = labels[-1][1].noise
        assert isinstance(noise, DiscreteGaussian | DiscreteLaplace)
        of_mean, of_squares = noise.sigmas if isinstance(noise, DiscreteGaussian) else noise.scales
        assert of_squares == of_mean / (3 if delta else 2)
        weight = plan.queries[0].sum_weights[0]
        each = people / 400 * of_squares / (weight * people * GRID_SIZE)
        variance += each**2 * (1 if delta else 2)
        values += [people * weight * GRID_SIZE // 2, people * weight * GRID_SIZE // 16]
    everyone = [group for groups, _ in labels for group in groups]
    found = labels_public.whole_plan(labels, replace(replace_one(everyone), delta=delta)).conclude(values)
    assert spread_error(found) == pytest.approx(math.sqrt(variance), rel=1e-6)
    assert found.variance is not None
    # The noise of the mean adds little here: 95 % of the noise of squares alone are nearly all of it.
    half = (found.variance.interval.upper - found.variance.interval.lower) / 2
    assert 1.7 < half / math.sqrt(variance) < (2.6 if delta else 3.3)


@pytest.mark.parametrize("sigma", [GAUSSIAN_SIGMA, 3 * GAUSSIAN_SIGMA])
def test_sums_of_a_sigma_of_its_own_are_not_kept_since_no_unit_says_their_squares(sigma: float):
    resolved = resolve(GAUSSIAN, Ask(estimator="uniform"))
    crowd = Crowd.of(GAUSSIAN, COHORTS, resolved)
    question = resolved.question(GAUSSIAN, people=sum(cohort.count for cohort in COHORTS))
    plan = registry.get("uniform", GAUSSIAN.relation, GAUSSIAN.noise).plan(list(crowd.groups), question)
    plan = with_second_moment(plan, list(crowd.groups), question)
    plan = replace(plan, noise=DiscreteGaussian(sigmas=(sigma, sigma / 3)))
    charges = crowd.charges([1] * len(crowd.groups))
    kept = kept_of(GAUSSIAN, resolved, crowd, plan, (0, 0), charges)
    assert (None if kept is None else kept.unit) == (THIRDS if sigma == GAUSSIAN_SIGMA else None)
