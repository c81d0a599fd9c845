"""Numbers as they were written.

A float would round a value before it reaches the grid and an epsilon before it reaches the ledger, so
JSON numbers are kept as their text until they become exact integers or decimals.
"""

from decimal import Decimal

from app.core.grid import NotANumber, parse_decimal


class JsonNumber(str):
    """The exact text of a JSON number; "NaN", "Infinity" and "-Infinity" for the literals that are none.

    A JSON string is a plain `str`: `type(value) is str` tells the two apart.
    """

    __slots__ = ()


def to_decimal(text: str) -> Decimal:
    """The exact value of a decimal number; -0 is 0.

    Raises:
        NotANumber: not a finite decimal number of a sensible length.

    >>> to_decimal("1.50e-3")
    Decimal('0.00150')
    """
    mantissa, _ = parse_decimal(text)
    return Decimal(text) if mantissa else Decimal(0)


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
