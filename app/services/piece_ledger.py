"""What people have paid for a question by its pieces, and can: see `app.services.steps`."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.piece import Member, Piece
from app.core.release import Charge, Used
from app.core.study import Trust
from app.services.piece_noise import PieceNoise
from app.services.planning import Crowd
from app.services.questions import Resolved


def priced(piece: Piece, noise: PieceNoise) -> Piece:
    """A piece with what its share costs each member in all: the price of both of its queries."""
    price = noise.price(piece.unit, piece.share)
    return replace(
        piece,
        members=tuple(
            replace(member, charged=price(((0, member.weight, 0, 0), (1, 0, 0, member.weight))))
            for member in piece.members
        ),
    )


class PieceLedger:
    """What people have paid for a question, and can."""

    def __init__(
        self, cohorts: Sequence[Cohort], pieces: Sequence[Piece], resolved: Resolved, noise: PieceNoise
    ) -> None:
        self._cohorts, self._pieces, self._resolved, self._noise = cohorts, pieces, resolved, noise
        self._here = {cohort.id: cohort for cohort in cohorts}
        self.paid: Counter[int] = Counter()
        """What all pieces have charged each member of a cohort [the study's currency]."""
        for piece in pieces:
            for member in piece.members:
                self.paid[member.cohort_id] += member.charged

    def refine(self) -> tuple[list[Piece], set[int], frozenset[int], frozenset[int]]:
        """Pieces as they will be, cohorts that are in a live one, numbers of those refined and closed."""
        kept: list[Piece] = []
        settled: set[int] = set()
        finer, closed = set(), set()
        for piece in self._pieces:
            whole = all(
                (cohort := self._here.get(member.cohort_id)) is not None and cohort.count == member.count
                for member in piece.members
            )
            share = self._share(piece)
            if piece.refinable and whole and share > piece.share:
                refined = priced(replace(piece, share=share), self._noise)
                if self._can_pay(piece, refined):
                    kept.append(refined)
                    finer.add(piece.number)
                    settled.update(member.cohort_id for member in piece.members)
                    continue
                closed.add(piece.number)
            elif piece.refinable and whole:
                settled.update(member.cohort_id for member in piece.members)
            elif piece.refinable:
                closed.add(piece.number)
            kept.append(piece)
        return kept, settled, frozenset(finer), frozenset(closed)

    def _share(self, piece: Piece) -> int:
        """To which share a piece may go: with a cap no member may pay more than that in all."""
        share, cap = self._resolved.share, self._resolved.cap
        if cap is None:
            return share
        return min(
            share,
            *(
                self._noise.share(
                    cap - self.paid[member.cohort_id] + member.charged, member.weight, piece.unit
                )
                for member in piece.members
            ),
        )

    def _can_pay(self, piece: Piece, refined: Piece) -> bool:
        return all(
            new.charged - old.charged <= self._left(self._here[old.cohort_id])
            for old, new in zip(piece.members, refined.members, strict=True)
        )

    @staticmethod
    def _left(cohort: Cohort) -> int:
        return cohort.epsilon - cohort.spent

    def joining(self, settled: set[int]) -> tuple[dict[int, int], int]:
        """What each cohort that joins a new piece may be charged, by its id; people who cannot pay."""
        joining: dict[int, int] = {}
        left_out = 0
        for cohort in self._cohorts:
            if cohort.trust is not Trust.CENTRAL or cohort.id in settled:
                continue
            offer = self._resolved.offer(cohort.epsilon)
            owed = offer - self.paid[cohort.id]
            if offer and owed <= 0:
                continue
            if 0 < owed <= self._left(cohort):
                joining[cohort.id] = owed
            else:
                left_out += cohort.count
        return joining, left_out

    def create(
        self, number: int, joining: Mapping[int, int], people: Crowd, weights: Sequence[int]
    ) -> Piece | None:
        """The new piece; None where no person weighs anything in it."""
        share, noise = self._resolved.share, self._noise
        coarse = noise.coarse(share)
        members = []
        for group_members, weight in zip(people.members, weights, strict=True):
            whole = noise.cost(weight, share, noise.unit)
            for cohort in group_members:
                if cohort.id not in joining:
                    continue
                bought, paid = weight, self.paid[cohort.id]
                if paid or whole > self._left(cohort):
                    rest = min(math.floor(whole) - paid, joining[cohort.id])
                    bought = min(weight, noise.weight(max(0, rest), share))
                if bought >> coarse:
                    members.append(
                        Member(cohort_id=cohort.id, weight=bought >> coarse, count=cohort.count, charged=0)
                    )
        if not members:
            return None
        piece = Piece(
            number=number,
            unit=noise.unit / 2**coarse,
            share=share,
            scale=0.0,
            first=0,
            second=0,
            refinable=True,
            members=tuple(sorted(members, key=lambda member: member.cohort_id)),
        )
        return priced(piece, noise)

    def charges(self, kept: Sequence[Piece], finer: frozenset[int]) -> tuple[Charge, ...]:
        """What the step costs; checked against what people have left.

        Raises:
            InternalFault: a person would pay more than they have, or than the question may take of them.
        """
        former = {
            (piece.number, member.cohort_id): member.charged
            for piece in self._pieces
            for member in piece.members
        }
        due: Counter[int] = Counter()
        for piece in kept:
            for member in piece.members if piece.number in finer else ():
                due[member.cohort_id] += member.charged - former.get((piece.number, member.cohort_id), 0)
        for cohort in self._cohorts:
            cost = due[cohort.id]
            most = -(-cohort.epsilon * self._resolved.share // MICRO)
            if cost < 0 or cost > self._left(cohort) or (cost and self.paid[cohort.id] + cost > most):
                raise InternalFault("A step costs more than a person has offered.")
        return tuple(Charge(cohort_id=cohort, epsilon=cost) for cohort, cost in sorted(due.items()) if cost)

    def used(
        self, kept: Sequence[Piece], finer: frozenset[int], charges: Sequence[Charge]
    ) -> tuple[Used, ...]:
        """Cohorts whose sums the step reads: of pieces that are drawn, and all that are not central."""
        costs = {charge.cohort_id: charge.epsilon for charge in charges}
        read = {member.cohort_id for piece in kept if piece.number in finer for member in piece.members}
        return tuple(
            Used(cohort_id=cohort.id, count=cohort.count, offer=costs.get(cohort.id, 0))
            for cohort in sorted(self._cohorts, key=lambda cohort: cohort.id)
            if cohort.trust is not Trust.CENTRAL or cohort.id in read
        )
