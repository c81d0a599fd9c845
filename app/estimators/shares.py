r"""Shares of people by bin, and the distribution function, from one noisy count a bin.

Each of K bins has the integer count :math:`N_k = \sum_{x_i \in k} W_i` plus discrete Laplace noise. A person
who is replaced moves two counts by W each, so with the scale 2 in units of one epsilon the price is W; one
who is added moves one, so there the scale is 1 (`app.accounting.shape_prices`). Under Gaussian noise of
:math:`\sigma` a person pays :math:`\mu^2 = 2 W^2 / \sigma^2`, or the half of that. An offer of mu^2 weighs
:math:`\sqrt 2 \mu` (`app.estimators.calibration`), so sigma is 2, or :math:`\sqrt 2`; a unit more of the
weights, since discrete noise costs a little more.

*Two bins, replace_one.* There the first count is T less the last one, and T is public. So only the last one
is drawn, with noise of the scale b = 1, or :math:`\sigma = \sqrt 2`: a person moves it by W at most, which
costs what W costs in two counts of twice the scale, or variance. The shares are :math:`N_2 / T` and one less
that, with noise of the variance :math:`2 b^2`; moved onto the plane two counts of the scale 2b have twice
that, and two Gaussians the same. Pieces that versions up to 1.0 began have both counts, and go on with them.

*replace_one.* The total T is public. With b the scale over T, the share of any j bins is estimated by

.. math:: \frac{\sum_{k \in J} N_k}{T} + \frac jK \Big(1 - \frac{\sum_k N_k}{T}\Big),

the noisy counts moved onto the plane on which they sum to T. Its noise has exactly the law of j Laplaces of
scale :math:`(1 - j/K) b` and K - j of scale :math:`(j/K) b`; of Gaussians with the standard deviation b
that is one of variance :math:`j (1 - j/K) b^2`. Shares of single bins are then projected on the
simplex, cumulated ones by isotonic regression, which can only bring them nearer to the truth.

*Weights.* The error of all bins together is at most
:math:`(1 - 1/K) \sum w_i^2 + 8 (K - 1) \eta^2 + 2 (tilt\,TV)^2`: a bin's indicator has variance p (1 - p),
these sum to at most 1 - 1/K; the noise of scale 2 eta in K bins has variance 8 K eta^2, of which the plane
leaves 1 - 1/K; and two distributions that differ by tilt in total variation differ by at most 2 tilt^2 in
squares. Divided by 4 (K - 1) that is the target of `app.estimators.affine` with variance 1 / 4K in place of
s2. Under Gaussian noise, and of two bins, 4 (K - 1) takes the place of 8 (K - 1), and 2 (K - 1) that of what
is divided by.

*Reports.* Local people who report a choice have a part in it, bin by bin: with :math:`c_h` the weight of one
report of group h and :math:`\lambda = \sum m_h c_h` the shares are :math:`1 - \lambda` times those of the
noisy counts plus :math:`\sum_h m_h c_h \hat f_h` (`app.estimators.choice_reports`), which adds
:math:`\sum_h m_h c_h^2 R_h` to the error of all bins. The same problem of `app.estimators.affine`, with the
noise of a report, R_h, divided by the same as the rest, finds all weights together.

*At all steps.* Moved onto the plane, the noise of a bin is that of all bins. Its own noisy count over T is
unbiased, too, with the noise of each piece of its own, which `app.estimators.anytime` bounds at all steps;
beside it are the values of people who weigh differently, and reports. What that interval does not reject,
with the interval of this step, holds the share at all steps at once.

*add_remove_one.* The total is secret, and the share of j bins is read off two noisy sums, that of its bins
and that of the others (`app.estimators.pivot`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from app.accounting.measurement import Workload
from app.core.grid import Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation
from app.estimators import confidence, isotonic
from app.estimators.anytime import Steps
from app.estimators.bin_shares import BinShares, Ends, on_simplex, rising_band, shares_of
from app.estimators.choice_reports import Reported
from app.estimators.every_level import once
from app.estimators.interface import Coverage
from app.estimators.pivot import LinearPivot, PivotReader, mass_risk, ratio
from app.estimators.quantile_tables import quantiles_of
from app.estimators.quantiles import ErrorLaw, error_law
from app.estimators.share_hulls import Tested, hulls
from app.estimators.weighing import Target, Weighing

UNIT = Grid(Decimal(0), Decimal(1))
"""Shares are positions between 0 and 1."""

_VARIANCES = 24
"""Variances of an indicator for which a quantile is computed; in between the next larger one counts."""

_DEVIATIONS = [0.5 * place / _VARIANCES for place in range(_VARIANCES + 1)]
_SHARES = [0.5 - math.sqrt(0.25 - deviation**2) for deviation in _DEVIATIONS]
"""The smaller shares with these deviations."""

_ENDS = np.array([*_SHARES, *(1 - share for share in _SHARES[-2::-1])])
_LOWS, _HIGHS = _ENDS[:-1], _ENDS[1:]
"""Steps of p between which margins change: up to a half, and from there on the same upside down."""


def error_unit(bins: int, currency: Currency) -> int:
    """What the error of all bins is divided by in the target of weights; see the module's docstring."""
    return (2 if bins == 2 else 2 * currency.variance) * (bins - 1)


