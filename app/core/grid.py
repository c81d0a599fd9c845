"""The integer grid on which all data live, as devices compute it, and squares on it."""

from dither.device.numbers import GRID_BITS, GRID_SIZE, REPORT_LIMIT, Grid, NotANumber, parse_decimal

__all__ = [
    "GRID_BITS",
    "GRID_SIZE",
    "MIDDLE",
    "REPORT_LIMIT",
    "Grid",
    "NotANumber",
    "parse_decimal",
    "square",
]

MIDDLE = GRID_SIZE // 2
"""The middle of the range: where squares are taken about."""


def square(point: int) -> int:
    r"""The square of a grid point about the middle of the range, in grid steps, rounded down.

    This is :math:`\lfloor (q - 2^{29})^2 / 2^{30} \rfloor`, in [0, 2^28]. The ledger adds these up;
    `app.accounting.prices` proves what one person can move such a sum by.

    >>> square(0), square(GRID_SIZE // 2), square(GRID_SIZE)
    (268435456, 0, 268435456)
    """
    return (point - MIDDLE) ** 2 >> GRID_BITS
