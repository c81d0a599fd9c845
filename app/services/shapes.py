"""Releases of distributions, quantiles and what needs them first: seal, fold, plan, draw, charge and store.

They go the way of every release (`app.services.releases`): a draft is made outside of the transaction that
publishes it, which checks that every cohort still has the members that were counted and can pay.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.cohort import Cohort
from app.core.errors import BudgetExhausted, InternalFault, PrivacyRefusal, ServiceError, Unavailable
from app.core.quota import QuotaExhausted
from app.core.release import Draft, Facts, StoredRelease
from app.core.study import Study
from app.estimators.interface import NotApplicable
from app.services import shape_kinds
from app.services.coordinates import CoordinatesPlan
from app.services.drafting import Planned, PlannedEstimator
from app.services.found_plans import FoundPlan
from app.services.measured import summed
from app.services.observer import Observer
from app.services.planning import NOT_REPORTED, in_units
from app.services.publishing import Answered, persist, published, replayed
from app.services.questions import Ask
from app.services.releases import Answer
from app.services.replies import Idempotency, Replies
from app.services.shape_kinds import AnyPlan
from app.services.shape_labels import LabelsPlan
from app.services.shape_plans import LOCAL, SUMMARIES, ShapePlan
from app.services.shape_questions import BY_BINS, DESCRIBE
from app.services.shape_request import ShapeRequest, answers_left, assumption, people_of
from app.services.shape_sums import summed_up, sums_within
from app.sessions.searched import Searched
from app.store import cohorts, quotas
from app.store import releases as store
from app.store.database import Connection, Database, Run

NUMBERS = ("estimate", "standard_error", "noisy_count")
"""What an answer may say of itself that lists show, too."""

VERSION = 1
"""Grows whenever the distribution of answers changes."""


class Shapes:
    """Answers questions for the distribution of the values."""

    def __init__(self, database: Database, clock: Clock, observer: Observer, replies: Replies) -> None:
        self._database = database
        self._clock = clock
        self._observer = observer
        self._replies = replies

    async def plan(self, study: Study, ask: Ask) -> Planned:
        """Price and accuracy of an answer; spends and changes nothing.

        Raises:
            InvalidRequest: the question is not admissible for this study.
        """
        request = ShapeRequest.of(study, ask)
        question, definition = request.question, request.study.definition

        async def body(
            connection: Connection,
        ) -> tuple[Sequence[Cohort], Searched | None, float | None, StoredRelease | None]:
            # Under add_remove_one a plan looks at no person.
            rows = await request.profile(connection) if request.compares else []
            searched = await request.searched(connection)
            best = await request.best(connection, people_of(rows, searched))
            return rows, searched, best, await request.standing(connection, any_share=True)

        rows, searched, best, stands = await self._database.run_tx("plan.profile", body)

        def planned() -> tuple[AnyPlan, int | None]:
            made = shape_kinds.make(definition, question, rows, searched)
            return made, answers_left(request, rows, best, searched) if request.compares else None

        try:
            with self._observer.step("plan"):
                made, left = await asyncio.to_thread(planned)
        except (BudgetExhausted, NotApplicable):
            return Planned(
                share=question.share,
                tilt=question.tilt,
                assumption=assumption(question),
                stands=stands,
                estimators=(),
            )
        estimator = PlannedEstimator(
            estimator=question.estimator,
            summary=SUMMARIES[question.estimator] + (made.joined if isinstance(made, ShapePlan) else ""),
            predicted_error=made.predicted_error,
            predicted_error_at_tilt_0=None,
            epsilon_max=definition.epsilon(made.most),
            epsilon_max_total=definition.epsilon(made.most),
            one_report_moves=made.one_report_moves if isinstance(made, ShapePlan | LabelsPlan) else None,
            statistics=_read_off(made, ask.statistic),
            answers_left=left,
            chosen=True,
            gain=made.gain if isinstance(made, FoundPlan) else None,
        )
        return Planned(
            share=question.share,
            tilt=question.tilt,
            assumption=assumption(question),
            stands=stands,
            estimators=(estimator,),
        )

    async def current(self, study: Study, ask: Ask, *, asker: UUID | None = None) -> Answer:
        """The best answer to a question so far; makes one, and spends for it, the first time it is asked.

        Raises:
            InvalidRequest, BudgetExhausted, NoGain, NotApplicable, QuotaExhausted, StudyArchived,
            StudyRetired: nothing was
                spent.
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
    ) -> StoredRelease:
        """A new release for a question; arguments as of `Releases.release`.

        Raises:
            InvalidRequest, BudgetExhausted, NoGain, NotApplicable, QuotaExhausted, StudyArchived,
            StudyRetired: nothing was
                spent.
            IdempotencyKeyReused: the key belongs to another request.
        """
        return await self._find_or_make(
            ShapeRequest.of(study, ask, asker=asker, idempotency=idempotency, allow_worse=allow_worse)
        )

    async def _find_or_make(self, request: ShapeRequest) -> StoredRelease:
        study, started = request.study, time.perf_counter()

        async def begin(connection: Connection) -> StoredRelease | bool:
            """An answer that is there; else whether there is anything to fold."""
            known = await self._known(connection, request)
            if known is not None:
                return known
            await store.refuse_ended(connection, study.id)
            try:
                # Before anything is drawn; checked again when it is published.
                await _check_quota(connection, request)
            except QuotaExhausted:
                # Perhaps it was used for this very answer, just now.
                known = await self._known(connection, request)
                if known is None:
                    raise
                return known
            epochs = await cohorts.seal(connection, study.id)
            return epochs.folded < epochs.sealed

        with self._observer.step("seal"):
            begun = await self._database.run_tx("release.seal", begin)
        if isinstance(begun, StoredRelease):
            return begun
        if begun:
            with self._observer.step("fold"):
                await self._database.run_tx("release.fold", lambda c: cohorts.fold(c, study.id))

        async def attempt(run: Run) -> StoredRelease:
            try:
                draft = await self._draft(run, request)
                await self._publish(run, draft, request)
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

    async def _draft(self, run: Run, request: ShapeRequest) -> Draft:
        """Plan and answer from the cohorts as they stand; nothing of it is published yet."""
        study, question = request.study, request.question

        async def read(
            connection: Connection,
        ) -> tuple[int, Sequence[Cohort], Searched | None, float | None]:
            epochs = await cohorts.read_epochs(connection, study.id)
            rows = request.among(await cohorts.read_cohorts(connection, study.id))
            if question.estimator == DESCRIBE or request.of_choice:
                rows = await summed(connection, study, question.measure, rows)
            searched = await request.searched(connection)
            best = await request.best(connection, people_of(rows, searched))
            return epochs.folded, rows, searched, best

        epoch, rows, searched, best = await run("release.cohorts", read)
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
            return self._drafted(request, made, answer, made.noise_json(), epoch)
        with self._observer.step("draw"):
            found = await asyncio.to_thread(made.find, counts)
        sums = await sums_within(run, request, used, found)
        with self._observer.step("draw"):
            answer = await asyncio.to_thread(made.answer, found, sums)
        return self._drafted(request, made, answer, made.noise_json(found), epoch)

    def _drafted(
        self,
        request: ShapeRequest,
        made: AnyPlan,
        answer: Mapping[str, object],
        noise: str,
        epoch: int,
    ) -> Draft:
        """Write an answer down. Fails closed: whatever goes wrong, there is no draft."""
        study, question, crowd = request.study, request.question, made.crowd
        release_id, now = uuid4(), self._clock.now()
        document: dict[str, object] = {
            "id": str(release_id),
            "study": study.definition.slug,
            "estimator_version": VERSION,
            "statistic": question.statistic,
            "estimator": question.estimator,
            "parameters": question.parameters(),
            **question.of_whom_and_what,
            **answer,
            "predicted_error": made.predicted_error,
            "relation": study.definition.relation.value,
            **in_units(study.definition, "epsilon_max", made.most),
            "created_at": now.isoformat(),
        }
        if question.tilt is not None:
            document["assumption"] = assumption(question)
        if request.compares:
            reasons = {BudgetExhausted.code: crowd.unable, LOCAL: crowd.local, NOT_REPORTED: crowd.silent}
            document["people"] = crowd.people
            document["people_left_out"] = crowd.left_out
            document["left_out_because"] = " ".join(code for code in reasons if reasons[code]) or None
        try:
            body = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
        except (TypeError, ValueError) as error:
            raise InternalFault("the answer could not be written down") from error
        return Draft(
            id=release_id,
            study_id=study.id,
            question=question.digest,
            asked=question.by_parts,
            epoch=epoch,
            estimator=question.estimator,
            estimator_version=VERSION,
            noise=noise,
            body=body,
            facts=Facts(
                **{name: value if isinstance(value := answer.get(name), float) else None for name in NUMBERS},
                epsilon_max=made.most,
                people=crowd.people if request.compares else None,
                people_left_out=crowd.left_out if request.compares else None,
                silent=crowd.silent,
                width=made.interval_width if request.compares else None,
            ),
            charges=made.charges(),
            used=crowd.used(),
            created_at=now,
        )

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
            await store.publish(connection, draft, head=head)
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


def _read_off(made: AnyPlan, asked: str) -> tuple[str, ...]:
    """What is read off an answer to this question."""
    made = made.whole if isinstance(made, LabelsPlan) else made
    if isinstance(made, CoordinatesPlan):
        return made.statistics
    return BY_BINS if asked in BY_BINS else (asked,)


async def _check_quota(connection: Connection, request: ShapeRequest) -> None:
    if request.asker is not None:
        await quotas.check(connection, request.asker, request.study.id, request.use)