def target_of(bins: int, tilt: float, currency: Currency = Currency.LAPLACE) -> Target:
    """What weights make small; see the module's docstring."""
    unit = error_unit(bins, currency)
    return Target(variance=(bins - 1) / (bins * unit), tilt=tilt * math.sqrt(2 / unit))


def counts_of(bins: int, relation: Relation) -> int:
    """How many noisy counts there are: one of two bins whose total is public, else one a bin."""
    return 1 if bins == 2 and not relation.hides_people else bins


Noisy = tuple[Sequence[int], Sequence[Sequence[int]]]
"""Noisy counts, and for each local group how many of its reports have which choice in them."""


@dataclass(frozen=True)
class SharesPlan:
    """One release of shares by bin.

    Attributes:
        bins: K, at least 2.
        weighing: What people count for.
        people: add_remove_one: the number of people to predict for; None: unknown.
        reported: replace_one: local groups with a part in it.
        parts: Of shares that are read off those of labels, see `app.estimators.label_shares`: the plans of
            these, and the part of all people that each label has, 1 where that is secret. Or of pieces, see
            `app.estimators.piece_shares`.
        size: Of the noise of each count, as `scale`, where the counts are there already; else None.
        steps: Of pieces: how their noise was drawn, in the order of those parts that have noise.
        both: Of pieces: whether both of two bins have a noisy count, see `counts_of`.
    """

    workload: ClassVar[Workload] = Workload.BINS

    bins: int
    weighing: Weighing
    people: float | None = None
    reported: tuple[Reported, ...] = ()
    parts: "tuple[tuple[float, SharesPlan], ...]" = ()
    size: float | None = None
    steps: Steps | None = None
    both: bool = False

    @property
    def drawn(self) -> int:
        """How many noisy counts are drawn."""
        return self.bins if self.both else counts_of(self.bins, self.weighing.relation)

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of each count [units of the weights]."""
        moves, unit = min(self.weighing.relation.moved, self.drawn), self.weighing.unit
        if self.weighing.is_gaussian:
            return DiscreteGaussian(sigmas=(math.sqrt(2 * moves) * unit + 1,) * self.drawn)
        return DiscreteLaplace(scales=(float(moves * unit),) * self.drawn)

    @property
    def predicted_error(self) -> float:
        """Root mean square error of a bin's share about the dataset, over all bins."""
        rest = 1 - 1 / self.bins
        if self.weighing.is_public:
            noise = self.bins * self._left(1) * self._variance
            noise += sum(group.scale * group.noise.total for group in self.reported)
            bias = 2 * self.weighing.bias**2
            return min(1.0, math.sqrt((rest * self.weighing.uneven + noise + bias) / self.bins))
        if not self.people:
            return 1.0
        noise = rest * self._of_bin * max(1, len(self.parts)) / (self.weighing.cap * self.people) ** 2
        return min(1.0, math.sqrt(noise + 2 * self.weighing.bias**2 / self.bins))

    @property
    def interval_width(self) -> float:
        """Predicted width of a bin's interval for the dataset, at most 1."""
        variance = 0.25 * self.weighing.uneven + self._report_variance(0.5)
        margin = self._law(1, variance).quantile() + self._step + self.weighing.bias
        return min(1.0, 2 * margin)

    @property
    def anytime_half_width(self) -> float | None:
        """Predicted half of a bin's interval that holds at all steps, at most 1; None without steps."""
        if self.steps is None:
            return None
        return min(1.0, max(self.interval_width / 2, self._reaches(self.steps)[0]))

    def read(self, counts: Sequence[int], reports: Sequence[Sequence[int]] = ()) -> BinShares:
        """Read the noisy counts.

        Args:
            counts: Of central and public people, noisy, as many as `drawn` says.
            reports: For each local group how many of its reports have each choice in them.

        Privacy: post-processing of the counts and the reports.
        """
        return self.read_labels([(counts, reports)])

    def read_labels(self, labels: Sequence[Noisy]) -> BinShares:
        """Read what `read` gets of each part, or of the only one there is, for all of them together.

        Privacy: post-processing of the counts and the reports.
        """
        if not self.weighing.is_public:
            return self._read_secret(self.counts(labels))
        always = () if self.steps is None else (self._at_all_steps(self.steps, labels),)
        return self._read_public(self.shares(labels), always)

    def counts(self, labels: Sequence[Noisy]) -> list[int]:
        """add_remove_one: the noisy counts of all parts together [units of the weights]."""
        return [sum(of_bin) for of_bin in zip(*(counts for counts, _ in labels), strict=True)]

    def shares(self, labels: Sequence[Noisy], *, moved: bool = True) -> NDArray[np.float64]:
        """replace_one: the unbiased shares of all parts together, `moved` so that they sum to 1."""
        parts = self.parts or ((1.0, self),)
        planes = [share * plan._plane(*own, moved) for (share, plan), own in zip(parts, labels, strict=True)]
        return np.asarray(np.sum(planes, axis=0), dtype=np.float64)

    def _at_all_steps(self, steps: Steps, labels: Sequence[Noisy]) -> Ends:
        """For each bin the shares that are not rejected at any step; see the module."""
        margins = np.array(self._reaches(steps))[:, None]
        own = self.shares(labels, moved=False)
        return own - margins, own + margins

    def _reaches(self, steps: Steps) -> list[float]:
        """How far a share is at most from the noisy one at all steps, for each level that is asked for."""
        noises = [abs(share) * scale for share, plan in self.parts if plan.size for scale in plan.scales]
        variance = 0.25 * self.weighing.uneven + max(map(self._report_variance, (0.0, 1.0)))
        deviation, off = math.sqrt(variance), self._step + self.weighing.bias

        def reach() -> float:
            return steps.always(noises) + NormalDist().inv_cdf(1 - steps.risk / 2) * deviation + off

        return confidence.at_each(reach)

    def outside(self, counts: Sequence[int], first: int, last: int) -> float:
        """The largest share of the people that may lie outside of some bins, however these were chosen.

        By the band of the distribution function, which holds at the ends of all bins together.

        Args:
            counts: Noisy, one a bin.
            first, last: The bins.

        Privacy: post-processing of the counts.
        """
        ends = [(first, sum(counts[:first])), (self.bins - 1 - last, sum(counts[last + 1 :]))]
        return min(1.0, sum(self._most(bins, count, sum(counts)) for bins, count in ends if bins))

    def _most(self, inside: int, count: int, total: int) -> float:
        """The upper end of the band for the share of the first or the last few bins."""
        risk, others = confidence.risk(), max(1, self.bins - 1)
        if not self.weighing.is_public:
            of_total = 0.0 if self.weighing.is_equal else mass_risk()
            each = of_total + (risk - of_total) / others
            return self._hull_secret(inside, count, total - count, each)[1]
        raw, whole = (float(Fraction(number, self.weighing.mass)) for number in (count, total))
        law = self._law(min(inside, self.bins - inside), 0.25 * self.weighing.uneven)
        margin = law.quantile(1 - risk / others) + self._step + self.weighing.bias
        return max(0.0, raw + inside / self.bins * (1 - whole)) + margin

    @property
    def scale(self) -> float:
        """Of the noise of a bin: the scale, or the standard deviation of Gaussian noise [as weights]."""
        if self.size is not None:
            return self.size
        noise = self.noise
        return noise.sigmas[0] if isinstance(noise, DiscreteGaussian) else noise.scales[0]

    def above(self, risk: float) -> float:
        """What the noise of a bin exceeds with this probability, below 1/2 [as weights]."""
        times = NormalDist().inv_cdf(1 - risk) if self.weighing.is_gaussian else -math.log(2 * risk)
        return self.scale * times

    @property
    def _of_bin(self) -> float:
        """The variance of a bin's noise [units of the weights, squared]."""
        return self.weighing.currency.variance * self.scale**2

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """replace_one: of the noises of a bin's share, as `scale`, before they are moved onto the plane."""
        if self.parts:
            return tuple(share * scale for share, plan in self.parts for scale in plan.scales)
        return (self.scale * self.weighing.private / max(self.weighing.mass, 1),)

    @property
    def _variance(self) -> float:
        """Of all of them [1]."""
        return self.weighing.currency.variance * math.fsum(scale * scale for scale in self.scales)

    @property
    def _step(self) -> float:
        """Half of the largest single weight, where weights are unequal: sums of indicators are a lattice.

        So are reports, in steps of what one of them moves.
        """
        if self.reported:
            return max(self.weighing.largest, *(group.moves for group in self.reported)) / 2
        return self.weighing.largest / 2 if self.weighing.uneven else 0.0

    def _report_variance(self, share: float) -> float:
        """Of the noise of all reports in one bin that has this share of the people."""
        return sum(
            group.scale * (share * group.noise.own + (1 - share) * group.noise.others)
            for group in self.reported
        )

    def _margins(
        self, cases: Sequence[tuple[int, float]], levels: Sequence[float], step: float
    ) -> NDArray[np.float64]:
        """Half of intervals for bins, shape (levels, cases).

        Args:
            cases: How many bins, and the variance of what is not noise of them.
            levels: Of the intervals.
            step: What one person adds.
        """
        laws = [self._law(inside, variance) for inside, variance in cases]
        return quantiles_of(laws, levels).T + (step + self.weighing.bias)

    def _law(self, inside: int, variance: float) -> ErrorLaw:
        """Of noise of `inside` bins, and of a Normal part of this variance."""
        part = inside / self.bins
        laplaces: tuple[tuple[float, int], ...] = ()
        if self.weighing.is_gaussian:
            variance += self._left(inside) * self._variance
        else:
            mixed = ((1.0, 1),) if self.drawn == 1 else ((1 - part, inside), (part, self.bins - inside))
            laplaces = tuple((times * scale, count) for scale in self.scales for times, count in mixed)
        return error_law(normal_variance=variance, laplaces=laplaces)

    def _left(self, inside: int) -> float:
        """The variance of the noise in `inside` bins on the plane, over that of one count's noise."""
        return 1.0 if self.drawn == 1 else inside * (1 - inside / self.bins)

    def _plane(
        self, counts: Sequence[int], reports: Sequence[Sequence[int]], moved: bool = True
    ) -> NDArray[np.float64]:
        """Noisy counts and reports as unbiased shares, `moved` so that they sum to 1."""
        plane = np.zeros(self.bins)
        if self.weighing.mass:
            every = counts if len(counts) == self.bins else (self.weighing.mass - counts[0], counts[0])
            raw = np.array([float(Fraction(count, self.weighing.mass)) for count in every])
            rest = (1 - raw.sum()) / self.bins if moved else 0.0
            plane = self.weighing.private * (raw + rest)
        for group, own in zip(self.reported, reports, strict=True):
            plane = plane + group.part * group.noise.shares(own, group.people)
        return plane

    def _read_public(self, plane: NDArray[np.float64], always: Sequence[Ends]) -> BinShares:
        """Read shares on the plane; `always` has the ends of what holds at all steps, if anything does."""
        weighing, bins, levels = self.weighing, self.bins, confidence.levels()
        # Single bins: whatever share p is not too far away, given the variance p (1 - p) of its indicator.
        together = [1 - (1 - level) / bins for level in levels]
        lower, upper = self._hulls(plane, weighing.uneven, (*levels, *together), self._step)
        alone = len(levels)
        dataset, jointly = (lower[:alone], upper[:alone]), (lower[alone:], upper[alone:])
        population = self._hulls(plane, weighing.squares, levels, weighing.largest / 2)
        shares = on_simplex(plane)
        held = [(np.minimum(lower, dataset[0]), np.maximum(upper, dataset[1])) for lower, upper in always]
        if self.reported:  # A choice has no order, so nothing is cumulated.
            every: Coverage = "worst_case"
            single = shares_of(shares, (dataset, population, jointly, *held), [every] * (3 + len(held)))
            return BinShares(bins=single, cumulative=(), noisy_count=None)
        # Cumulated bins: bands whose ends hold together, by the union bound over all of them.
        cumulated = np.cumsum(plane)[:-1]
        rising = np.clip(isotonic.rising(cumulated), 0.0, 1.0)
        each = [1 - (1 - level) / max(1, bins - 1) for level in levels]
        own, nearest = np.clip(cumulated, 0.0, 1.0), [min(j, bins - j) - 1 for j in range(1, bins)]
        bands = []
        for spread, step in ((weighing.uneven, self._step), (weighing.squares, weighing.largest / 2)):
            half = self._margins([(j, 0.25 * spread) for j in range(1, bins // 2 + 1)], each, step)
            margins = half[:, nearest]
            bands.append(rising_band(own - margins, own + margins))
        exact: Coverage = "worst_case" if weighing.uneven else "exact"
        joint: Coverage = "worst_case" if weighing.uneven else "at_least"
        coverages: tuple[Coverage, ...] = (exact, "worst_case", joint, *[joint] * len(held))
        return BinShares(
            bins=shares_of(shares, (dataset, population, jointly, *held), coverages),
            cumulative=shares_of(rising, (*bands, bands[0]), (joint, "worst_case", joint)),
            noisy_count=None,
        )

    def _hulls(self, plane: NDArray[np.float64], spread: float, levels: Sequence[float], step: float) -> Ends:
        """For each level and bin the shares p that its noisy share does not reject.

        The quantile of noise and of a Normal part of variance p (1 - p) `spread` is concave in p, so what
        is not rejected is an interval. A share below 0 or above 1 counts as the nearest that there can be,
        which is no further from any p.
        """
        own = np.clip(plane, 0.0, 1.0)
        if spread == 0 and not self.reported:
            margin = self._margins([(1, 0.0)], levels, step)
            return own - margin, own + margin
        # The noise of reports rises with p: up to a half of the people the next larger one of the p that are
        # looked at counts, and beyond that 1.
        data = [spread * deviation**2 for deviation in _DEVIATIONS]
        below = [(1, of + self._report_variance(end)) for of, end in zip(data, _SHARES, strict=True)]
        few = many = self._margins(below, levels, step)
        if self.reported:
            most = self._report_variance(1.0)
            many = self._margins([(1, of + most) for of in data], levels, step)
        margins = np.concatenate([few[:, 1:], many[:, :0:-1]], axis=1)[:, None, :]
        least = np.maximum(_LOWS, own[:, None] - margins)
        most_of = np.minimum(_HIGHS, own[:, None] + margins)
        lower = np.where(least <= _HIGHS, least, 1.0).min(axis=-1)
        upper = np.where(most_of >= _LOWS, most_of, 0.0).max(axis=-1)
        return np.minimum(lower, own), np.maximum(upper, own)

    def _read_secret(self, counts: Sequence[int]) -> BinShares:
        bins, total, weighing, unit = self.bins, sum(counts), self.weighing, self.weighing.unit
        raw = np.array([count / total for count in counts]) if total > 0 else np.full(bins, 1 / bins)
        cumulated = np.cumsum(np.array(counts, dtype=object))[:-1].tolist()
        sums = [(count, total - count) for count in (*counts, *cumulated)]
        first, second = np.array([[one / unit for one in pair] for pair in sums]).T
        center = np.array([float(ratio(*pair)) for pair in sums])
        reader, times = self._secret_reader(1), max(1, len(self.parts))
        single, band = np.arange(bins), np.arange(bins, 2 * bins - 1)
        inside = np.array([*(1,) * bins, *range(1, bins)], dtype=np.float64)

        def tested(places: NDArray[np.intp], risk: float, *, population: bool) -> Tested:
            own = first[places], second[places], center[places]
            noises = times * inside[places], times * (bins - inside[places])
            return Tested.by(reader, own, noises, self._secret_variance, risk, population=population)

        def at_one_level() -> list[Tested]:
            # Several intervals share the risk. That the total weight is larger than its bound is one event
            # for all.
            risk, others, of_mass = confidence.risk(), max(1, bins - 1), mass_risk()
            of_total = 0.0 if weighing.is_equal else of_mass
            return [
                tested(single, risk, population=False),
                tested(single, risk, population=True),
                tested(single, of_total + (risk - of_total) / bins, population=False),
                tested(band, of_total + (risk - of_total) / others, population=False),
                tested(band, of_mass + (risk - of_mass) / others, population=True),
            ]

        each = [one for of_level in confidence.at_each(at_one_level) for one in of_level]
        ends = np.array(hulls(Tested.joined(each)))
        ends = np.clip(ends + np.array([[-reader.bias], [reader.bias]]), 0.0, 1.0)
        # By level, and of each by the kind of the interval.
        by_level = ends.reshape(2, len(confidence.levels()), -1).transpose(1, 0, 2)
        kinds = np.split(by_level, np.cumsum([bins, bins, bins, bins - 1]), axis=2)
        alone, drawn, joint, dataset_band, population_band = ((of[:, 0], of[:, 1]) for of in kinds)
        bands = [rising_band(*of) for of in (dataset_band, population_band)]
        rising = np.clip(isotonic.rising(np.cumsum(raw)[:-1]), 0.0, 1.0)
        coverage: Coverage = "at_least" if weighing.is_equal else "worst_case"
        coverages: tuple[Coverage, Coverage, Coverage] = (coverage, "worst_case", coverage)
        return BinShares(
            bins=shares_of(on_simplex(raw), (alone, drawn, joint), coverages),
            cumulative=shares_of(rising, (*bands, bands[0]), coverages),
            noisy_count=max(total, 0) / weighing.cap,
        )

    def _hull_secret(
        self, inside: int, first: int, second: int, risk: float, *, population: bool = False
    ) -> tuple[float, float]:
        """The interval for the share of some bins, from the noisy sums of these and of the others.

        Args:
            inside: How many bins.
            first, second: The sums [units of the weights].
            risk: Probability that it does not hold the share.
            population: Whether it is about the population, and not the dataset.
        """
        reader = self._secret_reader(inside)
        hull = reader.population_hull if population else reader.dataset_hull
        unit = reader.pivot.unit
        return hull(first / unit, second / unit, float(ratio(first, second)), risk)

    @property
    def _secret_variance(self) -> float:
        """add_remove_one: of a noise where it is Gaussian, in units of the sums that are read; else 0."""
        return self._of_bin / self.weighing.unit**2 if self.weighing.is_gaussian else 0.0

    @once
    def _secret_reader(self, inside: int) -> PivotReader:
        """What reads the noisy sums of some bins and of the others."""
        weighing, unit = self.weighing, self.weighing.unit
        times = max(1, len(self.parts))
        pivot = LinearPivot(
            first=inside * times,
            second=(self.bins - inside) * times,
            unit=float(unit),
            variance=self._secret_variance,
        )
        return PivotReader(
            grid=UNIT,
            cap=weighing.cap / unit,
            floor=weighing.floor / unit,
            pivot=pivot,
            tilt=weighing.tilt,
        )
