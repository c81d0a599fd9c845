"""Discrete Laplace noise, exact, from the operating system's entropy."""

import math
from functools import lru_cache

import opendp.prelude as dp

from app.core.errors import InternalFault
from app.mechanisms.source import integers

MAX_SCALE = float(1 << 56)
"""The largest admissible scale: far tails still fit a 64-bit integer (overflow below exp(-127))."""

dp.enable_features("contrib")


def draw_laplace(scale: float, count: int) -> list[int]:
    r"""Independent draws of discrete Laplace noise.

    Output distribution: :math:`P(z) = \frac{1 - e^{-1/b}}{1 + e^{-1/b}} e^{-|z|/b}` for every integer z,
    with b = `scale`, sampled exactly (the scale is taken as the rational number the double stands for).

    Args:
        scale: b [units of the query], 0 < b <= 2**56.
        count: How many.

    Returns:
        The noise of each query [units of the query].

    Raises:
        InternalFault: scale out of range or not finite, no entropy, or any other failure of the
            sampler. There is then no noise and must be no answer.

    Privacy: added to an integer query of L1 sensitivity D under either neighboring relation this is
        (D / b)-differentially private; `app.accounting.costs` rounds that cost up. Input domain: any
        integer query. Draws about log(b) bits from the operating system; takes about 80 microseconds,
        and 6 for each draw more.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithm 2 (the sampler, as in OpenDP).
    """
    if not (math.isfinite(scale) and 0 < scale <= MAX_SCALE):
        raise InternalFault("A Laplace scale is out of range.")
    return integers(lambda zeros: _measurement(scale)(zeros), count)


@lru_cache(maxsize=1024)
def _measurement(scale: float) -> dp.Measurement:
    """The OpenDP measurement x -> x + noise on lists of 64-bit integers."""
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
