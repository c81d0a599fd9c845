"""What every request for an answer has: what stands for it, what a new one is compared with, who is asked."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Generic, Self, TypeVar
from uuid import UUID

from app.core.attributes import label_of
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import PrivacyRefusal
from app.core.piece import LastStep, Piece
from app.core.quota import QuotaUse
from app.core.release import Facts, NoisyCount, StoredRelease
from app.core.study import Study, StudyDefinition
from app.estimators.interface import Accuracy, Estimator, NotApplicable
from app.estimators.together import KnownError
from app.services.replies import Idempotency
from app.services.statistics import gain, measured, says_nothing
from app.services.statistics.any_made import AnyMade
from app.services.statistics.any_question import AnyQuestion
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.levels import ASKS_FIRST, Level, Numbered, first_deviations
from app.services.statistics.questions import SUM, Ask
from app.services.statistics.reaching import smallest
from app.services.statistics.reading import Reading
from app.store import cohorts, pieces
from app.store import releases as store
from app.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyRequest(ABC):
    """One request for an answer.

    Attributes:
        study, question: What was asked of which study; of one of several measures, as the study of that one.
        first: Whether an answer that stands will do.
        least: Whether it must have taken at least the question's share and cap.
        raises: Whether it raises the last share of the question, by the study's default.
        statistic: What is to be read off the answer.
        asker, idempotency, allow_worse, fresh: As in `Answering.release`.
        had: What its question has used [ppm]: of the asker's quota it takes the rest.
        until: What half of the interval is to be at most, in place of a share, and of what; None of others.
        published: add_remove_one: noisy numbers of the people it is about, the newest first.
    """

    study: Study
    question: AnyQuestion
    first: bool
    least: bool
    raises: bool
    statistic: str
    asker: UUID | None
    idempotency: Idempotency | None
    allow_worse: bool
    fresh: bool
    had: int = 0
    until: tuple[float, Reading] | None = None
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
    ) -> Self:
        """Check a question against its study.

        Raises:
            InvalidRequest: it is not admissible.
        """
        question = cls._resolved(study.definition, ask, fresh=fresh)
        return cls(
            study=replace(study, definition=study.definition.of_measure(question.measure)),
            question=question,
            first=first,
            least=any(one is not None for one in (ask.share, ask.epsilon, ask.until)),
            raises=ask.share is None and ask.until is None,
            statistic=ask.statistic,
            asker=asker,
            idempotency=idempotency,
            allow_worse=allow_worse,
            fresh=fresh,
            until=None if ask.until is None else (ask.until, Reading.of(study.definition, ask.read or ask)),
        )

    @staticmethod
    @abstractmethod
    def _resolved(study: StudyDefinition, ask: Ask, *, fresh: bool) -> Any:
        """The question with every default filled in, checked."""

    @property
    def compares(self) -> bool:
        """Whether answers are compared: where the number of people is public."""
        return not self.study.definition.hides_people

    @property
    def is_public(self) -> bool:
        """Whether it asks for what is public: then it charges no one."""
        return self.question.public

    @property
    def sharpens(self) -> bool:
        """Whether it is of the kind whose answers can sharpen each other."""
        return self.compares

    @property
    def by_steps(self) -> bool:
        """Whether answers to the question sharpen each other, if it is of the kind that can."""
        return self.sharpens and not self.fresh

    @property
    def use(self) -> QuotaUse | None:
        """What it takes of its asker's quota: nothing, where it charges no one; None without an asker."""
        if self.asker is None:
            return None
        share = 0 if self.is_public else self.question.share_taken(self.study.definition) - self.had
        return QuotaUse(token_id=self.asker, share=max(0, share))

    async def towards(self, connection: Connection) -> Self:
        """The request for a certain share, and with what the step to that share takes of the asker's quota.

        What people who came since the last step have not given yet counts when they are charged. Where the
        number of people is secret, with those who take part chosen, and numbers of people to predict for.
        """
        if self.until is not None:
            # Until the share is known it takes as little of a quota as an answer that stands.
            self = replace(self, question=self.question.at(1))
        if not self.compares:
            return await self.leveled(connection)
        if not self.by_steps:
            return self
        last = await pieces.last_step(connection, self.study.id, self.question.by_parts.family)
        if last is None:
            return self
        share = min(MICRO, last.share + self.question.share) if self.raises else self.question.share
        return replace(self, question=replace(self.question, share=share), had=last.share)

    async def leveled(self, connection: Connection, level: Level | None = None) -> Self:
        """The request with those who take part chosen, or given, where their number is secret."""
        published = await numbered(connection, self.study, self.question.where)
        question = self.question.leveled(self.study.definition, published, level)
        return replace(self, question=question, published=published)

    def at(self, share: int) -> Self:
        """The request for another share [ppm]."""
        question = self.question.at(share)
        if not self.compares and share != self.question.share:
            question = question.leveled(self.study.definition, self.published)
        return replace(self, question=question)

    async def answered(self, connection: Connection, *, any_share: bool = False) -> StoredRelease | None:
        """What answers who only reads: what stands, or with `until` the best that does, if that is enough."""
        if not self.first:
            return None
        found = await self.standing(connection, any_share=any_share or self.until is not None)
        return found if self.until is None or (found and _is_near(found.body, *self.until)) else None

    @property
    def measure_summed(self) -> str:
        """Of which of several measures people's sums are needed, for an answer."""
        return self.question.measure

    @property
    def measure_reported(self) -> str:
        """Of which of several measures the sums of reports are needed, for a plan."""
        return self.question.measure

    async def people(self, connection: Connection) -> Sequence[Cohort]:
        """The people of whom it asks, for an answer: the folded cohorts, with what they sum up to."""
        rows = self.among(await cohorts.read_cohorts(connection, self.study.id))
        return await measured.summed(connection, self.study, self.measure_summed, rows)

    async def profile(self, connection: Connection) -> Sequence[Cohort]:
        """The same as they are now, for a plan."""
        return self.among(await measured.read_profile(connection, self.study, self.measure_reported))

    def among(self, rows: Sequence[Cohort]) -> Sequence[Cohort]:
        """The cohorts of whom the question asks."""
        return self.question.among(self.study.definition, rows)

    @property
    @abstractmethod
    def widest(self) -> float:
        """All that an interval can take up, in the unit of the width of those that stand."""

    @abstractmethod
    async def standing(self, connection: Connection, *, any_share: bool = False) -> StoredRelease | None:
        """The answer that stands for the question, if there is one."""

    async def _stored(
        self, connection: Connection, *, any_share: bool, beside: Sequence[bytes] = ()
    ) -> StoredRelease | None:
        """The best answer that stands, where they are compared; among those that are kept `beside`, too."""
        return await store.standing(
            connection,
            self.study.id,
            self.question.by_parts,
            beside=beside,
            width=self.widest,
            at_least=self.least and not any_share,
            as_good=gain.AS_GOOD,
        )

    async def best(self, connection: Connection, people: int) -> float | None:
        """The smallest width that a former answer has for these people; None: nothing to compare with."""
        if not self.compares:
            return None
        family = self.question.by_parts.family
        return await store.best_width(connection, self.study.id, family, people=people, width=self.widest)

    async def kept(self, connection: Connection) -> tuple[LastStep | None, Sequence[Piece]]:
        """The last step of the question, and its pieces."""
        if not self.by_steps:
            return None, ()
        return await pieces.read_kept(connection, self.study.id, self.question.by_parts.family)

    @abstractmethod
    def left_out_of(self, facts: Facts) -> int:
        """The people of whom `check` asks whether they are too many, of an answer that was drawn."""

    def check(self, people: int, left_out: int, width: float, best: float | None) -> None:
        """Refuse an answer that is no gain, where answers are compared; see `gain.check`."""
        if self.compares and not self.is_public and not self.allow_worse:
            gain.check(people=people, left_out=left_out, width=width, best=best, needed=self.first)

    @abstractmethod
    def check_read(self, made: Any) -> None:
        """Refuse an answer off which what is asked cannot be read, before anything is drawn.

        Raises:
            NotApplicable: it is one.
        """

    def compared(self, made: Any) -> tuple[int, int, float]:
        """People, those who cannot pay, and the predicted width by which an answer is compared."""
        return made.crowd.people, made.crowd.unable, made.interval_width

    def is_gain(self, made: Any, best: float | None) -> bool:
        """Whether an answer is one, beside the best that there is."""
        try:
            self.check(*self.compared(made), best)
        except PrivacyRefusal:
            return False
        return True

    @abstractmethod
    def told(self, made: Any) -> float:
        """What the interval takes up of all that the number can be, see `says_nothing.Told`."""

    @abstractmethod
    def accuracy(self, made: Any, reading: Reading) -> Accuracy:
        """Of what is read off an answer, in the unit of that."""

    def check_planned(self, now: "AnySituation[Any]", made: Any) -> None:
        """Refuse a planned answer that is no gain, or that will say nothing; arguments as of `check_told`.

        One without noise of its own charges no one: what stands answers.
        """
        if made.draws or now.before is None:
            self.check(*self.compared(made), now.best)
            self.check_told(now, made)

    @property
    def choices(self) -> Sequence[Sequence[Estimator] | None]:
        """What may answer, one estimator each; None where there is no choice."""
        return (None,)

    @abstractmethod
    def planned(
        self, now: Any, made: Any, reading: Reading, among: Sequence[Estimator] | None
    ) -> PlannedEstimator:
        """What a plan says of an answer.

        Args:
            now, made, among: The answer, what it was planned from, and among which estimators.
            reading: What is read off it.

        Raises:
            NotApplicable, PrivacyRefusal: there would be none without a tilt.
        """

    def check_told(self, now: "AnySituation[Any]", made: Any) -> None:
        """Refuse an answer that will say nothing, before anything is charged; see `says_nothing.check`.

        Args:
            now: What it is planned from.
            made: The answer.
        """
        if not self.allow_worse:
            says_nothing.check(
                self.told(made),
                lambda share, times: now.told(self.at(share), times),
                share=self.question.share,
                people=now.people_known(self),
                why=says_nothing.COUNTED if self.question.weighs_alike else says_nothing.INTERVAL,
            )


