"""The questions of a session: who is asked when, and randomized response, the truth or another category."""

import hmac
import secrets

from dither.device.exact import RandomBits, below, bernoulli_exp
from dither.device.numbers import MICRO


def respond(category: int, categories: int, epsilon: int, bits: RandomBits = secrets.randbits) -> int:
    """A randomized answer: the truth is e^epsilon times as likely as each other category. Exact.

    A category is chosen evenly; the truth is kept, anything else with probability e^-epsilon only.

    Args:
        category: The truth, in 0..categories - 1.
        categories: How many there are, at least 2.
        epsilon: What the answer costs its owner, above 0 [micro-epsilon].
        bits: Source of random bits. The default is the operating system's.

    References:
        Warner, JASA 60 (1965), doi:10.1080/01621459.1965.10480775; Kairouz, Bonawitz, Ramage,
        arXiv:1602.07387, equation 2.
    """
    if categories < 2 or not 0 <= category < categories or epsilon <= 0:
        raise ValueError("an answer needs a category, one of at least two, and a positive epsilon")
    while True:
        step = below(categories, bits)
        if step == 0 or bernoulli_exp(epsilon, MICRO, bits):
            return (category + step) % categories


def assigned_round(key: bytes, subject: str, rounds: int) -> int:
    """The round of a user_split session in which a subject is asked, from 1.

    Args:
        key: The session's assignment key, which is published.
        subject: External id.
        rounds: Their number.

    >>> assigned_round(bytes(16), "ada", 10)
    10
    """
    digest = hmac.digest(key, subject.encode(), "sha256")
    return 1 + int.from_bytes(digest[:8], "big") % rounds
