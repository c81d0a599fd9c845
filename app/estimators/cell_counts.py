r"""Counts of people in cells, off noisy counts of several levels: the best linear estimate of all of them.

Before the first level there is one cell of all people. Each level cuts cells, and tells noisy sums of
them.

*Cutting.* Of N people in a cell its parts, of :math:`f_j` of its length, have :math:`f_j N` each, if values
are spread evenly. Given N their covariance is

.. math:: (p N + \rho^2 N^2) (\operatorname{diag} f - f f^T):

that of people at random places, who weigh p each, and that of a density that is uneven by a part rho of
itself, as a Dirichlet density is. A cell of a part h of all people has :math:`\rho = \rho_0 + h`: a smooth
density changes less within a cell the fewer people it has, and a range that is much too wide has all of
them in one.

*Roughness.* How uneven densities are differs: numbers spread evenly have a small :math:`\rho_0`, coarse ones
a large one. Counts are estimated for several, and each estimate weighs what its likelihood is, that of a
Normal law of all noisy sums. So sums that differ as noise alone would are taken for noise, and those of
coarse values for what values do.

*Whole numbers.* Ratings, ages and numbers of things are whole. So each roughness counts twice, both as likely
before any sum: with :math:`f_j` the part's length, and with how many whole numbers it has, over those of its
cell. In the second case a part without one has no people, and ranks rise at whole numbers alone. Where sums
say that values are whole, the estimate is a whole number, and cells begin right at one and right behind it.

*Sums.* Given noisy sums :math:`y = H N + Z` the best linear estimate of counts with mean m and covariance S
is :math:`m + K (y - H m)`, with the covariance :math:`(I - K H) S` and
:math:`K = S H^T (H S H^T + \operatorname{Var} Z)^{-1}` (Kalman 1960, doi:10.1115/1.3662552). A total that is
public has no variance, so the counts of all cells keep to it.

Estimates and the places of cells are good where values are spread so. No interval rests on it.

Privacy: post-processing of noisy counts, and of what is public.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.core.grid import GRID_SIZE, Grid

Floats = NDArray[np.float64]

_ROUGH: Floats = np.array([0.05, 0.1, 0.2, 0.4])
"""How uneven a density may be within a cell of few people; each rho_0."""

_WITHIN = 8
"""Into how many pieces a cell is cut where places are looked for, and how many whole numbers it may have."""


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """Where whole numbers lie in a range, which has both ends.

    Attributes:
        first: The least one, which may lie between grid steps [grid steps].
        apart: How far one lies from the next one, above 1 [grid steps].
    """

    first: float
    apart: float

    @classmethod
    def of(cls, grid: Grid) -> Self | None:
        """Those of a range; None where there are fewer than three, as in 0 to 1, or too many for the grid."""
        lower = Fraction(grid.lower)
        first, last = math.ceil(lower), math.floor(lower + grid.width)
        apart = GRID_SIZE / grid.width
        return cls(float((first - lower) * apart), float(apart)) if last - first >= 2 and apart >= 2 else None

    def below(self, places: Floats) -> Floats:
        """How many there are below places, which are whole grid steps; each is kept as the nearest step."""
        return np.maximum(0.0, np.ceil((places - 0.5 - self.first) / self.apart))

    def steps(self, numbers: Floats) -> Floats:
        """What whole numbers are kept as, the first one being number 0 [grid steps]."""
        return np.floor(self.first + self.apart * numbers + 0.5)


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts:
    """What is known of the counts of cells.

    A case is a roughness, for values of any kind or for whole numbers.

    Attributes:
        ends: Where they begin and end, shape (cells + 1,) [grid steps].
        means: What is expected in each case, shape (cases, cells) [units of the counts].
        covariance: Of counts in each, shape (cases, cells, cells) [the same, squared].
        likelihood: Logarithm of that of the sums so far in each, up to a constant, shape (cases,).
        person: What a person adds to a count, above 0 [units of the counts].
        whole: Where whole numbers lie; None: there are no cases of these.
    """

    ends: Floats
    means: Floats
    covariance: Floats
    likelihood: Floats
    person: float
    whole: WholeNumbers | None = None

    @classmethod
    def of_all(
        cls, end: float, total: float, variance: float, person: float, whole: WholeNumbers | None = None
    ) -> Self:
        """One cell of all people, from 0 to `end`; `variance` is that of `total`."""
        many = len(_ROUGH) if whole is None else 2 * len(_ROUGH)
        return cls(
            ends=np.array([0.0, end]),
            means=np.full((many, 1), total),
            covariance=np.full((many, 1, 1), variance),
            likelihood=np.zeros(many),
            person=person,
            whole=whole,
        )

    def cut(self, starts: Sequence[int]) -> Self:
        """The cells, cut at these places [grid steps]."""
        ends = np.union1d(self.ends, np.array(starts, dtype=np.float64))
        owner = np.searchsorted(self.ends, ends[:-1], side="right") - 1
        parts = self._parts(ends[1:], owner) - self._parts(ends[:-1], owner)
        of_owner = parts[:, :, None] * (owner[:, None] == np.arange(len(self.ends) - 1))
        spread = (parts * self._spread[:, owner])[:, :, None]
        apart = spread * (np.eye(len(owner)) - (owner[:, None] == owner) * parts[:, None])
        return replace(
            self,
            ends=ends,
            means=(of_owner @ self.means[:, :, None])[:, :, 0],
            covariance=of_owner @ self.covariance @ of_owner.transpose(0, 2, 1) + apart,
        )

    def given(self, sums: Floats, of: Floats, variance: float) -> Self:
        """What is known with noisy sums of counts.

        Args:
            sums: Shape (sums,) [units of the counts].
            of: How often each sum has the count of each cell, shape (sums, cells).
            variance: Of the noise of each sum, above 0.
        """
        shared = of @ self.covariance
        seen = shared @ of.T + variance * np.eye(len(sums))
        off = (sums - self.means @ of.T)[:, None, :]
        gain = np.linalg.solve(seen, shared)
        squares = (off @ np.linalg.solve(seen, off.transpose(0, 2, 1))).ravel()
        return replace(
            self,
            means=self.means + (off @ gain)[:, 0],
            covariance=self.covariance - gain.transpose(0, 2, 1) @ shared,
            likelihood=self.likelihood - (np.linalg.slogdet(seen)[1] + squares) / 2,
        )

    @cached_property
    def places(self) -> Floats:
        """Where cells and pieces of them begin; of cells with few whole numbers each of these is a piece."""
        pieces = self.ends[:-1, None] + np.diff(self.ends)[:, None] * np.arange(_WITHIN) / _WITHIN
        found = [np.round(pieces).ravel(), self.ends[-1:]]
        if self.whole is not None:
            below = self.whole.below(self.ends)
            few = np.diff(below) <= _WITHIN
            numbers = below[:-1][few, None] + np.arange(_WITHIN)
            steps = self.whole.steps(numbers[numbers < below[1:][few, None]])
            found += [steps, steps + 1]
        return np.unique(np.concatenate(found))

    def off(self, q: float, places: Floats) -> tuple[Floats, Floats]:
        """What lies below places less q of all, and its variance [units of the counts, and squared].

        Over all cases, each as likely as it is.
        """
        weights = np.tril(np.ones((len(self.ends), len(self.ends) - 1)), -1) - q
        means = self.means @ weights.T
        squares = np.maximum(0.0, ((weights @ self.covariance) * weights).sum(axis=2))
        cell = np.clip(np.searchsorted(self.ends, places, side="right") - 1, 0, len(self.ends) - 2)
        parts = self._parts(places, cell)
        between = [(1 - parts) * one[:, cell] + parts * one[:, cell + 1] for one in (means, squares)]
        chance = np.exp(self.likelihood - self.likelihood.max())
        chance /= chance.sum()
        mean = chance @ between[0]
        spread = between[1] + parts * (1 - parts) * self._spread[:, cell] + (between[0] - mean) ** 2
        return mean, chance @ spread

    def _parts(self, places: Floats, cell: NDArray[np.int64]) -> Floats:
        """Which part of these cells lies below places in them, in each case, shape (cases, places)."""
        parts = (places - self.ends[cell]) / np.diff(self.ends)[cell]
        cases = [parts] * len(_ROUGH)
        if self.whole is not None:
            below, ends = self.whole.below(places), self.whole.below(self.ends)
            many = np.diff(ends)[cell]
            of_numbers = (below - ends[cell]) / np.maximum(many, 1.0)
            cases += [np.where(many > 0, of_numbers, parts)] * len(_ROUGH)
        return np.stack(cases)

    @property
    def _spread(self) -> Floats:
        """The variance of a part f of each cell given all of it, over f (1 - f), shape (cases, cells)."""
        people = np.maximum(self.means, self.person)
        all_people = np.maximum(self.means.sum(axis=1, keepdims=True), self.person)
        rough = np.resize(_ROUGH, len(people))[:, None] + np.minimum(1.0, people / all_people)
        return np.asarray(self.person * people + (rough * people) ** 2)
