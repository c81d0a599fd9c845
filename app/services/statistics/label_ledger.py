"""What people of each label have paid for a question by its pieces: each piece has people of one label."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from app.core.cohort import Cohorts
from app.core.errors import InternalFault
from app.core.piece import Piece
from app.core.study import StudyDefinition
from app.services.statistics.any_question import AnyQuestion
from app.services.statistics.crowds import members_of
from app.services.statistics.piece_ledger import PieceLedger, next_number
from app.services.statistics.piece_noise import PieceNoise
from app.services.work import checkpoint


class OfLabel(Protocol):
    """What is planned for a label."""

    @property
    def pieces(self) -> Sequence[Piece]:
        """Those that it has and is to have."""


Planned = TypeVar("Planned", bound=OfLabel)


class LabelLedger:
    """The pieces of a question by the labels of their people; of one without an attribute all alike.

    Attributes:
        ledger: Of all people, and the pieces that have living members.
        gone: Numbers of the pieces whose people have all left: it is not known which label they had.
    """

    def __init__(
        self,
        study: StudyDefinition,
        people: Cohorts,
        pieces: Sequence[Piece],
        question: AnyQuestion,
        noise: PieceNoise,
    ) -> None:
        numbers = [piece.number for piece in pieces]
        self._cells = study.attributes.cells(question.by) if question.by else {}
        self._members = members_of(study, question.by, people) if question.by else {}
        self._label_of = (
            _labels_of(people, self._members, pieces) if question.by else dict.fromkeys(numbers, "")
        )
        self._next = next_number(pieces)
        self.gone = [number for number in numbers if number not in self._label_of]
        living = [piece for piece in pieces if piece.number in self._label_of]
        self.ledger = PieceLedger(people, living, question, noise)

    def each(
        self, planned: Callable[[Mapping[str, str], Sequence[int], Sequence[Piece], int], Planned]
    ) -> list[Planned]:
        """What is planned for each declared label.

        Args:
            planned: Of a label, the places of its cohorts, its pieces as they will be, and the number of the
                next new one.
        """
        kept = defaultdict[str, list[Piece]](list)
        for piece in self.ledger.kept:
            kept[self._label_of[piece.number]].append(piece)
        number, found = self._next, list[Planned]()
        for name, cell in self._cells.items():
            checkpoint()
            found.append(planned(cell, self._members[name], kept[name], number))
            number += max(0, len(found[-1].pieces) - len(kept[name]))
        return found

    def finer(self, kept: Sequence[Piece]) -> frozenset[int]:
        """Numbers of those that are drawn, of all pieces as they will be: refined ones, and new ones."""
        numbers = frozenset(piece.number for piece in kept)
        return numbers & (self.ledger.finer | (numbers - self._label_of.keys()))


def _labels_of(
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


def places_of(pieces: Sequence[Piece], gone: Sequence[int]) -> list[int]:
    """The places of a label's pieces among them and all that are gone, see `app.estimators.anytime`."""
    numbers = [piece.number for piece in pieces]
    ranks = {one: rank for rank, one in enumerate(sorted([*gone, *numbers]), 1)}
    return [ranks[one] for one in numbers]
