"""Exact random decisions, and exact discrete noise, from random bits and integers only.

Every random decision is made from uniform bits, by comparing integers; nothing is rounded, so the
probabilities are exactly the ones stated, also where e^-x is irrational. Any other client that reads the same
bits in the same order draws the same noise: tests/client/vectors.json says how.

References:
    Canonne, Kamath, Steinke, arXiv:2004.00010, algorithms 1 to 3.
"""

import secrets
from collections.abc import Callable
from math import gcd

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
    """True with probability exp(-numerator / denominator), for any numerator >= 0.

    Takes about two uniform draws, however large the exponent is.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 1.
    """
    while numerator > denominator:
        if not _bernoulli_exp_unit(1, 1, bits):
            return False
        numerator -= denominator
    return _bernoulli_exp_unit(numerator, denominator, bits)


def _bernoulli_exp_unit(numerator: int, denominator: int, bits: RandomBits) -> bool:
    """The same, for numerator <= denominator."""
    k = 1
    while below(k * denominator, bits) < numerator:
        k += 1
    return k % 2 == 1


def geometric(numerator: int, denominator: int, bits: RandomBits) -> int:
    r"""An integer k >= 0 with probability :math:`(1 - e^{-x}) e^{-x k}`, x = numerator / denominator.

    Args:
        numerator, denominator: At least 1.
        bits: The source.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 2, lines 1 to 9: u + denominator v is
        geometric with rate 1 / denominator, and its quotient by `numerator` has the rate x.
    """
    while True:
        u = below(denominator, bits)
        if _bernoulli_exp_unit(u, denominator, bits):
            break
    v = 0
    while _bernoulli_exp_unit(1, 1, bits):
        v += 1
    return (u + denominator * v) // numerator


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
        magnitude = geometric(s, t, bits)
        negative = bits(1) == 1
        if negative and magnitude == 0:
            continue  # or zero would count twice
        return -magnitude if negative else magnitude


def discrete_gaussian(sigma: int, bits: RandomBits = secrets.randbits) -> int:
    """An integer x with probability proportional to exp(-x**2 / (2 sigma**2)). Exact.

    Args:
        sigma: Above 0.
        bits: Source of random bits. The default is the operating system's.
    """
    t = sigma + 1
    while True:
        noise = discrete_laplace(t, 1, bits)
        excess = abs(noise) * t - sigma * sigma
        if bernoulli_exp(excess * excess, 2 * sigma * sigma * t * t, bits):
            return noise
