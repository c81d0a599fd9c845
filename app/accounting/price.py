r"""The one price of noisy sums: what one person can move them by, over the noise.

Independent discrete Laplace noise of scale b_j on sum j costs a person who moves the sums by m_j

.. math:: \epsilon = \sum_j |m_j| / b_j,

and independent discrete Gaussian noise :math:`\mu^2 = \sum_j m_j^2 / (\sigma_j^2 - 9)`. Both are convex in
the moves, so over a polygon of moves they are largest at a corner of it. Which corners a workload has, the
module of that workload proves: `prices` for values and their squares, `shape_prices` for counts by bin,
`pair_prices` for two numbers and their products, `clusters` for K-means. Draws by rank and hourglass noise
are no noisy sums in this sense: their prices stand in `shape_prices` and `prices`.

References:
    Dwork, McSherry, Nissim, Smith, TCC 2006, doi:10.1007/11681878_14, proposition 1; Dong, Roth, Su,
    arXiv:1905.02383, theorem 2.7 and corollary 3.3. Why it holds of discrete noise, and adds up:
    `app.accounting.gaussian`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite, lcm
from typing import Self

from app.accounting.gaussian import effective_variance
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace

Cost = int
"""What one person pays [micro-epsilon, or 1e-6 of mu^2]."""

Move = Sequence[tuple[int, int]]
"""(number of a sum, what one person moves it by) at one corner of what a person can do; other sums stay."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What a move costs in each sum, as exact fractions of one denominator.

    Attributes:
        numerators: Of a move of 1; under Gaussian noise of a square of 1. One a sum.
        denominator: Of all of them.
        gaussian: Whether squares of moves are priced, in mu^2.
    """

    numerators: tuple[int, ...]
    denominator: int
    gaussian: bool

    @classmethod
    def of(cls, noise: DiscreteLaplace | DiscreteGaussian, sums: int) -> Self:
        """The rates of independent noise.

        Args:
            noise: One scale or sigma a sum.
            sums: Number of sums.

        Raises:
            InternalFault: another number of scales, or one that is out of range.
        """
        gaussian = isinstance(noise, DiscreteGaussian)
        sizes = noise.sigmas if isinstance(noise, DiscreteGaussian) else noise.scales
        if len(sizes) != sums:
            raise InternalFault("The noise does not fit the number of sums.")
        return cls._of(sizes, gaussian)

    @classmethod
    @lru_cache(maxsize=256)
    def _of(cls, sizes: tuple[float, ...], gaussian: bool) -> Self:
        if gaussian:
            return cls.of_variances([effective_variance(sigma) for sigma in sizes])
        if not all(isfinite(scale) and scale > 0 for scale in sizes):
            raise InternalFault("A Laplace scale is out of range.")
        return cls._over([1 / Fraction(scale) for scale in sizes], gaussian=False)

    @classmethod
    def of_variances(cls, variances: Sequence[Fraction]) -> Self:
        r"""The rates of Gaussian noise where sum j has been answered with a precision of 1 / `variances[j]`.

        One discrete draw of :math:`\sigma_j` is worth :math:`\sigma_j^2 - 9`; precisions of independent
        draws add up, see `app.mechanisms.refined_gaussian`.

        Args:
            variances: One a sum, above 0 [units of the sum, squared].
        """
        return cls._over([1 / variance for variance in variances], gaussian=True)

    @classmethod
    def _over(cls, rates: Sequence[Fraction], *, gaussian: bool) -> Self:
        denominator = lcm(*(rate.denominator for rate in rates))
        numerators = tuple(rate.numerator * (denominator // rate.denominator) for rate in rates)
        return cls(numerators, denominator, gaussian)

    def loss(self, moves: Iterable[Move]) -> int:
        """The largest loss at some corners, in parts of `denominator`."""
        rates = self.numerators
        if self.gaussian:
            return max(sum(move * move * rates[number] for number, move in end) for end in moves)
        return max(sum(abs(move) * rates[number] for number, move in end) for end in moves)

    def cost(self, loss: int, weight: int = 1) -> Cost:
        """A loss as a cost.

        Args:
            loss: Of a person of weight 1, in parts of `denominator`.
            weight: What the person's moves are multiplied by, at least 0.

        Returns:
            The cost, rounded up.

        Raises:
            InternalFault: a weight below 0 or no integer.
        """
        if type(weight) is not int or weight < 0:
            raise InternalFault("A weight is not an integer.")
        return -(-loss * weight ** (2 if self.gaussian else 1) * MICRO // self.denominator)


def sums_cost(
    weight: int, moves: Iterable[Move], noise: DiscreteLaplace | DiscreteGaussian, sums: int
) -> Cost:
    """Price noisy sums for each person of one weight.

    Args:
        weight: What a person's moves are multiplied by, at least 0.
        moves: The corners of what one person of weight 1 can do.
        noise: One scale or sigma a sum.
        sums: Number of sums.

    Returns:
        The cost, rounded up [micro-epsilon; of Gaussian noise 1e-6 of mu^2].

    Raises:
        InternalFault: a weight below 0 or no integer, another number of scales, one that is out of range.

    Privacy: this is the price; exact, never too low, looks at no data.
    """
    rates = Rates.of(noise, sums)
    return rates.cost(rates.loss(moves), weight)
