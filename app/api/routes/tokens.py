"""Tokens: make, list, revoke."""

from uuid import UUID

from fastapi import APIRouter, Response

from app.api.access import allow
from app.api.requests import ApiRequest
from app.api.routing import StrictRoute
from app.api.wire.lists import Limit, PageOut, UuidCursor
from app.api.wire.paths import IdPath
from app.api.wire.token import NewTokenOut, TokenIn, TokenOut
from app.core.errors import NotFound
from app.core.principal import Role

router = APIRouter(prefix="/v1/admin/tokens", tags=["tokens"], route_class=StrictRoute)


@router.post("", status_code=201)
@allow(Role.ADMIN)
async def create_token(request: ApiRequest, response: Response, document: TokenIn) -> NewTokenOut:
    """Make a token. Its secret is in this response and nowhere else."""
    services = request.api.services
    record, secret = await services.tokens.create(
        name=document.name,
        role=document.role,
        studies=None if document.studies is None else frozenset(document.studies),
        subject=None if document.subject is None else services.subject_key.digest(document.subject),
        expires_at=document.expires_at,
        actor=str(request.principal.token_id),
    )
    response.headers["Cache-Control"] = "no-store"
    shown = TokenOut.model_validate(record, from_attributes=True)
    return NewTokenOut(**dict(shown), token=secret)


@router.get("")
@allow(Role.ADMIN)
async def list_tokens(
    request: ApiRequest, limit: Limit = 50, cursor: UuidCursor | None = None
) -> PageOut[TokenOut]:
    """All tokens, without their secrets."""
    page = await request.api.services.tokens.page(limit, cursor)
    items = [TokenOut.model_validate(record, from_attributes=True) for record in page.items]
    return PageOut(items=items, next_cursor=page.next_cursor)


@router.delete("/{token}", status_code=204, response_class=Response)
@allow(Role.ADMIN)
async def revoke_token(request: ApiRequest, token: IdPath) -> Response:
    """Refuse a token from now on. Doing it again changes nothing."""
    try:
        token_id = UUID(token)
    except ValueError:
        raise NotFound("There is no such token.") from None
    await request.api.services.tokens.revoke(token_id, str(request.principal.token_id))
    return Response(status_code=204)
