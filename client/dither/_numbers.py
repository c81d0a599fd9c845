"""Exact numbers: decimal text, the grid of a study, and epsilons as integers.

The service does the same computations; both are integer arithmetic on the decimal text of a number, so
that device and service agree on every bit. No float touches a value before the noise (Mironov, CCS 2012,
doi:10.1145/2382196.2382264).
"""

import math
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import SupportsIndex

GRID_BITS = 30
GRID_SIZE = 1 << GRID_BITS
"""Grid steps between the ends of a study's range."""

MICRO = 1_000_000
"""Micro-epsilons in one epsilon."""

SIGNIFICANT_DIGITS = 3
"""A personal epsilon keeps this many."""

Numeric = Decimal | str | float | SupportsIndex
"""What a caller may give for a number: an int, a Decimal, a float, or the text of a decimal number."""

Value = Numeric | Sequence[Numeric]
"""A number, or the coordinates of a vector."""

_NUMBER = re.compile(r"(-?)(\d{1,30})(?:\.(\d{1,30}))?(?:[eE]([+-]?\d{1,2}))?\Z", re.ASCII)
_LONGEST_INTEGER = 128


class NotANumber(ValueError):
    """Not a finite decimal number of a sensible length."""


@dataclass(frozen=True, slots=True)
class Number:
    """A decimal number, exactly: mantissa * 10**exponent.

    Attributes:
        mantissa, exponent: Its value.
        text: The same number as JSON writes it.
    """

    mantissa: int
    exponent: int
    text: str

    @classmethod
    def parse(cls, value: Numeric) -> "Number":
        """The exact number that a caller means: for a float the shortest text that reads back as it.

        Raises:
            NotANumber: not a number, not finite, over 60 digits, or an exponent beyond two digits.
        """
        match = _NUMBER.match(_text(value))
        if match is None:
            raise NotANumber
        sign, whole, fraction, exponent = match.groups()
        mantissa = int(whole + (fraction or ""))
        text = sign + (whole.lstrip("0") or "0")
        if fraction:
            text += f".{fraction}"
        if exponent:
            text += f"e{exponent}"
        return cls(-mantissa if sign else mantissa, int(exponent or 0) - len(fraction or ""), text)

    @property
    def fraction(self) -> Fraction:
        """Its value."""
        return self.mantissa * Fraction(10) ** self.exponent


def _text(value: Numeric) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise NotANumber
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float):
        return float.__repr__(value)
    try:
        integer = operator.index(value)
    except TypeError:
        raise NotANumber from None
    if integer.bit_length() > _LONGEST_INTEGER:
        raise NotANumber
    return str(integer)


@dataclass(frozen=True, slots=True)
class Grid:
    """The integer grid of a study: q = round((v - lower) / (upper - lower) * 2**30), ties up.

    Attributes:
        lower: Lower end of the range, in the data's unit.
        upper: Upper end, above `lower`.
    """

    lower: Fraction
    upper: Fraction
    _scales: dict[int, tuple[int, int, int]] = field(default_factory=dict, compare=False, repr=False)

    def point(self, number: Number) -> int | None:
        """The grid point of a number, or None where it lies outside the range. Exact."""
        scale = self._scales.get(number.exponent)
        if scale is None:
            scale = self._scales[number.exponent] = self._scale(number.exponent)
        factor, offset, denominator = scale
        numerator = number.mantissa * factor - offset
        if numerator < 0 or numerator > denominator * GRID_SIZE:
            return None
        return (2 * numerator + denominator) // (2 * denominator)

    def _scale(self, exponent: int) -> tuple[int, int, int]:
        """Integers with (v - lower) / width * 2**30 = (mantissa * factor - offset) / denominator."""
        width = self.upper - self.lower
        unit = Fraction(10) ** exponent / width * GRID_SIZE
        origin = self.lower / width * GRID_SIZE
        denominator = unit.denominator * origin.denominator
        return unit.numerator * origin.denominator, origin.numerator * unit.denominator, denominator


def epsilon_limit(value: Numeric) -> int:
    """An epsilon that is a limit, in micro-epsilon, rounded down.

    Raises:
        NotANumber: not a finite decimal number.

    >>> epsilon_limit("0.1234567")
    123456
    """
    number = Number.parse(value)
    power = number.exponent + len(str(MICRO)) - 1
    if power >= 0:
        return int(number.mantissa * 10**power)
    return int(number.mantissa // 10**-power)


def epsilon_cost(value: Numeric) -> int:
    """An epsilon that is a cost, in micro-epsilon, rounded up.

    >>> epsilon_cost("0.1234567")
    123457
    """
    return math.ceil(Number.parse(value).fraction * MICRO)


def round_down_to_significant(micro: int) -> int:
    """A personal epsilon rounded down to three significant digits.

    >>> round_down_to_significant(1_234_567)
    1230000
    """
    digits = len(str(micro))
    if digits <= SIGNIFICANT_DIGITS:
        return micro
    step: int = 10 ** (digits - SIGNIFICANT_DIGITS)
    return micro - micro % step


def epsilon_decimal(micro: int) -> Decimal:
    """Epsilons as people write them; exact.

    >>> print(epsilon_decimal(1_230_000), epsilon_decimal(20_000_000))
    1.23 20
    """
    return Decimal(epsilon_text(micro))


def epsilon_text(micro: int) -> str:
    """The JSON number of an epsilon; exact.

    >>> epsilon_text(500_000)
    '0.5'
    """
    whole, rest = divmod(micro, MICRO)
    return f"{whole}.{rest:06d}".rstrip("0").rstrip(".")
