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

Five levels tell 16 * 10 * 7 * 6 * 3 places apart. Of few people the noise of the first of them, a sixteenth
of the price, hides where the quantile is, and there are fewer values to tell apart: they have three levels,
the first one with the price of three. Of 100, 300 and 500 people at epsilon 1 (ages, incomes, numbers
spread evenly, quantiles .25, .5, .9, 90 draws each) that errs .92, .76 and .84 times as much as five levels,
and half-widths are .88, .85 and .88 times as wide; in a range ten times too wide .97, .70 and .92 times as
much, and .99, .86 and 1.26 times as wide, and of 700 people twice. Under Gaussian noise a small part is not
so dear, since noise goes with its root: five levels are as good there.

Of five levels the last one has a cell more where the one before leaves all to an end of the range (`reach`):
of 1,000 people at epsilon 1 in one of four answers for the quantile .9, in one of six for the median, hardly
ever in a range 100 times too wide. Those intervals are .63, .65 and .86 times as wide as without it (incomes,
minutes, numbers spread evenly; 380 to 470 draws each), at 1.05 to 1.09 times the error, since the noise of a
rank is 1.12 times as large; 1 % go on to the end of the range, in place of 4 to 9 %. Where it begins at 5
deviations, in place of 3, they are as wide as without. For the estimate, where noise counts most, an answer
would have .8 cells more on average, and of few people in a wide range 1.3. Four levels in place of five,
where the first one says that the range is right, make no difference beside it: .85 and .87 of the
half-widths, and 1.18 times the error in a range 100 times too wide.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from app.core.study import Currency
from app.estimators.cell_counts import Floats
from app.estimators.weighing import Target, Weighing

FEW = 400
"""Below how many people at epsilon 1 three levels are better than five."""


class Aim(StrEnum):
    """What of an answer is to be as exact as it can be."""

    INTERVAL = "interval"
    ESTIMATE = "estimate"


_FIRST, _INNER = 14, (10, 7)
"""Cells of the first level, and two more for each quantile; of the next ones, around each quantile."""


def _beside(*levels: tuple[float, int]) -> tuple[Floats, ...]:
    """As many places, evenly up to so far to both sides, for each level."""
    return tuple(np.linspace(-far, far, starts) for far, starts in levels)


_PLACES: Mapping[Aim, tuple[Floats, ...]] = {
    Aim.INTERVAL: _beside((2.5, 7), (2, 4)),
    Aim.ESTIMATE: _beside((2, 4), (1, 2)),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """What levels a tree has.

    Attributes:
        parts: What each has of the price.
        risks: What each has of the risk of an interval that noise alone decides.
        spread_risks: What each has of the risk of an interval that is wider than noise makes it.
        places: Where cells of the last ones begin, for each quantile: how many standard deviations beside it.
        reach: Where the last one begins one more, on a side where the one before leaves all to the end of the
            range: as many beside it. None: it begins none.
    """

    parts: tuple[Fraction, ...]
    risks: tuple[Fraction, ...]
    spread_risks: tuple[Fraction, ...]
    places: tuple[Floats, ...]
    reach: float | None = None

    @property
    def coarse(self) -> int:
        """How many come before those whose cells begin beside where the quantile is expected."""
        return len(self.parts) - len(self.places)

    @property
    def last(self) -> int:
        """The number of the last one, from 0 on."""
        return len(self.parts) - 1

    def cells(self, level: int, quantiles: int) -> int:
        """The most cells that a level has, for that many quantiles; without those of `reach`."""
        if level == 0:
            return _FIRST + 2 * quantiles
        if level < self.coarse:
            return (inner_cells(level) + 1) * quantiles + 1
        return len(self.places[level - self.coarse]) * quantiles + 1


def _layout(
    aim: Aim,
    parts: Sequence[int],
    risks: Sequence[int],
    spread_risks: Sequence[int],
    reach: float | None = None,
) -> Layout:
    """The layout whose levels have these shares of the price and of both risks."""
    of_price, of_risk, of_spread = (
        tuple(Fraction(share, sum(shares)) for share in shares) for shares in (parts, risks, spread_risks)
    )
    return Layout(parts=of_price, risks=of_risk, spread_risks=of_spread, places=_PLACES[aim], reach=reach)


FIVE: Mapping[Aim, Layout] = {
    Aim.INTERVAL: _layout(Aim.INTERVAL, (1, 1, 1, 4, 9), (1, 1, 1, 5, 32), (1, 2, 2, 2, 3), reach=3),
    Aim.ESTIMATE: _layout(Aim.ESTIMATE, (1, 1, 2, 3, 9), (1, 1, 1, 5, 32), (1, 2, 2, 2, 3)),
}
"""Of a tree of five levels, by what is to be exact."""

THREE: Mapping[Aim, Layout] = {
    Aim.INTERVAL: _layout(Aim.INTERVAL, (3, 4, 9), (2, 6, 32), (3, 3, 4)),
    Aim.ESTIMATE: _layout(Aim.ESTIMATE, (4, 5, 7), (2, 6, 32), (3, 3, 4)),
}
"""Of one of three, for few people."""


def layout_of(weighing: Weighing, aim: Aim) -> Layout:
    """The layout of a tree of few people, or of many; of many, too, where their number is secret.

    Privacy: looks at no data, only at weights, which are public where they are looked at.
    """
    few = weighing.is_public and not weighing.is_gaussian and weighing.mass < FEW * weighing.unit
    return (THREE if few else FIVE)[aim]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The noisy counts of a level.

    Attributes:
        starts: Where each cell but the first one begins, ascending [grid steps].
        counts: The weight of the people in each cell, noisy [units of the weights].
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]


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
    """The scale of Laplace noise like that of a rank, an offer of 1 weighing 1, in five levels."""
    layout = FIVE[aim]
    cells, part = layout.cells(layout.last, quantiles), float(layout.parts[-1])
    return math.sqrt(cells / part / 2) if currency.is_gaussian else math.sqrt(cells - 1) / part
