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

*Roughness.* How uneven densities are differs: numbers spread evenly have a small :math:`\rho_0`, whole ones
a large one. Counts are estimated for several, and each estimate weighs what its likelihood is, that of a
Normal law of all noisy sums. So sums that differ as noise alone would are taken for noise, and those of
coarse values for what values do.

*Sums.* Given noisy sums :math:`y = H N + Z` the best linear estimate of counts with mean m and covariance S
is :math:`m + K (y - H m)`, with the covariance :math:`(I - K H) S` and
:math:`K = S H^T (H S H^T + \operatorname{Var} Z)^{-1}` (Kalman 1960, doi:10.1115/1.3662552). A total that is
public has no variance, so the counts of all cells keep to it.

Estimates and the places of cells are good where values are spread so. No interval rests on it.

Privacy: post-processing of noisy counts, and of what is public.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUGH: Floats = np.array([0.05, 0.1, 0.2, 0.4])
"""How uneven a density may be within a cell of few people; each rho_0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts:
    """What is known of the counts of cells.

    Attributes:
        ends: Where they begin and end, shape (cells + 1,) [grid steps].
        means: What is expected at each roughness, shape (roughness, cells) [units of the counts].
        covariance: Of counts at each, shape (roughness, cells, cells) [the same, squared].
        likelihood: Logarithm of that of the sums so far at each, up to a constant, shape (roughness,).
        person: What a person adds to a count, above 0 [units of the counts].
    """

    ends: Floats
    means: Floats
    covariance: Floats
    likelihood: Floats
    person: float

    @classmethod
    def of_all(cls, end: float, total: float, variance: float, person: float) -> Self:
        """One cell of all people, from 0 to `end`; `variance` is that of `total`."""
        many = len(_ROUGH)
        return cls(
            ends=np.array([0.0, end]),
            means=np.full((many, 1), total),
            covariance=np.full((many, 1, 1), variance),
            likelihood=np.zeros(many),
            person=person,
        )

    def cut(self, starts: Sequence[int]) -> Self:
        """The cells, cut at these places [grid steps]."""
        ends = np.union1d(self.ends, np.array(starts, dtype=np.float64))
        owner = np.searchsorted(self.ends, ends[:-1], side="right") - 1
        parts = np.diff(ends) / np.diff(self.ends)[owner]
        of_owner = parts[:, None] * (owner[:, None] == np.arange(len(self.ends) - 1))
        spread = (parts * self._spread[:, owner])[:, :, None]
        apart = spread * (np.eye(len(owner)) - (owner[:, None] == owner) * parts)
        return replace(
            self,
            ends=ends,
            means=self.means @ of_owner.T,
            covariance=of_owner @ self.covariance @ of_owner.T + apart,
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

    def off(self, q: float, places: Floats) -> tuple[Floats, Floats]:
        """What lies below places less q of all, and its variance [units of the counts, and squared]."""
        means, covariance, within = self._mixed
        weights = np.tril(np.ones((len(self.ends), len(means))), -1) - q
        spread = np.maximum(0.0, np.einsum("ij,jk,ik->i", weights, covariance, weights))
        cell = np.clip(np.searchsorted(self.ends, places, side="right") - 1, 0, len(means) - 1)
        parts = (places - self.ends[cell]) / np.diff(self.ends)[cell]
        between = np.interp(places, self.ends, spread) + parts * (1 - parts) * within[cell]
        return np.interp(places, self.ends, weights @ means), between

    @cached_property
    def _mixed(self) -> tuple[Floats, Floats, Floats]:
        """Means, covariance and `_spread` over every roughness, each as likely as it is."""
        chance = np.exp(self.likelihood - self.likelihood.max())
        chance /= chance.sum()
        means = chance @ self.means
        apart = self.means - means
        covariance = np.tensordot(chance, self.covariance, 1) + (chance * apart.T) @ apart
        return means, covariance, chance @ self._spread

    @property
    def _spread(self) -> Floats:
        """The variance of a part f of each cell given all of it, over f (1 - f), shape (roughness, cells)."""
        people = np.maximum(self.means, self.person)
        all_people = np.maximum(self.means.sum(axis=1, keepdims=True), self.person)
        rough = _ROUGH[:, None] + np.minimum(1.0, people / all_people)
        return np.asarray(self.person * people + (rough * people) ** 2)
