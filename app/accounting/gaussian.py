r"""The currency of Gaussian noise: mu^2, which adds up exactly.

With :math:`\mu` = L2 sensitivity / sigma, noise N(0, sigma^2) on what a person moves has the trade-off
function of telling N(0, 1) from N(mu, 1): it is mu-Gaussian differentially private (GDP). Answers with mu_1,
mu_2, ... are together exactly GDP with :math:`\mu^2 = \sum_k \mu_k^2`, since a sum of squares is what moves
a vector of normals. Adding up (epsilon, delta) instead would take 3.4 times the noise's variance at 30
answers and 11 times at 100, for (1, 1e-6). What mu^2 is as an epsilon at a delta, and what an offer of
epsilon buys, is the formula of `dither.device.gaussian`.

*Adaptive answers.* The queries, weights and sigmas of an answer may depend on all former answers, while the
mu^2 of every person adds up to at most what they reserved: this filter keeps the guarantee of the budget [1,
theorem 1], and does so for each person by what that person is charged [2]. Its condition is that
a charge is checked against what is left before the answer is seen, and depends on no value: the ledger
charges whole cohorts by public weights, in the transaction that publishes the answer, and the ledger's
statement `DEBIT` refuses what does not fit.

*Beside local protocols.* Reports and sessions are interactive mechanisms that run at the same time, in any
order. For f-DP, which GDP and pure differential privacy are instances of, concurrent composition of
interactive mechanisms is what composition of one answer each is [3, theorem 1.3]. Its condition is that each
mechanism keeps its own guarantee against an adversary who chooses every message: here each is a sequence of
answers with fresh noise, priced by itself. A person's two accounts compose as what they are: pure epsilon
adds to the epsilon at which mu^2 is read, and delta stays (basic composition of (epsilon, 0) and (epsilon',
delta)).

*Discrete noise.* Draw x from N(q, sigma^2 - 9) and then an integer with probability proportional to
:math:`e^{-(z - x)^2 / 18}`. By Poisson's summation the sum of these weights over all integers is the same
for every x up to a factor within :math:`1 \pm 3 e^{-177}` (:math:`2 \pi^2 \cdot 9 > 177`). So this
post-processing of continuous noise has the discrete Gaussian law of variance parameter sigma^2 about q, up to
a factor :math:`e^{\pm \tau}` at every integer, :math:`\tau < 10^{-76}`; independent coordinates, and answers,
multiply. Hence discrete noise of parameter sigma costs no more than continuous noise of variance sigma^2 - 9,
and k of them keep (epsilon + 2 k tau, e^(k tau) delta) where continuous noise keeps (epsilon, delta): the
margin at which epsilons are read exceeds that by far.

References:
    [1] Smith, Thakurta, "Fully Adaptive Composition for Gaussian Differential Privacy", arXiv:2210.17520.
    [2] Koskela, Tobaben, Honkela, "Individual Privacy Accounting with Gaussian Differential Privacy",
        arXiv:2209.15596.
    [3] Vadhan, Zhang, "Concurrent Composition Theorems for Differential Privacy", arXiv:2207.08335.
    Dong, Roth, Su, "Gaussian Differential Privacy", arXiv:1905.02383, corollary 3.3 (the sum).
    Canonne, Kamath, Steinke, arXiv:2004.00010, theorem 7 (delta of the discrete Gaussian, the tests' oracle).
"""

import math
from fractions import Fraction

from dither.device.gaussian import DISCRETE_LOSS, SMALLEST_SIGMA

from app.core.epsilon import MICRO
from app.core.errors import InternalFault


def mu2_cost(squares: Fraction) -> int:
    """The price of Gaussian noise.

    Args:
        squares: mu^2: over the queries, the sum of (what a person moves it by)^2 / `effective_variance` [1].

    Returns:
        mu^2, rounded up [1e-6].

    Raises:
        InternalFault: a square is not negative.

    Privacy: this is the price, of discrete noise too (module docstring).

    >>> mu2_cost(Fraction(1, 3))
    333334
    """
    if squares < 0:
        raise InternalFault("Gaussian noise has no price.")
    return -((-squares.numerator * MICRO) // squares.denominator)


def effective_variance(sigma: float) -> Fraction:
    """What discrete Gaussian noise is worth as continuous noise: sigma^2 - 9, exactly.

    Args:
        sigma: At least `SMALLEST_SIGMA` [units of the query].

    Returns:
        Variance [units of the query, squared].

    Raises:
        InternalFault: sigma is not finite, or below that.
    """
    if not (math.isfinite(sigma) and sigma >= SMALLEST_SIGMA):
        raise InternalFault("A Gaussian sigma is out of range.")
    return Fraction(sigma) ** 2 - DISCRETE_LOSS
