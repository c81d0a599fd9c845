"""The noisy sums of a question as estimators combine them: see `app.services.steps`."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from app.core.cohort import Cohort, Cohorts, Group, Groups
from app.core.piece import Piece
from app.core.study import Trust
from app.estimators.combination import Sums
from app.services.piece_noise import PieceNoise
from app.services.planning import Crowd


def sums_of(
    cohorts: Sequence[Cohort],
    pieces: Sequence[Piece],
    people: Crowd,
    weights: Sequence[int],
    noise: PieceNoise,
) -> Sums:
    """People by what they weigh, those included who have left since a piece was drawn.

    Args:
        cohorts: Those who are there.
        pieces: All noisy sums of the question.
        people, weights: The same as groups, and what one person of each weighs in one sum over all.
        noise: Of all pieces.
    """
    here = Cohorts.of(cohorts)
    # What a person of each cohort weighs in which pieces, and how many were there when each was drawn.
    weighed: dict[int, tuple[tuple[int, int], ...]] = {}
    drawn: dict[int, tuple[int, ...]] = {}
    for place, piece in enumerate(pieces):
        fields = ("cohort_id", "weight", "count")
        for cohort, weight, count in zip(*map(piece.column, fields), strict=True):
            if cohort in weighed:
                weighed[cohort] = (*weighed[cohort], (place, weight))
                drawn[cohort] = (*drawn[cohort], count)
            else:
                weighed[cohort], drawn[cohort] = ((place, weight),), (count,)
    counts = dict(zip(here.column("id"), here.column("count"), strict=True))
    classes: Counter[tuple[bool, tuple[tuple[int, int], ...]]] = Counter()
    for cohort, trust, count in zip(*map(here.column, ("id", "trust", "count")), strict=True):
        if trust is Trust.CENTRAL:
            classes[False, weighed.get(cohort, ())] += count
    for cohort, members in drawn.items():
        # Those who have left were in the pieces that were drawn before: layer by layer.
        stayed = counts.get(cohort, 0)
        if max(members) <= stayed:
            continue
        for count in sorted({count for count in members if count > stayed}):
            among = zip(weighed[cohort], members, strict=True)
            classes[True, tuple(one for one, number in among if number >= count)] += count - stayed
            stayed = count
    others = [group for group in people.groups if group.trust is not Trust.CENTRAL]
    public = [
        weight for group, weight in zip(people.groups, weights, strict=True) if group.trust is Trust.PUBLIC
    ]
    return Sums(
        groups=Groups.of(
            [*(Group(trust=Trust.CENTRAL, epsilon=0, count=count) for count in classes.values()), *others]
        ),
        weights=(*(dict(weighs) for _, weighs in classes), *({} for _ in others)),
        absent=np.array([absent for absent, _ in classes] + [False] * len(others), dtype=np.bool_),
        scales=tuple(noise.scale(piece.unit, piece.share) for piece in pieces),
        counted=tuple(noise.counted(piece.share) for piece in pieces),
        normal=noise.normal,
        public_weight=max(public, default=0),
    )
