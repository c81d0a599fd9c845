"""Logins of the dashboard and one-time links, known only by the hash of their secret."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.database import Database
from app.store.tokens import TokenRecord, token_record

INSERT_LOGIN = text("""
    INSERT INTO login (hash, token_id, subject_id, created_at, expires_at)
    VALUES (:hash, :token_id, :subject, :created_at, :expires_at)
""")

# The token of the login is read in the same statement, so that its revocation ends the login at once.
FIND_LOGIN = """
    SELECT login.subject_id AS person, login.expires_at AS login_expires_at, token.*
    FROM login JOIN token ON token.id = login.token_id
    WHERE login.hash = $1
"""

DELETE_LOGIN = text("DELETE FROM login WHERE hash = :hash")

DELETE_OF_TOKEN = text("DELETE FROM login WHERE token_id = :token_id")

INSERT_LINK = text("""
    INSERT INTO link (hash, token_id, subject_id, created_at, expires_at)
    VALUES (:hash, :token_id, :subject, :created_at, :expires_at)
""")

TAKE_LINK = text("""
    DELETE FROM link WHERE hash = :hash AND expires_at > :now RETURNING token_id, subject_id
""")

DELETE_EXPIRED = (
    text("DELETE FROM login WHERE expires_at <= :now"),
    text("DELETE FROM link WHERE expires_at <= :now"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRecord:
    """A login without its secret.

    Attributes:
        token: Whose token it stands on, as that is now.
        subject: The person of a one-time link (HMAC digest); None where the bearer of the token logged in.
        expires_at: From then on it is refused.
    """

    token: TokenRecord
    subject: bytes | None
    expires_at: datetime


async def insert_login(
    connection: AsyncConnection,
    *,
    secret_hash: bytes,
    token_id: UUID,
    subject: bytes | None,
    created_at: datetime,
    expires_at: datetime,
) -> None:
    """Store a login, and forget those that have expired."""
    await delete_expired(connection, created_at)
    await connection.execute(
        INSERT_LOGIN,
        {
            "hash": secret_hash,
            "token_id": token_id,
            "subject": subject,
            "created_at": created_at,
            "expires_at": expires_at,
        },
    )


async def find_login(database: Database, secret_hash: bytes) -> LoginRecord | None:
    """The login with this hash and its token, as both are now; None where there is none."""
    rows = await database.fetch("login.find", FIND_LOGIN, secret_hash)
    if not rows:
        return None
    row = rows[0]
    return LoginRecord(token=token_record(row), subject=row["person"], expires_at=row["login_expires_at"])


async def delete_login(connection: AsyncConnection, secret_hash: bytes) -> None:
    """End a login; no error where there is none."""
    await connection.execute(DELETE_LOGIN, {"hash": secret_hash})


async def delete_logins_of(connection: AsyncConnection, token_id: UUID) -> None:
    """End every login that stands on a token."""
    await connection.execute(DELETE_OF_TOKEN, {"token_id": token_id})


async def insert_link(
    connection: AsyncConnection,
    *,
    secret_hash: bytes,
    token_id: UUID,
    subject: bytes,
    created_at: datetime,
    expires_at: datetime,
) -> None:
    """Store a one-time link, and forget those that have expired."""
    await delete_expired(connection, created_at)
    await connection.execute(
        INSERT_LINK,
        {
            "hash": secret_hash,
            "token_id": token_id,
            "subject": subject,
            "created_at": created_at,
            "expires_at": expires_at,
        },
    )


async def take_link(
    connection: AsyncConnection, secret_hash: bytes, now: datetime
) -> tuple[UUID, bytes] | None:
    """Use a link up: its token and its person. None where it was used, has expired or never was."""
    row = (await connection.execute(TAKE_LINK, {"hash": secret_hash, "now": now})).one_or_none()
    return None if row is None else (row.token_id, row.subject_id)


async def delete_expired(connection: AsyncConnection, now: datetime) -> None:
    """Forget logins and links that have expired."""
    for statement in DELETE_EXPIRED:
        await connection.execute(statement, {"now": now})
