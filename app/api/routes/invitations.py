"""Invitations: links by which people answer on a page of the service."""

from fastapi import APIRouter, Response

from app.api.access import allow
from app.api.routing import CONFLICTS, StrictRoute
from app.core.principal import Role
from app.services.work import run
from app.web.documents.invitation import (
    InvitationIn,
    InvitationMadeOut,
    InvitationOut,
    urls_csv,
)
from app.web.documents.lists import Limit, PageOut, UuidCursor
from app.web.documents.paths import IdPath, StudyPath
from app.web.invitations import make, open_url, qr_code
from app.web.request import ApiRequest, uuid_of
from app.web.tables import CSV

SVG = "image/svg+xml"

router = APIRouter(prefix="/v1/studies/{study}/invitations", tags=["invitations"], route_class=StrictRoute)


@router.post(
    "",
    status_code=201,
    response_model=InvitationMadeOut,
    responses={201: {"content": {CSV: {"schema": {"type": "string"}}}}},
    openapi_extra={CONFLICTS: True},
)
@allow(Role.ADMIN)
async def create_invitation(
    request: ApiRequest, study: StudyPath, document: InvitationIn
) -> InvitationMadeOut | Response:
    """Make an open link, or a link for each person. The links are in this response and nowhere else.

    With `Accept: text/csv` they are a table. What an open link promises holds for each answer, not for each
    person: one who opens it twice can answer twice.
    """
    invitation, urls = await make(request, await request.study(study, fresh=True), document)
    if request.wanted(CSV):
        return Response(urls_csv(urls, document.subjects), status_code=201, media_type=CSV)
    return InvitationMadeOut(id=invitation.id, urls=urls)


@router.get("")
@allow(Role.ADMIN)
async def list_invitations(
    request: ApiRequest, study: StudyPath, limit: Limit = 50, cursor: UuidCursor | None = None
) -> PageOut[InvitationOut]:
    """The invitations of a study, without their links."""
    found = await request.study(study)
    invitations = request.api.services.invitations
    page = await invitations.page(found, limit, cursor)
    items = [InvitationOut.of(one, invitations.state(one)) for one in page.items]
    return PageOut[InvitationOut](items=items, next_cursor=page.next_cursor)


@router.get("/{invitation}")
@allow(Role.ADMIN)
async def read_invitation(request: ApiRequest, study: StudyPath, invitation: IdPath) -> InvitationOut:
    """One invitation, without its links."""
    found = await request.study(study)
    invitations = request.api.services.invitations
    record = await invitations.get(found, uuid_of(invitation, "invitation"))
    return InvitationOut.of(record, invitations.state(record))


@router.get(
    "/{invitation}/qr",
    response_class=Response,
    responses={
        200: {"description": "The QR code of an open link", "content": {SVG: {"schema": {"type": "string"}}}}
    },
)
@allow(Role.ADMIN)
async def draw_invitation(request: ApiRequest, study: StudyPath, invitation: IdPath) -> Response:
    """The QR code of an open link, as SVG. Single links are shown once, when they are made."""
    found = await request.study(study)
    record = await request.api.services.invitations.get(found, uuid_of(invitation, "invitation"))
    return Response(await run(qr_code, open_url(request, record)), media_type=SVG)


@router.delete("/{invitation}", status_code=204, response_class=Response)
@allow(Role.ADMIN)
async def revoke_invitation(request: ApiRequest, study: StudyPath, invitation: IdPath) -> Response:
    """Take no more answers by an invitation. What came by it stays; doing it again changes nothing."""
    found = await request.study(study)
    await request.api.services.invitations.revoke(found, uuid_of(invitation, "invitation"), request.principal)
    return Response(status_code=204)
