"""Epsilon and delta as integers.

Epsilon counts micro-epsilon (1e-6), delta counts 1e-12. Limits are rounded down, costs are rounded
up; nothing in between is a float.
"""

from decimal import Decimal
from fractions import Fraction

from dither.device.numbers import DELTA_UNIT, MAX_EPSILON, MICRO, round_down_to_significant

__all__ = [
    "DELTA_UNIT",
    "MAX_EPSILON",
    "MICRO",
    "delta_limit",
    "delta_to_json",
    "epsilon_cost",
    "epsilon_limit",
    "epsilon_to_json",
    "round_down_to_significant",
    "share_of",
]


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
