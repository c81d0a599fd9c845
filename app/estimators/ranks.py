r"""A quantile and an interval for it, from draws of cells by rank.

The range is cut into cells by m + 1 candidates: cell 0 holds what is at most c_0, the lower end, cell j what
lies in :math:`(c_{j-1}, c_j]`. A draw aims at a rank t, and a cell scores by how far t lies from the ranks
that its values have, 0 if it is one of them (`app.accounting.shape_prices`): the best score is always 0, also
where many people share one value. The first cell has no lower and the last no upper bound, so that also
holds where t is no rank at all. Three draws share the price: one at the quantile q, half of it, and one for
each end of the interval, a quarter each. The answer is the upper end of the first cell.

*The lower end* is the lower end of a cell that was drawn at :math:`t = b (q W - s)`, W the total weight, s a
shift. Let j* be the cell of the true quantile x (the least value with :math:`F(x) \ge q`). The interval fails
only if the draw is a cell j > j*. Then :math:`L_{j-1} \ge L_{j^*}`, so its score is at least the shift worse
than the best one if :math:`L_{j^*} \ge b q W`, which has probability at most
:math:`(m / 2) e^{-b s / \lambda}` (`app.mechanisms.permute_and_flip`; twice that of
`app.mechanisms.exponential`). The upper end is the same upside down.

*replace_one.* F counts people equally, L counts them by weight; and the quantile of the population lies
elsewhere. With c_i the weight of person i over W, indicators :math:`1[x_i \le x]` of independent people and
variance q (1 - q), Bernstein's inequality gives

.. math:: P\Big(\sum_i c_i (1[x_i \le x] - q) < -s\Big) \le \alpha \quad\text{for}\quad
    s = \sqrt{2 q (1 - q) \ln(1/\alpha) \sum c_i^2} + \tfrac13 \max_i c_i \ln(1/\alpha),

and no less for the dataset, where c_i - 1/n stands in place of c_i, since
:math:`\sum (c_i - 1/n)^2 \le \sum c_i^2`. So one interval holds for both. The tilt adds its bias. Half of the
risk of each end is Bernstein's, half the draw's. An end that would be below rank 0 or above n is that of the
range: no draw is made for it, and the answer gets its part of the price.

*add_remove_one.* n is secret, so all three draws are made, and the interval is for those who take part.
Weights lie between a floor and a cap, r their quotient: where :math:`F \ge q` the weighted distribution is
at least :math:`r q / (1 - q + r q)`, and where F < q it is less than :math:`q / (q + r (1 - q))`. The ends
are drawn at these ranks, and s is the draw's alone.

*Searches.* People who answered searches stand beside the others: their distribution function, an estimate or
a bound that is published already, times their weight, is added to L. It is the same for all neighbors, so
scores move by what they moved before, and the price is the same. The draw for the lower end gets the upper
bound, the one for the upper end the lower bound: with those L is at least, and at most, what it would be with
their values. Then the risk of each end has three equal parts, the bounds' being the third.

*Weights* (replace_one) make :math:`\sum w_i^2 / 4 + 8 \eta^2 + (tilt\,TV)^2` small: a draw that misses by one
scale, 2 eta, on either side, as Laplace noise of that scale does.

*Gaussian noise.* In studies that have it draws are exponential, and their parts are parts of mu^2. An offer
that weighs U, `unit_of`, is at least an mu^2 of 1/2. A draw with the scale :math:`\lambda`, whose scores move
by R for each weight, costs that weight at most :math:`(\pi / 8) (R U / \lambda)^2`
(`app.accounting.bounded_range`). So with :math:`\lambda = R U \sqrt{\pi / (4 p)}` it takes at most the part p
of every offer, and :math:`\sqrt \pi\, \eta` takes the place of 2 eta in what weights make small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from operator import add
from statistics import NormalDist

from app.accounting.bounded_range import ROOT_PI_8
from app.accounting.shape_prices import rank_range
from app.core.epsilon import MAX_EPSILON, MICRO
from app.core.grid import Grid
from app.core.study import Currency, Relation
from app.estimators.interface import Coverage, Interval
from app.estimators.quantiles import LEVEL
from app.estimators.weighing import Target, Weighing, unit_of

CELLS = 1000
"""Cells of the range, beside the first candidate's own."""

_LEAST_NOISE = 1e-9
"""Noise of a report, where a search has none: `AffineProblem` needs some."""

FILLED = 1 / 4
"""Part of the range that values are taken to fill, for predictions."""

ENDS = Fraction(1, 4)
"""Part of the price of each end of the interval."""


SEARCHED_RISK = (1 - LEVEL) / 6
"""What the bounds of searches have of the risk of each end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The distribution of the values of people who answered searches.

    Attributes:
        people: How many.
        noise: Variance of the estimated part at q, beyond that of drawing these people.
        parts: Of them at or below the upper end of each cell, estimated; rises to 1.
        least, most: Bounds, each of which fails at any one point with probability `SEARCHED_RISK` at most.
    """

    people: int
    noise: float
    parts: Sequence[float]
    least: Sequence[float]
    most: Sequence[float]

    def report(self, currency: Currency) -> float:
        """The noise as that of one report of each of them, in the unit of `target_of`."""
        return max(self.people * self.noise / _missed(currency) ** 2, _LEAST_NOISE)


