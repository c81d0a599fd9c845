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

*Sums.* Given noisy sums :math:`y = H N + Z` the best linear estimate of counts with mean m and covariance S
is :math:`m + K (y - H m)`, with the covariance :math:`(I - K H) S` and
:math:`K = S H^T (H S H^T + \operatorname{Var} Z)^{-1}` (Kalman 1960, doi:10.1115/1.3662552). A total that is
public has no variance, so the counts of all cells keep to it.

Estimates and the places of cells are good where values are spread so. No interval rests on it.

Privacy: post-processing of noisy counts, and of what is public.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUGH = 0.2
"""How uneven a density is within a cell of few people; rho_0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellCounts:
    """What is known of the counts of cells.

    Attributes:
        ends: Where they begin and end, shape (cells + 1,) [grid steps].
        means: What is expected, shape (cells,) [units of the counts].
        covariance: Of counts, shape (cells, cells) [the same, squared].
        person: What a person adds to a count, above 0 [units of the counts].
    """

    ends: Floats
    means: Floats
    covariance: Floats
    person: float

    @classmethod
    def of_all(cls, end: float, total: float, variance: float, person: float) -> Self:
        """One cell of all people, from 0 to `end`; `variance` is that of `total`."""
        ends, covariance = np.array([0.0, end]), np.array([[variance]])
        return cls(ends=ends, means=np.array([total]), covariance=covariance, person=person)

    def cut(self, starts: Sequence[int]) -> Self:
        """The cells, cut at these places [grid steps]."""
        ends = np.union1d(self.ends, np.array(starts, dtype=np.float64))
        owner = np.searchsorted(self.ends, ends[:-1], side="right") - 1
        parts = np.diff(ends) / np.diff(self.ends)[owner]
        of_owner = parts[:, None] * (owner[:, None] == np.arange(len(self.means)))
        spread = parts * self._spread[owner]
        apart = np.diag(spread) - (owner[:, None] == owner) * spread[:, None] * parts
        return replace(
            self,
            ends=ends,
            means=of_owner @ self.means,
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
        gain = np.linalg.solve(shared @ of.T + variance * np.eye(len(sums)), shared).T
        means, covariance = self.means + gain @ (sums - of @ self.means), self.covariance - gain @ shared
        return replace(self, means=means, covariance=covariance)

    def off(self, q: float, places: Floats) -> tuple[Floats, Floats]:
        """What lies below places less q of all, and its variance [units of the counts, and squared]."""
        weights = np.tril(np.ones((len(self.ends), len(self.means))), -1) - q
        spread = np.maximum(0.0, np.einsum("ij,jk,ik->i", weights, self.covariance, weights))
        cell = np.clip(np.searchsorted(self.ends, places, side="right") - 1, 0, len(self.means) - 1)
        parts = (places - self.ends[cell]) / np.diff(self.ends)[cell]
        within = parts * (1 - parts) * self._spread[cell]
        return np.interp(places, self.ends, weights @ self.means), np.interp(
            places, self.ends, spread
        ) + within

    @property
    def _spread(self) -> Floats:
        """The variance of a part f of each cell given all of it, over f (1 - f)."""
        people = np.maximum(self.means, self.person)
        rough = _ROUGH + np.minimum(1.0, people / max(float(self.means.sum()), self.person))
        return np.asarray(self.person * people + (rough * people) ** 2)
