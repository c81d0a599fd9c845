"""The exact solution of the affine mean: against a general solver, its special cases and its limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.accuracy import noise_shrinkage, worst_square_error
from app.estimators.adpm import saturation_point
from app.estimators.affine import AffineProblem, best_shrinkage
from tests.support.profiles import Problem

NONE = np.zeros(0)


def error(solution, variance):
    return variance * solution.squares + solution.noise


def minimax_error(problem, variance):
    solution = problem.minimax(variance)
    shrinkage = best_shrinkage(solution.squares, solution.noise, variance)
    return worst_square_error(shrinkage**2 * solution.squares, solution.noise, variance, shrinkage=shrinkage)


def random_instance(rng):
    """(epsilons, counts, public, noises, reports, variance) of somebody at least."""
    k, h = int(rng.integers(0, 12)), int(rng.integers(0, 6))
    known = float(rng.choice([0, 0, 3, 40]))
    if not k and not h and not known:
        k = 1
    return (
        np.exp(rng.uniform(-4, 3, k)),
        rng.integers(1, 60, k).astype(float),
        known,
        np.exp(rng.uniform(-3, 5, h)),
        rng.integers(1, 300, h).astype(float),
        float(rng.choice([0.25, 0.25, 1 / 12, 0.01])),
    )


@pytest.mark.long
def test_there_is_no_gap_to_a_general_solver_on_300_random_instances():
    """Never worse than the solver's weights, and nowhere better by more than the solver is inexact."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        epsilons, counts, known, noises, reports, variance = random_instance(rng)
        problem = AffineProblem(epsilons, counts, public=known, noises=noises, reports=reports)
        ours = error(problem.solve(variance), variance)
        solver = Problem(epsilons, counts, known, noises, reports, variance).best_error(ours)
        assert ours <= solver * (1 + 1e-12)
        assert ours == pytest.approx(solver, rel=1e-6)


@pytest.mark.long
def test_nor_with_shrinking_on_100():
    rng = np.random.default_rng(12)
    for _ in range(100):
        epsilons, counts, known, noises, reports, variance = random_instance(rng)
        problem = AffineProblem(epsilons, counts, public=known, noises=noises, reports=reports)
        ours = minimax_error(problem, variance)
        solver = Problem(epsilons, counts, known, noises, reports, variance).minimax_error(ours)
        assert ours <= solver * (1 + 1e-9)
        assert ours == pytest.approx(solver, rel=1e-5)


@pytest.mark.parametrize(("people", "ratio"), [(1000, 0.935), (20, 0.60)])
def test_shrinking_gains_what_it_should(people, ratio):
    """Half at epsilon 0.1, half at 1: error over that of the unshrunk optimum (at most the midpoint's)."""
    problem = AffineProblem(np.array([0.1, 1.0]), np.full(2, people / 2))
    unshrunk = min(error(problem.solve(0.25), 0.25), 0.25)
    assert minimax_error(problem, 0.25) / unshrunk == pytest.approx(ratio, abs=0.005)


def test_without_reports_it_is_adpm():
    rng = np.random.default_rng(3)
    for _ in range(200):
        epsilons = np.exp(rng.uniform(-4, 3, int(rng.integers(1, 30))))
        counts = rng.integers(1, 50, epsilons.size).astype(float)
        known = float(rng.choice([0, 5]))
        variance = float(rng.choice([0.25, 0.01]))
        solution = AffineProblem(epsilons, counts, public=known).solve(variance)
        tau = saturation_point(epsilons, counts, public=known > 0, variance=variance)
        assert solution.tau == pytest.approx(tau, rel=1e-12)
        kept = np.minimum(epsilons, tau)
        mass = float(np.dot(counts, kept)) + (known * tau if known else 0.0)
        assert solution.eta == pytest.approx(1 / mass, rel=1e-12)


