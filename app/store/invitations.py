"""Invitations and what came by their links, known only by digests of codes and receipts.

A link is locked before anything of `app.store.contributions`, and nothing there looks at links.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.core.invitation import Invitation, InvitationKind, Link, Ticket
from app.store.sql import Connection, Sql

# How many links are used is as secret as who is there: where presence is secret, no statement counts them.
COLUMNS = """invitation.id, study.slug AS study, invitation.kind, invitation.name, invitation.most,
    invitation.token_id, invitation.created_at, invitation.expires_at, invitation.revoked_at,
    CASE WHEN study.relation = 'replace_one' THEN (
        SELECT count(*) FROM ticket AS taken
        WHERE taken.invitation_id = invitation.id AND taken.receipt IS NOT NULL
    ) END AS used"""
OF_STUDY = "JOIN study ON study.id = invitation.study_id"

INSERT = Sql("""
    INSERT INTO invitation (id, study_id, kind, name, code, most, token_id, created_at, expires_at)
    VALUES (:id, :study_id, :kind, :name, :code, :most, :token_id, :created_at, :expires_at)
""")

INSERT_TICKETS = Sql("""
    INSERT INTO ticket (subject_id, invitation_id, code, anonymous)
    SELECT subject, :invitation_id, code, :anonymous
    FROM unnest(CAST(:subjects AS bytea[]), CAST(:codes AS bytea[])) AS made (subject, code)
    ORDER BY subject
""")

READ = Sql.of(Invitation)(f"""
    SELECT {COLUMNS} FROM invitation {OF_STUDY} WHERE invitation.id = :id AND study.id = :study_id
""")

PAGE = Sql.of(Invitation)(f"""
    SELECT {COLUMNS} FROM invitation {OF_STUDY}
    WHERE study.id = :study_id AND invitation.id > :after ORDER BY invitation.id LIMIT :limit
""")

REVOKE = Sql.of(UUID)("""
    UPDATE invitation SET revoked_at = coalesce(revoked_at, :at)
    WHERE id = :id AND study_id = :study_id RETURNING id
""")

FIND = Sql.of(Link)(f"""
    SELECT {COLUMNS}, CAST(NULL AS bytea) AS subject, CAST(NULL AS bytea) AS receipt
    FROM invitation {OF_STUDY} WHERE invitation.code = :code
    UNION ALL
    SELECT {COLUMNS}, ticket.subject_id, ticket.receipt
    FROM ticket JOIN invitation ON invitation.id = ticket.invitation_id {OF_STUDY} WHERE ticket.code = :code
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLink:
    """A link that is held until its transaction ends.

    Attributes:
        expires_at, revoked_at: Of its invitation, as they are now.
        receipt: SHA-256 of the receipt of the answer; None before there is one.
    """

    expires_at: datetime | None
    revoked_at: datetime | None
    receipt: bytes | None


LOCK_OPEN = Sql.of(HeldLink)("""
    SELECT expires_at, revoked_at, CAST(NULL AS bytea) AS receipt
    FROM invitation WHERE code = :code FOR UPDATE
""")

LOCK_SINGLE = Sql.of(HeldLink)("""
    SELECT expires_at, revoked_at, receipt
    FROM ticket JOIN invitation ON invitation.id = ticket.invitation_id WHERE ticket.code = :code
    FOR UPDATE OF ticket FOR SHARE OF invitation
""")

COUNT = Sql.of(int)("SELECT count(*) FROM ticket WHERE invitation_id = :invitation_id")

USE = Sql("UPDATE ticket SET receipt = :receipt WHERE code = :code")

ADD = Sql("""
    INSERT INTO ticket (subject_id, invitation_id, receipt, anonymous)
    VALUES (:subject, :invitation_id, :receipt, true)
""")

FIND_TICKET = Sql.of(Ticket)(f"""
    SELECT ticket.subject_id AS subject, ticket.invitation_id, study.slug AS study
    FROM ticket JOIN invitation ON invitation.id = ticket.invitation_id {OF_STUDY}
    WHERE ticket.receipt = :receipt
""")

# Their codes are digests under the old key: no link is found by them any more.
REVOKE_ALL = Sql("UPDATE invitation SET revoked_at = coalesce(revoked_at, :at)")


async def insert_invitation(
    connection: Connection, invitation: Invitation, study_id: int, *, code: bytes | None
) -> None:
    """Store an invitation to a study; `code` is the HMAC of that of an open one."""
    await INSERT.run(connection, invitation, study_id=study_id, code=code)


async def insert_tickets(
    connection: Connection,
    invitation_id: UUID,
    codes: Sequence[bytes],
    subjects: Sequence[bytes],
    *,
    anonymous: bool,
) -> None:
    """Store single links: HMAC of the code and digest of the person of each.

    Args:
        connection: In a transaction.
        invitation_id: Of a stored invitation.
        codes, subjects: One a link.
        anonymous: Whether those people were made for the links.
    """
    await INSERT_TICKETS.run(
        connection, invitation_id=invitation_id, subjects=subjects, codes=codes, anonymous=anonymous
    )


async def read_invitation(connection: Connection, study_id: int, invitation_id: UUID) -> Invitation | None:
    """One invitation of a study, or None."""
    return await READ.maybe(connection, id=invitation_id, study_id=study_id)


async def page_invitations(
    connection: Connection, study_id: int, *, after: UUID, limit: int
) -> list[Invitation]:
    """The invitations of a study in the order of their ids."""
    return await PAGE.all(connection, study_id=study_id, after=after, limit=limit)


async def revoke_invitation(connection: Connection, study_id: int, invitation_id: UUID, at: datetime) -> bool:
    """Take no more answers by an invitation; False where the study has none with this id."""
    return await REVOKE.maybe(connection, id=invitation_id, study_id=study_id, at=at) is not None


async def find_link(connection: Connection, code: bytes) -> Link | None:
    """What a code leads to, as it is now; None where there is none."""
    return await FIND.maybe(connection, code=code)


async def lock_link(connection: Connection, kind: InvitationKind, code: bytes) -> HeldLink:
    """Hold a link until this transaction ends: no answer comes by it, and no one revokes it, before that."""
    statement = LOCK_OPEN if kind is InvitationKind.OPEN else LOCK_SINGLE
    return await statement.one(connection, code=code)


async def count_answers(connection: Connection, invitation_id: UUID) -> int:
    """Answers that came by an open link."""
    return await COUNT.one(connection, invitation_id=invitation_id)


async def use_single(connection: Connection, code: bytes, receipt: bytes) -> None:
    """Note the receipt of the answer that comes by a single link."""
    await USE.run(connection, code=code, receipt=receipt)


async def add_answer(connection: Connection, invitation_id: UUID, subject: bytes, receipt: bytes) -> None:
    """Note the receipt of one more answer that comes by an open link."""
    await ADD.run(connection, invitation_id=invitation_id, subject=subject, receipt=receipt)


async def find_ticket(connection: Connection, receipt: bytes) -> Ticket | None:
    """Whose answer a receipt is for; None where there is none."""
    return await FIND_TICKET.maybe(connection, receipt=receipt)


async def revoke_all(connection: Connection, at: datetime) -> None:
    """Take no more answers by any invitation."""
    await REVOKE_ALL.run(connection, at=at)
