"""Tokens and analysts: make, limit, revoke."""

from collections.abc import Iterable
from uuid import UUID

from starlette.responses import Response

from app.core.errors import InvalidRequest, NotFound
from app.core.quota import FOR_EVER, Quota
from app.dashboard import forms
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, PageRoute, redirect
from app.web.documents.fields import read
from app.web.documents.lists import is_uuid
from app.web.documents.token import QuotaIn, TokenIn, TokenOut
from app.web.new_token import new_token
from app.web.request import uuid_of

ROWS = 50
STATES = ("valid", "expired", "revoked")
SORTS = {"name": "name", "owner": "who made them", "used": "used last"}
"""Orders of the list beside that of the newest ones first."""

PERIODS = (("an hour", 3_600), ("a day", 86_400), ("a week", 604_800), ("30 days", 2_592_000))
"""Lengths of a quota's period that the form offers [s]; over HTTP it may be any."""


async def create(request: PageRequest) -> Response:
    """Make a token, and show its secret this once."""
    # Written, or ticked in the list.
    slugs = dict.fromkeys(request.fields.get("studies", "").replace(",", " ").split())
    roles = request.fields.get("role", "").split()
    try:
        given = {name: text for name, text in request.fields.items() if name != "role"}
        document = read(TokenIn, given, roles=roles or None, studies=list(slugs) or None)
        await _refuse_unknown(request, document.studies or ())
        made = await new_token(request.api.services, document, request.principal)
    except InvalidRequest as refusal:
        return await show(request, refusal=refusal)
    return await show(request, made={"name": made.name, "secret": made.token})


async def _refuse_unknown(request: PageRequest, slugs: Iterable[str]) -> None:
    for slug in slugs:
        try:
            await request.api.services.studies.get(slug)
        except NotFound:
            raise InvalidRequest.field("studies", f"there is no study {slug}") from None


async def rotate(request: PageRequest) -> Response:
    """Give a token another secret, shown this once; the old one is refused from now on."""
    record, secret = await request.api.services.tokens.rotate(
        _token_id(request), 0, str(request.principal.token_id)
    )
    return await show(request, made={"name": record.name, "secret": secret})


async def revoke(request: PageRequest) -> Response:
    """Refuse a token from now on; its logins end with it."""
    await request.api.services.tokens.revoke(_token_id(request), str(request.principal.token_id))
    return redirect(request, "/tokens")


async def limit(request: PageRequest) -> Response:
    """Limit what an analyst's token may use of each study; an empty share lifts the quota."""
    quota = None
    try:
        if request.fields.get("share"):
            quota = Quota(**dict(read(QuotaIn, request.fields)))
        await request.api.services.tokens.set_quota(
            _token_id(request), quota, str(request.principal.token_id)
        )
    except InvalidRequest as refusal:
        return await show(request, refusal=refusal)
    return redirect(request, "/tokens")


def _token_id(request: PageRequest) -> UUID:
    return uuid_of(request.path_params["token"], "token")


async def show(
    request: PageRequest, *, refusal: InvalidRequest | None = None, made: dict[str, str] | None = None
) -> Response:
    """All tokens, without their secrets; with that of one that was just made, or why a form was refused."""
    services = request.api.services
    filters = forms.given(request.query_params, "search", "state", "sort")
    wanted = forms.wanted(request, STATES, SORTS)
    page = await services.tokens.listing(ROWS, forms.cursor(request, is_uuid), wanted)
    studies = await services.studies.page(ROWS, None, request.principal)
    return render(
        request,
        "tokens.html",
        status=200 if refusal is None else 422,
        tokens=[
            {
                "token": TokenOut.model_validate(line.token),
                "state": line.state,
                "owner": "the identity provider" if line.token.by_provider else line.owner or "-",
            }
            for line in page.items
        ],
        periods=PERIODS,
        for_ever=FOR_EVER,
        studies=studies.items,
        more_studies=studies.next_cursor is not None,
        next_cursor=page.next_cursor,
        refusal=refusal,
        made=made,
        form=request.fields if refusal is not None else {},
        filters=filters,
        states=[(state, state) for state in STATES],
        sorts=SORTS.items(),
    )


ROUTES = (
    PageRoute("/dashboard/tokens", show, roles=ADMIN),
    PageRoute("/dashboard/tokens", create, roles=ADMIN, post=True, several=frozenset({"role", "studies"})),
    PageRoute("/dashboard/tokens/{token}/revoke", revoke, roles=ADMIN, post=True),
    PageRoute("/dashboard/tokens/{token}/rotate", rotate, roles=ADMIN, post=True),
    PageRoute("/dashboard/tokens/{token}/quota", limit, roles=ADMIN, post=True),
)
