"""Discrete Gaussian noise, exact, from the operating system's entropy."""

import math
from functools import lru_cache

import opendp.prelude as dp

from app.core.errors import InternalFault
from app.mechanisms.source import integers

MAX_SIGMA = float(1 << 56)
"""The largest admissible standard deviation: 127 of them fit a 64-bit integer."""

dp.enable_features("contrib")


def draw_gaussian(sigma: float, count: int) -> list[int]:
    r"""Independent draws of discrete Gaussian noise.

    Output distribution: :math:`P(z) \propto e^{-z^2 / (2 \sigma^2)}` for every integer z, sampled exactly
    (sigma is taken as the rational number the double stands for).

    Args:
        sigma: Standard deviation parameter [units of the query], 0 < sigma <= 2**56.
        count: How many.

    Returns:
        The noise of each query [units of the query].

    Raises:
        InternalFault: sigma out of range or not finite, no entropy, or any other failure of the sampler.
            There is then no noise and must be no answer.

    Privacy: mu-Gaussian differential privacy for an integer query of L2 sensitivity D under either
        neighboring relation, mu^2 = D^2 / (sigma^2 - 9), by `app.accounting.gaussian`. Input domain: any
        integer query. Takes about 80 microseconds, and 10 for each draw more.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 3 (the sampler, as in OpenDP).
    """
    if not (math.isfinite(sigma) and 0 < sigma <= MAX_SIGMA):
        raise InternalFault("A Gaussian sigma is out of range.")
    return integers(lambda zeros: _measurement(sigma)(zeros), count)


@lru_cache(maxsize=1024)
def _measurement(sigma: float) -> dp.Measurement:
    """The OpenDP measurement x -> x + noise on lists of 64-bit integers."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=sigma)
