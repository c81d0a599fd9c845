"""Points and centers on the grid, and the exact sums over central people.

Everything is counted from the middle of the range: a coordinate at grid point q has the offset q - 2^29. The
noise is calibrated to that, since it halves what one person can add to a sum.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.core.grid import GRID_SIZE
from app.sessions.kmeans import Floats, nearest

MIDDLE = GRID_SIZE // 2
"""The grid point in the middle of the range."""

GridPoint = tuple[int, ...]
"""Grid points of the coordinates of one point."""


def to_widths(points: Sequence[GridPoint] | NDArray[np.int64]) -> Floats:
    """Grid points as float64 array of offsets from the middle [range widths]; exact."""
    return (np.asarray(points, dtype=np.int64) - MIDDLE) / GRID_SIZE


def to_grid(points: Floats) -> tuple[GridPoint, ...]:
    """The nearest grid points of an (n, d) array of offsets in [-1/2, 1/2] [range widths]."""
    rounded = np.rint(points * GRID_SIZE).astype(np.int64) + MIDDLE
    return tuple(tuple(row) for row in rounded.tolist())


class ClusterSums:
    """Exact sums over the people next to each center. Raw data: never leaves the services without noise.

    Args:
        centers: K grid points.

    Attributes:
        people: How many were added.
        counts: For each center, how many are next to it.
        sums: For each center, the sums of their offsets from the middle [grid steps].
    """

    def __init__(self, centers: Sequence[GridPoint]) -> None:
        self._centers = to_widths(centers)
        self.people = 0
        self.counts = [0] * len(centers)
        self.sums = [[0] * len(center) for center in centers]

    def add(self, points: NDArray[np.int64]) -> None:
        """Add people.

        Args:
            points: int64 array of shape (n, d), n below 2^23: grid points.
        """
        clusters, dimension = self._centers.shape
        named = nearest(to_widths(points), self._centers)
        self.people += len(points)
        for cluster, count in enumerate(np.bincount(named, minlength=clusters).tolist()):
            self.counts[cluster] += count
        for axis in range(dimension):
            # Sums of fewer than 2^23 integers of at most 2^29 are exact in doubles.
            totals = np.bincount(named, weights=points[:, axis] - MIDDLE, minlength=clusters)
            for cluster, total in enumerate(totals.tolist()):
                self.sums[cluster][axis] += int(total)

    def queries(self) -> list[int]:
        """The integer queries of `app.accounting.clusters`, without noise."""
        return [
            query
            for count, sums in zip(self.counts, self.sums, strict=True)
            for query in (count * GRID_SIZE, *sums)
        ]
