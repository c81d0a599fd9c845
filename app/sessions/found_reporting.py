r"""A study's reporting range, off two finished searches for quantiles of its local people.

The range that is found holds what lies between both estimates, rounded outwards, and is the smallest one
about its middle that is a zoom-th of the study's: at most a half wider than they are apart, and a tenth where
they are a tenth of the range apart.

*Outside.* F(start - 1) and 1 - F(end) are bounded by every closed round beyond them
(`app.sessions.searched`). Each of the L rounds that were announced may serve at both sides, and fails at one
with probability at most .05 / 2L, so both bounds hold together with 95 %, also at ends that these rounds
chose. They are about the people who answered; to take them for all who report is an assumption.

Privacy: post-processing of local answers. A range is public, and fixed before a device reports inside it;
every report inside any range is as private as its randomizer.
"""

from collections.abc import Sequence
from math import ceil, floor
from uuid import UUID

from app.core.errors import FieldError, InvalidRequest
from app.core.grid import GRID_SIZE
from app.core.reporting_range import MAX_ZOOM, Reported, ReportingRange
from app.sessions.search import Search
from app.sessions.searched import Searched

RISK = 0.05
"""Chance that more people who answered lie outside than a range says."""


def around(low: int, high: int) -> Reported | None:
    """The smallest range that holds these grid points, in its middle; None where it is the whole range."""
    zoom = min(GRID_SIZE // max(1, high - low), MAX_ZOOM)
    if zoom < 2:
        return None
    width = GRID_SIZE // zoom
    start = (low + high - width) // 2
    return Reported(start=min(max(start, 0), GRID_SIZE - width), zoom=zoom)


def outside(where: Reported, searched: Searched) -> float:
    """At most this part of the people who answered has values outside, except with probability `RISK`."""
    risk, end = RISK / (2 * searched.announced), where.start + GRID_SIZE // where.zoom
    below = [one.at_most(risk) for one in searched.rounds if one.threshold >= where.start - 1]
    within = [one.at_least(risk) for one in searched.rounds if one.threshold <= end]
    # Nothing lies outside of the study's range.
    first = 0.0 if where.start == 0 else min(below, default=1.0)
    last = 0.0 if end == GRID_SIZE else 1 - max(within, default=0.0)
    return min(1.0, first + last)


def refuse_unordered(searches: Sequence[Search]) -> None:
    """Refuse a range whose upper end is no higher quantile: it would hold hardly anyone, and for good.

    Raises:
        InvalidRequest: the search for the upper end looked for no higher quantile than the other one.
    """
    low, high = (search.rules.quantile or 0.0 for search in searches)
    if low >= high:
        reason = f"looked for the quantile {high:g}, which must be above that of lower, {low:g}"
        raise InvalidRequest.field("upper", reason)


def found(searches: Sequence[Search], ids: Sequence[UUID]) -> ReportingRange:
    """The range between two searches.

    Raises:
        InvalidRequest: they found none that is smaller.
    """
    searched = Searched.of(searches, people=1, reporting=0)
    silent = [
        FieldError(name, "has no answers")
        for name, search in zip(("lower", "upper"), searches, strict=True)
        if not any(step.answers for step in search.steps)
    ]
    if silent or searched is None:
        raise InvalidRequest.naming(silent)
    low, high = (search.estimate for search in searches)
    if low > high:
        raise InvalidRequest.field("upper", "found less than lower did")
    where = around(floor(low), ceil(high))
    if where is None:
        raise InvalidRequest.field("upper", "is so far from lower that no smaller range holds both")
    return ReportingRange.of(where, outside=outside(where, searched), searches=ids)
