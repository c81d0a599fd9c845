"""Webhooks: make, list, delete."""

from fastapi import APIRouter, Response

from app.api.access import allow
from app.api.routing import StrictRoute
from app.core.principal import Role
from app.web.documents.lists import Limit, PageOut, UuidCursor
from app.web.documents.paths import IdPath
from app.web.documents.webhook import NewWebhookOut, WebhookIn, WebhookOut
from app.web.request import ApiRequest, uuid_of
from app.web.webhooks import check_url

router = APIRouter(prefix="/v1/admin/webhooks", tags=["webhooks"], route_class=StrictRoute)


@router.post("", status_code=201)
@allow(Role.ADMIN)
async def create_webhook(request: ApiRequest, document: WebhookIn) -> NewWebhookOut:
    """Tell an address what happens from now on. Its secret is in this response and nowhere else."""
    await check_url(document.url, private=request.api.webhook_private_addresses)
    webhook, secret = await request.api.services.webhooks.create(
        document.url, document.events, request.principal
    )
    return NewWebhookOut.made_of(webhook, secret=secret)


@router.get("")
@allow(Role.ADMIN)
async def list_webhooks(
    request: ApiRequest, limit: Limit = 50, cursor: UuidCursor | None = None
) -> PageOut[WebhookOut]:
    """All webhooks, without their secrets."""
    return PageOut[WebhookOut].model_validate(await request.api.services.webhooks.page(limit, cursor))


@router.get("/{webhook}")
@allow(Role.ADMIN)
async def read_webhook(request: ApiRequest, webhook: IdPath) -> WebhookOut:
    """One webhook, without its secret."""
    found = await request.api.services.webhooks.get(uuid_of(webhook, "webhook"))
    return WebhookOut.model_validate(found)


@router.delete("/{webhook}", status_code=204, response_class=Response)
@allow(Role.ADMIN)
async def delete_webhook(request: ApiRequest, webhook: IdPath) -> Response:
    """Tell an address nothing any more, nor what it was not told yet."""
    await request.api.services.webhooks.delete(uuid_of(webhook, "webhook"), request.principal)
    return Response(status_code=204)
