r"""Epsilon at a delta as mu^2, and back: what Gaussian noise is counted in.

Noise of standard deviation N / mu on values at most N apart has the privacy loss of telling N(0, 1) from
N(mu, 1): it is mu-Gaussian differentially private. That is (epsilon, delta)-private if and only if

.. math:: \delta \ge \Phi(\mu / 2 - \epsilon / \mu) - e^\epsilon \Phi(-\mu / 2 - \epsilon / \mu)
          = \varphi(a) (R(a) - R(a + \mu)), \qquad a = \epsilon / \mu - \mu / 2,

with Mills' ratio :math:`R(x) = (1 - \Phi(x)) / \varphi(x)`. The right side rises with mu and falls with
epsilon. It is evaluated here with 80 digits, of which 32 hold wherever mu is above 1e-15, and compared with a
margin of 1e-30, so that what is kept is kept for certain: limits are rounded down, costs up.

The classic sqrt(2 ln(1.25 / delta)) / epsilon wastes a third of the noise at small epsilons and is not
private at large ones; it is not used anywhere.

References:
    Balle, Wang, arXiv:1805.06530, theorem 8 (the formula). Dong, Roth, Su, arXiv:1905.02383, corollary 2.13
    (for all epsilons together it is the same as mu-Gaussian differential privacy).
"""

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dither.device.numbers import DELTA_UNIT, GRID_SIZE, MICRO, SIGNIFICANT

DISCRETE_LOSS = 9
"""Discrete noise of parameter sigma is worth continuous noise of variance sigma^2 - 9: a discrete Gaussian of
parameter 3 about any real point has the same normalization to e^-177 (`app.accounting.gaussian` proves
it)."""

SMALLEST_SIGMA = 64
"""Narrower noise is not made; on a grid of 2^30 steps nothing comes near it."""

CONTEXT = Context(prec=80, Emax=999_999_999_999, Emin=-999_999_999_999)
_ONE, _TWO = Decimal(1), Decimal(2)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
ROOT_TWO_PI = CONTEXT.sqrt(CONTEXT.multiply(_TWO, _PI))
_MARGIN = CONTEXT.add(_ONE, Decimal("1e-30"))
"""More than all rounding here, and what the discreteness of noise adds to delta over 10^20 answers."""

_LEAST = Fraction(1, 10**20)
"""A smaller mu^2 counts as this one [1e-6]."""

_TERMS = 120
_FAR = Decimal(12)
_CERTAIN = Decimal(-40)
"""From here down delta is 1, to more digits than a delta has."""

_HALVINGS = 60


@lru_cache(maxsize=2 * SIGNIFICANT)
def micro_mu2(epsilon: int, delta: int) -> int:
    """What an offer of epsilon at a delta is in mu^2: the largest whole number that keeps both.

    Args:
        epsilon: At least 0 [micro-epsilon].
        delta: In 1..10**12 - 1 [1e-12].

    Returns:
        Rounded down [1e-6 of mu^2].

    Raises:
        ValueError: epsilon or delta out of range.

    >>> [micro_mu2(e * 10**6, d) for e, d in ((1, 10**6), (3, 10**6), (10, 10**7))]
    [56028, 419549, 4001782]
    """
    if epsilon < 0:
        raise ValueError("an epsilon is not negative")
    limit, cost = _limit(delta), CONTEXT.divide(Decimal(epsilon), Decimal(MICRO))
    share = float(limit)
    high = math.sqrt(2 * epsilon / MICRO) + 20.0
    mu = _bisect(lambda mu: _rough_delta(epsilon / MICRO, mu) <= share, 1e-6, high)
    guess = math.floor(mu * mu * MICRO)
    return _last(lambda mu2: mu2 == 0 or _is_kept(_micro(mu2), cost, limit), guess)


@lru_cache(maxsize=65_536)
def epsilon_at(mu2: int | Fraction, delta: int) -> int:
    """The epsilon of mu^2 at a delta: `micro_mu2` read backwards.

    Args:
        mu2: At least 0 [1e-6 of mu^2].
        delta: In 1..10**12 - 1 [1e-12].

    Returns:
        The least whole number that is kept, 0 where delta alone pays for all [micro-epsilon].

    Raises:
        ValueError: mu2 or delta out of range.

    >>> epsilon_at(56_028, 10**6), epsilon_at(4_001_782, 10**7)
    (999991, 9999999)
    """
    limit = _limit(delta)
    if not 0 <= mu2 <= 10**18:
        raise ValueError("mu^2 is out of range")
    if mu2 == 0:
        return 0
    squared = max(Fraction(mu2), _LEAST)
    exact = CONTEXT.divide(Decimal(squared.numerator), Decimal(squared.denominator * MICRO))
    mu, share = math.sqrt(float(exact)), float(limit)
    found = _bisect(lambda cost: _rough_delta(cost, mu) > share, 0.0, mu * mu / 2 + 40 * mu)
    # The largest that is not kept, counted downwards from a number that is.
    most = math.ceil(found * MICRO) + 1
    step = 1
    while not _is_kept(exact, _micro(most), limit):
        most, step = most + step, 2 * step
    return most - _last(lambda less: less <= most and _is_kept(exact, _micro(most - less), limit), 0)


