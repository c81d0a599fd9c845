r"""Privacy of Gaussian noise, exact: the analytic Gaussian mechanism, read both ways.

With :math:`\mu` = L2 sensitivity / sigma, noise N(0, sigma^2) is (epsilon, delta)-differentially private if
and only if

.. math:: \delta \ge \Phi(\mu / 2 - \epsilon / \mu) - e^\epsilon \Phi(-\mu / 2 - \epsilon / \mu).

The classic sigma = sqrt(2 ln(1.25 / delta)) / epsilon is proved for epsilon < 1 only, wastes a third of the
noise there, and is not private for large epsilon; it is not used anywhere.

*Discrete noise.* Draw x from N(q, sigma^2 - 9) and then an integer with probability proportional to
:math:`e^{-(z - x)^2 / 18}`. By Poisson's summation the sum of these weights over all integers is the same
for every x up to a factor within :math:`1 \pm 3 e^{-177}` (:math:`2 \pi^2 \cdot 9 > 177`). So this
post-processing of continuous noise has the discrete Gaussian law of variance parameter sigma^2 about q, up to
a factor :math:`e^{\pm \tau}` at every integer, :math:`\tau < 10^{-76}`; independent coordinates multiply.
Hence discrete noise of parameter sigma costs no more than continuous noise of variance sigma^2 - 9, with
(epsilon + 2 tau, e^tau delta). `DISCRETE_LOSS` is that 9, and the roundings below exceed tau by far.

References:
    Balle, Wang, arXiv:1805.06530v2, theorem 8 (the formula).
    Canonne, Kamath, Steinke, arXiv:2004.00010, theorem 7 (delta of the discrete Gaussian, the tests' oracle).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from scipy.special import erfcx, ndtr, ndtri

from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.errors import InternalFault

DISCRETE_LOSS = 9
"""Discrete noise of parameter sigma is worth continuous noise of variance sigma^2 - 9."""

SMALLEST_SIGMA = 64.0
"""Narrower noise has no price here; on a grid of 2^30 steps nothing comes near it."""

_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_RELATIVE = 1e-11
"""What rounding may add to mu or epsilon, relative; well above what it does."""


def gaussian_delta(epsilon: float, mu: float) -> float:
    r"""The delta of Gaussian noise at an epsilon.

    With :math:`a = \epsilon / \mu - \mu / 2`, :math:`b = a + \mu` and Mills' ratio R the formula above is
    :math:`\varphi(a) (R(a) - R(b))`, in which nothing overflows.

    Args:
        epsilon: At least 0 [1].
        mu: L2 sensitivity / sigma, above 0 [1].

    Returns:
        delta in [0, 1). Its rounding error is below `_error`.

    Privacy: no data, no randomness.

    References:
        Balle, Wang, arXiv:1805.06530v2, equation 6.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    first, second = _delta_terms(epsilon, mu)
    return max(first - second, 0.0)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of Gaussian noise at a delta.

    Args:
        mu: L2 sensitivity / sigma, at least 0 [1].
        delta: In (0, 1) [1].

    Returns:
        The least epsilon >= 0 with `gaussian_delta` <= delta, to 1e-11 relative.

    Raises:
        InternalFault: mu or delta out of range.

    Privacy: no data, no randomness. Not rounded to any side: `gaussian_cost` is the price.
    """
    if not (0 <= mu <= 1e6 and 0 < delta < 1):
        raise InternalFault("Gaussian noise has no price.")
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    # Phi(-a) alone exceeds the formula, so its epsilon is an upper end.
    most = mu * mu / 2 - mu * float(ndtri(delta))
    return _root(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, most * (1 + 1e-9))


def gaussian_cost(squares: Fraction, delta: int) -> int:
    """The price of Gaussian noise at a delta.

    Args:
        squares: mu^2: over the queries, the sum of (what a person moves it by)^2 / (sigma^2 - 9) [1].
        delta: In 1..10^12 - 1 [1e-12].

    Returns:
        Epsilon, rounded up to a whole micro-epsilon and never below the exact value.

    Raises:
        InternalFault: delta out of range, or noise so small that it has no price.

    Privacy: this is the price, of discrete noise too (module docstring).
    """
    if squares < 0 or not 0 < delta < DELTA_UNIT:
        raise InternalFault("Gaussian noise has no price.")
    return _cost(squares, delta)


@lru_cache(maxsize=65_536)
def _cost(squares: Fraction, delta: int) -> int:
    if squares == 0:
        return 0
    mu = math.sqrt(float(squares)) * (1 + _RELATIVE)
    limit = delta / DELTA_UNIT
    epsilon = math.ceil(gaussian_epsilon(mu, limit) * MICRO * (1 + _RELATIVE))
    step = 1
    while not _is_within(epsilon / MICRO, mu, limit):
        epsilon += step
        step *= 2
    return epsilon


def calibrated_sigma(epsilon: int, delta: int, l2_sensitivity: int) -> float:
    """The standard deviation at which one discrete Gaussian query costs at most (epsilon, delta).

    Args:
        epsilon: At least 1 [micro-epsilon].
        delta: In 1..10^12 - 1 [1e-12].
        l2_sensitivity: The most that one person moves the query, at least 1 [units of the query].

    Returns:
        sigma [units of the query], rounded up, at least `SMALLEST_SIGMA`; `gaussian_cost` of it is at most
        epsilon.

    Raises:
        InternalFault: epsilon, delta or sensitivity out of range.

    Privacy: public constants of the mechanism.

    References:
        Balle, Wang, arXiv:1805.06530v2, algorithm 1; here by root finding on the formula itself.

    >>> round(calibrated_sigma(1_000_000, 100_000, 2**30) / 2**30, 4)
    4.6787
    """
    if epsilon < 1 or not 0 < delta < DELTA_UNIT or l2_sensitivity < 1:
        raise InternalFault("There is no Gaussian noise for this price.")
    mu = _largest_mu(epsilon / MICRO, delta / DELTA_UNIT)
    sigma = max(math.hypot(l2_sensitivity / mu, math.sqrt(DISCRETE_LOSS)), SMALLEST_SIGMA)
    square = l2_sensitivity**2
    excess = _RELATIVE
    while gaussian_cost(square / effective_variance(sigma), delta) > epsilon:
        sigma *= 1 + excess
        excess *= 2
    return sigma


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


def _largest_mu(epsilon: float, delta: float) -> float:
    """The mu with gaussian_delta(epsilon, mu) = delta; delta rises with mu."""
    high = 1.0
    while gaussian_delta(epsilon, high) < delta:
        high *= 2
    low = high / 2
    while gaussian_delta(epsilon, low) > delta:
        low /= 2
    return _root(lambda mu: gaussian_delta(epsilon, mu) - delta, low, high)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes its sign between low and high, to 1e-13 relative."""
    from scipy.optimize import brentq  # takes longer to load than most commands run

    return float(brentq(function, low, high, rtol=1e-13, xtol=1e-300))


def _is_within(epsilon: float, mu: float, delta: float) -> bool:
    """Whether delta is surely kept, whatever the rounding."""
    first, second = _delta_terms(epsilon, mu)
    return first - second + _error(epsilon, mu) * first <= delta


def _error(epsilon: float, mu: float) -> float:
    """A bound on the rounding error of gaussian_delta, relative to the first term of the formula.

    Rounding moves a by a few units in the last place of its terms, and phi(a) by |a| times that.
    """
    terms = epsilon / mu + mu / 2
    return 1e-15 * (10 + (1 + abs(epsilon / mu - mu / 2)) * terms)


def _delta_terms(epsilon: float, mu: float) -> tuple[float, float]:
    """The two terms of the formula."""
    a = epsilon / mu - mu / 2
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    first = density * _mills(a) if a > 0 else float(ndtr(-a))
    return first, density * _mills(a + mu)


def _mills(x: float) -> float:
    """(1 - Phi(x)) / phi(x), for x > 0."""
    return _ROOT_HALF_PI * float(erfcx(x / math.sqrt(2)))
