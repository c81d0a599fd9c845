"""Choices on the grid of a study."""

from dither.device.numbers import GRID_SIZE


def choice_points(count: int) -> tuple[int, ...]:
    """The grid points of a study's choices: its range goes from the number of the first to that of the last.

    Args:
        count: How many there are, at least 2.

    >>> [4 * point // GRID_SIZE for point in choice_points(5)]
    [0, 1, 2, 3, 4]
    """
    last = count - 1
    return tuple((2 * place * GRID_SIZE + last) // (2 * last) for place in range(count))
