"""The audit trail: who changed what, when and why."""

from starlette.responses import Response

from app.dashboard import forms
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, PageRoute
from app.web import documents_out
from app.web.documents.lists import is_number

ROWS = 50


async def show(request: PageRequest) -> Response:
    """What admins did, all of it, one action, or on one target."""
    given = forms.given(request.query_params, "action", "target")
    page = await documents_out.trail(
        request.api.services, ROWS, forms.cursor(request, is_number), given.get("action"), given.get("target")
    )
    return render(request, "trail.html", trail=page, filters=given)


ROUTES = (PageRoute("/dashboard/audit", show, roles=ADMIN),)
