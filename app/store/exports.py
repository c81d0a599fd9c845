"""What an export of the ledger holds, and what a ledger knows of one."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

PAGE_RELEASES = text("""
    SELECT release.number, release.id AS release, study.slug AS study, release.created_at,
           (SELECT coalesce(max(charge.epsilon), 0) FROM charge WHERE charge.release_id = release.id)
               AS epsilon
    FROM release JOIN study ON study.id = release.study_id
    WHERE release.number > :after ORDER BY release.number LIMIT :limit
""")

READ_ANSWERS = text("""
    SELECT session.id AS session, study.slug AS study,
           (SELECT count(*) FROM answer WHERE answer.session_id = session.id) AS answers
    FROM session JOIN study ON study.id = session.study_id ORDER BY session.number
""")

READ_KNOWN = text("SELECT id FROM release WHERE id = ANY(CAST(:ids AS uuid[]))")


async def page_releases(connection: AsyncConnection, *, after: int, limit: int) -> list[dict[str, Any]]:
    """Releases after a number, the oldest first, each with the most that anyone was charged."""
    rows = await connection.execute(PAGE_RELEASES, {"after": after, "limit": limit})
    return [dict(row) for row in rows.mappings()]


async def read_answers(connection: AsyncConnection) -> list[dict[str, Any]]:
    """Every session with the number of its answers, which only grows."""
    return [dict(row) for row in (await connection.execute(READ_ANSWERS)).mappings()]


async def known_releases(connection: AsyncConnection, ids: Collection[UUID]) -> set[UUID]:
    """Those of these releases that the ledger holds."""
    return set((await connection.execute(READ_KNOWN, {"ids": list(ids)})).scalars())
