r"""The covariance of two numbers where the number of people is secret: four noisy sums for one epsilon.

With x and y the positions in both ranges, one person adds :math:`a = x y`, :math:`b = x (1 - y)`,
:math:`c = (1 - x) y` and :math:`d = (1 - x)(1 - y)` to the sums A, B, C and D: together 1, in integers by
`app.accounting.pair_prices`. So N = A + B + C + D is the total weight, the means are (A + B) / N and
(A + C) / N, and the covariance is

.. math:: A / N - (A + B)(A + C) / N^2 = (A D - B C) / N^2.

For all means m, and a covariance K, what is seen of weights w is

.. math:: \sum_i w_i (x_i - m_x)(y_i - m_y) - K N = (1 - m_x)(1 - m_y) A - (1 - m_x) m_y B
    - m_x (1 - m_y) C + m_x m_y D - K N,

as both sides are linear in each of x and y, and the same at the four corners. If m and K are true, of people
who weigh the same, it is noise. Its four coefficients are linear in either mean alone, and so is the sum:
over a box for both means they are largest at its corners. Of unequal or drawn people there is a part of
bounded variance, as for the mean (`app.estimators.pivot`). With :math:`|x - m_x| \le R_x` and
:math:`|y - m_y| \le R_y` the products :math:`g_i = (x_i - m_x)(y_i - m_y)` lie within :math:`\pm R_x R_y`.
As x has a variance of at most m_x (1 - m_x), and y likewise, the variance of g is at most
:math:`\min(R_x^2 m_y (1 - m_y), R_y^2 m_x (1 - m_x)) - K^2`. The interval is the hull of all K that this does
not reject. Of its risk either mean has one part in five. Where it rejects every K, the interval is that of
the next higher level, see `app.estimators.pivot.fitting`.

Under Gaussian noise the same holds, with Normal laws of variance 2 in place of Laplaces of scale 1.

The sums of labels add up to those of all people, so the same is read off them, with the noise of all labels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np

from app.accounting.pair_prices import PARTS
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian
from app.estimators import confidence
from app.estimators.covariance import LARGEST, MIDDLE, SecretPair, shown_interval
from app.estimators.every_level import Ends
from app.estimators.interface import Coverage
from app.estimators.moments import MEAN_RISK
from app.estimators.pivot import (
    NORMAL,
    HullOfMean,
    LinearPivot,
    accepted,
    fitting,
    mass_risk,
    most_spread,
    noise_law,
    ratio,
)
from app.estimators.weighing import Weighing


@dataclass(frozen=True, kw_only=True)
class SecretCovarianceReader(SecretPair):
    """Reads the four noisy sums; `weighing` is as `weighed`."""

    sums: ClassVar[int] = 4
    moved: ClassVar[int] = PARTS

    @staticmethod
    def weighed(weighing: Weighing) -> Weighing:
        """Half of the weights, where they are for Gaussian noise: what moves sums by 2 takes twice the noise.

        Of whole weights its standard deviation would exceed what is drawn (`app.mechanisms.gaussian`).
        """
        if not weighing.is_gaussian:
            return weighing
        return replace(
            weighing,
            weights=tuple(weight // 2 for weight in weighing.weights),
            cap=max(weighing.cap // 2, 1),
            floor=weighing.floor // 2,
        )

    @property
    def predicted_error(self) -> float:
        r"""The leading term of the root mean square error, at the worst values [data's units].

        At the true means and covariance the squares of the noise's coefficients sum to at most 1, where all
        people are at one corner: noise of variance 2, for each label, over the total weight. Where no size is
        expected it is the largest covariance.
        """
        if not self.people or self.people <= 0:
            return self.unit * LARGEST
        noise = math.sqrt(2 * self.labels) / (self.mean.cap * self.people)
        return self.unit * min(LARGEST, math.hypot(noise, self.mean.bias))

    @staticmethod
    def parts(people: int, *summed: int) -> tuple[int, ...]:
        """See `PairReader.parts`, and `app.accounting.pair_prices`."""
        first, second, products = summed
        both = 2 * products + first + second - MIDDLE * people
        return (both, 2 * first - both, 2 * second - both, 2 * (GRID_SIZE * people - first - second) + both)

    def read(self, *drawn: Sequence[int]) -> dict[str, object]:
        """The answer from the noisy sums, as JSON; negative sums are replaced by 0 in the estimate."""
        values = [sum(column) for column in zip(*drawn, strict=True)]
        unit = self.pivot.unit
        sums = [value / unit for value in values]
        both, first, second, neither = (max(one, 0.0) for one in sums)
        mass = both + first + second + neither
        shown = (both * neither - first * second) / mass**2 if mass > 0 else 0.0
        shown = min(max(shown, -LARGEST), LARGEST)
        # Of x and 1 - x, and of y and 1 - y.
        pairs = [(values[0] + values[place], values[3] + values[3 - place]) for place in (1, 2)]
        means = [ratio(*pair) for pair in pairs]
        mean, cap = self.mean, self.mean.cap

        def interval(
            of_mean: HullOfMean, person: float, step: float, coverage: Coverage
        ) -> dict[str, object]:
            def ends() -> Ends | None:
                bound = mean.mass_bound(sums[0] + sums[1], sums[2] + sums[3])
                box = [
                    of_mean(one / unit, other / unit, float(center), confidence.risk() * MEAN_RISK)
                    for (one, other), center in zip(pairs, means, strict=True)
                ]
                # Products lie within R_x R_y of 0, so weights move their sum by at most twice that times the
                # bias of the total weight.
                return self._hull(sums, shown, box, person * bound, step + mean.bias * bound)

            lower, upper = (self.unit * end for end in fitting(ends, (-LARGEST, LARGEST)))
            return shown_interval(lower, upper, coverage)

        return {
            "estimate": self.unit * shown,
            "interval": interval(
                mean.dataset_hull,
                mean.inequality,
                (cap - mean.floor) / 2,
                "at_least" if mean.floor == cap else "worst_case",
            ),
            "population_interval": interval(mean.population_hull, cap, cap / 2, "worst_case"),
            "means": [grid.to_unit(one) for grid, one in zip(self.grids, means, strict=True)],
            "noisy_count": max(sum(sums), 0.0) / cap,
        }

    @property
    def one(self) -> int:
        """See `SecretPair`: half of it where weights are halved."""
        return self.weighing.unit // (2 if self.normal else 1)

    @cached_property
    def pivot(self) -> LinearPivot:
        """Of the sums of x and of 1 - x, which are two of the four of each label, or of y."""
        noise, draws = self.noise, 2 * self.labels
        if isinstance(noise, DiscreteGaussian):
            unit = noise.sigmas[0] / math.sqrt(2)
            return LinearPivot(first=draws, second=draws, unit=unit, variance=NORMAL)
        return LinearPivot(first=draws, second=draws, unit=noise.scales[0])

    def _hull(
        self, sums: Sequence[float], estimate: float, means: Sequence[Ends], scale: float, step: float
    ) -> Ends | None:
        """All covariances that the sums do not reject, for means in a box [range width squared].

        Args:
            sums: A, B, C, D [epsilons times people].
            estimate: A covariance that is kept inside.
            means: Ends of the interval for either mean.
            scale: What the variance of a product is multiplied by in the variance of what is not noise.
            step: Half of one person's weight in it, and what a tilt moves.

        Returns:
            The ends of their hull; None where they reject all.
        """
        mass = sum(sums)
        if mass <= 0:
            return -LARGEST, LARGEST
        corners = np.array(
            [((1 - x) * (1 - y), -(1 - x) * y, -x * (1 - y), x * y) for x, y in product(*means)]
        )
        seen = corners @ np.array(sums)
        least, most = float(seen.min()), float(seen.max())
        reach = [max(high, 1 - low) for low, high in means]
        spread = [most_spread(*ends) for ends in means]
        square = min(reach[0] ** 2 * spread[1], reach[1] ** 2 * spread[0])

        def at(place: float) -> float:
            return LARGEST * (2 * place - 1)

        def tail(place: float) -> float:
            covariance = at(place)
            noises = np.abs(corners - covariance).max(axis=0).tolist()
            drawn = scale * max(square - covariance**2, 0.0)
            law = noise_law(noises, drawn, draws=self.labels, normal=self.normal)
            off = max(least - covariance * mass, covariance * mass - most, 0.0)
            return law.tail(off - 2 * reach[0] * reach[1] * step)

        risk = confidence.risk() * (1 - 2 * MEAN_RISK) - mass_risk()
        places = accepted(tail, risk, (estimate / LARGEST + 1) / 2)
        if places is None:
            return None
        lower, upper = map(at, places)
        # Products were rounded down, by less than a step.
        return max(min(lower, estimate), -LARGEST), min(max(upper, estimate) + 1 / GRID_SIZE, LARGEST)
