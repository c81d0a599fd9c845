"""Intervals where noise takes an answer out of what is possible: no points, and the truth is not lost."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Relation
from app.estimators import shares
from app.estimators.accuracy import interval
from app.estimators.interface import UNIT_SCALE
from app.estimators.moments import with_second_moment
from app.estimators.pivot import LinearPivot, ratio
from app.estimators.shares import SharesPlan
from app.estimators.transformed import Transformed
from app.estimators.uniform import Uniform
from app.estimators.weighing import weigh_public, weigh_secret
from tests.support.groups import UNIT_GRID, add_remove_one, central, replace_one

UNIT = int(UNIT_SCALE)
FAR = st.integers(-50 * GRID_SIZE, 50 * GRID_SIZE)


@given(position=FAR, margin=st.floats(0.001, 3), truth=st.floats(0, 1))
def test_an_interval_is_as_wide_as_its_error_and_holds_what_it_held(
    position: int, margin: float, truth: float
):
    center = Fraction(position, GRID_SIZE)
    found = interval(UNIT_GRID, center, [margin], "exact")
    assert found.upper - found.lower >= min(margin, 1) - 1e-9
    if abs(truth - center) <= margin:
        assert found.lower <= truth <= found.upper


@given(first=st.floats(-1e6, 1e6), second=st.floats(-1e6, 1e6), p=st.floats(0, 1))
def test_raising_sums_to_zero_moves_no_pivot_away_from_zero(first: float, second: float, p: float):
    moved = LinearPivot().value(p, first, second)
    plain = (1 - p) * first - p * second
    assert abs(moved) <= abs(plain)
    if first > 0 and second > 0:
        assert moved == plain


@given(first=st.integers(-(10**6), 10**6), second=st.integers(-(10**6), 10**6))
def test_the_pivot_of_the_estimate_is_zero(first: int, second: int):
    estimate = float(ratio(first, second))
    assert LinearPivot().value(estimate, first, second) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("below", [0.5, 2.9, 3.0, 4.0, 9.0])
def test_a_noisy_sum_below_zero_says_what_one_of_zero_does(below: float):
    """With sums of -2.9 and 1,000 the pivot itself rejects all but p < 1e-4, and with -3 every p."""
    plan = Transformed().plan([], add_remove_one(cap=1.0))
    at_zero, found = (plan.conclude([round(first * UNIT), 1000 * UNIT]) for first in (0, -below))
    assert found.interval.upper == pytest.approx(at_zero.interval.upper)
    assert found.population_interval.upper >= found.interval.upper


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("far", [5, 50, 500])
def test_no_share_is_a_point_because_its_noise_is_large(relation: Relation, far: int):
    """A thousand people in four bins; the noise of the first one is `far` times its scale, downwards."""
    crowd = [central(1.0, 1000)]
    weighing = (
        weigh_public(crowd, 1000, shares.target_of(4, 0), 0)
        if relation is Relation.REPLACE_ONE
        else weigh_secret(crowd, cap=MICRO, floor=MICRO)
    )
    plan = SharesPlan(bins=4, weighing=weighing)
    unit = weighing.mass / 1000 if relation is Relation.REPLACE_ONE else MICRO
    ends = [
        plan.read([round(unit * count) for count in (first, 300, 300, 400)]).bins[0].interval
        for first in (0, -2 * far)
    ]
    least = ends[0].upper / 2
    assert all(one.lower == 0 and one.upper >= least > 0 for one in ends)


def test_control_a_share_clipped_after_its_margin_was_added_is_a_point():
    plan = SharesPlan(bins=4, weighing=weigh_public([central(1.0, 1000)], 1000, shares.target_of(4, 0), 0))
    plane = np.array([-0.05, 0.35, 0.35, 0.35])
    margin = plan._margins([(1, 0.0)], [0.95], 0.0)[0, 0]
    assert np.clip(plane[0] - margin, 0, 1) == np.clip(plane[0] + margin, 0, 1)


@pytest.mark.parametrize("square", [-40.0, 40.0])
def test_no_variance_is_a_point_because_its_noise_is_large(square: float):
    """The second noisy sum is of squares about the middle, of which none exceeds a quarter."""
    groups = [central(1.0, 100)]
    question = replace_one(groups)
    both = with_second_moment(Uniform().plan(groups, question), groups, question)
    weight = both.queries[0].sum_weights[0]
    mass = 100 * weight * GRID_SIZE
    found = both.conclude([mass // 2, round(mass * square)]).variance
    assert found is not None
    for one in (found.interval, found.population_interval, found.root.interval):
        assert one.upper - one.lower > 0.01
    assert math.isfinite(found.estimate)
