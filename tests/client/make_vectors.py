"""Writes vectors.json, which every client must agree with: `python -m tests.client.make_vectors`."""

import hashlib
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from dither.device.exact import discrete_laplace
from dither.device.numbers import GRID_SIZE
from dither.device.randomizers import randomizer

from app.core import epsilon as server_epsilon
from app.core import grid as server_grid
from tests.client.bits import BitStream

PATH = Path(__file__).with_name("vectors.json")

GRID = {
    ("0", "120"): "0 -0.0 34 34.5 120 1e1 1.2E+2 0.00000005587935447692871 120.0001 -1e-30",
    ("0", "1"): "0.5 .5 +.5 1. +1. 0.1 0.3333333333333333 1 4.6566128730773926e-10 4.6566128730773925e-10",
    ("-273.15", "1000"): "-273.15 0 36.6 999.99999999 1000 -273.150000001",
    ("0.1", "0.3"): "0.2 0.30000000000000004 0.30 0.10000000000000000555",
    ("-1000000000000000", "1000000000000000"): "0 1 -1 999999999999999.9 0.93132257461547851562",
}
"""Values, by range."""

NOT_NUMBERS = [
    "",
    "+",
    ".",
    "-.e1",
    "1_0",
    " 1",
    "1 ",
    "0x10",
    "NaN",
    "Infinity",
    "1e100",
    "1" * 31,
    "\u0661",
]
EPSILONS = "1 0.5 1.23999 0.1234567 0.000001 0.0000019 0.001239 999999.9 1000000 1e-3 12.5e1"
SCALES = [(1, 1), (1, 2), (7, 3), (1000, 10), (GRID_SIZE * 1_000_000, 1_230_000), (GRID_SIZE * 1_000_000, 1)]
REPORTS = [(0, 1_000_000), (GRID_SIZE, 500_000), (GRID_SIZE // 3, 123), (357_913_941, 10_000_000)]
STREAMS = 4


ABOUT = [
    "grid: the point of a value on a study's grid, null outside the range. Numbers are decimal texts.",
    "not_numbers: texts that are refused.",
    "epsilons: a personal epsilon in micro-epsilon, and that rounded down to three significant digits.",
    "discrete_laplace: noise of scale numerator / denominator, drawn from `bits` (hex, the highest bit of "
    "each byte first); `used` is how many bits that takes.",
    "reports: the report for a grid point, randomized with epsilon [micro-epsilon]: the point plus noise of "
    "scale 2^30 * 10^6 / epsilon.",
    "below(n): w = bit length of n - 1; draw w bits as an integer, highest first, again until it is below n. "
    "below(1) draws nothing.",
    "bernoulli_exp(a, b): k = 1; while below(k * b) < a: k += 1; true if k is odd.",
    "discrete_laplace(t, s), reduced by their greatest common divisor: u = below(t); start again unless "
    "bernoulli_exp(u, t); v = how often bernoulli_exp(1, 1) is true before it is false; "
    "m = (u + t * v) / s, rounded down; draw one bit, 1 means minus; start again for minus zero.",
]


def stream(index: int) -> bytes:
    """Bits that look random and are the same everywhere."""
    return hashlib.sha256(f"dither vectors {index}".encode()).digest() * 4


def make() -> dict[str, Any]:
    """The vectors; numbers and epsilons as the service computes them, noise as the SDK draws it."""
    return {
        "about": ABOUT,
        "grid_bits": server_grid.GRID_BITS,
        "grid": [
            {"lower": lower, "upper": upper, "value": value, "point": _point(lower, upper, value)}
            for (lower, upper), values in GRID.items()
            for value in values.split()
        ],
        "not_numbers": NOT_NUMBERS,
        "epsilons": [_epsilon(text) for text in EPSILONS.split()],
        "discrete_laplace": [
            _noise(numerator, denominator, stream(index))
            for numerator, denominator in SCALES
            for index in range(STREAMS)
        ],
        "reports": [_report(*report, stream(index)) for index, report in enumerate(REPORTS)],
    }


def _point(lower: str, upper: str, value: str) -> int | None:
    low, width = Fraction(lower), Fraction(upper) - Fraction(lower)
    position = (Fraction(value) - low) / width
    return math.floor(position * GRID_SIZE + Fraction(1, 2)) if 0 <= position <= 1 else None


def _epsilon(text: str) -> dict[str, Any]:
    micro = server_epsilon.epsilon_limit(Decimal(text))
    return {"epsilon": text, "micro": micro, "rounded": server_epsilon.round_down_to_significant(micro)}


def _noise(numerator: int, denominator: int, data: bytes) -> dict[str, Any]:
    bits = BitStream(data)
    noise = discrete_laplace(numerator, denominator, bits)
    return {
        "numerator": numerator,
        "denominator": denominator,
        "bits": data[: -(-bits.used // 8)].hex(),
        "used": bits.used,
        "noise": noise,
    }


def _report(point: int, epsilon: int, data: bytes) -> dict[str, Any]:
    bits = BitStream(data)
    report = randomizer("laplace").report(point, epsilon, bits)
    used = data[: -(-bits.used // 8)].hex()
    return {"point": point, "epsilon": epsilon, "bits": used, "report": report}


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(), indent=1) + "\n", encoding="utf-8")
