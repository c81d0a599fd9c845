"""Contributing, replacing, withdrawing, one by one or in bulk."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from app.core.clock import Clock
from app.core.contribution import Offer, Outcome
from app.core.errors import NotFound
from app.core.study import Study
from app.services.contributing.batches import Batch, BatchResult
from app.services.contributing.refusals import refuse
from app.services.grouping import Grouper
from app.services.observer import Observer
from app.services.replies import Idempotency, Replies
from app.services.statistics.saturation import Saturation
from app.store import contributions as store
from app.store import journal, replacements
from app.store.contributions import Allowance
from app.store.database import Connection, Database
from app.store.journal import Reply

CHUNKS_UNDER_WAY = 3
"""Bulk transactions of one batch at a time: the database works on some while the next is prepared."""

CHUNK = 2_000
"""Records a bulk transaction: long enough to be cheap, short enough not to hold up a seal."""

VACUUM_FROM = 50_000
"""Records from which a bulk load is followed by VACUUM ANALYZE, which makes the first fold quicker."""

CREATED, REPEATED = 201, 200
"""Statuses that are stored with an idempotency key."""

GROUPS_UNDER_WAY = 2
"""Group commits a study and process: one waits for the disk while the next one is worked on."""


async def always() -> None:
    """Nothing ends the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A stored contribution.

    Attributes:
        created: False where the very same one was stored before.
        epsilon: The epsilon that holds [micro-epsilon].
        mu2: What it reserves in a study with Gaussian noise [1e-6]; None in others.
        epsilon_used_at_most: What one release at share 1 would charge with the present profile
            [micro-epsilon].
    """

    created: bool
    epsilon: int
    mu2: int | None
    epsilon_used_at_most: int


class Contributions:
    """Everything that changes contributions."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        allowance: Allowance,
        saturation: Saturation,
        observer: Observer,
        replies: Replies,
    ) -> None:
        self._database = database
        self._clock = clock
        self._allowance = allowance
        self._saturation = saturation
        self._observer = observer
        self._replies = replies
        self._groups: dict[int, Grouper[Offer, Outcome]] = {}
        self._maintenance: set[asyncio.Task[None]] = set()
        self._log = structlog.get_logger("dither.contributions")

    async def contribute(self, study: Study, offer: Offer) -> Accepted:
        """Store one contribution and reserve its epsilon; returns after the commit.

        Raises:
            ContributionExists, BudgetExhausted, EpsilonBelowSpent, ReportAfterSpending, StudyClosed: nothing
                was stored.
        """
        group = self._groups.get(study.id)
        if group is None:

            async def run(offers: Sequence[Offer]) -> Sequence[Outcome]:
                outcomes = await self._accept(study, offers)
                self._observer.committed(len(offers))
                made = zip(offers, outcomes, strict=True)
                self._saturation.add(study, (offer for offer, what in made if what is Outcome.CREATED))
                return outcomes

            group = self._groups[study.id] = Grouper(run, under_way=GROUPS_UNDER_WAY)
        outcome = await group.submit(offer)
        # Looking at the saturation point may read it anew: also for a refusal, which depends on the value.
        used_at_most = await self._saturation.used_at_most(study, offer)
        refuse(outcome)
        return _accepted(offer, outcome, used_at_most)

    async def contribute_once(self, study: Study, offer: Offer, idempotency: Idempotency) -> Accepted:
        """The same under an idempotency key: what the first response said is stored with the contribution.

        Of the request there is nothing in it but a digest, and whose it is; a withdrawal deletes both.

        Raises:
            IdempotencyKeyReused: the key belongs to another request.
        """

        async def body(connection: Connection) -> Outcome | Reply:
            known = await self._replies.claim(connection, idempotency)
            if known is not None:
                return known
            outcome = (await store.accept(connection, study.id, [offer], self._allowance))[0]
            if outcome.accepted:
                await self._replies.store(
                    connection,
                    idempotency,
                    study_id=study.id,
                    status=CREATED if outcome is Outcome.CREATED else REPEATED,
                    body=str(used_at_most).encode(),
                )
            return outcome

        # Not within the transaction: this may need a connection, and all of them may be waiting here.
        used_at_most = await self._saturation.used_at_most(study, offer)
        outcome = await self._database.run_tx("contribution.accept_once", body)
        if isinstance(outcome, Reply):
            return _replayed(offer, outcome)
        refuse(outcome)
        if outcome is Outcome.CREATED:
            self._saturation.add(study, [offer])
        return _accepted(offer, outcome, used_at_most)

    async def contribute_by_link(
        self, study: Study, offer: Offer, claim: Callable[[Connection], Awaitable[bool]]
    ) -> bool:
        """Store one contribution where a link is still to be had, in the transaction that takes it.

        Args:
            study: The study.
            offer: What to store.
            claim: Takes the link; False where this answer came by it before, and then nothing is stored.

        Returns:
            What `claim` did.

        Raises:
            ContributionExists, BudgetExhausted, EpsilonBelowSpent, ReportAfterSpending, StudyClosed: nothing
                was stored, and the link is not taken.
        """

        async def body(connection: Connection) -> bool:
            if not await claim(connection):
                return False
            refuse((await store.accept(connection, study.id, [offer], self._allowance))[0])
            return True

        new = await self._database.run_tx("contribution.accept_by_link", body)
        if new:
            self._observer.committed(1)
            self._saturation.add(study, [offer])
        return new

    async def replace(self, study: Study, offer: Offer) -> Accepted:
        """Put a value in the place of a live one; whether it is another one shows to no one else.

        Raises:
            NotFound: the subject has no live contribution in this study.
            BudgetExhausted, EpsilonBelowSpent, ReportAfterSpending, StudyClosed: nothing was changed.
        """
        try:
            outcome = await self._database.run_tx(
                "contribution.replace", lambda c: replacements.replace(c, study.id, offer)
            )
        except replacements.Refused as refusal:
            outcome = refusal.outcome
        if outcome is None:
            raise NotFound("this subject has no live contribution in this study")
        used_at_most = await self._saturation.used_at_most(study, offer)
        refuse(outcome)
        return _accepted(offer, outcome, used_at_most)

    async def withdraw(self, study: Study, subject: bytes) -> None:
        """Delete a value and free what was not spent; doing it twice is no error.

        What is stored under idempotency keys for this person in this study is deleted, too; a retry with
        one of them is refused from then on.

        Raises:
            NotFound: the subject never contributed to this study.
        """

        async def body(connection: Connection) -> bool:
            found = await replacements.withdraw(connection, study.id, subject)
            await journal.forget_replies(connection, study.id, subject)
            return found

        if not await self._database.run_tx("contribution.withdraw", body):
            raise NotFound("this subject has no contribution in this study")
        self._saturation.forget(study)

    async def apply_batch(
        self, study: Study, batch: Batch, proceed: Callable[[], Awaitable[None]] = always
    ) -> BatchResult:
        """Store the admissible records of a whole, well-formed document.

        Chunks are committed one by one: a crash loses no acknowledged record, and sending the batch
        again finds the stored ones unchanged.

        Args:
            study: The study.
            batch: What was read.
            proceed: Called before each chunk; raises where the rest is not to be stored any more.

        Raises:
            StudyClosed: the study is closed and holds none of it.
            Unavailable: some of it may be stored; the rest is not.
        """
        result = BatchResult(batch)
        chunks = batch.chunks(CHUNK)

        async def work() -> None:
            for ordinals, offers in chunks:
                await proceed()
                result.record(ordinals, await self._accept(study, offers))

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(CHUNKS_UNDER_WAY):
                    workers.create_task(work())
        except ExceptionGroup as failures:
            # A lost database is the same for all: the first one stands for the group.
            raise failures.exceptions[0] from None
        if result.closed and not result.created + result.unchanged:
            refuse(Outcome.STUDY_CLOSED)
        self._saturation.forget(study)
        if result.created >= VACUUM_FROM:
            task = asyncio.create_task(self._vacuum())
            self._maintenance.add(task)
            task.add_done_callback(self._maintenance.discard)
        return result

    async def _vacuum(self) -> None:
        try:
            await self._database.fetch("contributions.vacuum", store.VACUUM)
        except Exception:
            self._log.warning("vacuum_failed", exc_info=True)

    async def _accept(self, study: Study, offers: Sequence[Offer]) -> Sequence[Outcome]:
        return await self._database.run_tx(
            "contribution.accept", lambda c: store.accept(c, study.id, offers, self._allowance)
        )


def _accepted(offer: Offer, outcome: Outcome, used_at_most: int) -> Accepted:
    return Accepted(
        created=outcome is Outcome.CREATED,
        epsilon=offer.asked,
        mu2=offer.mu2,
        epsilon_used_at_most=used_at_most,
    )


def _replayed(offer: Offer, reply: Reply) -> Accepted:
    return Accepted(
        created=reply.status == CREATED,
        epsilon=offer.asked,
        mu2=offer.mu2,
        epsilon_used_at_most=int(reply.body),
    )
