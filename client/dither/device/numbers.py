"""Exact numbers: decimal text, the grid of a study, and epsilons as integers.

Integer arithmetic on the decimal text of a number: no float touches a value before the noise (Mironov,
CCS 2012, doi:10.1145/2382196.2382264).
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

REPORT_LIMIT = 1 << 62
"""A local report may not lie further out than this; honest ones never do."""

MICRO = 1_000_000
"""Micro-epsilons in one epsilon."""

DELTA_UNIT = 1_000_000_000_000
"""Units of 1e-12 in a delta of one."""

MAX_EPSILON = 1_000_000 * MICRO
"""The largest epsilon of a study [micro-epsilon]."""

SIGNIFICANT_DIGITS = 3
"""A personal epsilon keeps this many."""

_FIRST = int(10 ** (SIGNIFICANT_DIGITS - 1))

SIGNIFICANT = _FIRST + 9 * _FIRST * (len(str(MAX_EPSILON)) - SIGNIFICANT_DIGITS)
"""The rank of the largest epsilon of three significant digits, about nine thousand."""

Numeric = Decimal | str | float | SupportsIndex
"""What a caller may give for a number: an int, a Decimal, a float, one of numpy, or decimal text."""

Value = Numeric | Sequence[Numeric]
"""A number, or the coordinates of a vector."""

_NUMBER = re.compile(r"([+-]?)(?=\.?\d)(\d{0,30})(?:\.(\d{0,30}))?(?:[eE]([+-]?\d{1,2}))?\Z", re.ASCII)
_LONGEST_INTEGER = 128


class NotANumber(ValueError):
    """Not a finite decimal number of a sensible length."""


def parse_decimal(text: str) -> tuple[int, int]:
    """A decimal number as (mantissa, exponent), value = mantissa * 10**exponent.

    It may be written as people do: .5, 5. and +5.

    Raises:
        NotANumber: not a number, not finite, over 60 digits, or an exponent beyond two digits.

    >>> parse_decimal("-12.50"), parse_decimal("+.5")
    ((-1250, -2), (5, -1))
    """
    match = _NUMBER.match(text)
    if match is None:
        raise NotANumber
    sign, whole, fraction, exponent = match.groups()
    fraction = fraction or ""
    mantissa = int(whole + fraction)
    return (-mantissa if sign == "-" else mantissa), int(exponent or 0) - len(fraction)


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
        written = _text(value)
        mantissa, exponent = parse_decimal(written)
        digits, _, power = written.lower().partition("e")
        whole, _, fraction = digits.lstrip("+-").partition(".")
        text = "-" * written.startswith("-") + (whole.lstrip("0") or "0") + (fraction and f".{fraction}")
        return cls(mantissa, exponent, f"{text}e{power}" if power else text)

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
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        return str(value)  # a number of numpy: float32(0.1) is 0.1 and not what it is in 64 bits
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
        width: Upper - lower.
    """

    lower: Decimal | Fraction
    upper: Decimal | Fraction
    width: Fraction = field(init=False, compare=False, repr=False)
    _origin: Fraction = field(init=False, compare=False, repr=False)
    _parts: tuple[int, int, int] = field(init=False, compare=False, repr=False)
    _scales: dict[int, tuple[int, int, int]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        ends = (self.lower, self.upper)
        finite = not any(isinstance(end, Decimal) and not end.is_finite() for end in ends)
        if not finite or self.lower >= self.upper:
            raise ValueError("lower and upper must be finite and lower < upper")
        object.__setattr__(self, "_origin", Fraction(self.lower))
        object.__setattr__(self, "width", Fraction(self.upper) - self._origin)
        # The lower end and the width over one denominator.
        under = math.lcm(self._origin.denominator, self.width.denominator)
        object.__setattr__(self, "_parts", (int(self._origin * under), int(self.width * under), under))

    def point(self, mantissa: int, exponent: int) -> int | None:
        """The grid point of mantissa * 10**exponent, or None where that lies outside the range. Exact."""
        scale = self._scales.get(exponent)
        if scale is None:
            scale = self._scales[exponent] = self._scale(exponent)
        factor, offset, denominator = scale
        numerator = mantissa * factor - offset
        if numerator < 0 or numerator > denominator * GRID_SIZE:
            return None
        return (2 * numerator + denominator) // (2 * denominator)

    def to_unit(self, position: Fraction | float) -> float:
        """The value at a position in [0, 1] of the range, rounded once, in the data's unit."""
        lower, width, under = self._parts
        over, times = position.as_integer_ratio()
        # A quotient of integers is the nearest double.
        return (lower * times + width * over) / (under * times)

    def _scale(self, exponent: int) -> tuple[int, int, int]:
        """Integers with (v - lower) / width * 2**30 = (mantissa * factor - offset) / denominator."""
        unit = Fraction(10) ** exponent / self.width * GRID_SIZE
        origin = self._origin / self.width * GRID_SIZE
        denominator = unit.denominator * origin.denominator
        return unit.numerator * origin.denominator, origin.numerator * unit.denominator, denominator


def inside_range(point: int, start: int, zoom: int) -> int:
    """A grid point of a study, moved into its reporting range, as a point of a grid over that.

    >>> [inside_range(point, 2**29, 4) for point in (0, 2**29 + 3, 2**30)]
    [0, 12, 1073741824]
    """
    return zoom * (min(max(point, start), start + GRID_SIZE // zoom) - start)


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

    This keeps the number of different epsilons of a study in the low thousands.

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
