"""The integers behind bounded local reports, as the service computes them.

A grid point q lies in 0..N, N = 2**30; x = q - N/2 is its distance from the middle. Reports are integers on
the same grid, exactly unbiased, and no two values of a person differ by more than e^epsilon in the
probability of any report. Powers of e only choose the integers, always to the private side.

Duchi: N/2 + A or N/2 - A, with probabilities (A + x) / 2A and (A - x) / 2A.

Piecewise: a window of w = 2 h + 1 integers about N/2 + m in a range of w + 2 D integers about N/2; m is
2 D x / N, rounded at random so that this is its mean; each integer of the window weighs D (w + N), each other
one w (D - N/2).

Hybrid: piecewise with probability 1 - e^(-epsilon/2), otherwise Duchi; for small epsilons Duchi only.

References:
    Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
    arXiv:1907.00782, algorithms 1 and 2, section III-C.
"""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dither._numbers import GRID_SIZE, MICRO

HALF = GRID_SIZE // 2

POWER_BITS = 128
"""Powers of e are cut to this many bits after the binary point."""

MOST_EPSILON = 64 * MICRO
"""More epsilon than this makes no difference to a bounded report."""

HYBRID_THRESHOLD = 609_352
"""Up to here Duchi alone is more accurate in the worst case [micro-epsilon]."""

HYBRID_BITS = 32

_CONTEXT = Context(prec=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise:
    """A window in a range.

    Attributes:
        reach: h [grid steps].
        drift: D [grid steps].
    """

    reach: int
    drift: int

    @property
    def window(self) -> int:
        """w, the integers in the window."""
        return 2 * self.reach + 1

    @property
    def inside(self) -> int:
        """Weight of each integer in the window."""
        return self.drift * (self.window + GRID_SIZE)

    @property
    def outside(self) -> int:
        """Weight of each other integer of the range."""
        return self.window * (self.drift - HALF)

    @property
    def total(self) -> int:
        """Weight of the whole range."""
        return self.window * self.inside + 2 * self.drift * self.outside


@lru_cache(maxsize=256)
def power_of_e(half_micros: int) -> int:
    """e**(half_micros / 2,000,000), times 2**128, rounded down; exponents above 64 count as 64.

    `exp` of `decimal` is correctly rounded to 100 digits; one unit of its last place is taken off.

    >>> power_of_e(2_000_000) / 2**128
    2.718281828459045
    """
    exponent = Decimal(min(half_micros, 2 * MOST_EPSILON)) / (2 * MICRO)
    value = Fraction(_CONTEXT.next_minus(_CONTEXT.exp(exponent)))
    return max((value.numerator << POWER_BITS) // value.denominator, 1 << POWER_BITS)


def duchi_reach(epsilon: int) -> int:
    """A: the least integer with (A + N/2) / (A - N/2) <= e^epsilon [grid steps].

    Args:
        epsilon: Above 0 [micro-epsilon].
    """
    power, one = power_of_e(2 * epsilon), 1 << POWER_BITS
    return -(-HALF * (power + one) // (power - one))


def piecewise_shape(epsilon: int) -> Piecewise:
    """The window, h = floor(N / (2 (e^(epsilon/2) - 1))), and the least D with inside <= e^epsilon outside.

    Args:
        epsilon: Above 0 [micro-epsilon].
    """
    power, root, one = power_of_e(2 * epsilon), power_of_e(epsilon), 1 << POWER_BITS
    reach = HALF * one // (root - one)
    window = 2 * reach + 1
    drift = -(-power * window * HALF // (power * window - one * (window + GRID_SIZE)))
    return Piecewise(reach=reach, drift=drift)


def hybrid_share(epsilon: int) -> int:
    """How often a hybrid report is piecewise: 1 - e^(-epsilon/2) in units of 2**-32, rounded down.

    Args:
        epsilon: Above 0 [micro-epsilon].
    """
    if epsilon <= HYBRID_THRESHOLD:
        return 0
    root, one = power_of_e(epsilon), 1 << POWER_BITS
    return ((root - one) << HYBRID_BITS) // root
