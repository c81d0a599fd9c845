"""Do the estimators of replace_one studies err as predicted, and do their intervals cover as stated?

Data are worst case: coin flips between the ends of the range for the spread, and everybody at one end for the
bias of those that shrink. Each verdict stands beside a control that must fail it.
"""

import math

import numpy as np
import pytest

from app.core.cohort import Group, Reports
from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism, Trust
from app.estimators import registry
from app.estimators.hybrid import Kvh, Pwh
from app.estimators.interface import UNIT_SCALE, Estimator
from app.estimators.optimal import Optimal
from app.estimators.reports import estimated_variance
from dither_research.estimators import ESTIMATORS
from tests.statistical import Z
from tests.support.groups import central, micro, public, replace_one
from tests.support.linear import simulate, take_apart
from tests.support.noise import fresh_stand_in, noise_source, on_production_entropy
from tests.support.profiles import reports
from tests.support.reports import report_scale

pytestmark = pytest.mark.statistical

RUNS = 200_000 if not on_production_entropy() else 20_000
"""A fourth moment of at most 6 sigma^4 makes the standard error of a mean square sqrt(5 / runs): Z of those
are 2.9 % at 200,000 runs."""

TOLERANCE = Z * math.sqrt(5 / RUNS)

CENTRAL = [central(0.1, 200), central(0.5, 150), central(3.0, 80)]
LOCAL = [reports(1.0, 400), reports(4.0, 60)]
FEW = [central(0.3, 12), central(2.0, 7)]

SETTINGS: dict[str, tuple[str, list[Group], dict[str, object]]] = {
    "optimal, central": ("optimal", CENTRAL, {}),
    "optimal, mixed": ("optimal", [*CENTRAL, *LOCAL, public(5)], {}),
    "optimal, no central": ("optimal", [*LOCAL, public(5)], {}),
    "optimal, few, minimax": ("optimal", [*FEW, reports(1.0, 20)], {"shrinkage": "minimax"}),
    "optimal, few, unshrunk": ("optimal", FEW, {"shrinkage": "none"}),
    "optimal, capped": ("optimal", [*CENTRAL, *LOCAL], {"group_cap": {"local": 0.2}}),
    "kvh": ("kvh", [*CENTRAL, *LOCAL, public(5)], {}),
    "pwh": ("pwh", [*CENTRAL, *LOCAL], {}),
    "group_size": ("group_size", [*CENTRAL, *LOCAL], {}),
    "lm_only": ("lm_only", [*CENTRAL, *LOCAL], {}),
    "full_lm": ("full_lm", [central(1.0, 100), reports(1.0, 300)], {}),
    "proportional": ("proportional", CENTRAL, {}),
    "threshold": ("threshold", CENTRAL, {}),
    "fme": ("fme", CENTRAL, {}),
    "ldpe": ("ldpe", [*CENTRAL, public(20)], {}),
    "stretching": ("stretching", CENTRAL, {}),
    "sampling": ("sampling", [central(0.5, 200), central(1.0, 100), public(5)], {}),
}


@pytest.fixture(scope="module", params=SETTINGS)
def setting(request):
    """A plan taken apart, and its answers to coin flips and to everybody at the upper end."""
    name, groups, more = SETTINGS[request.param]
    estimator: Estimator = ESTIMATORS[name]
    parameters = {"variance": "worst_case", "noise": "laplace", "shrinkage": "noise", **more}
    question = registry.for_estimator(estimator, replace_one(groups, parameters=parameters))
    parts = take_apart(estimator, groups, question)
    source = noise_source(f"more estimators: {request.param}", by_commit=fresh_stand_in)
    return parts, {p: simulate(parts, source, p=p, runs=RUNS) for p in (0.5, 1.0)}


def mean_square(outcomes, p):
    return float(np.mean((outcomes.answers - p) ** 2))


def test_errors_are_as_large_as_predicted(setting):
    """At the worse of the two laws within 3 %; no worse at the other."""
    parts, outcomes = setting
    found = max(mean_square(runs, p) for p, runs in outcomes.items())
    assert TOLERANCE < 0.03 or on_production_entropy()
    assert abs(found / parts.plan.population_error**2 - 1) < TOLERANCE


def test_control_a_prediction_that_is_5_percent_off_is_caught(setting):
    parts, outcomes = setting
    found = max(mean_square(runs, p) for p, runs in outcomes.items())
    for factor in (0.95, 1.05):
        if not on_production_entropy():
            assert abs(found / (factor * parts.plan.population_error**2) - 1) > 0.75 * TOLERANCE


