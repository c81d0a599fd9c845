r"""The affine mean of the smallest worst-case error, for personal epsilons, reports and public data together.

With the range's width 1, minimize

.. math:: s \Big(\sum_i w_i^2 + \sum_h m_h v_h^2\Big) + 2 \eta^2 + \sum_h m_h v_h^2 r_h

over weights that sum to one, :math:`w_i \le \epsilon_i \eta`. The multiplier of the sum gives
:math:`w_i = \eta \min(\epsilon_i, \tau)`, :math:`v_h = \eta \tau s / (s + r_h)`, and the condition on eta
gives :math:`\tau = (E_2 + 2 / s) / E_1` with E_1, E_2 the sums of epsilon and epsilon^2 over those below
tau. Whether the k-th epsilon is one of them depends on :math:`H_k = \sum_{i \le k} \epsilon_i (\epsilon_k -
\epsilon_i)` alone, so that one sort answers for every s.

References:
    Chaudhuri, Courtade, "Mean Estimation Under Heterogeneous Privacy: Some Privacy Can Be Free",
    arXiv:2305.09668, Algorithm 1 (without reports; solved there numerically).
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from app.estimators.accuracy import noise_shrinkage, worst_square_error
from app.estimators.roots import brentq
from app.estimators.tilted import TiltedProblem

_SMALLEST, _LAST_DIGIT = 1e-300, 4 * float(np.finfo(float).eps)
"""A root is searched to the last digit of a double."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Weights of the optimal affine mean, before shrinking; they sum to one.

    Attributes:
        eta: Weight of one person per epsilon, below tau; 0 without central people [1].
        tau: Saturation point; infinite where no person saturates [1].
        public: Weight of one public person [1].
        reports: Weight of one report of each local group, shape (H,) [1].
        squares: Sum of all squared weights [1].
        noise: Variance of all noise [range width squared].
        bias: The most that unequal weights move the mean by, within the tilt [range widths].
    """

    eta: float
    tau: float
    public: float
    reports: NDArray[np.float64]
    squares: float
    noise: float
    bias: float = 0.0


class AffineProblem:
    """One profile of people, prepared for any variance of the data.

    Args:
        epsilons: float64 array of shape (K,), in (0, 1e150], in any order [1].
        counts: float64 array of shape (K,), people with each epsilon.
        public: People with epsilon = infinity.
        noises: float64 array of shape (H,), noise variance of the reports of each local group, above 0
            [range width squared].
        reports: float64 array of shape (H,), reports of each local group.
        tilt: How far means of people who weigh much and little may differ [range widths].
        people: All people of the study, where there is a tilt; who is in none of these groups weighs 0.
        stands: How many people a report of each local group stands for, shape (H,), where not one.

    Privacy: epsilons and group sizes are public under replace_one; no data, no randomness.
    Cost: O(K log K) here, O(log K + H) for each `solve`; with a tilt see `app.estimators.tilted`.
    """

    __slots__ = (
        "_bound",
        "_counts",
        "_epsilons",
        "_first",
        "_gaps",
        "_people",
        "_second",
        "_stands",
        "_study",
        "noises",
        "public",
        "reports",
        "tilt",
    )

    def __init__(
        self,
        epsilons: NDArray[np.float64],
        counts: NDArray[np.float64],
        *,
        public: float = 0.0,
        noises: NDArray[np.float64] | None = None,
        reports: NDArray[np.float64] | None = None,
        tilt: float = 0.0,
        people: float = 0.0,
        stands: NDArray[np.float64] | None = None,
    ) -> None:
        order = np.argsort(epsilons, kind="stable")
        self._epsilons = epsilons[order]
        self._counts = counts[order]
        weighted = self._counts * self._epsilons
        self._first = np.cumsum(weighted)
        self._second = np.cumsum(weighted * self._epsilons)
        self._bound = np.cumsum(self._counts)
        self._people = float(self._bound[-1]) if self._bound.size else 0.0
        # H at each epsilon: a cumulative sum of terms that are not negative, so it never falls.
        self._gaps = np.zeros_like(self._epsilons)
        if self._epsilons.size:
            self._gaps[1:] = np.cumsum(np.diff(self._epsilons) * self._first[:-1])
        self.public = public
        self.noises = np.zeros(0) if noises is None else noises
        self.reports = np.zeros(0) if reports is None else reports
        self.tilt, self._study = tilt, people
        self._stands = np.ones_like(self.reports) if stands is None else stands

    def solve(self, variance: float) -> Solution:
        """The optimal weights for one variance of the data.

        Args:
            variance: s, in [0, 1/4] [range width squared]; 0 keeps its meaning as a limit.

        Returns:
            The solution; without people, zero weights with infinite noise.

        Privacy: no data, no randomness.
        """
        untilted = self._untilted(variance)
        if not self.tilt or math.isinf(untilted.noise):
            return untilted
        return self._tilted(variance, untilted.eta)

    def _tilted(self, s: float, start: float) -> Solution:
        eta, level, shares = TiltedProblem(
            self._epsilons,
            self._counts,
            public=self.public,
            noises=self.noises,
            reports=self.reports,
            variance=s,
            tilt=self.tilt,
            people=self._study,
            stands=self._stands,
        ).solve(start or 1 / float(self._first[-1]) if self._epsilons.size else 1.0)
        free = self.public > 0 or self.reports.size > 0
        tau = level / eta if eta and (free or level < eta * self._epsilons[-1]) else math.inf
        within = self._people + self.public + float(np.dot(self.reports, self._stands))
        equal = 1 / max(self._study, within)
        weights = np.concatenate((np.minimum(eta * self._epsilons, level), [level], shares))
        sizes = np.concatenate((self._counts, [self.public], self.reports))
        due = equal * np.concatenate((np.ones(self._counts.size + 1), self._stands))
        return Solution(
            eta=eta,
            tau=tau,
            public=level if self.public else 0.0,
            reports=shares,
            squares=float(np.dot(sizes, weights**2)),
            noise=2 * eta**2 + float(np.dot(self.reports, shares**2 * self.noises)),
            bias=self.tilt
            * (float(np.dot(sizes, np.abs(weights - due))) + max(self._study - within, 0.0) * equal)
            / 2,
        )

    def _untilted(self, s: float) -> Solution:
        # Without variance one public value is the exact mean: it takes all of the weight.
        if s == 0 and self.public:
            return Solution(
                eta=0.0,
                tau=math.inf,
                public=1 / self.public,
                reports=np.zeros_like(self.noises),
                squares=1 / self.public,
                noise=0.0,
            )
        if not self._epsilons.size:
            return self._without_central(s)
        # Who saturates: the gaps H rise with epsilon, and tau lies between the two offers where H passes
        # 2 / s. So groups before `index` weigh their epsilon, the others tau.
        free = self.public > 0 or self.reports.size > 0
        index = int(np.searchsorted(self._gaps, 2 / s, side="left")) if s > 0 else self._gaps.size
        # All offers lie below tau, and there are no public people or reports that could take weight.
        if index == self._gaps.size and not free:
            return self._unsaturated()
        # Tau from the sums over the unsaturated groups, and from it the weight of each report, with its own
        # noise. Computed as tau s, because tau alone is infinite for s = 0.
        first, second = float(self._first[index - 1]), float(self._second[index - 1])
        lifted = (2 + s * second) / first  # tau s, finite in the limit s = 0
        tau = lifted / s if s > 0 else math.inf
        shares = lifted / (s + self.noises)
        # Add up weights and squared weights: unsaturated central people, reports, and all who weigh tau. An
        # infinite tau times no people would be NaN, so the last is skipped where there are none.
        saturated = self._people - float(self._bound[index - 1])
        mass = first + float(np.dot(self.reports, shares))
        squares = second + float(np.dot(self.reports, shares**2))
        if saturated + self.public:
            mass += tau * (saturated + self.public)
            squares += tau**2 * (saturated + self.public)
        # Scale all weights so that they sum to 1. The noise is one Laplace of scale eta, with variance
        # 2 eta^2, and that of the reports.
        eta = 1 / mass
        return Solution(
            eta=eta,
            tau=tau,
            public=tau * eta if self.public else 0.0,
            reports=shares * eta,
            squares=squares * eta**2,
            noise=(2 + float(np.dot(self.reports, shares**2 * self.noises))) * eta**2,
        )

    def _unsaturated(self) -> Solution:
        """Weights in proportion to epsilon: no person saturates, and no group can take more."""
        eta = 1 / float(self._first[-1])
        return Solution(
            eta=eta,
            tau=math.inf,
            public=0.0,
            reports=np.zeros_like(self.noises),
            squares=float(self._second[-1]) * eta**2,
            noise=2 * eta**2,
        )

    def _without_central(self, s: float) -> Solution:
        shares = 1 / (s + self.noises)
        mass = float(np.dot(self.reports, shares)) + (self.public / s if self.public else 0.0)
        if mass == 0:
            return Solution(
                eta=0.0, tau=math.inf, public=0.0, reports=shares * 0, squares=0.0, noise=math.inf
            )
        public = 1 / s / mass if self.public else 0.0
        shares /= mass
        return Solution(
            eta=0.0,
            tau=math.inf,
            public=public,
            reports=shares,
            squares=float(np.dot(self.reports, shares**2)) + self.public * public**2,
            noise=float(np.dot(self.reports, shares**2 * self.noises)),
        )

    def minimax(self, variance: float) -> Solution:
        r"""Weights that, with the best shrinkage, minimize the largest error over all means.

        The error is :math:`\max(F_1, F_2)`, see `app.estimators.accuracy.worst_square_error`. A convex
        combination of the two is the unshrunk problem of a smaller variance s plus :math:`(1/4 - s)(1 -
        a)^2`, whose minimum J K / (J + K), K = 1/4 - s, is concave in s with the derivative
        :math:`a^2 q - (1 - a)^2`: its root is searched. With a tilt the weights are those of `solve`, and
        only a minimizes the largest error: the bias of shrinking adds to that of unequal weights.

        Args:
            variance: s2, bound on the variance of the data, in [0, 1/4] [range width squared].

        Returns:
            The solution for the worst s in [0, s2].

        Privacy: no data, no randomness.
        """
        if self.tilt or self._slope(variance) >= 0:
            return self.solve(variance)
        if self._slope(0.0) <= 0:
            return self.solve(0.0)
        return self.solve(brentq(self._slope, 0.0, variance, xtol=_SMALLEST, rtol=_LAST_DIGIT))

    def _slope(self, s: float) -> float:
        solution = self.solve(s)
        if math.isinf(solution.noise):
            return -1.0
        error, rest = s * solution.squares + solution.noise, 0.25 - s
        a = rest / (error + rest) if rest > 0 else 0.0
        return a * a * solution.squares - (1 - a) ** 2


def best_shrinkage(
    squares: float, noise: float, variance: float, *, bias: float = 0.0, tilt: float = 0.0
) -> float:
    r"""The a in [0, 1] that minimizes the error about the population for given weights and one variance.

    That error is `worst_square_error` with :math:`a^2 q` in place of its q. Without a tilt the second one of
    the two is the larger where :math:`a \sqrt q < 1 - a`; both are parabolas, so the minimum of the maximum
    is the vertex of one of them, or where they meet, :math:`a = 1 / (1 + \sqrt q)`. With a tilt the error is
    convex in a, the largest of squares of straight lines and of parabolas; searched to about 1e-8.

    Args:
        squares: q, the sum of squared weights, in (0, 1] [1].
        noise: N, variance of all noise [range width squared].
        variance: s2, bound on the variance of the data, in [0, 1/4] [range width squared].
        bias: The most that unequal weights move the mean by [range widths].
        tilt: t, in [0, 1] [range widths].

    Returns:
        a.

    Privacy: no data, no randomness.

    >>> round(best_shrinkage(0.01, 0.0, 0.25), 6), best_shrinkage(0.01, 0.25, 0.25)
    (0.909091, 0.5)
    """
    if tilt:

        def error(a: float) -> float:
            return worst_square_error(a * a * squares, noise, variance, shrinkage=a, bias=bias, tilt=tilt)

        found = scipy.optimize.minimize_scalar(
            error, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-8}
        )
        return float(found.x)
    meeting = 1 / (1 + math.sqrt(squares))
    vertex = noise_shrinkage(noise)
    if vertex <= meeting:
        return vertex
    rest = 0.25 - variance
    return max(meeting, rest / (variance * squares + noise + rest)) if rest > 0 else meeting
