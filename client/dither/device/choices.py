r"""Choices on the grid of a study, and what a device reports of one in place of it.

A report is a set of choices, as the integer whose bit j says whether choice j is in it. With
:math:`p = \lfloor 2^{128} e^\epsilon \rfloor` and :math:`o = 2^{128}` it is one of two:

- **Randomized response**: one choice, the true one with weight p, each other one with weight o.
- **Unary encoding**: the true choice is in it with probability 1/2, each other one with o / (o + p),
  independently of each other.

*Privacy.* Take two choices of a person and a report. Randomized response: its probability is p or o over
the same total, a ratio of at most p / o. Unary encoding: the two laws differ in the bits of the two
choices alone, and most where the report has the one bit and not the other,

.. math:: \frac{1/2}{o / (o + p)} \cdot \frac{p / (o + p)}{1/2} = \frac po.

Both spend :math:`\ln (p / o) \le \epsilon`, as exact ratios of integers:
tests/unit/mechanisms/test_choices.py looks at every report.

*Variance.* A choice is in a report with probability P if it is the true one, and Q otherwise, so
:math:`(y_j - Q) / (P - Q)` is unbiased for whether it is. With :math:`e = p / o` the variances of all K of
them, moved onto the plane on which they sum to 1, add up to

.. math:: \frac{(K - 1)(2 e + K - 2)}{(e - 1)^2} \qquad\text{and}\qquad
   \frac{K - 1}{K} \cdot \frac{(1 + e)^2 + 4 (K - 1) e}{(e - 1)^2},

whatever the true choice is. The first one is not larger where :math:`K^2 + 2 e \le 2 K (1 + e) + e^2 + 1`,
that is for :math:`K \le 1 + e + \sqrt{2 + 2 e^2}`; there a device takes randomized response. (Where a choice
is rare and there is no plane, the limit is 3 e + 2.)

References:
    Wang, Blocki, Li, Jha, "Locally Differentially Private Protocols for Frequency Estimation", USENIX
    Security 2017, arXiv:1705.04421, sections 3.1 and 4.2 (optimized unary encoding). The integers and the
    limit are ours.
"""

import secrets
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from dither.device.exact import RandomBits, below
from dither.device.numbers import GRID_SIZE
from dither.device.shapes import POWER_BITS, power_of_e

ONE = 1 << POWER_BITS
"""o of the module's docstring."""


@lru_cache(maxsize=64)
def choice_points(count: int) -> tuple[int, ...]:
    """The grid points of a study's choices: its range goes from the number of the first to that of the last.

    Args:
        count: How many there are, at least 2.

    >>> [4 * point // GRID_SIZE for point in choice_points(5)]
    [0, 1, 2, 3, 4]
    """
    last = count - 1
    return tuple((2 * place * GRID_SIZE + last) // (2 * last) for place in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceReports:
    """What a report can be, and with which probabilities.

    Attributes:
        count: K, the choices.
        power: p, the weight of the truth where another choice has 2^128.
    """

    count: int
    power: int

    @property
    def is_single(self) -> bool:
        """Whether it is randomized response: one choice; otherwise any set of choices."""
        k, p = self.count, self.power
        return (k * ONE) ** 2 + 2 * p * ONE <= 2 * k * ONE * (ONE + p) + p * p + ONE * ONE

    @property
    def kept(self) -> Fraction:
        """P, the probability that the true choice is in it."""
        return Fraction(self.power, self.power + (self.count - 1) * ONE) if self.is_single else Fraction(1, 2)

    @property
    def other(self) -> Fraction:
        """Q, the probability that a choice is in it that is not the true one."""
        others = self.count - 1 if self.is_single else 1
        return Fraction(ONE, self.power + others * ONE)

    def __contains__(self, report: int) -> bool:
        if not 0 <= report < 1 << self.count:
            return False
        return report.bit_count() == 1 if self.is_single else True

    def nearest(self, report: int) -> int:
        """The report itself: what a device draws is always one of these."""
        return report


@dataclass(frozen=True, slots=True)
class ChoiceRandomizer:
    """What a device makes of a choice, as `dither.device.randomizers.Randomizer` of a number.

    Attributes:
        count: K, the choices.
        is_bounded: What can be reported belongs to the whole epsilon, so a person sends one report.
    """

    count: int
    is_bounded: ClassVar[bool] = True

    def report(self, point: int, epsilon: int, bits: RandomBits = secrets.randbits) -> int:
        """The report of a choice, epsilon-differentially private for its owner against every person.

        Args:
            point: Grid point of the choice.
            epsilon: What the report costs its owner, above 0 [micro-epsilon].
            bits: Source of random bits. The default is the operating system's.
        """
        true, reports = choice_points(self.count).index(point), self.range(epsilon)
        if reports.is_single:
            ticket = below(reports.power + (self.count - 1) * ONE, bits)
            step = 0 if ticket < reports.power else 1 + (ticket - reports.power) // ONE
            return 1 << (true + step) % self.count
        chosen = 0
        for place in range(self.count):
            kept = bits(1) == 1 if place == true else below(ONE + reports.power, bits) < ONE
            chosen |= kept << place
        return chosen

    def range(self, epsilon: int) -> ChoiceReports:
        """What a report of an honest device can be, given what it was randomized with [micro-epsilon].

        Raises:
            ValueError: epsilon is not positive.
        """
        if epsilon <= 0:
            raise ValueError("a report needs a positive epsilon")
        return ChoiceReports(count=self.count, power=power_of_e(2 * epsilon))
