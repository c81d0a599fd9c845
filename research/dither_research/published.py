"""Closed forms as the heterogeneous paper has them, where the product's own estimator differs on purpose.

Data live on an interval of width 1 throughout.
"""

import math

import numpy as np

from dither_research.seeded import Floats


def sampling_inclusion(epsilons: Floats) -> Floats:
    """With what probability the published sampling mechanism takes each person.

    Args:
        epsilons: float64 array of shape (n,), positive.

    Returns:
        (e^epsilon - 1) / (e^t - 1), t the largest epsilon, computed so that nothing overflows.
    """
    most = float(epsilons.max())
    shares = np.exp(epsilons - most) * -np.expm1(-epsilons) / -math.expm1(-most)
    return np.where(epsilons == most, 1.0, shares)


def sampling_square_error(inclusion: Floats, most: float, variance: float) -> float:
    r"""Mean square error of the published sampling mechanism: sample mean + Lap(1 / (m t)).

    :math:`E[v / m + 2 / (m t)^2]` over the Poisson-binomial law of the sample's size m, which is at least 1.
    Not private exactly as published: the noise shows m. The product's `sampling` is.

    Args:
        inclusion: float64 array of shape (n,), every person's probability; some are 1.
        most: t, the largest epsilon.
        variance: v, of the data.
    """
    always = int(np.count_nonzero(inclusion >= 1))
    law = _poisson_binomial(inclusion[inclusion < 1])
    sizes = always + np.arange(law.size, dtype=np.float64)
    return float(law @ (variance / sizes + 2 / (sizes * most) ** 2))


def ldpe_square_error(epsilons: Floats, variance: float) -> float:
    r"""Mean square error of a noisy value of every person, weighted by inverse worst-case variances.

    The product's `ldpe` makes people with equal epsilons one group. Personal epsilons are all distinct, but
    not always in whole micro-epsilons: two that fall together share a noise, which is a better estimator.

    Args:
        epsilons: float64 array of shape (n,), positive, every person's own.
        variance: v, of the data.
    """
    noise = 2 / epsilons**2
    weights = 1 / (0.25 + noise)
    return float(weights**2 @ (variance + noise)) / float(weights.sum()) ** 2


def _poisson_binomial(probabilities: Floats) -> Floats:
    """The law of a sum of independent coins, halves convolved recursively."""
    if probabilities.size == 0:
        return np.ones(1)
    if probabilities.size <= 32:
        law = np.ones(1)
        for p in probabilities.tolist():
            law = np.convolve(law, [1 - p, p])
        return law
    half = probabilities.size // 2
    return np.convolve(_poisson_binomial(probabilities[:half]), _poisson_binomial(probabilities[half:]))


def saturation_ratio(epsilon: float, people: float) -> float:
    """R = 1 + 8 / (epsilon^2 n f): beyond R times the smaller epsilon nothing is gained."""
    return 1 + 8 / (epsilon**2 * people)


def two_groups_error(epsilon: float, larger: float, n: float, share: float) -> float:
    """Theorem 1: the worst-case mean square error of the best affine mean for two groups.

    Args:
        epsilon: Of the first group.
        larger: Of the second group; may be infinite.
        n: People.
        share: f, of the first group.
    """
    limit = saturation_ratio(epsilon, n * share)
    ratio = larger / epsilon
    if ratio >= limit:
        return min(limit / (4 * n * (share + (1 - share) * limit)), 0.25)
    mean = share + (1 - share) * ratio
    return min((share * limit + (1 - share) * ratio**2) / (4 * n * mean**2), 0.25)


def public_and_private_error(epsilon: float, n: float, share: float) -> float:
    """Remark 2: the mean of an epsilon-private group and of a public one, by inverse worst-case variances.

    Args:
        epsilon: Of the private group.
        n: People.
        share: f, of the private group.
    """
    private = 1 / (4 * n * share) + 2 / (n * share * epsilon) ** 2
    known = 1 / (4 * n * (1 - share))
    return private * known / (private + known)


def stretching_error(epsilon: float, larger: float, n: float, share: float) -> float:
    """Example 2: all data at one end of the range, every value stretched by epsilon / larger."""
    bias = share * (1 - epsilon / larger) / 2
    return bias**2 + 2 / (n * larger) ** 2
