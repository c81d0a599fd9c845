"""Noise sources for tests: a seeded one, and the production one behind the same face.

`DITHER_TEST_ENTROPY=os` runs the statistical tests on the operating system's entropy: noise through
`app.mechanisms.draw`, simulated people from a freshly seeded generator. `commit` does so for a quarter of
those in `tests/statistical`, another quarter at another commit; so does `make test`. Those that draw more
than the production samplers have time for (6 microseconds a draw) then get the stand-ins on a fresh seed.
"""

import hashlib
import math
import os
import random
import secrets
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
from dither.device.exact import RandomBits
from numpy.typing import NDArray

from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, Noise
from app.mechanisms import draw as door
from app.mechanisms.draw import draw
from app.mechanisms.entropy import system_bits
from app.mechanisms.hourglass import draw_hourglass


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

    The hourglass comes from the service's own sampler on seeded bits. OpenDP's samplers cannot be
    seeded; stand-ins: Laplace is the difference of two geometric variables, floor(b E) with E
    exponential; Gaussian is inverted from its law, or rounded where sigma is above 1000.
    """

    def __init__(self, name: str | None) -> None:
        """Seeded by a name; by the operating system's entropy without one."""
        seed = secrets.randbits(128) if name is None else zlib.crc32(name.encode())
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
            case DiscreteLaplace(scales=scales):
                drawn = draw(
                    DiscreteLaplace(scales=tuple(one for one in scales for _ in range(size))),
                    queries=len(scales) * size,
                )
            case DiscreteGaussian(sigmas=sigmas):
                drawn = draw(
                    DiscreteGaussian(sigmas=tuple(one for one in sigmas for _ in range(size))),
                    queries=len(sigmas) * size,
                )
            case _:
                queries = 2 if isinstance(noise, Hourglass) else 1
                return np.array([draw(noise, queries=queries) for _ in range(size)], dtype=np.int64)
        return np.array(drawn, dtype=np.int64).reshape(-1, size).T


def on_production_entropy() -> bool:
    """Whether the environment asks for the operating system's entropy everywhere."""
    return os.environ.get("DITHER_TEST_ENTROPY") == "os"


@cache
def commit_id() -> str:
    """The commit of the checkout that the tests are in; empty where there is none, or no git."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def is_chosen(name: str, commit: str) -> bool:
    """Whether a test's name is in the quarter of a commit. Without a commit it is always the same quarter."""
    return hashlib.sha256(f"{commit} {name}".encode()).digest()[0] < 64


def noise_source(name: str, *, by_commit: Callable[[], NoiseSource] | None = None) -> NoiseSource:
    """The source for a test of this name.

    Args:
        name: Seeds it where it is seeded.
        by_commit: Where the test draws from if the commit chooses it; None for tests that it never chooses.
    """
    if on_production_entropy():
        return ProductionSource()
    chosen = os.environ.get("DITHER_TEST_ENTROPY") == "commit" and is_chosen(name, commit_id())
    return by_commit() if by_commit and chosen else SeededSource(name)


def fresh_stand_in() -> NoiseSource:
    """The stand-ins on the operating system's entropy, for tests with many draws."""
    return SeededSource(None)


MOST_AHEAD = 1000


def draw_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the production samplers draw what is asked of them one by one many at a time.

    The draws are as independent, of the same law and from the same entropy. A call takes 80 microseconds, and
    a draw more of it 6. That calls are independent of each other is for tests without this.
    """
    for name in ("draw_laplace", "draw_gaussian"):
        monkeypatch.setattr(door, name, _ahead(getattr(door, name)))


def _ahead(sampler: Callable[[float, int], list[int]]) -> Callable[[float, int], list[int]]:
    """The same sampler, which keeps draws of each size: the more, the more often it is asked for them."""
    kept: defaultdict[float, list[int]] = defaultdict(list)
    asked: defaultdict[float, int] = defaultdict(int)

    def drawn(size: float, count: int) -> list[int]:
        held = kept[size]
        asked[size] += count
        if len(held) < count:
            held.extend(sampler(size, max(count, min(asked[size], MOST_AHEAD))))
        given = held[-count:]
        del held[-count:]
        return given

    return drawn
