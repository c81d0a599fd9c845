"""Releases of distributions, quantiles and what needs them first: seal, fold, plan, draw, charge and store.

They go the way of every release (`app.services.releases`): a draft is made outside of the transaction that
publishes it, which checks that every cohort still has the members that were counted and can pay.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from app.core.clock import Clock
from app.core.cohort import Cohort
from app.core.errors import InternalFault, PrivacyRefusal, ServiceError, Unavailable
from app.core.piece import LastStep, Piece
from app.core.quota import QuotaExhausted
from app.core.release import Draft, StoredRelease
from app.core.study import Study
from app.estimators.interface import NotApplicable
from app.services import shape_kinds
from app.services.drafting import Planned
from app.services.found_plans import FoundPlan
from app.services.measured import summed
from app.services.observer import Observer
from app.services.publishing import Answered, persist, published, replayed, standing
from app.services.questions import Ask
from app.services.releases import Answer
from app.services.replies import Idempotency, Replies
from app.services.shape_drafts import drafted
from app.services.shape_planned import plan
from app.services.shape_questions import DESCRIBE
from app.services.shape_request import ShapeRequest, people_of
from app.services.shape_sums import summed_up, sums_within
from app.sessions.searched import Searched
from app.store import cohorts, pieces, quotas
from app.store import releases as store
from app.store.database import Connection, Database, Run


class Shapes:
    """Answers questions for the distribution of the values."""

    def __init__(self, database: Database, clock: Clock, observer: Observer, replies: Replies) -> None:
        self._database = database
        self._clock = clock
        self._observer = observer
        self._replies = replies

    async def plan(self, study: Study, ask: Ask, *, fresh: bool = False) -> Planned:
        """Price and accuracy of an answer, see `app.services.shape_planned`.

        Raises:
            InvalidRequest: the question is not admissible for this study.
        """
        with self._observer.step("plan"):
            return await plan(self._database, study, ask, fresh=fresh)

    async def current(self, study: Study, ask: Ask, *, asker: UUID | None = None) -> Answer:
        """The best answer to a question so far; makes one, and spends for it, the first time it is asked.

        Raises:
            InvalidRequest, BudgetExhausted, NoGain, NotApplicable, QuotaExhausted, StudyArchived,
                StudyRetired: nothing was spent.
        """
        request = ShapeRequest.of(study, ask, asker=asker, first=True)
        release = await self._find_or_make(request)
        if not request.compares:
            return Answer(release=release, new_contributions=None)
        fresh = await self._database.run_tx(
            "release.news", lambda c: cohorts.has_new_rows(c, study.id, release.epoch)
        )
        return Answer(release=release, new_contributions=fresh)

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
        """A new release for a question; arguments as of `Releases.release`.

        Raises:
            InvalidRequest, BudgetExhausted, NoGain, NotApplicable, QuotaExhausted, StudyArchived,
                StudyRetired: nothing was spent.
            IdempotencyKeyReused: the key belongs to another request.
        """
        request = ShapeRequest.of(
            study, ask, asker=asker, idempotency=idempotency, allow_worse=allow_worse, fresh=fresh
        )
        return await self._find_or_make(request)

    async def _find_or_make(self, request: ShapeRequest) -> StoredRelease:
        study, started = request.study, time.perf_counter()

        async def begin(connection: Connection) -> StoredRelease | tuple[ShapeRequest, bool]:
            """An answer that is there; else the share that is asked for, and whether to fold."""
            known = await self._known(connection, request)
            if known is not None:
                return known
            await store.refuse_ended(connection, study.id)
            certain = await request.towards(connection)
            try:
                # Before anything is drawn; checked again when it is published.
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
        request, unfolded = begun
        if unfolded:
            with self._observer.step("fold"):
                await self._database.run_tx("release.fold", lambda c: cohorts.fold(c, study.id))

        async def attempt(run: Run) -> StoredRelease:
            try:
                draft, had = await self._draft(run, request)
                await self._publish(run, draft, replace(request, had=had))
            except (InternalFault, Unavailable):
                raise
            except ServiceError as refusal:
                # What is missing may have been spent on this very answer, by a request that was quicker.
                any_share = isinstance(refusal, PrivacyRefusal | NotApplicable)
                known = await run("release.known", lambda c: self._known(c, request, any_share=any_share))
                if known is None:
                    raise
                raise Answered(known) from None
            return published(study, draft)

        try:
            release = await persist(self._database, study, attempt)
        except Answered as answered:
            return answered.release
        self._observer.released(time.perf_counter() - started)
        return release

    async def _draft(self, run: Run, request: ShapeRequest) -> tuple[Draft, int]:
        """Plan and answer from the cohorts as they stand; nothing of it is published yet.

        Returns:
            The answer, and what all who are charged had given the question before [ppm].
        """
        study, question = request.study, request.question

        async def read(
            connection: Connection,
        ) -> tuple[int, Sequence[Cohort], Searched | None, float | None, LastStep | None, Sequence[Piece]]:
            epochs = await cohorts.read_epochs(connection, study.id)
            rows = request.among(await cohorts.read_cohorts(connection, study.id))
            if question.estimator == DESCRIBE or request.of_choice:
                rows = await summed(connection, study, question.measure, rows)
            searched = await request.searched(connection)
            best = await request.best(connection, people_of(rows, searched))
            return epochs.folded, rows, searched, best, *await request.kept(connection)

        epoch, rows, searched, best, before, kept = await run("release.cohorts", read)
        with self._observer.step("plan"):
            step = await asyncio.to_thread(request.step, rows, kept, before)
        if step is not None:
            if not step.finer and before is not None and before.epoch == epoch:
                raise Answered(await standing(run, self._replies, study, before.release, request.idempotency))
            request.check(step.crowd.people, step.crowd.unable, step.interval_width, best)
            counts = await summed_up(run, request, step.used, step.crowd.reported())
            with self._observer.step("draw"):
                answer, noise, taken = await asyncio.to_thread(step.take, counts)
            return drafted(
                request, step, answer, noise, epoch=epoch, clock=self._clock, taken=taken
            ), step.had_by_all
        with self._observer.step("plan"):
            made = await asyncio.to_thread(shape_kinds.make, study.definition, question, rows, searched)
        crowd = made.crowd
        if request.compares:
            request.check(crowd.people, crowd.unable, made.interval_width, best)
        used = crowd.used()
        counts = await summed_up(run, request, used, crowd.reported())
        if not isinstance(made, FoundPlan):
            with self._observer.step("draw"):
                answer = await asyncio.to_thread(made.answer, counts)
            return drafted(request, made, answer, made.noise_json(), epoch=epoch, clock=self._clock), 0
        with self._observer.step("draw"):
            found = await asyncio.to_thread(made.find, counts)
        sums = await sums_within(run, request, used, found)
        with self._observer.step("draw"):
            answer = await asyncio.to_thread(made.answer, found, sums)
        return drafted(request, made, answer, made.noise_json(found), epoch=epoch, clock=self._clock), 0

    async def _publish(self, run: Run, draft: Draft, request: ShapeRequest) -> None:
        async def body(connection: Connection) -> None:
            head = await store.lock_chain(connection, draft.study_id)
            if request.first and (known := await request.standing(connection)) is not None:
                raise Answered(known)
            idempotency = request.idempotency
            if idempotency is not None:
                made = str(draft.id).encode()
                if not await self._replies.store(
                    connection, idempotency, study_id=draft.study_id, status=201, body=made
                ):
                    reply = await self._replies.replay(connection, idempotency)
                    raise Answered(await replayed(connection, reply))
            # What is the best answer may have changed since it was planned.
            people, width = draft.facts.people, draft.facts.width
            if people is not None and width is not None:
                request.check(people, 0, width, await request.best(connection, people))
            await _check_quota(connection, request)
            if draft.taken is not None:
                await pieces.check_last(connection, draft, draft.taken)
            await store.publish(connection, draft, head=head)
            await pieces.write(connection, draft)
            if request.asker is not None:
                await quotas.note(connection, draft.id, request.asker, draft.study_id, request.use)

        with self._observer.step("publish"):
            await run("release.publish", body)

    async def _known(
        self, connection: Connection, request: ShapeRequest, *, any_share: bool = False
    ) -> StoredRelease | None:
        """The release that answers this request already: its key's, or the one that stands."""
        if request.idempotency is None:
            return await request.standing(connection, any_share=any_share) if request.first else None
        reply = await self._replies.read(connection, request.idempotency)
        return None if reply is None else await replayed(connection, reply)


async def _check_quota(connection: Connection, request: ShapeRequest) -> None:
    if request.asker is not None:
        await quotas.check(connection, request.asker, request.study.id, request.use)
