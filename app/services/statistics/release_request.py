"""A request for an answer: what stands for it, and what a new answer is compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from uuid import UUID

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import InvalidRequest
from app.core.piece import LastStep, Piece
from app.core.quota import QuotaUse
from app.core.release import Facts, StoredRelease
from app.core.study import Relation, Study
from app.estimators import registry
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.interface import Estimator, NotApplicable, Plan, Question
from app.services.replies import Idempotency
from app.services.statistics import gain, planning, says_nothing
from app.services.statistics.by_label import plan_by
from app.services.statistics.crowds import Crowd
from app.services.statistics.levels import Level, Numbered
from app.services.statistics.questions import Ask, Resolved, resolve
from app.services.statistics.steps import Step, plan_step
from app.store import combined, pieces
from app.store import releases as store
from app.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """One request for an answer.

    Attributes:
        study, resolved: What was asked of which study; of one of several measures, as the study of that one.
        first: Whether an answer that stands will do.
        least: Whether it must have taken at least the question's share and cap.
        raises: Whether it raises the last share of the question, by the study's default.
        combines: Whether it is answered by a combination of what is published.
        idempotency, use, allow_worse, fresh: As in `Releases.release`.
        published: add_remove_one: noisy numbers of the people it is about, the newest first.
    """

    study: Study
    resolved: Resolved
    first: bool
    least: bool
    raises: bool
    idempotency: Idempotency | None
    use: QuotaUse | None
    allow_worse: bool
    fresh: bool
    combines: bool = False
    published: Sequence[Numbered] = ()

    @classmethod
    def of(
        cls,
        study: Study,
        ask: Ask,
        *,
        asker: UUID | None,
        first: bool = False,
        idempotency: Idempotency | None = None,
        allow_worse: bool = False,
        fresh: bool = False,
    ) -> "ReleaseRequest":
        """Check a question against its study.

        Raises:
            InvalidRequest: it is not admissible.
        """
        resolved = resolve(study.definition, ask)
        if fresh and resolved.by:
            raise InvalidRequest.field("fresh", "does not apply to a question by labels")
        study = replace(study, definition=study.definition.of_measure(resolved.measure))
        share = resolved.share_taken(study.definition)
        return cls(
            study=study,
            resolved=resolved,
            first=first,
            least=ask.share is not None or ask.epsilon is not None,
            raises=ask.share is None and not fresh,
            idempotency=idempotency,
            use=None if asker is None else QuotaUse(token_id=asker, share=share),
            allow_worse=allow_worse,
            fresh=fresh,
        )

    @property
    def by_steps(self) -> bool:
        """Whether answers to the question sharpen each other, if it is of the kind that can."""
        return self.compares and not self.fresh

    async def towards(self, connection: Connection) -> "ReleaseRequest":
        """The request for a certain share, and with what the step to that share takes of the asker's quota.

        What people who came since the last step have not given yet counts when they are charged.
        """
        if not self.compares:
            return await self._leveled(connection)
        if not self.by_steps:
            return self
        family = self.resolved.by_parts.family
        last = await pieces.last_step(connection, self.study.id, family)
        if last is None:
            return self
        definition, resolved = self.study.definition, self.resolved
        if self.raises:
            resolved = replace(resolved, share=min(MICRO, last.share + resolved.share))
        share = max(0, resolved.share_taken(definition) - last.share)
        return replace(self, resolved=resolved, use=self.use and replace(self.use, share=share))

    async def about(self, connection: Connection, level: Level) -> "ReleaseRequest":
        """The request as one about certain people of a study whose number is secret."""
        resolved, study = self.resolved, self.study
        published = await numbered(connection, study, resolved.where)
        return replace(self, resolved=resolved.leveled(study.definition, published, level))

    async def _leveled(self, connection: Connection) -> "ReleaseRequest":
        """The request with those who take part chosen, and with numbers of people to predict for."""
        resolved, study = self.resolved, self.study
        published = await numbered(connection, study, resolved.where)
        resolved = resolved.leveled(study.definition, published)
        level = resolved.level
        stated = resolved.expected_size is not None
        if resolved.by and not resolved.where and not stated and level is not None:
            known = await store.read_noisy_labels(connection, study.id, resolved.by)
            labels = study.definition.attributes.labels[resolved.by]
            resolved = replace(resolved, level=level.with_labels(labels, resolved.by, known))
        return replace(self, resolved=resolved, published=published)

    def at(self, share: int) -> "ReleaseRequest":
        """The request for another share [ppm]."""
        resolved = replace(self.resolved, share=share)
        if not self.compares and share != self.resolved.share:
            resolved = resolved.leveled(self.study.definition, self.published)
        return replace(self, resolved=resolved)

    @property
    def compares(self) -> bool:
        """Whether answers are compared: where the number of people is public."""
        return self.study.definition.relation is Relation.REPLACE_ONE

    @property
    def _combines(self) -> bool:
        """Whether what answers it is the best combination of all means of the study, see `combining`."""
        resolved, study = self.resolved, self.study.definition
        if not resolved.of_all or resolved.spread or resolved.estimator != registry.AUTO:
            return False
        # Of a ratio parameters say what people pay, as a share does, or what else they pay for.
        defaults = registry.parameters(registry.AUTO, study.relation, study.noise)
        plain = resolved.parameters.items() <= {one.name: one.default for one in defaults}.items()
        return self.compares or plain

    async def has_news(self, connection: Connection) -> bool:
        """Whether there is something to be combined that was not there when answers were last combined."""
        if not self.first or self.least or not self._combines:
            return False
        family, kept = self.resolved.by_parts.family, self.resolved.combined().family
        question = None if self.compares else self.resolved.digest
        return await combined.has_news(connection, self.study.id, family, kept, question)

    def combining(self) -> "ReleaseRequest":
        """The request as one for a combination, which is free."""
        return replace(self, use=None, allow_worse=True, combines=True)

    async def standing(self, connection: Connection, *, any_share: bool = False) -> StoredRelease | None:
        """The answer that stands for the question, if there is one."""
        whole = self._combines and (any_share or not self.least)
        if whole and not any_share and await self.has_news(connection):
            return None
        if self.compares:
            best = await store.standing(
                connection,
                self.study.id,
                self.resolved.by_parts,
                beside=[self.resolved.combined().family] if whole else [],
                width=float(self.study.definition.grid.width),
                at_least=self.least and not any_share,
                as_good=gain.AS_GOOD,
            )
            if best is not None:
                return best
        elif whole and not self.least:
            # The newest one is the best: only what makes it narrower is combined.
            best = await store.latest(connection, self.study.id, self.resolved.combined().family)
            if best is not None:
                return best
        return await store.latest(connection, self.study.id, self.resolved.digest)

    async def best(self, connection: Connection, people: int) -> float | None:
        """The smallest width that a former answer has for these people; None: nothing to compare with."""
        if not self.compares:
            return None
        family, width = self.resolved.by_parts.family, float(self.study.definition.grid.width)
        return await store.best_width(connection, self.study.id, family, people=people, width=width)

    def check_labels(self, step: Step) -> None:
        """Refuse a step without an answer for a label that is needed, before anything is charged.

        Raises:
            NotApplicable: names the label.
        """
        for part in step.parts:
            label = part.where[self.resolved.by]
            if label in self.resolved.needs and part.plan is None:
                raise NotApplicable(
                    f"No person with {self.resolved.by}:{label} can take part: there is nothing to read."
                )

    def left_out_of(self, facts: Facts) -> int:
        """Those of whom `check` asks whether they are too many, of an answer that was drawn."""
        return (facts.people_left_out or 0) - facts.silent

    def check(self, people: int, left_out: int, width: float, best: float | None) -> None:
        """Refuse an answer that is no gain, where answers are compared; see `gain.check`."""
        if self.compares and not self.allow_worse:
            gain.check(people=people, left_out=left_out, width=width, best=best, needed=self.first)

    def check_told(self, now: "Situation", plan: Plan) -> None:
        """Refuse an answer that will say nothing, before anything is charged; see `says_nothing.check`.

        Args:
            now: What it is planned from.
            plan: Of the answer.
        """
        if not self.allow_worse:
            says_nothing.check(
                self.told(now.question, plan),
                lambda share, times: now.told(self.at(share), times),
                share=self.resolved.share,
                people=now.size(self),
            )

    def told(self, question: Question, plan: Plan) -> float:
        """What the interval of a mean, or of a variance, takes up of all that it can be."""
        whole = float(self.study.definition.grid.width)
        if not self.compares and question.expected_size is None:
            return 0.0
        if self.resolved.spread and plan.spread is not None:
            # Of its interval there is but a bound.
            return says_nothing.width_of(plan.spread().error) / (whole**2 * WORST_VARIANCE)
        if not self.compares:
            return says_nothing.width_of(plan.predicted_error) / whole
        return planning.interval_width(self.study.definition, plan) / whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What an answer is planned from.

    Attributes:
        epoch: The last epoch that is folded.
        cohorts, people, question: Who is there, as estimators see them, and what they are asked.
        best: The smallest width of a former answer, see `ReleaseRequest.best`.
        pieces, before: What the question has by its former steps.
    """

    epoch: int
    cohorts: Sequence[Cohort]
    people: Crowd
    question: Question
    best: float | None
    pieces: Sequence[Piece]
    before: LastStep | None

    @classmethod
    async def read(
        cls, connection: Connection, request: ReleaseRequest, cohorts: Sequence[Cohort], *, epoch: int
    ) -> "Situation":
        """Read what else there is, all cohorts given."""
        study, resolved = request.study, request.resolved
        cohorts = resolved.among(study.definition, cohorts)
        people = Crowd.of(study.definition, cohorts, resolved)
        question = await _question(connection, study, resolved, people)
        kept: list[Piece] = []
        before = None
        if request.by_steps:
            family = resolved.by_parts.family
            before, kept = await pieces.read_kept(connection, study.id, family)
        return cls(
            epoch=epoch,
            cohorts=cohorts,
            people=people,
            question=question,
            best=await request.best(connection, people.people),
            pieces=kept,
            before=before,
        )

    def step(self, request: ReleaseRequest, among: Sequence[Estimator] | None = None) -> Step | None:
        """The step that answers the request; None where it is answered with noise of its own."""
        definition = request.study.definition
        if not request.by_steps:
            return None
        plan = plan_by if request.resolved.by else plan_step
        return plan(
            definition, self.cohorts, request.resolved, self.question, self.pieces, self.before, among
        )

    def size(self, request: ReleaseRequest) -> float:
        """The people who are there, as far as is known; 0 where nothing is."""
        if request.compares:
            return self.people.people
        return request.resolved.known or 0.0

    def told(self, request: ReleaseRequest, times: float) -> float:
        """What the interval takes up of all that the number can be, see `says_nothing.Told`.

        Args:
            request: For some share.
            times: As many people as there are.
        """
        definition, resolved = request.study.definition, request.resolved
        now = self if request.compares else replace(self, cohorts=(), pieces=(), before=None)
        if times != 1:
            resolved = resolved.of_times(times)
            now = replace(now, cohorts=multiplied(now.cohorts, times), pieces=(), before=None)
        request = replace(request, resolved=resolved)
        people = Crowd.of(definition, now.cohorts, resolved)
        asked = resolved.question(definition, people=people.people if request.compares else None)
        asked = replace(asked, variance=self.question.variance)
        step = replace(now, people=people, question=asked).step(request)
        if step is not None:
            return request.told(asked, step.plan)
        _, plan, _ = planning.choose(definition, people, resolved, asked)
        return request.told(asked, plan)


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


async def _question(connection: Connection, study: Study, resolved: Resolved, people: Crowd) -> Question:
    if study.definition.relation is Relation.REPLACE_ONE:
        last = await store.read_last_mean(connection, study.id, resolved.measure)
        variance = None if last is None else last.variance
        return resolved.question(study.definition, people=people.people, variance=variance)
    return resolved.question(study.definition, people=None)


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
        )
        for row in rows
    ]
