"""The noisy sums of a question as estimators combine them: see `app.services.statistics.steps`."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress
from operator import eq

import numpy as np

from app.core.cohort import Cohort, Cohorts, Groups
from app.core.piece import Piece
from app.core.study import Trust
from app.estimators.combination import Sums, Weights
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
    every = [piece.column("cohort_id") for piece in pieces]
    held = set[int]().union(*every)
    # Most cohorts are in one piece alone, with all who were in it: they are added up by their weights. The
    # others are looked at one by one, with what a person weighs in which piece and how many were drawn there.
    several = set[int]()
    if sum(map(len, every)) > len(held):
        several = {cohort for cohort, times in Counter(chain.from_iterable(every)).items() if times > 1}
    places: list[int] = []
    weighed: list[int] = []
    sizes: list[int] = []
    mixed: dict[int, list[tuple[int, int, int]]] = {}
    for place, piece in enumerate(pieces):
        members, each, drawn = map(piece.column, ("cohort_id", "weight", "count"))
        if not several.isdisjoint(members) or not all(map(eq, map(counts.get, members), drawn)):
            whole: list[bool] = []
            for cohort, weight, count in zip(members, each, drawn, strict=True):
                whole.append(counts.get(cohort) == count and cohort not in several)
                if not whole[-1]:
                    mixed.setdefault(cohort, []).append((place, weight, count))
            each, drawn = list(compress(each, whole)), list(compress(drawn, whole))
        alone = _added_up(each, drawn)
        places += [place] * len(alone)
        weighed += alone
        sizes += alone.values()
    present, gone = Counter[Weighs](), Counter[Weighs]()
    if not held >= counts.keys():
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
    apart = [*present, *gone]
    sizes += (*present.values(), *gone.values())
    central, trusts = len(sizes), people.column("trust")
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
        weights=Weights(
            [1] * len(weighed) + [*map(len, apart)] + [0] * len(others),
            places + [place for weighs in apart for place, _ in weighs],
            weighed + [weight for weighs in apart for _, weight in weighs],
        ),
        absent=np.repeat([False, True, False], [central - len(gone), len(gone), len(others)]),
        scales=tuple(noise.scale(piece.unit, piece.share) for piece in pieces),
        counted=tuple(noise.counted(piece.share) for piece in pieces),
        squares=tuple(noise.squares(piece.unit) for piece in pieces),
        normal=noise.normal,
        public_weight=max(public, default=0),
    )


def _added_up(each: Sequence[int], counts: Sequence[int]) -> dict[int, int]:
    """The people of each weight, of those of cohorts."""
    found = dict(zip(each, counts, strict=True))
    if len(found) < len(each):
        found = dict.fromkeys(found, 0)
        for weight, count in zip(each, counts, strict=True):
            found[weight] += count
    return found
