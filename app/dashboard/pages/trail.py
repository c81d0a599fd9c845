"""The audit trail: who changed what, when and why."""

from starlette.responses import Response

from app.core.records import Wanted
from app.dashboard import forms
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, PageRoute
from app.web import documents_out
from app.web.documents.lists import is_number

ROWS = 50
MOST_TARGETS = 200
"""Studies and tokens to choose from, each."""


async def show(request: PageRequest) -> Response:
    """What admins did, all of it, one action, or on one target."""
    given = forms.given(request.query_params, "action", "target")
    page = await documents_out.trail(
        request.api.services, ROWS, forms.cursor(request, is_number), given.get("action"), given.get("target")
    )
    services = request.api.services
    studies = await services.studies.page(MOST_TARGETS, None, request.principal)
    tokens = await services.tokens.listing(MOST_TARGETS, None, Wanted())
    targets = [(one.definition.slug, one.definition.title) for one in studies.items]
    targets += [(str(line.token.id), f"token {line.token.name}") for line in tokens.items]
    return render(request, "trail.html", trail=page, filters=given, targets=targets)


ROUTES = (PageRoute("/dashboard/audit", show, roles=ADMIN),)
