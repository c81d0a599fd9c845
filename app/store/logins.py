"""Logins of the dashboard and one-time links, known only by the hash of their secret."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.store.database import Database
from app.store.sql import Connection, Sql
from app.store.tokens import OWN, TokenRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRecord:
    """A login without its secret.

    Attributes:
        token: Whose token it stands on, as that is now.
        person: The person of a one-time link (HMAC digest); None where the bearer of the token logged in.
        ends_at: From then on it is refused.
    """

    token: TokenRecord
    person: bytes | None
    ends_at: datetime


INSERT_LOGIN = Sql("""
    INSERT INTO login (hash, token_id, subject_id, created_at, expires_at)
    VALUES (:hash, :token_id, :subject, :created_at, :expires_at)
""")

# The token of the login is read in the same statement, so that its revocation ends the login at once.
FIND_LOGIN = Sql.of(LoginRecord)(f"""
    SELECT login.subject_id AS person, login.expires_at AS ends_at, {OWN}
    FROM login JOIN token ON token.id = login.token_id
    WHERE login.hash = :hash
""")

DELETE_LOGIN = Sql("DELETE FROM login WHERE hash = :hash")

DELETE_OF_TOKEN = Sql("DELETE FROM login WHERE token_id = :token_id")

INSERT_LINK = Sql("""
    INSERT INTO link (hash, token_id, subject_id, created_at, expires_at)
    VALUES (:hash, :token_id, :subject, :created_at, :expires_at)
""")

TAKE_LINK = Sql("""
    DELETE FROM link WHERE hash = :hash AND expires_at > :now RETURNING token_id, subject_id
""")

DELETE_EXPIRED = (
    Sql("DELETE FROM login WHERE expires_at <= :now"),
    Sql("DELETE FROM link WHERE expires_at <= :now"),
)


async def insert(
    connection: Connection,
    statement: Sql[Any],
    *,
    secret_hash: bytes,
    token_id: UUID,
    subject: bytes | None,
    created_at: datetime,
    expires_at: datetime,
) -> None:
    """Store a login or a one-time link, and forget those that have expired.

    Args:
        connection: In a transaction.
        statement: `INSERT_LOGIN` or `INSERT_LINK`.
        secret_hash: Of its secret.
        token_id: Of the token it stands on.
        subject: The person that it is of; None for the bearer of the token, who gets no link.
        created_at, expires_at: When it begins, and from when on it is refused.
    """
    await delete_expired(connection, created_at)
    await statement.run(
        connection,
        hash=secret_hash,
        token_id=token_id,
        subject=subject,
        created_at=created_at,
        expires_at=expires_at,
    )


async def find_login(database: Database, secret_hash: bytes) -> LoginRecord | None:
    """The login with this hash and its token, as both are now; None where there is none."""
    return next(iter(await database.fetch("login.find", FIND_LOGIN, hash=secret_hash)), None)


async def delete_login(connection: Connection, secret_hash: bytes) -> None:
    """End a login; no error where there is none."""
    await DELETE_LOGIN.run(connection, hash=secret_hash)


async def delete_logins_of(connection: Connection, token_id: UUID) -> None:
    """End every login that stands on a token."""
    await DELETE_OF_TOKEN.run(connection, token_id=token_id)


async def take_link(connection: Connection, secret_hash: bytes, now: datetime) -> tuple[UUID, bytes] | None:
    """Use a link up: its token and its person. None where it was used, has expired or never was."""
    row = await TAKE_LINK.maybe(connection, hash=secret_hash, now=now)
    return None if row is None else (row["token_id"], row["subject_id"])


async def delete_expired(connection: Connection, now: datetime) -> None:
    """Forget logins and links that have expired."""
    for statement in DELETE_EXPIRED:
        await statement.run(connection, now=now)
