r"""The price of a draw by score in mu^2: the least that its bounded range allows.

The exponential mechanism draws choice j with probability proportional to :math:`e^{s_j / \lambda}`. If the
scores of neighbors differ by d_j, the logarithm of its likelihood ratio is :math:`d_j / \lambda` less a
constant: over all choices it has a range of at most :math:`r = (\max d - \min d) / \lambda`. Such a draw has

.. math:: \mu(r) = 2 \Phi^{-1}(\sigma(r / 2)), \qquad \sigma(x) = 1 / (1 + e^{-x}),

and no smaller mu does for all of them. A mechanism of which only pure epsilon is known has twice that range,
:math:`2 \Phi^{-1}(\sigma(\epsilon))`: nearly four times the price. So draws of studies with Gaussian noise
were exponential, and not permute-and-flip. Quantiles are not drawn any more
(`app.estimators.quantile_tree`); the audit prices those that were.

*Proof.* Let P and Q be its laws on two neighbors, L = dP/dQ.

1. :math:`t - r \le \log L \le t` for some t, and :math:`E_Q L = 1`, so t lies in [0, r], or L = 1. The
   trade-off function of P and Q is given by :math:`E_Q \max(0, L - c)` for all c. These are convex in L, so
   among all L with this range and mean they are largest for the one that has only the two ends as its values:
   no other L is easier to tell.
2. With two values P is (a, 1 - a) and Q is (b, 1 - b), :math:`a = e^t b` and
   :math:`1 - a = e^{t - r} (1 - b)`. So the log-odds of a exceed those of b by r exactly, whatever t is.
3. Their trade-off function runs straight from (0, 1) to (b, 1 - a) and to (1, 0). That of telling N(0, 1)
   from N(mu, 1), :math:`G(x) = \Phi(\Phi^{-1}(1 - x) - \mu)`, is convex, and passes these three points if
   :math:`\mu = \Phi^{-1}(a) - \Phi^{-1}(b)`. So it lies below: this mu is enough, and no smaller one is.
4. With :math:`g(x) = \Phi^{-1}(\sigma(x))` this is g(x + r) - g(x). g is odd. If it is concave above 0, then
   its slope is even and falls away from 0, and the difference is largest for x = -r / 2: it is 2 g(r / 2).
5. g is concave above 0: with u = g(x), :math:`\sigma (1 - \sigma) = \Phi(u) \Phi(-u)` and
   :math:`g' = \Phi(u) \Phi(-u) / \varphi(u)`, the slope of log g' is
   :math:`1 - 2 \Phi(u) + u \Phi(u) \Phi(-u) / \varphi(u)`, which is -h(u) over the density, with
   :math:`h(u) = (2 \Phi(u) - 1) \varphi(u) - u \Phi(u) \Phi(-u)`. h is 0 at 0 and at infinity. Its slope is
   :math:`k(u) = 2 \varphi^2 - \Phi(u) \Phi(-u)`: above 0 at 0 (:math:`1 / \pi > 1 / 4`), 0 at infinity, with
   the slope :math:`\varphi (2 \Phi(u) - 1 - 4 u \varphi)`. The bracket is 0 at 0 and 1 at infinity, and falls
   before it rises, as its slope is :math:`\varphi (4 u^2 - 2)`: so it is negative first and positive then. So
   k falls, and then rises to 0: it is positive first and negative then. So h rises from 0, and then falls to
   0: it is not negative.

Since g is concave above 0, :math:`\mu(r) \le 2 g'(0) r / 2 = r \sqrt{\pi / 8}`, and draws of the ranges
r_1, r_2, ... cost at most :math:`(\pi / 8) \sum_k r_k^2`, nearly all of it where the ranges are small. Draws
with fresh entropy compose with each other and with Gaussian noise as that does: mu^2 adds up
(`app.accounting.gaussian`).

References:
    Dong, Roth, Su, "Gaussian Differential Privacy", arXiv:1905.02383 (trade-off functions; corollary 3.3).
    Dong, Durfee, Rogers, "Optimal Differential Privacy Composition for Exponential Mechanisms",
        arXiv:1909.13830 (bounded range, and that two values are its worst case).
"""

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

from dither.device.gaussian import CONTEXT, ROOT_TWO_PI, mills

from app.core.errors import InternalFault

_ENOUGH = Decimal("1e-20")
"""A last step of this size leaves less than its square."""

_MARGIN = Fraction(1, 10**25)
"""More than what is left and all rounding, on a number that is at most `_FARTHEST`."""

_FARTHEST = 10_000
"""The largest range that has a price; an offer of the largest epsilon has a smaller one."""

_GUESSED = 600.0
"""Below it, :math:`e^{-r/2}` is a double."""

_TINY = Fraction(1, 10**9)
"""A smaller range is priced by the bound on mu: it is exact to a part of r^2."""

ROOT_PI_8 = Fraction(626_657_068_657_751, 10**15)
"""Above sqrt(pi / 8), by less than 1e-15."""


@lru_cache(maxsize=65_536)
def range_mu2(moved: Fraction) -> Fraction:
    r"""mu^2 of one exponential draw.

    :math:`x = \Phi^{-1}(\sigma(r / 2))` solves :math:`\log \Phi(-x) = -\log(1 + e^{r / 2})`. The left side is
    concave and falls, so Newton's steps lie at or above the solution, from the first one on.

    Args:
        moved: r, the range of what the scores move by over the scale of the draw, at least 0.

    Returns:
        At least mu(r)^2, at most 1e-18 more.

    Raises:
        InternalFault: a range below 0 or above 10,000.

    Privacy: this is the price (module docstring).

    >>> round(float(range_mu2(Fraction(1))), 6)
    0.389242
    """
    if not 0 <= moved <= _FARTHEST:
        raise InternalFault("A draw by score has no price.")
    if moved < _TINY:
        return (ROOT_PI_8 * moved) ** 2
    half = CONTEXT.divide(Decimal(moved.numerator), Decimal(2 * moved.denominator))
    odds = CONTEXT.ln(CONTEXT.add(1, CONTEXT.exp(half)))
    rough = float(half)
    guess = -NormalDist().inv_cdf(1 / (1 + math.exp(rough))) if rough < _GUESSED else math.sqrt(2 * rough)
    x = Decimal(guess)
    step = Decimal(1)
    while abs(step) > _ENOUGH:
        ratio = mills(x)
        # log Phi(-x) = -x^2 / 2 - log sqrt(2 pi) + log R(x), and its slope is -1 / R(x).
        tail = CONTEXT.ln(CONTEXT.divide(ratio, ROOT_TWO_PI))
        log = CONTEXT.subtract(tail, CONTEXT.divide(CONTEXT.multiply(x, x), 2))
        step = CONTEXT.multiply(CONTEXT.add(log, odds), ratio)
        x = CONTEXT.add(x, step)
    return (2 * (Fraction(x) + _MARGIN)) ** 2