def _missed(currency: Currency) -> float:
    """What a draw of the whole price misses by, the weights of an offer of 1 being 1."""
    return math.sqrt(math.pi) if currency is Currency.GAUSSIAN else 2.0


def target_of(tilt: float, currency: Currency = Currency.LAPLACE) -> Target:
    """What weights make small."""
    missed = _missed(currency)
    return Target(variance=1 / (2 * missed) ** 2, tilt=tilt / missed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One draw of a cell.

    Attributes:
        rank: a/b; the scores count weights b times.
        shift: Added to a times the total weight: where the draw aims [weights times b].
        scale: Of the draw [weights times b].
        beside: Weights up to and with each cell of people who answered searches; empty without them.
    """

    rank: Fraction
    shift: int
    scale: int
    beside: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """What an answer says.

    Attributes:
        estimate: An upper end of a cell [data's unit].
        interval: replace_one: for the quantile of the dataset and of the population; add_remove_one: of those
            who take part [data's unit].
    """

    estimate: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlan:
    """One release of a quantile.

    Attributes:
        quantile: q, in (0, 1).
        cells: m.
        weighing: What people count for.
        draws: For the estimate, the lower and the upper end; None for an end that is the range's.
        people: add_remove_one: the number of people to predict for; None: unknown.
        beside: replace_one: people who answered searches.
    """

    quantile: Fraction
    cells: int
    weighing: Weighing
    draws: tuple[Draw, Draw | None, Draw | None]
    people: float | None
    beside: Beside | None = None

    @classmethod
    def of(
        cls,
        quantile: Fraction,
        cells: int,
        weighing: Weighing,
        *,
        people: float | None = None,
        beside: Beside | None = None,
    ) -> "RankPlan":
        """Plan the draws; see the module's docstring."""
        relation, risk, mass = weighing.relation, (1 - LEVEL) / 2, _mass(weighing, beside)
        currency = weighing.currency
        whole = quantile.denominator
        if relation is Relation.ADD_REMOVE_ONE:
            ratio = Fraction(weighing.floor, weighing.cap)
            low = ratio * quantile / (1 - quantile + ratio * quantile)
            high = quantile / (quantile + ratio * (1 - quantile))
            ends = [
                _draw(rank, weighing, cells, risk, sign) if 0 < rank < 1 else None
                for rank, sign in ((low, -1), (high, 1))
            ]
        else:
            parts = 2 if beside is None else 3
            log = math.log(parts / risk)
            q = float(quantile)
            margin = math.sqrt(2 * q * (1 - q) * weighing.squares * log) + weighing.largest * log / 3
            extra = math.ceil((margin + weighing.bias) * mass * whole)
            ends = []
            for sign in (-1, 1):
                end = _draw(quantile, weighing, cells, risk / parts, sign, extra)
                aim = quantile.numerator * mass + end.shift
                ends.append(end if 0 < aim < whole * mass else None)
        part = 1 - ENDS * sum(end is not None for end in ends)
        scale = _scale(quantile, relation, part, currency)
        first = Draw(rank=quantile, shift=0, scale=scale)
        lower, upper = ends
        if beside is not None:
            others = mass - weighing.mass
            first = replace(first, beside=tuple(round(part * others) for part in beside.parts))
            most = tuple(math.ceil(part * others) for part in beside.most)
            least = tuple(math.floor(part * others) for part in beside.least)
            lower = lower and replace(lower, beside=most)
            upper = upper and replace(upper, beside=least)
        return cls(
            quantile=quantile,
            cells=cells,
            weighing=weighing,
            draws=(first, lower, upper),
            people=people,
            beside=beside,
        )

    @property
    def predicted_error(self) -> float:
        """Root mean square error about the dataset, as a part of all people: how far from q the rank is."""
        scale = self.draws[0].scale / self.quantile.denominator
        if self.weighing.relation is Relation.ADD_REMOVE_ONE:
            mass = self.weighing.cap * (self.people or 0)
            return drawn_error(scale / mass, float(self.quantile)) if mass else 1.0
        noise = drawn_error(scale / _mass(self.weighing, self.beside), float(self.quantile)) ** 2
        return self._error(self.weighing.uneven, noise)

    def _error(self, squares: float, noise: float) -> float:
        """Of people with these squared weights, and a draw that errs by this, squared."""
        if self.beside is not None:
            noise += self.searched_weight**2 * self.beside.noise
        q = float(self.quantile)
        return min(1.0, math.sqrt(q * (1 - q) * squares + noise + self.weighing.bias**2))

    @property
    def searched_weight(self) -> float:
        """The part of the whole weight that people who answered searches have."""
        return 0.0 if self.beside is None else 1 - self.weighing.private

    @property
    def interval_width(self) -> float:
        """How wide an answer counts where answers are compared, as a part of all people, at most 1.

        Not its interval's: few people leave both ends of that at the ends of the range, and answers of any
        accuracy would be the same.
        """
        error = self.predicted_error
        if self.weighing.relation is Relation.REPLACE_ONE:
            scale = self.draws[0].scale / self.quantile.denominator
            error = self._error(self.weighing.squares, 2 * (scale / _mass(self.weighing, self.beside)) ** 2)
        return min(1.0, 2 * NormalDist().inv_cdf((1 + LEVEL) / 2) * error)

    def scores(self, draw: Draw, weights: Sequence[int]) -> list[int]:
        """The scores of all cells for one draw.

        Args:
            draw: One of `draws`.
            weights: Sum of the weights of the people in each cell, m + 1.

        Returns:
            Integers, the largest of them 0. Raw: only for `app.mechanisms.permute_and_flip`.
        """
        part, whole = draw.rank.as_integer_ratio()
        below = list(accumulate(weights))
        if draw.beside:
            below = list(map(add, below, draw.beside))
        cumulated = [whole * weight for weight in below]
        aim = part * below[-1] + draw.shift
        last = len(cumulated) - 1
        return [
            -max(
                0,
                cumulated[cell - 1] - aim if cell else 0,
                aim - cumulated[cell] if cell < last else 0,
            )
            for cell in range(last + 1)
        ]

    def read(self, grid: Grid, chosen: Sequence[int | None]) -> Quantile:
        """What the drawn cells say.

        Args:
            grid: The study's grid.
            chosen: The cell of each draw that was made.

        Privacy: post-processing of the draws.
        """
        estimate, low, high = chosen
        assert estimate is not None
        # The interval is extended to the estimate: the three draws are independent.
        lower = 0 if low is None else min(max(low - 1, 0), estimate)
        upper = self.cells if high is None else max(high, estimate)

        secret = self.weighing.relation is Relation.ADD_REMOVE_ONE
        coverage: Coverage = "at_least" if secret else "worst_case"

        def value(candidate: int) -> float:
            return grid.to_unit(Fraction(candidate, self.cells))

        return Quantile(
            estimate=value(estimate),
            interval=Interval(level=LEVEL, lower=value(lower), upper=value(upper), coverage=coverage),
        )


def drawn_error(scale: float, quantile: float) -> float:
    r"""Root mean square error of the rank of a draw, as a part of all people.

    A cell whose rank is off by s is drawn with a weight of :math:`e^{-s / \lambda}`. Where values fill the
    part f of the range evenly, f of the cells are at distances from 0 to q on the one side and 0 to 1 - q on
    the other, and the rest, of which each side has a half, are empty and at these distances themselves:

    .. math:: E s^2 = \frac{\sum_a f \int_0^a s^2 e^{-s/\lambda} ds + \frac{1-f}{2} a^2 e^{-a/\lambda}}
              {\sum_a f \int_0^a e^{-s/\lambda} ds + \frac{1-f}{2} e^{-a/\lambda}}, \quad a \in \{q, 1-q\},

    with f = 1/4. The number of cells cancels. Small draws come to :math:`\sqrt 2 \lambda`, as Laplace noise
    does; larger ones often hit an empty cell, which that leaves out. For any data the error is at most
    :math:`\lambda \sqrt{L^2 + 2 L + 2}` with L the logarithm of half of the cells (the tail of
    `app.mechanisms.permute_and_flip`), which is 2 to 10 times what incomes and minutes show: a bound.

    Args:
        scale: :math:`\lambda` over the weight of all people, above 0.
        quantile: q, in (0, 1).
    """
    mass = square = 0.0
    for end in (quantile, 1 - quantile):
        ratio = end / scale
        tail = math.exp(-ratio)
        mass += (1 - FILLED) / 2 * tail - FILLED * scale * math.expm1(-ratio)
        # Nearly all cells are alike for a large draw, where the closed form loses its digits.
        inner = scale**3 * (2 - tail * (ratio * ratio + 2 * ratio + 2)) if ratio > 1e-3 else end**3 / 3
        square += FILLED * inner + (1 - FILLED) / 2 * tail * end * end
    return math.sqrt(square / mass)


def _scale(rank: Fraction, relation: Relation, part: Fraction, currency: Currency) -> int:
    """Of a draw that takes this part of every offer, at most."""
    moved = rank_range(rank, relation)
    if currency is Currency.LAPLACE:
        return math.ceil(moved * MICRO / part)
    # Equal parts have equal prices, whatever their ranks. The root is rounded up.
    root = Fraction(math.sqrt(2 / part)) * (1 + Fraction(1, 10**15))
    return moved * math.ceil(unit_of(currency) * ROOT_PI_8 * root)


def _draw(rank: Fraction, weighing: Weighing, cells: int, risk: float, sign: int, extra: int = 0) -> Draw:
    """A draw for one end: aside of its rank by what it may miss by, and by `extra`."""
    scale = _scale(rank, weighing.relation, ENDS, weighing.currency)
    others = cells if weighing.currency is Currency.GAUSSIAN else cells / 2
    missed = math.ceil(scale * math.log(others / risk))
    return Draw(rank=rank, shift=sign * (missed + extra), scale=scale)


def _mass(weighing: Weighing, beside: Beside | None) -> int:
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
