"""The one door to noise.

Entropy is the operating system's, read by OpenDP's samplers (`getrandom`) or by `system_bits`. Nothing
selects another source: no argument, setting, header or environment variable. When the source fails the
draw fails, and without noise there is no answer.
"""

from collections.abc import Callable, Sequence
from itertools import groupby

from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, Noise, NoNoise
from app.mechanisms.entropy import system_bits
from app.mechanisms.gaussian import draw_gaussian
from app.mechanisms.hourglass import draw_hourglass
from app.mechanisms.laplace import draw_laplace


def draw(noise: Noise, *, queries: int) -> tuple[int, ...]:
    """Draw the noise of one release.

    Args:
        noise: The distribution.
        queries: Number of integer queries that the noise is for.

    Returns:
        One integer a query, to be added to its exact value [units of the query]. Zeros for `NoNoise`.

    Raises:
        InternalFault: `noise` is for another number of queries, its parameters are out of range, the
            mechanism is unknown, or there is no entropy.

    Privacy: draws noise and spends nothing; `app.accounting.costs` prices the release.
    """
    match noise:
        case NoNoise():
            values: tuple[int, ...] = (0,) * queries
        case DiscreteLaplace(scales=scales):
            values = _each(draw_laplace, scales)
        case DiscreteGaussian(sigmas=sigmas):
            values = _each(draw_gaussian, sigmas)
        case Hourglass():
            values = draw_hourglass(noise, system_bits)
        case _:
            raise InternalFault("There is no sampler for this noise.")
    if len(values) != queries:
        raise InternalFault("The noise does not fit the number of queries.")
    return values


def _each(sampler: Callable[[float, int], list[int]], sizes: Sequence[float]) -> tuple[int, ...]:
    """A draw of each size; those of one size that stand together are drawn by one call."""
    return tuple(one for size, run in groupby(sizes) for one in sampler(size, sum(1 for _ in run)))
