"""Tokens, known only by the hash of their secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID, uuid4

from app.core.principal import Role, in_order
from app.core.quota import Quota
from app.core.records import Wanted
from app.store.database import Database
from app.store.sql import Connection, Sql

# Roles as text: of types of its own the driver would first ask the server, on each connection.
COLUMNS = """token.id, token.name, CAST(token.roles AS text[]) AS roles, token.studies,
    token.subject_id AS subject, {expires_at}, token.revoked_at, token.created_at, token.last_used_on,
    token.quota_share AS share, token.quota_period AS period_seconds,
    token.identity IS NOT NULL AS by_provider"""
OWN = COLUMNS.format(expires_at="token.expires_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token without its secret.

    Attributes:
        id, name, roles: As created.
        studies: Slugs it is limited to; None for all.
        subject: The one subject it acts for (HMAC digest); None for all.
        expires_at, revoked_at: From then on it is refused; None for never.
        created_at: When.
        last_used_on: The last day (UTC) on which it was borne; None for never.
        quota: What it may use of each study; None for no limit of its own.
        by_provider: Whether it has no secret and stands for an identity of the OIDC provider.
    """

    id: UUID
    name: str
    roles: frozenset[Role]
    studies: frozenset[str] | None
    subject: bytes | None
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    last_used_on: date | None = None
    quota: Quota | None = None
    by_provider: bool = False

    @property
    def role(self) -> Role:
        """The only role of most tokens, the first one of others: for programs that know of one."""
        return in_order(self.roles)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLine:
    """A token in a list.

    Attributes:
        state: Valid, expired or revoked.
        owner: Name of the token that made it, or what else did; None where the trail does not say.
    """

    token: TokenRecord
    state: str
    owner: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    found: bytes
    token: TokenRecord


INSERT = Sql("""
    INSERT INTO token (id, name, roles, hash, studies, subject_id, expires_at, created_at)
    VALUES (:id, :name, CAST(CAST(:roles AS text[]) AS role[]), :hash, CAST(:studies AS text[]), :subject,
            :expires_at, :created_at)
""")

# A secret that was rotated away is the same token, which expires when the time of grace is over.
READ_BY_HASH = Sql.of(_Found)(f"""
    SELECT hash AS found, {OWN} FROM token WHERE hash = ANY(:hashes)
    UNION ALL
    SELECT old_hash, {COLUMNS.format(expires_at="least(expires_at, old_expires_at) AS expires_at")} FROM token
    WHERE old_hash = ANY(:hashes)
""")

READ_BY_IDENTITY = Sql.of(_Found)(f"SELECT identity AS found, {OWN} FROM token WHERE identity = ANY(:found)")

CLAIM_IDENTITY = Sql.of(TokenRecord)(f"""
    INSERT INTO token (id, name, roles, identity, studies, created_at, last_used_on)
    VALUES (:id, coalesce(CAST(:name AS text), :digest), CAST(CAST(:roles AS text[]) AS role[]), :identity,
            CAST(:studies AS text[]), :at, :day)
    ON CONFLICT (identity) DO UPDATE
    SET name = coalesce(CAST(:name AS text), token.name), roles = excluded.roles, studies = excluded.studies
    WHERE (token.name, token.roles, token.studies)
        IS DISTINCT FROM (coalesce(CAST(:name AS text), token.name), excluded.roles, excluded.studies)
    RETURNING {OWN}
""")

READ_IDENTITY = Sql.of(TokenRecord)(f"SELECT {OWN} FROM token WHERE identity = :identity")

READ = Sql.of(TokenRecord)(f"SELECT {OWN} FROM token WHERE id = :id")

LOCK = Sql.of(TokenRecord)(f"SELECT {OWN} FROM token WHERE id = :id FOR UPDATE")

ROTATE = Sql("""
    UPDATE token SET old_hash = CASE WHEN CAST(:until AS timestamptz) IS NULL THEN NULL ELSE hash END,
                     old_expires_at = :until, hash = :hash
    WHERE id = :id
""")

TOUCH = Sql("""
    UPDATE token SET last_used_on = :day
    WHERE id = ANY(CAST(:ids AS uuid[])) AND last_used_on IS DISTINCT FROM :day
""")

PAGE = Sql.of(TokenRecord)(f"SELECT {OWN} FROM token WHERE id > :after ORDER BY id LIMIT :limit")

