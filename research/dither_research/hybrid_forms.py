"""The hybrid paper's errors in closed form, corrected, against the mean of the people who are there."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """c n people trust a curator, (1 - c) n send noisy reports.

    Attributes:
        n: People.
        share: c, in (0, 1).
        central_variance, local_variance: Of the data of either part.
        gap: Mean of the central part minus mean of the local one.
        central_noise: Noise variance of the central part's mean.
        local_noise: Noise variance of one report.
    """

    n: float
    share: float
    central_variance: float
    local_variance: float
    gap: float = 0.0
    central_noise: float
    local_noise: float

    @property
    def spread(self) -> float:
        """What drawing the two parts adds for a squared weight: vT / (c n) + vL / ((1 - c) n)."""
        return self.central_variance / (self.share * self.n) + self.local_variance / (
            (1 - self.share) * self.n
        )


def laplace(
    n: float,
    share: float,
    epsilon: float,
    variance: float,
    *,
    local_variance: float | None = None,
    gap: float = 0.0,
    width: float = 1.0,
) -> Setting:
    """A setting with Laplace noise of one epsilon for every person.

    Args:
        n: People.
        share: c.
        epsilon: Every person's.
        variance: Of the data; of the central part only where `local_variance` is given.
        local_variance: Of the local part.
        gap: Mean of the central part minus mean of the local one.
        width: m, the width of the range.
    """
    return Setting(
        n=n,
        share=share,
        central_variance=variance,
        local_variance=variance if local_variance is None else local_variance,
        gap=gap,
        central_noise=2 * (width / (share * n * epsilon)) ** 2,
        local_noise=2 * (width / epsilon) ** 2,
    )


def tcm_error(at: Setting) -> float:
    """E_T: the central part alone (Lemma 3.2)."""
    c = at.share
    sampling = (1 - c) ** 2 / (c * at.n) * at.central_variance + (1 - c) / at.n * at.local_variance
    return sampling + at.central_noise + ((1 - c) * at.gap) ** 2


def full_lm_error(at: Setting) -> float:
    """E_F: every person sends a report (Lemma 3.4)."""
    return at.local_noise / at.n


def hybrid_error(at: Setting, weight: float) -> float:
    """E_H(w): weight w on the central part's mean, 1 - w on the local one's (Lemma 3.13)."""
    excess = weight - at.share
    noise = weight**2 * at.central_noise + (1 - weight) ** 2 * at.local_noise / ((1 - at.share) * at.n)
    return excess**2 * at.spread + noise + (excess * at.gap) ** 2


def kvh_weight(at: Setting) -> float:
    """The weight of Definition 4.1: by inverse variances, with the central part's variance for both."""
    v, c, n = at.central_variance, at.share, at.n
    return c * (v + at.local_noise) / (v + c * (n * at.central_noise * (1 - c) + at.local_noise))


def best_weight(at: Setting) -> float:
    """The weight that minimizes E_H (Definition 6.1); that of Definition 4.1 where both parts are alike."""
    local = at.local_noise / ((1 - at.share) * at.n)
    pull = at.spread + at.gap**2
    return (at.share * pull + local) / (pull + at.central_noise + local)


def pwh_weight(at: Setting) -> float:
    """The weight of Definition 5.3: by the noise alone."""
    return at.local_noise / (at.local_noise + (1 - at.share) * at.n * at.central_noise)


def relative_improvement(at: Setting, error: float) -> float:
    """R: the better baseline's error over this one."""
    return min(tcm_error(at), full_lm_error(at)) / error


def weak_improvement(at: Setting, error: float) -> float:
    """r: the worse baseline's error over this one."""
    return max(tcm_error(at), full_lm_error(at)) / error


def pwh_beats_both(*, n: float, share: float, signal: float) -> bool:
    r"""Whether R(PWH) > 1 under Laplace noise, for c n > 1.

    With :math:`y = \epsilon^2 v / m^2`: c >= y / (2 + y), or n < (1 - c)(2 + y) / (c (y (1 - c) - 2 c)). The
    conditions printed in section 5 are those of the weight w = c.

    Args:
        n: People.
        share: c.
        signal: y.
    """
    if share >= signal / (2 + signal):
        return True
    return n < (1 - share) * (2 + signal) / (share * (signal * (1 - share) - 2 * share))


def kvh_limit(share: float, signal: float) -> float:
    """R(KVH) as n grows without bound, under Laplace noise; its supremum over both is 17/8.

    Args:
        share: c.
        signal: y, as above.
    """
    n = 1e15
    at = laplace(n, share, math.sqrt(signal), 1.0)
    return relative_improvement(at, hybrid_error(at, kvh_weight(at)))


def first_n(condition: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest n in (low, high] for which a condition holds, if it holds from there on."""
    while high - low > 1:
        middle = (low + high) // 2
        if condition(middle):
            high = middle
        else:
            low = middle
    return high
