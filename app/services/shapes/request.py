"""A request for a distribution, or what needs one: what stands for it, and what it is planned from."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from app.core.cohort import Cohort
from app.core.release import Facts, StoredRelease
from app.core.session import SessionProtocol
from app.core.study import StudyDefinition
from app.estimators import confidence
from app.estimators.interface import Accuracy, Estimator, NotApplicable
from app.services.shapes import kinds
from app.services.shapes.kinds import AnyPlan
from app.services.shapes.questions import BY_BINS, DESCRIBE, ShapeQuestion
from app.services.shapes.steps import ShapeStep, plan_step
from app.services.statistics.any_request import AnyRequest, AnySituation
from app.services.statistics.asked_accuracy import Readable
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.questions import Ask
from app.services.statistics.reading import Reading
from app.services.work import run
from app.sessions.documents import from_document
from app.sessions.search import Search
from app.sessions.searched import Searched
from app.store import releases as store
from app.store import sessions
from app.store.database import Connection

PlannedShape = ShapeStep | AnyPlan
"""An answer that can be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRequest(AnyRequest):
    """One request for an answer about the distribution of the values, or what needs it."""

    question: ShapeQuestion

    @staticmethod
    def _resolved(study: StudyDefinition, ask: Ask, *, fresh: bool) -> ShapeQuestion:
        return kinds.resolve(study, ask)

    @property
    def sharpens(self) -> bool:
        """Whether it is of the kind whose answers can sharpen each other, see `app.services.shapes.steps`."""
        return self.compares and self.question.shape.keeps

    async def towards(self, connection: Connection) -> Self:
        """As of every request; with what answers told that it is planned for: a range, or spreads of a pair.

        Raises:
            InvalidRequest: a new answer would have too many numbers.
        """
        self.question.refuse_too_many_numbers(self.study.definition)
        question = await self.question.shape.informed(connection, self.study, self.question)
        return await super(ShapeRequest, replace(self, question=question)).towards(connection)

    @property
    def widest(self) -> float:
        """Widths of intervals are parts of all people, or of a range that is found."""
        return 1.0

    async def standing(self, connection: Connection, *, any_share: bool = False) -> StoredRelease | None:
        """The answer that stands for the question, if there is one: of a public number that of now."""
        if not self.compares:
            return await store.latest(connection, self.study.id, self.question.digest)
        found = await self._stored(connection, any_share=any_share)
        if found is None or not self.is_public:
            return found
        rows = await self.profile(connection)
        made = await run(kinds.make, self.study.definition, self.question, rows)
        return found if made.drawn_of_nothing().items() <= json.loads(found.body).items() else None

    @property
    def place(self) -> int | None:
        """Which coordinate of people's values it is about; None for the one value."""
        measure = self.question.measure
        return self.study.definition.measures.place(measure) if measure else None

    @property
    def measure_summed(self) -> str:
        """Of which measure people's sums are needed: a choice among several is not reported by all."""
        question = self.question
        return question.measure if question.estimator == DESCRIBE or question.choices else ""

    @property
    def measure_reported(self) -> str:
        """Of a choice alone: of numbers their reports are read by bin."""
        return self.question.measure if self.question.choices else ""

    async def searched(self, connection: Connection) -> Searched | None:
        """What finished searches say, where a quantile of all people is asked for: answers have no labels."""
        if self.question.quantile is None or self.question.by or self.question.where or not self.compares:
            return None
        records = await sessions.read_finished(connection, self.study.id, SessionProtocol.QUANTILE)
        if not records:
            return None
        ids = [record.definition.id for record in records]
        answering = await sessions.count_people(connection, self.study.id, ids)
        searches = [from_document(Search, json.loads(record.document)) for record in records]
        return Searched.of(searches, people=answering.people, reporting=answering.reporting)

    def check_read(self, made: PlannedShape) -> None:
        """Refuse an answer off which the statistic cannot be read.

        Raises:
            NotApplicable: it says nothing of the variance.
        """
        read = made.for_all.statistics
        if read and self.statistic not in read:
            raise NotApplicable("It would say nothing of the variance: people offer too little for that.")

    def left_out_of(self, facts: Facts) -> int:
        """None: local people are left out of most, and no reason to refuse."""
        return 0

    def told(self, made: PlannedShape) -> float:
        """What an interval takes up of all that its number can be."""
        return made.for_all.told(self.study.definition, self.question)

    def planned(
        self,
        now: "ShapeSituation",
        made: PlannedShape,
        reading: Reading,
        among: Sequence[Estimator] | None,
    ) -> PlannedEstimator:
        """See `AnyRequest`."""
        question, asked, shown = self.question, reading.ask.statistic, made.for_all
        return PlannedEstimator.of(
            self.study.definition,
            self.accuracy(made, reading),
            made,
            estimator=question.estimator,
            summary=question.shape.summary + shown.joined,
            one_report_moves=shown.one_report_moves,
            statistics=shown.statistics or (BY_BINS if asked in BY_BINS else (asked,)),
            **shown.shown(),
        )

    def accuracy(self, made: PlannedShape, reading: Reading) -> Accuracy:
        """Of a mean and what is read off it in the unit of that; of a found range as of the expected one."""
        study, shown = self.study.definition, made.for_all
        if shown.of_mean is not None:
            people, cells = shown.crowd.people, shown.cells
            return Readable(study=study, plan=shown.of_mean, people=people, cells=cells).accuracy(reading)
        with confidence.at(reading.level):
            return Accuracy(
                error=made.predicted_error,
                half_width=shown.half_width,
                anytime_half_width=shown.anytime_half_width,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSituation(AnySituation[ShapeRequest]):
    """What an answer is planned from.

    Attributes:
        searched: What finished searches say.
    """

    searched: Searched | None

    @classmethod
    async def read(
        cls, connection: Connection, request: ShapeRequest, rows: Sequence[Cohort], *, epoch: int
    ) -> "ShapeSituation":
        """Read what else there is, the cohorts that are asked given."""
        searched = await request.searched(connection)
        before, kept = await request.kept(connection)
        now = cls(epoch=epoch, cohorts=rows, best=None, pieces=kept, before=before, searched=searched)
        return replace(now, best=await request.best(connection, now.size))

    @property
    def size(self) -> int:
        """All with a live contribution, or an answer that is joined in."""
        more = 0 if self.searched is None else self.searched.people - self.searched.reporting
        return sum(row.count for row in self.cohorts) + more

    def step(self, request: ShapeRequest, among: Sequence[Estimator] | None = None) -> ShapeStep | None:
        """See `AnySituation`."""
        if not request.by_steps:
            return None
        study, question = request.study.definition, request.question
        return plan_step(study, question, self.cohorts, self.pieces, self.before)

    def alone(self, request: ShapeRequest, among: Sequence[Estimator] | None = None) -> AnyPlan:
        """See `AnySituation`."""
        return kinds.make(request.study.definition, request.question, self.cohorts, self.searched)
