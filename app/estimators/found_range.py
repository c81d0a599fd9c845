r"""The range of a mean, found before it: the outermost bins of a coarse distribution that hold people.

*Two parts of one release.* The first one asks for a noisy count of each bin of a ladder, with a part of
what a person offers. What is read off the counts is the range [l, u]. The second one asks for the mean of
the values moved into [l, u], with the rest of the offer and with noise for the width of [l, u].

*Privacy.* Let :math:`N` be the noisy counts, :math:`T` the noisy sum, and x, x' neighbors that differ in a
person of a cohort with the weights W_1 in the counts and W_2 in the sum. The sum's noise depends on the
counts only through what is published, [l, u], which is a function of N. So the density of both is a product,

.. math:: \frac{p(N, T \mid x)}{p(N, T \mid x')}
          = \frac{p(N \mid x)}{p(N \mid x')} \cdot \frac{p(T \mid x, [l, u](N))}{p(T \mid x', [l, u](N))},

and for every N the factors are bounded apart from each other. The first one is the price of bins
(`app.accounting.shape_prices`). In the second one :math:`T = \sum_i W_{2i} (\mathrm{clip}(q_i) - l) + Z`
with values in [0, u - l], [l, u] being a constant: a sum over the range [l, u], whose noise has the scale of
the declared range times (u - l) / 2^30, and a person moves it by that much less. Loss over scale is that of
the mean over the declared range, for every [l, u]. So the price of the release is, for each cohort by itself,
the sum of both prices (sequential composition, adaptive in the second part). Were [l, u] read off exact
counts, the second factor would compare two different laws, and nothing would bound it: the privacy audit has
that as a planted bug.

*By labels.* The range is one for all, read off the counts of all people. Then each label of an attribute has
a sum :math:`T_l` of its own over it, with independent noise. Given N no sum depends on another one, and a
person of label l is in :math:`T_l` alone, so where x and x' differ in that person

.. math:: \frac{p(N, T_1, \dots, T_K \mid x)}{p(N, T_1, \dots, T_K \mid x')}
          = \frac{p(N \mid x)}{p(N \mid x')} \cdot \frac{p(T_l \mid x, [l, u](N))}{p(T_l \mid x', [l, u](N))},

all other factors being equal: the price of one found range and of one mean, whatever K (parallel composition
given N; McSherry, SIGMOD 2009, doi:10.1145/1559845.1559850, theorem 4). Labels are public and stay in
replace_one; in add_remove_one every declared label is answered, and a person comes or goes with one. That no
cohort is charged twice is checked. The mean of all people is read off the sums of labels
(`app.estimators.labels_public`, `app.estimators.labels_secret`), which costs nothing. Of m people outside at
most all m have one label, so of its :math:`n_l` people at most the part :math:`m / n_l` is outside, for all
labels at once.

*The ladder.* Bins end at 1, 1.5, 2, 3, 5 and 7 times powers of ten on both sides of zero, over five decades:
a range that is 10 or 10,000 times too wide is found as well. Where a range has few such numbers, because it
is narrow and far from zero, sixteenths of it stand in their place.

*The rule.* With noise of scale b in K bins, a count above :math:`b \ln(K / 2 \beta)` belongs to a bin that
holds people, in all bins together but for a chance of beta. From the outermost two such bins on, the range
goes on over neighbors with a count above b, and then over one more bin on each side: what a bin hides next to
those that are seen is what values in a tail would be moved for. Where the bins of the range hold less than
nine tenths of the people by their noisy counts, or these together would not be seen in one bin, too little is
known, and the declared range stays.

*Outside.* The bands of the distribution function hold at all ends of bins together
(`app.estimators.shares`), so also at those two that the counts themselves chose.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise, NoNoise
from app.estimators.shares import SharesPlan

MANTISSAS = (10, 15, 20, 30, 50, 70)
"""Tenths at which bins end, in every decade."""

DECADES = 5

EQUAL = 16
"""Equal bins of a range that has fewer steps of the ladder than that."""

RISK = 0.002
"""Chance that an empty bin is taken for one that holds people; beta."""

MOST_OUTSIDE = Fraction(1, 10)
"""Part of all people, by noisy counts, beyond which a range is not narrowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRange:
    """A range that was found.

    Attributes:
        low, high: Its ends, low < high [grid steps of the declared range].
        outside: At most this part of the people lies outside, in 95 of 100 answers.
    """

    low: int
    high: int
    outside: float

    @property
    def width(self) -> int:
        """Of the range [grid steps]."""
        return self.high - self.low

    def grid(self, declared: Grid) -> Grid:
        """The range in the data's unit, with a grid of its own."""
        steps = declared.width / GRID_SIZE
        lower = Fraction(declared.lower)
        return Grid(lower + self.low * steps, lower + self.high * steps)


