"""Plans and releases: seal, fold, plan, draw, then charge and store in one transaction."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.core.clock import Clock
from app.core.errors import InternalFault, NotFound, PrivacyRefusal, ServiceError, Unavailable
from app.core.quota import QuotaExhausted
from app.core.records import CohortCharge
from app.core.release import Draft, StoredRelease
from app.core.study import Relation, Study
from app.estimators.interface import NotApplicable
from app.services import combining, combining_secret, drafting, measured, planning
from app.services.drafting import Planned
from app.services.observer import Observer
from app.services.paging import Page, decode_cursor, page_of
from app.services.publishing import Answered, persist, published, replayed, standing
from app.services.questions import Ask
from app.services.release_plans import plan
from app.services.release_request import QuotaUse, ReleaseRequest, Situation
from app.services.replies import Idempotency, Replies
from app.services.saturation import Saturation
from app.store import cohorts, combined, pieces, quotas
from app.store import releases as store
from app.store.combined import Sources
from app.store.database import Connection, Database, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A release, and whether contributions came after it (None where that is secret)."""

    release: StoredRelease
    new_contributions: bool | None


class Releases:
    """Everything that answers questions."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        saturation: Saturation,
        observer: Observer,
        replies: Replies,
    ) -> None:
        self._database = database
        self._clock = clock
        self._saturation = saturation
        self._observer = observer
        self._replies = replies

    async def plan(self, study: Study, ask: Ask, *, fresh: bool = False) -> Planned:
        """Price and accuracy of every estimator that has an answer, see `app.services.release_plans`."""
        with self._observer.step("plan"):
            return await plan(self._database, study, ask, fresh=fresh)

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
            InvalidRequest, BudgetExhausted, NoGain, NotApplicable, QuotaExhausted, StudyRetired: nothing was
                spent.
        """
        request = ReleaseRequest.of(study, ask, asker=asker, first=True)
        release = await self._find_or_make(request)
        if study.definition.relation is Relation.ADD_REMOVE_ONE:
            return Answer(release=release, new_contributions=None)
        epoch = release.epoch
        fresh = await self._database.run_tx(
            "release.news", lambda c: cohorts.has_new_rows(c, study.id, epoch)
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
        """A new release for a question, or the one that stands where all people have given that share.

        In replace_one studies a question's share is what it takes of each epsilon in all, see
        `app.services.steps`; without a share it rises by the study's default.

        Args:
            study: The study.
            ask: The question.
            idempotency: The client's key for this request.
            asker: The token whose quota it uses; None for the installation itself.
            allow_worse: Make it also where it is no gain, see `app.services.gain`.
            fresh: With independent noise, at the full price of its share.

        Raises:
            InvalidRequest, BudgetExhausted, NoGain, NotApplicable, QuotaExhausted, StudyRetired: nothing was
                spent.
            IdempotencyKeyReused: the key belongs to another request.
        """
        request = ReleaseRequest.of(
            study, ask, asker=asker, idempotency=idempotency, allow_worse=allow_worse, fresh=fresh
        )
        return await self._find_or_make(request)

    async def get(self, release_id: UUID) -> StoredRelease:
        """A committed release.

        Raises:
            NotFound: there is none.
        """
        release = await self._database.run_tx("release.read", lambda c: store.read_release(c, release_id))
        if release is None:
            raise NotFound("there is no such release")
        return release

    async def page(self, study: Study, limit: int, cursor: str | None) -> Page[StoredRelease]:
        """A study's releases, newest first."""
        before = decode_cursor(cursor, UUID, None)
        releases = await self._database.run_tx(
            "release.page",
            lambda c: store.page_releases(c, study.id, before=before, limit=limit + 1),
        )
        return page_of(releases, limit, lambda release: str(release.id), behind=before)

    async def steps(self, release_id: UUID, most: int) -> list[StoredRelease]:
        """The newest steps of the shares of a release's question, the oldest of them first."""
        found = await self._database.run_tx(
            "release.steps", lambda c: store.read_steps(c, release_id, limit=most)
        )
        return found[::-1]

    async def charges(self, releases: Sequence[StoredRelease]) -> list[list[CohortCharge]]:
        """What each of these releases cost each cohort; for admins."""
        ids = [release.id for release in releases]
        charges = await self._database.run_tx("release.charges", lambda c: store.read_charges(c, ids))
        return [charges[release] for release in ids]

    async def saturation(self, study: Study) -> int | None:
        """Where more epsilon would buy nothing at share 1 [micro-epsilon]; None: nowhere."""
        point = await self._saturation.point(study)
        return None if point is None else study.definition.epsilon(point)

    async def _find_or_make(self, request: ReleaseRequest) -> StoredRelease:
        study, started = request.study, time.perf_counter()

        async def begin(connection: Connection) -> StoredRelease | tuple[ReleaseRequest, bool]:
            """An answer that is there; else the share that is asked for, and whether to fold."""
            known = await self._known(connection, request)
            if known is not None:
                return known
            if await request.has_news(connection):
                return request.combining(), False
            await store.refuse_ended(connection, study.id)
            certain = await request.towards(connection)
            try:
                # Before anything is drawn; checked again when it is published.
                await _check_quota(connection, certain.use, study)
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
                if request.combines:
                    return await self._combine(run, request)
                draft, use = await self._draft(run, request)
                await self._publish(run, draft, replace(request, use=use))
            except (InternalFault, Unavailable):
                raise
            except ServiceError as refusal:
                # What is missing may have been spent on this very answer, by a request that was quicker.
                # Where a better one cannot be had, the best one answers who only reads.
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

    async def _combine(self, run: Run, request: ReleaseRequest) -> StoredRelease:
        """The best answer of all that are published, and of their combination."""
        study, definition = request.study, request.study.definition
        secret = definition.relation is Relation.ADD_REMOVE_ONE

        async def body(connection: Connection) -> tuple[Situation, Sources]:
            epochs = await cohorts.read_epochs(connection, study.id)
            rows = [] if secret else await cohorts.read_cohorts(connection, study.id)
            situation = await Situation.read(connection, request, rows, epoch=epochs.folded)
            return situation, await combined.read_sources(connection, study.id)

        now, sources = await run("release.sources", body)

        def made() -> Draft:
            resolved, read = request.resolved, sources
            if secret:
                read = combining_secret.chosen(definition, resolved, now.question, sources)
                found = combining_secret.combine(definition, now.question, read)
            else:
                found = combining.combine(definition, now.cohorts, resolved, now.question, read.pieces)
            return drafting.combined(study, resolved, found, read, epoch=now.epoch, clock=self._clock)

        with self._observer.step("plan"):
            draft = await asyncio.to_thread(made)
        await self._publish(run, draft, request)
        best = await run("release.known", lambda c: self._known(c, request, any_share=True))
        return published(study, draft) if best is None else best

    async def _draft(self, run: Run, request: ReleaseRequest) -> tuple[Draft, QuotaUse | None]:
        """Plan and answer from the cohorts as they stand; nothing of it is published yet."""
        study, resolved = request.study, request.resolved
        definition = study.definition

        async def body(connection: Connection) -> Situation:
            epochs = await cohorts.read_epochs(connection, study.id)
            rows = await measured.read_cohorts(connection, study, resolved)
            return await Situation.read(connection, request, rows, epoch=epochs.folded)

        now = await run("release.cohorts", body)
        with self._observer.step("plan"):
            step = await asyncio.to_thread(now.step, request) if request.by_steps else None
        if step is not None:
            if not step.finer and now.before is not None and now.before.epoch == now.epoch:
                raise Answered(
                    await standing(run, self._replies, study, now.before.release, request.idempotency)
                )
            request.check_labels(step)
            width = planning.interval_width(definition, step.plan)
            request.check(step.people, step.left_out, width, now.best)
            with self._observer.step("draw"):
                draft = await asyncio.to_thread(
                    drafting.next_step,
                    study,
                    resolved,
                    step,
                    now.cohorts,
                    epoch=now.epoch,
                    clock=self._clock,
                )
            return draft, request.use and replace(request.use, share=step.share_used)
        people, question = now.people, now.question
        with self._observer.step("plan"):
            estimator, plan, question = await asyncio.to_thread(
                planning.choose, definition, people, resolved, question
            )
        request.check(people.people, people.left_out, planning.interval_width(definition, plan), now.best)
        with self._observer.step("draw"):
            draft = await asyncio.to_thread(
                drafting.answer,
                study,
                resolved,
                people,
                question,
                estimator,
                plan,
                epoch=now.epoch,
                clock=self._clock,
            )
        return draft, request.use

    async def _publish(self, run: Run, draft: Draft, request: ReleaseRequest) -> None:
        async def body(connection: Connection) -> None:
            head = await store.lock_chain(connection, draft.study_id)
            if request.first and (known := await request.standing(connection)) is not None:
                raise Answered(known)
            idempotency, use = request.idempotency, request.use
            if idempotency is not None:
                made = str(draft.id).encode()
                if not await self._replies.store(
                    connection, idempotency, study_id=draft.study_id, status=201, body=made
                ):
                    reply = await self._replies.replay(connection, idempotency)
                    raise Answered(await replayed(connection, reply))
            # What is the best answer may have changed since it was planned.
            facts = draft.facts
            if facts.people is not None and facts.people_left_out is not None and facts.width is not None:
                best = await request.best(connection, facts.people)
                request.check(facts.people, facts.people_left_out - facts.silent, facts.width, best)
            await _check_quota(connection, use, request.study)
            await combined.check_newest(connection, draft)
            if draft.taken is not None:
                await pieces.check_last(connection, draft, draft.taken)
            await store.publish(connection, draft, head=head)
            await pieces.write(connection, draft)
            if use is not None:
                await quotas.note(connection, draft.id, use.token_id, draft.study_id, use.share)

        with self._observer.step("publish"):
            await run("release.publish", body)

    async def _known(
        self, connection: Connection, request: ReleaseRequest, *, any_share: bool = False
    ) -> StoredRelease | None:
        """The release that answers this request already: its key's, or the one that stands."""
        if request.idempotency is None:
            return await request.standing(connection, any_share=any_share) if request.first else None
        reply = await self._replies.read(connection, request.idempotency)
        return None if reply is None else await replayed(connection, reply)


async def _check_quota(connection: Connection, use: QuotaUse | None, study: Study) -> None:
    if use is not None:
        await quotas.check(connection, use.token_id, study.id, use.share)
