"""Quantiles of many laws at many levels together: what `ErrorLaw.quantile` says of each."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from app.estimators import quantiles
from app.estimators.quantiles import ErrorLaw

Floats = NDArray[np.float64]

_MOST_STEPS = 100
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


def _inverted(laws: Sequence[ErrorLaw], levels: Sequence[float]) -> Floats:
    """Quantiles of laws that are inverted from their characteristic functions, all at the same nodes."""
    deviations = np.sqrt([law.variance for law in laws])
    sigmas = np.array([law.sigma for law in laws]) / deviations
    most = max(len(law.laplaces) for law in laws)
    padded = [[*law.laplaces, *((0.0, 0),) * (most - len(law.laplaces))] for law in laws]
    scales, counts = np.array(padded, dtype=np.float64).transpose(2, 1, 0)
    scales = scales / deviations

    def lost(nodes: Floats) -> Floats:
        """The logarithms of 1 / phi, shape (laws, nodes)."""
        squares = nodes * nodes
        gone = 0.5 * (sigmas * sigmas)[:, None] * squares
        for scale, count in zip(scales, counts, strict=True):
            gone += count[:, None] * np.log1p((scale * scale)[:, None] * squares)
        return np.asarray(gone)

    ends = quantiles.STEP * np.array(quantiles.NODES, dtype=np.float64)
    gone = np.flatnonzero((lost(ends) > quantiles.GONE).all(axis=0))
    nodes = quantiles.NODE_POINTS[: quantiles.NODES[gone[0] if len(gone) else -1]]
    phi = np.exp(-lost(nodes))
    left = 1 - np.array(levels)
    kurtosis = 4 * (counts * scales**4).sum(axis=0)
    x = np.stack([quantiles.near(level, kurtosis) for level in levels], axis=-1)
    series = np.stack([phi / nodes, phi, phi * nodes]).reshape(3, len(laws), -1, _BLOCK)
    moving = np.ones(x.shape, dtype=bool)
    # As `ErrorLaw.quantile` does, each law and level for itself.
    for _ in range(_MOST_STEPS):
        of_tail, of_slope, of_bend = _summed(x * quantiles.STEP, series)
        tail = 1 - quantiles.RATE * (0.5 * x + of_tail)
        falls, bends = quantiles.RATE * (0.5 + of_slope), -quantiles.RATE * of_bend
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
    return np.asarray(x * deviations[:, None], dtype=np.float64)


def _summed(angles: Floats, series: Floats) -> tuple[Floats, Floats, Floats]:
    """Sums over k of a_k sin k x, b_k cos k x and c_k sin k x, for k from 1 on.

    By blocks of k: the sine of a sum of two angles takes far fewer sines than there are terms.

    Args:
        angles: x, shape (laws, levels).
        series: a, b and c, shape (3, laws, blocks, `_BLOCK`).
    """
    low = angles[..., None] * np.arange(1, _BLOCK + 1)
    high = angles[..., None] * (_BLOCK * np.arange(series.shape[2]))
    # Shape (3, laws, levels, blocks). Each sum is in one order, however many levels there are.
    even, odd = (np.einsum("sank,alk->saln", series, of(low)) for of in (np.cos, np.sin))
    cosines, sines = np.cos(high), np.sin(high)

    def of_sines(kind: int) -> Floats:
        return np.asarray((cosines * odd[kind] + sines * even[kind]).sum(axis=-1))

    return of_sines(0), np.asarray((cosines * even[1] - sines * odd[1]).sum(axis=-1)), of_sines(2)
