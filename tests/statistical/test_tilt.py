"""Do intervals hold where those who ask for more privacy have the larger values?

Epsilons are lognormal about 0.5, values have a standard deviation of 0.15 of the range, and the logarithm of
epsilon and the value are correlated by -r. `auto` answers, on fresh people in every run.
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from app.core.grid import GRID_SIZE
from app.core.noise import NoNoise
from app.estimators import registry
from tests.statistical import ALPHA
from tests.support.groups import central, query_values, replace_one

pytestmark = pytest.mark.statistical

RUNS = 300
PEOPLE = 1000
MOST_MISSES = int(binom.isf(ALPHA, RUNS, 0.05))
"""A 95 % interval misses more often with a probability of at most ALPHA: each verdict's false-alarm rate."""


def misses(source, correlation: float, tilt: float) -> int:
    """In how many runs the interval misses the mean of the people."""
    missed = 0
    for _ in range(RUNS):
        deviation, other = source.people.standard_normal((2, PEOPLE))
        offers = np.clip(np.exp(math.log(0.5) + deviation), 0.01, 10)
        spread = math.sqrt(1 - correlation**2) * other - correlation * deviation
        values = np.round(np.clip(0.5 + 0.15 * spread, 0, 1) * GRID_SIZE).astype(np.int64)
        # Two digits of epsilon, rounded down, make fewer groups.
        digit = 10.0 ** (np.floor(np.log10(offers)) - 1)
        kinds, members = np.unique(np.floor(offers / digit) * digit, return_inverse=True)
        groups = [
            central(float(kind), int(count)) for kind, count in zip(kinds, np.bincount(members), strict=True)
        ]
        sums = [int(values[members == kind].sum()) for kind in range(len(groups))]
        _, plan, _ = registry.choose(groups, replace_one(groups, tilt=tilt))
        exact = query_values(plan, groups, sums)
        noise = [0] if isinstance(plan.noise, NoNoise) else source.draws(plan.noise, 1)[0].tolist()
        interval = plan.conclude([value + z for value, z in zip(exact, noise, strict=True)]).interval
        mean = int(values.sum()) / PEOPLE / GRID_SIZE
        missed += not interval.lower <= mean <= interval.upper
    return missed


@pytest.mark.parametrize(("correlation", "tilt"), [(0.2, 0.1), (0.5, 0.3), (0.0, 0.1)])
def test_within_its_tilt_an_interval_covers_what_it_states(source, correlation, tilt):
    assert misses(source, correlation, tilt) <= MOST_MISSES


def test_control_without_a_tilt_it_misses_people_who_differ(source):
    """It covers about a tenth of the time: a verdict that passes it has no power."""
    assert misses(source, 0.5, 0.0) > 3 * MOST_MISSES
