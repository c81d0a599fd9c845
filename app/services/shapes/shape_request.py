"""A request for a distribution, or what needs one: what stands for it, what a new answer is compared with."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.piece import LastStep, Piece
from app.core.quota import QuotaUse
from app.core.release import Facts, StoredRelease
from app.core.session import SessionProtocol
from app.core.study import Relation, Study, StudyDefinition
from app.core.study import assumption as of_mean
from app.estimators.interface import NotApplicable
from app.services.replies import Idempotency
from app.services.shapes import shape_kinds, shape_told
from app.services.shapes.coordinates import CoordinatesPlan
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.shape_kinds import AnyPlan
from app.services.shapes.shape_labels import LabelsPlan
from app.services.shapes.shape_questions import (
    COORDINATES,
    COUNT,
    DESCRIBE,
    FOUND_RANGE,
    HISTOGRAM,
    SHARES,
    ExpectedRange,
    ShapeQuestion,
    resolve,
)
from app.services.shapes.shape_steps import ShapeStep, plan_step
from app.services.statistics import gain, measured, says_nothing
from app.services.statistics.levels import Numbered
from app.services.statistics.questions import Ask, among
from app.services.statistics.release_request import multiplied, numbered
from app.services.work import run
from app.sessions.documents import from_document
from app.sessions.search import Search
from app.sessions.searched import Searched
from app.store import pieces, sessions
from app.store import releases as store
from app.store.database import Connection

WHOLE = 1.0
"""Widths of intervals are parts of all people, or of a range that is found; those of means are in the data's
unit."""


_MOVED = ", in the part of it that is found, all values moved into it"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRequest:
    """One request for an answer; as `app.services.statistics.release_request.ReleaseRequest`.

    Attributes:
        had: What its question has used [ppm]: of the asker's quota it takes the rest.
        statistic: What is to be read off the answer.
        published: add_remove_one: noisy numbers of the people it is about, the newest first.
    """

    study: Study
    question: ShapeQuestion
    first: bool
    least: bool
    idempotency: Idempotency | None
    asker: UUID | None
    allow_worse: bool
    raises: bool
    fresh: bool
    had: int = 0
    statistic: str = ""
    published: Sequence[Numbered] = ()

    @classmethod
    def of(
        cls,
        study: Study,
        ask: Ask,
        *,
        asker: UUID | None = None,
        first: bool = False,
        idempotency: Idempotency | None = None,
        allow_worse: bool = False,
        fresh: bool = False,
    ) -> "ShapeRequest":
        """Check a question against its study.

        Raises:
            InvalidRequest: it is not admissible.
        """
        question = resolve(study.definition, ask)
        return cls(
            study=replace(study, definition=study.definition.of_measure(question.measure)),
            question=question,
            first=first,
            least=ask.share is not None or ask.epsilon is not None,
            idempotency=idempotency,
            asker=asker,
            allow_worse=allow_worse,
            raises=ask.share is None,
            fresh=fresh,
            statistic=ask.statistic,
        )

    @property
    def by_steps(self) -> bool:
        """Whether answers to the question sharpen each other, see `app.services.shapes.shape_steps`."""
        return (
            self.compares and self.question.estimator in (HISTOGRAM, SHARES, COORDINATES) and not self.fresh
        )

    async def towards(self, connection: Connection) -> "ShapeRequest":
        """The request for a certain share, or with a number of people to predict for, as means have them.

        Of a mean over a found range with the one that was found last, too.

        Raises:
            InvalidRequest: a new answer would have too many numbers.
        """
        question = self.question
        question.refuse_too_many_numbers(self.study.definition)
        if question.estimator == FOUND_RANGE:
            found = await store.read_last_range(connection, self.study.id, question.measure)
            expected = None if found is None else _expected(self.study.definition, found)
            question = replace(question, expected=expected)
        if not self.compares:
            published = await numbered(connection, self.study, question.where)
            question = question.leveled(self.study.definition, published)
            return replace(self, question=question, published=published)
        if not self.by_steps:
            return replace(self, question=question)
        last = await pieces.last_step(connection, self.study.id, self.question.by_parts.family)
        if last is None:
            return self
        if self.raises:
            question = replace(question, share=min(MICRO, last.share + question.share))
        return replace(self, question=question, had=last.share)

    def step(
        self, rows: Sequence[Cohort], kept: Sequence[Piece], before: LastStep | None
    ) -> ShapeStep | None:
        """The step that answers the request; None where it is answered with noise of its own."""
        if not self.by_steps:
            return None
        return plan_step(self.study.definition, self.question, rows, kept, before)

    async def kept(self, connection: Connection) -> tuple[LastStep | None, Sequence[Piece]]:
        """The last step of the question, and its pieces."""
        if not self.by_steps:
            return None, ()
        return await pieces.read_kept(connection, self.study.id, self.question.by_parts.family)

    @property
    def compares(self) -> bool:
        """Whether answers are compared: where the number of people is public."""
        return self.study.definition.relation is Relation.REPLACE_ONE

    @property
    def use(self) -> QuotaUse | None:
        """What it takes of its asker's quota: nothing, where it charges no one; None without an asker."""
        if self.asker is None:
            return None
        share = 0 if self.is_public else self.question.share_taken(self.study.definition) - self.had
        return QuotaUse(token_id=self.asker, share=max(0, share))

    async def standing(self, connection: Connection, *, any_share: bool = False) -> StoredRelease | None:
        """The answer that stands for the question, if there is one: of a public number that of now."""
        if not self.compares:
            return await store.latest(connection, self.study.id, self.question.digest)
        found = await store.standing(
            connection,
            self.study.id,
            self.question.by_parts,
            width=WHOLE,
            at_least=self.least and not any_share,
            as_good=gain.AS_GOOD,
        )
        if found is None or not self.is_public:
            return found
        rows = await self.profile(connection)
        made = await run(shape_kinds.make, self.study.definition, self.question, rows)
        now = {} if isinstance(made, FoundPlan) else made.answer({})
        return found if now.items() <= json.loads(found.body).items() else None

    @property
    def is_public(self) -> bool:
        """Whether it asks for the number of people where that is public."""
        return self.question.public

    @property
    def place(self) -> int | None:
        """Which coordinate of people's values it is about; None for the one value."""
        measure = self.question.measure
        return self.study.definition.measures.place(measure) if measure else None

    @property
    def of_choice(self) -> bool:
        """Whether it is about a choice among several measures, which not all local people report."""
        return bool(self.question.measure and self.question.choices)

    async def profile(self, connection: Connection) -> Sequence[Cohort]:
        """The people of whom it asks as they are now, for a plan."""
        measure = self.question.measure if self.of_choice else ""
        return self.among(await measured.read_profile(connection, self.study, measure))

    def among(self, cohorts: Sequence[Cohort]) -> Sequence[Cohort]:
        """Those of whom it asks."""
        return among(self.study.definition, self.question.where, cohorts)

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

    async def best(self, connection: Connection, people: int) -> float | None:
        """The smallest width that a former answer has for these people; None: nothing to compare with."""
        if not self.compares:
            return None
        family = self.question.by_parts.family
        return await store.best_width(connection, self.study.id, family, people=people, width=WHOLE)

    def check_read(self, made: AnyPlan) -> None:
        """Refuse an answer off which the statistic cannot be read, before anything is drawn.

        Raises:
            NotApplicable: it says nothing of the variance.
        """
        whole = made.whole if isinstance(made, LabelsPlan) else made
        if isinstance(whole, CoordinatesPlan) and self.statistic not in whole.statistics:
            raise NotApplicable("It would say nothing of the variance: people offer too little for that.")

    def left_out_of(self, facts: Facts) -> int:
        """None, of an answer that was drawn: local people are left out of most, and no reason to refuse."""
        return 0

    def check(self, people: int, unable: int, width: float, best: float | None) -> None:
        """Refuse an answer that is no gain, see `gain.check`."""
        if self.compares and not self.is_public and not self.allow_worse:
            gain.check(people=people, left_out=unable, width=width, best=best, needed=self.first)

    def check_told(
        self,
        made: AnyPlan | ShapeStep,
        rows: Sequence[Cohort],
        searched: Searched | None,
        kept: Sequence[Piece],
        before: LastStep | None,
    ) -> None:
        """Refuse an answer that will say nothing, before anything is charged; see `says_nothing.check`.

        Args:
            made: The answer.
            rows, searched, kept, before: What it is planned from.
        """
        if self.allow_worse:
            return
        study, compares = self.study.definition, self.compares
        here = rows if compares else ()

        def told(share: int, times: float) -> float:
            question = self.question.at(share)
            if not compares:
                question = question.leveled(study, self.published).of_times(times)
            people = here if times == 1 else multiplied(here, times)
            drawn = (kept, before) if times == 1 else ((), None)
            made = replace(self, question=question).step(people, *drawn)
            return shape_told.part(
                study, question, made or shape_kinds.make(study, question, people, searched)
            )

        says_nothing.check(
            shape_told.part(study, self.question, made),
            told,
            share=self.question.share,
            people=people_of(here, searched) if compares else self.question.known or 0.0,
            why=says_nothing.COUNTED if self.question.estimator == COUNT else says_nothing.INTERVAL,
        )


