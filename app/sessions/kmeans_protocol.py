"""K-means as a running protocol: its document holds grid points and noisy numbers, nothing else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from app.core.epsilon import epsilon_of, epsilon_to_json
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, Grid
from app.core.session import Terms
from app.sessions.documents import to_document
from app.sessions.kmeans import (
    Clustering,
    ClusterRules,
    Clusters,
    advance,
    central_clusters,
    local_clusters,
)
from app.sessions.points import MIDDLE, GridPoint, to_grid, to_widths
from app.sessions.protocol import CentralSums, RoundAnswers


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStep:
    """One closed round.

    Attributes:
        centers: What came out, K grid points.
        errors: How far a coordinate of each center is off (see `Clustering`), as far as that comes of the
            noise of its sum; None where the center had no people and stayed [range widths].
        answers: Local people who answered.
        central: Central and public people, noise included; None where none took part.
        release: What was published about them.
    """

    centers: tuple[GridPoint, ...]
    errors: tuple[float | None, ...]
    answers: int
    central: float | None
    release: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningKMeans:
    """Where a K-means session stands.

    Attributes:
        rules: What is fixed.
        first: The public centers that it started from, K grid points.
        participants: Local people who are expected; None: unknown.
        takes_answers: Whether the study has local people at all.
        steps: The closed rounds.
        stopped: Whether it was ended before its last round.
    """

    rules: ClusterRules
    first: tuple[GridPoint, ...]
    participants: int | None = None
    takes_answers: bool = True
    steps: tuple[ClusterStep, ...] = ()
    stopped: bool = False

    @property
    def terms(self) -> Terms:
        """A report once, and the nearest center in every round."""
        rules = self.rules
        return Terms(
            rounds=rules.rounds,
            epsilon_per_answer=rules.epsilon_per_answer,
            epsilon_report=rules.epsilon_per_answer,
            answers_per_person=rules.rounds,
            categories=rules.clusters,
            report_dimension=rules.dimension,
            takes_answers=self.takes_answers,
        )

    @property
    def assigns(self) -> bool:
        """All people answer in every round."""
        return False

    @property
    def people_per_round(self) -> int | None:
        """Local people who are expected to answer in one round."""
        return self.participants

    @property
    def round(self) -> int | None:
        """The open round, from 1; None once all are closed."""
        return None if self.stopped or len(self.steps) == self.rules.rounds else len(self.steps) + 1

    @property
    def centers(self) -> tuple[GridPoint, ...]:
        """What the open round asks about, and the result in the end."""
        return self.steps[-1].centers if self.steps else self.first

    def close(self, answers: RoundAnswers) -> "RunningKMeans":
        """Move the centers by the answers of the open round and the noisy sums over central people.

        Raises:
            InternalFault: they are not about this session's centers.
        """
        if self.round is None:
            raise InternalFault("a round cannot be closed like this")
        parts: list[Clusters] = []
        if answers.central is not None:
            parts.append(_central(answers.central, self.rules))
        if answers.total:
            parts.append(_local(answers, self.rules))
        before = Clustering(rules=self.rules, centers=to_widths(self.centers), round=self.round)
        after = advance(before, tuple(parts))
        step = ClusterStep(
            centers=to_grid(after.centers),
            errors=tuple(None if np.isnan(error) else error for error in after.errors.tolist()),
            answers=answers.total,
            central=None if answers.central is None else sum(answers.central.counts) / GRID_SIZE,
            release=None if answers.central is None else answers.central.release,
        )
        return replace(self, steps=(*self.steps, step))

    def stop(self, answers: RoundAnswers) -> "RunningKMeans":
        """End early. The open round does not count: its centers are those of the last one that closed."""
        return replace(self, stopped=True)

    def announcement(self) -> Mapping[str, object]:
        """Sizes, and what the report costs."""
        rules = self.rules
        return {
            "participants": self.participants,
            "dimension": rules.dimension,
            "clusters": rules.clusters,
            "report_epsilon": epsilon_to_json(rules.epsilon_per_answer),
            "central_epsilon_per_round": epsilon_to_json(epsilon_of(rules.cost_per_round, rules.delta)),
        }

    def question(self, grid: Grid) -> Mapping[str, object]:
        """The centers, as grid points: which is nearest to yours?"""
        return {"centres": [list(center) for center in self.centers]}

    def progress(self, grid: Grid) -> Mapping[str, object]:
        """The present centers, and those after each closed round with the noise in them."""
        width = float(grid.width)
        return {
            "centres": _shown(self.centers, grid),
            "initial_centres": _shown(self.first, grid),
            "path": [
                {
                    "round": number,
                    "centres": _shown(step.centers, grid),
                    "noise_errors": [None if error is None else error * width for error in step.errors],
                    "answers": step.answers,
                    "central": step.central,
                    "release": step.release,
                }
                for number, step in enumerate(self.steps, start=1)
            ],
        }

    def result(self, grid: Grid) -> Mapping[str, object]:
        """Nothing beside the centers, which are shown all the time."""
        return {}

    def document(self) -> dict[str, object]:
        """Everything about it, to be stored as JSON and restored."""
        return to_document(self)


def _central(sums: CentralSums, rules: ClusterRules) -> Clusters:
    return central_clusters(
        np.array(sums.counts, dtype=np.float64) / GRID_SIZE,
        np.array(sums.sums, dtype=np.float64) / GRID_SIZE,
        rules,
    )


def _local(answers: RoundAnswers, rules: ClusterRules) -> Clusters:
    counts, sums = np.zeros(rules.clusters), np.zeros((rules.clusters, rules.dimension))
    for cluster, count in answers.counts.items():
        counts[cluster] = count
        # Python integers: a sum of reports may leave 64 bits.
        sums[cluster] = [
            float(Fraction(total - count * MIDDLE, GRID_SIZE)) for total in answers.sums[cluster]
        ]
    return local_clusters(counts, sums, rules)


def _shown(centers: Sequence[GridPoint], grid: Grid) -> list[list[float]]:
    return [[grid.to_unit(Fraction(point, GRID_SIZE)) for point in center] for center in centers]
