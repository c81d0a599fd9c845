"""Studies."""

import json
from collections.abc import Mapping
from datetime import datetime

from app.core.records import Wanted
from app.core.reporting_range import ReportingRange
from app.core.study import Study, StudyDefinition, StudyLine, StudyState
from app.store.cohorts import LOCK_EXCLUSIVE
from app.store.contributions import ENROL_LOCK, EPOCH_LOCK
from app.store.sql import Connection, Sql

# As text: of types of its own the driver would first ask the server, on each connection.
COLUMNS = """id, slug, title, description, series, lower, upper, CAST(relation AS text) AS relation, trust,
             epsilon_min, epsilon_max, epsilons, default_share, tilt, delta, dimension, local_mechanism,
             attributes, choices, measures, CAST(state AS text) AS state, created_at,
             CAST(texts AS text) AS texts, CAST(reporting_range AS text) AS reporting_range"""

INSERT = Sql.of(Study)(f"""
    INSERT INTO study (slug, title, description, series, lower, upper, relation, trust, epsilon_min,
                       epsilon_max, epsilons, default_share, tilt, delta, dimension, local_mechanism,
                       attributes, choices, measures, created_at, texts)
    VALUES (:slug, :title, :description, :series, :lower, :upper, CAST(CAST(:relation AS text) AS relation),
            CAST(:trust AS text[]), :epsilon_min, :epsilon_max, CAST(:epsilons AS bigint[]),
            :default_share, :tilt, :delta, :dimension, :local_mechanism, CAST(:attributes AS text[]),
            CAST(:choices AS text[]), CAST(:measures AS text[]), :created_at,
            jsonb_strip_nulls(CAST(:texts AS jsonb)))
    ON CONFLICT (slug) DO NOTHING
    RETURNING {COLUMNS}
""")

READ = Sql.of(Study)(f"SELECT {COLUMNS} FROM study WHERE slug = :slug")

PAGE = Sql.of(Study)(f"""
    SELECT {COLUMNS} FROM study
    WHERE slug > :after AND (CAST(:slugs AS text[]) IS NULL OR slug = ANY(CAST(:slugs AS text[])))
      AND (CAST(:series AS text) IS NULL OR series = :series)
    ORDER BY slug LIMIT :limit
""")

LIST = Sql.of(StudyLine)(f"""
    WITH closing AS (
        SELECT target, min(at) AS at FROM audit
        WHERE action IN ('study.close', 'study.archive', 'study.retire') GROUP BY target
    ), line AS (
        SELECT {COLUMNS},
               CASE WHEN state <> 'open' THEN closing.at END AS closed_at,
               (SELECT release.created_at FROM release WHERE release.study_id = study.id
                ORDER BY number DESC LIMIT 1) AS released_at
        FROM study LEFT JOIN closing ON closing.target = study.slug
        WHERE CAST(:slugs AS text[]) IS NULL OR slug = ANY(CAST(:slugs AS text[]))
    ), placed AS (
        SELECT line.*, row_number() OVER (
            ORDER BY CASE :sort WHEN 'title' THEN lower(title) END,
                     CASE :sort WHEN 'created' THEN created_at WHEN 'closed' THEN closed_at
                                WHEN 'released' THEN released_at END DESC NULLS LAST, slug
        ) AS place
        FROM line
    )
    SELECT {COLUMNS}, closed_at, released_at FROM placed
    WHERE (CAST(:state AS text) IS NULL OR CAST(state AS text) = :state)
      AND (CAST(:series AS text) IS NULL OR series = :series)
      AND strpos(lower(slug || ' ' || title), lower(:search)) > 0
      AND (CAST(:behind AS text) IS NULL OR place > (SELECT place FROM placed WHERE slug = :behind))
    ORDER BY place LIMIT :limit
""")

