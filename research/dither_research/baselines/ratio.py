"""`independent` and `shifted`: a noisy sum over a noisy count, half of the epsilon for each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import Grid
from app.core.noise import DiscreteLaplace
from app.core.study import Relation
from app.estimators.accuracy import clip
from app.estimators.interface import UNIT_SCALE, Parameter, Plan, Query, Question
from app.estimators.pivot import PivotReader, offered_weight
from app.estimators.quantiles import ErrorLaw
from app.estimators.transformed import floor_of, predicted_error
from app.mechanisms.laplace import MAX_SCALE


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePivot:
    """A sum s = sum a (x - o) about an origin o and a count n = sum a: s - (p - o) n.

    Attributes:
        origin: o [position].
        unit: One epsilon times one person [units of the queries].
    """

    origin: Fraction
    unit: float

    @property
    def reach(self) -> Fraction:
        """How far from the origin a position can be."""
        return max(abs(self.origin), abs(1 - self.origin))

    def position(self, first: int, second: int) -> Fraction:
        """O + s / n, clipped; the middle of the range where n is not positive."""
        if second <= 0:
            return Fraction(1, 2)
        return clip(self.origin + Fraction(first, second))

    def value(self, p: float, first: float, second: float) -> float:
        """S - (p - o) n."""
        return first - (p - float(self.origin)) * second

    def laplaces(self, p: float) -> tuple[tuple[float, int], ...]:
        """Of scales 2 reach and 2 |p - o|."""
        return ((2 * float(self.reach), 1), (2 * abs(p - float(self.origin)), 1))

    def normal(self, p: float) -> float:
        """None."""
        return 0.0

    def spread(self) -> None:
        """The pivot is another one than that of two complements."""

    def tail(self, p: float, x: float) -> float:
        """The law of two Laplaces."""
        parts = tuple(part for part in self.laplaces(p) if part[0] > 0)
        return ErrorLaw(sigma=0.0, laplaces=parts).tail(x)

    def mass(self, first: float, second: float) -> float:
        """The noisy count is the total weight."""
        return second

    def mass_law(self) -> ErrorLaw:
        """One Laplace of scale 2."""
        return ErrorLaw(sigma=0.0, laplaces=((2.0, 1),))


def ratio_plan(groups: Sequence[Group], question: Question, origin: Fraction) -> Plan:
    r"""The plan of a noisy sum about an origin over a noisy count.

    A person of weight a, in units of 1 / f micro-epsilon, moves the first query by a q - B 2^30 with B the
    integer next to a o, and the second by a 2^30. The first has noise of scale 2 f R UNIT_SCALE, R the
    farthest that a value can be from o, the second 2 f UNIT_SCALE: half of the offer for each.

    Args:
        groups: The groups; their sizes are not looked at.
        question: What is asked.
        origin: o [position]; any number.

    Returns:
        The plan. predicted_error is that of `app.estimators.transformed.predicted_error`. Where
        o is no multiple of 1 / a the answer is off by less than half of 1 / a.

    Privacy: at most the offer of each person, under adding or removing one person. Nothing else depends on
        who is there.
    """
    pivot = ReferencePivot(origin=origin, unit=1.0)
    reach = pivot.reach
    fineness = _fineness(reach)
    unit = UNIT_SCALE * float(fineness)
    weights, offsets = [], []
    for group in groups:
        weight, offset = _weights(offered_weight(group, question.cap) * fineness, origin, reach)
        weights.append(weight)
        offsets.append(-offset)
    reader = PivotReader(
        grid=question.grid,
        cap=max(question.cap, 1) / MICRO,
        floor=floor_of(question),
        pivot=ReferencePivot(origin=origin, unit=unit),
        tilt=question.tilt,
    )
    return Plan(
        queries=(
            Query(sum_weights=tuple(weights), count_weights=tuple(offsets)),
            Query(sum_weights=(0,) * len(groups), count_weights=tuple(weights)),
        ),
        noise=DiscreteLaplace(scales=(_at_least(2 * reach * Fraction(unit)), 2 * unit)),
        predicted_error=predicted_error(question, reader),
        conclude=reader.conclude,
    )


def _at_least(value: Fraction) -> float:
    """The nearest double that is not smaller."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _fineness(reach: Fraction) -> Fraction:
    """The largest power of two of weights per micro-epsilon that the sampler's largest scale allows."""
    power = math.floor(math.log2(MAX_SCALE / UNIT_SCALE / 2 / float(max(reach, Fraction(1)))))
    return Fraction(2) ** power


def _weights(offer: Fraction, origin: Fraction, reach: Fraction) -> tuple[int, int]:
    """The largest weight a, and the integer next to a o, that do not cost more than the offer."""
    weight = math.floor(offer)
    while weight > 0:
        offset = round(weight * origin)
        if max(abs(offset), abs(weight - offset)) <= offer * reach:
            return weight, offset
        weight -= 1
    return 0, 0


def zero_position(grid: Grid) -> Fraction:
    """Where the number 0 lies [position; outside [0, 1] where the range does not hold it]."""
    return -Fraction(grid.lower) / grid.width


class Independent:
    r"""(sum x + Lap(2 M / epsilon)) / (n + Lap(2 / epsilon)), M the largest absolute value: Algorithm 1.

    The worst of the three: its error depends on where 0 lies. Each person counts with what they offer.
    """

    name: ClassVar[str] = "independent"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.ADD_REMOVE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "A noisy sum over a noisy count, half of the epsilon for each."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release: `ratio_plan` about the number 0.

        Args:
            groups: The groups; their sizes are not looked at.
            question: What is asked.

        Returns:
            The plan.

        Privacy: at most the offer of each person, under adding or removing one person.

        References:
            Kulesza, Suresh, Wang, arXiv:2312.06658v1, Algorithm 1. Where the noisy count is not positive
            the answer is the middle of the range.
        """
        return ratio_plan(groups, question, zero_position(question.grid))


class Shifted:
    r"""The same about the middle of the range: Algorithm 2, with half of `independent`'s error or less."""

    name: ClassVar[str] = "shifted"
    version: ClassVar[int] = 1
    relation: ClassVar[Relation] = Relation.ADD_REMOVE_ONE
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    summary: ClassVar[str] = "A noisy sum about the middle of the range over a noisy count."

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release: `ratio_plan` about the middle of the range.

        Args:
            groups: The groups; their sizes are not looked at.
            question: What is asked.

        Returns:
            The plan.

        Privacy: at most the offer of each person, under adding or removing one person.

        References:
            Kulesza, Suresh, Wang, arXiv:2312.06658v1, Algorithm 2, without its pre-processing by the
            width: the noise of the sum is half the width's.
        """
        return ratio_plan(groups, question, Fraction(1, 2))
