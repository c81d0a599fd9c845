"""Releases for lists and pages: as many as fit, and of large ones only what is shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.core.records import CohortCharge
from app.core.release import StoredRelease
from app.store.releases import COLUMNS
from app.store.sql import Connection, Sql

BEFORE_GROUPS = 64 * 1024
"""Size above which what an answer says of labels is not read where it is not shown [bytes]."""

_SAID = "CAST(convert_from(release.body, 'UTF8') AS jsonb)"

HEAD = COLUMNS.replace(
    "release.body",
    f"""CASE WHEN octet_length(release.body) <= {BEFORE_GROUPS} THEN release.body
        ELSE convert_to(CAST({_SAID} - 'groups' AS text), 'UTF8') END AS body""",
)
"""The same without what large answers say of labels."""

PART = COLUMNS.replace(
    "release.body",
    """CASE WHEN said IS NULL THEN release.body ELSE convert_to(CAST(said || jsonb_build_object('groups',
        jsonb_path_query_array(said, '$.groups[$first to $last]',
            jsonb_build_object('first', CAST(:first AS int), 'last', CAST(:last AS int))))
        AS text), 'UTF8') END AS body""",
)
"""The same with some labels of answers that say many numbers of each."""

READ_PART = Sql.of(StoredRelease)(f"""
    SELECT {PART} FROM release JOIN study ON study.id = release.study_id CROSS JOIN LATERAL (
        SELECT CASE WHEN octet_length(release.body) > :most AND release.estimator = ANY(:estimators)
               THEN {_SAID} END AS said
    ) AS large WHERE release.id = :id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSize:
    """How large a release is.

    Attributes:
        id: Of the release.
        bytes: Its document.
        charges: Cohorts that it charged.
    """

    id: UUID
    bytes: int
    charges: int


PAGE = Sql.of(ReleaseSize)("""
    SELECT id, octet_length(body) AS bytes, CASE WHEN CAST(:charges AS boolean)
        THEN coalesce((SELECT cardinality(cohorts) FROM charge_block WHERE release_id = release.id), 0)
        ELSE 0 END AS charges
    FROM release WHERE study_id = :study_id AND (CAST(:before AS uuid) IS NULL OR number <
        (SELECT number FROM release WHERE id = :before AND study_id = :study_id))
    ORDER BY number DESC LIMIT :limit
""")

READ_RELEASES, READ_HEADS = (
    Sql.of(StoredRelease)(f"""
        SELECT {columns} FROM release JOIN study ON study.id = release.study_id
        WHERE release.id = ANY(CAST(:ids AS uuid[])) ORDER BY release.number DESC
    """)
    for columns in (COLUMNS, HEAD)
)

READ_STEPS = Sql.of(StoredRelease)(f"""
    SELECT {HEAD} FROM release JOIN study ON study.id = release.study_id
        JOIN release one ON (one.study_id, one.family) = (release.study_id, release.family)
    WHERE one.id = :id AND release.share_before IS NOT NULL
    ORDER BY release.number DESC LIMIT :limit
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Charged:
    release: UUID
    charge: CohortCharge


READ_CHARGES = Sql.of(_Charged)("""
    SELECT charge.release_id AS release, charge.cohort_id, charge.epsilon AS cost, study.delta, cohort.trust,
           cohort.count AS people, cohort.epsilon AS offer, cohort.epoch
    FROM charge JOIN cohort ON cohort.id = charge.cohort_id JOIN study ON study.id = cohort.study_id
    WHERE charge.release_id = ANY(CAST(:releases AS uuid[])) ORDER BY charge.cohort_id LIMIT :most
""")


async def read_part(
    connection: Connection, release_id: UUID, *, estimators: Sequence[str], most: int, first: int, last: int
) -> StoredRelease | None:
    """One release, or None; of one of these estimators that has more bytes only some of its labels."""
    return await READ_PART.maybe(
        connection, id=release_id, estimators=estimators, most=most, first=first, last=last
    )


async def page_releases(
    connection: Connection, study_id: int, *, before: UUID | None, limit: int, charges: bool
) -> list[ReleaseSize]:
    """How large the releases of a study are, newest first, from behind one of them on."""
    return await PAGE.all(connection, study_id=study_id, before=before, limit=limit, charges=charges)


async def read_releases(
    connection: Connection, ids: Sequence[UUID], *, heads: bool = False
) -> list[StoredRelease]:
    """The releases of these ids, newest first; as heads without what large ones say of labels."""
    return await (READ_HEADS if heads else READ_RELEASES).all(connection, ids=ids)


async def read_steps(connection: Connection, release_id: UUID, *, limit: int) -> list[StoredRelease]:
    """The steps of the shares of a release's question, newest first, as `read_releases` reads heads."""
    return await READ_STEPS.all(connection, id=release_id, limit=limit)


async def read_charges(
    connection: Connection, releases: Sequence[UUID], *, most: int | None = None
) -> dict[UUID, list[CohortCharge]]:
    """What each of these releases cost each cohort, for admins; at most this many lines in all."""
    charges: dict[UUID, list[CohortCharge]] = {release: [] for release in releases}
    for row in await READ_CHARGES.all(connection, releases=releases, most=most):
        charges[row.release].append(row.charge)
    return charges
