"""Webhooks: who learns what happened, and how that is signed."""

import base64
from collections.abc import Sequence
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.errors import NotFound
from app.core.principal import Principal
from app.core.webhook import Delivery, EventType, Webhook
from app.services.admin.tokens import LOWEST_ID
from app.services.paging import Page, decode_cursor, page_of
from app.services.subjects import SubjectKey
from app.store import journal
from app.store import outbox as store
from app.store.database import Connection, Database

NO_WEBHOOK = "There is no such webhook."


class Webhooks:
    """The webhooks of one installation.

    No secret is stored: that of a webhook is made of its id under the subject key.
    """

    def __init__(self, database: Database, clock: Clock, subject_key: SubjectKey) -> None:
        self._database = database
        self._clock = clock
        self._key = subject_key

    def secret(self, webhook_id: UUID) -> str:
        """What the events of a webhook are signed with, as Standard Webhooks writes it."""
        digest = self._key.link_digest("webhook", str(webhook_id))
        return f"whsec_{base64.b64encode(digest).decode()}"

    async def create(
        self, url: str, events: Sequence[EventType], principal: Principal
    ) -> tuple[Webhook, str]:
        """Tell an address of events from now on; returns its secret, too."""
        webhook = Webhook(
            id=uuid4(),
            url=url,
            events=[kind.value for kind in events],
            token_id=principal.token_id,
            created_at=self._clock.now(),
        )

        async def body(connection: Connection) -> None:
            await store.insert_webhook(connection, webhook)
            await self._note(connection, principal, "webhook.create", webhook)

        await self._database.run_tx("webhook.create", body)
        return webhook, self.secret(webhook.id)

    async def get(self, webhook_id: UUID) -> Webhook:
        """One webhook.

        Raises:
            NotFound: there is none.
        """
        found = await self._database.run_tx("webhook.read", lambda c: store.read_webhook(c, webhook_id))
        if found is None:
            raise NotFound(NO_WEBHOOK)
        return found

    async def page(self, limit: int, cursor: str | None) -> Page[Webhook]:
        """All webhooks."""
        after = decode_cursor(cursor, UUID, LOWEST_ID)
        items = await self._database.run_tx(
            "webhook.page", lambda c: store.page_webhooks(c, after=after, limit=limit + 1)
        )
        return page_of(items, limit, lambda one: str(one.id))

    async def delete(self, webhook_id: UUID, principal: Principal) -> None:
        """Tell an address nothing any more, nor what it was not told yet.

        Raises:
            NotFound: there is no such webhook.
        """
        webhook = await self.get(webhook_id)

        async def body(connection: Connection) -> None:
            if not await store.delete_webhook(connection, webhook_id):
                raise NotFound(NO_WEBHOOK)
            await self._note(connection, principal, "webhook.delete", webhook)

        await self._database.run_tx("webhook.delete", body)

    async def claim(self, limit: int) -> list[Delivery]:
        """Events that are due, each for one process; one that is not settled is due again."""
        return await self._database.run_tx("webhook.claim", lambda c: store.claim(c, limit))

    async def settle(self, event_id: UUID, *, taken: bool) -> None:
        """Note whether an event was taken."""
        await self._database.run_tx("webhook.settle", lambda c: store.settle(c, event_id, taken=taken))

    async def _note(
        self, connection: Connection, principal: Principal, action: str, webhook: Webhook
    ) -> None:
        await journal.record(
            connection,
            self._clock.now(),
            principal.token_id,
            action,
            webhook.id,
            url=webhook.url,
            events=list(webhook.events),
        )
