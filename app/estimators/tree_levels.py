r"""The levels of a tree of counts that quantiles are read off: their price, their cells and their noise.

For the estimate the price is divided otherwise than for the interval, and the last two levels have fewer
cells, and so fewer noises. What `app.estimators.quantile_tree` says of privacy holds for any parts and any
cells. In the middle of a last level of three cells a rank is known but for half of the
noise of the difference of the outer two and half of that of the inner one: a standard deviation of
:math:`\sqrt 2 / p` people at epsilon 1, 2.5 for its part p of nine sixteenths. How values are spread within
the inner cell is guessed, which is about as large an error again, and fewer ends of cells make intervals
wider.
A draw over the gaps between values by the exponential mechanism (Smith, STOC 2011,
doi:10.1145/1993636.1993743) misses by 2.8 people at all of the price, and has no interval.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from app.core.study import Currency
from app.estimators.cell_counts import Floats
from app.estimators.weighing import Target

LEVELS = 5


class Aim(StrEnum):
    """What of an answer is to be as exact as it can be."""

    INTERVAL = "interval"
    ESTIMATE = "estimate"


PARTS: Mapping[Aim, tuple[Fraction, ...]] = {
    Aim.INTERVAL: tuple(Fraction(part, 16) for part in (1, 1, 1, 4, 9)),
    Aim.ESTIMATE: tuple(Fraction(part, 16) for part in (1, 1, 2, 3, 9)),
}
"""What each level has of the price."""

_FIRST, _INNER = 14, (10, 7)
"""Cells of the first level, and two more for each quantile; of the next ones, around each quantile."""


def _beside(*levels: tuple[float, int]) -> tuple[Floats, ...]:
    """As many places, evenly up to so far to both sides, for each level."""
    return tuple(np.linspace(-far, far, starts) for far, starts in levels)


COARSE = 3
"""The levels before those whose cells begin beside where the quantile is expected."""

PLACES: Mapping[Aim, tuple[Floats, ...]] = {
    Aim.INTERVAL: _beside((2.5, 7), (2, 4)),
    Aim.ESTIMATE: _beside((2, 4), (1, 2)),
}
"""Where cells of the last levels begin, for each quantile: how many standard deviations beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The noisy counts of a level.

    Attributes:
        starts: Where each cell but the first one begins, ascending [grid steps].
        counts: The weight of the people in each cell, noisy [units of the weights].
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]


def cells_of(level: int, quantiles: int, aim: Aim = Aim.INTERVAL) -> int:
    """The most cells that a level has, for that many quantiles."""
    if level == 0:
        return _FIRST + 2 * quantiles
    if level < COARSE:
        return (inner_cells(level) + 1) * quantiles + 1
    return len(PLACES[aim][level - COARSE]) * quantiles + 1


def inner_cells(level: int) -> int:
    """Into how many cells a level divides what may hold a quantile; the last number is for all beyond it."""
    return _INNER[min(level, len(_INNER)) - 1]


def target_of(
    tilt: float, currency: Currency = Currency.LAPLACE, quantiles: int = 1, aim: Aim = Aim.INTERVAL
) -> Target:
    r"""What weights make small: :math:`\sum w_i^2 / 4`, noise of a middle rank, and the tilt's bias."""
    missed = rank_scale(currency, quantiles, aim)
    return Target(variance=1 / (2 * missed) ** 2, tilt=tilt / missed)


def rank_scale(currency: Currency, quantiles: int, aim: Aim = Aim.INTERVAL) -> float:
    """The scale of Laplace noise like that of a rank, the weights of an offer of 1 being 1."""
    cells, part = cells_of(LEVELS - 1, quantiles, aim), float(PARTS[aim][-1])
    return math.sqrt(cells / part / 2) if currency.is_gaussian else math.sqrt(cells - 1) / part
