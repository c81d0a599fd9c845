r"""The law of the pivot (1 - p) first - p second under hourglass noise, for exact intervals.

Its noise is :math:`(1 - p)(h u + v) - p (h u - v) = (1 - 2 p) h u + v`. Given u, the density of v is flat
between the reaches :math:`(|u| + 2 i) h + r` and falls by b^2 at each; so the tail given u is a sum of one
straight piece and a geometric series. v is taken as continuous: a sensitivity of 2^30 steps and more makes
that an error below 1e-9.
"""

import math

import numpy as np

from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.noise import Hourglass

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
