r"""What finished quantile searches say of the values of the people who answered them: their distribution.

A closed round j has an unbiased estimate :math:`\phi_j` of the part :math:`F(t_j)` of these people at or
below its threshold, with the variance :math:`p (1 - p) / (n_j (2 \tau - 1)^2)`, p the chance of a yes where
F is q, tau that of a true answer. A non-decreasing fit through all rounds, read on straight lines, estimates
F.

*Variance at q.* Half of that of the blocks of the fit beside q, since the next blocks help, and a third of
the cube of what lies between them beyond their noise: F may go any way through a wide gap, and is nearly
straight in a narrow one. It is never less than if all answers were to one round. This is measured, not
proven: the mean square is at most twice what is stated (`tests/statistical/test_joined_quantiles.py`). Only
weights and predictions depend on it, no interval does.

*The whole beside its parts.* Of two independent parts with mean squares a and b, weighed as if the second had
k b, the whole has :math:`a b (a + k^2 b) / (a + k b)^2`. That is at most a for every :math:`k \ge 1/2`, and
at most b for every :math:`k \le 2`: within a factor of 2 the whole knows a part of people no worse than the
better one does. That holds without a tilt; with one, weights also hedge against people who differ from those
of the other part. A rank goes with that knowledge but where q lies in a gap between values.

*Bounds.* Where x is any point, :math:`F(x) \le F(t_j)` for every threshold above it. So the least upper bound
of these rounds holds for F(x), if each fails with probability at most :math:`\alpha / L`, L the rounds that
were announced: exact binomial bounds, which hold where a threshold depends on earlier rounds, and where
the people of a round are drawn at random from all. Lower bounds are the same upside down.

Several searches count as one: it is taken that who answers which of them does not go with the values. Whose
value is in the central part, too, counts in both.

Privacy: post-processing of local answers.

References:
    Clopper and Pearson, Biometrika 1934, doi:10.1093/biomet/26.4.404: exact binomial bounds.
    Hoeffding, Ann. Math. Statist. 1956, doi:10.1214/aoms/1177728178: they stay valid where people answer with
    different probabilities.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from app.core.grid import GRID_SIZE
from app.estimators.searched_ranks import Beside, Places, searched_risk
from app.sessions.quantile import non_decreasing
from app.sessions.response import estimate_fraction, truth_probability
from app.sessions.search import Search


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One closed round.

    Attributes:
        threshold: "Is your value at most this?" [grid step].
        positives, answers: How many said yes, of how many; at least 1.
        epsilon: Of one answer [micro-epsilon].
    """

    threshold: int
    positives: int
    answers: int
    epsilon: int

    @property
    def fraction(self) -> float:
        """Unbiased estimate of the part of people at or below the threshold."""
        return estimate_fraction(self.positives, self.answers, self.epsilon)

    def precision(self, quantile: float) -> float:
        """One over its variance where that part is q; by its estimate, weights would go with errors."""
        truth = truth_probability(self.epsilon)
        chance = 1 - truth + quantile * (2 * truth - 1)
        return self.answers * (2 * truth - 1) ** 2 / (chance * (1 - chance))

    def at_least(self, risk: float) -> float:
        """What that part is at least, except with this probability."""
        no = self.answers - self.positives
        return (
            self._part(float(scipy.special.betaincinv(self.positives, no + 1, risk)))
            if self.positives
            else 0.0
        )

    def at_most(self, risk: float) -> float:
        """What that part is at most, except with this probability."""
        no = self.answers - self.positives
        return self._part(float(scipy.special.betaincinv(self.positives + 1, no, 1 - risk))) if no else 1.0

    def _part(self, chance: float) -> float:
        truth = truth_probability(self.epsilon)
        return min(max((chance - 1 + truth) / (2 * truth - 1), 0.0), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """All finished quantile searches of a study.

    Attributes:
        people: Who answered at least once.
        reporting: Those of them who have a local report in the study.
        rounds: The closed rounds with answers.
        announced: How many rounds were announced.
    """

    people: int
    reporting: int
    rounds: tuple[Round, ...]
    announced: int

    @classmethod
    def of(cls, searches: Sequence[Search], *, people: int, reporting: int) -> "Searched | None":
        """Read the rounds of searches for quantiles; None where there is no answer."""
        rounds = tuple(
            Round(
                threshold=step.threshold,
                positives=step.positives,
                answers=step.answers,
                epsilon=search.rules.epsilon_per_answer,
            )
            for search in searches
            for step in search.steps
            if step.answers
        )
        if not rounds or not people:
            return None
        announced = sum(search.rules.rounds for search in searches)
        return cls(people=people, reporting=reporting, rounds=rounds, announced=announced)

    def fit(self, quantile: float) -> list[tuple[float, float, float]]:
        """(place, height, variance) of each block and of both ends of the range, weighed as near q."""
        rounds = sorted(self.rounds, key=lambda one: one.threshold)
        blocks = non_decreasing(
            [(float(one.threshold), one.fraction, one.precision(quantile)) for one in rounds]
        )
        inner = [(place, min(max(height, 0.0), 1.0), 1 / weight) for place, height, weight in blocks]
        return [(-1.0, 0.0, 0.0), *inner, (float(GRID_SIZE), 1.0, 0.0)]

    def variance(self, quantile: float) -> float:
        """Predicted mean square of how far the fit is off where it is q."""
        fit = self.fit(quantile)
        right = next(place for place, (_, height, _) in enumerate(fit) if height >= quantile)
        (_, below, first), (_, above, second) = fit[right - 1], fit[right]
        part = (quantile - below) / (above - below)
        noise = (1 - part) ** 2 * first + part**2 * second
        apart = max(0.0, (above - below) ** 2 - first - second)
        return max(
            noise / 2 + math.pow(apart, 1.5) / 3,
            1 / math.fsum(one.precision(quantile) for one in self.rounds),
        )

    def beside(self, quantile: float) -> Beside:
        """What these people add to a quantile q, in (0, 1), of a study."""
        rounds = sorted(self.rounds, key=lambda one: one.threshold)
        thresholds = [one.threshold for one in rounds]
        places, heights, _ = zip(*self.fit(quantile), strict=True)
        sampled = quantile * (1 - quantile) / self.people

        def below(starts: Sequence[int]) -> Places:
            last = np.array(starts, dtype=np.float64) - 1
            risk = searched_risk() / self.announced
            least = np.maximum.accumulate([0.0, *(one.at_least(risk) for one in rounds)])
            most = np.minimum.accumulate([1.0, *(one.at_most(risk) for one in reversed(rounds))])[::-1]
            return Places(
                parts=np.interp(last, places, heights),
                least=least[np.searchsorted(thresholds, last, side="right")],
                most=most[np.searchsorted(thresholds, last, side="left")],
            )

        noise = max(0.0, self.variance(quantile) - sampled)
        return Beside(people=self.people, noise=noise, below=below)
