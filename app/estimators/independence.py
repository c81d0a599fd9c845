r"""Whether two choices of people are independent: a chi-square test of noisy counts with the known noise.

The counts of the cells (i, j) of a table become shares :math:`f_{ij}` that sum to 1
(`app.estimators.shares`), with the margins :math:`r_i = \sum_j f_{ij}` and :math:`c_j = \sum_i f_{ij}`. The
statistic is

.. math:: T = \sum_{ij} \frac{(f_{ij} - r_i c_j)^2}{\max(r_i, 0) \max(c_j, 0) / m + \sigma^2},

m the number of people that weights are worth, :math:`1 / \sum c_i^2`, and :math:`\sigma^2` the variance of
the noise in a cell: with little noise it is m times Pearson's. Noise makes its law another one than the
chi-square, which would find dependence everywhere, and Laplace noise has heavier tails than the Normal law.
So the law under independence is simulated: m people with the margins of the table, and the noise that was
drawn, by the same steps. The p-value is the part of such tables with a T at least as large, the table itself
among them.

This is the Monte Carlo test of Gaboardi, Lim, Rogers and Vadhan, "Differentially private chi-squared
hypothesis testing" (ICML 2016, arXiv:1602.03090, algorithm MCIndep), with the statistic scaled by the known
noise as that of Kifer and Rogers (AISTATS 2017, arXiv:1610.07662). The margins are estimates, so the level is
that of the test only nearly; `tests/statistical/test_independence.py` measures it.

*What it is about.* Independence in the population that the people were drawn from, as that of the classic
test. Where weights are unequal, the answer is about weighed people, whose shares are at most `bias` in total
variation from those of all people, within the question's tilt. With :math:`\delta` the difference,
:math:`\sum \delta = 0` and the sum of its positive parts at most b,

.. math:: f_{ij} - r_i c_j \text{ moves by } \sum_{kl} \delta_{kl} (1_{k=i} - r_i)(1_{l=j} - c_j)
   \pm \delta_{i \cdot} \delta_{\cdot j},

at most b times the difference of the largest and the least of the four products, and b squared. By so much
each cell's is taken nearer to 0 first: no tilt within the assumption makes the p-value too small.

*A secret number of people.* There m is the noisy total over the cap: people count for at most 1, so that is
no more than what they are worth, and T varies the more.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.estimators.shares import Noisy, SharesPlan

TABLES = 4_999
"""That are simulated: the smallest p-value is one over one more."""

_MOST_NUMBERS = 2**20
"""Of tables that are simulated at once."""

_APART = 8
"""Laplace noises in a cell that are drawn each by itself; of more the others together are nearly Normal."""

Floats = NDArray[np.float64]


def p_value(plan: SharesPlan, parts: Sequence[Noisy], rows: int) -> float:
    """How likely a table at least as far from independence would be, if the choices were independent.

    Args:
        plan: Of the shares of the cells, row by row.
        parts: As of `SharesPlan.read_labels`.
        rows: How many choices the first measure has.

    Returns:
        Between 1 / (`TABLES` + 1) and 1; 1 where a secret number of people is lost in the noise.

    Privacy: post-processing of noisy counts. The random numbers are the same ones each time, so it is a
    function of these.
    """
    weighing = plan.weighing
    if weighing.is_public:
        shares, people = plan.shares(parts), 1 / weighing.squares
        scales = sorted(plan.scales, reverse=True)
    else:
        counts = plan.counts(parts)
        if (total := sum(counts)) <= 0:
            return 1.0
        shares, people = np.array([count / total for count in counts]), max(1.0, total / weighing.cap)
        scales = [plan.scale / total] * max(1, len(plan.parts))
    return _once(
        tuple(shares.tolist()),
        rows,
        people,
        tuple(scales),
        gaussian=weighing.is_gaussian,
        on_plane=weighing.is_public,
        bias=weighing.bias,
    )


@lru_cache(maxsize=16)
def _once(shares: Sequence[float], rows: int, people: float, scales: Sequence[float], **terms: Any) -> float:
    """What an answer that is read at several levels asks for several times."""
    return _p_value(np.array(shares).reshape(rows, -1), people, scales, **terms)


def _p_value(
    shares: Floats, people: float, scales: Sequence[float], *, gaussian: bool, on_plane: bool, bias: float
) -> float:
    """The p-value of noisy shares, shape (I, J).

    Args:
        shares: Noisy, summing to 1.
        people: That they are of, as many as weigh equally.
        scales: Of the noises, the largest first: the scale, or the standard deviation of Gaussian noise.
        gaussian: Which.
        on_plane: Whether what noise adds to the sum was taken off in equal parts; else shares were divided by
            it.
        bias: See the module.
    """
    variance = (1 if gaussian else 2) * float(np.sum(np.square(scales)))
    first, second = shares.sum(axis=1), shares.sum(axis=0)
    found = _statistic(shares[None], people, variance, _moved(first, second, bias))[0]
    null = np.outer(_margin(first), _margin(second)).ravel()
    random = np.random.Generator(np.random.PCG64(0))
    size, many = max(1, round(people)), 0
    laplaces = () if gaussian else scales[:_APART]
    normal = max(0.0, variance - 2 * float(np.sum(np.square(laplaces)))) ** 0.5
    left = TABLES
    while left:
        now = min(left, max(1, _MOST_NUMBERS // null.size))
        left -= now
        tables = random.multinomial(size, null, size=now) / size
        noise = normal * random.standard_normal(tables.shape) if normal else np.zeros(tables.shape)
        for scale in laplaces:
            noise += random.laplace(0, scale, tables.shape)
        tables += noise - noise.mean(axis=1, keepdims=True) if on_plane else noise
        totals = tables.sum(axis=1)
        # A table that is lost in the noise counts as the farthest one.
        lost = totals <= 0
        tables /= np.where(lost, 1.0, totals)[:, None]
        likely = _statistic(tables.reshape(now, *shares.shape), people, variance)
        many += int(np.count_nonzero((likely >= found * (1 - 1e-9)) | lost))
    return (1 + many) / (1 + TABLES)


def _margin(margin: Floats) -> Floats:
    """A margin without negative shares."""
    kept = np.maximum(margin, 0.0)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True), dtype=np.float64)


def _moved(first: Floats, second: Floats, bias: float) -> Floats | float:
    """The most that a tilt moves the residual of each cell by, shape (I, J)."""
    if not bias:
        return 0.0
    one, other = np.clip(first, 0, 1)[:, None], np.clip(second, 0, 1)[None]
    up = np.maximum((1 - one) * (1 - other), one * other)
    down = np.maximum(one * (1 - other), (1 - one) * other)
    return np.asarray(bias * (up + down) + bias**2, dtype=np.float64)


def _statistic(tables: Floats, people: float, variance: float, moved: Floats | float = 0.0) -> Floats:
    """T of each table, shape (N, I, J); residuals nearer to 0 by `moved`."""
    first, second = tables.sum(axis=2), tables.sum(axis=1)
    residuals = np.maximum(np.abs(tables - first[:, :, None] * second[:, None]) - moved, 0.0)
    expected = np.maximum(first, 0.0)[:, :, None] * np.maximum(second, 0.0)[:, None] / people + variance
    return np.asarray((residuals**2 / np.maximum(expected, 1e-300)).sum(axis=(1, 2)), dtype=np.float64)
