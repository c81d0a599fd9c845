r"""The price of the sums of two numbers and of their products.

*replace_one.* A person with the grid points X and Y about the middles of their ranges, both between -2^29 and
2^29, adds W X, W Y and :math:`W \lfloor X Y / 2^{30} \rfloor` to the sums. A value that is replaced moves
them by W times

.. math:: a = |X - X'|, \qquad b = |Y - Y'|, \qquad c \le |X Y - X' Y'| / 2^{30} + 1,

since rounding down moves a difference by less than 1. Under independent Laplace noise of scales s the loss
is :math:`W (a / s_1 + b / s_2 + c / s_3)`, and under Gaussian noise :math:`\mu^2 = W^2 \sum_j m_j^2 /
(\sigma_j^2 - 9)` (`app.accounting.gaussian`). Both are convex in each of X, Y, X' and Y' alone: an absolute
value of something affine, plus a constant, and its square, are. So they are largest at ends of the ranges:

- X moves by 2^30, Y stays at an end: c = 2^29 + 1; and the same the other way round;
- both move by 2^30: the product is what it was, c = 1.

With :math:`s_1 = s_2 = s` and half of it on the products all three are :math:`2^{31} W / s`, but for the 1:
the products cost nothing beside both sums. So it is with Gaussian noise, :math:`1 + 4 / 4 = 1 + 1`.

*add_remove_one.* With G = 2^30, p = X + G / 2, q = Y + G / 2 and :math:`r = \lfloor X Y / G \rfloor` a person
adds W times

.. math:: 2 a = 2 r + X + Y + G / 2, \quad 2 b = 2 p - 2 a, \quad 2 c = 2 q - 2 a, \quad
    2 d = 2 G - 2 p - 2 q + 2 a

to four sums. Before r is rounded down these are 2 p q / G, 2 p (G - q) / G, 2 (G - p) q / G and
2 (G - p) (G - q) / G: none of them is below 0, and together they are 2 G. Rounding lowers 2 a and 2 d by less
than 2 and raises the others by as much, so integers 2 a and 2 d are at least -1, and the sum is 2 G still.
The positive ones sum to at most 2 G + 2. So the L1 norm is at most 2 G + 4, and so is the L2 norm, whose
square is at most (2 G + 2)^2 + 2: one person comes or goes for the price of one sum.

*Squares, replace_one.* A person also adds W times :math:`\lfloor X^2 / G \rfloor` and :math:`\lfloor Y^2 / G
\rfloor` to two more sums. In parts of the ranges, let d and e be what x and y move by. As :math:`|x + x'| \le
1 - d` and :math:`x y - x' y' = \tfrac12 ((x + x')(y - y') + (y + y')(x - x'))`,

.. math:: |x^2 - x'^2| \le d (1 - d), \qquad |x y - x' y'| \le \tfrac12 (d + e) - d e.

With :math:`d (1 - d) \le \min(d, \tfrac14, 1 - d)` all five bounds are linear in d and in e between 0, 1/4,
3/4 and 1, so they are within the hull of those at the 16 pairs of these, and the loss, which is convex in the
moves and rises with each, is largest there; each floor adds less than 1. Under Gaussian noise products and
squares at twice the rate of a number cost what a covariance costs: the squared move is then at most 2.

*Squares, add_remove_one.* Let :math:`a_2 = \lfloor p^2 / G \rfloor`, :math:`a_1 = 2 (p - a_2)` and
:math:`a_0 = G - 2 p + a_2`, none of which is below 0 and which sum to G: Bernstein's polynomials of degree
2, in integers. A person adds W times :math:`\lfloor a_i b_j / G \rfloor` of both numbers to nine sums. None
of these is below 0 and together they are at most G, so what a person moves is in the hull of nothing and of
G on one sum alone: the price is that of one sum. Both numbers, their squares, their product and 1 are in
the span of the nine; y^2 is not in that of the six of degrees 2 and 1 (arXiv:2604.11820).

*The nine sums, replace_one.* Both what a person added and what the same person adds now are in that hull, so
what is moved is in the hull of G on one sum against G on another one, or against nothing: the price is that
of two sums. Under Laplace noise, of the same scale on all, the standard deviation of squares about the middle
of a range is then that scale, and that of products :math:`1 / \sqrt 2` times it; of sums of their own, at the
same price, :math:`2 \sqrt 2` and :math:`\sqrt 2` times it. Under Gaussian noise five sums are better.
"""

