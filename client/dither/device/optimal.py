r"""Tables of `optimal` reports: the least variance that a report can have whatever the value is.

A value between two of m + 1 evenly spaced inputs moves to one of them, at random and the same on average; its
row of a table then says how likely each report is, in units of 2^-32. Every row is exactly unbiased, so a
report is. No report is more than e^epsilon times as likely for one input as for another, so none is for two
values, which mix the same rows: a ratio of two averages is at most the largest ratio of what they average.
All this is checked in exact numbers where the tables are made, research/dither_research/optimal_reports.py,
and by the tests. They are public constants.

A report of a value x between the inputs :math:`x_i` and :math:`x_i + h` varies by
:math:`v + (x - x_i)(x_i + h - x)`, at most :math:`v + h^2 / 4`, which is what the service assumes.

Source: a linear program, arXiv:2510.11116, arXiv:2505.15483.
"""

import json
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import accumulate

from dither.device.exact import RandomBits
from dither.device.numbers import GRID_SIZE
from dither.device.shapes import HALF

TICKET_BITS = 32
TICKETS = 1 << TICKET_BITS

UNIT = 1 << 25
"""Reports are multiples of this [grid steps from the middle of the range]."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """The laws of reports for one epsilon.

    Attributes:
        epsilon: What a report costs [micro-epsilon].
        until: From here on a hybrid report of the whole epsilon has the smaller variance [micro-epsilon].
        steps: m, a power of two; the inputs are m + 1.
        reports: Possible reports, ascending and symmetric about 0 [`UNIT`].
        rows: Weights of the reports for each input up to the middle [2^-32]. The others mirror them.
    """

    epsilon: int
    until: int
    steps: int
    reports: list[int]
    rows: list[list[int]]

    def draw(self, offset: int, bits: RandomBits) -> int:
        """A report about a value, both as distances from the middle of the grid."""
        step = GRID_SIZE // self.steps
        place = (offset + HALF + bits((step - 1).bit_length())) // step
        return self.reports[bisect_right(self._ends[place], bits(TICKET_BITS))] * UNIT

    def law(self, place: int) -> dict[int, Fraction]:
        """Probability of each report for an input [grid steps from the middle]."""
        return {
            report * UNIT: Fraction(weight, TICKETS)
            for report, weight in zip(self.reports, self._row(place), strict=True)
        }

    @cached_property
    def possible(self) -> frozenset[int]:
        """Every report there can be [grid steps]."""
        return frozenset(HALF + report * UNIT for report in self.reports)

    @property
    def rounding(self) -> int:
        """The most that moving to an input adds to the variance of a report [grid steps squared]."""
        return (GRID_SIZE // self.steps) ** 2 // 4

    @cached_property
    def variance(self) -> float:
        """Of a report, at most [grid steps squared]."""
        of_rows = [
            sum(share * report**2 for report, share in self.law(place).items())
            - (Fraction(2 * place - self.steps, self.steps) * HALF) ** 2
            for place in range(len(self.rows))
        ]
        return float(max(of_rows) + self.rounding)

    @cached_property
    def _ends(self) -> list[list[int]]:
        """For each input, the first ticket that is not for a report."""
        return [list(accumulate(self._row(place))) for place in range(self.steps + 1)]

    def _row(self, place: int) -> list[int]:
        return self.rows[place] if place < len(self.rows) else self.rows[self.steps - place][::-1]


@lru_cache(maxsize=1)
def tables() -> tuple[Table, ...]:
    """All of them, by epsilon."""
    made = json.loads(files("dither.device").joinpath("optimal.json").read_text(encoding="utf-8"))
    names = ("epsilon", "until", "steps", "reports", "rows")
    return tuple(Table(**dict(zip(names, fields, strict=True))) for fields in made)


@lru_cache(maxsize=256)
def optimal_table(epsilon: int) -> Table | None:
    """The table for an epsilon [micro-epsilon]; None where a hybrid report is better."""
    found = [table for table in tables() if table.epsilon <= epsilon < table.until]
    return found[-1] if found else None
