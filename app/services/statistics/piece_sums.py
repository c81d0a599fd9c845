"""The noisy sums of a question as estimators combine them: see `app.services.statistics.steps`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

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
        cohorts: Who is there.
        pieces: All noisy sums of the question.
        people, weights: They as groups, and what one person of each weighs in one sum over all.
        noise: Of all pieces.
    """
    here = Cohorts.of(cohorts)
    counts = dict(zip(here.column("id"), here.column("count"), strict=True))
    held = Counter(chain.from_iterable(piece.column("cohort_id") for piece in pieces))
    # Most cohorts are in one piece alone, with all who were in it: they are added up by their weights. The
    # others are looked at one by one, with what a person weighs in which piece and how many were drawn there.
    several = {cohort for cohort, times in held.items() if times > 1} if held.total() > len(held) else ()
    weighed: list[Mapping[int, int]] = []
    sizes: list[int] = []
    mixed: dict[int, list[tuple[int, int, int]]] = {}
    for place, piece in enumerate(pieces):
        alone: dict[int, int] = {}
        for cohort, weight, drawn in piece.rows("cohort_id", "weight", "count"):
            if counts.get(cohort) == drawn and cohort not in several:
                alone[weight] = alone.get(weight, 0) + drawn
            else:
                mixed.setdefault(cohort, []).append((place, weight, drawn))
        weighed += [{place: weight} for weight in alone]
        sizes += alone.values()
    present, gone = Counter[Weighs](), Counter[Weighs]()
    if not held.keys() >= counts.keys():
        for cohort, trust, count in here.rows("id", "trust", "count"):
            if cohort not in held and trust is Trust.CENTRAL:
                present[()] += count
    for cohort, pieces_of in mixed.items():
        stayed = counts.get(cohort, 0)
        present[tuple((place, weight) for place, weight, _ in pieces_of)] += stayed
        # Those who have left were in the pieces that were drawn before: layer by layer.
        for count in sorted({drawn for *_, drawn in pieces_of if drawn > stayed}):
            weighs = tuple((place, weight) for place, weight, drawn in pieces_of if drawn >= count)
            gone[weighs] += count - stayed
            stayed = count
    weighed += map(dict, (*present, *gone))
    sizes += (*present.values(), *gone.values())
    central, trusts = len(weighed), people.column("trust")
    rest = [place for place, trust in enumerate(trusts) if trust is not Trust.CENTRAL]
    others = people.some(rest)
    columns: dict[str, Sequence[object]] = {
        "trust": [Trust.CENTRAL] * central + [*others.column("trust")],
        "epsilon": [0] * central + [*others.column("epsilon")],
        "count": [*sizes, *others.column("count")],
        "participates": [True] * central + [*others.column("participates")],
        "reports": [None] * central + [*others.column("reports")],
        "silent": [0] * central + [*others.column("silent")],
    }
    public = [weights[place] for place in rest if trusts[place] is Trust.PUBLIC]
    return Sums(
        groups=Groups(columns, central + len(others)),
        weights=(*weighed, *({} for _ in others)),
        absent=np.repeat([False, True, False], [central - len(gone), len(gone), len(others)]),
        scales=tuple(noise.scale(piece.unit, piece.share) for piece in pieces),
        counted=tuple(noise.counted(piece.share) for piece in pieces),
        normal=noise.normal,
        public_weight=max(public, default=0),
    )
