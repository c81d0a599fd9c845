"""Tests of noise: shape and size. Each returns a p-value."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from app.core.noise import Hourglass

CELLS = 120
SMALLEST_EXPECTED = 25.0


def shape_p_value(samples: NDArray[np.int64], scale: float) -> float:
    """Chi-square test of P(z) proportional to exp(-|z| / scale).

    Cells are runs of integers of about equal probability, merged until each expects 25 draws or more.
    """
    n = samples.size
    cells = min(CELLS, int(n / SMALLEST_EXPECTED))
    edges = np.unique(np.floor(stats.laplace.ppf(np.arange(1, cells) / cells, scale=scale)).astype(np.int64))
    cumulative = np.concatenate([[0.0], [_at_most(int(edge), scale) for edge in edges], [1.0]])
    expected = np.diff(cumulative) * n
    observed = np.bincount(np.searchsorted(edges, samples, side="left"), minlength=edges.size + 1)
    return chi_square_p_value(observed, expected)


def chi_square_p_value(observed: NDArray[Any], expected: NDArray[np.float64]) -> float:
    """Chi-square test of counts, neighbors merged until each cell expects 25 or more."""
    merged_observed, merged_expected = [0.0], [0.0]
    for o, e in zip(observed, expected, strict=True):
        if merged_expected[-1] >= SMALLEST_EXPECTED:
            merged_observed.append(0.0)
            merged_expected.append(0.0)
        merged_observed[-1] += float(o)
        merged_expected[-1] += float(e)
    if merged_expected[-1] < SMALLEST_EXPECTED and len(merged_expected) > 1:
        last_observed, last_expected = merged_observed.pop(), merged_expected.pop()
        merged_observed[-1] += last_observed
        merged_expected[-1] += last_expected
    statistic = sum((o - e) ** 2 / e for o, e in zip(merged_observed, merged_expected, strict=True))
    return float(stats.chi2.sf(statistic, len(merged_expected) - 1))


def mean_p_value(samples: NDArray[Any], mean: float, variance: float) -> float:
    """Two-sided test of a mean whose true value and variance are known, by the central limit theorem."""
    z = (float(np.mean(samples)) - mean) / math.sqrt(variance / samples.size)
    return float(2 * stats.norm.sf(abs(z)))


def size_p_value(samples: NDArray[np.int64], scale: float) -> float:
    """Two-sided test of the mean of |z|, by its exact mean and variance and the central limit theorem.

    With q = exp(-1/scale): E|z| = 2q / (1 - q^2), E z^2 = 2q / (1 - q)^2.
    """
    q = math.exp(-1 / scale)
    rest = -math.expm1(-1 / scale)
    mean = 2 * q / (rest * (1 + q))
    variance = 2 * q / rest**2 - mean**2
    return mean_p_value(np.abs(samples), mean, variance)


def repeats_p_value(samples: NDArray[np.int64], scale: float) -> float:
    """Exact one-sided test of how many draws equal the one before, among pairs that share no draw.

    With q = exp(-1/scale): sum of P(z)^2 = ((1 - q) / (1 + q))^2 (1 + q^2) / (1 - q^2).
    """
    q = math.exp(-1 / scale)
    rest = -math.expm1(-1 / scale)
    equal = (rest / (1 + q)) ** 2 * (1 + q * q) / (rest * (1 + q))
    pairs = samples[: samples.size // 2 * 2].reshape(-1, 2)
    return float(stats.binom.sf(np.sum(pairs[:, 0] == pairs[:, 1]) - 1, pairs.shape[0], equal))


def gaussian_size(samples: NDArray[np.int64], sigma: float) -> float:
    """E z^2 = sigma^2 and Var z^2 = 2 sigma^4, up to e^(-2 pi^2 sigma^2)."""
    return mean_p_value((samples / sigma) ** 2, 1.0, 2.0)


def hourglass_places(
    samples: NDArray[np.int64], noise: Hourglass
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(t, u, v) of each draw; u whole numbers only."""
    total = samples[:, 0] + samples[:, 1]
    assert np.all(total % noise.sensitivity == 0)
    u, v = total // noise.sensitivity, (samples[:, 0] - samples[:, 1]) // 2
    blocks = np.maximum(-((noise.step + np.abs(u) * noise.half - np.abs(v)) // noise.sensitivity), 0)
    return np.abs(u) + 2 * blocks, u, v


def hourglass_mass(noise: Hourglass, t: int) -> float:
    """Weight of all draws at t, up to a constant."""
    cells = 2 * noise.step + 1 if t == 0 else (8 * t - 4) * noise.half + 4 * noise.step + 2
    return cells * math.exp(-t * noise.epsilon / 1e6)


def hourglass_size(samples: NDArray[np.int64], noise: Hourglass) -> float:
    """The mean t, by its law."""
    t, _, _ = hourglass_places(samples, noise)
    mass = np.array([hourglass_mass(noise, level) for level in range(4000)])
    levels = np.arange(4000)
    mean = float(levels @ mass / mass.sum())
    return mean_p_value(t, mean, float(levels**2 @ mass / mass.sum()) - mean**2)


def _at_most(z: int, scale: float) -> float:
    """P(Z <= z), exact."""
    q = math.exp(-1 / scale)
    if z < 0:
        return math.exp(z / scale) / (1 + q)
    return 1 - math.exp(-(z + 1) / scale) / (1 + q)