@lru_cache(maxsize=2 * SIGNIFICANT)
def gaussian_sigma(mu2: int) -> int:
    """The least sigma whose discrete Gaussian noise costs at most this, for two values at most 2**30 apart.

    Args:
        mu2: At least 1 [1e-6 of mu^2].

    Returns:
        sigma with 2**60 / (sigma**2 - 9) <= mu^2 [grid steps].

    Raises:
        ValueError: there is no noise for nothing.

    >>> round(gaussian_sigma(56_028) / 2**30, 4)
    4.2247
    """
    if mu2 < 1:
        raise ValueError("Gaussian noise needs a positive mu^2")
    variance = -(-GRID_SIZE * GRID_SIZE * MICRO // mu2) + DISCRETE_LOSS
    return max(math.isqrt(variance - 1) + 1, SMALLEST_SIGMA)


@lru_cache(maxsize=2 * SIGNIFICANT)
def pure_epsilon(mu2: int) -> int:
    r"""The largest epsilon at delta 0 that mu^2 pays for: what a report without noise of its own costs.

    A mechanism is epsilon-private at delta 0 if and only if no test of two values of a person does better
    than the trade-off :math:`f(a) = \max(0, 1 - e^\epsilon a, e^{-\epsilon} (1 - a))` [1]. f is two lines
    that meet on the diagonal, at :math:`a = 1 / (1 + e^\epsilon)`. The trade-off of mu^2,
    :math:`G(a) = \Phi(\Phi^{-1}(1 - a) - \mu)`, is convex, from (0, 1) to (1, 0), and meets the diagonal at
    :math:`\Phi(-\mu / 2)`; so it lies below the two lines through that point, and below f if and only if that
    point does:

    .. math:: \epsilon \le \ln \frac{\Phi(\mu / 2)}{\Phi(-\mu / 2)}.

    Such a report then adds mu^2 to all else that a person gives, like any other mu-Gaussian mechanism.

    Args:
        mu2: At least 0 [1e-6 of mu^2].

    Returns:
        Rounded down [micro-epsilon].

    Raises:
        ValueError: mu2 is negative.

    References:
        [1] Dong, Roth, Su, arXiv:1905.02383, proposition 2.5 and equation 5. The rest follows as stated.

    >>> pure_epsilon(56_028), pure_epsilon(4_001_782)
    (188981, 1668671)
    """
    if mu2 < 0:
        raise ValueError("mu^2 is not negative")
    half = CONTEXT.divide(CONTEXT.sqrt(_micro(mu2)), _TWO)
    density = CONTEXT.divide(CONTEXT.exp(CONTEXT.divide(CONTEXT.multiply(half, -half), _TWO)), ROOT_TWO_PI)
    tail = CONTEXT.multiply(CONTEXT.multiply(density, mills(half)), _MARGIN)
    ratio = CONTEXT.divide(CONTEXT.subtract(_ONE, tail), tail)
    return max(0, math.floor(CONTEXT.multiply(CONTEXT.ln(ratio), Decimal(MICRO))))


def _limit(delta: int) -> Decimal:
    if not 0 < delta < DELTA_UNIT:
        raise ValueError("Gaussian noise needs a delta between 0 and 1")
    return CONTEXT.divide(Decimal(delta), Decimal(DELTA_UNIT))


def _micro(units: int) -> Decimal:
    return CONTEXT.divide(Decimal(units), Decimal(MICRO))


def _last(holds: Callable[[int], bool], guess: int) -> int:
    """The largest whole number that holds, by steps that double from a guess; 0 and all below it hold."""
    low, step = guess, 1
    while not holds(low):
        low, step = max(low - step, 0), 2 * step
    high = low + 1
    step = 1
    while holds(high):
        low, step = high, 2 * step
        high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _bisect(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition ends that holds on the left, in doubles: a guess."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _rough_delta(epsilon: float, mu: float) -> float:
    """The formula in doubles."""
    a = epsilon / mu - mu / 2
    if a < -30:
        return 1.0
    if a > 38:
        return 0.0
    density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    return density * (_rough_mills(a) - _rough_mills(a + mu))


def _rough_mills(x: float) -> float:
    if x > 25:
        square = 1 / (x * x)
        return (1 - square * (1 - 3 * square * (1 - 5 * square * (1 - 7 * square)))) / x
    return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))


def _is_kept(mu2: Decimal, epsilon: Decimal, limit: Decimal) -> bool:
    """Whether mu^2 keeps epsilon at a delta, for certain."""
    mu = CONTEXT.sqrt(mu2)
    a = CONTEXT.subtract(CONTEXT.divide(epsilon, mu), CONTEXT.divide(mu, _TWO))
    if a < _CERTAIN:
        return False
    density = CONTEXT.divide(CONTEXT.exp(CONTEXT.divide(CONTEXT.multiply(a, -a), _TWO)), ROOT_TWO_PI)
    delta = CONTEXT.multiply(density, CONTEXT.subtract(mills(a), mills(CONTEXT.add(a, mu))))
    return CONTEXT.multiply(delta, _MARGIN) <= limit


def mills(x: Decimal) -> Decimal:
    """(1 - Phi(x)) / phi(x), for x above -40."""
    if x > _FAR:  # 1 / (x + 1 / (x + 2 / (x + 3 / ...)))
        fraction = x
        for k in range(_TERMS, 0, -1):
            fraction = CONTEXT.add(x, CONTEXT.divide(Decimal(k), fraction))
        return CONTEXT.divide(_ONE, fraction)
    # R(x) = R(0) e^(x^2 / 2) - (x + x^3 / 3 + x^5 / (3 * 5) + ...)
    square = CONTEXT.multiply(x, x)
    term = total = x
    k = 1
    while abs(term) > Decimal("1e-60"):
        k += 2
        term = CONTEXT.divide(CONTEXT.multiply(term, square), Decimal(k))
        total = CONTEXT.add(total, term)
    whole = CONTEXT.multiply(CONTEXT.divide(ROOT_TWO_PI, _TWO), CONTEXT.exp(CONTEXT.divide(square, _TWO)))
    return CONTEXT.subtract(whole, total)
