"""Quantiles of many laws at many levels together: what `ErrorLaw.quantile` says of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.estimators import quantiles
from app.estimators.quantiles import ErrorLaw

Floats = NDArray[np.float64]

_MOST_STEPS = 100
_LAST_NODES: Floats = quantiles.STEP * np.array(quantiles.NODES, dtype=np.float64)
_ENOUGH = 26.0
"""Of phi e^-26 is left at the last node of a tail: beyond it there are less than 1e-11."""
_BLOCK = 16
"""A part of each number of nodes."""


def quantiles_of(laws: Sequence[ErrorLaw], levels: Sequence[float]) -> Floats:
    """The x with P(|X| <= x) = level of each law, shape (laws, levels) [the laws' unit]; not to be changed.

    What it says of a law at a level does not depend on the other levels.

    Privacy: no data, no randomness.
    """
    return _table(tuple(laws), tuple(levels))


@lru_cache(maxsize=256)
def _table(laws: tuple[ErrorLaw, ...], levels: tuple[float, ...]) -> Floats:
    found = np.empty((len(laws), len(levels)))
    inverted = []
    for place, law in enumerate(laws):
        if law.is_closed or law.others:
            found[place] = [law.quantile(level) for level in levels]
        else:
            inverted.append(place)
    if inverted:
        found[inverted] = _inverted([laws[place] for place in inverted], levels)
    found.setflags(write=False)
    return found


@dataclass(frozen=True, slots=True)
class Scaled:
    """Laws of a Normal part and Laplaces, scaled to standard deviation 1.

    Attributes:
        deviations: What they had before.
        squares: Variances of the Normal parts, shape (laws,).
        scales, counts: Of the Laplaces, shape (kinds, laws).
    """

    deviations: Floats
    squares: Floats
    scales: Floats
    counts: Floats

    @classmethod
    def of(cls, normal: Floats, scales: Floats, counts: Floats) -> Self:
        """Laws with a variance above 0, from the variances of their Normal parts and the Laplaces."""
        variances = normal + 2 * (counts * scales**2).sum(axis=0)
        deviations = np.sqrt(variances)
        return cls(deviations, normal / variances, scales / deviations, counts)

    def lost(self, nodes: Floats) -> Floats:
        """The logarithms of 1 / phi, shape (laws, nodes)."""
        squares = nodes * nodes
        gone = 0.5 * self.squares[:, None] * squares
        for scale, count in zip(self.scales, self.counts, strict=True):
            gone += count[:, None] * np.log1p((scale * scale)[:, None] * squares)
        return np.asarray(gone)

    def needed(self, most: float) -> NDArray[np.intp]:
        """For each law how many nodes it takes until phi is e^-most [place in `quantiles.NODES`]."""
        gone = self.lost(_LAST_NODES) > most
        return np.where(gone.any(axis=1), gone.argmax(axis=1), len(quantiles.NODES) - 1)

    def tails(self, x: Floats) -> Floats:
        """P(|X| > x) of each, for x above 0, shape (laws,)."""
        found, needed = np.empty(len(x)), self.needed(_ENOUGH)
        for many in np.unique(needed).tolist():
            here = np.flatnonzero(needed == many)
            nodes = quantiles.NODE_POINTS[: quantiles.NODES[many]]
            part = Scaled(
                self.deviations[here], self.squares[here], self.scales[:, here], self.counts[:, here]
            )
            series = (np.exp(-part.lost(nodes)) / nodes).reshape(1, len(here), -1, _BLOCK)
            angles = x[here, None] * quantiles.STEP
            found[here] = 1 - quantiles.RATE * (0.5 * x[here] + _Angles.of(angles, series).sines(0)[:, 0])
        return found


def _inverted(laws: Sequence[ErrorLaw], levels: Sequence[float]) -> Floats:
    """Quantiles of laws that are inverted from their characteristic functions, all at the same nodes."""
    most = max(len(law.laplaces) for law in laws)
    padded = [[*law.laplaces, *((0.0, 0),) * (most - len(law.laplaces))] for law in laws]
    scales, counts = np.array(padded, dtype=np.float64).transpose(2, 1, 0)
    scaled = Scaled.of(np.array([law.sigma for law in laws]) ** 2, scales, counts)
    nodes = quantiles.NODE_POINTS[: quantiles.NODES[scaled.needed(quantiles.GONE).max()]]
    phi = np.exp(-scaled.lost(nodes))
    left = 1 - np.array(levels)
    kurtosis = 4 * (counts * scaled.scales**4).sum(axis=0)
    x = np.stack([quantiles.near(level, kurtosis) for level in levels], axis=-1)
    series = np.stack([phi / nodes, phi, phi * nodes]).reshape(3, len(laws), -1, _BLOCK)
    moving = np.ones(x.shape, dtype=bool)
    # As `ErrorLaw.quantile` does, each law and level for itself.
    for _ in range(_MOST_STEPS):
        sums = _Angles.of(x * quantiles.STEP, series)
        tail = 1 - quantiles.RATE * (0.5 * x + sums.sines(0))
        falls, bends = quantiles.RATE * (0.5 + sums.cosines(1)), -quantiles.RATE * sums.sines(2)
        seen = tail > 0
        safe = np.where(seen, tail, left)
        off = np.log(safe / left)
        step = off * safe / falls / np.maximum(1 + off / 2 * (1 + bends * safe / falls**2), 0.5)
        # An inversion is rounded further out.
        moved = np.where(seen, np.maximum(x + step, 0.0), 0.9 * x)
        still = moving & ~(seen & (np.abs(step) <= quantiles.NEAR * moved))
        x, moving = np.where(moving, moved, x), still
        if not moving.any():
            break
    return np.asarray(x * scaled.deviations[:, None], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Angles:
    """Sums of series over sines and cosines of k x, for k from 1 on.

    By blocks of k: the sine of a sum of two angles takes far fewer sines than there are terms.

    Attributes:
        cosine, sine: Of the first angles of blocks, shape (laws, levels, blocks).
        even, odd: Sums of cosines and of sines within blocks, shape (series, laws, levels, blocks).
    """

    cosine: Floats
    sine: Floats
    even: Floats
    odd: Floats

    @classmethod
    def of(cls, angles: Floats, series: Floats) -> Self:
        """For x of shape (laws, levels), and series of shape (series, laws, blocks, `_BLOCK`)."""
        low = angles[..., None] * np.arange(1, _BLOCK + 1)
        high = angles[..., None] * (_BLOCK * np.arange(series.shape[2]))
        # Each sum is in one order, however many levels there are.
        even, odd = (np.einsum("sank,alk->saln", series, of(low)) for of in (np.cos, np.sin))
        return cls(np.cos(high), np.sin(high), even, odd)

    def sines(self, kind: int) -> Floats:
        """The sums of a series times sin k x, shape (laws, levels)."""
        return np.asarray((self.cosine * self.odd[kind] + self.sine * self.even[kind]).sum(axis=-1))

    def cosines(self, kind: int) -> Floats:
        """The sums of a series times cos k x, shape (laws, levels)."""
        return np.asarray((self.cosine * self.even[kind] - self.sine * self.odd[kind]).sum(axis=-1))
