r"""What noisy sums of second moments say of correlations, slopes and lines, and with which intervals.

Symbols are those of `app.estimators.second_moments`.

*Intervals* are the hulls of all numbers that T does not reject (Fieller). They are never empty or undefined:

- The slope of y on x is the root of :math:`T(1, -\beta, 0)`. No slope is larger than that between two people
  a step of the grid apart, so that an interval has ends also where x may not vary at all.
- The correlation has :math:`\rho \sqrt{V_x V_y} = \rho (k V_x + V_y / k) / 2` at :math:`k^2 = V_y / V_x`, so
  it is the root of :math:`T(1, -\rho k / 2, -\rho / 2 k)`; a fifth of the risk bounds k, which is the root of
  :math:`T(0, -k^2, 1)`. The hull is over all of its k.
- The line at x is :math:`m_y + \beta (x - m_x)`. The residual :math:`r = y - m_y - \beta (x - m_x)` has the
  mean 0, and so has :math:`r (x - m_x)`. What is read of the sums of r, of :math:`r (x - m_x)`, which is
  T(1, -beta, 0), and of :math:`r (x - z)` for two places z on either side of all values is noise: A, B and
  :math:`D_z = B + (m_x - z) A`. A part of the risk bounds each at the true beta. B is seen of every beta, and
  A is :math:`M_y + \beta (x - M_x)` less the line, so the line lies where some beta of the slope's interval
  has an A that no bound rejects. A and B are noise of the same sums, whose joint law is in that of D_z: where
  B is large, A is not as well. Bounds are convex in beta, so between two slopes they are at most those at the
  ends, and `_PIECES` divide the interval. None of this depends on x: the line lies in the band at all x at
  once, and between two points of it within the lines between their ends.

References:
    Fieller, J. R. Stat. Soc. B 16 (1954), doi:10.1111/j.2517-6161.1954.tb00159.x.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from app.core.grid import GRID_SIZE
from app.estimators.interface import Coverage
from app.estimators.quantiles import ErrorLaw
from app.estimators.roots import brentq

OF_MEAN, OF_RATIO = 0.05, 0.2
"""Parts of the risk: for either mean, and the ratio of both spreads."""

_OF_LINE, _OF_SLOPE, _OF_PLACES = 0.16, 0.58, 0.08
"""Parts of the risk of a line: for A, B and each of both D."""

_PIECES = 8
"""Of a slope's interval."""

STEEPEST = float(GRID_SIZE)
_CLOSE = 2.0**-14
"""How exactly an end is found, outwards, as a part of it and of where it is looked for."""

_ROUNDING = 16 / GRID_SIZE
"""The most that a moment is off because sums were rounded down, and values moved to the grid."""

