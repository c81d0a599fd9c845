"""Cohorts: people who share a trust tag, an epsilon, an epoch and therefore what was spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from dither.device.randomizers import Randomizer

from app.core.columns import Columns
from app.core.grid import GRID_SIZE
from app.core.reporting_range import WHOLE, Reported, ReportingRange
from app.core.study import LocalMechanism, Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A folded cohort, as the ledger holds it. Raw data: never leaves the services.

    Attributes:
        id: Row of the ledger.
        trust: Trust tag of all people in it.
        epsilon: The most that a contribution may ever cost its owner; 0 for public. This and the next two
            are in the study's currency: micro-epsilon, or 1e-6 of mu^2.
        carried: What its members had already spent in this study when they joined.
        spent: What each member has spent by now, `carried` included.
        count: Live members.
        total: Sum of grid points, or of local reports as they count.
        total_squares: Sum of squared reports; of central and public people the sum of their `grid.square`.
        reach: Local cohorts only: how far outside the grid a report counts, if further out as the nearest
            that does [grid steps]; None: as it is. Fixed when the cohort is folded.
        segment: Number of the combination of labels that its members have; of reports that were made inside
            the study's reporting range `INSIDE` more.
        silent: Members who did not report the measure that a question is about; `total` has none of them.
        reported: How many measures the device of each member reported, of a study of several; else 0.
    """

    id: int
    trust: Trust
    epsilon: int
    carried: int
    spent: int
    count: int
    total: int
    total_squares: int
    reach: int | None = None
    segment: int = 0
    silent: int = 0
    reported: int = 0


class Cohorts(Columns[Cohort]):
    """Cohorts by columns."""

    kind = Cohort
    __slots__ = ()

    @property
    def not_central(self) -> Sequence[int]:
        """Places of those of local and public people, ascending."""
        trusts = self.column("trust")
        if trusts.count(Trust.CENTRAL) == len(trusts):
            return ()
        return [place for place, trust in enumerate(trusts) if trust is not Trust.CENTRAL]


FARTHEST = 0.005
"""Of all reports of a study this many lie further out than they count, on average, on each side."""


def report_reach(randomizer: Randomizer, epsilon: int, reports: int) -> int | None:
    r"""How far outside the grid a report counts as it is. Further out it counts as the nearest that does.

    A report of a device that follows no protocol can be all that an honest one can be: 64 scales outside the
    grid. So Laplace and Gaussian reports are winsorised where they are summed, at the distance m that honest
    noise exceeds with probability :math:`.005 / n` on each side, n the reports of the study:
    :math:`m = b \ln(100 n)` for Laplace noise of scale b = 2^30 / epsilon, the Normal quantile for Gaussian
    noise. A liar among 1,000 moves their mean by 12.5 widths of the range over 1,000 at epsilon 1, not by 65.

    *Honest bias.* A report about an end of the range loses on average :math:`E (Z - m)_+`, and gains less on
    the other side. That is at most :math:`b e^{-m / b} / 2 = .005\,b / n` for Laplace noise, and less than
    :math:`.005\,\sigma / n` for Gaussian noise (:math:`m > \sigma`). n grows from fold to fold: over folds of
    n_1, n_2, ... reports the sum of biases is at most :math:`.005\,b \sum n_k / (n_1 + \dots + n_k)`, so the
    mean of n reports is biased by at most

    .. math:: \frac{.005\,b\,(1 + \ln n)}{n},

    below 1e-4 of the range for epsilon >= 1 and n >= 400, and below a two hundredth of the standard deviation
    :math:`b \sqrt{2 / n}` of the mean's own noise for every n. With n of the cohort alone it would be
    .005 b over the size of a cohort.

    Args:
        randomizer: Of the study.
        epsilon: What the report was randomized with [the study's currency].
        reports: n, live local reports of the study at the fold, at least 1.

    Returns:
        m [grid steps]; None where reports have a range of their own.

    Privacy: post-processing of reports.
    """
    return randomizer.quantile(epsilon, FARTHEST / reports)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Sums over local reports. Already private when they arrive: free to look at.

    Attributes:
        mechanism: The randomizer that made them.
        total: Sum of reports, as they were made [grid steps, of those inside a range its own].
        total_squares: Sum of squared reports [the same, squared].
        reach: How far outside the grid each of them counts at most [the same]; None: as far as the
            randomizer's range goes.
        inside: The reporting range that they were made in; None: the study's range.
    """

    mechanism: LocalMechanism
    total: int
    total_squares: int
    reach: int | None = None
    inside: ReportingRange | None = None

    @property
    def where(self) -> Reported:
        """How they say what they say."""
        return WHOLE if self.inside is None else self.inside.where

    def position(self, count: int) -> Fraction:
        """What this number of reports say together, exactly [range widths]."""
        return (Fraction(self.total, self.where.zoom) + count * self.where.start) / GRID_SIZE

    def moments(self, count: int, center: int) -> tuple[float, float]:
        """Sums of x - center and of its square over that many reports [range widths, and their square]."""
        raw, width = self.where.to_raw(center), self.where.zoom * GRID_SIZE
        second = self.total_squares - 2 * raw * self.total + count * raw**2
        return (self.total - count * raw) / width, second / width**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All that an estimator may know of people who make the same offer.

    There is no sum of raw values in it: an estimator cannot look at raw data because it never gets
    any. In add_remove_one studies `count` is secret too: there estimators read 1, and a plan sees groups
    only through `Plan.queries`, which the release service evaluates.

    Attributes:
        trust: Trust tag.
        epsilon: Central: the most that this release may cost each of them. Local: what their reports
            were randomized with. Public: 0. In the study's currency: micro-epsilon, or 1e-6 of mu^2.
        count: People in the group.
        participates: Whether they can pay their whole offer. Others count as people of the dataset
            but get no weight.
        reports: Local groups only.
        silent: Further local people of the same offer, whose devices drew other measures to report. Those who
            are counted are a uniform sample of both together.
    """

    trust: Trust
    epsilon: int
    count: int
    participates: bool = True
    reports: Reports | None = None
    silent: int = 0


class Groups(Columns[Group]):
    """Groups by columns."""

    kind = Group
    __slots__ = ("_able",)

    def __init__(self, columns: Mapping[str, Sequence[Any]], size: int) -> None:
        """See `Columns`."""
        super().__init__(columns, size)
        self._able: dict[Trust, Sequence[int]] = {}

    def each_of_one(self) -> "Groups":
        """The same groups with one person each."""
        columns = {field.name: self.column(field.name) for field in fields(Group)}
        return Groups({**columns, "count": [1] * len(self)}, len(self))

    def able(self, trust: Trust) -> Sequence[int]:
        """Places of the groups of one trust tag that hold a person who can take part, ascending.

        Central groups must also offer more than 0, local ones have sent reports.
        """
        found = self._able.get(trust)
        if found is None:
            counts, offers = self.column("count"), self.column("epsilon")
            able = self.column("reports" if trust is Trust.LOCAL else "participates")
            found = self._able[trust] = [
                place
                for place, tag in enumerate(self.column("trust"))
                if tag is trust
                and counts[place] > 0
                and able[place] not in (None, False)
                and (offers[place] > 0 or trust is not Trust.CENTRAL)
            ]
        return found

    @property
    def people(self) -> int:
        """All people in them, the silent ones too."""
        heard, silent = self.column("count"), self.column("silent")
        return int(sum(heard) + sum(silent))

    def of_able(self, trust: Trust, name: str) -> list[Any]:
        """A field of those groups."""
        column = self.column(name)
        return [column[place] for place in self.able(trust)]
