"""Random profiles of people, and the errors of the optimal mean by a general solver."""

import warnings
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group, Reports
from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism, Trust
from tests.support.groups import central, micro, public

cp: Any = cvxpy  # its functions carry no types


def reports(epsilon: float, count: int, mechanism: LocalMechanism = LocalMechanism.LAPLACE) -> Group:
    """A group of reports that all say the middle of the range."""
    half = GRID_SIZE // 2
    return Group(
        trust=Trust.LOCAL,
        epsilon=micro(epsilon),
        count=count,
        reports=Reports(mechanism=mechanism, total=half * count, total_squares=half * half * count),
    )


def mixed_profile(rng: np.random.Generator) -> list[Group]:
    """Up to six central groups, up to three local ones, sometimes public people, sometimes tiny."""
    most = int(rng.choice([3, 40, 2000]))
    spread = float(rng.choice([0.02, 1.0, 3.0]))
    start = float(rng.uniform(-4, 2))
    groups = [
        central(float(np.exp(start + spread * rng.uniform(-1, 1))), int(rng.integers(1, most + 1)))
        for _ in range(int(rng.integers(0, 7)))
    ]
    mechanism = LocalMechanism(rng.choice([one for one in LocalMechanism if one != LocalMechanism.GAUSSIAN]))
    groups += [
        reports(float(np.exp(rng.uniform(-2, 2))), int(rng.integers(1, most + 1)), mechanism)
        for _ in range(int(rng.integers(0, 4)))
    ]
    if rng.random() < 0.3 or not groups:
        groups.append(public(int(rng.integers(1, most + 1))))
    return groups


class Problem:
    """The optimal mean as a convex program, without any formula of the closed form.

    Args:
        epsilons, counts: Central groups.
        public: People without noise.
        noises, reports: Local groups.
        variance: Bound on the variance of the data.
    """

    def __init__(
        self,
        epsilons: NDArray[np.float64],
        counts: NDArray[np.float64],
        public: float,
        noises: NDArray[np.float64],
        reports: NDArray[np.float64],
        variance: float,
    ) -> None:
        self.epsilons, self.variance = epsilons, variance
        self.heads = np.concatenate([counts, [public] if public else [], reports])
        self.noises = np.concatenate([np.zeros(counts.size + bool(public)), noises])
        self.central = counts.size
        # Shares of the whole weight, in the order central, public, local; eta times everybody's epsilons.
        self.share, self.eta = cp.Variable(self.heads.size, nonneg=True), cp.Variable(nonneg=True)
        self.unit = float(np.dot(epsilons, counts)) if counts.size else 1.0
        self.squares = cp.sum(cp.multiply(1 / self.heads, cp.square(self.share)))
        self.noise = cp.sum(cp.multiply(self.noises / self.heads, cp.square(self.share)))
        self.noise += 2 / self.unit**2 * cp.square(self.eta)
        self.constraints = []
        if counts.size:
            bought = epsilons * counts / self.unit
            self.constraints.append(self.share[: counts.size] <= cp.multiply(bought, self.eta))

    def feasible_error(self, share: NDArray[np.float64]) -> tuple[float, float, float]:
        """(squares, noise, sum) of shares, with the noise that these really need."""
        share = np.maximum(share, 0)
        weights = share[: self.central] / self.heads[: self.central]
        eta = float(np.max(weights / self.epsilons)) if self.central else 0.0
        noise = float(np.dot(self.noises / self.heads, share**2)) + 2 * eta**2
        return float(np.dot(1 / self.heads, share**2)), noise, float(share.sum())

    def _solve(self, objective: Any, constraints: list[Any]) -> NDArray[np.float64]:
        problem = cp.Problem(cp.Minimize(objective), [*self.constraints, *constraints])
        with warnings.catch_warnings():
            # What it finds is evaluated anew, so an inexact solution is no worse than a loose bound.
            warnings.simplefilter("ignore", UserWarning)
            problem.solve(
                solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_iter=500
            )
        if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) or self.share.value is None:
            raise AssertionError(f"solver: {problem.status}")
        return np.asarray(self.share.value)

    def best_error(self, guess: float) -> float:
        """The smallest worst-case error without shrinking, of the solver's own weights."""
        objective = (self.variance * self.squares + self.noise) / guess
        squares, noise, total = self.feasible_error(self._solve(objective, [cp.sum(self.share) == 1]))
        return (self.variance * squares + noise) / total**2

    def minimax_error(self, guess: float) -> float:
        """The smallest worst-case error with shrinking: the weights add up to less than one."""
        top, missing = cp.Variable(), cp.square(1 - cp.sum(self.share))
        at_middle = self.variance * self.squares + self.noise + (0.25 - self.variance) * missing
        at_end = self.noise + missing / 4
        share = self._solve(top, [top >= at_middle / guess, top >= at_end / guess])
        squares, noise, total = self.feasible_error(share)
        rest = (1 - total) ** 2
        return max(self.variance * squares + noise + (0.25 - self.variance) * rest, noise + rest / 4)
