r"""Exact random decisions from random bits, in integers only.

Nothing is rounded: each function has exactly the stated distribution, also where a probability such as
:math:`e^{-\epsilon}` is irrational. The samplers of this room are put together from these.

References:
    Canonne, Kamath, Steinke, arXiv:2004.00010, algorithms 1 and 2.
"""

from app.mechanisms.entropy import RandomBits


def below(bound: int, bits: RandomBits) -> int:
    """A uniform integer below a bound, by rejection.

    Args:
        bound: At least 1; a bound of 1 draws nothing.
        bits: The source.

    Returns:
        An integer in [0, bound).
    """
    width = (bound - 1).bit_length()
    if width == 0:
        return 0
    while (candidate := bits(width)) >= bound:
        pass
    return candidate


def bernoulli_exp(numerator: int, denominator: int, bits: RandomBits) -> bool:
    r"""True with probability :math:`e^{-x}`, x = numerator / denominator.

    Args:
        numerator: At least 0.
        denominator: At least 1.
        bits: The source.

    Returns:
        Whether the event happened. Takes about two uniform draws, however large x is.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 1.
    """
    while numerator > denominator:
        if not _bernoulli_exp_unit(1, 1, bits):
            return False
        numerator -= denominator
    return _bernoulli_exp_unit(numerator, denominator, bits)


def geometric(numerator: int, denominator: int, bits: RandomBits) -> int:
    r"""An integer k >= 0 with probability :math:`(1 - e^{-x}) e^{-x k}`, x = numerator / denominator.

    Args:
        numerator: At least 1.
        denominator: At least 1.
        bits: The source.

    Returns:
        k. Takes a few uniform draws, however small or large x is.

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


def _bernoulli_exp_unit(numerator: int, denominator: int, bits: RandomBits) -> bool:
    """True with probability exp(-numerator / denominator), for 0 <= numerator <= denominator."""
    k = 1
    while below(k * denominator, bits) < numerator:
        k += 1
    return k % 2 == 1
