"""Schedules and their next times, by the database's own clock."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from app.core.schedule import Due, Schedule
from app.store.sql import Connection, Sql

CLAIMED_SECONDS = 600.0
"""How long a time of a schedule is one process's: one that does not survive is asked again afterwards."""

COLUMNS = """schedule.id, study.slug AS study, schedule.token_id, schedule.question, schedule.every,
    schedule.starts_at, schedule.share, schedule.until, coalesce(token.quota_share, 0) AS quota,
    schedule.created_at, schedule.due_at, schedule.answered, schedule.asked_at,
    schedule.release_id AS release, schedule.refusal"""

OF = "JOIN study ON study.id = schedule.study_id JOIN token ON token.id = schedule.token_id"

INSERT = Sql("""
    INSERT INTO schedule
        (id, study_id, token_id, question, every, starts_at, share, until, created_at, due_at)
    VALUES (:id, :study_id, :token_id, :question, :every, :starts_at, :share, :until, :created_at, :starts_at)
""")

READ = Sql.of(Schedule)(f"""
    SELECT {COLUMNS} FROM schedule {OF} WHERE schedule.id = :id AND schedule.study_id = :study_id
""")

PAGE = Sql.of(Schedule)(f"""
    SELECT {COLUMNS} FROM schedule {OF}
    WHERE schedule.study_id = :study_id AND schedule.id > :after ORDER BY schedule.id LIMIT :limit
""")

DELETE = Sql.of(UUID)("DELETE FROM schedule WHERE id = :id RETURNING id")


# A schedule whose token was revoked asks nothing. One of which a time is asked is that of one process.
CLAIM = Sql.of(Due)(f"""
    WITH next AS (
        SELECT schedule.id FROM schedule JOIN token ON token.id = schedule.token_id
        WHERE due_at <= clock_timestamp() AND token.revoked_at IS NULL
          AND (claimed_until IS NULL OR claimed_until <= clock_timestamp())
        ORDER BY due_at LIMIT 1 FOR UPDATE OF schedule SKIP LOCKED
    ), claimed AS (
        UPDATE schedule SET claimed_until = clock_timestamp() + make_interval(secs => :seconds)
        FROM next WHERE schedule.id = next.id RETURNING schedule.*
    )
    SELECT {COLUMNS}, clock_timestamp() AS now FROM claimed AS schedule {OF}
""")

SETTLE = Sql.of(int)("""
    UPDATE schedule SET due_at = :next, claimed_until = NULL, asked_at = clock_timestamp(),
        answered = answered + CASE WHEN CAST(:refusal AS text) IS NULL THEN 1 ELSE 0 END,
        release_id = coalesce(:release, release_id), refusal = :refusal
    WHERE id = :id AND due_at = :due_at RETURNING study_id
""")


async def insert(connection: Connection, schedule: Schedule, study_id: int) -> None:
    """Store a schedule, whose first time is its start."""
    await INSERT.run(connection, schedule, study_id=study_id)


async def read(connection: Connection, schedule_id: UUID, study_id: int) -> Schedule | None:
    """A schedule of a study, or None."""
    return await READ.maybe(connection, id=schedule_id, study_id=study_id)


async def page(connection: Connection, study_id: int, *, after: UUID, limit: int) -> Sequence[Schedule]:
    """Schedules of a study in the order of their ids."""
    return await PAGE.all(connection, study_id=study_id, after=after, limit=limit)


async def delete(connection: Connection, schedule_id: UUID) -> bool:
    """Delete a schedule; False where there is none."""
    return await DELETE.maybe(connection, id=schedule_id) is not None


async def claim(connection: Connection) -> Due | None:
    """The schedule whose time came first, for one caller; None: none is due."""
    return await CLAIM.maybe(connection, seconds=CLAIMED_SECONDS)


async def settle(
    connection: Connection, due: Due, following: datetime | None, release: UUID | None, refusal: str | None
) -> int | None:
    """Note what came of a time, and when the next one is.

    Returns:
        The study's number; None where that time was settled before, or the schedule was deleted.
    """
    return await SETTLE.maybe(connection, due.schedule, next=following, release=release, refusal=refusal)
