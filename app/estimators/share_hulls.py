"""Intervals for many shares together, each read off two noisy sums, as `app.estimators.pivot` reads one.

Each share is tested at the same places, and its ends are found by the same tails, but all shares are tested
in one step, and all ends move at once. What is said of a share does not depend on the others.

References:
    Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives", Advances in Engineering Software 28 (1997), doi:10.1016/S0965-9978(96)00051-8.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import scipy
from numpy.typing import NDArray

from app.estimators import quantiles
from app.estimators.pivot import NORMAL, POINTS, TOLERANCE, PivotReader, mass_risk
from app.estimators.quantile_tables import Scaled

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_MOST_STEPS = 200
_ROOT = math.sqrt(2)
_MOST_EQUAL = 16
_LOOKED_AT = (1, 3, len(POINTS) + 1)
"""How many points are tested in one step, one step after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """Shares that are tested, each with its pair of noisy sums; all of one shape.

    Attributes:
        first, second: The sums, one not below the other's negative [as weights].
        inside, outside: How many noises are in each.
        variance: Of each noise where they are Normal; 0 where they are Laplaces of scale 1.
        scale: Variance of a Normal part, over p (1 - p).
        step: What the pivot may be off by besides.
        merged: Whether small Laplaces count as Normal ones, as in `quantiles.error_law`.
        risk: The least probability that is not rejected.
        center: What an interval holds in any case.
    """

    first: Floats
    second: Floats
    inside: Floats
    outside: Floats
    variance: Floats
    scale: Floats
    step: Floats
    merged: NDArray[np.bool_]
    risk: Floats
    center: Floats

    @classmethod
    def by(
        cls,
        reader: PivotReader,
        sums: tuple[Floats, Floats, Floats],
        noises: tuple[Floats, Floats],
        variance: float,
        risk: float,
        *,
        population: bool,
    ) -> Self:
        """The shares that `PivotReader` tests about the dataset or the population, for one label.

        Args:
            reader: Of the question.
            sums: Both, and the share that they say.
            noises: How many are in each.
            variance: Of each noise where they are Normal, else 0.
            risk: That an interval does not hold.
            population: Which.
        """
        first, second, center = sums
        equal = not population and (reader.floor == reader.cap or reader.tilt >= 1)
        scale, step = np.zeros_like(first), 0.0
        if not equal:
            person = reader.cap if population else reader.inequality
            scale = person * (np.maximum(first + second, 0.0) + reader.mass_bound(0.0, 0.0))
            step = reader.cap / 2 if population else (reader.cap - reader.floor) / 2
            risk -= mass_risk()
        return cls(
            first=first,
            second=second,
            inside=noises[0],
            outside=noises[1],
            variance=np.full_like(first, variance),
            scale=scale,
            step=np.full_like(first, step),
            merged=np.full(first.shape, not equal),
            risk=np.full_like(first, risk),
            center=center,
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """All shares of several, one after the other."""
        return cls(
            **{one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)}
        )

    def at(self, places: Places) -> Self:
        """The shares at these places."""
        return type(self)(**{one.name: getattr(self, one.name)[places] for one in fields(self)})

    def tail(self, p: Floats) -> Floats:
        """The probability of what was seen or worse, if p is the truth."""
        rest = 1 - p
        value = np.abs(rest * np.maximum(self.first, 0.0) - p * np.maximum(self.second, 0.0))
        off = np.where(self.first + self.second > 0, value, 0.0) - self.step
        own = self.variance > 0
        normal = p * rest * self.scale + self.variance * (self.inside * rest**2 + self.outside * p**2)
        scales = np.stack([rest, p])
        counts = np.where(own | (scales == 0), 0.0, np.stack([self.inside, self.outside]))
        variances = 2 * counts * scales**2
        total = normal + variances.sum(axis=0)
        small = self.merged & (2 * scales**2 < quantiles.NEGLIGIBLE_SHARE * total)
        normal = normal + np.where(small, variances, 0.0).sum(axis=0)
        return _tails(off, normal, scales, np.where(small, 0.0, counts), total)


