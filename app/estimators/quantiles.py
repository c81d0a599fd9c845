r"""Laws of the error of an estimate: a Normal part plus independent Laplace parts, all centered.

The noise of a release is discrete Laplace of a scale near 2^50 grid steps, so the continuous law
differs from it by less than 1e-15. One and two Laplaces have closed forms, also beside a Normal part: with
one of scale b

.. math:: P(|X| > x) = \mathrm{erfc}\frac{x}{\sigma \sqrt 2} + A(x) - A(-x), \qquad
   A(x) = \tfrac12 e^{\sigma^2 / 2 b^2 - x / b}\, \mathrm{erfc}\frac{\sigma / b - x / \sigma}{\sqrt 2},

whose slope is :math:`-(A(x) + A(-x)) / b`. Two of scales a and b have :math:`a^2 / (a^2 - b^2)` times that of
a, less :math:`b^2 / (a^2 - b^2)` times that of b: the partial fractions of their characteristic function.
Two of the same scale b have that of one and b / 2 times its derivative by b, because
:math:`(1 + x t^2)^{-2}` is the derivative of :math:`x / (1 + x t^2)` by :math:`x = b^2`. With
:math:`r = \sigma / b` that adds

.. math:: \tfrac12 (x / b - r^2) A(x) + \tfrac12 (x / b + r^2) A(-x).

Everything else is inverted from its characteristic function
:math:`\phi(t) = e^{-\sigma^2 t^2 / 2} \prod_i (1 + b_i^2 t^2)^{-m_i}`,

.. math:: P(|X| > x) = 1 - \frac{2}{\pi} \int_0^\infty \frac{\sin(x t)}{t} \phi(t) dt,

by the trapezoidal rule. Its aliasing error is a tail probability beyond `PERIOD` - x standard
deviations (below 1e-7); its truncation error is below 2e-5 everywhere and below 5e-7 from half a
standard deviation on.

References:
    Gil-Pelaez, Biometrika 38 (1951), doi:10.1093/biomet/38.3-4.481, theorem; Davies, Biometrika 60
    (1973), doi:10.1093/biomet/60.2.415, the trapezoidal rule and its error.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.estimators import confidence

PERIOD = 24.0
NODES = (64, 96, 128, 192, 256, 384, 512, 768)
GONE = 40.0
"""Where many parts, or a Normal one, make up a law, nothing is left of phi at an early node: e^-40."""
_MANY, _CLOSE = 4, 0.01
NEGLIGIBLE_SHARE = 1 / 256

_NORMAL = NormalDist()
_ROOT, _ROOT_TWO_PI = math.sqrt(2), math.sqrt(2 * math.pi)
_STEEPEST = 24.0
"""Where the Normal part has at most this many times the scale of a Laplace, closed forms neither overflow nor
lose digits."""
_APART = 1e-3
"""How far two scales are apart, as a part of the larger one, where partial fractions keep ten digits."""
_OVERFLOW = 700.0
_VANISHED = 37.0
"""Standard deviations beyond which a Normal tail is below every double."""
NEAR = 1e-5
"""The part of a quantile below which a step is the last."""


_Fractions = tuple[tuple[float, float, bool], ...]
"""(factor, scale, whether of two Laplaces): a law is that sum of laws with the Normal part."""

_Tail = tuple[float, float, float]
"""P(|X| > x), how fast it falls there, and how fast that rises."""


Kurtosis = TypeVar("Kurtosis", float, NDArray[np.float64])


class LawPart(Protocol):
    """Another symmetric law with a density."""

    @property
    def variance(self) -> float:
        """Its variance [unit squared]."""

    def phi(self, nodes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Its characteristic function at nodes above 0 [1 / unit]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorLaw:
    """The law of N(0, sigma^2) + sum of independent Laplaces, and perhaps of others.

    Attributes:
        sigma: Standard deviation of the Normal part [any unit].
        laplaces: (scale [same unit], how many) of the Laplace parts; scales and counts above 0.
        others: Further parts, of which laws are inverted.
    """

    sigma: float
    laplaces: tuple[tuple[float, int], ...]
    others: tuple[LawPart, ...] = ()

    @property
    def variance(self) -> float:
        """Variance of the sum [unit squared]."""
        others = sum(part.variance for part in self.others) if self.others else 0.0
        return self.sigma**2 + laplace_variance(self.laplaces) + others

    def tail(self, x: float) -> float:
        """P(|X| > x).

        Args:
            x: Threshold, at least 0 [the law's unit].

        Returns:
            A probability, to 2e-5 absolute, 5e-7 from half a standard deviation on; exact for one or
            two Laplaces without a Normal part.

        Privacy: no data, no randomness.
        """
        if x <= 0:
            return 1.0
        if not self.others:
            match self.laplaces:
                case ():
                    return math.erfc(x / (self.sigma * _ROOT)) if self.sigma else 0.0
                case ((scale, 1),) if not self.sigma:
                    return math.exp(-x / scale)
                case ((scale, 2),) if not self.sigma:
                    return two_laplace_tail(x, scale, scale)
                case ((a, 1), (b, 1)) if not self.sigma:
                    return two_laplace_tail(x, a, b)
        deviation = math.sqrt(self.variance)
        if deviation == 0:
            return 0.0
        if x > PERIOD / 2 * deviation:
            return 0.0
        if parts := self._fractions():
            return min(1.0, max(0.0, self._closed(x, parts)[0]))
        return min(1.0, max(0.0, _inverted(self).tail(x / deviation)))

    def quantile(self, level: float | None = None) -> float:
        """The x with P(|X| <= x) = level.

        Args:
            level: In (0, 1); that of the intervals that are being made if not given.

        Returns:
            x [the law's unit], 0 where nothing varies.

        Privacy: no data, no randomness.
        """
        return self._quantile(confidence.level() if level is None else level)

    @lru_cache(maxsize=4096)  # noqa: B019 (few and small; an answer asks for the same ones again and again)
    def _quantile(self, level: float) -> float:
        variance = self.variance
        deviation = math.sqrt(variance)
        if deviation == 0:
            return 0.0
        if not (self.laplaces or self.others):
            return self.sigma * _NORMAL.inv_cdf((1 + level) / 2)
        if self._is_one_laplace:
            return -self.laplaces[0][0] * math.log1p(-level)
        guess = near(level, 4 * sum(count * scale**4 for scale, count in self.laplaces) / variance**2)
        if parts := self._fractions():
            return _root(level, guess * deviation, lambda x: self._closed(x, parts))
        return _root(level, guess, _inverted(self).at) * deviation

    @property
    def is_closed(self) -> bool:
        """Whether its tail has a closed form that quantiles are found by."""
        if not (self.laplaces or self.others) or self._is_one_laplace:
            return True
        return bool(self._fractions())

    @property
    def _is_one_laplace(self) -> bool:
        return self.sigma == 0 and not self.others and len(self.laplaces) == 1 and self.laplaces[0][1] == 1

    def _fractions(self) -> _Fractions:
        """The parts of a closed form; empty where there is none."""
        match self.laplaces if self.sigma and not self.others else ():
            case ((scale, 1 | 2 as count),) if scale * _STEEPEST > self.sigma:
                return ((1.0, scale, count == 2),)
            case ((a, 1), (b, 1)) if abs(a - b) > _APART * max(a, b) and min(a, b) * _STEEPEST > self.sigma:
                return (a * a / (a * a - b * b), a, False), (b * b / (b * b - a * a), b, False)
            case _:
                return ()

    def _closed(self, x: float, parts: _Fractions) -> _Tail:
        """P(|X| > x) from x = 0 on."""
        sigma, tail, falls, bends = self.sigma, 0.0, 0.0, 0.0
        place = x / sigma
        normal = math.erfc(place / _ROOT)
        for factor, scale, two in parts:
            ratio = sigma / scale
            above, below = _beyond(ratio, place), _beyond(ratio, -place)
            tail += factor * (normal + above - below)
            falls += factor * (above + below) / scale
            bends += factor * (below - above) / scale**2
            if two:
                square = ratio * ratio
                up, down = x / scale - square, x / scale + square
                tail += (up * above + down * below) / 2
                falls += ((up - 1) * above - (down + 1) * below) / scale / 2
                falls += square * math.exp(-place * place / 2) / (sigma * _ROOT_TWO_PI)
                bends += ((2 - up) * above - (2 + down) * below) / scale**2 / 2
        return tail, falls, bends


def near(level: float, kurtosis: Kurtosis) -> Kurtosis:
    """About a quantile [standard deviations].

    With the variance it is decided by the excess kurtosis: that of a Normal law and of one Laplace, with
    the slope of Cornish and Fisher's expansion at the first, between the two.
    """
    normal, laplace = _NORMAL.inv_cdf((1 + level) / 2), -math.log1p(-level) / _ROOT
    slope = normal * (normal * normal - 3) / 8
    return normal + kurtosis * (slope + kurtosis * (laplace - normal - slope))


def _beyond(ratio: float, place: float) -> float:
    """A(x) of the module's docstring, for sigma over the scale and x over sigma; 0 where it is below any."""
    power = ratio * (ratio / 2 - place)
    if power < _OVERFLOW and place > -_VANISHED:
        return 0.5 * math.exp(power) * math.erfc((ratio - place) / _ROOT)
    return 0.0


STEP = 2 * math.pi / PERIOD
RATE = 2 / math.pi * STEP
NODE_POINTS: NDArray[np.float64] = STEP * np.arange(1, NODES[-1] + 1, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Inverted:
    """A law scaled to standard deviation 1, inverted from its characteristic function.

    Attributes:
        nodes: t, while anything is left of phi(t).
        phi: phi(t).
    """

    nodes: NDArray[np.float64]
    phi: NDArray[np.float64]

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Of phi(t) over t."""
        return self.phi / self.nodes

    @cached_property
    def bends(self) -> NDArray[np.float64]:
        """Of phi(t) times t."""
        return self.phi * self.nodes

    def tail(self, x: float) -> float:
        """P(|X| > x)."""
        return 1 - RATE * (0.5 * x + float(np.dot(np.sin(x * self.nodes), self.weights)))

    def at(self, x: float) -> _Tail:
        """P(|X| > x), how fast it falls there, and how fast that rises."""
        sines, cosines = np.sin(x * self.nodes), np.cos(x * self.nodes)
        tail = 1 - RATE * (0.5 * x + float(np.dot(sines, self.weights)))
        falls, bends = 0.5 + float(np.dot(cosines, self.phi)), -float(np.dot(sines, self.bends))
        return tail, RATE * falls, RATE * bends


def _root(level: float, near: float, at: Callable[[float], _Tail]) -> float:
    """The x with P(|X| <= x) = level, from near it.

    The density is log-concave, hence so is the tail. Halley's steps on its logarithm, which is about a line,
    come to the root; what one leaves is about its cube. Two or three of them do.
    """
    left, x = 1 - level, near
    for _ in range(100):
        tail, falls, bends = at(x)
        if tail <= 0:
            x *= 0.9  # An inversion is rounded further out.
            continue
        off = math.log(tail / left)
        step = off * tail / falls / max(1 + off / 2 * (1 + bends * tail / falls**2), 0.5)
        x = max(x + step, 0.0)
        if abs(step) <= NEAR * x:
            break
    return x


def _lost(square: float, sigma: float, scales: Sequence[tuple[float, int]]) -> float:
    """The logarithm of 1 / phi(t), for the square of t."""
    of_scales = sum(count * math.log1p(scale * scale * square) for scale, count in scales)
    return 0.5 * sigma * sigma * square + of_scales


@lru_cache(maxsize=512)
def _inverted(law: ErrorLaw) -> _Inverted:
    """A law, inverted once for all places and levels that are asked of it."""
    deviation = math.sqrt(law.variance)
    sigma, scales = law.sigma / deviation, [(scale / deviation, count) for scale, count in law.laplaces]

    # What is left falls with t, and no other part of it is more than 1.
    many = next((many for many in NODES if _lost((STEP * many) ** 2, sigma, scales) > GONE), NODES[-1])
    nodes = NODE_POINTS[:many]
    squares = nodes**2
    lost = 0.5 * sigma**2 * squares
    for scale, count in scales:
        lost += count * np.log1p(scale**2 * squares)
    phi = np.exp(-lost)
    for part in law.others:
        phi *= part.phi(nodes / deviation)
    return _Inverted(nodes, phi)


def laplace_variance(laplaces: Iterable[tuple[float, int]]) -> float:
    """The variance of a sum of independent Laplaces of these (scale [any unit], how many) [unit squared]."""
    return sum(2 * count * scale**2 for scale, count in laplaces)


def error_law(*, normal_variance: float, laplaces: Iterable[tuple[float, int]]) -> ErrorLaw:
    """The law of a sum, its many small Laplaces merged into the Normal part.

    A single Laplace that carries less than 1/256 of the whole variance is replaced by a Normal of the
    same variance. Together they add less than 3/256 to the kurtosis, which moves the 95 % quantile
    by less than 0.05 %. Of more than a few scales, those that differ by less than 1 % are replaced by
    one of the same variance. Their squares differ by less than 2 %, so the variance of these is at most
    1e-4 of the square of their mean, and the excess kurtosis falls by no more than that part of itself:
    that moves the quantile by less than 1e-5 of itself.

    Args:
        normal_variance: Variance of the Normal part, at least 0 [unit squared].
        laplaces: (scale [unit], how many); zero scales and counts are dropped.

    Returns:
        The law [unit].

    Privacy: no data, no randomness.
    """
    parts = [part for part in laplaces if part[0] > 0 and part[1] > 0]
    total = normal_variance + laplace_variance(parts)
    kept: dict[float, int] = {}
    for scale, count in parts:
        if 2 * scale**2 < NEGLIGIBLE_SHARE * total:
            normal_variance += 2 * count * scale**2
        else:
            kept[scale] = kept.get(scale, 0) + count
    if len(kept) > _MANY:
        kept = _alike(kept)
    return ErrorLaw(sigma=math.sqrt(normal_variance), laplaces=tuple(kept.items()))


def _alike(scales: dict[float, int]) -> dict[float, int]:
    """How many of each scale, those within 1 % as one of the same variance."""
    runs: list[tuple[float, int, float]] = []
    for scale, count in sorted(scales.items()):
        first, there, squares = runs[-1] if runs else (0.0, 0, 0.0)
        if scale <= first * (1 + _CLOSE):
            runs[-1] = first, there + count, squares + count * scale**2
        else:
            runs.append((scale, count, count * scale**2))
    return {math.sqrt(squares / count): count for _, count, squares in runs}


def two_laplace_tail(x: float, first: float, second: float) -> float:
    r"""P(|Lap(a) + Lap(b)| > x) = (a^2 e^{-x/a} - b^2 e^{-x/b}) / (a^2 - b^2); a = b: (1 + x / 2a) e^{-x/a}.

    Args:
        x: Threshold, at least 0 [any unit].
        first: a, at least 0 [same unit].
        second: b, at least 0 [same unit]; not both 0 unless x > 0.

    Returns:
        A probability; exact up to rounding, 1e-9 where a and b nearly agree.

    Privacy: no data, no randomness.
    """
    a, b = max(first, second), min(first, second)
    if a == 0:
        return 0.0 if x > 0 else 1.0
    if b == 0:
        return math.exp(-x / a)
    if a - b < 1e-6 * a:
        middle = (a + b) / 2
        return (1 + x / (2 * middle)) * math.exp(-x / middle)
    return (a * a * math.exp(-x / a) - b * b * math.exp(-x / b)) / (a * a - b * b)
