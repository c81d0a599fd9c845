"""The integer grid on which all data live.

A value v in [lower, upper] becomes q = round((v - lower) / (upper - lower) * 2**GRID_BITS), computed
in integers from the decimal text the client sent: no float touches data before the noise
(Mironov, CCS 2012, doi:10.1145/2382196.2382264).
"""

import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

GRID_BITS = 30
GRID_SIZE = 1 << GRID_BITS
"""Grid steps between the ends of the range."""

MIDDLE = GRID_SIZE // 2
"""The middle of the range: where squares are taken about."""

REPORT_LIMIT = 1 << 62
"""A local report may not lie further out than this; honest ones never do."""

_NUMBER = re.compile(r"(-?)(\d{1,30})(?:\.(\d{1,30}))?(?:[eE]([+-]?\d{1,2}))?\Z", re.ASCII)


class NotANumber(ValueError):
    """The text is not a finite decimal number of a sensible length."""


def parse_decimal(text: str) -> tuple[int, int]:
    """A decimal number as (mantissa, exponent), value = mantissa * 10**exponent.

    Raises:
        NotANumber: not a number, not finite, over 60 digits, or an exponent beyond two digits.

    >>> parse_decimal("-12.50")
    (-1250, -2)
    """
    match = _NUMBER.match(text)
    if match is None:
        raise NotANumber
    sign, whole, fraction, exponent = match.groups()
    fraction = fraction or ""
    mantissa = int(whole + fraction)
    return (-mantissa if sign else mantissa), int(exponent or 0) - len(fraction)


def square(point: int) -> int:
    r"""The square of a grid point about the middle of the range, in grid steps, rounded down.

    This is :math:`\lfloor (q - 2^{29})^2 / 2^{30} \rfloor`, in [0, 2^28]. The ledger adds these up;
    `app.accounting.prices` proves what one person can move such a sum by.

    >>> square(0), square(GRID_SIZE // 2), square(GRID_SIZE)
    (268435456, 0, 268435456)
    """
    return (point - MIDDLE) ** 2 >> GRID_BITS


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid of one study.

    Attributes:
        lower: Lower end of the range, in the data's unit.
        upper: Upper end, above `lower`.
    """

    lower: Decimal
    upper: Decimal
    _scales: dict[int, tuple[int, int, int]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not (self.lower.is_finite() and self.upper.is_finite() and self.lower < self.upper):
            raise ValueError("lower and upper must be finite and lower < upper")

    @property
    def width(self) -> Fraction:
        """Upper - lower, in the data's unit."""
        return Fraction(self.upper) - Fraction(self.lower)

    def to_grid(self, mantissa: int, exponent: int) -> int | None:
        """The grid point of mantissa * 10**exponent, or None where that lies outside the range.

        Ties round up. Exact.
        """
        scale = self._scales.get(exponent)
        if scale is None:
            scale = self._scales[exponent] = self._scale(exponent)
        factor, offset, denominator = scale
        numerator = mantissa * factor - offset
        if numerator < 0 or numerator > denominator * GRID_SIZE:
            return None
        return (2 * numerator + denominator) // (2 * denominator)

    def _scale(self, exponent: int) -> tuple[int, int, int]:
        """Integers with (v - lower) / width * 2**GRID_BITS = (mantissa * factor - offset) / denominator."""
        unit = Fraction(10) ** exponent / self.width * GRID_SIZE
        origin = Fraction(self.lower) / self.width * GRID_SIZE
        denominator = unit.denominator * origin.denominator
        return unit.numerator * origin.denominator, origin.numerator * unit.denominator, denominator

    def to_unit(self, position: Fraction) -> float:
        """The value at a position in [0, 1] of the range, rounded once, in the data's unit."""
        return float(Fraction(self.lower) + position * self.width)
