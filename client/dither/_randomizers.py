"""What a study's local mechanism makes of a value, on the device.

Every random decision compares integers made of random bits, so that any client which reads the same bits
in the same order makes the same report: tests/client/randomizer_vectors.json says how.
"""

import secrets
from dataclasses import dataclass
from typing import Literal, get_args

from dither._gaussian import discrete_gaussian, gaussian_sigma
from dither._laplace import RandomBits, below, randomize
from dither._numbers import GRID_SIZE, MICRO
from dither._shapes import HALF, HYBRID_BITS, duchi_reach, hybrid_share, piecewise_shape

Mechanism = Literal["laplace", "gaussian", "duchi", "piecewise", "hybrid"]

LAPLACE_TAIL = 64
"""Scales outside the grid within which the service takes a Laplace report."""

GAUSSIAN_TAIL = 12
"""Sigmas outside the grid within which the service takes a Gaussian report."""

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)


@dataclass(frozen=True, slots=True)
class Randomizer:
    """The randomizer of one study.

    Attributes:
        mechanism: Its name.
        delta: Gaussian only: the delta of a report [1e-12].
    """

    mechanism: Mechanism
    delta: int = 0

    @property
    def is_bounded(self) -> bool:
        """Whether its reports lie in a range that belongs to the epsilon they were made with."""
        return self.mechanism in ("duchi", "piecewise", "hybrid")

    def reach(self, epsilon: int) -> int | None:
        """How far outside the grid the service takes a Laplace or Gaussian report of an epsilon [grid steps].

        Others have a range of their own: None.
        """
        if self.mechanism == "laplace":
            return -(-LAPLACE_TAIL * GRID_SIZE * MICRO // epsilon)
        return GAUSSIAN_TAIL * gaussian_sigma(epsilon, self.delta) if self.mechanism == "gaussian" else None

    def report(self, point: int, epsilon: int, bits: RandomBits = secrets.randbits) -> int:
        """The report for a grid point.

        It is epsilon-differentially private for its owner against every person, the service included; a
        Gaussian one (epsilon, delta).

        Args:
            point: Grid point in [0, 2**30].
            epsilon: What the report costs its owner, above 0 [micro-epsilon].
            bits: Source of random bits. The default is the operating system's.
        """
        if epsilon <= 0 or not 0 <= point <= GRID_SIZE:
            raise ValueError("a report needs a point on the grid and a positive epsilon")
        if self.mechanism == "laplace":
            return randomize(point, epsilon, bits)
        if self.mechanism == "gaussian":
            return point + discrete_gaussian(gaussian_sigma(epsilon, self.delta), bits)
        if self.mechanism == "duchi":
            return HALF + duchi(point - HALF, epsilon, bits)
        if self.mechanism == "piecewise":
            return HALF + piecewise(point - HALF, epsilon, bits)
        return HALF + hybrid(point - HALF, epsilon, bits)


def duchi(offset: int, epsilon: int, bits: RandomBits) -> int:
    """A or -A, on average the offset from the middle of the grid."""
    reach = duchi_reach(epsilon)
    return reach if below(2 * reach, bits) < reach + offset else -reach


def piecewise(offset: int, epsilon: int, bits: RandomBits) -> int:
    """An integer of the range, most likely in the window about the offset; on average the offset."""
    shape = piecewise_shape(epsilon)
    middle = (offset * shape.drift + bits((HALF - 1).bit_length())) // HALF
    ticket = below(shape.total, bits)
    inside = shape.window * shape.inside
    if ticket < inside:
        return middle - shape.reach + ticket // shape.inside
    # The other integers in order, as if the window were not there.
    report = (ticket - inside) // shape.outside - shape.drift - shape.reach
    return report if report < middle - shape.reach else report + shape.window


def hybrid(offset: int, epsilon: int, bits: RandomBits) -> int:
    """A piecewise report or one of Duchi's; where only the latter is used, no bits choose."""
    share = hybrid_share(epsilon)
    if share > 0 and bits(HYBRID_BITS) < share:
        return piecewise(offset, epsilon, bits)
    return duchi(offset, epsilon, bits)
