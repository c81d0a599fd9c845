"""Arrays as statements take them."""

from collections.abc import Iterable


def array_literal(numbers: Iterable[int | None]) -> str:
    """An array of integers as PostgreSQL writes it, since an array of arrays must not be ragged.

    >>> array_literal((1, None, -2))
    '{1,NULL,-2}'
    """
    return f"{{{','.join('NULL' if number is None else str(number) for number in numbers)}}}"
