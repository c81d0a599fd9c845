"""What an export of the ledger holds, and what a ledger knows of one."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.core.records import CostToPerson
from app.store.sql import Connection, Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRelease(CostToPerson):
    """A release and the most that anyone was charged for it."""

    number: int
    release: UUID
    study: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedSession:
    """A session and the number of its answers, which only grows."""

    session: UUID
    study: str
    answers: int


PAGE_RELEASES = Sql.of(ExportedRelease)("""
    SELECT release.number, release.id AS release, study.slug AS study, release.created_at,
           (SELECT coalesce(max(charge.epsilon), 0) FROM charge WHERE charge.release_id = release.id)
               AS cost, study.delta
    FROM release JOIN study ON study.id = release.study_id
    WHERE release.number > :after ORDER BY release.number LIMIT :limit
""")

READ_ANSWERS = Sql.of(ExportedSession)("""
    SELECT session.id AS session, study.slug AS study, coalesce(given.answers, 0) AS answers
    FROM session JOIN study ON study.id = session.study_id
    LEFT JOIN (SELECT session_id, count(*) AS answers FROM answer GROUP BY session_id) AS given
      ON given.session_id = session.id
    ORDER BY session.number
""")

READ_KNOWN = Sql.of(UUID)("SELECT id FROM release WHERE id = ANY(CAST(:ids AS uuid[]))")


async def page_releases(connection: Connection, *, after: int, limit: int) -> list[ExportedRelease]:
    """Releases after a number, the oldest first."""
    return await PAGE_RELEASES.all(connection, after=after, limit=limit)


async def read_answers(connection: Connection) -> list[ExportedSession]:
    """Every session."""
    return await READ_ANSWERS.all(connection)


async def known_releases(connection: Connection, ids: Collection[UUID]) -> set[UUID]:
    """The releases of these that the ledger holds."""
    return set(await READ_KNOWN.all(connection, ids=list(ids)))