def test_with_one_central_epsilon_it_is_kvh():
    """w* = c (v + sL2) / (v + c (n sT2 (1 - c) + sL2))."""
    for n_central, n_local, epsilon, v in [(50, 950, 1.0, 0.25), (10, 90, 0.3, 0.02), (500, 20, 4.0, 0.1)]:
        n, c = n_central + n_local, n_central / (n_central + n_local)
        s_l, s_t = 2 / epsilon**2, 2 / (n_central * epsilon) ** 2
        expected = c * (v + s_l) / (v + c * (n * s_t * (1 - c) + s_l))
        solution = AffineProblem(
            np.array([epsilon]),
            np.array([float(n_central)]),
            noises=np.array([s_l]),
            reports=np.array([float(n_local)]),
        ).solve(v)
        assert n_central * min(epsilon, solution.tau) * solution.eta == pytest.approx(expected, rel=1e-12)
        assert solution.reports[0] * n_local == pytest.approx(1 - expected, rel=1e-12)


def test_the_limits_are_continuous():
    """A variance of 0 and a tiny one; nobody central; public people with a tiny variance."""
    epsilons, counts = np.array([0.1, 2.0]), np.array([30.0, 10.0])
    noises, reports = np.array([2.0, 0.5]), np.array([100.0, 50.0])
    mixed = AffineProblem(epsilons, counts, noises=noises, reports=reports)
    assert mixed.solve(0.0).noise == pytest.approx(mixed.solve(1e-13).noise, rel=1e-6)
    alone = AffineProblem(NONE, NONE, noises=noises, reports=reports)
    assert alone.solve(0.0).noise == pytest.approx(1 / float(np.sum(reports / noises)), rel=1e-12)
    known = AffineProblem(epsilons, counts, public=3.0)
    assert error(known.solve(0.0), 0.0) == 0
    assert error(known.solve(1e-9), 1e-9) == pytest.approx(1e-9 / 3, rel=1e-3)
    assert math.isinf(AffineProblem(NONE, NONE).solve(0.25).noise)


def test_a_million_nearly_equal_epsilons_are_as_good_as_a_thousand_groups():
    rng = np.random.default_rng(5)
    epsilons = np.exp(rng.uniform(-4, 2, 1_000))
    distinct = np.repeat(epsilons, 1_000) * (1 + 1e-9 * rng.uniform(-1, 1, 1_000_000))
    assert np.unique(distinct).size > 999_000
    apart = minimax_error(AffineProblem(distinct, np.ones(distinct.size)), 0.25)
    together = minimax_error(AffineProblem(epsilons, np.full(epsilons.size, 1_000.0)), 0.25)
    assert apart == pytest.approx(together, rel=1e-7)


@given(
    squares=st.floats(1e-6, 1),
    noise=st.floats(0, 10),
    variance=st.sampled_from([0.25, 0.1, 0.001, 0.0]),
    tilt=st.sampled_from([0.0, 0.1, 0.7]),
    moved=st.floats(0, 1),
)
def test_no_other_shrinkage_is_better(squares, noise, variance, tilt, moved):
    bias = tilt * moved

    def worst(a):
        return worst_square_error(a * a * squares, noise, variance, shrinkage=a, bias=bias, tilt=tilt)

    best = worst(best_shrinkage(squares, noise, variance, bias=bias, tilt=tilt))
    for a in np.linspace(0, 1, 101):
        assert best <= worst(float(a)) * (1 + 1e-9) + (1e-7 if tilt else 0)
    warranted = noise_shrinkage(noise)
    assert warranted**2 * noise + (1 - warranted) ** 2 / 4 == pytest.approx(noise * warranted)


@given(data=st.data(), a=st.floats(0, 1))
def test_the_worst_error_is_the_largest_over_all_means(data, a):
    """By a grid of means; each group's variance is at most its own bound and 1/4 - d^2."""
    size = data.draw(st.integers(1, 4))
    squares = np.array(data.draw(st.lists(st.floats(1e-4, 1), min_size=size, max_size=size)))
    bounds = np.array(data.draw(st.lists(st.floats(0, 0.25), min_size=size, max_size=size)))
    noise = data.draw(st.floats(0, 1))
    found = worst_square_error(a * a * squares, noise, bounds, shrinkage=a)
    means = np.linspace(0, 0.25, 2001)
    by_grid = max(
        a * a * (float(np.dot(np.minimum(bounds, 0.25 - d2), squares)) + noise) + (1 - a) ** 2 * d2
        for d2 in means
    )
    assert by_grid <= found * (1 + 1e-12) + 1e-15
    assert found <= by_grid * (1 + 1e-9) + 2 * 0.25 / 2000 * (squares.sum() + 1)
