"""Making, finding, closing and ending studies."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import cast
from uuid import UUID

from app.core.clock import Clock
from app.core.errors import Conflict, InvalidRequest, NotFound, StudyClosed, StudyExists
from app.core.principal import Principal
from app.core.records import CohortLine, Wanted
from app.core.study import Study, StudyDefinition, StudyLine, StudyState
from app.core.texts import Texts
from app.core.webhook import EventType
from app.services.admin.ending import Ended, end
from app.services.admin.reporting_ranges import read_found
from app.services.paging import Page, decode_cursor, page_of
from app.store import cohorts, contributions, journal, outbox
from app.store import studies as store
from app.store.database import Connection, Database
from app.store.releases import ENDED


class Studies:
    """The studies of one installation."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: dict[str, Study] = {}

    async def create(
        self,
        definition: StudyDefinition,
        principal: Principal,
        texts: Mapping[str, Mapping[str, object]] | None = None,
    ) -> tuple[Study, bool]:
        """Make a study.

        Returns:
            The study, and False where the very same one existed already.

        Raises:
            StudyExists: the slug is taken by a study with another definition, or that says something else.
            InvalidRequest: a text names labels that the study does not have.
        """
        _check_labels(definition, texts or {})

        async def body(connection: Connection) -> tuple[Study | None, bool]:
            made = await store.insert_study(connection, definition, self._clock.now(), texts or {})
            if made is None:
                return await store.read_study(connection, definition.slug), False
            await self._note(connection, principal, "study.create", definition.slug)
            return made, True

        study, created = await self._database.run_tx("study.create", body)
        if study is None:
            raise StudyExists("a study with this slug exists")
        if differ := _differ(study, definition, texts or {}):
            others = ", ".join(differ)
            raise StudyExists(f"a study with this slug and another definition exists; it differs in {others}")
        return study, created

    async def get(self, slug: str) -> Study:
        """A study's definition and state; the state may lag while another process closes it.

        Raises:
            NotFound: there is none.
        """
        return self._known.get(slug) or await self.read(slug)

    async def read(self, slug: str) -> Study:
        """A study as it stands in the database now.

        Raises:
            NotFound: there is none.
        """
        study = await self._database.run_tx("study.read", lambda c: store.read_study(c, slug))
        if study is None:
            raise NotFound("There is no such study.")
        self._known[slug] = study
        return study

    async def page(
        self, limit: int, cursor: str | None, principal: Principal, series: str | None = None
    ) -> Page[Study]:
        """The studies that a token may see, by slug, of this series only unless None."""
        after = decode_cursor(cursor, str, "")
        items = await self._database.run_tx(
            "study.page",
            lambda c: store.page_studies(
                c, after=after, limit=limit + 1, slugs=principal.studies, series=series
            ),
        )
        return page_of(items, limit, lambda study: study.definition.slug)

    async def listing(
        self, limit: int, cursor: str | None, principal: Principal, wanted: Wanted
    ) -> Page[StudyLine]:
        """The studies that a token may see as people look for them (`app.store.studies.list_studies`)."""
        behind = decode_cursor(cursor, str, None)
        items = await self._database.run_tx(
            "study.list",
            lambda c: store.list_studies(c, wanted, slugs=principal.studies, behind=behind, limit=limit + 1),
        )
        return page_of(items, limit, lambda line: line.study.definition.slug, behind=behind)

    async def cohorts(self, study: Study, limit: int, cursor: str | None) -> Page[CohortLine]:
        """A study's cohorts as the ledger charges them, in the order of their ids. For admins."""
        after = decode_cursor(cursor, int, 0)
        items = await self._database.run_tx(
            "study.cohorts", lambda c: cohorts.page_cohorts(c, study.id, after=after, limit=limit + 1)
        )
        return page_of(items, limit, lambda cohort: str(cohort.id))

    async def edit(
        self,
        slug: str,
        principal: Principal,
        *,
        title: str | None,
        description: str | None,
        texts: Mapping[str, Mapping[str, object] | None],
        reason: str,
    ) -> Study:
        """Give a study another title or description, or say it in other languages.

        None leaves a title or a description as it is, and forgets a language.

        Raises:
            InvalidRequest: a text names labels that the study does not have.
        """
        study = await self.read(slug)
        _check_labels(study.definition, texts)
        changes = {"title": title, "description": description, "languages": ", ".join(sorted(texts)) or None}
        detail = {name: text for name, text in changes.items() if text is not None} | {"reason": reason}

        async def body(connection: Connection) -> Study:
            await self._note(connection, principal, "study.edit", slug, detail)
            return await store.edit_study(
                connection, study.id, title=title, description=description, texts=texts
            )

        self._known[slug] = await self._database.run_tx("study.edit", body)
        return self._known[slug]

    async def narrow(self, slug: str, principal: Principal, searches: Sequence[UUID]) -> Study:
        """Fix where devices of local people report, once: between what two finished searches found.

        Args:
            slug: The study.
            principal: Who does it, for the audit trail.
            searches: For the lower end, and for the upper end.

        Raises:
            InvalidRequest: its reports are of something else than one number, or the searches do not do.
            StudyClosed: it takes no more reports.
            Conflict: it has another one.
        """
        study = await self.read(slug)
        if not study.definition.may_narrow:
            raise InvalidRequest.field("study", "local people of this study do not report one number")

        async def body(connection: Connection) -> Study:
            due = await read_found(connection, study.id, searches)
            # It stays open until this is done, and another one who fixes a range waits for its row.
            epoch = await contributions.enter(connection, study.id, locks=(contributions.EPOCH_LOCK,))
            if epoch.state is not StudyState.OPEN:
                raise StudyClosed("the study is closed and takes no more reports")
            narrowed = await store.narrow_study(connection, study.id, due)
            if narrowed.definition.reporting_range != due:
                raise Conflict("the study has another reporting range, for good")
            if study.definition.reporting_range is None:
                detail = {"range": due.text, "lower": due.searches[0], "upper": due.searches[1]}
                await self._note(connection, principal, "study.narrow", slug, detail)
            return narrowed

        self._known[slug] = await self._database.run_tx("study.narrow", body)
        return self._known[slug]

    async def close(self, slug: str, principal: Principal) -> Study:
        """Take no more contributions and enrolments, once those in flight have committed."""
        study = await self.read(slug)

        async def body(connection: Connection) -> Study:
            await cohorts.seal(connection, study.id)
            before = await store.read_study(connection, slug)
            closed = await store.close_study(connection, study.id)
            # Under the lock of its epochs, which the one who closes it has: two who close it do it once.
            if before is not None and before.state is StudyState.OPEN:
                await outbox.emit(connection, EventType.STUDY_CLOSED, study.id, {"state": closed.state.value})
                await self._note(connection, principal, "study.close", slug)
            return closed

        self._known[slug] = await self._database.run_tx("study.close", body)
        return self._known[slug]

    async def archive(self, slug: str, principal: Principal, reason: str) -> Study:
        """Give stored answers only from now on, and free what people reserved and have not spent.

        Raises:
            StudyRetired: it frees nothing.
        """
        return await self._end(slug, StudyState.ARCHIVED, principal, {"reason": reason})

    async def retire(self, slug: str, principal: Principal) -> Study:
        """Give stored answers only from now on, and free nothing of what people reserved.

        Raises:
            StudyArchived: that is free already.
        """
        return await self._end(slug, StudyState.RETIRED, principal, {})

    async def _end(
        self, slug: str, state: Ended, principal: Principal, detail: Mapping[str, object]
    ) -> Study:
        """End a study and its sessions; the same again changes nothing."""
        study, actor = await self.read(slug), str(principal.token_id)
        await self._database.run_tx(
            "study.end", lambda c: end(c, study, state, clock=self._clock, actor=actor, detail=detail)
        )
        study = await self.read(slug)
        if study.state is not state:
            raise ENDED[study.state](f"the study is {study.state}, for good")
        return study

    async def _note(
        self,
        connection: Connection,
        principal: Principal,
        action: str,
        slug: str,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        await journal.record(
            connection, self._clock.now(), principal.token_id, action, slug, **(detail or {})
        )


def _differ(study: Study, wanted: StudyDefinition, texts: Mapping[str, object]) -> list[str]:
    """The fields in which a study is another one than is wanted; its texts count where some are given."""
    # A reporting range comes later, and is no part of what is sent.
    there = replace(study.definition, reporting_range=None)
    names = [one.name for one in fields(wanted) if getattr(there, one.name) != getattr(wanted, one.name)]
    names = [name.replace("epsilon_", "epsilon.") for name in names]
    return names if not texts or study.texts == Texts(json.dumps(texts)) else [*names, "texts"]


def _check_labels(definition: StudyDefinition, texts: Mapping[str, Mapping[str, object] | None]) -> None:
    """Refuse texts of names that a study does not have, and one text for what people choose between."""
    languages = {code: cast(Mapping[str, str], said["labels"]) for code, said in texts.items() if said}
    if not definition.names.issuperset(label for labels in languages.values() for label in labels):
        raise InvalidRequest.field(
            "texts", "labels must be names of the study's measures, choices, attributes or labels"
        )
    for code, labels in languages.items():
        for names in definition.read_together:
            shown = Counter(labels.get(name, name) for name in names)
            for name in names:
                if name in labels and shown[labels[name]] > 1:
                    raise InvalidRequest.field(
                        f"texts.{code}.labels.{name}", "must not be what another one is called beside it"
                    )
