"""The formula that all linear estimators share, and `uniform`, its simplest case."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, NoNoise
from app.estimators.accuracy import interval
from app.estimators.adpm import Adpm
from app.estimators.interface import UNIT_SCALE, NotApplicable
from app.estimators.linear import linear_plan
from app.estimators.quantiles import error_law
from app.estimators.uniform import Uniform
from tests.support.groups import (
    WIDE_GRID,
    about_population,
    central,
    local,
    micro,
    public,
    query_values,
    replace_one,
)

HALF = GRID_SIZE // 2


def uniform(groups, **more):
    return Uniform().plan(groups, replace_one(groups, **more))


def half_widths(plan, groups):
    """Half widths of both intervals of a plan, read at the middle of the range."""
    mass = sum(w * g.count for w, g in zip(plan.queries[0].sum_weights, groups, strict=True))
    conclusion = plan.conclude([mass * HALF])
    assert conclusion.estimate == pytest.approx(0.5)
    return conclusion.interval.upper - 0.5, conclusion.population_interval.upper - 0.5


# --------------------------------------------------------------------------------------- uniform


def test_the_plain_mean_costs_everybody_the_smallest_offer():
    groups = [central(2.0, 30), central(0.25, 10), public(60)]
    plan = uniform(groups)
    assert plan.queries[0].sum_weights == (250_000, 250_000, 250_000)
    assert plan.queries[0].count_weights == (0, 0, 0)
    assert plan.noise == DiscreteLaplace(scales=(UNIT_SCALE,))


@given(n=st.integers(1, 10**6), epsilon=st.floats(0.001, 1000))
def test_the_plain_mean_predicts_the_textbook_error(n, epsilon):
    """2 W^2 / (n epsilon)^2 about the dataset, and W^2 / (4 n) more about the population."""
    groups = [central(epsilon, n)]
    plan, noise = uniform(groups, grid=WIDE_GRID), 2 / (n * micro(epsilon) / 1e6) ** 2
    assert plan.predicted_error == pytest.approx(80 * math.sqrt(noise), rel=1e-9)
    assert about_population(plan) == pytest.approx(80 * math.sqrt(0.25 / n + noise), rel=1e-9)


def test_only_public_people_need_no_noise():
    assert uniform([public(3)]).noise == NoNoise()


@pytest.mark.parametrize("groups", [[], [central(1, 3, participates=False)], [local(1, [5])]])
def test_with_nobody_to_ask_there_is_no_plain_mean(groups):
    with pytest.raises(NotApplicable):
        uniform(groups)


# ---------------------------------------------------------------------------------------- answers


@given(
    shape=st.lists(
        st.tuples(st.integers(1, 10**7), st.integers(1, 1000), st.integers(0, GRID_SIZE)),
        min_size=1,
        max_size=6,
    )
)
def test_without_noise_the_answer_is_the_weighted_mean_exactly(shape):
    groups = [central(e / 1e6, n) for e, n, _ in shape]
    weights = [e for e, _, _ in shape]
    plan = linear_plan(
        groups, replace_one(groups), weights=weights, noise=DiscreteLaplace(scales=(UNIT_SCALE,))
    )
    sums = [n * q for _, n, q in shape]
    expected = Fraction(sum(e * n * q for e, n, q in shape), sum(e * n for e, n, _ in shape) * GRID_SIZE)
    assert plan.conclude(query_values(plan, groups, sums)).estimate == float(expected)


def test_noise_moves_the_answer_by_itself_over_the_mass():
    groups = [central(1.0, 100)]
    plan = uniform(groups)
    (value,) = query_values(plan, groups, [50 * GRID_SIZE])
    moved = plan.conclude([value + int(UNIT_SCALE)]).estimate
    assert moved - 0.5 == pytest.approx(1 / 100, rel=1e-12)


@given(value=st.integers(-(10**40), 10**40))
def test_answers_and_intervals_stay_in_the_range(value):
    groups = [central(1.0, 100), central(0.1, 40)]
    conclusion = uniform(groups, grid=WIDE_GRID).conclude([value])
    for part in (conclusion.interval, conclusion.population_interval):
        assert -20 <= part.lower <= conclusion.estimate <= part.upper <= 60
        assert part.level == 0.95


# -------------------------------------------------------------------------------------- intervals


def test_equal_weights_have_an_exact_interval_of_pure_noise():
    groups = [central(0.5, 200), public(100)]
    plan = uniform(groups)
    dataset, _ = half_widths(plan, groups)
    conclusion = plan.conclude([0])
    assert conclusion.interval.coverage == "exact"
    assert conclusion.population_interval.coverage == "worst_case"
    assert dataset == pytest.approx(math.log(20) / (300 * 0.5), rel=1e-12)
    assert conclusion.standard_error == pytest.approx(math.sqrt(2) / (300 * 0.5), rel=1e-12)


@pytest.mark.parametrize(
    "left_out", [central(1.0, 7, participates=False), local(1.0, [HALF] * 7), central(0.0, 7)]
)
def test_people_without_weight_count_for_the_dataset_mean(left_out):
    """The interval is for all people, so leaving some out widens it and makes it a worst case."""
    groups = [central(0.5, 200), left_out]
    plan = uniform(groups)
    conclusion = plan.conclude([0])
    assert conclusion.interval.coverage == "worst_case"
    dataset, _ = half_widths(plan, groups)
    n = 207
    variance = 0.25 * (200 * (1 / 200 - 1 / n) ** 2 + 7 / n**2)
    law = error_law(normal_variance=variance, laplaces=((1 / (200 * 0.5), 1),))
    assert dataset == pytest.approx(law.quantile() + 0.5 / n, rel=1e-9)


def test_people_nobody_listed_count_too():
    groups = [central(0.5, 200)]
    question = replace_one([*groups, central(1, 7, participates=False)])
    listed = uniform([*groups, central(1, 7, participates=False)])
    unlisted = Uniform().plan(groups, question)
    found, expected = unlisted.conclude([0]), listed.conclude([0])
    assert replace(found, error=None) == replace(expected, error=None)
    assert found.error is not None
    assert expected.error is not None
    assert found.error.dataset.normal == pytest.approx(expected.error.dataset.normal, rel=1e-12)


def test_the_population_interval_adds_sampling_to_noise():
    groups = [central(0.1, 300), central(2.0, 200)]
    plan = Adpm().plan(groups, replace_one(groups))
    weights = np.repeat(plan.queries[0].sum_weights, [300, 200]).astype(float)
    weights /= weights.sum()
    scale = 1e6 / sum(w * g.count for w, g in zip(plan.queries[0].sum_weights, groups, strict=True))
    law = error_law(normal_variance=0.25 * float(np.sum(weights**2)), laplaces=((scale, 1),))
    dataset, population = half_widths(plan, groups)
    assert population == pytest.approx(law.quantile() + float(weights.max()) / 2, rel=1e-9)
    deviation = error_law(
        normal_variance=0.25 * float(np.sum((weights - 1 / 500) ** 2)), laplaces=((scale, 1),)
    )
    step = float(np.abs(weights - 1 / 500).max()) / 2
    assert dataset == pytest.approx(deviation.quantile() + step, rel=1e-9)
    assert dataset < population


def _coverage(weights, margin, p, scale):
    """Exact probability that |sum w_i (x_i - p) + Lap(scale)| <= margin for coin flips x_i."""
    n = weights.size
    x = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    probability = p ** x.sum(1) * (1 - p) ** (n - x.sum(1))
    error = x @ weights - p * weights.sum()
    if scale == 0:
        return float(probability[np.abs(error) <= margin + 1e-12].sum())

    def below(y):
        half = 0.5 * np.exp(-np.abs(y) / scale)
        return np.where(y < 0, half, 1 - half)

    return float(probability @ (below(margin - error) - below(-margin - error)))


@pytest.mark.parametrize("n", range(1, 11))
def test_worst_case_intervals_cover_two_valued_data_of_few_people(n):
    """By enumeration: without half of one person's move the cover falls to 87.5 % (n = 4, no noise)."""
    rng = np.random.default_rng(n)
    for kind in range(12):
        weights = np.exp(rng.normal(size=n) * (0.0, 0.5, 1.5)[kind % 3])
        weights /= weights.sum()
        scale = (0.0, 0.3)[kind % 2] * float(np.linalg.norm(weights))
        for terms in (weights, weights - 1 / n):
            variance = 0.25 * float(terms @ terms)
            if variance < 1e-15:
                continue
            law = error_law(normal_variance=variance, laplaces=((scale, 1),))
            margin = law.quantile() + float(np.abs(terms).max()) / 2
            for p in (0.5, 0.4, 0.2, 0.05):
                assert _coverage(terms, margin, p, scale) >= 0.95


