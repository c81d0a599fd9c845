"""Whose the noisy sums of a question by an attribute are: each has people of one label."""

from collections.abc import Mapping, Sequence

from app.core.cohort import Cohorts
from app.core.errors import InternalFault
from app.core.piece import Piece
from app.core.reporting_range import INSIDE
from app.core.study import StudyDefinition


def members_of(study: StudyDefinition, by: str, people: Cohorts) -> dict[str, list[int]]:
    """The places of the cohorts in each declared cell: of a label, or of one of several attributes each."""
    labels, number_of = list(study.attributes.cells(by)), study.attributes.places(by)
    members: dict[str, list[int]] = {label: [] for label in labels}
    for place, segment in enumerate(people.column("segment")):
        members[labels[number_of[segment % INSIDE]]].append(place)
    return members


def labels_of(
    people: Cohorts, members: Mapping[str, Sequence[int]], pieces: Sequence[Piece]
) -> dict[int, str]:
    """The label of each piece by its number: that of its living members; none without any.

    Raises:
        InternalFault: a piece has living members of a label and others.
    """
    ids = people.column("id")
    label_of = {ids[place]: label for label, places in members.items() for place in places}
    found: dict[int, str] = {}
    for piece in pieces:
        labels = {label_of[cohort] for cohort in piece.column("cohort_id") if cohort in label_of}
        if len(labels) > 1:
            raise InternalFault("A noisy sum of one label has people of another one.")
        if labels:
            found[piece.number] = labels.pop()
    return found


def gone_of(pieces: Sequence[Piece], label_of: Mapping[int, str]) -> list[int]:
    """Numbers of the pieces whose people have all left: it is not known which label they had."""
    return [piece.number for piece in pieces if piece.number not in label_of]


def places_of(pieces: Sequence[Piece], gone: Sequence[int]) -> list[int]:
    """The places of a label's pieces among them and all that are gone, see `app.estimators.anytime`."""
    numbers = [piece.number for piece in pieces]
    ranks = {one: rank for rank, one in enumerate(sorted([*gone, *numbers]), 1)}
    return [ranks[one] for one in numbers]
