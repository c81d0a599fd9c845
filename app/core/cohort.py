"""Cohorts: people who share a trust tag, an epsilon, an epoch and therefore what was spent."""

from dataclasses import dataclass

from app.core.study import LocalMechanism, Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A folded cohort, as the ledger holds it. Raw data: never leaves the services.

    Attributes:
        id: Row of the ledger.
        trust: Trust tag of all people in it.
        epsilon: The most that a contribution may ever cost its owner [micro-epsilon]; 0 for public.
        carried: What its members had already spent in this study when they joined [micro-epsilon].
        spent: What each member has spent by now, `carried` included [micro-epsilon].
        delta, delta_carried, delta_spent: The same for delta [1e-12].
        count: Live members.
        total: Sum of grid points, or of local reports.
        total_squares: Sum of squared reports; of central and public people the sum of their `grid.square`.
    """

    id: int
    trust: Trust
    epsilon: int
    carried: int
    spent: int
    delta: int
    delta_carried: int
    delta_spent: int
    count: int
    total: int
    total_squares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """Sums over local reports. Already private when they arrive: free to look at.

    Attributes:
        mechanism: The randomizer that made them.
        total: Sum of reports [grid steps].
        total_squares: Sum of squared reports [grid steps squared].
    """

    mechanism: LocalMechanism
    total: int
    total_squares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """All that an estimator may know of people who make the same offer.

    There is no sum of raw values in it: an estimator cannot look at raw data because it never gets
    any. In add_remove_one studies `count` is secret too; there a plan sees groups only through
    `Plan.queries`, which the release service evaluates.

    Attributes:
        trust: Trust tag.
        epsilon: Central: the most that this release may cost each of them. Local: what their reports
            were randomized with. Public: 0 [micro-epsilon].
        delta: The same for delta [1e-12].
        count: People in the group.
        participates: Whether they can pay their whole offer. Others count as people of the dataset
            but get no weight.
        reports: Local groups only.
    """

    trust: Trust
    epsilon: int
    count: int
    delta: int = 0
    participates: bool = True
    reports: Reports | None = None
