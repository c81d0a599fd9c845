"""The one way to an answer: what stands; else seal, fold, draft, then charge and store in one transaction.

A draft is made outside of the transaction that publishes it. That one checks that every cohort still has the
members that were counted and can pay, that no other answer was quicker, and that the asker's quota lasts.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from app.core.clock import Clock
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import InternalFault, OutOfReach, PrivacyRefusal, ServiceError, Unavailable
from app.core.quota import QuotaExhausted
from app.core.release import Draft, StoredRelease
from app.core.study import Study
from app.estimators import confidence
from app.estimators.interface import NotApplicable
from app.services import work
from app.services.observer import Observer
from app.services.replies import Idempotency, Replies
from app.services.statistics.any_request import AnyRequest, AnySituation, Asked
from app.services.statistics.drafting import Newcomers, Planned
from app.services.statistics.drafts import Said, drafted
from app.services.statistics.kept_ends import read_at
from app.services.statistics.offered import asked_first
from app.services.statistics.publishing import persist, published, replayed, standing
from app.services.statistics.questions import Ask
from app.services.statistics.reading import Reading
from app.services.statistics.release_plans import priced
from app.store import cohorts, combined, outbox, pieces, quotas
from app.store import releases as store
from app.store.database import SNAPSHOT, Connection, Database, Run

Now = TypeVar("Now", bound=AnySituation[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A release, and whether contributions came after it (None where that is secret)."""

    release: StoredRelease
    new_contributions: bool | None


