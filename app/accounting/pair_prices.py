r"""The price of three sums of two numbers: of each of them, and of their products.

A person with the grid points X and Y about the middles of their ranges, both between -2^29 and 2^29, adds W
X, W Y and :math:`W \lfloor X Y / 2^{30} \rfloor` to the sums. A value that is replaced moves them by W
times

.. math:: a = |X - X'|, \qquad b = |Y - Y'|, \qquad c \le |X Y - X' Y'| / 2^{30} + 1,

since rounding down moves a difference by less than 1. Under independent Laplace noise of scales s the loss
is :math:`W (a / s_1 + b / s_2 + c / s_3)`, and under Gaussian noise :math:`\mu^2 = W^2 \sum_j m_j^2 /
(\sigma_j^2 - 9)` (`app.accounting.gaussian`). Both are convex in each of X, Y, X' and Y' alone: an absolute
value of something affine, plus a constant, and its square, are. So they are largest at ends of the ranges:

- X moves by 2^30, Y stays at an end: c = 2^29 + 1; and the same the other way round;
- both move by 2^30: the product is what it was, c = 1.

With :math:`s_1 = s_2 = s` and half of it on the products all three are :math:`2^{31} W / s`, but for the 1:
the products cost nothing beside both sums. So it is with Gaussian noise, :math:`1 + 4 / 4 = 1 + 1`.
"""

from fractions import Fraction
from math import isfinite

from app.accounting.gaussian import effective_variance, mu2_cost
from app.core.epsilon import epsilon_cost
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace

MOVES = (
    (GRID_SIZE, 0, GRID_SIZE // 2 + 1),
    (0, GRID_SIZE, GRID_SIZE // 2 + 1),
    (GRID_SIZE, GRID_SIZE, 1),
)
"""What a person of weight 1 moves the three sums by, at most: one number moves, the other one, or both."""


def pair_cost(weight: int, noise: DiscreteLaplace | DiscreteGaussian) -> int:
    """Price the three sums for each person of one weight, where a value is replaced.

    Args:
        weight: What a person's numbers are multiplied by, at least 0.
        noise: Of the sums of the first number, of the second one, and of their products.

    Returns:
        The cost, rounded up [micro-epsilon; of Gaussian noise 1e-6 of mu^2].

    Raises:
        InternalFault: a weight below 0 or no integer, other than three scales, one that is out of range.

    Privacy: this is the price; never too low, looks at no data.

    References:
        Dwork, McSherry, Nissim, Smith, TCC 2006, doi:10.1007/11681878_14, proposition 1; Dong, Roth, Su,
        arXiv:1905.02383, theorem 2.7 and corollary 3.3.
    """
    if type(weight) is not int or weight < 0:
        raise InternalFault("A weight is not an integer.")
    if isinstance(noise, DiscreteGaussian):
        of_one = [1 / effective_variance(sigma) for sigma in noise.sigmas]
        worst = max(_sum(of_one, [move * move for move in moves]) for moves in MOVES)
        return mu2_cost(weight**2 * worst)
    if not all(isfinite(scale) and scale > 0 for scale in noise.scales):
        raise InternalFault("A Laplace scale is out of range.")
    of_one = [1 / Fraction(scale) for scale in noise.scales]
    return epsilon_cost(weight * max(_sum(of_one, list(moves)) for moves in MOVES))


def _sum(of_one: list[Fraction], moves: list[int]) -> Fraction:
    if len(of_one) != len(moves):
        raise InternalFault("The noise does not fit the three sums.")
    return sum((one * move for one, move in zip(of_one, moves, strict=True)), Fraction(0))
