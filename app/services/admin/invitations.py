"""Invitations: links by which people answer a study on a page, and the receipts of what they gave.

The database knows digests of codes and receipts only. The code of an open link is made of its id under the
server's key, so that its address can be shown again; that of a single one is random and shown once.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.contribution import Offer
from app.core.errors import Conflict, ContributionExists, InvalidRequest, NotFound, StudyClosed
from app.core.invitation import Invitation, InvitationKind, InvitationState, Link, Ticket
from app.core.ledger import Holding
from app.core.principal import Principal
from app.core.study import Study, StudyState
from app.services.admin.tokens import CODE_BYTES, LOWEST_ID, new_code
from app.services.contributing.contributions import Contributions
from app.services.paging import Page, decode_cursor, page_of
from app.services.subjects import SubjectKey
from app.store import invitations as store
from app.store import journal
from app.store.contributions import read_holdings
from app.store.database import Connection, Database

NO_LINK = "There is no such link: it is not complete, has expired or was revoked."
"""The same for each, so that trying codes tells nothing."""

NO_RECEIPT = "There is no such receipt."

FULL = "This link has all the answers that it takes."

USED = "This link was used: an answer came by it."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvitation:
    """A new invitation with the codes of its links, which are returned this once; an open one has one."""

    invitation: Invitation
    codes: Sequence[str]


class Invitations:
    """The invitations of one installation."""

    def __init__(
        self, database: Database, clock: Clock, subject_key: SubjectKey, contributions: Contributions
    ) -> None:
        self._database = database
        self._clock = clock
        self._key = subject_key
        self._contributions = contributions

    async def create(
        self,
        study: Study,
        principal: Principal,
        *,
        kind: InvitationKind,
        name: str,
        most: int,
        expires_at: datetime | None = None,
        subjects: Sequence[bytes] | None = None,
    ) -> NewInvitation:
        """Make an invitation.

        Args:
            study: What people answer.
            principal: Who makes it.
            kind: For whom its links are.
            name: For admins.
            most: Answers that it takes: how many single links there are.
            expires_at: From then on its links take no answer.
            subjects: Digests of the people of single links, one each; None makes a new one for each.

        Raises:
            InvalidRequest: an open link to a study whose number of people is secret, or a past expiry.
            StudyClosed: the study takes no more answers.
        """
        if study.state is not StudyState.OPEN:
            raise StudyClosed("the study takes no more answers")
        now = self._clock.now()
        if kind is InvitationKind.OPEN and study.definition.hides_people:
            reason = "a study whose number of people is secret has no open links: make single ones"
            raise InvalidRequest.field("kind", reason)
        if expires_at is not None and expires_at <= now:
            raise InvalidRequest.field("expires_at", "must be in the future")
        invitation = Invitation(
            id=uuid4(),
            study=study.definition.slug,
            kind=kind,
            name=name,
            most=most,
            token_id=principal.token_id,
            created_at=now,
            expires_at=expires_at,
            revoked_at=None,
            used=None,
        )
        is_open = kind is InvitationKind.OPEN
        codes = [self.open_code(invitation)] if is_open else [new_code() for _ in range(most)]
        digests = [self._code_digest(code) for code in codes]
        people = subjects or [self._key.link_digest("person", code) for code in codes]

        async def body(connection: Connection) -> None:
            await store.insert_invitation(
                connection, invitation, study.id, code=digests[0] if is_open else None
            )
            if not is_open:
                await store.insert_tickets(
                    connection, invitation.id, digests, people, anonymous=subjects is None
                )
            await journal.record(
                connection,
                now,
                principal.token_id,
                "invitation.create",
                invitation.id,
                study=study.definition.slug,
                kind=kind.value,
                name=name,
                limit=most,
            )

        await self._database.run_tx("invitation.create", body)
        return NewInvitation(invitation=invitation, codes=codes)

    def open_code(self, invitation: Invitation) -> str:
        """The code of an open link.

        Raises:
            NotFound: it is for single people, and each code was shown once.
        """
        if invitation.kind is not InvitationKind.OPEN:
            raise NotFound("single links are shown once, when they are made")
        return _text(self._key.link_digest("open", str(invitation.id)))

    async def page(self, study: Study, limit: int, cursor: str | None) -> Page[Invitation]:
        """The invitations of a study."""
        after = decode_cursor(cursor, UUID, LOWEST_ID)
        items = await self._database.run_tx(
            "invitation.page", lambda c: store.page_invitations(c, study.id, after=after, limit=limit + 1)
        )
        return page_of(items, limit, lambda one: str(one.id))

    async def get(self, study: Study, invitation_id: UUID) -> Invitation:
        """One invitation of a study.

        Raises:
            NotFound: the study has none with this id.
        """
        found = await self._database.run_tx(
            "invitation.read", lambda c: store.read_invitation(c, study.id, invitation_id)
        )
        if found is None:
            raise NotFound("there is no such invitation")
        return found

    def state(self, invitation: Invitation) -> InvitationState:
        """Whether the links of an invitation take answers now."""
        return invitation.state_at(self._clock.now())

    async def revoke(self, study: Study, invitation_id: UUID, principal: Principal) -> None:
        """Take no more answers by an invitation; doing it twice is no error. Receipts stay good.

        Raises:
            NotFound: the study has none with this id.
        """

        async def body(connection: Connection) -> bool:
            now = self._clock.now()
            if not await store.revoke_invitation(connection, study.id, invitation_id, now):
                return False
            await journal.record(
                connection,
                now,
                principal.token_id,
                "invitation.revoke",
                invitation_id,
                study=study.definition.slug,
            )
            return True

        if not await self._database.run_tx("invitation.revoke", body):
            raise NotFound("there is no such invitation")

    async def find(self, code: str) -> Link:
        """What a code leads to, whether it was used or not.

        Raises:
            NotFound: the code is unknown, or its invitation has expired or was revoked.
        """
        digest = self._code_digest(code)
        link = await self._database.run_tx("invitation.find", lambda c: store.find_link(c, digest))
        if link is None or self.state(link.invitation) is not InvitationState.VALID:
            raise NotFound(NO_LINK)
        return link

    def receipt(self, code: str, key: str) -> str:
        """The receipt of an answer, the same each time that the same form is sent.

        Args:
            code: Of the link.
            key: Of the form, which no one else knows.
        """
        return _text(self._key.link_digest("receipt", code, key))

    async def answer(self, study: Study, link: Link, code: str, receipt: str, offer: Offer) -> bool:
        """Contribute by a link, and note the receipt, in one transaction.

        Args:
            study: Of the link.
            link: As `find` gave it.
            code: Its code.
            receipt: From now on it stands for the answer.
            offer: The answer; of whom and from whom it is, the link says.

        Returns:
            False where this receipt stood for an answer before: nothing was stored, and whatever became of
            that answer since then stays.

        Raises:
            NotFound: the link has expired or was revoked meanwhile.
            ContributionExists: another answer came by this link, or from this person.
            Conflict: the link has all the answers that it takes.
            BudgetExhausted, EpsilonBelowSpent, StudyClosed: nothing was stored.
        """
        invitation, digest, digest_of_receipt = link.invitation, self._code_digest(code), _digest(receipt)
        subject = link.subject or self._key.link_digest("person", receipt)

        async def claim(connection: Connection) -> bool:
            held = await store.lock_link(connection, invitation.kind, digest)
            if await store.find_ticket(connection, digest_of_receipt) is not None:
                return False
            now = replace(invitation, expires_at=held.expires_at, revoked_at=held.revoked_at)
            if self.state(now) is not InvitationState.VALID:
                raise NotFound(NO_LINK)
            if held.receipt is not None:
                raise ContributionExists(USED)
            if link.subject is not None:
                await store.use_single(connection, digest, digest_of_receipt)
                return True
            if await store.count_answers(connection, invitation.id) >= invitation.most:
                raise Conflict(FULL)
            await store.add_answer(connection, invitation.id, subject, digest_of_receipt)
            return True

        given = replace(offer, subject=subject, sender=invitation.id)
        return await self._contributions.contribute_by_link(study, given, claim)

    async def given(self, receipt: str) -> Ticket:
        """Whose answer a receipt is for.

        Raises:
            NotFound: there is no such receipt.
        """
        digest = _digest(receipt)
        ticket = await self._database.run_tx("invitation.ticket", lambda c: store.find_ticket(c, digest))
        if ticket is None:
            raise NotFound(NO_RECEIPT)
        return ticket

    async def held(self, study: Study, ticket: Ticket) -> Holding:
        """What the ledger holds of an answer.

        Raises:
            NotFound: nothing.
        """
        found = await self._database.run_tx(
            "invitation.held", lambda c: read_holdings(c, study.id, [ticket.subject])
        )
        if ticket.subject not in found:
            raise NotFound(NO_RECEIPT)
        return found[ticket.subject]

    async def change(self, study: Study, ticket: Ticket, offer: Offer) -> None:
        """Put another answer in the place of a live one.

        Raises:
            NotFound: it was withdrawn.
            BudgetExhausted, EpsilonBelowSpent, StudyClosed: nothing was changed.
        """
        await self._contributions.replace(
            study, replace(offer, subject=ticket.subject, sender=ticket.invitation_id)
        )

    def _code_digest(self, code: str) -> bytes:
        return self._key.link_digest("code", code)


def _text(digest: bytes) -> str:
    """128 bits as 22 characters."""
    return base64.urlsafe_b64encode(digest[:CODE_BYTES]).decode().rstrip("=")


def _digest(receipt: str) -> bytes:
    """SHA-256: people withdraw by their receipts also under another key, and 128 bits need no secret one."""
    return hashlib.sha256(receipt.encode()).digest()
