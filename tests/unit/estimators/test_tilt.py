"""Tilt: what unequal weights may add to an error where epsilon and value go together."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.grid import GRID_SIZE
from app.estimators import registry
from app.estimators.accuracy import worst_square_error
from app.estimators.interface import NotApplicable
from dither_research.estimators import ESTIMATORS
from tests.support.groups import WIDE_GRID, central, local, public, query_values, replace_one

REPLACE_ONE = sorted(
    name for name, estimator in ESTIMATORS.items() if estimator.relation.value == "replace_one"
)

epsilons = st.floats(1e-2, 10) | st.sampled_from([0.1, 1.0])
any_group = (
    st.builds(central, epsilons, st.integers(1, 1000), participates=st.booleans())
    | st.builds(public, st.integers(1, 100))
    | st.builds(local, epsilons, st.lists(st.integers(0, GRID_SIZE), min_size=1, max_size=4))
)
any_groups = st.lists(any_group, min_size=1, max_size=5)


@pytest.mark.parametrize("tilt", [0.05, 0.3, 1.0])
def test_a_tilt_widens_both_intervals_by_the_distance_of_the_weights_from_equal_ones(tilt):
    """`proportional` weighs the same at every tilt: TV of weights 1:3 among 3 + 1 people, one left out."""
    groups = [central(1.0, 300), central(3.0, 100), central(2.0, 50, participates=False)]
    plain = ESTIMATORS["proportional"].plan(groups, replace_one(groups))
    tilted = ESTIMATORS["proportional"].plan(groups, replace_one(groups, tilt=tilt))
    n, weights = 450, np.array([1 / 600, 3 / 600, 0.0])
    variation = float(np.dot([300, 100, 50], np.abs(weights - 1 / n))) / 2
    middle = query_values(plain, groups, [g.count * GRID_SIZE // 2 for g in groups])
    before, after = plain.conclude(middle), tilted.conclude(middle)
    for part in ("interval", "population_interval"):
        wider = getattr(after, part).upper - getattr(before, part).upper
        assert wider == pytest.approx(min(tilt * variation, 1 - getattr(before, part).upper))
        assert getattr(after, part).coverage == "worst_case"
    assert tilted.predicted_error**2 - plain.predicted_error**2 == pytest.approx((tilt * variation) ** 2)
    assert (before.estimate, before.standard_error) == (after.estimate, after.standard_error)


def test_equal_weights_have_no_tilt():
    groups = [central(1.0, 300), central(3.0, 100)]
    one, other = (ESTIMATORS["uniform"].plan(groups, replace_one(groups, tilt=tilt)) for tilt in (0.0, 1.0))
    assert one.predicted_error == other.predicted_error
    assert one.conclude([10**20]) == other.conclude([10**20])
    assert other.conclude([10**20]).interval.coverage == "exact"


@pytest.mark.parametrize("name", [name for name in REPLACE_ONE if name != "sampling"])
@given(groups=any_groups, tilt=st.floats(0, 1), high=st.integers(0, 2**5 - 1))
def test_within_its_tilt_the_answer_without_noise_is_in_its_interval(name, groups, tilt, high):
    """Some groups say the upper end, all others the lower end plus 1 - tilt: differences are at most tilt."""
    estimator = ESTIMATORS[name]
    question = registry.for_estimator(estimator, replace_one(groups, grid=WIDE_GRID, tilt=tilt))
    values = [1.0 if high >> index & 1 else 1 - tilt for index in range(len(groups))]
    told = [
        local(group.epsilon / 1e6, [int(value * GRID_SIZE)] * group.count) if group.reports else group
        for group, value in zip(groups, values, strict=True)
    ]
    try:
        plan = estimator.plan(told, question)
    except NotApplicable:
        return
    sums = [0 if g.reports else int(v * GRID_SIZE) * g.count for g, v in zip(told, values, strict=True)]
    conclusion = plan.conclude(query_values(plan, told, sums))
    people = sum(group.count for group in told)
    mean = sum(value * group.count for value, group in zip(values, told, strict=True)) / people
    assert conclusion.interval.lower - 1e-6 <= -20 + 80 * mean <= conclusion.interval.upper + 1e-6


@given(
    kinds=st.lists(st.tuples(st.floats(0, 0.25), st.floats(0, 0.3)), min_size=1, max_size=3),
    noise=st.floats(0, 0.3),
    shrinkage=st.floats(0, 1),
    bias=st.floats(0, 1),
    tilt=st.floats(0, 1),
)
def test_the_worst_error_is_that_of_the_worst_distance_of_the_mean(kinds, noise, shrinkage, bias, tilt):
    variances, squares = (np.array(column) for column in zip(*kinds, strict=True))
    bias *= tilt
    found = worst_square_error(
        squares=squares, noise=noise, variances=variances, shrinkage=shrinkage, bias=bias, tilt=tilt
    )
    distance = np.linspace(0, 0.5, 5001)
    nearer = np.maximum(distance - tilt, 0) if bias or len(set(variances)) > 1 else distance
    spread = np.minimum(variances[:, None], 0.25 - nearer**2).T @ squares + noise
    tried = shrinkage**2 * spread + (shrinkage * bias + (1 - shrinkage) * distance) ** 2
    assert found >= float(tried.max()) - 1e-12
    assert found <= float(tried.max()) + 1e-6


def test_people_within_the_tilt_never_err_more_than_the_worst_error():
    """Two kinds of people with any two means within the tilt, each drawn as widely as possible."""
    for heavy, share, shrinkage, tilt in itertools.product((0.2, 0.6), (0.3, 0.8), (0.5, 0.9), (0.05, 0.4)):
        counts, n = np.array([6.0, 14.0]), 20
        weights = np.array([share / 6, (1 - share) / 14])
        bias = tilt * float(np.dot(counts, np.abs(weights - 1 / n))) / 2
        bound = worst_square_error(
            squares=counts * weights**2,
            noise=heavy / 10,
            variances=np.full(2, 0.25),
            shrinkage=shrinkage,
            bias=bias,
            tilt=tilt,
        )
        for first in np.linspace(-0.5, 0.5, 41):
            for second in np.linspace(max(-0.5, first - tilt), min(0.5, first + tilt), 9):
                means = np.array([first, second])
                spread = float(np.dot(counts * weights**2, 0.25 - means**2)) + heavy / 10
                off = shrinkage * float(np.dot(counts * weights, means)) - float(np.dot(counts, means)) / n
                assert shrinkage**2 * spread + off**2 <= bound + 1e-12


@given(groups=any_groups)
def test_a_shrunk_answer_predicts_more_with_a_tilt(groups):
    for shrinkage in ("none", "noise", "minimax"):
        predicted = []
        for tilt in (0.0, 0.1, 1.0):
            question = replace_one(groups, tilt=tilt, parameters={"shrinkage": shrinkage})
            try:
                plan = ESTIMATORS["optimal"].plan(
                    groups, registry.for_estimator(ESTIMATORS["optimal"], question)
                )
            except NotApplicable:
                return
            predicted.append(plan.predicted_error)
        assert all(math.isfinite(error) for error in predicted)
        assert predicted[0] <= predicted[1] * (1 + 1e-9)
