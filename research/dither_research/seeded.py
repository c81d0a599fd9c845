"""Repeatable random numbers for simulations: the one module that knows `numpy.random`.

What is drawn here protects no person. Rooms that answer people cannot import this one: the layers of the
import contract hold that.
"""

import zlib
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, Noise, NoNoise
from app.mechanisms.hourglass import draw_hourglass
from dither_research.staircase import DiscreteStaircase, draw_staircase

Random: TypeAlias = np.random.Generator
"""A source of repeatable random numbers."""

Floats: TypeAlias = NDArray[np.float64]


def seeded(name: str) -> Random:
    """The source of a name: the same numbers every time.

    Args:
        name: Of the experiment.
    """
    return np.random.default_rng(zlib.crc32(name.encode()))


def draw_noise(noise: Noise | DiscreteStaircase, *, queries: int, runs: int, random: Random) -> Floats:
    """The noise of many simulated releases.

    Args:
        noise: As in a plan.
        queries: How many queries the plan has.
        runs: Releases.
        random: The source.

    Returns:
        float64 array of shape (queries, runs), whole numbers [units of the queries]. Laplace noise is exactly
        the discrete law up to the rounding of doubles, Gaussian noise is rounded, and staircase and hourglass
        noise are exact.

    Raises:
        InternalFault: the noise is not for this number of queries.
    """
    match noise:
        case NoNoise():
            values = np.zeros((queries, runs))
        case DiscreteLaplace(scales=scales):
            # floor(b E) with E exponential is geometric; the difference of two is discrete Laplace.
            column = np.array(scales)[:, np.newaxis]
            first, second = (
                np.floor(column * random.standard_exponential((len(scales), runs))) for _ in range(2)
            )
            values = first - second
        case DiscreteGaussian(sigmas=sigmas):
            column = np.array(sigmas)[:, np.newaxis]
            values = np.rint(column * random.standard_normal((len(sigmas), runs)))
        case DiscreteStaircase():
            bits = random_bits(random)
            values = np.array([[float(draw_staircase(noise, bits)) for _ in range(runs)]])
        case Hourglass():
            bits = random_bits(random)
            values = np.array([draw_hourglass(noise, bits) for _ in range(runs)], dtype=np.float64).T
    if values.shape != (queries, runs):
        raise InternalFault("The noise does not fit the number of queries.")
    return values


def random_bits(random: Random) -> Callable[[int], int]:
    """Fair coins in the shape that the product's samplers take.

    Args:
        random: The source.

    Returns:
        A function from a number of bits to an integer of that many bits.
    """

    def bits(count: int) -> int:
        size = (count + 7) // 8
        return int.from_bytes(random.bytes(size), "big") >> (8 * size - count)

    return bits
