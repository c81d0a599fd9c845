"""Do linear estimators err as predicted, and do their intervals cover as stated?

Data are worst case where nothing else is said: coin flips between the ends of the range, fresh in every
run, so that a group's sum is a binomial number. Noise enters through the plan's own query.
"""

import math

import numpy as np
import pytest

from app.core.cohort import Group
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace
from app.core.study import Trust
from app.estimators.adpm import Adpm
from app.estimators.hybrid import Kvh
from app.estimators.interface import UNIT_SCALE, Estimator
from app.estimators.reports import estimated_variance
from app.estimators.uniform import Uniform
from tests.statistical import Z
from tests.support.groups import central, local, public, replace_one
from tests.support.noise import SeededSource, noise_source, on_production_entropy
from tests.support.reports import report_scale

pytestmark = pytest.mark.statistical

RUNS = 140_000 if not on_production_entropy() else 30_000

PROFILES: dict[str, tuple[Estimator, list[Group]]] = {
    "uniform, one epsilon": (Uniform(), [central(0.3, 400)]),
    "uniform, two epsilons": (Uniform(), [central(0.2, 300), central(2.0, 200)]),
    "adpm, saturated": (Adpm(), [central(0.1, 700), central(2.0, 300)]),
    "adpm, public": (Adpm(), [central(0.3, 500), central(0.9, 100), public(40)]),
    "adpm, some left out": (Adpm(), [central(0.3, 500), central(0.9, 100, participates=False)]),
}
EXACT = {"uniform, one epsilon", "uniform, two epsilons"}


def simulate(source, groups, plan, p=0.5, runs=RUNS):
    """Errors against the dataset's and the population's mean; range [0, 1], not clipped."""
    (query,) = plan.queries
    (scale,) = plan.noise.scales
    sums = np.stack([source.people.binomial(g.count, p, runs) for g in groups]).astype(float)
    weights = np.array(query.sum_weights, dtype=float)
    mass = sum(w * g.count for w, g in zip(query.sum_weights, groups, strict=True))
    noise = source.laplace(scale, runs) / GRID_SIZE
    estimate = (weights @ sums + noise) / mass
    return estimate - sums.sum(0) / sum(g.count for g in groups), estimate - p


