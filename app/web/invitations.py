"""Making invitations, and where their links lead: the same for the API and for pages."""

import io

from app.core.invitation import Invitation
from app.core.study import Study
from app.web.documents.invitation import TAKE_PATH, InvitationIn
from app.web.request import ApiRequest


async def make(request: ApiRequest, study: Study, document: InvitationIn) -> tuple[Invitation, list[str]]:
    """Make an invitation to a study; returns it with its links, which no one sees again.

    Raises:
        InvalidRequest: it has what its kind does not have, or no one knows where people reach the service.
        StudyClosed: the study takes no more answers.
    """
    services = request.api.services
    most, base = document.most, request.public_url
    key = services.subject_key
    made = await services.invitations.create(
        study,
        request.principal,
        kind=document.kind,
        name=document.name,
        most=most,
        expires_at=document.expires_at,
        subjects=None if document.subjects is None else [key.digest(one) for one in document.subjects],
    )
    return made.invitation, [f"{base}{TAKE_PATH}{code}" for code in made.codes]


def open_url(request: ApiRequest, invitation: Invitation) -> str:
    """An open link, again.

    Raises:
        NotFound: the invitation has single links.
        InvalidRequest: no one knows where people reach the service.
    """
    code = request.api.services.invitations.open_code(invitation)
    return f"{request.public_url}{TAKE_PATH}{code}"


def qr_code(url: str) -> str:
    """A link as a QR code: an SVG that has no size of its own."""
    import segno  # longer to load than most requests run, and few draw one

    drawn = io.BytesIO()
    segno.make_qr(url, error="m").save(
        drawn, kind="svg", light="white", title="QR code of the link", xmldecl=False, omitsize=True
    )
    return drawn.getvalue().decode()
