r"""What reports of choices say of shares: debiased counts, their weights, and how noisy they are.

With P and Q from `dither.device.choices`, n reports of which a share f_j is truly of choice j have the count
:math:`Y_j` of mean :math:`n (Q + f_j (P - Q))`. The estimate

.. math:: \hat f_j = \frac{Y_j / n - Q}{P - Q} + \frac 1K \Big(1 - \sum_k \frac{Y_k / n - Q}{P - Q}\Big)

is unbiased and sums to 1. In randomized response the last part is 0. In unary encoding the bits of a report
are independent, with variance 1/4 for the true choice and Q (1 - Q) for each other one, so the variance of a
share is :math:`f_j u_1 + (1 - f_j) u_0` over n, where for K choices, in units of :math:`(P - Q)^{-2}`,

.. math:: u_1 = (1 - 1/K)^2 v_1 + (K - 1) v_0 / K^2, \qquad
   u_0 = (1 - 1/K)^2 v_0 + (v_1 + (K - 2) v_0) / K^2,

:math:`v_1 = 1/4`, :math:`v_0 = Q (1 - Q)`; in randomized response :math:`u_1 = P (1 - P)` and
:math:`u_0 = Q (1 - Q)`. In both u_1 is not smaller than u_0, and the variances of all shares add up to
:math:`R = u_1 + (K - 1) u_0` over n, whatever the choices are. That is what the weights of
`app.estimators.shares` weigh reports by.

Privacy: post-processing of reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from dither.device.choices import ChoiceRandomizer
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNoise:
    """The noise of one report about K shares; see the module's docstring.

    Attributes:
        count: K.
        kept, other: P and Q.
        own, others: u_1 and u_0: variance of the share of the true choice, and of another one.
    """

    count: int
    kept: float
    other: float
    own: float
    others: float

    @property
    def total(self) -> float:
        """R: variance of all shares together."""
        return self.own + (self.count - 1) * self.others

    @property
    def reach(self) -> float:
        """How far one report can move a share."""
        return 1 / (self.kept - self.other)

    def shares(self, counts: Sequence[int], people: int) -> NDArray[np.float64]:
        """The shares of people from how many of their reports have each choice in them."""
        raw = (np.array(counts, dtype=np.float64) / people - self.other) * self.reach
        return np.asarray(raw + (1 - raw.sum()) / self.count, dtype=np.float64)


@lru_cache(maxsize=65_536)
def report_noise(count: int, epsilon: int) -> ReportNoise:
    """The noise of a report of one of `count` choices that was randomized with an epsilon [micro-epsilon]."""
    reports = ChoiceRandomizer(count).range(epsilon)
    p, q = reports.kept, reports.other
    own, others = p * (1 - p), q * (1 - q)
    if not reports.is_single:
        rest = (count - 1) ** 2
        own, others = (
            (rest * own + (count - 1) * others) / count**2,
            (rest * others + own + (count - 2) * others) / count**2,
        )
    unit = (p - q) ** 2
    return ReportNoise(
        count=count, kept=float(p), other=float(q), own=float(own / unit), others=float(others / unit)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """People of one epsilon who sent reports, in an answer.

    Attributes:
        people: How many.
        weight: Of one of them in the answer, in which all people together weigh 1.
        noise: Of one report.
    """

    people: int
    weight: float
    noise: ReportNoise

    @property
    def part(self) -> float:
        """What all of them weigh."""
        return self.people * self.weight

    @property
    def scale(self) -> float:
        """By what the variances of one report are multiplied in the answer."""
        return self.people * self.weight**2

    @property
    def moves(self) -> float:
        """How far one of the reports can move a share of the answer."""
        return self.weight * self.noise.reach