Asked = TypeVar("Asked", bound=AnyRequest)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnySituation(ABC, Generic[Asked]):
    """What an answer is planned from.

    Attributes:
        epoch: The last epoch that is folded.
        cohorts: Who is there, of those whom the question asks.
        best: The smallest width of a former answer, see `AnyRequest.best`.
        pieces, before: What the question has by its former steps.
    """

    epoch: int
    cohorts: Sequence[Cohort]
    best: float | None
    pieces: Sequence[Piece]
    before: LastStep | None

    @property
    def share_before(self) -> int:
        """What the question has used [ppm]."""
        return 0 if self.before is None else self.before.share

    @classmethod
    @abstractmethod
    async def read(
        cls, connection: Connection, request: Asked, rows: Sequence[Cohort], *, epoch: int
    ) -> Self:
        """Read what else there is, the cohorts that are asked given."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The people who are there."""

    def people_known(self, request: Asked) -> float:
        """The people who are there, as far as is known; 0 where nothing is."""
        return self.size if request.compares else request.question.known or 0.0

    @abstractmethod
    def step(self, request: Asked, among: Sequence[Estimator] | None = None) -> AnyMade | None:
        """The step that answers a request; None where it is answered with noise of its own."""

    @abstractmethod
    def alone(self, request: Asked, among: Sequence[Estimator] | None = None) -> Any:
        """The answer to a request with noise of its own."""

    def made(self, request: Asked, among: Sequence[Estimator] | None = None) -> Any:
        """The answer to a request: a step, or one with noise of its own.

        Args:
            request: Of some share.
            among: What `auto` chooses among.

        Raises:
            BudgetExhausted, NotApplicable: there is none.
        """
        if request.question.asks_first:
            request = replace(request, question=request.question.rest)
            return self.among(request, self.cohorts).made(request, among)
        return self.step(request, among) or self.alone(request, among)

    def told(self, request: Asked, times: float) -> float:
        """What the interval takes up of all that the number can be, see `says_nothing.Told`.

        Args:
            request: For some share.
            times: As many people as there are.
        """
        if times == 1:
            return request.told(self.predicted(request))
        now, cohorts = replace(self, pieces=(), before=None), self.cohorts if request.compares else ()
        request = replace(request, question=request.question.of_times(times))
        return request.told(now.among(request, multiplied(cohorts, times)).made(request))

    def predicted(self, request: Asked) -> AnyMade:
        """The answer to a request for another share, from what may be known before it is drawn.

        Raises:
            BudgetExhausted, NotApplicable: there is none.
        """
        now = self if request.compares else replace(self, pieces=(), before=None)
        made: AnyMade = now.among(request, self.cohorts if request.compares else ()).made(request)
        return made

    def reaching(self, request: Asked) -> tuple[Self, Asked]:
        """The request with the share that its `until` takes, and what its answer is planned from.

        Raises:
            OutOfReach: none is enough.
            BudgetExhausted, NotApplicable: there is no answer at all.
        """
        if request.until is None:
            return self, request
        wanted, reading = request.until

        def half_width(share: int) -> float | None:
            asked = request.at(share)
            return asked.accuracy(self.predicted(asked), reading).half_width

        least = max(1, self.share_before if request.by_steps else 0)
        found = request.at(smallest(half_width, wanted, least=least))
        return self.among(found, self.cohorts), found

    def among(self, request: Asked, cohorts: Sequence[Cohort]) -> Self:
        """What an answer about other people is planned from."""
        return replace(self, cohorts=cohorts)


