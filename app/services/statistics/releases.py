"""Plans and releases of means, on the way of every answer (`app.services.statistics.answering`)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from uuid import UUID

from app.core.clock import Clock
from app.core.errors import NotFound
from app.core.records import CohortCharge
from app.core.release import Draft, StoredRelease
from app.core.study import Study
from app.estimators import confidence
from app.estimators.interface import NotApplicable
from app.services import work
from app.services.observer import Observer
from app.services.paging import Page, decode_cursor, page_of
from app.services.replies import Replies
from app.services.statistics import combining, combining_secret
from app.services.statistics.answering import Answering
from app.services.statistics.drafts import Said, drafted
from app.services.statistics.questions import Resolved
from app.services.statistics.release_request import MeanSituation, PlannedMean, ReleaseRequest
from app.services.statistics.saturation import Saturation
from app.store import cohorts, combined, release_lists
from app.store import releases as store
from app.store.combined import Sources
from app.store.database import SNAPSHOT, Connection, Database, Run

MOST_BYTES = 8 * 1024 * 1024
"""Bytes of the documents on a page of a list, but for one that is larger by itself."""

MOST_READ = 64 * 1024 * 1024
"""The same of documents that the database reads, to show no labels of them."""

MOST_WHOLE = 1024 * 1024
"""Bytes of a document up to which a page shows all of its labels."""

CHARGE_BYTES = 200
"""Bytes that a charge adds to a document."""


class Releases(Answering[ReleaseRequest, MeanSituation]):
    """Answers questions for means and what is read off them; reads and lists releases of every kind.

    Args:
        many_numbers: Estimators whose answers have several numbers for each label.
        database, clock, saturation, observer, replies: As of every answer.
    """

    request_of = ReleaseRequest.of
    situation = MeanSituation

    def __init__(
        self,
        database: Database,
        clock: Clock,
        saturation: Saturation,
        observer: Observer,
        replies: Replies,
        many_numbers: Sequence[str],
    ) -> None:
        super().__init__(database, clock, observer, replies)
        self._saturation = saturation
        self._many_numbers = many_numbers

    async def get(self, release_id: UUID) -> StoredRelease:
        """A committed release.

        Raises:
            NotFound: there is none.
        """
        release = await self._database.run_tx("release.read", lambda c: store.read_release(c, release_id))
        if release is None:
            raise NotFound("there is no such release")
        return release

    async def part(
        self, release_id: UUID, *, first: int, labels: int, level: float = confidence.LEVEL
    ) -> StoredRelease:
        """A committed release as a page shows it: of a large one some labels only.

        Args:
            release_id: The release.
            first: Place of the first label.
            labels: How many of them, of an answer that has several numbers for each.
            level: At which its intervals are read.

        Raises:
            NotFound: there is none.
            NotApplicable: the ends of its intervals at this level are not kept.
        """
        if level != confidence.LEVEL:
            # Ends are kept in the order of the whole answer.
            whole = await self.read_at(await self.get(release_id), level)
            return await work.run(self._part, whole, first, labels)
        release = await self._database.run_tx(
            "release.part",
            lambda c: release_lists.read_part(
                c,
                release_id,
                estimators=self._many_numbers,
                most=MOST_WHOLE,
                first=first,
                last=first + labels - 1,
            ),
        )
        if release is None:
            raise NotFound("there is no such release")
        return release

    def _part(self, release: StoredRelease, first: int, labels: int) -> StoredRelease:
        """Some labels of a large answer that has several numbers for each, as `release_lists.read_part`."""
        said = json.loads(release.body)
        many = said["estimator"] in self._many_numbers and "groups" in said
        if len(release.body) <= MOST_WHOLE or not many:
            return release
        said["groups"] = said["groups"][first : first + labels]
        return replace(release, body=json.dumps(said, separators=(",", ":")).encode())

    async def page(
        self, study: Study, limit: int, cursor: str | None, *, heads: bool = False, charges: bool = False
    ) -> Page[StoredRelease]:
        """A study's releases, newest first: as many as are asked for, if their documents are not too large.

        Args:
            study: The study.
            limit: Most of them.
            cursor: Behind which one it begins.
            heads: Without what large answers say of labels.
            charges: Whether they are shown with what they charged each cohort.
        """
        before = decode_cursor(cursor, UUID, None)

        async def body(connection: Connection) -> Page[StoredRelease]:
            sizes = await release_lists.page_releases(
                connection, study.id, before=before, limit=limit + 1, charges=charges
            )
            sums = accumulate(size.bytes + size.charges * CHARGE_BYTES for size in sizes)
            # The first one is shown however large it is.
            most = MOST_READ if heads else MOST_BYTES
            fitting = max(1, sum(sum_ <= most for sum_ in sums))
            page = page_of(sizes, min(limit, fitting), lambda size: str(size.id), behind=before)
            ids = [size.id for size in page.items]
            releases = await release_lists.read_releases(connection, ids, heads=heads)
            return Page(items=releases, next_cursor=page.next_cursor)

        return await self._database.run_tx("release.page", body)

    async def steps(
        self, release_id: UUID, most: int, level: float = confidence.LEVEL
    ) -> list[StoredRelease]:
        """The newest steps of the shares of a release's question, the oldest of them first.

        Their intervals are at the level, or all at 95 % where one of the steps keeps no others.
        """
        found = await self._database.run_tx(
            "release.steps", lambda c: release_lists.read_steps(c, release_id, limit=most)
        )
        found = found[::-1]
        if level == confidence.LEVEL:
            return found
        try:
            # Ends are kept in the order of the whole answer.
            return [await self.read_at(await self.get(one.id), level) for one in found]
        except NotApplicable:
            return found

    async def charges(
        self, releases: Sequence[StoredRelease], *, most: int | None = None
    ) -> list[list[CohortCharge]]:
        """What each of these releases cost each cohort; for admins. At most `most` lines in all."""
        ids = [release.id for release in releases]
        charges = await self._database.run_tx(
            "release.charges", lambda c: release_lists.read_charges(c, ids, most=most)
        )
        return [charges[release] for release in ids]

    async def saturation(self, study: Study) -> int | None:
        """Where more epsilon would buy nothing at share 1 [micro-epsilon]; None: nowhere."""
        point = await self._saturation.point(study)
        return None if point is None else study.definition.epsilon(point)

    async def _free(self, connection: Connection, request: ReleaseRequest) -> ReleaseRequest | None:
        return request.combining() if await request.has_news(connection) else None

    async def _make(self, run: Run, request: ReleaseRequest) -> StoredRelease:
        if request.combines:
            return await self._combine(run, request)
        return await super()._make(run, request)

    async def _combine(self, run: Run, request: ReleaseRequest) -> StoredRelease:
        """The best answer of all that are published, and of their combination."""
        study, definition = request.study, request.study.definition
        secret = definition.hides_people

        async def body(connection: Connection) -> tuple[MeanSituation, Sources, Resolved]:
            epochs = await cohorts.read_epochs(connection, study.id)
            rows = [] if secret else await request.people(connection)
            sources = await combined.read_sources(connection, study.id, request.question.measure)
            own = request
            if secret:
                sources, level = combining_secret.chosen(definition, sources)
                own = await request.leveled(connection, level)
            situation = await MeanSituation.read(connection, own, rows, epoch=epochs.folded)
            return situation, sources, own.question

        now, sources, resolved = await run("release.sources", body, isolation_level=SNAPSHOT)

        def made() -> Draft:
            found = (
                combining_secret.combine(definition, now.question, sources)
                if secret
                else combining.combine(definition, now.cohorts, resolved, now.question, sources.pieces)
            )
            said = found.said(resolved, sources.releases)
            free, asked = replace(resolved, share=0), resolved.combined()
            draft = drafted(study, free, said, epoch=now.epoch, clock=self._clock)
            return replace(draft, question=asked.family, asked=asked, newest=sources.newest)

        with self._observer.step("plan"):
            draft = await work.run(made)
        release = await self._publish(run, draft, request)
        best = await run("release.known", lambda c: self._known(c, request, any_share=True))
        # Whichever is best: this request made the combination, or it did not.
        return release if best is None else replace(best, replayed=release.replayed)

    async def _said(self, run: Run, request: ReleaseRequest, now: MeanSituation, made: PlannedMean) -> Said:
        with self._observer.step("draw"):
            return await work.run(made.said, request.question, now.cohorts)