Ends = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What noisy sums say of the moments of two numbers [range widths], for the dataset or the population.

    Attributes:
        means: About the middles.
        near: What these are off by at most.
        moments: Covariance and variances, any sign.
        spreads: The most that either variance can be.
        mass: The total weight in the sums; 1 where it is public.
        scatter: What the variance of a function of a person is multiplied by in that of its sum.
        beside: What its span is multiplied by in what weights can move its sum.
        risk: Of every interval.
        coverage: Of every interval.
        far: How far the places z of a line lie from the middle.
        noises: The most that sizes of the noises of the sum of g can be, for a, b and c; with u and v that of
            g + u (x - m_x) + v (y - m_y), where u and v may be off by what a mean is, times b and a.
        law: Of noises of these sizes beside a Normal part of this variance.
    """

    means: Ends
    near: Ends
    moments: tuple[float, float, float]
    spreads: Ends
    mass: float
    scatter: float
    beside: float
    risk: float
    coverage: Coverage
    far: float
    noises: Callable[[float, float, float, float, float], Sequence[float]]
    law: Callable[[Sequence[float], float], ErrorLaw]

    @property
    def turned(self) -> "Seen":
        """What is seen of the numbers in the other order."""
        both, first, second = self.moments
        return replace(
            self,
            means=self.means[::-1],
            near=self.near[::-1],
            moments=(both, second, first),
            spreads=self.spreads[::-1],
            noises=lambda a, b, c, u, v: self.noises(a, c, b, v, u),
        )

    @property
    def says_nothing(self) -> bool:
        """Whether nothing is left of the weight."""
        return self.mass <= 0

    def variances(self) -> Ends:
        """Both variances, at least the standard deviation of their noise: what may be divided by."""
        found = []
        for variance, of in zip(self.moments[1:], ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0)), strict=True):
            noise = math.sqrt(self.law(self.noises(*of, 0.0, 0.0), 0.0).variance) / self.mass
            found.append(max(variance, noise, 1 / GRID_SIZE**2))
        return found[0], found[1]

    def margin(self, a: float, b: float, c: float, part: float, u: float = 0.0, v: float = 0.0) -> float:
        """What T(a, b, c) is off by at most, but for a part of the risk: nearly a norm of them.

        With u and v that of the sum of g + u (x - m_x) + v (y - m_y), see `noises`.
        """
        noises = self.noises(a, b, c, u, v)
        a, b, c, u, v = abs(a), abs(b), abs(c), abs(u), abs(v)
        if u or v:
            u, v = u + b * self.near[0], v + a * self.near[0]
        x, y = (min(0.5, abs(mean) + near) + 0.5 for mean, near in zip(self.means, self.near, strict=True))
        of_x, of_y = self.spreads
        span = 2 * a * x * y + b * x * x + c * y * y
        most = (a * x * y + b * x * x + c * y * y) * (a * math.sqrt(of_x * of_y) + b * of_x + c * of_y)
        near = a * self.near[0] * self.near[1] + b * self.near[0] ** 2 + c * self.near[1] ** 2
        root = math.sqrt(min(span * span / 4, most)) + u * math.sqrt(of_x) + v * math.sqrt(of_y)
        law = self.law(noises, self.scatter * root * root)
        off = (law.quantile(1 - self.risk * part) + (span + u + v) * self.beside) / self.mass
        return off + near + _ROUNDING * (a + b + c + u + v)

    def slope(self, part: float) -> Ends:
        """Ends of the slope of the second number on the first one."""
        if self.says_nothing:
            return -STEEPEST, STEEPEST
        both, first, _ = self.moments
        return fieller(
            both, first, lambda t: self.margin(1.0, -t, 0.0, part), self.margin(0.0, 1.0, 0.0, part)
        )

    def correlation(self) -> Ends:
        """Ends of the correlation."""
        if self.says_nothing:
            return -1.0, 1.0
        _, first, second = self.moments
        low, high = fieller(
            second,
            first,
            lambda t: self.margin(0.0, -t, 1.0, OF_RATIO),
            self.margin(0.0, 1.0, 0.0, OF_RATIO),
        )
        if low <= 0 or high >= STEEPEST or min(first, second) <= 0:
            return -1.0, 1.0
        low, high = math.sqrt(low), math.sqrt(high)
        least = min(max(math.sqrt(second / first), low), high)
        return self._within(low, high, least, 1 - 2 * OF_MEAN - OF_RATIO)

    def _within(self, low: float, high: float, least: float, part: float) -> Ends:
        """Correlations between -1 and 1 that are not rejected where k lies between two numbers."""
        both, first, second = self.moments
        spreads = [(k * first + second / k) / 2 for k in (low, high, least)]
        # 1 / k is convex, so (k, 1 / k) lies in the triangle of these three, and a norm is largest there.
        corners = ((low, 1 / low), (high, 1 / high), (low, 1 / high))

        def inside(place: float, sign: int) -> float:
            off = max(
                self.margin(1.0, -sign * place * k / 2, -sign * place * other / 2, part)
                for k, other in corners
            )
            return off + sign * both - place * (min(spreads) if place > 0 else max(spreads))

        def end(sign: int) -> float:
            if inside(1.0, sign) >= 0:
                return 1.0
            # At no correlation the largest spread and the least one are the same.
            if inside(0.0, sign) >= 0:
                return _edge(lambda place: inside(place, sign), 0.0, 1.0)
            return _edge(lambda place: inside(place, sign), -1.0, 0.0) if inside(-1.0, sign) >= 0 else -1.0

        return -end(-1), end(1)


def fieller(above: float, below: float, margin: Callable[[float], float], at_most: float) -> Ends:
    """The hull of all t that |above - t below| <= margin(t) does not reject, between -2^30 and 2^30.

    Args:
        above, below: Whose ratio t is.
        margin: Convex; far out it rises by at most `at_most` times what |t| does.
        at_most: What `below` is off by at most.
    """
    if below <= at_most:
        return -STEEPEST, STEEPEST
    center = above / below

    def inside(step: float, sign: int) -> float:
        return margin(center + sign * step) - step * below

    def end(sign: int) -> float:
        near, far = 0.0, max(margin(center) / below, 1 / GRID_SIZE)
        while far < STEEPEST and inside(far, sign) >= 0:
            near, far = far, 2 * far
        if far < STEEPEST:
            far = _edge(lambda step: inside(step, sign), near, far)
        return min(max(center + sign * far, -STEEPEST), STEEPEST)

    return end(-1), end(1)


def _edge(inside: Callable[[float], float], near: float, far: float) -> float:
    """Where a number falls below 0 between two points, on the farther side."""
    found = brentq(inside, near, far, xtol=_CLOSE * abs(far - near), rtol=_CLOSE)
    return min(found + 2 * _CLOSE * (abs(found) + abs(far - near)), far)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """Where a line can be.

    Attributes:
        means: Through which it goes, but for what is off.
        pieces: Of the interval of the slope: both ends, and what is off below and above there.
    """

    means: Ends
    pieces: tuple[tuple[Ends, Ends], ...]

    @classmethod
    def of(cls, seen: Seen, slope: float) -> "Band":
        """That of the second number on the first one, about the slope that is shown."""
        low, high = around(seen.slope(_OF_SLOPE), slope)
        if seen.says_nothing or min(-low, high) >= STEEPEST:
            return cls(means=seen.means, pieces=(((low, high), (STEEPEST, STEEPEST)),))
        slopes = [low + (high - low) * piece / _PIECES for piece in range(_PIECES + 1)]
        bounds = [_bounds(seen, one) for one in slopes]
        pieces = []
        for ends, both in zip(pairwise(slopes), pairwise(bounds), strict=True):
            below, above = (min(map(max, *(one[side] for one in both))) for side in (0, 1))
            pieces.append((ends, (below, above)))
        return cls(means=seen.means, pieces=tuple(pieces))

    def at(self, x: float) -> Ends:
        """Its ends at a place about the middle."""
        away = x - self.means[0]
        return (
            self.means[1] + min(min(one * away for one in ends) - below for ends, (below, _) in self.pieces),
            self.means[1] + max(max(one * away for one in ends) + above for ends, (_, above) in self.pieces),
        )


def _bounds(seen: Seen, slope: float) -> tuple[list[float], list[float]]:
    """Bounds on how far a line of a slope lies below M, and above: by A alone, and by D at both places."""
    off = seen.margin(0.0, 0.0, 0.0, _OF_LINE, -slope, 1.0)
    below, above = [off], [off]
    noise = seen.moments[0] - slope * seen.moments[1]
    for place in (-seen.far, seen.far):
        away = seen.means[0] - place
        if not away:
            continue
        # What the mean is off by counts as often as A.
        margin = seen.margin(1.0, -slope, 0.0, _OF_PLACES, -slope * away, away) + seen.near[0] * off
        toward = noise * away / abs(away)
        below.append((margin - toward) / abs(away))
        above.append((margin + toward) / abs(away))
    return below, above


def around(ends: Ends, shown: float) -> Ends:
    """An interval with what is shown in it."""
    return min(ends[0], shown), max(ends[1], shown)