EDIT = Sql.of(Study)(f"""
    UPDATE study SET title = coalesce(:title, title), description = coalesce(:description, description),
        texts = jsonb_strip_nulls(texts || CAST(:texts AS jsonb))
    WHERE id = :study_id RETURNING {COLUMNS}
""")

NARROW = Sql.of(Study)(f"""
    UPDATE study SET reporting_range = coalesce(reporting_range, CAST(:reporting_range AS jsonb))
    WHERE id = :study_id RETURNING {COLUMNS}
""")

READ_NARROWED = Sql.of(Study)(f"SELECT {COLUMNS} FROM study WHERE reporting_range IS NOT NULL ORDER BY id")

CLOSE = Sql.of(Study)(f"""
    UPDATE study SET state = CASE WHEN state = 'open' THEN 'closed' ELSE state END
    WHERE id = :study_id RETURNING {COLUMNS}
""")

END = Sql.of(int)("""
    UPDATE study SET state = CAST(:state AS study_state)
    WHERE id = :study_id AND state IN ('open', 'closed') RETURNING id
""")


async def insert_study(
    connection: Connection, definition: StudyDefinition, created_at: datetime, texts: Mapping[str, object]
) -> Study | None:
    """Store a new study; None where the slug is taken."""
    return await INSERT.maybe(connection, definition, created_at=created_at, texts=json.dumps(texts))


async def read_study(connection: Connection, slug: str) -> Study | None:
    """One study by its slug, or None."""
    return await READ.maybe(connection, slug=slug)


async def page_studies(
    connection: Connection, *, after: str, limit: int, slugs: frozenset[str] | None, series: str | None
) -> list[Study]:
    """Studies in the order of their slugs, of these slugs and of this series only unless None."""
    return await PAGE.all(connection, after=after, limit=limit, slugs=slugs, series=series)


async def list_studies(
    connection: Connection, wanted: Wanted, *, slugs: frozenset[str] | None, behind: str | None, limit: int
) -> list[StudyLine]:
    """Studies as people look for them.

    Args:
        connection: In a transaction.
        wanted: By part of the slug or the title; sorted by `title`, or newest first by `created`, `closed` or
            `released`, by slug otherwise.
        slugs: These only unless None.
        behind: Only what comes after this slug in that order, unless None.
        limit: Most of them.
    """
    return await LIST.all(connection, wanted, slugs=slugs, behind=behind, limit=limit)


async def edit_study(
    connection: Connection,
    study_id: int,
    *,
    title: str | None,
    description: str | None,
    texts: Mapping[str, object],
) -> Study:
    """Give a study another title or description; None leaves one as it is.

    Of other languages those in `texts` are said anew, and forgotten where that is None.
    """
    return await EDIT.one(
        connection, study_id=study_id, title=title, description=description, texts=json.dumps(texts)
    )


async def narrow_study(connection: Connection, study_id: int, reporting_range: ReportingRange) -> Study:
    """Fix where devices of local people report; a study that has a reporting range keeps it."""
    return await NARROW.one(connection, study_id=study_id, reporting_range=reporting_range.stored)


async def read_narrowed(connection: Connection) -> list[Study]:
    """The studies that have a reporting range."""
    return await READ_NARROWED.all(connection)


async def close_study(connection: Connection, study_id: int) -> Study:
    """Accept no more contributions and no new people in sessions, once enrolments in flight have committed.

    Call with the epoch lock held exclusively.
    """
    await LOCK_EXCLUSIVE.run(connection, lock=ENROL_LOCK, study_id=study_id)
    return await CLOSE.one(connection, study_id=study_id)


async def end_study(connection: Connection, study_id: int, state: StudyState) -> bool:
    """Give stored answers only, once contributions and enrolments in flight have committed.

    Call with the study's cohorts held, so that no release is in flight either. False where it had ended.
    """
    for lock in (EPOCH_LOCK, ENROL_LOCK):
        await LOCK_EXCLUSIVE.run(connection, lock=lock, study_id=study_id)
    return await END.maybe(connection, study_id=study_id, state=state) is not None