_ROUNDED = 1 + 1e-9
"""The ends of an interval are rounded, half of what lies between them is a little more or less for it."""


def _is_near(body: bytes, wanted: float, reading: Reading) -> bool:
    """Whether an answer is as exact as is wanted: half of its interval, or of that of what is read off it."""
    document = json.loads(body)
    if reading.label_weights:
        groups = {label_of(one["where"], reading.by): one for one in document["groups"]}
        try:
            weights = reading.label_weights.of({name: one["people"] for name, one in groups.items()})
        except NotApplicable:
            return False
        parts = [(weight, groups[label].get("error")) for label, weight in weights.items()]
        if any(error is None for _, error in parts):
            return False
        known = KnownError.weighted([(weight, KnownError.read(error)) for weight, error in parts])
        return known.dataset.half_width() <= wanted * _ROUNDED
    times = document["people"] if reading.statistic == SUM else 1
    read = [one["interval"] for one in document.get("coordinates", [document])]
    return all(times * (one["upper"] - one["lower"]) / 2 <= wanted * _ROUNDED for one in read)


def multiplied(cohorts: Sequence[Cohort], times: float) -> list[Cohort]:
    """Cohorts with this many times the people together, and with what they sent, spread as they are."""
    ends = [0, *accumulate(cohort.count for cohort in cohorts)]
    counts = [round(times * end) - round(times * start) for start, end in pairwise(ends)]
    return [
        replace(
            cohort,
            count=count,
            silent=cohort.silent * count // max(1, cohort.count),
            total=cohort.total * count // max(1, cohort.count),
            total_squares=cohort.total_squares * count // max(1, cohort.count),
        )
        for cohort, count in zip(cohorts, counts, strict=True)
    ]


async def numbered(connection: Connection, study: Study, where: Mapping[str, str]) -> list[Numbered]:
    """What is published of how many people a question is about, where their number is secret; newest first.

    Of whom it asks alone; and of all people, a part of whom it is about, where labels are equally frequent.
    """
    attributes = study.definition.attributes
    part = len(attributes.where(where)) / attributes.combinations if where else 1.0
    rows = await store.read_noisy_counts(connection, study.id, where)
    return [
        Numbered(
            least=None if row.least is None else round(row.least * MICRO),
            most=None if row.most is None else round(row.most * MICRO),
            people=row.count,
            part=part if row.of_all else 1.0,
            deviation=_deviation(study.definition, row),
        )
        for row in rows
    ]


def _deviation(study: StudyDefinition, row: NoisyCount) -> float:
    """Of the noise of a number that was measured to choose by; 0 of others [people]."""
    if row.share is None or row.least is None:
        return 0.0
    cap = None if row.cap is None else study.amount(row.cap) // ASKS_FIRST
    return first_deviations(study, row.share // ASKS_FIRST, cap).get(round(row.least * MICRO), 0.0)
