"""What people have paid for a question by its pieces, and can: see `app.services.statistics.steps`."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from itertools import compress
from operator import eq, sub
from typing import Any, ClassVar

from app.core.cohort import Cohort, Cohorts
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, InternalFault
from app.core.piece import LastStep, Members, Piece, Taken
from app.core.release import AllUsed, Charges, Used
from app.core.study import Trust
from app.services.statistics.any_made import AnyMade
from app.services.statistics.any_question import AnyQuestion
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_noise import PieceNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceStep(AnyMade):
    """What a step of a question's shares takes of people, and does to its pieces; nothing is drawn yet.

    Attributes:
        before: The step before it.
        noise: Of all pieces.
        had: The share of each piece before it, by its number [ppm].
        pieces: Every piece of the question as it will be, sums as they were; new ones have zeros.
        finer: Numbers of the pieces whose noise is drawn: refined and new ones.
        closed: Numbers of the pieces that can be refined no more from now on.
        used: Cohorts whose sums are read.
        charges: In the order of cohorts' ids.
        paid: What the steps before it have charged each member of a cohort, by its id.
    """

    before: LastStep | None
    noise: PieceNoise
    had: Mapping[int, int]
    pieces: tuple[Piece, ...]
    finer: frozenset[int]
    closed: frozenset[int]
    used: Sequence[Used]
    charges: Charges
    paid: Mapping[int, int]

    by_steps: ClassVar[bool] = True

    @property
    def draws(self) -> bool:
        """Whether there is noise to draw: else the step before it says as much."""
        return bool(self.finer)

    @property
    def most(self) -> int:
        """The largest charge to a person [the study's currency]."""
        return max(self.charges.column("epsilon"), default=0)

    @property
    def most_in_all(self) -> int:
        """The same by all steps of the question."""
        due = self.charges.rows("cohort_id", "epsilon")
        totals = [self.paid.get(cohort, 0) + cost for cohort, cost in due]
        return max((*totals, *self.paid.values()), default=0)

    @property
    def share_before(self) -> int:
        """What the question had used [ppm]."""
        return 0 if self.before is None else self.before.share

    @property
    def had_by_all(self) -> int:
        """What all who are charged had given the question before [ppm]."""
        return self.share_before if self.paid.keys() >= set(self.charges.column("cohort_id")) else 0

    def noise_json(self, taken: Taken) -> str:
        """The noise that is drawn, for the ledger."""
        noise = {"mechanism": self.noise.mechanism, "pieces": [piece.sealed() for piece in taken.changed]}
        return json.dumps(noise, allow_nan=False)

    def draw(self, exact: Callable[[Piece], Sequence[int]]) -> tuple[list[Piece], Taken]:
        """Draw the noise of the step. Draws entropy; what it returns is not published yet.

        Args:
            exact: The sums of a piece without noise.

        Returns:
            All pieces, and those of them that the step changes.
        """
        pieces = [
            self.noise.drawn(piece, self.had.get(piece.number, 0), exact(piece))
            if piece.number in self.finer
            else replace(piece, refinable=piece.refinable and piece.number not in self.closed)
            for piece in self.pieces
        ]
        changed = tuple(piece for piece in pieces if piece.number in self.finer | self.closed)
        return pieces, Taken(before=self.before, changed=changed)


def priced(piece: Piece, noise: PieceNoise) -> Piece:
    """A piece with what its share costs each member in all: the price of all of its sums."""
    price = noise.price(piece.unit, piece.share)
    columns = {name: piece.column(name) for name in ("cohort_id", "weight", "count")}
    charged = list(map(price, columns["weight"]))
    return replace(piece, members=Members({**columns, "charged": charged}, len(charged)))


def in_all(pieces: Sequence[Piece], of: Callable[[Piece], Sequence[int]]) -> dict[int, int]:
    """What pieces come to for each member of a cohort, by its id; only of cohorts that are in one.

    Args:
        pieces: The pieces.
        of: What one of them is for each of its members, in their order.
    """
    found: dict[int, int] = {}
    for piece in pieces:
        members = piece.column("cohort_id")
        own = dict(zip(members, of(piece), strict=True))
        # Most cohorts are in one piece alone, so that hardly any is looked at by itself.
        if not found.keys().isdisjoint(members):
            for cohort in found.keys() & own.keys():
                own[cohort] += found[cohort]
        found |= own
    return found


def charged(piece: Piece) -> Sequence[int]:
    """What a piece has charged each of its members [the study's currency]."""
    return piece.column("charged")


def given(piece: Piece) -> Sequence[int]:
    """What each of its members has given a piece [ppm]."""
    return [piece.share] * len(piece.members)


def next_number(pieces: Sequence[Piece]) -> int:
    """The number of a new piece of a question."""
    return 1 + max((piece.number for piece in pieces), default=0)


def check_gain(question: AnyQuestion, before: LastStep | None, finer: Set[int], left_out: int) -> None:
    """Refuse a step that draws no noise, where there is no answer yet or people cannot pay for a better one.

    Args:
        question: Of the step.
        before: The step before it.
        finer: Numbers of the pieces whose noise it draws.
        left_out: People who cannot pay.

    Raises:
        BudgetExhausted: it is one.
    """
    if not finer and (before is None or (left_out and before.share < question.share)):
        raise BudgetExhausted.by_all()


class PieceLedger:
    """What people have paid for a question, and can.

    Attributes:
        cohorts, pieces: Of the question.
        paid: What all pieces have charged each member of a cohort, by its id [the study's currency].
        given: What the members of a cohort have given the question in all pieces, by its id [ppm].
        kept: Pieces as they will be.
        finer, closed: Numbers of those that are refined, and of those that can be refined no more.
        joining: What each cohort that joins a new piece may be charged, by its id.
        unable: The people of each cohort that cannot pay, by its id.
        taking_part: Ids of the cohorts that are in a piece, or join one.
    """

    def __init__(
        self, cohorts: Sequence[Cohort], pieces: Sequence[Piece], resolved: AnyQuestion, noise: PieceNoise
    ) -> None:
        self.cohorts, self.pieces = Cohorts.of(cohorts), pieces
        self._resolved, self._noise = resolved, noise
        ids = self.cohorts.column("id")
        self._counts = dict(zip(ids, self.cohorts.column("count"), strict=True))
        left = map(sub, self.cohorts.column("epsilon"), self.cohorts.column("spent"))
        self._left = dict(zip(ids, left, strict=True))
        self.paid, self.given = in_all(pieces, charged), in_all(pieces, given)
        self.kept, settled, self.finer, self.closed = self._refine()
        self.joining, self.unable = self._joining(settled)
        self.taking_part: Set[int] = self.joining.keys() | self.paid.keys()

    @property
    def left_out(self) -> int:
        """People who cannot pay."""
        return sum(self.unable.values())

    def unpaid(self, crowd: Crowd) -> Crowd:
        """Some of the people, with those of them who cannot pay."""
        unable = self.unable.keys() & crowd.cohorts.column("id") if self.unable else ()
        return replace(crowd, dry=sum(self.unable[cohort] for cohort in unable))

    def _refine(self) -> tuple[list[Piece], set[int], frozenset[int], frozenset[int]]:
        """Pieces as they will be, cohorts that are in a live one, numbers of those refined and closed."""
        kept: list[Piece] = []
        settled: set[int] = set()
        finer, closed = set(), set()
        for piece in self.pieces:
            members = piece.column("cohort_id")
            whole = all(map(eq, map(self._counts.get, members), piece.column("count")))
            share = self._share(piece)
            if piece.refinable and whole and share > piece.share:
                refined = priced(replace(piece, share=share), self._noise)
                if self._can_pay(piece, refined):
                    kept.append(refined)
                    finer.add(piece.number)
                    settled.update(members)
                    continue
                closed.add(piece.number)
            elif piece.refinable and whole:
                settled.update(members)
            elif piece.refinable:
                closed.add(piece.number)
            kept.append(piece)
        return kept, settled, frozenset(finer), frozenset(closed)

    def _share(self, piece: Piece) -> int:
        """To which share a piece may go: with a cap no member may pay more than that in all."""
        share, cap = self._resolved.share - piece.base, self._resolved.cap
        if cap is None:
            return share
        return min(
            share,
            *(
                self._noise.share(
                    cap - self.paid.get(member.cohort_id, 0) + member.charged, member.weight, piece.unit
                )
                for member in piece.members
            ),
        )

    def _can_pay(self, piece: Piece, refined: Piece) -> bool:
        return all(
            new - old <= self._left[cohort]
            for cohort, old, new in zip(
                piece.column("cohort_id"), piece.column("charged"), refined.column("charged"), strict=True
            )
        )

    def _joining(self, settled: set[int]) -> tuple[dict[int, int], dict[int, int]]:
        """What each cohort that joins a new piece may be charged, and people who cannot pay, by its id."""
        joining: dict[int, int] = {}
        unable: dict[int, int] = {}
        offer_of = cache(self._resolved.offer)
        # Most of many cohorts are in pieces already.
        new = [cohort not in settled for cohort in self.cohorts.column("id")]
        columns = map(self.cohorts.column, ("id", "trust", "epsilon", "count"))
        rows = zip(*(compress(column, new) for column in columns), strict=True)
        for cohort, trust, epsilon, count in rows:
            if trust is not Trust.CENTRAL:
                continue
            if self.given.get(cohort, 0) >= self._resolved.share:
                continue
            offer = offer_of(epsilon)
            owed = offer - self.paid.get(cohort, 0)
            if offer and owed <= 0:
                continue
            if 0 < owed <= self._left[cohort]:
                joining[cohort] = owed
            else:
                unable[cohort] = count
        return joining, unable

    def join(
        self,
        number: int,
        weigh: Callable[[Set[int]], Iterable[tuple[int, int]]],
        sums: int = 2,
        *,
        among: Iterable[int],
    ) -> tuple[Piece, ...]:
        """The new pieces: one for the newcomers, and one for those who have given the same in closed pieces.

        Args:
            number: Of the first one.
            weigh: What one person of each of some cohorts weighs under `PieceNoise.unit`, by their ids.
            sums: How many each piece has.
            among: Ids of the cohorts of which these pieces are.
        """
        joining: dict[int, set[int]] = {}
        for cohort in self.joining.keys() & among:
            joining.setdefault(self.given.get(cohort, 0), set()).add(cohort)
        made: list[Piece] = []
        for base, cohorts in sorted(joining.items()):
            weighed = [(cohort, weight) for cohort, weight in weigh(cohorts) if cohort in cohorts]
            piece = self._piece(number + len(made), base, weighed, sums)
            made += [] if piece is None else [piece]
        return tuple(made)

    def _piece(self, number: int, base: int, weighed: Iterable[tuple[int, int]], sums: int) -> Piece | None:
        """A new piece; None where no person weighs anything in it.

        Weights are for the whole epsilon, as those of every piece. What was rounded up in former pieces is
        taken off the weight, so that no step from here on takes more than the question's share.
        """
        share, noise = self._resolved.share - base, self._noise
        coarse = noise.coarse(share)
        bought = []
        for cohort, weight in weighed:
            whole = noise.cost(weight, share, noise.unit)
            if base or whole > self._left[cohort]:
                rest = min(math.floor(whole), self.joining[cohort])
                weight = min(weight, noise.weight(rest, share))
            if weight >> coarse:
                bought.append((cohort, weight >> coarse, self._counts[cohort]))
        if not bought:
            return None
        piece = Piece(
            number=number,
            unit=noise.unit_of(noise.unit / 2**coarse),
            share=share,
            scale=0.0,
            sums=(0,) * sums,
            refinable=True,
            members=Members.of_rows(("cohort_id", "weight", "count"), sorted(bought)),
            base=base,
            start=share,
        )
        return priced(piece, noise)

    def step(self, before: LastStep | None, kept: Sequence[Piece], finer: frozenset[int]) -> dict[str, Any]:
        """What a step takes and does, by the names of `PieceStep`.

        Args:
            before: The step before it.
            kept: Every piece as it will be.
            finer: Numbers of those whose noise it draws.

        Raises:
            InternalFault: as `charges`.
        """
        charges = self.charges(kept, finer)
        return {
            "before": before,
            "noise": self._noise,
            "had": {piece.number: piece.share for piece in self.pieces},
            "pieces": tuple(kept),
            "finer": finer,
            "closed": self.closed & {piece.number for piece in kept},
            "used": self.used(kept, finer, charges),
            "charges": charges,
            "paid": self.paid,
        }

    def charges(self, kept: Sequence[Piece], finer: frozenset[int]) -> Charges:
        """What the step costs; checked against what people have left.

        Raises:
            InternalFault: a person would pay more than they have, or than the question may take of them.
        """
        before = {piece.number: piece for piece in self.pieces}
        due: dict[int, int] = {}
        for piece in kept:
            if piece.number in finer:
                members, had = piece.column("cohort_id"), before.get(piece.number)
                former = [0] * len(members) if had is None else charged(had)
                for cohort, cost, before_it in zip(members, charged(piece), former, strict=True):
                    due[cohort] = due.get(cohort, 0) + cost - before_it
        epsilons = dict(zip(self.cohorts.column("id"), self.cohorts.column("epsilon"), strict=True))
        share, paid, left = self._resolved.share, self.paid, self._left
        for cohort, cost in due.items():
            most = -(-epsilons[cohort] * share // MICRO)
            if cost < 0 or cost > left[cohort] or (cost and paid.get(cohort, 0) + cost > most):
                raise InternalFault("A step costs more than a person has offered.")
        ids = [cohort for cohort in sorted(due) if due[cohort]]
        return Charges({"cohort_id": ids, "epsilon": [due[cohort] for cohort in ids]}, len(ids))

    def used(self, kept: Sequence[Piece], finer: frozenset[int], charges: Charges) -> AllUsed:
        """Cohorts whose sums the step reads: of pieces that are drawn, and all that are not central."""
        costs = dict(charges.rows("cohort_id", "epsilon"))
        read = {cohort for piece in kept if piece.number in finer for cohort in piece.column("cohort_id")}
        read.update(map(self.cohorts.column("id").__getitem__, self.cohorts.not_central))
        ids = sorted(read)
        columns = {
            "cohort_id": ids,
            "count": [self._counts[cohort] for cohort in ids],
            "offer": [costs.get(cohort, 0) for cohort in ids],
        }
        return AllUsed(columns, len(ids))
