"""The levels of a tree of counts that quantiles are read off: their price, their cells and their noise."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from app.core.study import Currency
from app.estimators.weighing import Target

PARTS = tuple(Fraction(part, 16) for part in (1, 1, 1, 4, 9))
"""What each level has of the price."""

LEVELS = len(PARTS)

_FIRST, _INNER = 14, (10, 7)
"""Cells of the first level, and two more for each quantile; of the next ones, around each quantile."""

PLACES = tuple(np.linspace(-far, far, starts) for far, starts in ((2.5, 7), (2, 4)))
"""Where cells of the last levels begin, for each quantile: how many standard deviations beside it."""

COARSE = LEVELS - len(PLACES)
"""The levels before these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The noisy counts of a level.

    Attributes:
        starts: Where each cell but the first one begins, ascending [grid steps].
        counts: The weight of the people in each cell, noisy [units of the weights].
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]


def cells_of(level: int, quantiles: int) -> int:
    """The most cells that a level has, for that many quantiles."""
    if level == 0:
        return _FIRST + 2 * quantiles
    if level < COARSE:
        return (inner_cells(level) + 1) * quantiles + 1
    return len(PLACES[level - COARSE]) * quantiles + 1


def inner_cells(level: int) -> int:
    """Into how many cells a level divides what may hold a quantile; the last number is for all beyond it."""
    return _INNER[min(level, len(_INNER)) - 1]


def target_of(tilt: float, currency: Currency = Currency.LAPLACE, quantiles: int = 1) -> Target:
    r"""What weights make small: :math:`\sum w_i^2 / 4`, noise of a middle rank, and the tilt's bias."""
    missed = rank_scale(currency, quantiles)
    return Target(variance=1 / (2 * missed) ** 2, tilt=tilt / missed)


def rank_scale(currency: Currency, quantiles: int) -> float:
    """The scale of Laplace noise like that of a rank, the weights of an offer of 1 being 1."""
    cells, part = cells_of(LEVELS - 1, quantiles), float(PARTS[-1])
    return math.sqrt(cells / part / 2) if currency is Currency.GAUSSIAN else math.sqrt(cells - 1) / part
