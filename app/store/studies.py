"""Studies."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.study import LocalMechanism, Relation, Study, StudyDefinition, StudyState, Trust
from app.store.cohorts import LOCK_EXCLUSIVE
from app.store.contributions import ENROL_LOCK, EPOCH_LOCK

COLUMNS = """id, slug, title, lower, upper, relation, trust, epsilon_min, epsilon_max, default_share, delta,
             dimension, local_mechanism, state, created_at"""

INSERT = text(f"""
    INSERT INTO study (slug, title, lower, upper, relation, trust, epsilon_min, epsilon_max, default_share,
                       delta, dimension, local_mechanism, created_at)
    VALUES (:slug, :title, :lower, :upper, CAST(:relation AS relation), CAST(:trust AS text[]), :epsilon_min,
            :epsilon_max, :default_share, :delta, :dimension, :local_mechanism, :created_at)
    ON CONFLICT (slug) DO NOTHING
    RETURNING {COLUMNS}
""")

READ = text(f"SELECT {COLUMNS} FROM study WHERE slug = :slug")

PAGE = text(f"""
    SELECT {COLUMNS} FROM study
    WHERE slug > :after AND (CAST(:slugs AS text[]) IS NULL OR slug = ANY(CAST(:slugs AS text[])))
    ORDER BY slug LIMIT :limit
""")

CLOSE = text(f"""
    UPDATE study SET state = CASE WHEN state = 'open' THEN 'closed' ELSE state END
    WHERE id = :study_id RETURNING {COLUMNS}
""")

RETIRE = text("UPDATE study SET state = 'retired' WHERE id = :study_id AND state <> 'retired' RETURNING id")


async def insert_study(
    connection: AsyncConnection, definition: StudyDefinition, created_at: datetime
) -> Study | None:
    """Store a new study; None where the slug is taken."""
    row = (
        await connection.execute(
            INSERT,
            {
                "slug": definition.slug,
                "title": definition.title,
                "lower": str(definition.lower),
                "upper": str(definition.upper),
                "relation": definition.relation.value,
                "trust": sorted(tag.value for tag in definition.trust),
                "epsilon_min": definition.epsilon_min,
                "epsilon_max": definition.epsilon_max,
                "default_share": definition.default_share,
                "delta": definition.delta,
                "dimension": definition.dimension,
                "local_mechanism": definition.local_mechanism.value,
                "created_at": created_at,
            },
        )
    ).one_or_none()
    return None if row is None else _study(row)


async def read_study(connection: AsyncConnection, slug: str) -> Study | None:
    """One study by its slug, or None."""
    row = (await connection.execute(READ, {"slug": slug})).one_or_none()
    return None if row is None else _study(row)


async def page_studies(
    connection: AsyncConnection, *, after: str, limit: int, slugs: frozenset[str] | None
) -> list[Study]:
    """Studies in the order of their slugs, of these slugs only unless None."""
    allowed = None if slugs is None else sorted(slugs)
    rows = await connection.execute(PAGE, {"after": after, "limit": limit, "slugs": allowed})
    return [_study(row) for row in rows]


async def close_study(connection: AsyncConnection, study_id: int) -> Study:
    """Accept no more contributions and no new people in sessions, once enrolments in flight have committed.

    Call with the epoch lock held exclusively.
    """
    await connection.execute(LOCK_EXCLUSIVE, {"lock": ENROL_LOCK, "study_id": study_id})
    return _study((await connection.execute(CLOSE, {"study_id": study_id})).one())


async def retire_study(connection: AsyncConnection, study_id: int) -> bool:
    """Give stored answers only, once contributions and enrolments in flight have committed.

    Call with the chain locked, so that no release is in flight either. False where that is so already.
    """
    for lock in (EPOCH_LOCK, ENROL_LOCK):
        await connection.execute(LOCK_EXCLUSIVE, {"lock": lock, "study_id": study_id})
    return (await connection.execute(RETIRE, {"study_id": study_id})).one_or_none() is not None


def _study(row: Row[Any]) -> Study:
    return Study(
        id=row.id,
        definition=StudyDefinition(
            slug=row.slug,
            title=row.title,
            lower=Decimal(row.lower),
            upper=Decimal(row.upper),
            relation=Relation(row.relation),
            trust=frozenset(Trust(tag) for tag in row.trust),
            epsilon_min=row.epsilon_min,
            epsilon_max=row.epsilon_max,
            default_share=row.default_share,
            delta=row.delta,
            dimension=row.dimension,
            local_mechanism=LocalMechanism(row.local_mechanism),
        ),
        state=StudyState(row.state),
        created_at=row.created_at,
    )