def margins(plan, groups):
    mass = sum(w * g.count for w, g in zip(plan.queries[0].sum_weights, groups, strict=True))
    conclusion = plan.conclude([mass * GRID_SIZE // 2])
    return conclusion.interval.upper - 0.5, conclusion.population_interval.upper - 0.5, conclusion


@pytest.mark.parametrize("profile", PROFILES)
def test_errors_are_as_large_as_predicted(source, profile):
    """The fourth moment of the error is at most 6 sigma^4 (Laplace), so the standard error of the mean
    square is at most sqrt(5 / runs) of it: 0.6 % of it at 140,000 runs, Z of that are 3.4 %."""
    estimator, groups = PROFILES[profile]
    plan = estimator.plan(groups, replace_one(groups))
    both = simulate(source, groups, plan)
    assert plan.population_error is not None
    for errors, predicted in zip(both, (plan.predicted_error, plan.population_error), strict=True):
        assert abs(float(np.mean(errors**2)) / predicted**2 - 1) < Z * math.sqrt(5 / RUNS)


@pytest.mark.parametrize("profile", PROFILES)
def test_control_a_prediction_without_its_noise_is_caught(source, profile):
    estimator, groups = PROFILES[profile]
    plan = estimator.plan(groups, replace_one(groups))
    mass = sum(w * g.count for w, g in zip(plan.queries[0].sum_weights, groups, strict=True))
    assert plan.population_error is not None
    wrong = plan.population_error**2 - 2 * (UNIT_SCALE / GRID_SIZE / mass) ** 2
    _, errors = simulate(source, groups, plan)
    assert abs(float(np.mean(errors**2)) / wrong - 1) > Z * math.sqrt(5 / RUNS)


@pytest.mark.parametrize("profile", sorted(EXACT))
def test_exact_intervals_cover_94_to_96_percent(source, profile):
    """95 % +- Z standard errors of a share, 0.33 % at 140,000 runs: within 94 to 96 %."""
    estimator, groups = PROFILES[profile]
    plan = estimator.plan(groups, replace_one(groups))
    dataset, _, conclusion = margins(plan, groups)
    assert conclusion.interval.coverage == "exact"
    errors, _ = simulate(source, groups, plan)
    tolerance = Z * math.sqrt(0.05 * 0.95 / RUNS)
    assert tolerance < 0.01
    assert abs(float(np.mean(np.abs(errors) <= dataset)) - 0.95) < tolerance


@pytest.mark.parametrize("profile", PROFILES)
def test_worst_case_intervals_cover_at_least_95_percent(source, profile):
    estimator, groups = PROFILES[profile]
    plan = estimator.plan(groups, replace_one(groups))
    dataset, population, conclusion = margins(plan, groups)
    assert conclusion.population_interval.coverage == "worst_case"
    tolerance = Z * math.sqrt(0.05 * 0.95 / RUNS)
    for p in (0.5, 0.1):
        about_dataset, about_population = simulate(source, groups, plan, p)
        assert float(np.mean(np.abs(about_population) <= population)) > 0.95 - tolerance
        if profile not in EXACT:
            assert conclusion.interval.coverage == "worst_case"
            assert float(np.mean(np.abs(about_dataset) <= dataset)) > 0.95 - tolerance


def test_control_a_normal_quantile_for_laplace_noise_is_caught(source):
    """1.96 standard errors instead of ln 20 scales cover 93.75 %."""
    groups = [central(0.5, 400)]
    plan = Uniform().plan(groups, replace_one(groups))
    _, _, conclusion = margins(plan, groups)
    errors, _ = simulate(source, groups, plan)
    covered = float(np.mean(np.abs(errors) <= 1.96 * conclusion.standard_error))
    assert covered < 0.95 - Z * math.sqrt(0.05 * 0.95 / RUNS)


def test_control_the_datasets_interval_does_not_cover_the_population(source):
    groups = [central(2.0, 400)]
    plan = Uniform().plan(groups, replace_one(groups))
    dataset, _, _ = margins(plan, groups)
    _, errors = simulate(source, groups, plan)
    assert float(np.mean(np.abs(errors) <= dataset)) < 0.9


# --------------------------------------------------------------------------------------- kvh

CENTRAL, LOCAL, EPSILON = 60, 300, 1.0
KVH_RUNS = 2000
"""Each draws 300 reports and concludes by the plan itself."""


@pytest.fixture(scope="module")
def kvh_runs():
    """Conclusions of `kvh` with the true dataset mean, coin flips, and the estimated variances."""
    source = noise_source("kvh_runs")
    reports_noise = source if isinstance(source, SeededSource) else SeededSource("kvh_runs")
    outcomes = []
    scale = report_scale(round(EPSILON * 1e6))
    noise = reports_noise.laplace(scale, KVH_RUNS * LOCAL).reshape(KVH_RUNS, LOCAL)
    central_noise = source.laplace(UNIT_SCALE, KVH_RUNS)
    for run in range(KVH_RUNS):
        values = source.people.integers(0, 2, LOCAL) * GRID_SIZE
        reports = [int(v) for v in values + noise[run]]
        total = int(source.people.binomial(CENTRAL, 0.5))
        groups = [central(EPSILON, CENTRAL), local(EPSILON, reports)]
        plan = Kvh().plan(groups, replace_one(groups, parameters={"variance": "estimated"}))
        (weight, _) = plan.queries[0].sum_weights
        assert plan.noise == DiscreteLaplace(scales=(UNIT_SCALE,))
        conclusion = plan.conclude([weight * total * GRID_SIZE + int(central_noise[run])])
        truth = (total + float(values.sum()) / GRID_SIZE) / (CENTRAL + LOCAL)
        outcomes.append((conclusion, truth, estimated_variance(groups[1:]), plan.population_error))
        assert groups[1].trust is Trust.LOCAL
    return outcomes


def test_kvh_intervals_cover_at_least_95_percent(kvh_runs):
    tolerance = Z * math.sqrt(0.05 * 0.95 / KVH_RUNS)
    covered = [c.interval.lower <= truth <= c.interval.upper for c, truth, _, _ in kvh_runs]
    assert float(np.mean(covered)) > 0.95 - tolerance
    covered = [c.population_interval.lower <= 0.5 <= c.population_interval.upper for c, _, _, _ in kvh_runs]
    assert float(np.mean(covered)) > 0.95 - tolerance
    assert {c.interval.coverage for c, _, _, _ in kvh_runs} == {"worst_case"}


def test_kvh_errs_as_predicted(kvh_runs):
    """Fourth moment at most 6 sigma^4 again; estimating v adds little where all data are worst case."""
    ratio = float(np.mean([(c.estimate - 0.5) ** 2 for c, _, _, _ in kvh_runs]))
    ratio /= float(np.mean([predicted**2 for _, _, _, predicted in kvh_runs]))
    assert abs(ratio - 1) < Z * math.sqrt(5 / KVH_RUNS)


def test_control_kvh_without_its_local_noise_is_caught(kvh_runs):
    """Sampling error alone explains less than half of the mean square."""
    ratio = float(np.mean([(c.estimate - 0.5) ** 2 for c, _, _, _ in kvh_runs]))
    assert abs(ratio / (0.25 / (CENTRAL + LOCAL)) - 1) > Z * math.sqrt(5 / KVH_RUNS)


def test_the_estimated_variance_is_unbiased_before_clipping(source):
    """Uniform data in the middle half of the range, v = 1/48, 20,000 reports at epsilon = 8, 10 times."""
    estimates = []
    for _ in range(10):
        values = source.people.integers(GRID_SIZE // 4, 3 * GRID_SIZE // 4, 20_000)
        noise = np.rint(source.people.laplace(0, report_scale(8_000_000), 20_000)).astype(np.int64)
        estimates.append(estimated_variance([local(8.0, [int(r) for r in values + noise])]))
    r = 2 / 64
    # Var of a squared deviation: mu4 - sigma^4 of the sum of uniform (mu4 = 1/1280) and Laplace (6 r^2).
    fourth = 1 / 1280 + 6 * r / 48 + 6 * r**2
    error = math.sqrt((fourth - (1 / 48 + r) ** 2) / (10 * 20_000))
    assert abs(float(np.mean(estimates)) - 1 / 48) < Z * error
    assert abs(float(np.mean(estimates)) + r - 1 / 48) > Z * error  # control: the noise not taken off
