"""The local randomizer: exact discrete Laplace noise from random bits and integers only.

Every random decision is made from uniform bits, by comparing integers; nothing is rounded, so the
probabilities are exactly the ones stated. Any other client that reads the same bits in the same order
draws the same noise: tests/client/vectors.json says how.
"""

import secrets
from collections.abc import Callable
from math import gcd

from dither._numbers import GRID_SIZE, MICRO

RandomBits = Callable[[int], int]
"""Given k > 0, a uniform integer in [0, 2**k). The first bit drawn is the highest."""


def below(bound: int, bits: RandomBits) -> int:
    """A uniform integer in [0, bound), by rejection. A bound of one draws nothing."""
    width = (bound - 1).bit_length()
    if width == 0:
        return 0
    while (candidate := bits(width)) >= bound:
        pass
    return candidate


def bernoulli_exp(numerator: int, denominator: int, bits: RandomBits) -> bool:
    """True with probability exp(-numerator / denominator), for 0 <= numerator <= denominator.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 1, the case gamma in [0, 1].
    """
    k = 1
    while below(k * denominator, bits) < numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(numerator: int, denominator: int, bits: RandomBits = secrets.randbits) -> int:
    """An integer x with probability proportional to exp(-|x| * denominator / numerator). Exact.

    Args:
        numerator, denominator: The scale, numerator / denominator, both above 0.
        bits: Source of random bits. The default is the operating system's.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 2 (there t = numerator, s = denominator).
    """
    divisor = gcd(numerator, denominator)
    t, s = numerator // divisor, denominator // divisor
    while True:
        u = below(t, bits)
        if not bernoulli_exp(u, t, bits):
            continue
        v = 0
        while bernoulli_exp(1, 1, bits):
            v += 1
        magnitude = (u + t * v) // s
        negative = bits(1) == 1
        if negative and magnitude == 0:
            continue  # or zero would count twice
        return -magnitude if negative else magnitude


def randomize(point: int, epsilon: int, bits: RandomBits = secrets.randbits) -> int:
    """The report for a grid point: the point plus discrete Laplace noise of scale 2**30 / epsilon.

    Two values of one person lie at most 2**30 apart, so the report is epsilon-differentially private
    for its owner against every person, the service included.

    Args:
        point: Grid point in [0, 2**30].
        epsilon: What the report costs its owner, above 0 [micro-epsilon].
        bits: Source of random bits.
    """
    if epsilon <= 0 or not 0 <= point <= GRID_SIZE:
        raise ValueError("a report needs a point on the grid and a positive epsilon")
    return point + discrete_laplace(GRID_SIZE * MICRO, epsilon, bits)