LIST = Sql.of(TokenLine)(f"""
    WITH made AS (
        SELECT audit.target, coalesce(maker.name, audit.actor) AS owner
        FROM audit LEFT JOIN token AS maker ON CAST(maker.id AS text) = audit.actor
        WHERE action = 'token.create'
    ), line AS (
        SELECT {OWN}, made.owner,
               CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= :now THEN 'expired'
                    ELSE 'valid' END AS state
        FROM token LEFT JOIN made ON made.target = CAST(token.id AS text)
    ), placed AS (
        SELECT line.*, row_number() OVER (
            ORDER BY CASE :sort WHEN 'name' THEN lower(name) WHEN 'owner' THEN lower(owner) END,
                     CASE :sort WHEN 'used' THEN last_used_on END DESC NULLS LAST, created_at DESC, id
        ) AS place
        FROM line
    )
    SELECT {OWN}, placed.owner, placed.state FROM token JOIN placed ON placed.id = token.id
    WHERE (CAST(:state AS text) IS NULL OR placed.state = :state)
      AND strpos(lower(concat_ws(' ', token.name, placed.owner, array_to_string(token.roles, ' '),
                                 array_to_string(token.studies, ' '))), lower(:search)) > 0
      AND (CAST(:behind AS uuid) IS NULL OR place > (SELECT place FROM placed WHERE id = :behind))
    ORDER BY place LIMIT :limit
""")

REVOKE = Sql.of(UUID)("UPDATE token SET revoked_at = coalesce(revoked_at, :at) WHERE id = :id RETURNING id")


async def insert_token(connection: Connection, record: TokenRecord, secret_hash: bytes) -> None:
    """Store a token."""
    await INSERT.run(connection, record, hash=secret_hash)


async def read_tokens_by_hash(database: Database, hashes: Sequence[bytes]) -> dict[bytes, TokenRecord]:
    """The tokens with these hashes, by hash, as they are now. Every request waits for this."""
    return {row.found: row.token for row in await database.fetch("token.find", READ_BY_HASH, hashes=hashes)}


async def read_tokens_by_identity(
    database: Database, identities: Sequence[bytes]
) -> dict[bytes, TokenRecord]:
    """The rows of these identities of the OIDC provider, by identity, as they are now."""
    rows = await database.fetch("token.identities", READ_BY_IDENTITY, found=identities)
    return {row.found: row.token for row in rows}


async def claim_identity(
    connection: Connection,
    identity: bytes,
    *,
    name: str | None,
    roles: frozenset[Role],
    studies: frozenset[str] | None,
    at: datetime,
) -> tuple[TokenRecord, bool]:
    """The row of an identity with these roles, and whether it was made or changed for them.

    Without a name it keeps the one that it has; a new one is named by its digest.
    """
    claimed = await CLAIM_IDENTITY.maybe(
        connection,
        id=uuid4(),
        name=name,
        digest=f"identity {identity.hex()[:16]}",
        roles=roles,
        identity=identity,
        studies=studies,
        at=at,
        day=at.date(),
    )
    if claimed is not None:
        return claimed, True
    return await READ_IDENTITY.one(connection, identity=identity), False


async def read_token(connection: Connection, token_id: UUID) -> TokenRecord | None:
    """One token, or None."""
    return await READ.maybe(connection, id=token_id)


async def lock_token(connection: Connection, token_id: UUID) -> TokenRecord | None:
    """One token, locked until this transaction ends; None where there is none."""
    return await LOCK.maybe(connection, id=token_id)


async def rotate_token(
    connection: Connection, token_id: UUID, secret_hash: bytes, *, old_until: datetime | None
) -> None:
    """Give a token another secret.

    Args:
        connection: In a transaction.
        token_id: The token.
        secret_hash: Of the new secret.
        old_until: How long the old one is taken beside it; None: from now on not any more.
    """
    await ROTATE.run(connection, id=token_id, hash=secret_hash, until=old_until)


async def touch_tokens(connection: Connection, ids: Sequence[UUID], day: date) -> None:
    """Note that tokens were borne on a day."""
    await TOUCH.run(connection, ids=ids, day=day)


async def page_tokens(connection: Connection, *, after: UUID, limit: int) -> list[TokenRecord]:
    """Tokens in the order of their ids."""
    return await PAGE.all(connection, after=after, limit=limit)


async def list_tokens(
    connection: Connection, wanted: Wanted, *, now: datetime, behind: UUID | None, limit: int
) -> list[TokenLine]:
    """Tokens as people look for them.

    Args:
        connection: In a transaction.
        wanted: By part of the name, of a role, the owner or a slug; sorted by `name`, `owner`, or `used` for
            those used last, newest first otherwise.
        now: Tells what has expired.
        behind: Only what comes after this token in that order, unless None.
        limit: Most of them.
    """
    return await LIST.all(connection, wanted, now=now, behind=behind, limit=limit)


async def revoke_token(connection: Connection, token_id: UUID, at: datetime) -> bool:
    """Refuse a token from now on; False where there is none."""
    return await REVOKE.maybe(connection, id=token_id, at=at) is not None