def test_intervals_cover_at_least_95_percent_and_exact_ones_95(setting):
    """About the answer before shrinking, which is where they lie."""
    parts, outcomes = setting
    tolerance = Z * math.sqrt(0.05 * 0.95 / RUNS)
    for p, runs in outcomes.items():
        position = 0.5 + (runs.answers - 0.5) / parts.shrinkage
        dataset = float(np.mean(np.abs(position - runs.means) <= parts.margins[0]))
        assert float(np.mean(np.abs(position - p) <= parts.margins[1])) > 0.95 - tolerance
        assert dataset > 0.95 - tolerance
        if parts.conclusion.interval.coverage == "exact":
            assert abs(dataset - 0.95) < tolerance


def test_control_half_an_interval_does_not_cover(setting):
    parts, outcomes = setting
    position = 0.5 + (outcomes[0.5].answers - 0.5) / parts.shrinkage
    assert float(np.mean(np.abs(position - 0.5) <= parts.margins[1] / 2)) < 0.9


# ------------------------------------------------------------------------------- the variance from reports


@pytest.fixture(scope="module")
def plug_in():
    """Squared errors of `kvh` with the estimated variance and of `pwh`, on the same Uniform data and noise.

    n = 10^4, 5 % central, epsilon = 1.
    """
    n, n_central, runs = 10_000, 500, 1200
    source = noise_source("plug-in variance")
    people, scale = source.people, report_scale(micro(1.0)) / GRID_SIZE
    squares: dict[str, list[float]] = {"kvh": [], "pwh": [], "variance": []}
    noises = source.laplace(UNIT_SCALE, runs)
    for run in range(runs):
        values = people.random(n)
        sent = values[n_central:] + people.laplace(0, scale, n - n_central)
        group = Group(
            trust=Trust.LOCAL,
            epsilon=micro(1.0),
            count=n - n_central,
            reports=Reports(
                mechanism=LocalMechanism.LAPLACE,
                total=round(float(sent.sum()) * GRID_SIZE),
                total_squares=round(float(sent @ sent) * GRID_SIZE) * GRID_SIZE,
            ),
        )
        groups = [central(1.0, n_central), group]
        question = replace_one(groups, parameters={"noise": "laplace"})
        total = round(float(values[:n_central].sum()) * GRID_SIZE)
        for estimator in (Kvh(), Pwh()):
            plan = estimator.plan(groups, question)
            value = plan.queries[0].sum_weights[0] * total + int(noises[run])
            squares[estimator.name].append((plan.conclude([value]).estimate - float(values.mean())) ** 2)
        squares["variance"].append(estimated_variance([group]))
    return {name: np.array(found) for name, found in squares.items()}


def test_the_estimated_variance_makes_kvh_30_percent_better_than_pwh(plug_in):
    assert float(plug_in["kvh"].mean()) <= 0.70 * float(plug_in["pwh"].mean())


def test_the_estimated_variance_is_that_of_the_data(plug_in):
    """1/12, clipped at 0 and 1/4 (two standard deviations away), within Z standard errors."""
    found = plug_in["variance"]
    assert abs(float(found.mean()) - 1 / 12) < Z * float(found.std()) / math.sqrt(found.size)


# ------------------------------------------------------------------------------- reports that are bounded


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_duchi_reports_err_as_predicted_and_are_covered(epsilon):
    """Of people at the ends each report is one of two values, both equally likely for a fair coin."""
    count = 300
    group = reports(epsilon, count, LocalMechanism.DUCHI)
    plan = Optimal().plan(
        [group], replace_one([group], parameters={"variance": "worst_case", "shrinkage": "none"})
    )
    source = noise_source(f"duchi {epsilon}")
    reach = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1) / 2
    answers = 0.5 + reach * (2 * source.people.binomial(count, 0.5, RUNS) / count - 1)
    found = float(np.mean((answers - 0.5) ** 2))
    assert plan.population_error is not None
    assert abs(found / plan.population_error**2 - 1) < TOLERANCE
    margin = plan.conclude([0]).population_interval.upper - 0.5
    covered = float(np.mean(np.abs(answers - 0.5) <= margin))
    assert covered > 0.95 - Z * math.sqrt(0.05 * 0.95 / RUNS)
    assert plan.conclude([0]).interval.coverage == "worst_case"
