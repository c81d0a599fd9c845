"""The simulation itself: laws, noise, and that plans are read as they read themselves."""

import math

import numpy as np
import pytest

from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, NoNoise
from app.mechanisms.hourglass import hourglass, hourglass_moments
from dither_research.baselines.sampling import inclusion_of
from dither_research.people import Bernoulli, Beta, central, draw_sample, draw_sums, public
from dither_research.seeded import draw_noise, random_bits, seeded
from dither_research.simulation import (
    average,
    moments,
    plan_of,
    query_values,
    reading,
    simulate,
    square_error_of,
)
from dither_research.staircase import staircase, staircase_variance
from tests.statistical import Z

GROUPS = [central(0.1, 700), central(0.5, 300), public(20)]
LINEAR = ["uniform", "adpm", "proportional", "threshold", "fme", "ldpe", "sampling"]
RUNS = 40_000


def test_the_same_name_gives_the_same_numbers():
    assert np.array_equal(seeded("a").random(5), seeded("a").random(5))
    assert not np.array_equal(seeded("a").random(5), seeded("b").random(5))


@pytest.mark.parametrize("law", [Bernoulli(0.3), Beta(2, 3)])
@pytest.mark.parametrize("count", [7, 5000])
def test_sums_have_the_mean_and_the_variance_of_the_law(law, count):
    sums = draw_sums(law, count, RUNS, seeded("sums"))
    error = math.sqrt(count * law.variance / RUNS)
    assert abs(sums.mean() - count * law.mean) < Z * error
    assert sums.var() == pytest.approx(count * law.variance, rel=Z * math.sqrt(2.5 / RUNS))


@pytest.mark.parametrize("count", [50, 5000])
def test_a_sample_is_part_of_everybody(count):
    sample = draw_sample(Beta(2, 3), count, 0.2, RUNS, seeded("sample"))
    assert sample.count.mean() == pytest.approx(0.2 * count, abs=Z * math.sqrt(0.16 * count / RUNS))
    law = Beta(2, 3)
    variance = count * (0.2 * law.variance + 0.16 * law.mean**2)
    assert sample.total.var() == pytest.approx(variance, rel=Z * math.sqrt(2.5 / RUNS))
    assert np.cov(sample.total, sample.whole)[0, 1] == pytest.approx(
        count * 0.2 * law.variance, rel=Z * math.sqrt(20 / RUNS)
    )


@pytest.mark.parametrize(
    ("noise", "variance"),
    [
        (DiscreteLaplace(scales=(50.0,)), 2 * 50.0**2),
        (DiscreteGaussian(sigmas=(100.0,)), 100.0**2),
    ],
)
def test_noise_is_as_wide_as_it_says(noise, variance):
    values = draw_noise(noise, queries=1, runs=RUNS, random=seeded("noise"))
    assert np.array_equal(values, np.rint(values))
    assert values.var() == pytest.approx(variance, rel=Z * math.sqrt(5 / RUNS))


@pytest.mark.long
def test_staircase_and_hourglass_noise_have_their_variances():
    runs, step = 4000, staircase(1000, 1_000_000)
    values = draw_noise(step, queries=1, runs=runs, random=seeded("staircase"))
    assert values.var() == pytest.approx(staircase_variance(step), rel=Z * math.sqrt(6 / runs))
    pair = hourglass(1000, 1_000_000)
    first, second = draw_noise(pair, queries=2, runs=runs, random=seeded("hourglass"))
    variance, _ = hourglass_moments(pair)
    assert first.var() == pytest.approx(variance, rel=Z * math.sqrt(8 / runs))
    assert second.var() == pytest.approx(variance, rel=Z * math.sqrt(8 / runs))


def test_noise_for_another_number_of_queries_is_refused():
    with pytest.raises(InternalFault):
        draw_noise(DiscreteLaplace(scales=(1.0,)), queries=2, runs=3, random=seeded("x"))
    assert draw_noise(NoNoise(), queries=2, runs=3, random=seeded("x")).tolist() == [[0.0] * 3] * 2


def test_random_bits_are_uniform():
    bits = random_bits(seeded("bits"))
    counts = np.bincount([bits(3) for _ in range(8000)], minlength=8)
    assert counts.size == 8
    assert float(((counts - 1000) ** 2 / 1000).sum()) < 45  # chi-square, 7 degrees of freedom, 1e-7


@pytest.mark.parametrize("name", [*LINEAR, "stretching", "optimal"])
def test_a_plan_is_read_as_it_reads_itself(name):
    plan = plan_of(name, GROUPS)
    counts = np.array([[float(group.count)] for group in GROUPS])
    share = 1.0 if inclusion_of(plan) is None else 0.1
    exact = query_values(plan, share * counts, share * counts * np.array([[0.4], [0.55], [0.6]]))
    values = exact + draw_noise(plan.noise, queries=len(exact), runs=20, random=seeded(name)) / 10
    estimates = reading(plan, GROUPS)(values)
    for column, estimate in zip(values.T, estimates, strict=True):
        said = plan.conclude([round(value) for value in column]).estimate
        assert said == pytest.approx(min(max(estimate, 0.0), 1.0), abs=1e-9)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("law", [Bernoulli(), Beta(2, 3)])
def test_simulated_errors_are_the_exact_ones(name, law):
    """The kurtosis of the error is at most 6, so the mean square is right to sqrt(5 / runs)."""
    plan = plan_of(name, GROUPS)
    found = simulate(plan, GROUPS, law, RUNS, seeded(name))
    measured, error = found.square_error(law.mean)
    exact = moments(plan, GROUPS).square_error(law)
    assert abs(measured / exact - 1) < Z * math.sqrt(5 / RUNS)
    excess, _ = found.excess(law.mean)
    people = sum(group.count for group in GROUPS)
    assert excess == pytest.approx(
        measured - law.variance / people, abs=Z * (error + law.variance / people / 50)
    )
    if isinstance(law, Bernoulli):
        assert exact == pytest.approx(square_error_of(plan), rel=1e-9)


def test_control_the_error_of_another_plan_is_told_apart():
    found = simulate(plan_of("adpm", GROUPS), GROUPS, Bernoulli(), RUNS, seeded("control"))
    measured, _ = found.square_error(0.5)
    other = moments(plan_of("uniform", GROUPS), GROUPS).square_error(Bernoulli())
    assert abs(measured / other - 1) > Z * math.sqrt(5 / RUNS)


def test_a_plan_that_shrinks_is_not_taken_apart():
    with pytest.raises(InternalFault):
        moments(plan_of("stretching", GROUPS), GROUPS)


def test_averages_come_with_standard_errors():
    assert average(np.array([1.0, 3.0])) == (2.0, 1.0)
    assert average(np.array([5.0])) == (5.0, 0.0)


def test_values_of_the_grid_are_counted_in_grid_steps():
    plan = plan_of("uniform", [central(1.0, 10)])
    values = query_values(plan, np.array([[10.0]]), np.array([[4.0]]))
    assert values[0, 0] == 4 * GRID_SIZE * 1_000_000
