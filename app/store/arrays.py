"""Arrays as statements take them."""

from collections.abc import Iterable


def array_literal(numbers: Iterable[int]) -> str:
    """An array of integers as PostgreSQL writes it, since an array of arrays must not be ragged.

    >>> array_literal((1, -2))
    '{1,-2}'
    """
    return f"{{{','.join(map(str, numbers))}}}"
