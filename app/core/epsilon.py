"""Epsilon and delta as integers.

Epsilon counts micro-epsilon (1e-6), delta counts 1e-12. Limits are rounded down, costs are rounded
up; nothing in between is a float.
"""

from decimal import Decimal
from fractions import Fraction

MICRO = 1_000_000
"""Micro-epsilons in one epsilon."""

DELTA_UNIT = 1_000_000_000_000
"""Units of 1e-12 in a delta of one."""

MAX_EPSILON = 1_000_000 * MICRO
"""The largest epsilon of a study, in micro-epsilon."""

SIGNIFICANT_DIGITS = 3
_FIRST = int(10 ** (SIGNIFICANT_DIGITS - 1))

SIGNIFICANT = _FIRST + 9 * _FIRST * (len(str(MAX_EPSILON)) - SIGNIFICANT_DIGITS)
"""The rank of the largest epsilon of three significant digits, about nine thousand."""


def epsilon_limit(value: Decimal) -> int:
    """An epsilon given as a limit, in micro-epsilon, rounded down.

    >>> epsilon_limit(Decimal("0.1234567"))
    123456
    """
    return _floor(value, MICRO)


def epsilon_cost(value: Fraction) -> int:
    """An exact cost in epsilon, in micro-epsilon, rounded up.

    >>> epsilon_cost(Fraction(1, 3))
    333334
    """
    return -((-value.numerator * MICRO) // value.denominator)


def delta_limit(value: Decimal) -> int:
    """A delta given as a limit, in units of 1e-12, rounded down."""
    return _floor(value, DELTA_UNIT)


def _floor(value: Decimal, units: int) -> int:
    """Exact: a product of decimals would be rounded to the context's 28 digits first."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * units // denominator


def round_down_to_significant(micro: int) -> int:
    """A personal epsilon rounded down to three significant digits.

    This keeps the number of cohorts of an epoch in the low thousands.

    >>> round_down_to_significant(1_234_567)
    1230000
    >>> round_down_to_significant(999)
    999
    """
    digits = len(str(micro))
    if digits <= SIGNIFICANT_DIGITS:
        return micro
    step = int(10 ** (digits - SIGNIFICANT_DIGITS))
    return micro - micro % step


def significant(rank: int) -> int:
    """The epsilons of at most three significant digits in ascending order, from rank 1 on [micro-epsilon].

    >>> [significant(rank) for rank in (1, 999, 1000, 1001, 1900)]
    [1, 999, 1000, 1010, 10000]
    """
    decades, mantissa = divmod(rank - _FIRST, 9 * _FIRST)
    return rank if rank < _FIRST else (_FIRST + mantissa) * int(10**decades)


def share_of(micro: int, share_ppm: int) -> int:
    """The part of an epsilon that a share allows, rounded down.

    Args:
        micro: Epsilon [micro-epsilon].
        share_ppm: Share in (0, 1], in parts per million.
    """
    return micro * share_ppm // MICRO


def epsilon_to_json(micro: int) -> float:
    """The decimal number of epsilons; exact, since every micro below 2**53 survives a double.

    >>> epsilon_to_json(1_230_001)
    1.230001
    """
    return micro / MICRO


def delta_to_json(units: int) -> float:
    """The decimal number of deltas."""
    return units / DELTA_UNIT