def _expected(study: StudyDefinition, last: StoredRelease) -> ExpectedRange:
    """The range that an answer found."""
    found = json.loads(last.body)["range"]
    part = (found["upper"] - found["lower"]) / float(study.grid.width)
    return ExpectedRange(width=max(1, min(GRID_SIZE, round(part * GRID_SIZE))), release=last.id)


def people_of(rows: Sequence[Cohort], searched: Searched | None) -> int:
    """All with a live contribution, or an answer that is joined in."""
    more = 0 if searched is None else searched.people - searched.reporting
    return sum(row.count for row in rows) + more


def assumption(study: StudyDefinition, question: ShapeQuestion) -> str | None:
    """What intervals assume of people, in words; None of a count, where a tilt has no place.

    A tilt is a part of all people; of a mean it is a part of the study's range. Where their number is secret
    and all weigh the same, nothing is assumed.
    """
    if question.estimator == COUNT:
        return None
    tilt = question.assumed(study)
    if question.estimator == FOUND_RANGE:
        return of_mean(tilt) + (_MOVED if 0 < tilt < MICRO else "")
    if question.estimator == COORDINATES:
        return of_mean(tilt) + (" in each coordinate" if tilt < MICRO else "")
    of_shares = _of_shares(tilt)
    # Of a description both are assumed, the one of the mean and the one of the quartiles.
    return (
        f"{of_mean(tilt)}, and {of_shares.removeprefix('holds ')}"
        if question.estimator == DESCRIBE
        else of_shares
    )


def _of_shares(tilt: int) -> str:
    if tilt >= MICRO:
        return "holds however privacy and values go together"
    if tilt == 0:
        return "holds if the values of those who ask for little privacy are distributed as the others'"
    return (
        "holds if the values of those who ask for little privacy differ from the others' in at most "
        f"{tilt / 10_000:g} % of them"
    )
