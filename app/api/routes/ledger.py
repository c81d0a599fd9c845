"""The ledger, for admins."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import StreamingResponse

from app.api.access import allow
from app.api.routing import StrictRoute
from app.core.principal import Role
from app.web import documents_out
from app.web.documents.figures import LedgerReleaseOut
from app.web.documents.ledger import LedgerLineOut, TrailLineOut
from app.web.documents.lists import Limit, NumberCursor, NumbersCursor, PageOut
from app.web.documents.paths import OneStudy
from app.web.request import ApiRequest

router = APIRouter(prefix="/v1/admin", tags=["ledger"], route_class=StrictRoute)

OneRelease = Annotated[UUID | None, Query(description="One release.")]

CSV = "text/csv"


@router.get("/ledger")
@allow(Role.ADMIN)
async def list_charges(
    request: ApiRequest,
    limit: Limit = 50,
    cursor: NumbersCursor | None = None,
    study: OneStudy = None,
    release: OneRelease = None,
) -> PageOut[LedgerLineOut]:
    """Charges, newest first: what each release cost each member of each cohort."""
    return await documents_out.charges(request.api.services, limit, cursor, study, release)


@router.get(
    "/ledger/export",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Every charge, with a header line",
            "content": {CSV: {"schema": {"type": "string"}}},
        }
    },
)
@allow(Role.ADMIN)
async def export_charges(
    request: ApiRequest, study: OneStudy = None, release: OneRelease = None
) -> StreamingResponse:
    """All charges as CSV, newest first, written while they are read."""
    return StreamingResponse(
        documents_out.charges_csv(request.api.services, study, release),
        media_type=CSV,
        headers={"Content-Disposition": 'attachment; filename="ledger.csv"'},
    )


@router.get("/audit")
@allow(Role.ADMIN)
async def list_trail(
    request: ApiRequest,
    limit: Limit = 50,
    cursor: NumberCursor | None = None,
    action: Annotated[str | None, Query(max_length=100, description="One action, as `budget.set`.")] = None,
    target: Annotated[str | None, Query(max_length=100, description="A slug, an id or a digest.")] = None,
) -> PageOut[TrailLineOut]:
    """The audit trail, newest first: who changed what, when and why."""
    return await documents_out.trail(request.api.services, limit, cursor, action, target)


@router.get("/releases")
@allow(Role.ADMIN)
async def list_all_releases(
    request: ApiRequest, limit: Limit = 50, cursor: NumberCursor | None = None, study: OneStudy = None
) -> PageOut[LedgerReleaseOut]:
    """Releases of all studies, newest first, with their place in the hash chain."""
    return await documents_out.ledger_releases(request.api.services, limit, cursor, study)
