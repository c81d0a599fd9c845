"""Arrays as statements take them."""

from collections.abc import Iterable


def array_literal(numbers: Iterable[int | None]) -> str:
    """An array of integers as PostgreSQL writes it, for a parameter that is text.

    An array of arrays must not be ragged. And of a list the driver asks every number whether it is a list,
    too, which took longer than all else that a release over many cohorts sends.

    >>> array_literal((1, None, -2))
    '{1, NULL, -2}'
    """
    return f"{{{str(list(numbers))[1:-1].replace('None', 'NULL')}}}"
