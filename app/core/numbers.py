"""Numbers as they were written.

A float would round a value before it reaches the grid and an epsilon before it reaches the ledger, so
JSON numbers are kept as their text until they become exact integers or decimals.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from app.core.grid import NotANumber, parse_decimal


class JsonNumber(str):
    """The exact text of a JSON number; "NaN", "Infinity" and "-Infinity" for the literals that are none.

    A JSON string is a plain `str`: `type(value) is str` tells the two apart.
    """

    __slots__ = ()


def to_decimal(text: str) -> Decimal:
    """The exact value of a decimal number; -0 is 0, and .5 is 0.5.

    Raises:
        NotANumber: not a finite decimal number of a sensible length.

    >>> to_decimal("1.50e-3")
    Decimal('0.00150')
    """
    mantissa, _ = parse_decimal(text)
    return Decimal(text) if mantissa else Decimal(0)


def why_no_number(text: str) -> str:
    """The refusal of a text that `to_decimal` does not take.

    >>> why_no_number("0,5")
    'must be a number without commas: a point stands before decimals'
    """
    if "," in text:
        return "must be a number without commas: a point stands before decimals"
    return "must be a finite decimal number of a sensible length"


def to_integer(text: str) -> int:
    """The exact value of a number that is an integer, also where it is written as 3.0 or 3e0.

    Raises:
        NotANumber: not a number, or not an integer.

    >>> to_integer("3.0")
    3
    """
    mantissa, exponent = parse_decimal(text)
    if exponent >= 0:
        return int(mantissa * 10**exponent)
    whole, rest = divmod(mantissa, 10**-exponent)
    if rest:
        raise NotANumber
    return int(whole)


_MORE_DIGITS = 3
"""How many digits beyond two of its interval an estimate may have, to lie in it."""


_AT_MOST = "at most "
_SPREADS = ("variance", "sd")


class Headline(NamedTuple):
    """An estimate and its interval as text, no more exact than the interval."""

    estimate: str
    lower: str
    upper: str

    @property
    def in_words(self) -> str:
        """Estimate and interval; an estimate that is a bound is all of it."""
        return self.estimate if self.estimate.startswith(_AT_MOST) else "{} ({} to {})".format(*self)


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number of things, as sentences say it.

    >>> counted(1, "row"), counted(1_200, "row"), counted(0, "person", "people")
    ('1 row', '1,200 rows', '0 people')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def percent(level: float) -> str:
    """A level of intervals, as pages and sentences say it.

    >>> percent(0.95), percent(0.8)
    ('95 %', '80 %')
    """
    return f"{100 * level:g} %"


def margin(half: float) -> str:
    """Half the width of an interval with two digits, rounded up.

    >>> margin(2.1416), margin(0.0101), margin(1530.2)
    ('2.2', '0.011', '1,600')
    """
    if half <= 0:
        return "0"
    place = math.floor(math.log10(half)) - 1
    digit = Decimal(1).scaleb(place)
    exact = (Decimal(f"{half:.15g}") / digit).to_integral_value(ROUND_CEILING) * digit
    return f"{exact + 0:,.{max(0, -place)}f}"


def headline(estimate: float, lower: float, upper: float, statistic: str = "") -> Headline:
    """Round an estimate and its interval to two digits of half the interval's width, the interval outwards.

    Where that takes an estimate out of an interval that is far longer on one side, up to three more digits
    keep it inside. A variance or sd whose interval begins at 0 is no more than "at most" the other end: noise
    as large as it hides it.

    >>> headline(33.0142, 29.13, 36.92)
    Headline(estimate='33.0', lower='29.1', upper='37.0')
    >>> headline(51234.5, 48000.0, 55000.0).estimate
    '51,200'
    >>> headline(79.6, 76.7, 826_445.4)
    Headline(estimate='100', lower='0', upper='826,500')
    >>> headline(1203.4, 0.0, 3497.2, "sd").in_words
    'at most 3,500'
    """
    if statistic in _SPREADS and lower <= 0 < upper:
        shown = headline(estimate, lower, upper)
        return shown._replace(estimate=_AT_MOST + shown.upper)
    half = (upper - lower) / 2
    if half <= 0:
        return Headline(*(f"{value:,.10g}" for value in (estimate, lower, upper)))
    place = math.floor(math.log10(half)) - 1

    def rounded(value: float, rounding: str) -> Decimal:
        # More digits than a double has are none of the number.
        digit = Decimal(1).scaleb(place)
        return (Decimal(f"{value:.15g}") / digit).to_integral_value(rounding) * digit + 0

    last = place - _MORE_DIGITS if lower < estimate < upper else place
    while place > last and not lower <= rounded(estimate, ROUND_HALF_EVEN) <= upper:
        place -= 1
    roundings = ((estimate, ROUND_HALF_EVEN), (lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    return Headline(*(f"{rounded(*one):,.{max(0, -place)}f}" for one in roundings))
