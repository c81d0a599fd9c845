"""What the share of some bins is read off where the number of people is secret."""

import math
from dataclasses import dataclass

from app.core.epsilon import MICRO
from app.estimators.pivot import Complements
from app.estimators.quantiles import ErrorLaw


@dataclass(frozen=True, slots=True)
class BinPivot(Complements):
    """The noisy counts of `inside` of `bins` bins and those of the others: (1 - p) s1 - p s2.

    Attributes:
        inside, bins: How many.
        unit: One epsilon times one person [units of the counts].
        sigma: Of Gaussian noise of a bin [`unit`]; 0 where it is Laplace noise of scale 1.
    """

    inside: int
    bins: int
    unit: float = float(MICRO)
    sigma: float = 0.0

    def laplaces(self, p: float) -> tuple[tuple[float, int], ...]:
        """One a bin, of scale 1 - p or p."""
        parts = () if self.sigma else ((1 - p, self.inside), (p, self.bins - self.inside))
        return tuple(part for part in parts if part[0] > 0)

    def normal(self, p: float) -> float:
        """Of Gaussian noise."""
        return self.sigma**2 * ((1 - p) ** 2 * self.inside + p**2 * (self.bins - self.inside))

    def tail(self, p: float, x: float) -> float:
        """The law of all of them."""
        return ErrorLaw(sigma=math.sqrt(self.normal(p)), laplaces=self.laplaces(p)).tail(x)

    def mass_law(self) -> ErrorLaw:
        """The noise of all bins."""
        return ErrorLaw(
            sigma=self.sigma * math.sqrt(self.bins), laplaces=() if self.sigma else ((1.0, self.bins),)
        )
