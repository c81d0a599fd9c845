r"""Prices of one person's place in queries, by noise. `app.accounting.costs` collects them.

A person at grid point q adds :math:`A_j q + B_j 2^{30} + C_j v(q)` to query j, with the square about the
middle of the range in grid steps, :math:`v(q) = \lfloor (q - 2^{29})^2 / 2^{30} \rfloor`. All moves of the
queries are linear in a pair of integers that lies in a known polygon, and a price that is convex in the moves
is largest at a corner of it.

*Without squares.* replace_one: the sum moves by at most 2^30. add_remove_one: q lies between 0 and 2^30.

*replace_one.* Let :math:`d = |q - q'|`, :math:`e = |v(q) - v(q')|` and :math:`u = q - 2^{29}`. Then
:math:`|u^2 - u'^2| = d |u + u'|` and :math:`|u + u'| \le 2^{30} - d`. Rounding down moves a difference up to
the next integer at most, so with G = 2^30

.. math:: e \le \lceil d (G - d) / G \rceil.

What is rounded up is concave in d, so it is at most each of its tangents at d = 1/2, 3/4 and 1 of G: G / 4,
9 G / 16 - d / 2 and G - d. The first and the last are integers, and so is the second or twice the second:

.. math:: e \le G / 4, \qquad 2 e \le 9 G / 8 - d + 1, \qquad e \le G - d.

The corners of that are, with both signs of e, (G, 0), (5 G / 8 + 1, G / 4) and (7 G / 8 - 1, G / 8 + 1). Two
queries with the weights A of the sum and A of the squares under Laplace noise of one scale cost A G over that
scale at the first and the last of them, and less at the other one: the second moment is free. So it is under
Gaussian noise of a third of the sigma: :math:`25/64 + 9/16 < 1` and :math:`49/64 + 9/64 < 1`. No smaller part
than .3003 would be free: :math:`d^2 + e^2 / b^2` at :math:`e = d (1 - d)` is above 1 near d = .62.

*add_remove_one.* :math:`v(q) \ge |u| - 2^{28}`, since :math:`(|u| - 2^{29})^2 \ge 0` and the right side is an
integer; and :math:`0 \le v(q) \le 2^{28}`. The corners (q, v) of that polygon are (0, 1/4), (1, 1/4),
(1/4, 0) and (3/4, 0) of 2^30.
"""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import gcd
from typing import assert_never

from app.accounting.price import Cost, Move, Rates
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass
from app.core.study import Relation

Column = tuple[tuple[int, int, int, int], ...]
"""(index of a query, sum weight A, count weight B, square weight C) of one group, where one is not 0."""

Price = Callable[[Column], Cost]


def parted(column: Column) -> tuple[int, Column]:
    """A column as a multiple of the least one that it is a multiple of; itself where all of it is 0."""
    unit = 0
    for _, a, b, c in column:
        unit = gcd(unit, a, b, c)
    unit = unit or 1
    return unit, tuple([(number, a // unit, b // unit, c // unit) for number, a, b, c in column])


@lru_cache(maxsize=64)
def sums_price(noise: DiscreteLaplace | DiscreteGaussian, relation: Relation, queries: int) -> Price:
    """Prices of a person's place in queries under independent noise, see `app.accounting.price`.

    Args:
        noise: One scale or sigma a query.
        relation: The neighboring relation.
        queries: Number of queries.

    Returns:
        A function of a column; exact, rounded up.

    Raises:
        InternalFault: another number of scales, or one that is out of range.
    """
    return price_at(Rates.of(noise, queries), relation)


def price_at(rates: Rates, relation: Relation) -> Price:
    """Prices of a person's place in queries, at what a move costs in each.

    Args:
        rates: One rate a query.
        relation: The neighboring relation.

    Returns:
        A function of a column; exact, rounded up.
    """

    @lru_cache(maxsize=1024)
    def loss(column: Column) -> int:
        return rates.loss(_ends(column, relation))

    def price(column: Column) -> Cost:
        # The loss is homogeneous, and the weights of most groups are multiples of the same few.
        unit, least = parted(column)
        return rates.cost(loss(least), unit)

    return price


def hourglass_price(noise: Hourglass, relation: Relation, queries: int) -> Price:
    r"""Prices under hourglass noise on a pair of queries.

    A move of u = (first + second) / sensitivity by k and of v = (first - second) / 2 by d changes the
    level by at most :math:`m = \min \{ j \ge |k| : j = k \bmod 2, |d| \le j h \}`, and by exactly that
    from (0, step): the price is m epsilon. It is convex in q except for steps, and rises with |d|.

    Args:
        noise: The distribution.
        relation: The neighboring relation.
        queries: Number of queries; only a pair has a price.

    Returns:
        A function of a column; exact. It refuses weights that move u by a part of a unit, which would show.

    Raises:
        InternalFault: not a pair of queries, or impossible parameters.

    References:
        The proof is in app/mechanisms/hourglass.py.
    """
    if queries != 2:
        raise InternalFault("Hourglass noise is for a pair of queries.")
    if not noise.is_sound:
        raise InternalFault("An hourglass has impossible parameters.")

    @cache
    def price(column: Column) -> Cost:
        levels = 0
        if sum(a for _, a, _, _ in column) != 0 or any(c for _, _, _, c in column):
            raise InternalFault("An hourglass's queries do not complement each other.")
        for end in _ends(column, relation):
            moves = dict(end)
            first, second = moves.get(0, 0), moves.get(1, 0)
            units, rest = divmod(first + second, noise.sensitivity)
            if rest:
                raise InternalFault("An hourglass's queries do not complement each other.")
            level = max(abs(units), -(-abs(first - second) // (2 * noise.half)))
            levels = max(levels, level + (level - units) % 2)
        return levels * noise.epsilon

    return price


def _ends(column: Column, relation: Relation) -> Sequence[Move]:
    """(query, move [grid steps]) at each corner of what one person can do, see the module's docstring."""
    squared, quarter, eighth = any(c for _, _, _, c in column), GRID_SIZE // 4, GRID_SIZE // 8
    match relation:
        case Relation.REPLACE_ONE:
            ends = [[(number, GRID_SIZE * a) for number, a, _, _ in column]]
            if squared:
                ends += [
                    [(number, d * a + sign * e * c) for number, a, _, c in column]
                    for d, e in ((5 * eighth + 1, quarter), (7 * eighth - 1, eighth + 1))
                    for sign in (1, -1)
                ]
        case Relation.ADD_REMOVE_ONE:
            ends = [
                [(number, quarter * (place * a + 4 * b + height * c)) for number, a, b, c in column]
                for place, height in (((0, 1), (4, 1), (1, 0), (3, 0)) if squared else ((0, 0), (4, 0)))
            ]
        case _:
            assert_never(relation)
    return ends
