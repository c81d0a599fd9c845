"""Epsilon, delta and mu^2 as integers.

Epsilon counts micro-epsilon (1e-6), mu^2 counts 1e-6 too, delta counts 1e-12. Limits are rounded down, costs
are rounded up; nothing in between is a float.

A study has one currency: micro-epsilon, or mu^2 where it has a delta. What is offered and charged in it is an
amount.
"""

from decimal import Decimal
from fractions import Fraction

from dither.device.gaussian import epsilon_at, micro_mu2
from dither.device.numbers import DELTA_UNIT, MAX_EPSILON, MICRO, round_down_to_significant

__all__ = [
    "DELTA_UNIT",
    "MAX_EPSILON",
    "MICRO",
    "amount_of",
    "delta_limit",
    "delta_to_json",
    "epsilon_cost",
    "epsilon_limit",
    "epsilon_of",
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


def amount_of(epsilon: int, delta: int) -> int:
    """What an offer of an epsilon is in the currency of a study.

    Args:
        epsilon: The offer [micro-epsilon].
        delta: Of the study; 0 where its currency is epsilon [1e-12].

    Returns:
        The amount, rounded down: see `dither.device.gaussian.micro_mu2`.

    >>> amount_of(1_000_000, 0), amount_of(1_000_000, 1_000_000)
    (1000000, 56028)
    """
    return micro_mu2(epsilon, delta) if delta else epsilon


def epsilon_of(amount: int, delta: int) -> int:
    """An amount as people read it, at the study's delta.

    Args:
        amount: In the study's currency.
        delta: Of the study; 0 where its currency is epsilon [1e-12].

    Returns:
        The epsilon, rounded up [micro-epsilon].

    >>> epsilon_of(1_000_000, 0), epsilon_of(56_028, 1_000_000)
    (1000000, 999991)
    """
    return epsilon_at(amount, delta) if delta else amount


def _floor(value: Decimal, units: int) -> int:
    """Exact: a product of decimals would be rounded to the context's 28 digits first."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * units // denominator


def share_of(amount: int, share_ppm: int, cap: int | None = None) -> int:
    """The part of an offer that a share allows, rounded down.

    Args:
        amount: What is offered [micro-epsilon, or 1e-6 of mu^2].
        share_ppm: Share in (0, 1], in parts per million.
        cap: The most that it allows of any offer, in the same unit; None for no such limit.
    """
    part = amount * share_ppm // MICRO
    return part if cap is None else min(part, cap)


def epsilon_to_json(micro: int) -> float:
    """The decimal number of epsilons; exact, since every micro below 2**53 survives a double.

    >>> epsilon_to_json(1_230_001)
    1.230001
    """
    return micro / MICRO


def delta_to_json(units: int) -> float:
    """The decimal number of deltas."""
    return units / DELTA_UNIT
