"""The values of central and public people, for K-means: whose they are is not read."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.cohort import Cohort
from app.store.cohorts import COHORT_COLUMNS, cohort_of
from app.store.database import driver
from app.store.membership import is_member

AT_ONCE = 10_000
"""People read at a time."""

READ_RELEASE = text("SELECT study_id, epoch FROM release WHERE id = :release_id")

# Public people of later epochs than the session's do not join it, and of central cohorts those that paid for
# the round before go on.
READ_PARTICIPANTS = text(f"""
    SELECT {COHORT_COLUMNS} FROM cohort
    WHERE study_id = :study_id AND count > 0
      AND CASE WHEN trust = 'public' THEN epoch <= :epoch
               ELSE id IN (SELECT cohort_id FROM charge WHERE charge.release_id = :release_id) END
    ORDER BY id
""")

READ_POINTS = f"""
    SELECT array_send(coalesce(c.vector, ARRAY[c.value])) AS point
    FROM cohort JOIN contribution c ON {is_member("c")}
    WHERE cohort.id = ANY($1::bigint[]) AND c.study_id = $2 AND c.value IS NOT NULL
"""


async def read_participants(connection: AsyncConnection, release_id: UUID) -> tuple[int, list[Cohort]]:
    """Who took part in a round of K-means, as far as they are still there.

    Args:
        connection: Open transaction.
        release_id: What the round published.

    Returns:
        The last epoch that took part, and the cohorts in the order of their ids.
    """
    release = (await connection.execute(READ_RELEASE, {"release_id": release_id})).one()
    rows = await connection.execute(
        READ_PARTICIPANTS,
        {"study_id": release.study_id, "epoch": release.epoch, "release_id": release_id},
    )
    return release.epoch, [cohort_of(row) for row in rows]


async def read_points(
    connection: AsyncConnection, study_id: int, cohorts: Sequence[int]
) -> AsyncIterator[bytes]:
    """The values of the live members of folded cohorts, some thousands at a time.

    Args:
        connection: Open transaction.
        study_id: Their study.
        cohorts: Ids.

    Yields:
        The grid points of people one after the other, as PostgreSQL sends arrays: for each person five
        32-bit integers about the array's shape, and for each coordinate its length, 8, in 32 bits and its
        grid point in 64, all of them big-endian. Raw: must not leave the services.
    """
    cursor = await driver(connection).cursor(READ_POINTS, list(cohorts), study_id)
    while rows := await cursor.fetch(AT_ONCE):
        yield b"".join(row["point"] for row in rows)
