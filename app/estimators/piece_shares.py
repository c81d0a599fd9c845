r"""Shares of people by bin from several noisy counts: of disjoint pieces, of public people, and of reports.

Piece p has the counts of its people, each of whom weighs an integer, with noise of its own; divided by what
its people weigh and moved onto the plane they are unbiased shares (`app.estimators.shares`), in which person
i weighs :math:`w_{ip}` and noise of variance :math:`v_p` is in each of K bins. Public people are counted
exactly, and each group of reports has a variance of :math:`R_h / m_h` in all bins together. Parts with the
shares c, which sum to one, have in all bins together an error of at most

.. math:: (1 - 1/K) \Big(\sum_i (Wc)_i^2 + K \sum_p c_p^2 v_p\Big) + \sum_h c_h^2 R_h / m_h
   + 2 (tilt\,TV(c))^2,

by the argument of `app.estimators.shares`; where one of two bins is counted alone twice the noise is left,
:math:`2 v_p` for all bins. Divided by 1 - 1/K that is the target of
`app.estimators.combination`, with the tilt times :math:`\sqrt{2 K / (K - 1)}`. People who have left since a
piece was drawn weigh in it as errors do: they are 0 in what weights are compared with.

What is read of a combination is what `app.estimators.shares` reads of parts: the noise of a bin is the sum of
that of all parts, times their shares, and the rest depends on the weights of people alone.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from operator import truediv

import numpy as np
import scipy

from app.core.cohort import Groups
from app.core.study import Currency, Relation, Trust
from app.estimators.choice_reports import Reported, ReportNoise
from app.estimators.combination import Sums, best_shares
from app.estimators.deviations import Deviations, tilts_of
from app.estimators.linear import silent_of, sizes_of
from app.estimators.reports import stands_for
from app.estimators.shares import SharesPlan, counts_of
from app.estimators.weighing import Weighing


def combined_shares(
    bins: int,
    sums: Sums,
    reports: Mapping[int, ReportNoise],
    *,
    tilt: float,
    currency: Currency,
    both: bool = False,
) -> SharesPlan:
    """The plan that reads noisy counts which are there already, or are just being drawn.

    Args:
        bins: K, at least 2.
        sums: The counts of central people, and all people.
        reports: For each of its groups that sent reports the noise of one report.
        tilt: The question's.
        currency: Of the study.
        both: Whether both of two bins have a noisy count, see `app.estimators.shares.SharesPlan`.

    Returns:
        A plan whose `read_labels` takes the counts of each piece, and then the exact counts of public people
        beside those of all reports.

    Raises:
        NotApplicable: there is no sum, no person public, and no report.

    Privacy: post-processing of noisy counts, reports and public values.
    """
    groups, pieces = Groups.of(sums.groups), len(sums.scales)
    counts, sizes, times = groups.column("count"), sizes_of(groups), 1 if sums.normal else 2
    weights = sums.weights
    masses = weights.masses(counts, pieces)
    known = [
        place for place, trust in enumerate(groups.column("trust")) if trust is Trust.PUBLIC and counts[place]
    ]
    public = sum(counts[place] for place in known)
    # One column a part: pieces, public people if there are any, and each group of reports.
    of_mass = map(truediv, weights.weights, map(masses.__getitem__, weights.sums))
    entries = list(zip(of_mass, weights.by_group(range(len(groups))), weights.sums, strict=True))
    alone = counts_of(bins, Relation.REPLACE_ONE) == 1 and not both
    all_bins = bins * times * (2 if alone else 1)
    noises = [all_bins * (scale / mass) ** 2 for scale, mass in zip(sums.scales, masses, strict=True)]
    if known:
        entries += [(1 / public, place, pieces) for place in known]
        noises.append(0.0)
    first = len(noises)
    for place, noise in reports.items():
        entries.append((1 / counts[place], place, len(noises)))
        noises.append(noise.total / (1 - 1 / bins) / counts[place])
    weights_of, rows, places = zip(*entries, strict=True) if entries else ((), (), ())
    columns = scipy.sparse.csr_array((weights_of, (rows, places)), shape=(len(groups), len(noises)))
    shares = best_shares(
        columns,
        np.array(noises),
        sizes,
        sums.absent,
        variance=1.0,
        tilts=tilts_of(tilt, sums.absent) * math.sqrt(2 * bins / (bins - 1)),
        people=round(float(np.dot(sizes, ~sums.absent))),
        stands=stands_for(groups),
    )
    # What that comes to for people, as for weights of one sum.
    weighed = Deviations.of(
        sizes, np.asarray(columns @ shares), tilt=tilt, absent=sums.absent, silent=silent_of(groups)
    )
    weighing = Weighing.of(weighed, currency)
    reported = tuple(
        Reported(people=counts[place], weight=float(share) / counts[place], noise=noise)
        for (place, noise), share in zip(reports.items(), shares[first:], strict=True)
    )
    part = Weighing(relation=Relation.REPLACE_ONE, weights=(), currency=currency)
    exact = replace(part, mass=public, private=float(shares[pieces]) if known else 0.0)
    parts = [
        (float(share), SharesPlan(bins=bins, weighing=replace(part, mass=mass * times), size=scale * times))
        for share, mass, scale, times in zip(shares[:pieces], masses, sums.scales, sums.counted, strict=True)
    ]
    parts.append((1.0, SharesPlan(bins=bins, weighing=exact, reported=reported, size=0.0)))
    return SharesPlan(bins=bins, weighing=weighing, reported=reported, parts=tuple(parts), both=both)
