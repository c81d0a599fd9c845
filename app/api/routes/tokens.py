"""Tokens: make, list, limit, rotate, revoke."""

from fastapi import APIRouter, Response

from app.api.access import allow
from app.api.routing import CONFLICTS, StrictRoute
from app.core.principal import Role
from app.core.quota import Quota
from app.web.documents.lists import Limit, PageOut, SlugCursor, UuidCursor
from app.web.documents.paths import IdPath
from app.web.documents.token import NewTokenOut, QuotaIn, QuotaOut, RotateIn, TokenIn, TokenOut, UsageOut
from app.web.new_token import new_token
from app.web.request import ApiRequest, uuid_of

router = APIRouter(prefix="/v1/admin/tokens", tags=["tokens"], route_class=StrictRoute)


@router.post("", status_code=201)
@allow(Role.ADMIN)
async def create_token(request: ApiRequest, document: TokenIn) -> NewTokenOut:
    """Make a token. Its secret is in this response and nowhere else."""
    return await new_token(request.api.services, document, request.principal)


@router.get("")
@allow(Role.ADMIN)
async def list_tokens(
    request: ApiRequest, limit: Limit = 50, cursor: UuidCursor | None = None
) -> PageOut[TokenOut]:
    """All tokens, without their secrets."""
    page = await request.api.services.tokens.page(limit, cursor)
    return PageOut[TokenOut].model_validate(page)


@router.get("/{token}")
@allow(Role.ADMIN)
async def read_token(request: ApiRequest, token: IdPath) -> TokenOut:
    """One token, without its secret."""
    record = await request.api.services.tokens.get(uuid_of(token, "token"))
    return TokenOut.model_validate(record)


@router.delete("/{token}", status_code=204, response_class=Response)
@allow(Role.ADMIN)
async def revoke_token(request: ApiRequest, token: IdPath) -> Response:
    """Refuse a token from now on. Doing it again changes nothing."""
    await request.api.services.tokens.revoke(uuid_of(token, "token"), str(request.principal.token_id))
    return Response(status_code=204)


@router.post("/{token}/rotate", openapi_extra={CONFLICTS: True})
@allow(Role.ADMIN)
async def rotate_token(request: ApiRequest, token: IdPath, document: RotateIn) -> NewTokenOut:
    """Give a token another secret. Its id, limits and quota stay."""
    record, secret = await request.api.services.tokens.rotate(
        uuid_of(token, "token"), document.grace_seconds, str(request.principal.token_id)
    )
    return NewTokenOut.made_of(record, token=secret)


@router.put("/{token}/quota")
@allow(Role.ADMIN)
async def set_quota(request: ApiRequest, token: IdPath, document: QuotaIn) -> QuotaOut:
    """Limit what an analyst's token may use of each study. What it used already counts."""
    quota = Quota(**dict(document))
    await request.api.services.tokens.set_quota(
        uuid_of(token, "token"), quota, str(request.principal.token_id)
    )
    return QuotaOut.model_validate(quota)


@router.delete("/{token}/quota", status_code=204, response_class=Response)
@allow(Role.ADMIN)
async def lift_quota(request: ApiRequest, token: IdPath) -> Response:
    """Lift a token's quota. Doing it again changes nothing."""
    await request.api.services.tokens.set_quota(
        uuid_of(token, "token"), None, str(request.principal.token_id)
    )
    return Response(status_code=204)


@router.get("/{token}/usage")
@allow(Role.ADMIN)
async def list_usage(
    request: ApiRequest, token: IdPath, limit: Limit = 50, cursor: SlugCursor | None = None
) -> PageOut[UsageOut]:
    """What a token used of each study, in its quota's period or, without a quota, ever."""
    page = await request.api.services.tokens.usage(uuid_of(token, "token"), limit, cursor)
    return PageOut[UsageOut].model_validate(page)
