"""The values of central and public people, for K-means: whose they are is not read."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from app.core.cohort import Cohort
from app.store.membership import IS_MEMBER
from app.store.sql import Connection, Sql

AT_ONCE = 10_000
"""People read at a time."""

READ_RELEASE = Sql("SELECT study_id, epoch FROM release WHERE id = :release_id")

# Public people of later epochs than the session's do not join it, and of central cohorts those that paid for
# the round before go on.
READ_PARTICIPANTS = Sql.of(Cohort)("""
    SELECT id, trust, epsilon, carried, spent, count, total, total_squares, reach, segment FROM cohort
    WHERE study_id = :study_id AND count > 0
      AND CASE WHEN trust = 'public' THEN epoch <= :epoch
               ELSE id IN (SELECT cohort_id FROM charge WHERE charge.release_id = :release_id) END
    ORDER BY id
""")

READ_POINTS = Sql.of(bytes)(f"""
    SELECT array_send(coalesce(c.vector, ARRAY[c.value])) AS point
    FROM lineage JOIN contribution c ON {IS_MEMBER}
    WHERE cohort_id = ANY(CAST(:cohorts AS bigint[])) AND c.study_id = :study_id AND c.value IS NOT NULL
""")


async def read_participants(connection: Connection, release_id: UUID) -> tuple[int, list[Cohort]]:
    """Who took part in a round of K-means, as far as they are still there.

    Args:
        connection: Open transaction.
        release_id: What the round published.

    Returns:
        The last epoch that took part, and the cohorts in the order of their ids.
    """
    study_id, epoch = await READ_RELEASE.one(connection, release_id=release_id)
    return epoch, await READ_PARTICIPANTS.all(
        connection, study_id=study_id, epoch=epoch, release_id=release_id
    )


async def read_points(connection: Connection, study_id: int, cohorts: Sequence[int]) -> AsyncIterator[bytes]:
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
    async for points in READ_POINTS.parts(connection, AT_ONCE, cohorts=cohorts, study_id=study_id):
        yield b"".join(points)
