"""What an answer says of bins: shares that sum to 1, and distribution functions that rise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.plain import plain
from app.estimators.every_level import interval_of
from app.estimators.interface import Coverage, Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What is said of a bin, or of all bins up to one.

    Attributes:
        share: The estimate, in [0, 1].
        interval: For the dataset. Of cumulated bins it is a band: all hold together.
        population_interval: For the population; of cumulated bins a band.
        simultaneous: For the dataset, such that those of all bins hold together.
        anytime: For the dataset, at all steps of the question at once; None of an answer without steps.
    """

    share: float
    interval: Interval
    population_interval: Interval
    simultaneous: Interval
    anytime: Interval | None = None

    def document(self) -> dict[str, object]:
        """As JSON; without what it has not."""
        shown: dict[str, object] = plain(self)
        if self.anytime is None:
            del shown["anytime"]
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class BinShares:
    """What an answer says of all bins.

    Attributes:
        bins: Each of them.
        cumulative: Bins up to and with each of them, the last one excepted; rising.
        noisy_count: add_remove_one: the noisy total weight over the cap.
    """

    bins: tuple[Share, ...]
    cumulative: tuple[Share, ...]
    noisy_count: float | None


def on_simplex(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest shares that are not negative and sum to 1 (Euclidean projection).

    >>> on_simplex(np.array([0.75, 0.5, -0.25])).tolist()
    [0.625, 0.375, 0.0]
    """
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, shares.size + 1)
    level = float(excess[np.flatnonzero(falling > excess)[-1]])
    return np.asarray(np.maximum(shares - level, 0.0), dtype=np.float64)


def rising_band(
    lower: NDArray[np.float64], upper: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The part of a band that a rising function can lie in: where the band holds it, so does this."""
    return np.maximum.accumulate(lower, axis=-1), np.minimum.accumulate(upper[..., ::-1], axis=-1)[..., ::-1]


Ends = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Lower and upper ends of intervals, each of shape (levels, bins)."""


def shares_of(
    estimates: NDArray[np.float64], ends: Sequence[Ends], coverages: Sequence[Coverage]
) -> tuple[Share, ...]:
    """Estimates with their intervals, within [0, 1] and extended to the estimate if they do not hold it.

    Args:
        estimates: Of all bins.
        ends, coverages: Of their intervals at the levels that are asked for, in the order of `Share`, with
            those of `anytime` or without.
    """
    kinds = []
    for (lower, upper), coverage in zip(ends, coverages, strict=True):
        held = np.maximum(np.minimum(lower, estimates), 0.0), np.minimum(np.maximum(upper, estimates), 1.0)
        # A zero has no sign.
        of_bins = (np.stack(held, axis=-1) + 0.0).swapaxes(0, 1).tolist()
        kinds.append([interval_of([(low, high) for low, high in one], coverage) for one in of_bins])
    always = kinds[3] if len(kinds) > 3 else [None] * len(estimates)
    return tuple(
        Share(
            share=estimate,
            interval=dataset,
            population_interval=population,
            simultaneous=every,
            anytime=steps,
        )
        for estimate, dataset, population, every, steps in zip(
            estimates.tolist(), *kinds[:3], always, strict=True
        )
    )