def _tails(off: Floats, normal: Floats, scales: Floats, counts: Floats, variance: Floats) -> Floats:
    """P(|X| > off) of a Normal part and two kinds of Laplaces, as `ErrorLaw.tail`."""
    deviation = np.sqrt(variance)
    found = np.where(off <= 0, 1.0, 0.0)
    left = (off > 0) & (off <= quantiles.PERIOD / 2 * deviation)
    kinds = (counts > 0).sum(axis=0)
    alone = left & (kinds == 0)
    found[alone] = scipy.special.erfc(off[alone] / deviation[alone] / _ROOT)
    many, scale = counts.sum(axis=0), np.where(counts[0] > 0, scales[0], scales[1])
    single = left & (many == 1)
    found[single] = _one_laplace(off[single], np.sqrt(normal[single]), scale[single])
    # At both ends of the range, where most shares are tested.
    equal = left & ~single & (kinds == 1) & (normal == 0) & (many <= _MOST_EQUAL)
    found[equal] = _equal_laplaces(off[equal] / scale[equal], many[equal].astype(np.intp))
    rest = np.flatnonzero(left & (kinds > 0) & ~single & ~equal)
    if len(rest):
        laws = Scaled.of(normal[rest], scales[:, rest], counts[:, rest])
        found[rest] = laws.tails(off[rest] / laws.deviations)
    return np.clip(found, 0.0, 1.0)


def _one_laplace(x: Floats, sigma: Floats, scale: Floats) -> Floats:
    """The closed form of `app.estimators.quantiles` for one Laplace, without overflow."""
    found = np.exp(-x / scale)
    some = sigma > 0
    ratio, place = sigma[some] / scale[some], x[some] / sigma[some]
    above, below = (
        np.exp(ratio * (ratio / 2 - z) + scipy.special.log_ndtr(z - ratio)) for z in (place, -place)
    )
    found[some] = scipy.special.erfc(place / _ROOT) + above - below
    return found


def _equal_laplaces(x: Floats, many: Places) -> Floats:
    r"""P(|X| > x) of sums of m Laplaces of scale 1, at most `_MOST_EQUAL`.

    The density is :math:`e^{-|x|} \sum_j \binom{2m - 2 - j}{m - 1} |x|^j / (j!\, 2^{2m - 1 - j})`, and the
    integral of :math:`e^{-t} t^j / j!` beyond x is :math:`e^{-x} \sum_{i \le j} x^i / i!`.
    """
    terms = x[:, None] ** np.arange(_MOST_EQUAL) * _OF_EQUAL[many]
    return np.asarray(np.exp(-x) * terms.sum(axis=1))


def _of_equal(many: int) -> list[float]:
    """The coefficients of the powers of x in the tail of this many Laplaces."""
    shares = [math.comb(2 * many - 2 - j, many - 1) / 2 ** (2 * many - 2 - j) for j in range(many)]
    return [math.fsum(shares[i:]) / math.factorial(i) for i in range(many)] + [0.0] * (_MOST_EQUAL - many)


_OF_EQUAL = np.array([_of_equal(many) for many in range(_MOST_EQUAL + 1)])


def hulls(tested: Tested) -> tuple[Floats, Floats]:
    """For each share the hull of its center and of all p that are not rejected, see `pivot.hull`."""
    size, grid = len(tested.center), np.array(POINTS)
    lowest, highest = _within(tested)
    points = np.sort(np.column_stack([np.tile(grid, (size, 1)), tested.center]), axis=1)
    last = points.shape[1] - 1
    near = (points >= lowest[:, None]) & (points <= highest[:, None])
    some = near.any(axis=1)
    # From the left, and from the right, the first that is not rejected.
    starts = np.concatenate([near.argmax(axis=1), last - near[:, ::-1].argmax(axis=1)])
    stops = np.concatenate([starts[size:], starts[:size]])
    moves = np.repeat([1, -1], size)
    owners = np.tile(np.arange(size), 2)
    accepted = np.zeros(2 * size, dtype=bool)
    place, active = starts.copy(), np.flatnonzero(np.tile(some, 2))
    for width in _LOOKED_AT:
        # The next few of each; behind the last one it is looked at again.
        owner, ahead = owners[active], place[active, None] + moves[active, None] * np.arange(width)
        behind = (ahead - stops[active, None]) * moves[active, None] > 0
        ahead = np.where(behind, stops[active, None], ahead)
        every = np.repeat(owner, width)
        tails = tested.at(every).tail(points[every, ahead.ravel()]).reshape(ahead.shape)
        held = tails >= tested.risk[owner, None]
        some, first = held.any(axis=1), held.argmax(axis=1)
        place[active] = np.where(some, ahead[np.arange(len(active)), first], ahead[:, -1])
        accepted[active[some]] = True
        active = active[~some & (place[active] != stops[active])]
        place[active] += moves[active]
    # Beyond the last point on either side there is nothing.
    edges = np.flatnonzero(accepted & (place != np.repeat([0, last], size)))
    ends = np.repeat([0.0, 1.0], size)
    owner = owners[edges]
    inside, outside = points[owner, place[edges]], points[owner, place[edges] - moves[edges]]
    ends[edges] = _edges(tested.at(owner), inside, outside)
    return np.minimum(ends[:size], tested.center), np.maximum(ends[size:], tested.center)


