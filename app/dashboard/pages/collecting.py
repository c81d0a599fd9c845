"""Collecting answers by links: make them, show an open one with its QR code, revoke them."""

from markupsafe import Markup
from starlette.responses import Response

from app.core.errors import ServiceError
from app.core.invitation import Invitation, InvitationKind
from app.core.study import Study
from app.dashboard import forms
from app.dashboard.pages import studies
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, PageRoute, redirect
from app.services.work import run
from app.web.documents.fields import read
from app.web.documents.invitation import InvitationIn, InvitationOut, urls_csv
from app.web.invitations import make, open_url, qr_code
from app.web.request import uuid_of


async def invite(request: PageRequest) -> Response:
    """Make an open link and show it, or single ones and hand them over as a table, this once."""
    study = await request.study(request.path_params["study"], fresh=True)
    try:
        for name in ("limit", "count"):
            forms.check_meant(request.fields.get(name, ""), name)
        document = read(InvitationIn, request.fields)
        invitation, urls = await make(request, study, document)
    except ServiceError as refusal:
        return await studies.page(request, {}, inviting=refusal)
    slug = study.definition.slug
    if invitation.kind is InvitationKind.OPEN:
        return redirect(request, f"/studies/{slug}/invitations/{invitation.id}")
    headers = {"Content-Disposition": f'attachment; filename="links-{slug}-{invitation.id.hex[:8]}.csv"'}
    return Response(urls_csv(urls, document.subjects), media_type="text/csv", headers=headers)


async def show(request: PageRequest) -> Response:
    """An invitation: of an open one its link and its QR code, to print."""
    study, invitation = await _invited(request)
    url = open_url(request, invitation) if invitation.kind is InvitationKind.OPEN else None
    return render(
        request,
        "invitation.html",
        study=study.definition,
        one=InvitationOut.of(invitation, request.api.services.invitations.state(invitation)),
        url=url,
        embed_origins=request.api.embed_origins,
        # Drawn from an address that is ours.
        qr=None if url is None else Markup(await run(qr_code, url)),  # noqa: S704
    )


async def revoke(request: PageRequest) -> Response:
    """Take no more answers by an invitation."""
    study, invitation = await _invited(request)
    await request.api.services.invitations.revoke(study, invitation.id, request.principal)
    return redirect(request, f"/studies/{study.definition.slug}#collect")


async def _invited(request: PageRequest) -> tuple[Study, Invitation]:
    study = await request.study(request.path_params["study"])
    invitation_id = uuid_of(request.path_params["invitation"], "invitation")
    return study, await request.api.services.invitations.get(study, invitation_id)


ROUTES = (
    PageRoute("/dashboard/studies/{study}/invitations", invite, roles=ADMIN, post=True),
    PageRoute("/dashboard/studies/{study}/invitations/{invitation}", show, roles=ADMIN),
    PageRoute("/dashboard/studies/{study}/invitations/{invitation}/revoke", revoke, roles=ADMIN, post=True),
)
