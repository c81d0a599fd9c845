"""A root of a function between two points, by Brent's method.

It is that of `scipy.optimize.brentq`, step by step and to the last bit, which the tests compare. Loading that
package takes a second and 38 MB of every process, and nearly every answer looks for a root.

References:
    Brent, Algorithms for Minimization Without Derivatives (1973), chapter 4.
"""

import math
import sys
from collections.abc import Callable

XTOL = 2e-12
RTOL = 4 * sys.float_info.epsilon
STEPS = 100


def brentq(
    of: Callable[[float], float],
    first: float,
    last: float,
    *,
    xtol: float = XTOL,
    rtol: float = RTOL,
    maxiter: int = STEPS,
) -> float:
    """Where a continuous function crosses 0.

    Args:
        of: The function; its signs at both ends differ, or it is 0 there.
        first, last: The ends, in any order.
        xtol, rtol: How far off the root may be, and in parts of it.
        maxiter: Steps.

    Raises:
        ValueError: signs do not differ, or a value is no number.
        RuntimeError: no root is found in that number of steps.

    >>> brentq(lambda x: x * x - 2, 0.0, 2.0)
    1.4142135623731364
    """
    previous, current = float(first), float(last)
    at_previous, at_current = _value(of, previous), _value(of, current)
    if at_previous == 0:
        return previous
    if at_current == 0:
        return current
    if (at_previous < 0) == (at_current < 0):
        raise ValueError("signs at both ends must differ")
    # Between `current`, the best so far, and `other` is a root.
    other = at_other = before = step = 0.0
    for _ in range(maxiter):
        if at_previous != 0 and at_current != 0 and (at_previous < 0) != (at_current < 0):
            other, at_other = previous, at_previous
            before = step = current - previous
        if abs(at_other) < abs(at_current):
            previous, current, other = current, other, current
            at_previous, at_current, at_other = at_current, at_other, at_current
        least, half = (xtol + rtol * abs(current)) / 2, (other - current) / 2
        if at_current == 0 or abs(half) < least:
            return current
        tried = math.inf
        if abs(before) > least and abs(at_current) < abs(at_previous):
            tried = _interpolated(previous, current, other, at_previous, at_current, at_other)
        if 2 * abs(tried) < min(abs(before), 3 * abs(half) - least):
            before, step = step, tried
        else:
            before = step = half
        previous, at_previous = current, at_current
        current += step if abs(step) > least else math.copysign(least, half)
        at_current = _value(of, current)
    raise RuntimeError(f"no root in {maxiter} steps")


def _value(of: Callable[[float], float], at: float) -> float:
    found = float(of(at))
    if math.isnan(found):
        raise ValueError(f"the function is no number at {at}")
    return found


def _interpolated(a: float, b: float, c: float, at_a: float, at_b: float, at_c: float) -> float:
    """The step from b to the root of the line through a and b, or of the inverse parabola through all."""
    try:
        if a == c:
            return -at_b * (b - a) / (at_b - at_a)
        slope_a, slope_c = (at_a - at_b) / (a - b), (at_c - at_b) / (c - b)
        return -at_b * (at_c * slope_c - at_a * slope_a) / (slope_c * slope_a * (at_c - at_a))
    except ZeroDivisionError:
        return math.inf
