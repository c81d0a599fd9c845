"""The closed form of the affine estimator, beside a general convex solver."""

import time
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray

from app.estimators.adpm import saturation_point
from benchmarks.report import Ratio

cp: Any = cvxpy  # its functions carry no types

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000,)


def run(*, quick: bool) -> list[Ratio]:
    """Distinct epsilons, log-uniform, one person each."""
    results = []
    for size in QUICK_SIZES if quick else SIZES:
        subject: list[float] = []
        baseline: list[float] = []
        for number in range(2 if quick else 3):
            epsilons = np.exp(np.random.default_rng(number).uniform(-4, 2, size))
            started = time.perf_counter()
            saturation_point(epsilons, np.ones(size), public=False)
            subject.append(time.perf_counter() - started)
            started = time.perf_counter()
            solve(epsilons)
            baseline.append(time.perf_counter() - started)
        results.append(
            Ratio(
                section="solver",
                name=f"{size:,} distinct epsilons",
                unit="s",
                subject=subject,
                baseline=baseline,
                better="lower",
                note="solver: app.estimators.adpm beside cvxpy with CLARABEL",
            )
        )
    return results


def solve(epsilons: NDArray[np.float64]) -> None:
    """min |w|^2 / 4 + 2 eta^2 subject to sum w = 1, 0 <= w <= epsilon eta."""
    weights, eta = cp.Variable(epsilons.size, nonneg=True), cp.Variable(nonneg=True)
    problem = cp.Problem(
        cp.Minimize(cp.sum_squares(weights) / 4 + 2 * cp.square(eta)),
        [cp.sum(weights) == 1, weights <= eta * epsilons],
    )
    problem.solve(solver=cp.CLARABEL)
    if problem.status != cp.OPTIMAL:
        raise RuntimeError(f"the solver says {problem.status}")
