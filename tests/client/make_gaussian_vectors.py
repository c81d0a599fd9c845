"""Writes gaussian_vectors.json: `python -m tests.client.make_gaussian_vectors`.

Any client of the service must agree with it: the same offer, the same noise.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from dither.device.gaussian import DISCRETE_LOSS, gaussian_sigma, micro_mu2, pure_epsilon
from dither.device.numbers import DELTA_UNIT, GRID_SIZE, MAX_EPSILON, MICRO, SIGNIFICANT, significant

PATH = Path(__file__).with_name("gaussian_vectors.json")

COUNT = 3_000
EDGES = [
    (epsilon, delta)
    for epsilon in (0, 1, 999, 1_000_000, MAX_EPSILON - 10**9, MAX_EPSILON)
    for delta in (1, 1_000_000, DELTA_UNIT // 2, DELTA_UNIT - 1)
]

ABOUT = [
    "offers: epsilon [1e-6], delta [1e-12], and mu2, sigma and pure of them, as randomizer_vectors.json says;"
    " no sigma where there is no mu2.",
    "sigmas: mu2, and sigma of it, where one more or less makes another sigma.",
]


def offers() -> list[tuple[int, int]]:
    """Edges, and epsilons and deltas of all sizes that look random and are the same everywhere."""
    found = list(EDGES)
    for number in range(COUNT - len(EDGES)):
        digest = hashlib.sha256(f"dither offer {number}".encode()).digest()
        first, second, third = (int.from_bytes(digest[8 * at : 8 * at + 8], "big") for at in range(3))
        decade = int(10 ** (second % 12))
        found.append((significant(1 + first % SIGNIFICANT), decade + third % (9 * decade)))
    return found


def make() -> dict[str, Any]:
    """The vectors, as the SDK computes them."""
    return {
        "about": ABOUT,
        "offers": [_bought(epsilon, delta) for epsilon, delta in offers()],
        "sigmas": [[str(mu2), gaussian_sigma(mu2)] for mu2 in amounts()],
    }


def amounts() -> list[int]:
    """The least mu^2 that pays for a sigma, and one less, for sigmas of all sizes."""
    least = [
        -(-(GRID_SIZE**2) * MICRO // (sigma**2 - DISCRETE_LOSS))
        for sigma in [*range(62, 142), *(3**power for power in range(5, 25))]
    ]
    return [mu2 - less for mu2 in least for less in (0, 1)]


def _bought(epsilon: int, delta: int) -> list[int | None]:
    mu2 = micro_mu2(epsilon, delta)
    return [epsilon, delta, mu2, gaussian_sigma(mu2) if mu2 else None, pure_epsilon(mu2)]


def text() -> str:
    """The file: a line for each row."""
    parts = [
        f' "{name}": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]"
        for name, rows in make().items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
