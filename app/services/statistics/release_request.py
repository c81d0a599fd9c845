"""A request for a mean, or what is read off one: what stands for it, and what it is planned from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from app.core.attributes import conditions_of, label_of
from app.core.cohort import Cohort
from app.core.errors import InvalidRequest
from app.core.release import Facts, StoredRelease
from app.core.study import StudyDefinition
from app.estimators import registry
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.interface import Accuracy, Estimator, NotApplicable, Question
from app.services.statistics import planning, says_nothing
from app.services.statistics.alone import Alone
from app.services.statistics.any_request import AnyRequest, AnySituation
from app.services.statistics.asked_accuracy import Readable
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafting import PlannedEstimator
from app.services.statistics.levels import Level
from app.services.statistics.questions import Ask, Resolved, resolve
from app.services.statistics.reading import Reading
from app.services.statistics.steps import MeanStep, plan_step
from app.store import combined
from app.store import releases as store
from app.store.database import Connection

PlannedMean = MeanStep | Alone
"""An answer that can be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest(AnyRequest):
    """One request for a mean, or what is read off one.

    Attributes:
        combines: Whether it is answered by a combination of what is published.
    """

    question: Resolved
    combines: bool = False

    @staticmethod
    def _resolved(study: StudyDefinition, ask: Ask, *, fresh: bool) -> Resolved:
        question = resolve(study, ask)
        if fresh and question.by:
            raise InvalidRequest.field("fresh", "does not apply to a question by labels")
        return question

    async def leveled(self, connection: Connection, level: Level | None = None) -> Self:
        """See `AnyRequest`; of labels what is published of their people is known, too."""
        request = await super(ReleaseRequest, self).leveled(connection, level)
        question, study = request.question, self.study
        own, stated = question.level, question.expected_size is not None
        if question.by and not question.where and not stated and own is not None:
            known = await store.read_noisy_labels(connection, study.id, question.by)
            own = own.with_labels(study.definition.attributes.cells(question.by), question.by, known)
            request = replace(request, question=replace(question, level=own))
        return request

    @property
    def _combines(self) -> bool:
        """Whether what answers it is the best combination of all means of its values, see `combining`."""
        question, study = self.question, self.study.definition
        if not question.of_all or question.spread or question.estimator != registry.AUTO:
            return False
        # Of a ratio parameters say what people pay, as a share does, or what else they pay for.
        defaults = registry.parameters(registry.AUTO, study.relation, study.noise)
        plain = question.parameters.items() <= {one.name: one.default for one in defaults}.items()
        return self.compares or plain

    async def has_news(self, connection: Connection) -> bool:
        """Whether there is something to be combined that was not there when answers were last combined."""
        if not self.first or self.least or not self._combines:
            return False
        family, kept = self.question.by_parts.family, self.question.combined().family
        question = None if self.compares else self.question.digest
        return await combined.has_news(
            connection, self.study.id, self.question.measure, family, kept, question
        )

    def combining(self) -> Self:
        """The request as one for a combination, which is free."""
        return replace(self, asker=None, allow_worse=True, combines=True)

    @property
    def widest(self) -> float:
        """The whole range [data's unit]."""
        return float(self.study.definition.grid.width)

    async def standing(self, connection: Connection, *, any_share: bool = False) -> StoredRelease | None:
        """The answer that stands for the question, if there is one."""
        whole = self._combines and (any_share or not self.least)
        if whole and not any_share and await self.has_news(connection):
            return None
        best = None
        if self.compares:
            beside = [self.question.combined().family] if whole else []
            best = await self._stored(connection, any_share=any_share, beside=beside)
        elif whole and not self.least:
            # The newest one is the best: only what makes it narrower is combined.
            best = await store.latest(connection, self.study.id, self.question.combined().family)
        return best or await store.latest(connection, self.study.id, self.question.digest)

    def check_read(self, made: PlannedMean) -> None:
        """Refuse a step without an answer for a label that is needed.

        Raises:
            NotApplicable: names the label, or no weights of labels are what is asked for.
        """
        label_weights, by = self.question.label_weights, self.question.by
        if label_weights is None or not made.parts:
            return
        weights = label_weights.of(self._cells(made))
        for part in made.parts:
            if part.plan is None and label_of(part.where, by) in weights:
                raise NotApplicable(
                    f"No person with {conditions_of(part.where)} can take part: there is nothing to read."
                )

    def left_out_of(self, facts: Facts) -> int:
        """All but those who did not report the measure."""
        return (facts.people_left_out or 0) - facts.silent

    def told(self, made: PlannedMean) -> float:
        """What the interval of a mean, or of a variance, takes up of all that it can be."""
        whole, plan = self.widest, made.plan
        if not self.compares and made.question.expected_size is None:
            return 0.0
        if self.question.spread and plan.spread is not None:
            # Of its interval there is but a bound.
            return says_nothing.width_of(plan.spread().error) / (whole**2 * WORST_VARIANCE)
        if not self.compares:
            return says_nothing.width_of(plan.predicted_error) / whole
        return made.interval_width / whole

    def readable(self, made: PlannedMean) -> Readable:
        """What is read off an answer."""
        return Readable(
            study=self.study.definition, plan=made.plan, people=made.crowd.people, cells=self._cells(made)
        )

    def _cells(self, made: PlannedMean) -> Mapping[str, int]:
        """The people of each label; none where that is secret."""
        return {label_of(part.where, self.question.by): part.crowd.people for part in made.parts}

    @property
    def choices(self) -> Sequence[Sequence[Estimator] | None]:
        """See `AnyRequest`: `auto` chooses."""
        study = self.study.definition
        if self.question.estimator != registry.AUTO:
            return (None,)
        return tuple((one,) for one in registry.applicable(study.relation, study.noise))

    def planned(
        self, now: "MeanSituation", made: PlannedMean, reading: Reading, among: Sequence[Estimator] | None
    ) -> PlannedEstimator:
        """See `AnyRequest`."""
        study, read = self.study.definition, self.readable(made)
        untilted = self.readable(now.untilted(self, among)) if self.question.tilt else read
        return PlannedEstimator.of(
            study,
            read.accuracy(reading),
            made,
            estimator=made.estimator.name,
            summary=made.estimator.summary,
            predicted_error_at_tilt_0=None if study.hides_people else untilted.accuracy(reading).error,
            one_report_moves=read.one_report(reading),
            statistics=read.statistics(made.question),
            expected_values=read.expected_values(reading, made.question.expected),
            of_mean=read.plan.predicted_error,
        )

    def accuracy(self, made: PlannedMean, reading: Reading) -> Accuracy:
        """Of what is read off an answer, in the unit of that."""
        return self.readable(made).accuracy(reading)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanSituation(AnySituation[ReleaseRequest]):
    """What an answer is planned from.

    Attributes:
        people, question: Who is there, as estimators see them, and what they are asked.
    """

    people: Crowd
    question: Question

    @classmethod
    async def read(
        cls, connection: Connection, request: ReleaseRequest, rows: Sequence[Cohort], *, epoch: int
    ) -> "MeanSituation":
        """See `AnySituation`."""
        definition, resolved = request.study.definition, request.question
        people = Crowd.of(definition, rows, resolved)
        before, kept = await request.kept(connection)
        best, variance = None, None
        last = await store.read_last_mean(connection, request.study.id, resolved.measure)
        spread = last
        if last is not None and last.variance is None:
            spread = await store.read_last_spread(connection, request.study.id, resolved.measure)
        if request.compares:
            best = await request.best(connection, people.people)
            variance = None if last is None else last.variance
        number = people.people if request.compares else None
        return cls(
            epoch=epoch,
            cohorts=rows,
            people=people,
            question=replace(
                resolved.question(definition, people=number, variance=variance),
                expected=planning.expected_values(definition, last, spread),
            ),
            best=best,
            pieces=kept,
            before=before,
        )

    @property
    def size(self) -> int:
        """The people who are there."""
        return self.people.people

    def step(self, request: ReleaseRequest, among: Sequence[Estimator] | None = None) -> MeanStep | None:
        """See `AnySituation`."""
        if not request.by_steps:
            return None
        return plan_step(
            request.study.definition,
            self.cohorts,
            request.question,
            self.question,
            self.pieces,
            self.before,
            among,
        )

    def alone(self, request: ReleaseRequest, among: Sequence[Estimator] | None = None) -> Alone:
        """See `AnySituation`."""
        return Alone.of(request.study.definition, self.people, request.question, self.question, among)

    def untilted(self, request: ReleaseRequest, among: Sequence[Estimator] | None) -> PlannedMean:
        """The answer to the same question without a tilt."""
        plain = replace(request, question=replace(request.question, tilt=0))
        made: PlannedMean = replace(self, question=replace(self.question, tilt=0.0)).made(plain, among)
        return made

    def among(self, request: ReleaseRequest, cohorts: Sequence[Cohort]) -> Self:
        """What an answer about other people is planned from."""
        definition, resolved = request.study.definition, request.question
        people = Crowd.of(definition, cohorts, resolved)
        asked = resolved.question(definition, people=people.people if request.compares else None)
        question = replace(asked, variance=self.question.variance, expected=self.question.expected)
        return replace(self, cohorts=cohorts, people=people, question=question)
