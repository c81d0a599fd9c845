"""Noise sources for tests: a seeded one, and the production one behind the same face.

`DITHER_TEST_ENTROPY=os` runs the statistical tests on the operating system's entropy: noise through
`app.mechanisms.draw`, simulated people from a freshly seeded generator.
"""

import math
import os
import random
import zlib
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.core.noise import DiscreteGaussian, DiscreteLaplace, DiscreteStaircase, Hourglass, Noise
from app.mechanisms.draw import draw
from app.mechanisms.entropy import RandomBits, system_bits
from app.mechanisms.hourglass import draw_hourglass
from app.mechanisms.staircase import draw_staircase


class NoiseSource(Protocol):
    """Where a statistical test takes its draws from."""

    people: np.random.Generator
    """For simulated people, not for noise."""

    bits: RandomBits
    """For samplers that take their bits as an argument."""

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """`size` draws of discrete Laplace noise."""

    def draws(self, noise: Noise, size: int) -> NDArray[np.int64]:
        """`size` draws of any noise, a row each, a column a query."""


class SeededSource:
    """Repeatable noise.

    Staircase and hourglass come from the service's own samplers on seeded bits. OpenDP's samplers cannot be
    seeded; stand-ins: Laplace is the difference of two geometric variables, floor(b E) with E
    exponential; Gaussian is inverted from its law, or rounded where sigma is above 1000.
    """

    def __init__(self, name: str) -> None:
        seed = zlib.crc32(name.encode())
        self._noise, self.people = (
            np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2)
        )
        self.bits: RandomBits = random.Random(seed).getrandbits

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        first, second = (
            np.floor(scale * self._noise.standard_exponential(size)).astype(np.int64) for _ in range(2)
        )
        return first - second

    def draws(self, noise: Noise, size: int) -> NDArray[np.int64]:
        match noise:
            case DiscreteLaplace(scales=scales):
                columns = [self.laplace(scale, size) for scale in scales]
            case DiscreteGaussian(sigmas=sigmas):
                columns = [self._gaussian(sigma, size) for sigma in sigmas]
            case DiscreteStaircase():
                columns = [np.array([draw_staircase(noise, self.bits) for _ in range(size)], dtype=np.int64)]
            case Hourglass():
                return np.array([draw_hourglass(noise, self.bits) for _ in range(size)], dtype=np.int64)
            case _:
                raise NotImplementedError
        return np.stack(columns, axis=1)

    def _gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        if sigma > 1000:
            return np.rint(self._noise.normal(0.0, sigma, size)).astype(np.int64)
        reach = math.ceil(40 * sigma)
        values = np.arange(-reach, reach + 1)
        weights = np.exp(-(values**2) / (2 * sigma**2))
        drawn: NDArray[np.int64] = self._noise.choice(values, size, p=weights / weights.sum())
        return drawn


class ProductionSource:
    """The service's own noise."""

    def __init__(self) -> None:
        self.people = np.random.default_rng()
        self.bits: RandomBits = system_bits

    def laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        noise = DiscreteLaplace(scales=(scale,))
        return self.draws(noise, size)[:, 0]

    def draws(self, noise: Noise, size: int) -> NDArray[np.int64]:
        match noise:
            case DiscreteLaplace(scales=columns) | DiscreteGaussian(sigmas=columns):
                queries = len(columns)
            case Hourglass():
                queries = 2
            case _:
                queries = 1
        return np.array([draw(noise, queries=queries) for _ in range(size)], dtype=np.int64)


def on_production_entropy() -> bool:
    """Whether the environment asks for the operating system's entropy."""
    return os.environ.get("DITHER_TEST_ENTROPY") == "os"


def noise_source(name: str) -> NoiseSource:
    """The source for a test of this name."""
    return ProductionSource() if on_production_entropy() else SeededSource(name)
