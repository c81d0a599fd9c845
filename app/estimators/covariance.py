r"""The covariance of two numbers, off the noisy sums of both and of their products.

With x and y about the middles of their ranges [range widths], weights c_i that sum to one, noise e_1, e_2
and e_3, and :math:`M_x = \sum c_i x_i + e_1`, :math:`M_y = \sum c_i y_i + e_2`, :math:`M_{xy} = \sum c_i
x_i y_i + e_3` the estimate is :math:`C = M_{xy} - M_x M_y`. Let m be the means that are asked about, of the
dataset or of the population, :math:`\epsilon_x = M_x - m_x`, and :math:`g_i = (x_i - m_x)(y_i - m_y)`,
whose mean is the covariance K. Then, exactly,

.. math:: C - K = \Big(\sum_i c_i g_i - K\Big) + e_3 - m_x e_2 - m_y e_1 - \epsilon_x \epsilon_y.

The noises are independent, and e_1 e_2 has the mean 0. Of the risk of 5 % one part in five each bounds
:math:`|\epsilon_x| \le E_x` and :math:`|\epsilon_y| \le E_y`. On that event :math:`|m_x| \le |M_x| + E_x =
d_x`, and :math:`|x - m_x| \le R_x = 1/2 + d_x`, so g lies within :math:`\pm R_x R_y`, has a variance of at
most :math:`\min(R_x^2, R_y^2) / 4`, and the rest of the error, for independent people, has the law of e_3,
d_x e_2, d_y e_1 and a Normal part; a tilt, and a lattice, move it by parts of the range of g
(`app.estimators.linear`, `app.estimators.moments`). Three parts in five of the risk are its own.

*Labels.* Where labels have sums of their own, M_x, M_y and M_xy of all people are those of labels times the
parts :math:`\pi_l` of the people who have them, which are public. So weights are those of
`app.estimators.weighing.weigh_labels`, each noise is :math:`\sum_l \pi_l e_l`, and the above holds with the
Laplaces of all labels.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

from app.accounting.measurement import Workload
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.plain import plain
from app.estimators import confidence
from app.estimators.interface import Coverage, Interval
from app.estimators.pivot import LinearPivot, PivotReader
from app.estimators.quantiles import ErrorLaw, error_law
from app.estimators.weighing import Weighing, weigh_labels

MIDDLE = GRID_SIZE // 2

LARGEST = 0.25
"""No covariance of numbers between -1/2 and 1/2 is larger."""

_OF_MEAN = 0.2
"""Part of the risk for the error of either mean; the rest is for the products."""

_ROUNDING = 2 / GRID_SIZE
"""The most that a covariance is off because products were rounded down, by a step at most, and values moved
to the grid, by half a step h at most: by 2 h sd + h^2, less than a step [range width squared]."""


def shown_interval(lower: float, upper: float, coverage: Coverage) -> dict[str, object]:
    """An interval at the level that is read, as answers say it."""
    interval = Interval(level=confidence.level(), lower=lower, upper=upper, coverage=coverage)
    shown: dict[str, object] = plain(interval)
    return shown


@dataclass(frozen=True, kw_only=True)
class PairReader(ABC):
    """Reads the noisy sums of two numbers and of their products.

    Attributes:
        weighing: What people count for.
        grids: Of both numbers.
        sums: How many there are.
        workload: What is measured.
        largest: No number that is read is larger [`unit`].
    """

    weighing: Weighing
    grids: tuple[Grid, Grid]

    sums: ClassVar[int]
    workload: ClassVar[Workload] = Workload.PAIR
    largest: ClassVar[float] = LARGEST

    @staticmethod
    def weighed(weighing: Weighing) -> Weighing:
        """What people count for in the sums, of what they count for in one."""
        return weighing

    @property
    def normal(self) -> bool:
        """Whether the noise is Gaussian."""
        return self.weighing.is_gaussian

    @property
    def unit(self) -> float:
        """One range width times the other one [data's units]."""
        return float(self.grids[0].width) * float(self.grids[1].width)

    @property
    @abstractmethod
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of the sums: what an offer pays for."""

    def _noise(self, *sizes: float) -> DiscreteLaplace | DiscreteGaussian:
        return DiscreteGaussian(sigmas=sizes) if self.normal else DiscreteLaplace(scales=sizes)

    def _size(self, one: int, moved: int) -> float:
        """The noise that an offer of 1 pays for, which weighs `one`; a weight of 1 moves a sum by `moved`."""
        # An offer of mu^2 weighs sqrt(2) mu; a unit more, since discrete noise costs a little more.
        return (math.sqrt(2) * one + 1) * moved if self.normal else float(one * moved)

    @property
    @abstractmethod
    def predicted_error(self) -> float:
        """Root mean square error [data's units]."""

    @property
    @abstractmethod
    def interval_width(self) -> float:
        """Predicted width of the interval for the dataset [`unit`, of a covariance in range widths]."""

    @staticmethod
    @abstractmethod
    def parts(people: int, *summed: int) -> tuple[int, ...]:
        """What people add to the sums, with weights of 1.

        Args:
            people: How many.
            summed: What the database adds up of them: of a covariance both numbers [grid steps], and their
                products about the middles [2^-30 of a squared step], each rounded down.
        """

    @abstractmethod
    def of_labels(self, labels: Sequence[tuple[int, Weighing]], people: int, tilt: float) -> Self:
        """What reads the answer for all people off the noisy sums of labels, this reader being that of one.

        Args:
            labels: Of each label with an answer its people, and what they count for.
            people: All people, those of labels without an answer too.
            tilt: The question's.
        """

    @abstractmethod
    def read(self, *drawn: Sequence[int]) -> dict[str, object]:
        """The answer from the noisy sums, as JSON; that for all people from those of each label.

        Privacy: post-processing of the sums.
        """


@dataclass(frozen=True, kw_only=True)
class PublicPair(PairReader):
    """Reads noisy sums where the number of people is public.

    Attributes:
        labels: Of what is read off the sums of labels the part of the people that each has, and what these
            weigh together; empty for one answer.
    """

    labels: tuple[tuple[float, int], ...] = ()

    of_number: ClassVar[tuple[float, ...]] = (1.0,)
    """Of the noises in the mean of a number, as multiples of `scales`."""

    @property
    def scales(self) -> tuple[float, ...]:
        """Of the noises of a sum of one number, or their standard deviations [range widths of the mean].

        One for each label that they are read off. Those of other sums are multiples of them.
        """
        noise = self.noise
        size = noise.sigmas[0] if isinstance(noise, DiscreteGaussian) else noise.scales[0]
        return tuple(part * size / GRID_SIZE / max(mass, 1) for part, mass in self._parts)

    @property
    def size(self) -> float:
        """Of a sum, where a person moves two, each for a part of the offer [grid steps times weights]."""
        return self._size(self.weighing.unit, GRID_SIZE)

    def of_labels(self, labels: Sequence[tuple[int, Weighing]], people: int, tilt: float) -> Self:
        """See `PairReader.of_labels`."""
        answered = sum(count for count, _ in labels)
        return replace(
            self,
            weighing=weigh_labels(labels, people, tilt),
            labels=tuple((count / answered, one.mass) for count, one in labels),
        )

    def averaged(self, drawn: Sequence[Sequence[int]]) -> list[float]:
        """The noisy sums, of labels together, as means [range widths, and squared ones]."""
        of_labels = [
            [part * float(Fraction(one, mass * GRID_SIZE)) for one in sums]
            for (part, mass), sums in zip(self._parts, drawn, strict=True)
        ]
        return [math.fsum(column) for column in zip(*of_labels, strict=True)]

    def law(self, times: Sequence[float], drawn: float) -> ErrorLaw:
        """Of noises of these multiples of `scales`, beside a Normal part of a variance."""
        scales = [one * scale for one in times for scale in self.scales]
        normal = drawn + (sum(scale * scale for scale in scales) if self.normal else 0.0)
        return error_law(normal_variance=normal, laplaces=() if self.normal else [(one, 1) for one in scales])

    def of_mean(self, squares: float, step: float, risk: float) -> float:
        """What a mean is off by at most [range widths].

        Args:
            squares: Of the dataset, or the population: what a variance is multiplied by.
            step: What the lattice moves.
            risk: Probability that it is off by more.
        """
        return self.law(self.of_number, squares * 0.25).quantile(1 - risk) + step + self.weighing.bias

    @property
    def step(self) -> float:
        """What the lattice moves a mean of the dataset."""
        return self.weighing.largest / 2 if self.weighing.uneven else 0.0

    @property
    def _parts(self) -> tuple[tuple[float, int], ...]:
        return self.labels or ((1.0, self.weighing.mass),)


@dataclass(frozen=True, kw_only=True)
class SecretPair(PairReader):
    """Reads noisy sums where the number of people is secret: knows the question, not who is there.

    Attributes:
        people: The number of people to predict for; None: unknown.
        labels: Of how many labels there are sums.
        moved: What a person of weight 1 moves all sums by, at most.
    """

    people: float | None
    labels: int = 1

    moved: ClassVar[int]

    @property
    def one(self) -> int:
        """What an epsilon of 1 weighs."""
        return self.weighing.unit

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of the sums of a label, or of all people."""
        return self._noise(*(self._size(self.one, self.moved),) * self.sums)

    @property
    def interval_width(self) -> float:
        """Nothing is predicted of it."""
        return 2 * self.largest

    def of_labels(self, labels: Sequence[tuple[int, Weighing]], people: int, tilt: float) -> Self:
        """See `PairReader.of_labels`: weights are the same in all labels."""
        return replace(self, labels=len(labels))

    @property
    @abstractmethod
    def pivot(self) -> LinearPivot:
        """Of the sums of a number in [0, 1], and of what it is below 1."""

    @cached_property
    def mean(self) -> PivotReader:
        """Reads the mean of a number off them."""
        cap, floor = self.weighing.cap / self.one, self.weighing.floor / self.one
        return PivotReader(
            grid=self.grids[0], cap=cap, floor=floor, pivot=self.pivot, tilt=self.weighing.tilt
        )


@dataclass(frozen=True, kw_only=True)
class CovarianceReader(PublicPair):
    """Reads three noisy sums, where the number of people is public."""

    sums: ClassVar[int] = 3

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of both sums, and of the products, with half of it: see `app.accounting.pair_prices`."""
        return self._noise(self.size, self.size, self.size / 2)

    @property
    def predicted_error(self) -> float:
        """Root mean square error about the dataset where both means lie in the middle [data's units]."""
        noise = (1 if self.normal else 2) * sum((scale / 2) ** 2 for scale in self.scales)
        square = self.weighing.uneven / 16 + noise + (self.weighing.bias / 2) ** 2
        return self.unit * min(LARGEST, math.sqrt(square))

    @property
    def interval_width(self) -> float:
        """Of the interval for the dataset where both means lie in the middle [range width squared]."""
        return 2 * min(LARGEST, self._margin(0.0, 0.0, self.weighing.uneven, self.step))

    @staticmethod
    def parts(people: int, *summed: int) -> tuple[int, ...]:
        """Both numbers about the middles, and the products; see `PairReader.parts`."""
        first, second, products = summed
        return first - MIDDLE * people, second - MIDDLE * people, products

    def read(self, *drawn: Sequence[int]) -> dict[str, object]:
        """The answer from the noisy sums [grid steps; of products 2^-30 of one squared], as JSON."""
        first, second, products = self.averaged(drawn)
        shown = min(max(products - first * second, -LARGEST), LARGEST)

        def interval(squares: float, step: float, coverage: Coverage) -> dict[str, object]:
            margin = self._margin(first, second, squares, step)
            lower, upper = max(shown - margin, -LARGEST), min(shown + margin, LARGEST)
            return shown_interval(self.unit * lower, self.unit * upper, coverage)

        weighing = self.weighing
        return {
            "estimate": self.unit * shown,
            "interval": interval(weighing.uneven, self.step, "worst_case" if weighing.uneven else "at_least"),
            "population_interval": interval(weighing.squares, weighing.largest / 2, "worst_case"),
            "means": [
                grid.to_unit(Fraction(min(max(mean + 0.5, 0.0), 1.0)))
                for grid, mean in zip(self.grids, (first, second), strict=True)
            ],
        }

    def _margin(self, first: float, second: float, squares: float, step: float) -> float:
        """What the estimate is off by at most, at the level, given both means [range width squared]."""
        risk, beside = confidence.risk(), step + self.weighing.bias
        of_mean = self.of_mean(squares, step, risk * _OF_MEAN)
        near = [min(0.5, abs(mean) + of_mean) for mean in (first, second)]
        reach = [0.5 + one for one in near]
        law = self.law([0.5, *near], squares * min(reach) ** 2 / 4)
        return (
            law.quantile(1 - risk * (1 - 2 * _OF_MEAN))
            + 2 * reach[0] * reach[1] * beside
            + of_mean * of_mean
            + _ROUNDING
        )
