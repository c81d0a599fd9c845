"""Publications, and what their privacy labels say."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.core.publication import Publication, Spending
from app.store.sql import Connection, Sql

COLUMNS = """publication.slug, study.slug AS study, publication.title, publication.releases,
    publication.frames, publication.token_id, publication.created_at, publication.changed_at,
    publication.expires_at, publication.withdrawn_at"""

OF_STUDY = "FROM publication JOIN study ON study.id = publication.study_id"

INSERT = Sql.of(str)("""
    INSERT INTO publication (slug, study_id, title, releases, frames, file, token_id, created_at, changed_at,
                             expires_at)
    VALUES (:slug, :study_id, :title, :releases, :frames, :file, :token_id, :created_at, :changed_at,
            :expires_at)
    ON CONFLICT (slug) DO NOTHING RETURNING slug
""")

UPDATE = Sql("""
    UPDATE publication SET title = :title, releases = :releases, frames = :frames, file = :file,
        token_id = :token_id, changed_at = :changed_at, expires_at = :expires_at
    WHERE slug = :slug
""")

WITHDRAW = Sql(
    "UPDATE publication SET file = NULL, withdrawn_at = :at, token_id = :token_id WHERE slug = :slug"
)

READ = Sql.of(Publication)(f"""
    SELECT {COLUMNS} {OF_STUDY} WHERE publication.slug = :slug AND study.id = :study_id
""")

LOCK = Sql.of(Publication)(f"""
    SELECT {COLUMNS} {OF_STUDY} WHERE publication.slug = :slug AND study.id = :study_id
    FOR UPDATE OF publication
""")

PAGE = Sql.of(Publication)(f"""
    SELECT {COLUMNS} {OF_STUDY} WHERE study.id = :study_id AND publication.slug > :after
    ORDER BY publication.slug LIMIT :limit
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A publication with its file; None of one that was withdrawn."""

    publication: Publication
    file: bytes | None


FIND = Sql.of(Shown)(f"SELECT {COLUMNS}, publication.file {OF_STUDY} WHERE publication.slug = :slug")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToPublish:
    """A release to publish: its place in the hash chain, its link and what it says."""

    id: UUID
    number: int
    link: bytes
    body: bytes


READ_ANSWERS = Sql.of(ToPublish)("""
    SELECT id, number, hash AS link, body FROM release WHERE study_id = :study_id AND id = ANY(:releases)
""")

READ_SIZES = Sql.of(int)("""
    SELECT octet_length(body) FROM release WHERE study_id = :study_id AND id = ANY(:releases)
""")

# Nothing here depends on who takes part: prices of answers and of sessions, and which links were made.
READ_SPENDING = Sql.of(Spending)("""
    SELECT (SELECT CAST(coalesce(sum(epsilon_max), 0) AS bigint) FROM release
            WHERE study_id = :study_id) AS charged,
           (SELECT CAST(coalesce(sum(epsilon), 0) AS bigint) FROM session
            WHERE study_id = :study_id) AS sessions,
           EXISTS (SELECT FROM invitation WHERE study_id = :study_id AND kind = 'open') AS open_links,
           EXISTS (SELECT FROM invitation JOIN ticket ON ticket.invitation_id = invitation.id
                   WHERE study_id = :study_id AND ticket.code IS NOT NULL AND ticket.anonymous)
               AS anonymous_links
""")


async def insert_publication(
    connection: Connection, publication: Publication, study_id: int, file: bytes
) -> bool:
    """Store a publication; False where its slug is taken."""
    return await INSERT.maybe(connection, publication, study_id=study_id, file=file) is not None


async def update_publication(connection: Connection, publication: Publication, file: bytes) -> None:
    """Put another file in the place of a publication's."""
    await UPDATE.run(connection, publication, file=file)


async def withdraw_publication(connection: Connection, slug: str, token_id: UUID, at: datetime) -> None:
    """Take a publication back; its file is deleted."""
    await WITHDRAW.run(connection, slug=slug, token_id=token_id, at=at)


async def read_publication(
    connection: Connection, study_id: int, slug: str, *, held: bool = False
) -> Publication | None:
    """One publication of a study, or None; `held` until the transaction ends."""
    if not _may_be_kept(slug):
        return None
    return await (LOCK if held else READ).maybe(connection, slug=slug, study_id=study_id)


async def page_publications(
    connection: Connection, study_id: int, *, after: str, limit: int
) -> list[Publication]:
    """The publications of a study by their slugs."""
    return await PAGE.all(connection, study_id=study_id, after=after, limit=limit)


async def find_publication(connection: Connection, slug: str) -> Shown | None:
    """A publication of any study with its file."""
    if not _may_be_kept(slug):
        return None
    return await FIND.maybe(connection, slug=slug)


async def read_answers(connection: Connection, study_id: int, releases: Sequence[UUID]) -> list[ToPublish]:
    """The releases of these that the study has, in any order."""
    return await READ_ANSWERS.all(connection, study_id=study_id, releases=releases)


async def read_sizes(connection: Connection, study_id: int, releases: Sequence[UUID]) -> list[int]:
    """How large those of these releases are that the study has [bytes]."""
    return await READ_SIZES.all(connection, study_id=study_id, releases=releases)


async def read_spending(connection: Connection, study_id: int) -> Spending:
    """What the privacy label of a study says of its costs."""
    return await READ_SPENDING.one(connection, study_id=study_id)


def _may_be_kept(slug: str) -> bool:
    """Whether text from an address can be one of the database: it keeps no NUL."""
    return "\0" not in slug
