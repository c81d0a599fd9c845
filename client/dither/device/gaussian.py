"""How much Gaussian noise an (epsilon, delta) needs.

Noise of standard deviation N / mu is (epsilon, delta)-private for values at most N apart if and only if, with
a = epsilon / mu - mu / 2 and Mills' ratio R(x) = (1 - Phi(x)) / phi(x),

    delta >= phi(a) (R(a) - R(a + mu)).

The classic sqrt(2 ln(1.25 / delta)) / epsilon wastes a third of the noise at small epsilons and is not
private at large ones.

References:
    Balle, Wang, arXiv:1805.06530, theorem 8.
"""

from decimal import Context, Decimal
from functools import lru_cache

from dither.device.numbers import DELTA_UNIT, GRID_SIZE, MICRO, SIGNIFICANT

SIGMA_BITS = 16
"""Sigma keeps this many significant bits, rounded up, so that every client finds the same."""

_C = Context(prec=80, Emax=999_999_999_999, Emin=-999_999_999_999)
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
_ROOT_TWO_PI = _C.sqrt(_C.multiply(Decimal(2), _PI))
_TERMS = 120
_FAR = Decimal(12)
_HALVINGS = 64


@lru_cache(maxsize=2 * SIGNIFICANT)
def gaussian_sigma(epsilon: int, delta: int) -> int:
    """The least sigma of 16 significant bits whose discrete Gaussian noise keeps (epsilon, delta).

    Discrete noise of parameter sigma is worth continuous noise of variance sigma**2 - 9 (smoothing: a
    discrete Gaussian of parameter 3 about any real point has the same normalization to e^-177), and
    (sigma + 1)**2 - 9 > sigma**2.

    Args:
        epsilon: Above 0 [micro-epsilon].
        delta: In 1..10**12 - 1 [1e-12].

    Returns:
        sigma for two values at most 2**30 apart [grid steps].

    >>> gaussian_sigma(1_000_000, 1_000_000) / 2**30
    4.2247314453125
    """
    if epsilon <= 0 or not 0 < delta < DELTA_UNIT:
        raise ValueError("Gaussian noise needs a positive epsilon and a delta between 0 and 1")
    limit, cost = Decimal(delta) / DELTA_UNIT, Decimal(epsilon) / MICRO
    low, high = Decimal(1), Decimal(1)  # mu: low keeps delta, high does not
    while _delta(cost, high) <= limit:
        high *= 2
    while _delta(cost, low) > limit:
        low /= 2
    for _ in range(_HALVINGS):
        middle = _C.divide(_C.add(low, high), Decimal(2))
        if _delta(cost, middle) <= limit:
            low = middle
        else:
            high = middle
    sigma = int(GRID_SIZE / low) + 2
    cut = max(sigma.bit_length() - SIGMA_BITS, 0)
    return -(-sigma >> cut) << cut


def _delta(epsilon: Decimal, mu: Decimal) -> Decimal:
    """The right side of the formula, with far more digits than matter."""
    a = _C.subtract(_C.divide(epsilon, mu), _C.divide(mu, Decimal(2)))
    density = _C.divide(_C.exp(_C.divide(_C.multiply(a, -a), Decimal(2))), _ROOT_TWO_PI)
    return _C.multiply(density, _C.subtract(_mills(a), _mills(_C.add(a, mu))))


def _mills(x: Decimal) -> Decimal:
    """(1 - Phi(x)) / phi(x)."""
    if x > _FAR:  # 1 / (x + 1 / (x + 2 / (x + 3 / ...)))
        fraction = x
        for k in range(_TERMS, 0, -1):
            fraction = _C.add(x, _C.divide(Decimal(k), fraction))
        return _C.divide(Decimal(1), fraction)
    # R(x) = R(0) e^(x^2 / 2) - (x + x^3 / 3 + x^5 / (3 * 5) + ...)
    square = _C.multiply(x, x)
    term = total = x
    k = 1
    while abs(term) > Decimal("1e-60"):
        k += 2
        term = _C.divide(_C.multiply(term, square), Decimal(k))
        total = _C.add(total, term)
    whole = _C.multiply(_C.divide(_ROOT_TWO_PI, Decimal(2)), _C.exp(_C.divide(square, Decimal(2))))
    return _C.subtract(whole, total)
