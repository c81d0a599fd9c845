"""The ranks of people who answered searches, beside the noisy counts that a quantile is read off."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.core.epsilon import MAX_EPSILON, MICRO
from app.core.study import Currency
from app.estimators import confidence, tree_levels
from app.estimators.cell_counts import Floats
from app.estimators.tree_levels import Aim
from app.estimators.weighing import Weighing

_LEAST_NOISE = 1e-9
"""Noise of a report, where a search has none: `AffineProblem` needs some."""


def searched_risk() -> float:
    """What the bounds of searches have of the risk of each end."""
    return confidence.risk() / 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The distribution of the values of people who answered searches, at some places.

    Attributes:
        parts: Of them below each place, estimated.
        least, most: Bounds that hold at all places together, each but for `searched_risk`.
    """

    parts: Floats
    least: Floats
    most: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The people who answered searches.

    Attributes:
        people: How many.
        noise: Variance of the estimated part at q, beyond that of drawing these people.
        below: Their distribution below grid steps.
    """

    people: int
    noise: float
    below: Callable[[Sequence[int]], Places]

    def report(self, currency: Currency, aim: Aim = Aim.INTERVAL) -> float:
        """The noise as that of one report of each of them, in the unit of `target_of`."""
        return max(self.people * self.noise / tree_levels.rank_scale(currency, 1, aim) ** 2, _LEAST_NOISE)


def mass_of(weighing: Weighing, beside: Beside | None) -> int:
    """The weights of all people, those who answered searches among them [as `Weighing.weights`].

    Where no other person weighs anything there is no noise that theirs must be compared with: they weigh as
    public people do.
    """
    if beside is None:
        return weighing.mass
    return (
        round(weighing.mass / weighing.private)
        if weighing.mass
        else MAX_EPSILON * weighing.unit // MICRO * beside.people
    )
