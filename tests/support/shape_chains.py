"""A question for shares or coordinates that is asked for more and more, as the ledger would have it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from app.core.cohort import Cohort
from app.core.piece import LastStep, Piece
from app.core.study import StudyDefinition
from app.services.shapes.kinds import resolve
from app.services.shapes.steps import ShapeStep, plan_step
from app.services.statistics.questions import Ask


class ShapeChain:
    """Steps of one question: its pieces, what each cohort has spent, by its id, and the last answer."""

    def __init__(self, study: StudyDefinition, ask: Ask) -> None:
        self.study, self.ask = study, ask
        self.pieces: dict[int, Piece] = {}
        self.before: LastStep | None = None
        self.spent: dict[int, int] = {}
        self.last: dict[str, Any] = {}

    def step(self, share: int, people: Sequence[Cohort], counts: Mapping[int, Sequence[int]]) -> ShapeStep:
        """Take the step to a share, of people who have spent nothing else."""
        question = resolve(self.study, replace(self.ask, share=share))
        live = [replace(one, spent=self.spent.get(one.id, 0)) for one in people]
        step = plan_step(self.study, question, live, [*self.pieces.values()], self.before)
        assert step is not None
        self.last, taken = step.take(counts)
        self.pieces |= {piece.number: piece for piece in taken.changed}
        self.before = LastStep(release=UUID(int=share), share=share, epoch=1)
        for charge in step.charges:
            self.spent[charge.cohort_id] = self.spent.get(charge.cohort_id, 0) + charge.epsilon
        return step
