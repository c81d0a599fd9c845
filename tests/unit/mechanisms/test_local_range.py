"""Which reports an honest device can send."""

import pytest

from app.core.grid import GRID_SIZE, REPORT_LIMIT
from app.core.study import LocalMechanism
from app.mechanisms.local_range import report_range
from app.mechanisms.local_shapes import HALF, duchi_reach, piecewise_shape

MICRO_DELTA = 10**6


@pytest.mark.parametrize("mechanism", LocalMechanism)
@pytest.mark.parametrize("epsilon", [1, 1000, 600_000, 1_000_000, 20_000_000, 10**12])
def test_a_range_lies_about_the_grid_and_within_the_limit(mechanism, epsilon):
    allowed = report_range(mechanism, epsilon, MICRO_DELTA)
    assert allowed.lower + allowed.upper == GRID_SIZE
    assert -REPORT_LIMIT <= allowed.lower < 0
    assert GRID_SIZE < allowed.upper <= REPORT_LIMIT
    for end in (allowed.lower, allowed.upper):
        assert end in allowed
    assert allowed.lower - 1 not in allowed
    assert allowed.upper + 1 not in allowed


@pytest.mark.parametrize("epsilon", [1, 1000, 1_000_000, 10**12])
def test_duchis_reports_are_two(epsilon):
    allowed = report_range(LocalMechanism.DUCHI, epsilon)
    assert allowed.ends_only
    assert HALF not in allowed
    assert allowed.lower + 1 not in allowed
    assert allowed.upper - HALF == duchi_reach(epsilon)


def test_hybrid_reports_are_duchis_up_to_the_threshold_and_piecewise_ones_beyond():
    assert report_range(LocalMechanism.HYBRID, 609_352) == report_range(LocalMechanism.DUCHI, 609_352)
    for epsilon in (609_353, 1_000_000, 50_000_000):
        allowed = report_range(LocalMechanism.HYBRID, epsilon)
        assert allowed == report_range(LocalMechanism.PIECEWISE, epsilon)
        duchi = report_range(LocalMechanism.DUCHI, epsilon)
        assert duchi.lower in allowed
        assert duchi.upper in allowed


def test_piecewise_reports_reach_as_far_as_the_window_is_moved():
    shape = piecewise_shape(1_000_000)
    allowed = report_range(LocalMechanism.PIECEWISE, 1_000_000)
    assert allowed.upper - HALF == shape.drift + shape.reach
    assert allowed.upper - allowed.lower + 1 == shape.window + 2 * shape.drift


def test_less_epsilon_reaches_further():
    for mechanism in LocalMechanism:
        widths = [report_range(mechanism, epsilon, MICRO_DELTA).upper for epsilon in (10**5, 10**6, 10**7)]
        assert widths == sorted(widths, reverse=True)
