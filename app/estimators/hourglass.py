"""`hourglass`: `transformed` with the noise of the smallest variance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from app.core.cohort import Group
from app.core.epsilon import MICRO, epsilon_limit
from app.core.grid import GRID_SIZE, NotANumber
from app.core.noise import Hourglass as HourglassNoise
from app.core.numbers import to_decimal
from app.core.study import Relation, Trust
from app.estimators.interface import Parameter, Plan, Question
from app.estimators.pivot import Complements, PivotReader
from app.estimators.quantiles import ErrorLaw
from app.estimators.transformed import complementary_queries, predicted_error
from app.mechanisms.hourglass import hourglass, hourglass_moments
from app.mechanisms.hourglass_law import HourglassLaw, pivot_tail

FLOOR = "floor"


def parse_level(text: str) -> object:
    """The parameter: an epsilon, or floor.

    Raises:
        ValueError: anything else, or an epsilon below one micro.
    """
    if text == FLOOR:
        return text
    try:
        level = epsilon_limit(to_decimal(text))
    except NotANumber:
        raise ValueError("must be a number or floor") from None
    if level < 1:
        raise ValueError("must be at least 0.000001")
    return level / MICRO


LEVEL_PARAMETER = Parameter(
    name="level",
    asked="hourglass_level",
    parse=parse_level,
    default=FLOOR,
    description="Epsilon that all people pay who offer that much; others do not take part. Default: floor, "
    "the smallest epsilon that may be offered.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HourglassPivot(Complements):
    """s1 = sum x and s2 = sum (1 - x) with hourglass noise: (1 - p) s1 - p s2.

    Sums are in units of one epsilon times one person, like those of the other pivots.

    Attributes:
        noise: The noise of both sums, in grid steps.
        level: The epsilon that each person pays [1].
    """

    noise: HourglassNoise
    level: float

    @property
    def unit(self) -> float:
        """A person is one grid size and weighs `level` epsilons."""
        return GRID_SIZE / self.level

    def laplaces(self, p: float) -> tuple[tuple[float, int], ...]:
        """Two Laplaces with the variance of the noise."""
        variance, covariance = hourglass_moments(self.noise)
        total = ((1 - p) ** 2 + p**2) * variance - 2 * p * (1 - p) * covariance
        whole = (1 - p) ** 2 + p**2
        scale = math.sqrt(total / whole / 2) / self.unit
        return (((1 - p) * scale, 1), (p * scale, 1))

    def normal(self, p: float) -> float:
        """None."""
        return 0.0

    def spread(self) -> None:
        """Not of a log-concave law."""

    def tail(self, p: float, x: float) -> float:
        """The exact law of the pivot, see `app.mechanisms.hourglass_law`."""
        return pivot_tail(self.noise, 1 - 2 * p, x * self.unit)

    def law(self, p: float, factor: float, times: int) -> HourglassLaw:
        """The noise of as many pivots, each times a factor, as a part of a sum."""
        return HourglassLaw(noise=self.noise, tilt=1 - 2 * p, size=factor / self.unit, times=times)

    def mass_law(self) -> ErrorLaw:
        """Its noise is a whole number u of people, P(u) about (1 + |u|) e^(-level |u|): like two Laplaces."""
        variance, covariance = hourglass_moments(self.noise)
        deviation = math.sqrt(2 * variance + 2 * covariance) / self.unit
        return ErrorLaw(sigma=0.0, laplaces=((max(1.0, deviation / 2), 2),))


class Hourglass:
    r"""The ratio s1 / (s1 + s2) with hourglass noise: the one-dimensional staircase optimum, privately.

    Staircase noise on each sum would cost two epsilons, because one person moves both; the hourglass is one
    distribution for the pair and costs one. It cannot protect people differently: its loss is the same
    for every move up to that of a whole person, so a smaller weight would buy no privacy. Therefore every
    person pays the same `level`, who offers less does not take part, and the level is fixed by the question:
    by default the study's smallest epsilon, so that no person is left out.
    """

    name: ClassVar[str] = "hourglass"
    version: ClassVar[int] = 2
    relation: ClassVar[Relation] = Relation.ADD_REMOVE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = (LEVEL_PARAMETER,)
    summary: ClassVar[str] = "Ratio of two noisy sums with the least noise; all people pay the same epsilon."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        r"""Plan a release.

        Args:
            groups: The groups; their sizes are not looked at.
            question: What is asked; parameter `LEVEL_PARAMETER`.

        Returns:
            The plan. predicted_error is that of `app.estimators.transformed`, with n = expected_size people
            who all take part. The interval is for the mean of those who take part, exact; the population's
            takes the noise for two Laplaces of the same variance.

        Privacy: the level for each person who takes part, under adding or removing one person. Whether
            a person takes part depends on their own offer and the question alone.

        References:
            `app.mechanisms.hourglass`; Kulesza, Suresh, Wang, arXiv:2312.06658v2 (the noise), and v1,
            Algorithm 3 (the ratio).
        """
        level = max(min(question.floor, question.cap), 1)
        asked = question.parameters.get(LEVEL_PARAMETER.name, FLOOR)
        if isinstance(asked, int | float):
            level = max(min(round(asked * MICRO), question.cap), 1)
        weights = tuple(
            1
            if group.trust is Trust.PUBLIC
            or (group.trust is Trust.CENTRAL and group.participates and group.epsilon >= level)
            else 0
            for group in groups
        )
        noise = hourglass(GRID_SIZE, level)
        epsilon = level / MICRO
        reader = PivotReader(
            grid=question.grid,
            cap=epsilon,
            floor=epsilon,
            pivot=HourglassPivot(noise=noise, level=epsilon),
        )
        return Plan(
            queries=complementary_queries(weights),
            noise=noise,
            predicted_error=predicted_error(question, reader),
            conclude=reader.conclude,
            weighs=(epsilon, epsilon),
        )