def _within(tested: Tested) -> tuple[Floats, Floats]:
    """Beyond what every p is rejected, as in `PivotReader`."""
    first, second = np.maximum(tested.first, 0.0), np.maximum(tested.second, 0.0)
    mass = first + second
    each = np.where(tested.variance > 0, tested.variance, NORMAL)
    constant, linear = each * tested.inside, -2 * each * tested.inside
    square = each * (tested.inside + tested.outside)
    known = (tested.risk > 0) & (tested.first + tested.second > 0)
    far = (1 - np.log(np.where(known, tested.risk, 1.0))) ** 2
    steepest = mass * mass - far * (square - tested.scale)
    known &= steepest > 0
    steepest, mass = np.where(known, steepest, 1.0), np.where(known, mass, 1.0)
    ends = []
    for sign in (-1, 1):
        start = first + sign * tested.step
        half = mass * start + far * (linear + tested.scale) / 2
        rest = half * half - steepest * (start * start - far * constant)
        end = start / mass
        root = (half + sign * np.sqrt(np.maximum(rest, 0.0))) / steepest
        ends.append(np.where(rest > 0, sign * np.maximum(sign * end, sign * root), end))
    lowest, highest = np.maximum(ends[0], 0.0), np.minimum(ends[1], 1.0)
    return np.where(known, lowest, 0.0), np.where(known, highest, 1.0)


def _edges(tested: Tested, inside: Floats, outside: Floats) -> Floats:
    """Where tails fall below risks between two points each, on the outer side."""

    def above(owner: Places, p: Floats) -> Floats:
        # Of a log-concave law the logarithm is almost a line.
        of = tested.at(owner)
        return np.asarray(np.log(np.maximum(of.tail(p), sys.float_info.min) / of.risk))

    found = outside.copy()
    left = np.arange(len(inside))
    # b is the latest point, a on the other side of the end, c the one before.
    a, b = outside.copy(), inside.copy()
    high, low = above(left, a), above(left, b)
    # A point beyond which every p is rejected may not be rejected itself by rounding.
    left = left[high < 0]
    a, b, fa, fb = a[left], b[left], high[left], low[left]
    c, fc, part = a, fa, np.full(len(left), 0.5)
    for _ in range(_MOST_STEPS):
        if not len(left):
            break
        x = a + part * (b - a)
        fx = above(left, x)
        same = np.where(fx >= 0, fa >= 0, fa < 0)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        rejected = np.where(fa < 0, a, b)
        width = np.abs(b - a)
        done = width <= 2 * TOLERANCE
        found[left[done]] = rejected[done]
        go = ~done
        left = left[go]
        a, b, c, fa, fb, fc, width = (one[go] for one in (a, b, c, fa, fb, fc, width))
        part = _next_part(a, b, c, fa, fb, fc, TOLERANCE / width)
    return found


def _next_part(a: Floats, b: Floats, c: Floats, fa: Floats, fb: Floats, fc: Floats, least: Floats) -> Floats:
    """How far from a to b the next point is: by inverse quadratic interpolation where that is safe."""
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        curved = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    part = np.where(safe & np.isfinite(curved), curved, 0.5)
    return np.clip(part, least, 1 - least)
