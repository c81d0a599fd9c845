"""Reports that count no further out than honest noise explains leave honest means where they are.

The bias of a mean is at most that of a report about an end of the range, where one side is cut more. Here it
is the mean of what is cut: its standard error is a hundredth of that of the mean of as many reports.
"""

import math

import numpy as np
import pytest
from dither.device.randomizers import randomizer

from app.core.cohort import report_reach
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from tests.statistical import Z

DELTA = 1_000_000
PEOPLE = 1_000
LARGEST_BIAS = 1e-4
DRAWS = 20_000_000


def reach_of(device, reports):
    """In widths of the range."""
    reach = report_reach(device, MICRO, reports)
    assert reach is not None
    return reach / GRID_SIZE


def cut(source, mechanism, reports):
    """How much is cut off reports about the upper end, in widths of the range: mean and standard error."""
    device = randomizer(mechanism, DELTA)
    noise, reach = device.noise(MICRO), reach_of(device, reports)
    if noise.laplace:
        drawn = source.people.laplace(0, noise.laplace / GRID_SIZE, DRAWS)
    else:
        drawn = source.people.normal(0, noise.gaussian / GRID_SIZE, DRAWS)
    over, under = np.maximum(drawn - reach, 0), np.maximum(-drawn - 1 - reach, 0)
    lost = over - under
    return float(lost.mean()), float(lost.std()) / math.sqrt(DRAWS)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_honest_bias_stays_below_a_ten_thousandth_of_the_range(source, mechanism):
    """False alarms are rarer than ALPHA: the bias is a twentieth of the bound, Z standard errors another."""
    mean, error = cut(source, mechanism, PEOPLE)
    assert abs(mean) + Z * error < LARGEST_BIAS


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_control_a_reach_for_the_cohort_alone_is_caught(source, mechanism):
    """Ten people of the study share an epsilon, and their reports are cut as if they were all there are."""
    mean, error = cut(source, mechanism, 10)
    assert abs(mean) - Z * error > LARGEST_BIAS


def test_the_mean_of_folds_of_one_report_each_is_biased_by_less_than_stated():
    """By the formula, for Laplace reports at epsilon 1 about an end of the range."""
    device = randomizer("laplace")
    for people in (400, 1_000, 100_000):
        reaches = (reach_of(device, reports) for reports in range(1, people + 1))
        bias = sum(math.exp(-reach) / 2 for reach in reaches) / people
        assert bias <= 0.005 * (1 + math.log(people)) / people < LARGEST_BIAS
