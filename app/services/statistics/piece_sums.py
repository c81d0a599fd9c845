"""The noisy sums of a question as estimators combine them: see `app.services.statistics.steps`."""

from collections import Counter
from collections.abc import Sequence
from itertools import repeat
from operator import eq

import numpy as np

from app.core.cohort import Cohort, Cohorts, Groups
from app.core.piece import Piece
from app.core.study import Trust
from app.estimators.combination import Sums
from app.services.statistics.piece_noise import PieceNoise

Weighs = tuple[tuple[int, int], ...]
"""The pieces that a person is in, by their places, with what they weigh in each."""


def sums_of(
    cohorts: Sequence[Cohort],
    pieces: Sequence[Piece],
    people: Groups,
    weights: Sequence[int],
    noise: PieceNoise,
) -> Sums:
    """People by what they weigh, those included who have left since a piece was drawn.

    Args:
        cohorts: Those who are there.
        pieces: All noisy sums of the question.
        people, weights: They as groups, and what one person of each weighs in one sum over all.
        noise: Of all pieces.
    """
    here = Cohorts.of(cohorts)
    counts = dict(zip(here.column("id"), here.column("count"), strict=True))
    # What a person of each cohort weighs in which pieces, and the cohorts that a person has left since.
    weighed: dict[int, Weighs] = {}
    left: dict[int, list[int]] = {}
    for place, piece in enumerate(pieces):
        members, drawn = piece.column("cohort_id"), piece.column("count")
        alone = zip(zip(repeat(place), piece.column("weight"), strict=False), strict=True)
        found: dict[int, Weighs] = dict(zip(members, alone, strict=True))
        for cohort in weighed.keys() & found.keys():
            found[cohort] = weighed[cohort] + found[cohort]
        weighed |= found
        if not all(map(eq, map(counts.get, members), drawn)):
            left |= {one: [] for one, count in zip(members, drawn, strict=True) if count > counts.get(one, 0)}
    present: dict[Weighs, int] = {}
    everyone = map(weighed.get, here.column("id"), repeat(()))
    for weighs, trust, count in zip(everyone, here.column("trust"), here.column("count"), strict=True):
        if trust is Trust.CENTRAL:
            present[weighs] = present.get(weighs, 0) + count
    # Those who have left were in the pieces that were drawn before: layer by layer.
    for piece in pieces if left else ():
        for cohort, count in zip(piece.column("cohort_id"), piece.column("count"), strict=True):
            if cohort in left:
                left[cohort].append(count)
    gone: Counter[Weighs] = Counter()
    for cohort, drawn in left.items():
        stayed = counts.get(cohort, 0)
        for count in sorted({count for count in drawn if count > stayed}):
            among = zip(weighed[cohort], drawn, strict=True)
            gone[tuple(one for one, number in among if number >= count)] += count - stayed
            stayed = count
    trusts, central = people.column("trust"), [*present, *gone]
    others = people.some([place for place, trust in enumerate(trusts) if trust is not Trust.CENTRAL])
    size = len(central) + len(others)
    columns: dict[str, Sequence[object]] = {
        "trust": [Trust.CENTRAL] * len(central) + [*others.column("trust")],
        "epsilon": [0] * len(central) + [*others.column("epsilon")],
        "count": [*present.values(), *gone.values(), *others.column("count")],
        "participates": [True] * len(central) + [*others.column("participates")],
        "reports": [None] * len(central) + [*others.column("reports")],
    }
    public = [weight for trust, weight in zip(trusts, weights, strict=True) if trust is Trust.PUBLIC]
    return Sums(
        groups=Groups(columns, size),
        weights=(*map(dict, central), *({} for _ in others)),
        absent=np.repeat([False, True, False], [len(present), len(gone), len(others)]),
        scales=tuple(noise.scale(piece.unit, piece.share) for piece in pieces),
        counted=tuple(noise.counted(piece.share) for piece in pieces),
        normal=noise.normal,
        public_weight=max(public, default=0),
    )
