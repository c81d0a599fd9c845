"""The affine mean by a general solver: an oracle that shares no formula with the closed form."""

from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray

cp: Any = cvxpy  # its functions carry no types


def solve_weights(epsilons: NDArray[np.float64], variance: float = 0.25) -> NDArray[np.float64]:
    r"""Minimize variance * ||w||^2 + 2 eta^2 over the simplex under w_i <= epsilon_i * eta.

    CLARABEL at tolerance 1e-10 orders the constraints by how nearly they bind. For every cut of that
    order the quadratic program with the constraints before the cut as equalities is solved as one
    linear system (its KKT conditions), which removes the solver's own error. A cut counts only if its
    point is feasible and no multiplier is negative, which proves it optimal; the objective must not be
    worse than the solver's.

    Args:
        epsilons: Shape (n,), each positive or infinite.
        variance: Bound on the variance of the data.

    Returns:
        Weights, shape (n,).
    """
    n = epsilons.size
    finite = np.isfinite(epsilons)
    w, eta = cp.Variable(n), cp.Variable()  # w in units of 1/n, eta of 1/(n * mean epsilon)
    unit = float(epsilons[finite].mean()) if finite.any() else 1.0
    relative = np.where(finite, epsilons, 1.0) / unit
    noise = 2 / (n * unit) ** 2
    constraints = [cp.sum(w) == n, w >= 0]
    if finite.any():
        constraints.append(w[finite] <= cp.multiply(relative[finite], eta))
    objective = variance / n * cp.sum_squares(w) / n + noise * cp.square(eta)
    scale = max(variance / n, noise)
    problem = cp.Problem(cp.Minimize(objective / scale), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_iter=500)
    if problem.status != cp.OPTIMAL or w.value is None or eta.value is None:
        raise AssertionError(f"solver: {problem.status}")
    guess = np.asarray(w.value)
    slack = np.where(finite, relative * float(eta.value) - guess, np.inf) / np.maximum(guess, 1e-12)
    order = np.argsort(slack)
    best: tuple[float, NDArray[np.float64]] | None = None
    for cut in range(int(finite.sum()) + 1):
        bound = np.zeros(n, dtype=bool)
        bound[order[:cut]] = True
        polished = _kkt(relative, bound, variance / n**2, noise)
        if polished is None:
            continue
        point, eta_value = polished
        if np.any(point < -1e-12) or np.any(point[finite] > relative[finite] * eta_value * (1 + 1e-10)):
            continue
        value = variance / n**2 * float(point @ point) + noise * eta_value**2
        if best is None or value < best[0]:
            best = value, point
    if best is None:
        raise AssertionError("no active set satisfies the optimality conditions")
    if best[0] / scale > float(problem.value) * (1 + 1e-7):
        raise AssertionError("polishing made the solution worse")
    return best[1] / n


def _kkt(
    relative: NDArray[np.float64], bound: NDArray[np.bool_], quadratic: float, noise: float
) -> tuple[NDArray[np.float64], float] | None:
    """The minimum with w_i = relative_i * eta for `bound`; None where a multiplier is negative."""
    n = relative.size
    size = n + 1
    hessian = np.zeros((size, size))
    hessian[np.arange(n), np.arange(n)] = 2 * quadratic
    hessian[n, n] = 2 * noise
    rows = [np.append(np.ones(n), 0.0)]
    for index in np.flatnonzero(bound):
        row = np.zeros(size)
        row[index], row[n] = 1.0, -relative[index]
        rows.append(row)
    constraints = np.array(rows)
    many = constraints.shape[0]
    unit = max(quadratic, noise)
    system = np.block([[hessian / unit, constraints.T], [constraints, np.zeros((many, many))]])
    target = np.concatenate([np.zeros(size), [float(n)], np.zeros(many - 1)])
    try:
        solution = np.linalg.solve(system, target)
    except np.linalg.LinAlgError:
        return None
    if np.any(solution[size + 1 :] < -1e-9):
        return None
    return solution[:n], float(solution[n])
