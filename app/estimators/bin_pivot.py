"""What the share of some bins is read off where the number of people is secret."""

from dataclasses import dataclass
from fractions import Fraction

from app.core.epsilon import MICRO
from app.estimators.pivot import laplace_tail, ratio
from app.estimators.quantiles import ErrorLaw


@dataclass(frozen=True, slots=True)
class BinPivot:
    """The noisy counts of `inside` of `bins` bins and those of the others: (1 - p) s1 - p s2."""

    inside: int
    bins: int
    unit: float = float(MICRO)

    def position(self, first: int, second: int) -> Fraction:
        """See `ratio`."""
        return ratio(first, second)

    def value(self, p: float, first: float, second: float) -> float:
        """(1 - p) s1 - p s2."""
        return (1 - p) * first - p * second

    def laplaces(self, p: float) -> tuple[tuple[float, int], ...]:
        """One a bin, of scale 1 - p or p."""
        parts = ((1 - p, self.inside), (p, self.bins - self.inside))
        return tuple(part for part in parts if part[0] > 0)

    def normal(self, p: float) -> float:
        """None."""
        return 0.0

    def tail(self, p: float, x: float) -> float:
        """The law of all of them."""
        return laplace_tail(self.laplaces(p), x)

    def mass(self, first: float, second: float) -> float:
        """s1 + s2 is the total weight."""
        return first + second

    def mass_law(self) -> ErrorLaw:
        """A Laplace of scale 1 a bin."""
        return ErrorLaw(sigma=0.0, laplaces=((1.0, self.bins),))
