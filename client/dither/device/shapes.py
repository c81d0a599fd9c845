r"""The integers behind bounded local reports: what a randomizer looks like for an epsilon.

A grid point q lies in 0..N, N = 2^30; x = q - N/2 is its distance from the middle. Reports are integers on
the same grid, *exactly* unbiased. Their probabilities are ratios of integers, chosen so that no two values of
a person differ by more than e^epsilon: exactly private too. Powers of e only choose those integers, rounded
so that less than epsilon is spent: by 2e-6 of it at epsilon = 10, and more where the grid is too coarse for a
better report (Duchi spends at most 20.8, piecewise 41).

- **Duchi**: N/2 + A or N/2 - A, with probabilities (A + x) / 2A and (A - x) / 2A. Unbiased for every A, and
  private where :math:`(A + N/2) / (A - N/2) \le e^\epsilon`: A is the least such integer.
- **Piecewise**: a window of w = 2 h + 1 integers about N/2 + m in a range of w + 2 D integers about N/2. m is
  2 D x / N, rounded at random so that this is its mean. Each integer of the window weighs I = D (w + N), each
  other one O = w (D - N/2). So the mean of a report is N/2 plus
  :math:`\frac{w (I - O)}{w I + 2 D O} m = \frac{w N (D + w/2)}{2 w D (D + w/2)} m = \frac{N}{2 D} m`, on
  average x. Private where I / O is at most e^epsilon: D is the least such integer for a window of about the
  best width.
- **Hybrid**: piecewise with probability 1 - e^(-epsilon/2) (cut to 32 bits), otherwise Duchi; up to
  `HYBRID_THRESHOLD` Duchi only.

References:
    Duchi, Jordan, Wainwright, arXiv:1305.6000 (one dimension).
    Wang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
    arXiv:1907.00782, algorithms 1 and 2, section III-C (hybrid). The integers are ours.
"""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dither.device.numbers import GRID_SIZE, MICRO

HALF = GRID_SIZE // 2

POWER_BITS = 128
"""Powers of e are cut to this many bits after the binary point."""

MOST_EPSILON = 64 * MICRO
"""More epsilon than this makes no difference to a bounded report."""

HYBRID_THRESHOLD = 609_352
"""Up to here Duchi alone has the smaller worst variance [micro-epsilon]: the logarithm of
(-5 + 2 (6353 - 405 sqrt 241)^(1/3) + 2 (6353 + 405 sqrt 241)^(1/3)) / 27."""

HYBRID_BITS = 32

_CONTEXT = Context(prec=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise:
    """A window on a range, about the middle of the grid.

    Attributes:
        reach: h; the window holds 2 h + 1 integers [grid steps].
        drift: D, how far the ends of the grid move the window [grid steps].
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


@lru_cache(maxsize=4096)
def power_of_e(half_micros: int) -> int:
    """e^(half_micros / 2,000,000) cut to 128 bits after the binary point.

    Args:
        half_micros: Twice the exponent in millionths, at least 0; cut at twice `MOST_EPSILON`.

    Returns:
        floor(2**128 * e**exponent). Never more than the exact value: `exp` of `decimal` is correctly rounded
        to 100 digits, and one unit of its last place is taken off.
    """
    exponent = Decimal(min(half_micros, 2 * MOST_EPSILON)) / (2 * MICRO)
    value = Fraction(_CONTEXT.next_minus(_CONTEXT.exp(exponent)))
    return max((value.numerator << POWER_BITS) // value.denominator, 1 << POWER_BITS)


@lru_cache(maxsize=4096)
def duchi_reach(epsilon: int) -> int:
    """A: how far from the middle of the grid Duchi's two reports lie.

    Args:
        epsilon: At least 1 [micro-epsilon].

    Returns:
        The least A with (A + N/2) / (A - N/2) <= e^epsilon [grid steps].

    Raises:
        ValueError: epsilon is not positive.

    Privacy: rounded up; a public constant.

    >>> duchi_reach(1_000_000) / 2**29
    2.1639534141868353
    """
    power, one = power_of_e(2 * _positive(epsilon)), 1 << POWER_BITS
    return -(-HALF * (power + one) // (power - one))


@lru_cache(maxsize=4096)
def piecewise_shape(epsilon: int) -> Piecewise:
    r"""The window and the range of piecewise reports.

    With t = e^(epsilon/2): w = 2 floor(N / (2 (t - 1))) + 1, and D the least integer with
    :math:`D (w + N) / (w (D - N/2)) \le e^\epsilon`.

    Args:
        epsilon: At least 1 [micro-epsilon].

    Raises:
        ValueError: epsilon is not positive.

    Privacy: D is rounded up; public constants.
    """
    power, root, one = power_of_e(2 * _positive(epsilon)), power_of_e(epsilon), 1 << POWER_BITS
    reach = HALF * one // (root - one)
    window = 2 * reach + 1
    drift = -(-power * window * HALF // (power * window - one * (window + GRID_SIZE)))
    return Piecewise(reach=reach, drift=drift)


@lru_cache(maxsize=4096)
def hybrid_share(epsilon: int) -> int:
    """How often a hybrid report is a piecewise one.

    Args:
        epsilon: At least 1 [micro-epsilon].

    Returns:
        1 - e^(-epsilon/2) in units of 2**-32, rounded down; 0 up to `HYBRID_THRESHOLD`.

    Raises:
        ValueError: epsilon is not positive.

    Privacy: any share is private, because both parts are.
    """
    if _positive(epsilon) <= HYBRID_THRESHOLD:
        return 0
    root, one = power_of_e(epsilon), 1 << POWER_BITS
    return ((root - one) << HYBRID_BITS) // root


def _positive(epsilon: int) -> int:
    if epsilon <= 0:
        raise ValueError("a report needs a positive epsilon")
    return epsilon