def ladder(grid: Grid) -> tuple[int, ...]:
    """Where bins of a range begin and end, both ends of it included.

    Args:
        grid: Of the study.

    Returns:
        Ascending, from 0 to 2^30 [grid steps].
    """
    lower, upper = Fraction(grid.lower), Fraction(grid.upper)
    top = Decimal(float(max(abs(lower), abs(upper)))).adjusted()
    inner = set()
    for power in range(top - DECADES, top + 1):
        for mantissa in MANTISSAS:
            for sign in (1, -1):
                inner.add(grid.point(sign * mantissa, power - 1))
    inner.add(grid.point(0, 0))
    edges = {0, GRID_SIZE, *(point for point in inner if point is not None)}
    if len(edges) <= EQUAL:
        edges = set(range(0, GRID_SIZE + 1, GRID_SIZE // EQUAL))
    return tuple(sorted(edges))


def find(plan: SharesPlan, edges: Sequence[int], counts: Sequence[int]) -> FoundRange:
    """Read the range off noisy counts.

    Args:
        plan: Of the counts.
        edges: The ends of the bins [grid steps].
        counts: Noisy, one a bin.

    Privacy: post-processing of the counts.
    """
    total = plan.weighing.mass or sum(counts)
    first, last = outermost(plan.scale, plan.above(RISK / len(counts)), counts, total)
    return FoundRange(low=edges[first], high=edges[last + 1], outside=plan.outside(counts, first, last))


def outermost(scale: float, clear: float, counts: Sequence[int], total: int) -> tuple[int, int]:
    """The first and the last bin of the range; see the module's docstring.

    Args:
        scale: Of the noise of a count [units of the counts].
        clear: What is no noise [the same].
        counts: Noisy, one a bin.
        total: The weight of all people, noisy where it is secret.
    """
    bins = len(counts)
    seen = [place for place, count in enumerate(counts) if count > clear]
    if not seen or (1 - MOST_OUTSIDE) * total <= clear:
        return 0, bins - 1
    first, last = seen[0], seen[-1]
    while first > 0 and counts[first - 1] > scale:
        first -= 1
    while last < bins - 1 and counts[last + 1] > scale:
        last += 1
    first, last = max(first - 1, 0), min(last + 1, bins - 1)
    if sum(counts[first : last + 1]) < (1 - MOST_OUTSIDE) * total:
        return 0, bins - 1
    return first, last


def narrowed(noise: Noise, width: int) -> Noise:
    """Noise for a sum over the whole range as noise for one over a part of it; never less than its share.

    Args:
        noise: Laplace or Gaussian noise, or none.
        width: Of the part [grid steps].

    Returns:
        Scales times width / 2^30, rounded up to a double. Of Gaussian noise 3 more: discrete noise of sigma
        is worth sigma^2 - 9, which must not fall by more than the square of the width.

    Raises:
        InternalFault: other noise.
    """
    match noise:
        case NoNoise():
            return noise
        case DiscreteLaplace(scales=scales):
            return DiscreteLaplace(
                scales=tuple(_at_least(Fraction(scale) * width / GRID_SIZE) for scale in scales)
            )
        case DiscreteGaussian(sigmas=sigmas):
            return DiscreteGaussian(
                sigmas=tuple(_at_least(Fraction(sigma) * width / GRID_SIZE + 3) for sigma in sigmas)
            )
        case _:
            raise InternalFault("There is no such noise for a part of the range.")


def _at_least(number: Fraction) -> float:
    rounded = float(number)
    return rounded if Fraction(rounded) >= number else math.nextafter(rounded, math.inf)
