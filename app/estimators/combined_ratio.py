r"""One mean from the noisy sums of several answers, where it is secret who is in which of them.

Answer k has :math:`S_{1k} = \sum a_{ik} x_i` and :math:`S_{2k} = \sum a_{ik} (1 - x_i)` under independent
noise, over people that no one may know; only the ends of their weights, :math:`f_k \le a_{ik} \le C_k`, are
public. With :math:`\nu_k = \sqrt{f_k C_k}`, :math:`\sigma_k^2` the variance of the noise of either sum, and
:math:`c_k = \nu_k / \sigma_k^2` the answer is the ratio of

.. math:: S_1 = \sum c_k S_{1k} \quad\text{to}\quad S_1 + S_2, \qquad S_2 = \sum c_k S_{2k}:

the smallest noise for people who are in all of them (the precision :math:`\nu_k^2 / \sigma_k^2` adds up).
Nothing but question, offers that are allowed, and noise goes into c_k: neither sums nor numbers of people.

*What it is a mean of.* Of the people of all these answers; person i counts :math:`m_i = \sum c_k \nu_k` over
the answers that have i. Where all have the same people it is the mean of these. Who comes or leaves between
two answers is in one of the sums only, and no one may know who that is. Where many come, the newest answer
alone can be narrower, about its own people; that is not looked at, since it depends on who came.

*Intervals.* Let :math:`A_i = \sum c_k a_{ik}` over the same answers, mu that mean and
:math:`\rho = \min \sqrt{f_k / C_k}`. The pivot :math:`(1 - p) S_1 - p S_2` at p = mu is
:math:`\sum A_i (x_i - \mu)` and the noise :math:`\sum c_k ((1 - \mu) Z_{1k} - \mu Z_{2k})`, of known law.

- All weigh the same in each answer (:math:`f_k = C_k`): :math:`A_i = m_i` and the first part is 0.
- Otherwise :math:`r_i = A_i / m_i`, a mean of :math:`a_{ik} / \nu_k`, lies between rho and 1 / rho. With
  :math:`t = \sum A_i / \sum m_i`, the mean of r by m, the first part is :math:`\sum (A_i - t m_i) x_i`; of
  independent values in [0, 1] with one mean its variance is at most 1/4 of

  .. math:: \sum m_i^2 (r_i - t)^2 \le m \sum m_i (r_i - t)^2 \le m \sum m_i (r_i - 1)^2
      \le m (\rho^{-1/2} - \rho^{1/2})^2 \sum A_i, \qquad m = \sum_k c_k \nu_k \ge m_i,

  since t is where the second sum is smallest, and :math:`(r - 1)^2 / r` largest at the ends. That is what
  `app.estimators.pivot` takes for people who weigh between :math:`m \rho` and :math:`m / \rho`:
  :math:`(\sqrt{m / \rho} - \sqrt{m \rho})^2 \sum A_i / 4`.
- Values that go with weights: r lies between rho and 1 / rho, so by A and by m they count differently by at
  most what `app.estimators.deviations.uneven_at_most` says, of which a tilt is a part.
- About the population :math:`\sum A_i^2 \le \max A_i \sum A_i`, and :math:`A_i \le m / \rho`.

So the combination is read as one answer whose people weigh between m rho and m / rho, under that noise. What
people differ by is not halved by two answers, the noise is.

*Why not of answers that were clipped.* An answer is moved into the range where noise takes it out. The mean
of two such answers at an end errs more than the law of their noise says; sums are not clipped.

Privacy: post-processing of noisy sums that were charged when they were drawn, and of public numbers.

References:
    Kulesza, Suresh, Wang, arXiv:2312.06658v1, algorithm 3 (the ratio); weighing by precision is generalized
    least squares.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, Noise, NoNoise
from app.estimators.every_level import at_every_level
from app.estimators.hourglass import HourglassPivot
from app.estimators.interface import Conclusion, Plan, Question
from app.estimators.moments_secret import three_sums_pivot
from app.estimators.pivot import Complements, Pivot, PivotReader, two_sums_pivot
from app.estimators.quantiles import ErrorLaw, error_law
from app.estimators.transformed import predicted_error


def pivot_of(noise: Noise) -> Pivot:
    """What the noisy sums of x and of 1 - x under this noise say of the mean.

    Raises:
        InternalFault: a ratio has no such noise.
    """
    match noise:
        case DiscreteLaplace(scales=(_, _)):
            return two_sums_pivot()
        case DiscreteLaplace(scales=(_, _, _)):
            return three_sums_pivot()
        case DiscreteGaussian(sigmas=(_, _)):
            return two_sums_pivot(normal=True)
        case DiscreteGaussian(sigmas=(_, _, _)):
            return three_sums_pivot(normal=True)
        case Hourglass(epsilon=epsilon):
            return HourglassPivot(noise=noise, level=epsilon / MICRO)
        case _:
            raise InternalFault("A ratio has no such noise.")


def two_sums(values: Sequence[int]) -> tuple[int, int]:
    """The noisy sums of x and of 1 - x from the values of an answer, see `app.estimators.moments_secret`."""
    if len(values) == 2:
        first, second = values
        return first, second
    squares, mixed, others = values
    return 2 * squares + mixed, 2 * others + mixed


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioSums:
    """The noisy sums of one answer.

    Attributes:
        most, least: What a person can weigh in them, above 0 [epsilon, or mu].
        pivot: What they say.
        first, second: The sums of x and of 1 - x, not clipped [`pivot.unit`].
    """

    most: float
    least: float
    pivot: Pivot
    first: int
    second: int

    @property
    def middle(self) -> float:
        """Called nu in the module."""
        return math.sqrt(self.most * self.least)

    @property
    def factor(self) -> float:
        """Called c there: the pivot at an end of the range has the variance of one sum."""
        noise = error_law(normal_variance=self.pivot.normal(0), laplaces=self.pivot.laplaces(0))
        return self.middle / noise.variance


@dataclass(frozen=True, slots=True)
class CombinedPivot(Complements):
    """Sums of several answers, each times a factor.

    Attributes:
        parts: Factors, what the sums of such an answer say, and how many of these there are.
    """

    parts: tuple[tuple[float, Pivot, int], ...]
    unit: float = 2.0**60

    def laplaces(self, p: float) -> tuple[tuple[float, int], ...]:
        """The Laplaces of all answers; hourglasses are nearly like them."""
        return _laplaces((factor, pivot.laplaces(p), times) for factor, pivot, times in self.parts)

    def normal(self, p: float) -> float:
        """Of all answers together."""
        return sum(times * factor**2 * pivot.normal(p) for factor, pivot, times in self.parts)

    def spread(self) -> tuple[float, float, float] | None:
        """Of all answers together."""
        each = [(times * factor**2, pivot.spread()) for factor, pivot, times in self.parts]
        known = [(times, spread) for times, spread in each if spread is not None]
        if len(known) < len(each):
            return None
        whole = [sum(times * spread[power] for times, spread in known) for power in range(3)]
        return whole[0], whole[1], whole[2]

    def tail(self, p: float, x: float) -> float:
        """The law of all their noises; with one answer its own."""
        match self.parts:
            case ((factor, pivot, 1),):
                return pivot.tail(p, x / factor)
        plain = [part for part in self.parts if not isinstance(part[1], HourglassPivot)]
        return ErrorLaw(
            sigma=math.sqrt(self.normal(p)),
            laplaces=_laplaces((factor, pivot.laplaces(p), times) for factor, pivot, times in plain),
            others=tuple(
                pivot.law(p, factor, times)
                for factor, pivot, times in self.parts
                if isinstance(pivot, HourglassPivot)
            ),
        ).tail(x)

    def mass_law(self) -> ErrorLaw:
        """The law of the error of the mass that all answers say."""
        laws = [(factor, pivot.mass_law(), times) for factor, pivot, times in self.parts]
        return error_law(
            normal_variance=sum(times * (factor * law.sigma) ** 2 for factor, law, times in laws),
            laplaces=_laplaces((factor, law.laplaces, times) for factor, law, times in laws),
        )


def _laplaces(
    parts: Iterable[tuple[float, Sequence[tuple[float, int]], int]],
) -> tuple[tuple[float, int], ...]:
    """(scale, how many) of (factor, Laplaces, times); zero scales are no noise."""
    found: Counter[float] = Counter()
    for factor, laplaces, times in parts:
        for scale, count in laplaces:
            found[factor * scale] += count * times
    return tuple((scale, count) for scale, count in found.items() if scale > 0)


def combined_ratio(question: Question, sums: Sequence[RatioSums]) -> tuple[Plan, Conclusion]:
    """Read the sums of several answers as one.

    Args:
        question: What is asked.
        sums: Of at least one answer.

    Returns:
        A plan without queries, which says what was predicted from public numbers, and what was read. The
        `details` hold noisy_count, a mean over the answers by their `weights`, and these: what a person
        counts for being in each, in the order of the answers; they sum to 1.

    Privacy: free, see the module.
    """
    precisions = [one.factor * one.middle for one in sums]
    whole = math.fsum(precisions)
    # Divided by the whole, so that who is in all answers counts 1.
    factors = [one.factor / whole for one in sums]
    parts = Counter(zip(factors, (one.pivot for one in sums), strict=True))
    pivot = CombinedPivot(tuple((factor, one, times) for (factor, one), times in parts.items()))
    ratios = min(math.sqrt(one.least / one.most) for one in sums)
    reader = PivotReader(grid=question.grid, cap=1 / ratios, floor=ratios, pivot=pivot, tilt=question.tilt)
    added = [
        sum(
            (Fraction(factor) / Fraction(one.pivot.unit) * value for factor, one, value in each),
            Fraction(),
        )
        for each in (
            [(factor, one, one.first) for factor, one in zip(factors, sums, strict=True)],
            [(factor, one, one.second) for factor, one in zip(factors, sums, strict=True)],
        )
    ]
    values = [round(total * Fraction(pivot.unit)) for total in added]
    most = math.fsum(factor * one.most for factor, one in zip(factors, sums, strict=True))
    plan = Plan(
        queries=(),
        noise=NoNoise(),
        predicted_error=predicted_error(question, reader, most),
        conclude=reader.conclude,
    )
    found = at_every_level(lambda: reader.conclude(values))
    weights = [precision / whole for precision in precisions]
    return plan, replace(found, details={**found.details, "weights": weights})