from itertools import combinations, product

from app.accounting.price import sums_cost
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Relation

MOVES = (
    (GRID_SIZE, 0, GRID_SIZE // 2 + 1),
    (0, GRID_SIZE, GRID_SIZE // 2 + 1),
    (GRID_SIZE, GRID_SIZE, 1),
)
"""What a person of weight 1 moves the three sums by, at most: one number moves, the other one, or both."""

PARTS = 2 * GRID_SIZE + 4
"""What a person of weight 1 who comes or goes moves the four sums by, at most, in L1 and in L2 norm."""

MOMENTS = tuple(
    (
        d * GRID_SIZE // 4,
        e * GRID_SIZE // 4,
        (4 * (d + e) - 2 * d * e) * GRID_SIZE // 32 + 1,
        min(d, 1, 4 - d) * GRID_SIZE // 4 + 1,
        min(e, 1, 4 - e) * GRID_SIZE // 4 + 1,
    )
    for d, e in product((0, 1, 3, 4), repeat=2)
)
"""What a person of weight 1 moves the five sums by, at most, where numbers move by quarters of ranges."""

BERNSTEIN = 9
"""Sums that both numbers, their squares and their product are in the span of."""


def pair_cost(weight: int, noise: DiscreteLaplace | DiscreteGaussian, relation: Relation) -> int:
    """Price the sums of two numbers and of their products for each person of one weight.

    Args:
        weight: What a person's numbers are multiplied by, at least 0.
        noise: Where a value is replaced, of the sums of the first number, of the second one, and of their
            products; where a person comes or goes, of the four sums.
        relation: The neighboring relation.

    Returns:
        The cost, rounded up [micro-epsilon; of Gaussian noise 1e-6 of mu^2].

    Raises:
        InternalFault: a weight below 0 or no integer, another number of scales, one that is out of range.

    Privacy: this is the price; never too low, looks at no data.

    References:
        Dwork, McSherry, Nissim, Smith, TCC 2006, doi:10.1007/11681878_14, proposition 1; Dong, Roth, Su,
        arXiv:1905.02383, theorem 2.7 and corollary 3.3.
    """
    if relation.hides_people:
        return sums_cost(weight, [[(number, PARTS)] for number in range(4)], noise, 4)
    return sums_cost(weight, [list(enumerate(moves)) for moves in MOVES], noise, 3)


def moments_cost(weight: int, noise: DiscreteLaplace | DiscreteGaussian, relation: Relation) -> int:
    """Price the sums of two numbers, of their products and squares for each person of one weight.

    Args:
        weight: What a person's numbers are multiplied by, at least 0.
        noise: Of the nine sums; where a value is replaced also of five, of both numbers, of their products,
            and of the squares of either.
        relation: The neighboring relation.

    Returns:
        The cost, rounded up [micro-epsilon; of Gaussian noise 1e-6 of mu^2].

    Raises:
        InternalFault: as `pair_cost`.

    Privacy: this is the price; never too low, looks at no data.

    References:
        As of `pair_cost`.
    """
    sizes = noise.sigmas if isinstance(noise, DiscreteGaussian) else noise.scales
    if len(sizes) == len(MOMENTS[0]) and not relation.hides_people:
        return sums_cost(weight, [list(enumerate(moves)) for moves in MOMENTS], noise, len(sizes))
    cells = combinations(range(BERNSTEIN), relation.moved)
    return sums_cost(weight, [[(cell, GRID_SIZE) for cell in moved] for moved in cells], noise, BERNSTEIN)