class Answering(ABC, Generic[Asked, Now]):
    """Answers questions of one kind.

    Attributes:
        request_of: Checks a question against its study.
        situation: What answers are planned from.
    """

    request_of: ClassVar[Callable[..., Any]]
    situation: ClassVar[type[Any]]

    def __init__(self, database: Database, clock: Clock, observer: Observer, replies: Replies) -> None:
        self._database = database
        self._clock = clock
        self._observer = observer
        self._replies = replies

    async def plan(self, study: Study, ask: Ask, *, fresh: bool = False) -> Planned:
        """Price and accuracy of every estimator that has an answer; spends and changes nothing.

        Args:
            study: The study.
            ask: The question, or what is to be read off its answer.
            fresh: Whether the answer would have noise of its own.

        Raises:
            InvalidRequest: the question is not admissible for this study.
        """
        reading = Reading.of(study.definition, ask)

        async def body(connection: Connection) -> tuple[Asked, Now, StoredRelease | None, bool]:
            request: Asked = await self.request_of(study, reading.ask, fresh=fresh).towards(connection)
            # Where the number of people is secret a plan looks at no person.
            rows = _with_ids(await request.profile(connection)) if request.compares else []
            now: Now = await self.situation.read(connection, request, rows, epoch=0)
            stands = await request.standing(connection, any_share=True)
            with suppress(NotApplicable):
                # What keeps no other level says its own.
                stands = stands and await _read_at(connection, stands, reading.level)
            free = not fresh and await self._free(connection, replace(request, first=True)) is not None
            return request, now, stands, free

        with self._observer.step("plan"):
            request, now, stands, free = await self._database.run_tx(
                "plan.profile", body, isolation_level=SNAPSHOT
            )
            now, request, unreached = await work.run(_reached, request, now)
            estimators, refusal = await work.run(priced, request, now, reading)
            newcomers = await work.run(_newcomers_of, request, now, reading)
        question, definition = request.question, request.study.definition
        return Planned(
            share=question.share,
            share_before=now.share_before,
            tilt=None if question.weighs_alike else round(question.assumed_tilt(definition) * MICRO),
            assumption=question.assumption(definition),
            level=question.level,
            stands=stands,
            free=free,
            newcomers=newcomers,
            estimators=estimators,
            refusal=unreached or refusal,
            paid_as=b"" if fresh else question.by_parts.family if request.by_steps else question.digest,
        )

    async def current(self, study: Study, ask: Ask, *, asker: UUID | None = None) -> Answer:
        """The best answer to a question so far; makes one, and spends for it, the first time it is asked.

        A question with a share or a cap is answered anew where no answer has taken as much of people, and
        only if that will be better than all there are. In add_remove_one studies answers are not compared:
        there the newest one to the very same question stands, if no combination does.

        Args:
            study: The study.
            ask: The question.
            asker: The token whose quota a new release uses; None for the installation itself.

        Raises:
            InvalidRequest, BudgetExhausted, NoGain, NotApplicable, QuotaExhausted, StudyArchived,
                StudyRetired: nothing was spent.
        """
        request: Asked = self.request_of(study, ask, asker=asker, first=True)
        release = await self._find_or_make(request)
        if not request.compares:
            return Answer(release=release, new_contributions=None)
        fresh = await self._database.run_tx(
            "release.news", lambda c: cohorts.has_new_rows(c, study.id, release.epoch)
        )
        return Answer(release=release, new_contributions=fresh)

    async def standing(self, study: Study, ask: Ask) -> StoredRelease | None:
        """What `current` reads where that costs nothing; None where it would have to pay for an answer.

        Raises:
            InvalidRequest: the question is not admissible for this study.
        """
        request: Asked = self.request_of(study, ask, asker=None, first=True)
        started = time.perf_counter()
        found = await self._database.run_tx("release.known", lambda c: self._for_nothing(c, request))
        if found is None or isinstance(found, StoredRelease):
            return found
        # The free request that was found, and no second look that might have to pay.
        return await self._freely(request, found, started)

    async def published(self, study: Study, ask: Ask) -> StoredRelease | None:
        """The best answer to a question that is published; makes nothing, not even what would be free.

        Raises:
            InvalidRequest: the question is not admissible for this study.
        """
        request: Asked = self.request_of(study, ask, asker=None)

        async def body(connection: Connection) -> StoredRelease | None:
            found = await request.standing(connection, any_share=True)
            if found is not None or request.compares:
                return found
            # Where answers are not compared, one of another share is another question: the newest is as good.
            return await store.newest(connection, study.id, request.question.by_parts)

        return await self._database.run_tx("release.known", body)

    async def release(
        self,
        study: Study,
        ask: Ask,
        idempotency: Idempotency | None,
        *,
        asker: UUID | None = None,
        allow_worse: bool = False,
        fresh: bool = False,
    ) -> StoredRelease:
        """A new release for a question, or the one that stands where all people have given that share.

        In replace_one studies a question's share is what it takes of each epsilon in all, see
        `app.services.statistics.steps`; without a share it rises by the study's default.

        Args:
            study: The study.
            ask: The question.
            idempotency: The client's key for this request.
            asker: The token whose quota it uses; None for the installation itself.
            allow_worse: Make it also where it is no gain, see `app.services.statistics.gain`.
            fresh: With independent noise, at the full price of its share.

        Raises:
            InvalidRequest, BudgetExhausted, NoGain, NotApplicable, QuotaExhausted, StudyArchived,
                StudyRetired: nothing was spent.
            IdempotencyKeyReused: the key belongs to another request.
        """
        options = {"asker": asker, "idempotency": idempotency, "allow_worse": allow_worse, "fresh": fresh}
        return await self._find_or_make(self.request_of(study, ask, **options))

    async def _find_or_make(self, request: Asked) -> StoredRelease:
        study, started = request.study, time.perf_counter()

        async def begin(connection: Connection) -> StoredRelease | Asked | tuple[Asked, bool]:
            """What answers at no charge; else the share that is asked for, and whether to fold."""
            found = await self._for_nothing(connection, request)
            if found is not None:
                return found
            await store.refuse_ended(connection, study.id)
            # First the quota: a step that comes in between would use it, and leave less to take.
            room = await _room(connection, request)
            certain = await request.towards(connection)
            try:
                # Before anything is drawn; checked again when it is published.
                if not _fits(certain, room):
                    await _check_quota(connection, certain)
            except QuotaExhausted:
                # Perhaps it was used for this very answer, just now.
                known = await self._known(connection, request)
                if known is None:
                    raise
                return known
            epochs = await cohorts.seal(connection, study.id)
            return certain, epochs.folded < epochs.sealed

        with self._observer.step("seal"):
            begun = await self._database.run_tx("release.seal", begin)
        if isinstance(begun, StoredRelease):
            return begun
        if not isinstance(begun, tuple):
            found = await self._freely(request, begun, started)
            return await self._find_or_make(request) if found is None else found
        request, unfolded = begun
        if unfolded:
            with self._observer.step("fold"):
                await self._database.run_tx("release.fold", lambda c: cohorts.fold(c, study.id))
        return await self._persisted(request, started)

    async def _persisted(self, request: Asked, started: float) -> StoredRelease:
        """The answer to a request, made and published, or one that was quicker."""
        try:
            release = await persist(self._database, request.study, lambda run: self._make(run, request))
        except (InternalFault, Unavailable):
            raise
        except ServiceError as refusal:
            # What is missing may have been spent on this very answer, by a request that was quicker.
            # Where a better one cannot be had, the best one answers who only reads.
            any_share = request.until is None and isinstance(refusal, PrivacyRefusal | NotApplicable)
            known = await self._database.run_tx(
                "release.known", lambda c: self._known(c, request, any_share=any_share)
            )
            if known is None:
                raise
            return known
        if not release.replayed:
            self._observer.released(time.perf_counter() - started)
        return release

    async def _for_nothing(self, connection: Connection, request: Asked) -> StoredRelease | Asked | None:
        """What answers a request at no charge: a release, or a request for one. None: a person has to pay."""
        known = await self._known(connection, request)
        return await self._free(connection, request) if known is None else known

    async def _freely(self, request: Asked, free: Asked, started: float) -> StoredRelease | None:
        """What answers a request at no charge; None where all have left meanwhile who are in that."""
        try:
            return await self._persisted(free, started)
        except (NotApplicable, PrivacyRefusal):
            found = await self._database.run_tx("release.known", lambda c: self._for_nothing(c, request))
            if found is None or isinstance(found, StoredRelease):
                return found
            raise

    async def _free(self, connection: Connection, request: Asked) -> Asked | None:
        """The request as one that no person pays for, where it is one."""
        return None

    async def _make(self, run: Run, request: Asked) -> StoredRelease:
        drafted = await self._draft(run, request)
        if isinstance(drafted, UUID):
            return await standing(run, self._replies, request.study, drafted, request.idempotency)
        return await self._publish(run, *drafted)

    async def _draft(self, run: Run, request: Asked) -> tuple[Draft, Asked] | UUID:
        """Plan and answer from the cohorts as they stand; nothing of it is published yet.

        Returns:
            The answer, and the request with what the answer takes of the asker's quota; or the id of the
            release for which all people have given the share that is asked for.
        """
        # As of one moment: what would be refused by people of before another answer and by that answer is
        # refused by neither of both moments.
        now, room = await run("release.cohorts", lambda c: self._read(c, request), isolation_level=SNAPSHOT)
        with self._observer.step("plan"):
            now, request = await work.run(now.reaching, request)
            made = await work.run(now.made, request)
        if not made.draws and now.before and now.before.epoch == now.epoch:
            return now.before.release
        request.check_read(made)
        if not _fits(request, room):
            await run("release.quota", lambda connection: _check_quota(connection, request))
        request.check(*request.compared(made), now.best)
        await work.run(request.check_told, now, made)
        if request.question.asks_first:
            with self._observer.step("draw"):
                with_offered, request, made = await work.run(asked_first, request, now)
            said = with_offered(await self._said(run, request, now, made))
        else:
            said = await self._said(run, request, now, made)
        draft = drafted(request.study, request.question, said, epoch=now.epoch, clock=self._clock)
        return draft, replace(request, had=made.had_by_all)

    async def _read(self, connection: Connection, request: Asked) -> tuple[Now, float]:
        """What an answer is planned from, and what its asker's quota has left where its share is open."""
        epochs = await cohorts.read_epochs(connection, request.study.id)
        rows = await request.people(connection)
        now: Now = await self.situation.read(connection, request, rows, epoch=epochs.folded)
        return now, math.inf if request.until is None else await _room(connection, request)

    async def read_at(self, release: StoredRelease, level: float) -> StoredRelease:
        """An answer with its intervals at a level; free.

        Raises:
            NotApplicable: they are not kept.
        """
        if level == confidence.LEVEL:
            return release
        return await self._database.run_tx("release.level", lambda c: _read_at(c, release, level))

    @abstractmethod
    async def _said(self, run: Run, request: Asked, now: Now, made: Any) -> Said:
        """The answer that was planned, with its noise. Draws entropy; nothing of it is published yet."""

    async def _publish(self, run: Run, draft: Draft, request: Asked) -> StoredRelease:
        """Charge for a draft and store it, unless something stands in its place: that is returned then."""

        async def body(connection: Connection) -> StoredRelease:
            # First what stands in its place: what is answered here has written nothing.
            head = await store.lock_chain(connection, draft.study_id)
            if (known := await request.answered(connection)) is not None:
                return known
            idempotency, use = request.idempotency, request.use
            if idempotency is not None and (reply := await self._replies.claim(connection, idempotency)):
                return await replayed(connection, reply)
            # A plan whose step is not the next one is made again: its refusal would say nothing.
            await combined.check_newest(connection, draft, request.question.measure)
            if draft.taken is not None:
                await pieces.check_last(connection, draft, draft.taken)
            # What is the best answer may have changed since it was planned, and so may who can pay: then it
            # is planned again, and no gain of that plan. A refusal takes back what is written.
            people, width, best = draft.facts.people, draft.facts.width, None
            if people is not None:
                best = await request.best(connection, people)
            await store.publish(connection, draft, head=head)
            if people is not None and width is not None:
                request.check(people, request.left_out_of(draft.facts), width, best)
            await _check_quota(connection, request)
            await pieces.write(connection, draft)
            if use is not None:
                await quotas.note(connection, draft.id, use.token_id, draft.study_id, use.share)
                await outbox.emit_low(connection, draft.study_id, draft.id)
            if idempotency is not None:
                made = str(draft.id).encode()
                await self._replies.store(
                    connection, idempotency, study_id=draft.study_id, status=201, body=made
                )
            return published(request.study, draft)

        with self._observer.step("publish"):
            return await run("release.publish", body)

    async def _known(
        self, connection: Connection, request: Asked, *, any_share: bool = False
    ) -> StoredRelease | None:
        """The release that answers this request already: its key's, or the one that stands."""
        if request.idempotency is None:
            return await request.answered(connection, any_share=any_share)
        reply = await self._replies.read(connection, request.idempotency)
        return None if reply is None else await replayed(connection, reply)


