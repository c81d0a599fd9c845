r"""The law of the pivot (1 - p) first - p second under hourglass noise, for exact intervals.

Its noise is :math:`(1 - p)(h u + v) - p (h u - v) = (1 - 2 p) h u + v`. Given u, the density of v is flat
between the reaches :math:`(|u| + 2 i) h + r` and falls by b^2 at each; so the tail given u is a sum of one
straight piece and a geometric series. v is taken as continuous: a sensitivity of 2^30 steps and more makes
that an error below 1e-9.

Its characteristic function, in units of h and with c = tilt s, is that of the same pieces summed up:

.. math:: \phi(s) \propto \frac{1}{s}\,\mathrm{Im}\, \frac{e^{i s r / h}}{1 - b^2 e^{2 i s}}
    \Big(\frac{1}{1 - b e^{i (s + c)}} + \frac{1}{1 - b e^{i (s - c)}} - 1\Big).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.noise import Hourglass
from app.mechanisms.hourglass import hourglass_moments

_SMALLEST_EPSILON = 0.02
"""Below this the law is that of this epsilon, stretched; the shapes differ by less than 4e-5."""

_EXPONENT = 40.0
"""Levels with b^t < e^-40 are left out."""


def pivot_tail(noise: Hourglass, tilt: float, x: float) -> float:
    """P(|tilt h u + v| > x).

    Args:
        noise: The distribution.
        tilt: 1 - 2 p, in [-1, 1].
        x: Threshold, at least 0 [query units].

    Returns:
        A probability, to 4e-5 absolute; to 1e-9 from epsilon = 0.02 on.

    Raises:
        InternalFault: impossible parameters.

    Privacy: no data, no randomness.
    """
    if not noise.is_sound or abs(tilt) > 1 or x < 0:
        raise InternalFault("An hourglass has impossible parameters.")
    epsilon = noise.epsilon / MICRO
    stretch = max(_SMALLEST_EPSILON / epsilon, 1.0)
    epsilon *= stretch
    step, threshold = noise.step / noise.half, x / noise.half / stretch
    b2, rest = math.exp(-2 * epsilon), -math.expm1(-2 * epsilon)
    last = math.ceil(_EXPONENT / epsilon)
    u = np.arange(-last, last + 1, dtype=np.float64)
    weight = np.exp(-epsilon * np.abs(u))
    reach = np.abs(u) + step
    beyond = 2 * b2 / rest
    y = threshold - tilt * u
    blocks = np.maximum(np.ceil((np.abs(y) - reach) / 2), 0.0)
    outside = np.exp(-2 * epsilon * blocks) * (reach + 2 * blocks - np.abs(y) + beyond)
    whole = 2 * (reach + beyond)
    tail = np.where(y >= 0, outside, whole - outside)
    return float(min(1.0, 2 * np.dot(weight, tail) / np.dot(weight, whole)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HourglassLaw:
    """The law of a sum of independent size (tilt h u + v): see `app.estimators.quantiles.LawPart`.

    Attributes:
        noise: The distribution.
        tilt: 1 - 2 p, in [-1, 1].
        size: What a unit of the query counts, above 0.
        times: How many there are.
    """

    noise: Hourglass
    tilt: float
    size: float
    times: int

    @property
    def variance(self) -> float:
        """Variance [unit of the sum, squared]."""
        variance, covariance = hourglass_moments(self.noise)
        of_u, of_v = (variance + covariance) / 2, (variance - covariance) / 2
        return self.times * self.size**2 * (self.tilt**2 * of_u + of_v)

    def phi(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """The characteristic function at nodes above 0."""
        s = nodes * self.size * self.noise.half
        epsilon, step = self.noise.epsilon / MICRO, self.noise.step / self.noise.half
        b, rest = math.exp(-epsilon), -math.expm1(-epsilon)
        b2, rest2 = b * b, -math.expm1(-2 * epsilon)
        of_u = sum(1 / (1 - b * np.exp(1j * s * (1 + sign * self.tilt))) for sign in (1, -1)) - 1
        pieces = np.imag(np.exp(1j * s * step) / (1 - b2 * np.exp(2j * s)) * of_u) / s
        whole = 2 * b / rest**2 + (step + 2 * b2 / rest2) * (1 + b) / rest
        found: NDArray[np.float64] = (pieces * rest2 / whole) ** self.times
        return found
