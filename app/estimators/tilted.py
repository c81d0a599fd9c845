r"""The affine mean of the smallest error where weights and values may go together.

With n people, weights c_i that sum to one, :math:`c_i \le \epsilon_i \eta`, g = 1/n, r_i the noise variance
of a report (0 for who sent none), and a tilt D, minimize

.. math:: J(c, \eta) = \sum_i (s + r_i) c_i^2 + 2 \eta^2 + D^2 TV(c)^2, \qquad TV = \sum_i (g - c_i)_+.

Who was heard by a draw among k people (`app.estimators.deviations`) stands for k: their g is k / n, and all g
sum to one. TV is half of :math:`\sum |c_i - g|`, convex and at least 0, so J is strictly convex in (c, eta):
what satisfies its conditions is its only minimum. With :math:`T = D^2 TV`, the multiplier lambda of the sum,
:math:`\alpha = \lambda - T` and :math:`\beta = \lambda + T` they say

.. math:: c_i = \min\Big(\epsilon_i \eta,\; \operatorname{median}\Big(\frac{\alpha}{2 (s + r_i)},\; g,\;
          \frac{\beta}{2 (s + r_i)}\Big)\Big), \qquad
          \sum_i \epsilon_i \kappa_i = 4 \eta, \quad \kappa_i = \beta - 2 s c_i - 2 T [c_i > g]

with the second sum over the people whom their epsilon bounds. The level of people without a report is 1/n
or more, since a smaller one would leave all weights below their g, which sum to one: central people weigh
:math:`\eta \min(\epsilon_i, \tau)` as without a tilt, reports lie between two levels, and many of them
weigh g exactly where the tilt is large.

For a given eta, T is a function of beta that never rises, because only people who weigh less than g are in
TV; so alpha and every c_i rise with beta, and the beta for which they sum to one is found in a bracket. The
derivative of the minimum over c, a convex function of eta, is :math:`4 \eta - \sum \epsilon_i \kappa_i`: it
rises with eta, and its root is found in a bracket, too. It may jump over 0 where a bound reaches g; then the
root is there. So no local minimum can be taken for the global one.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from app.estimators.roots import brentq

_LEAST_VARIANCE = 1e-9
"""A smaller variance weighs like this one, or beta - 2 T would lose its digits; J moves by less than that."""

_STEP = math.log(4)
_TOLERANCE = 1e-13


class TiltedProblem:
    """One profile of people, one variance and one tilt.

    Args:
        epsilons: float64 array of shape (K,), ascending, above 0 [1].
        counts: float64 array of shape (K,), people with each epsilon.
        public: People with epsilon = infinity.
        noises: float64 array of shape (H,), r of the reports of each local group [range width squared].
        reports: float64 array of shape (H,), reports of each local group.
        variance: s, bound on the variance of the data [range width squared].
        tilt: D, above 0 [range widths].
        people: n, all people of the study; who is in none of these groups weighs 0.
        stands: How many people one report of each local group stands for, shape (H,), at least 1.

    Privacy: epsilons and group sizes are public under replace_one; no data, no randomness.
    Cost: O(K + H log H) here, O(log(K + H)) for each of the some hundred steps of `solve`.
    """

    def __init__(
        self,
        epsilons: NDArray[np.float64],
        counts: NDArray[np.float64],
        *,
        public: float,
        noises: NDArray[np.float64],
        reports: NDArray[np.float64],
        variance: float,
        tilt: float,
        people: float,
        stands: NDArray[np.float64] | None = None,
    ) -> None:
        for_each = np.ones_like(reports) if stands is None else stands
        self._variance = max(variance, _LEAST_VARIANCE)
        self._square = tilt * tilt
        self._public = public
        self._epsilons: list[float] = epsilons.tolist()
        self._central = _sums(counts)
        self._first = _sums(counts * epsilons)
        self._second = _sums(counts * epsilons**2)
        # What all weigh together, over eta, where the level is at each epsilon.
        following = np.array(self._central[-1]) - np.cumsum(counts) + public
        self._filled: list[float] = (np.cumsum(counts * epsilons) + epsilons * following).tolist()
        self._each = noises + self._variance
        self._due = for_each
        # In the order in which they come to weigh what they are due, as the levels rise.
        order = np.argsort(self._each * for_each, kind="stable")
        self._costs: list[float] = (self._each * for_each)[order].tolist()
        self._locals = _sums((reports * for_each)[order])
        self._shares = _sums((reports / (2 * self._each))[order])
        within = self._central[-1] + public + self._locals[-1]
        self._equal = 1 / max(people, within)
        self._others = max(people - within, 0.0)

    def solve(self, start: float) -> tuple[float, float, NDArray[np.float64]]:
        """The optimal weights.

        Args:
            start: Any guess at eta, above 0.

        Returns:
            eta, 0 without central people; the most that a person without a report weighs; and the weight of
            one report of each local group, shape (H,). Right to about 1e-9 relative.
        """
        if not self._epsilons:
            alpha, beta, level, _ = self._levels(0.0)
            return 0.0, level, self._of_reports(alpha, beta)
        least = -math.inf
        if not self._public and not self._costs:
            # All at their bounds, and the level just above the largest.
            least = -math.log(self._first[-1])
            if self._slack(least + 1e-12) <= 0:
                eta = math.exp(least)
                return eta, self._epsilons[-1] * eta, np.zeros(0)
            least += 1e-12
        at = max(math.log(start), least)
        eta = math.exp(_root(self._slack, at, least))
        alpha, beta, level, _ = self._levels(eta)
        return eta, level, self._of_reports(alpha, beta)

    def _slack(self, logarithm: float) -> float:
        """What the bounds would pay for a larger eta, less what it costs; falls with eta."""
        eta = math.exp(logarithm)
        alpha, _, level, penalty = self._levels(eta)
        bounded = bisect_left(self._epsilons, level / eta)
        below = bisect_left(self._epsilons, self._equal / eta)
        gain = alpha * self._first[bounded] - 2 * self._variance * eta * self._second[bounded]
        return gain + 2 * penalty * self._first[below] - 4 * eta

    def _levels(self, eta: float) -> tuple[float, float, float, float]:
        """Alpha, beta, the weight of who has no report and no bound, and T, for one eta."""
        below = bisect_left(self._epsilons, self._equal / eta) if eta else 0
        short = (self._others + self._central[below]) * self._equal - eta * self._first[below]
        if not self._costs:
            # The level at which all weigh one: between two epsilons what is unbounded shares the rest.
            bounded = bisect_left(self._filled, 1 / eta) if eta else 0
            free = self._central[-1] - self._central[bounded] + self._public
            level = (1 - eta * self._first[bounded]) / free if free else eta * self._epsilons[-1]
            alpha, penalty = 2 * self._variance * level, self._square * short
            return alpha, alpha + 2 * penalty, level, penalty

        def excess(logarithm: float) -> float:
            return self._total(eta, math.exp(logarithm), short) - 1

        beta = math.exp(_root(lambda x: -excess(x), math.log(2 * self._each.max() * self._equal), -math.inf))
        penalty = self._penalty(beta, short)
        alpha = beta - 2 * penalty
        return alpha, beta, self._level(alpha, beta), penalty

    def _penalty(self, beta: float, short: float) -> float:
        heavy = bisect_right(self._costs, beta / (2 * self._equal))
        missing = (self._locals[-1] - self._locals[heavy]) * self._equal
        missing -= beta * (self._shares[-1] - self._shares[heavy])
        return self._square * (short + max(missing, 0.0))

    def _level(self, alpha: float, beta: float) -> float:
        return max(alpha / (2 * self._variance), min(beta / (2 * self._variance), self._equal))

    def _total(self, eta: float, beta: float, short: float) -> float:
        """All weights together."""
        alpha = beta - 2 * self._penalty(beta, short)
        level = self._level(alpha, beta)
        bounded = bisect_left(self._epsilons, level / eta) if eta else 0
        heavy = bisect_right(self._costs, beta / (2 * self._equal))
        above = bisect_left(self._costs, alpha / (2 * self._equal))
        total = (
            eta * self._first[bounded] + (self._central[-1] - self._central[bounded] + self._public) * level
        )
        total += alpha * self._shares[above] + beta * (self._shares[-1] - self._shares[heavy])
        return total + (self._locals[heavy] - self._locals[above]) * self._equal

    def _of_reports(self, alpha: float, beta: float) -> NDArray[np.float64]:
        low, high = alpha / (2 * self._each), beta / (2 * self._each)
        return np.maximum(low, np.minimum(high, self._equal * self._due))


def _sums(parts: NDArray[np.float64]) -> list[float]:
    """Sums of the first 0, 1, ... parts."""
    return [0.0, *np.cumsum(parts).tolist()]


def _root(falling: Callable[[float], float], at: float, least: float) -> float:
    """Where a function that falls crosses zero, not left of `least`, where it is above zero."""
    low = high = at
    while falling(high) > 0:
        low, high = high, high + _STEP
    while low > least and falling(low) <= 0:
        low, high = max(low - _STEP, least), low
    return high if low == high else brentq(falling, low, high, xtol=_TOLERANCE, maxiter=200)
