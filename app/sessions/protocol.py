"""What every protocol of a session has in common: the one interface between a protocol and its session.

A session asks a question a round, takes answers, and when a round closes hands their counts to the protocol,
which is frozen data and returns the next one. Who answered, what it cost and when a round closes is the
session's business; what is asked and what the answers mean is the protocol's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from app.core.grid import Grid
from app.core.session import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralSums:
    """Sums over central and public people, with noise.

    Attributes:
        release: Id of the release that published them.
        counts: People next to each center [2^-30 people].
        sums: For each center, the sums of their offsets from the middle of the range, coordinate by
            coordinate [grid steps].
    """

    release: str
    counts: tuple[int, ...]
    sums: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAnswers:
    """The answers of one round.

    Attributes:
        counts: How many gave each answer; answers that no one gave may be missing.
        sums: For each answer, the sums of the reports of those who gave it, coordinate by coordinate, those
            outside of the range `Terms.report_beyond` its end [grid steps]; empty where there are no reports.
        central: What central people say; None where they do not take part.
    """

    counts: Mapping[int, int]
    sums: Mapping[int, Sequence[int]] = field(default_factory=dict)
    central: CentralSums | None = None

    @property
    def total(self) -> int:
        """All answers."""
        return sum(self.counts.values())


class RunningProtocol(Protocol):
    """Rules and progress of a protocol: frozen data, and what it does when a round closes."""

    @property
    def terms(self) -> Terms:
        """What is fixed for all people who take part."""

    @property
    def assigns(self) -> bool:
        """Whether each person answers in one round only, which is assigned."""

    @property
    def people_per_round(self) -> int | None:
        """People who are expected to answer in one round; None where it is unknown."""

    @property
    def round(self) -> int | None:
        """The open round, from 1; None once all are closed."""

    def close(self, answers: RoundAnswers) -> Self:
        """Close the open round."""

    def stop(self, answers: RoundAnswers) -> Self:
        """End early; the answers of the open round count where they can be relied on."""

    def announcement(self) -> Mapping[str, object]:
        """What was fixed at the start, for people: JSON fields."""

    def question(self, grid: Grid) -> Mapping[str, object]:
        """What the open round asks, as JSON fields: in grid steps and in the data's unit."""

    def progress(self, grid: Grid) -> Mapping[str, object]:
        """What the closed rounds found, as JSON fields in the data's unit."""

    def result(self, grid: Grid) -> Mapping[str, object]:
        """What the session found in the end, as JSON fields in the data's unit."""

    def document(self) -> dict[str, object]:
        """Everything about it, to be stored as JSON and restored."""
