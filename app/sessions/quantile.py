r"""A quantile from rounds of randomized "is yours at most t?": what to ask next, what the rounds say.

With a fraction :math:`\phi_j` of estimated yes in round j at the threshold :math:`t_j`, whose standard
deviation near the quantile q is :math:`s_j`, the quantile lies at or below :math:`t_j` with the likelihood
:math:`\Phi((\phi_j - q) / s_j)`. With an even prior over the range the posterior is constant between
neighboring thresholds, so its median, which the next round asks about, needs no sampling. In the end a
non-decreasing fit through all :math:`(t_j, \phi_j)` is read at q.

The interval holds whatever the values look like. Where x is the quantile, a round asked at or above x has a
true fraction of at least q, and one asked below x less than q: only one of two exact binomial tests can fail
in a round. Each has the level :math:`\alpha / L` and so all L together fail with probability at most
:math:`\alpha`, also where a threshold depends on the rounds before it. No search asks outside
of the interval.

Privacy: post-processing of local answers.

References:
    Horstein, "Sequential transmission using noiseless feedback", IEEE Trans. Inf. Theory 9(3), 1963,
    doi:10.1109/TIT.1963.1057832: bisection at the posterior median.
    Clopper and Pearson, Biometrika 1934, doi:10.1093/biomet/26.4.404: exact binomial bounds.
    Hoeffding, Ann. Math. Statist. 1956, doi:10.1214/aoms/1177728178: the tests stay valid where people answer
    with different probabilities.
    Ayer et al., Ann. Math. Statist. 1955, doi:10.1214/aoms/1177728423: the non-decreasing fit.
    arXiv:2502.02990: no local protocol takes fewer people, up to constants.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import scipy

from app.core.grid import GRID_SIZE
from app.sessions.response import ClosedRound, at_least_probability, estimate_fraction, truth_probability

FAILURE = 0.05
"""The probability with which the interval of a quantile may be wrong."""

_LIMIT = 8.0
"""Standard deviations beyond which a round says no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReading:
    """How the answers of a quantile search are read.

    Attributes:
        quantile: The fraction that is looked for, in (0, 1).
        epsilon: Of one answer [micro-epsilon].
        rounds: L.
    """

    quantile: float
    epsilon: int
    rounds: int

    @property
    def chance(self) -> float:
        """Probability of a yes where the threshold is the quantile."""
        truth = truth_probability(self.epsilon)
        return 1 - truth + self.quantile * (2 * truth - 1)

    def above(self, positives: int, answers: int) -> bool:
        """Whether this number of yes is evidence that the quantile is at most the threshold."""
        return at_least_probability(positives, answers, self.chance) <= FAILURE / self.rounds

    def below(self, positives: int, answers: int) -> bool:
        """Whether this number of yes is evidence that the quantile is above the threshold."""
        return at_least_probability(answers - positives, answers, 1 - self.chance) <= FAILURE / self.rounds

    def next_threshold(self, steps: Iterable[ClosedRound], lower: int, upper: int) -> int:
        """The posterior median between two grid steps, rounded."""
        if upper - lower <= 1:
            return lower
        weights = [(step.threshold, *self._logarithms(step)) for step in steps if step.answers]
        ends = sorted({lower, upper, *(t for t, _, _ in weights if lower < t < upper)})
        pieces = list(pairwise(ends))
        likelihoods = [
            math.fsum(at_most if end <= threshold else more for threshold, at_most, more in weights)
            for _, end in pieces
        ]
        top = max(likelihoods)
        masses = [
            (end - start) * math.exp(likelihood - top)
            for (start, end), likelihood in zip(pieces, likelihoods, strict=True)
        ]
        left = math.fsum(masses) / 2
        for (start, end), mass in zip(pieces, masses, strict=True):
            if left <= mass:
                return min(max(start + round((end - start) * left / mass), lower + 1), upper - 1)
            left -= mass
        raise AssertionError("the halves of a mass add up to it")

    def estimate(self, steps: Iterable[ClosedRound], lower: int, upper: int) -> float:
        """The non-decreasing fit read at the quantile, within two grid steps [grid steps]."""
        fitted = non_decreasing(
            [
                (
                    float(step.threshold),
                    estimate_fraction(step.positives, step.answers, self.epsilon),
                    float(step.answers),
                )
                for step in sorted(steps, key=lambda step: step.threshold)
                if step.answers
            ]
        )
        left, fraction_left = 0.0, 0.0
        for place, fraction, _ in (*fitted, (float(GRID_SIZE), 1.0, 0.0)):
            if fraction >= self.quantile:
                part = (self.quantile - fraction_left) / (fraction - fraction_left)
                return min(max(left + part * (place - left), float(lower)), float(upper))
            left, fraction_left = place, max(fraction, 0.0)
        raise AssertionError("all values are in the range")

    def rank_error(self, steps: Iterable[ClosedRound], estimate: float) -> float:
        """How far the rank of the estimate can be off, except with probability `FAILURE`."""
        low, high, failure = 0.0, 1.0, FAILURE / (2 * self.rounds)
        for step in steps:
            no = step.answers - step.positives
            if step.threshold <= estimate and step.positives:
                low = max(
                    low, self._fraction(float(scipy.special.betaincinv(step.positives, no + 1, failure)))
                )
            if step.threshold >= estimate and no:
                high = min(
                    high, self._fraction(float(scipy.special.betaincinv(step.positives + 1, no, 1 - failure)))
                )
        return max(high - self.quantile, self.quantile - low)

    def _logarithms(self, step: ClosedRound) -> tuple[float, float]:
        """Log likelihoods that the quantile is at most the threshold, and that it is more."""
        deviation = math.sqrt(self.chance * (1 - self.chance) / step.answers)
        apart = (step.positives / step.answers - self.chance) / deviation
        apart = min(max(apart, -_LIMIT), _LIMIT) / math.sqrt(2)
        return math.log(math.erfc(-apart) / 2), math.log(math.erfc(apart) / 2)

    def _fraction(self, chance: float) -> float:
        truth = truth_probability(self.epsilon)
        return min(max((chance - 1 + truth) / (2 * truth - 1), 0.0), 1.0)


def non_decreasing(points: Sequence[tuple[float, float, float]]) -> list[tuple[float, float, float]]:
    """Pool adjacent violators: from (place, height, weight) to the means and the weights of the blocks."""
    blocks: list[tuple[float, float, float]] = []
    for point in points:
        block = point
        while blocks and (blocks[-1][1] >= block[1] or blocks[-1][0] >= block[0]):
            before = blocks.pop()
            weight = before[2] + block[2]
            block = (
                (before[0] * before[2] + block[0] * block[2]) / weight,
                (before[1] * before[2] + block[1] * block[2]) / weight,
                weight,
            )
        blocks.append(block)
    return blocks