def test_the_enumeration_sees_an_interval_without_half_a_step():
    weights = np.full(4, 0.25)
    law = error_law(normal_variance=0.25 / 4, laplaces=())
    assert _coverage(weights, law.quantile(), 0.5, 0.0) == pytest.approx(0.875)


def test_an_interval_is_clipped_to_the_range():
    part = interval(WIDE_GRID, Fraction(-1), [0.5], "exact")
    assert (part.lower, part.upper) == (-20, 20), "no point, however far noise took the answer"
    part = interval(WIDE_GRID, Fraction(1, 2), [9.0], "exact")
    assert (part.lower, part.upper) == (-20, 60)


# ----------------------------------------------------------------------------------------- faults


def test_weights_that_make_no_sense_are_faults():
    groups = [central(1.0, 3), local(1.0, [5, 6])]
    question = replace_one(groups)
    noise = DiscreteLaplace(scales=(UNIT_SCALE,))
    with pytest.raises(InternalFault):
        linear_plan(groups, question, weights=[-1, 0], noise=noise)
    with pytest.raises(InternalFault):
        linear_plan(groups, question, weights=[0, 0], noise=noise)
    with pytest.raises(InternalFault):
        linear_plan(groups, question, weights=[1, 0], noise=noise, report_weights=[0.0, 0.7])
    with pytest.raises(InternalFault):
        linear_plan(groups, question, weights=[1, 0], noise=noise, report_weights=[0.0, -0.1])
    with pytest.raises(InternalFault):
        linear_plan(groups, question, weights=[1, 0], noise=DiscreteGaussian(sigmas=(1.0, 1.0)))
