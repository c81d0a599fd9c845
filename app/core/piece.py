"""Pieces: the noisy sums that a question keeps, so that its answer can be sharpened and extended."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.core.columns import Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A cohort in a piece.

    Attributes:
        cohort_id: The cohort.
        weight: Of each of its members in all sums; never changes.
        count: Members when the first noise of the piece was drawn.
        charged: What the piece has cost each of them [the study's currency].
    """

    cohort_id: int
    weight: int
    count: int
    charged: int


class Members(Columns[Member]):
    """Cohorts in a piece by columns."""

    kind = Member
    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Noisy sums over some cohorts with the same weights: of values and of their squares, or people by bin.

    Attributes:
        number: Of the question's pieces, from 1.
        unit: Laplace scale, or sigma of Gaussian noise, at share 1 [units of the sums].
        share: Part of the weights that it has used [ppm].
        base: What its people had given the question before, in pieces that can be refined no more [ppm]. With
            `share` it is what they have given in all.
        scale: Of the noise now; for Laplace noise of all sums, unit / share, rounded up [units of the sums].
        sums: The noisy sums, not clipped; with Gaussian noise `share` times such a sum, see
            `app.mechanisms.refined_gaussian`. Of zeros before the first draw.
        refinable: Whether its noise may be lowered; once it may not, it never may again.
        members: Its cohorts, in the order of their ids; none where it is secret who is in it.
        least: There, what people must have offered to be in it [micro-epsilon]; None of answers from before
            that was asked. The release that leaves it says so; not kept beside it.
        weighs: There, the most and the least that a person can weigh, see `app.estimators.combined_ratio`.
            The release that leaves it says so; not kept beside it.
        start: The share at which it was first drawn [ppm]; 0 where that is not read. Releases say so.
    """

    number: int
    unit: float
    share: int
    scale: float
    sums: tuple[int, ...]
    refinable: bool
    members: Sequence[Member]
    weighs: tuple[float, float] | None = None
    least: int | None = None
    base: int = 0
    start: int = 0

    @property
    def first(self) -> int:
        """The noisy sum of values."""
        return self.sums[0]

    @property
    def second(self) -> int:
        """The noisy sum of squares."""
        return self.sums[1]

    def column(self, name: str) -> Sequence[int]:
        """One field of every member."""
        return Members.of(self.members).column(name)

    def rows(self, *names: str) -> Iterator[tuple[int, ...]]:
        """Some fields of every member."""
        return Members.of(self.members).rows(*names)

    def sealed(self) -> dict[str, object]:
        """What the release that leaves it so says of it."""
        said: dict[str, object] = {"number": self.number, "share": self.share, "scale": self.scale}
        if self.base:
            said["base"] = self.base
        if self.weighs is not None:
            said["weighs"] = list(self.weighs)
        if self.least is not None:
            said["least"] = self.least
        return {**said, "digest": self.digest()}

    def digest(self) -> str:
        """SHA-256 of all of it, as the release that leaves it so puts it in the hash chain [hex].

        The next draw is the right one only given this very sum: noise that is lowered from any other
        sum has not the law that was paid for. Privacy: of an output of the mechanism and of public weights.
        """
        columns = map(self.column, ("cohort_id", "weight", "count", "charged"))
        members = ",".join(map("[{},{},{},{}]".format, *columns))
        # Pieces from before bases were kept have none, and keep their digests.
        base = [{"base": self.base}] if self.base else []
        parts = [self.number, self.unit.hex(), self.share, self.scale.hex(), *self.sums, *base]
        document = json.dumps([*parts, self.refinable], separators=(",", ":"))
        return hashlib.sha256(f"{document[:-1]},[{members}]]".encode()).hexdigest()


def family_apart(release: UUID) -> bytes:
    """What the sums of an answer with noise of its own are kept under, as those of a question of its own."""
    return hashlib.sha256(release.bytes).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LastStep:
    """The newest release of a question that is a step of its shares.

    Attributes:
        release: Its id.
        share: What the question has used by then [ppm].
        epoch: The last epoch that took part.
        steps: How many there are by then.
    """

    release: UUID
    share: int
    epoch: int
    steps: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a step does to the pieces of its question, in the transaction that publishes it.

    Attributes:
        before: The step before it, which must still be the last one; None: there is none.
        changed: Pieces that are new, refined, or refinable no more, as they are afterwards.
    """

    before: LastStep | None
    changed: tuple[Piece, ...]

    @property
    def share_before(self) -> int:
        """What the question had used [ppm]."""
        return 0 if self.before is None else self.before.share