def _reached(request: Asked, now: Now) -> tuple[Now, Asked, OutOfReach | None]:
    """As `AnySituation.reaching`; where no share is enough, at the whole one, with the refusal."""
    try:
        return *now.reaching(request), None
    except OutOfReach as refusal:
        whole = request.at(MICRO)
        return now.among(whole, now.cohorts), whole, refusal
    except (PrivacyRefusal, NotApplicable):
        return now, request, None  # The plan finds out the same.


def _newcomers_of(request: AnyRequest, now: AnySituation[Any], reading: Reading) -> Newcomers | None:
    """What renews the answer at the share that it has; None where that charges no one or is no gain."""
    if now.before is None:
        return None
    try:
        step: Any = now.made(request.at(now.before.share))
    except (NotApplicable, PrivacyRefusal):
        return None
    if not step.by_steps or not step.charges or not request.is_gain(step, now.best):
        return None
    accuracy = request.accuracy(step, reading)
    if accuracy.half_width is None:
        with confidence.at(reading.level):
            *_, width = request.compared(step)
        accuracy = replace(accuracy, half_width=width / 2)
    charged = set(step.charges.column("cohort_id"))
    return Newcomers.of(
        request.study.definition,
        accuracy,
        step,
        people=sum(cohort.count for cohort in now.cohorts if cohort.id in charged),
    )


def _with_ids(rows: Sequence[Cohort]) -> list[Cohort]:
    """Cohorts of which those that are not folded yet have ids of their own, below zero."""
    return [row if row.id else replace(row, id=-place) for place, row in enumerate(rows, start=1)]


async def _read_at(connection: Connection, release: StoredRelease, level: float) -> StoredRelease:
    """An answer with its intervals at a level; see `Answering.read_at`."""
    if level == confidence.LEVEL:
        return release
    kept = await store.read_kept_ends(connection, release.id)
    return replace(release, body=await work.run(read_at, release.body, kept, level))


async def _room(connection: Connection, request: AnyRequest) -> float:
    """What the quota of who asks has left of the study [ppm]."""
    if request.asker is None:
        return math.inf
    return await quotas.room(connection, request.asker, request.study.id)


def _fits(request: AnyRequest, room: float) -> bool:
    """Whether a request takes no more of a quota than that has left."""
    return request.use is None or request.use.share <= room


async def _check_quota(connection: Connection, request: AnyRequest) -> None:
    if request.use is not None:
        await quotas.check(connection, request.use.token_id, request.study.id, request.use.share)
