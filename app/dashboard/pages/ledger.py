"""The ledger: releases, charges, export, and the state of the hash chain."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any
from uuid import UUID

from starlette.responses import Response, StreamingResponse

from app.core.errors import InvalidRequest, NotFound
from app.dashboard import forms
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, PageRoute
from app.web import documents_out
from app.web.documents.lists import is_number, is_numbers

ROWS = 50
MOST_STUDIES = 200


async def show_releases(request: PageRequest) -> Response:
    """Releases of all studies, or of one."""
    study, _ = await _filters(request)
    services, cursor = request.api.services, forms.cursor(request, is_number)
    return await _page(
        request, "releases", documents_out.ledger_releases(services, ROWS, cursor, study), study
    )


async def show_charges(request: PageRequest) -> Response:
    """Charges of all releases, of one study or of one release."""
    study, release = await _filters(request)
    services, cursor = request.api.services, forms.cursor(request, is_numbers)
    rows = documents_out.charges(services, ROWS, cursor, study, release)
    return await _page(request, "charges", rows, study, release)


async def _page(
    request: PageRequest, tab: str, rows: Awaitable[object], study: str | None, release: UUID | None = None
) -> Response:
    read, chain, slugs = await asyncio.gather(
        rows, documents_out.chain(request.api.services), _slugs(request)
    )
    shown: dict[str, Any] = {tab: read}
    return render(
        request, "ledger.html", tab=tab, chain=chain, study=study, release=release, slugs=slugs, **shown
    )


async def export(request: PageRequest) -> Response:
    """The charges as CSV."""
    study, release = await _filters(request)
    return _file("ledger", documents_out.charges_csv(request.api.services, study, release))


async def export_list(request: PageRequest) -> Response:
    """Releases, studies or budgets as CSV."""
    services, name = request.api.services, request.path_params["list"]
    match name:
        case "releases":
            study, _ = await _filters(request)
            return _file(name, documents_out.releases_csv(services, study))
        case "studies":
            return _file(name, documents_out.studies_csv(services, request.principal))
        case "budgets":
            return _file(name, documents_out.budgets_csv(services))
    raise NotFound("There is no such file.")


def _file(name: str, lines: AsyncIterator[str]) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return StreamingResponse(lines, media_type="text/csv", headers=headers)


async def _filters(request: PageRequest) -> tuple[str | None, UUID | None]:
    study, release = request.query_params.get("study"), request.query_params.get("release")
    if study:
        study = (await request.study(study)).definition.slug
    try:
        return study or None, UUID(release) if release else None
    except ValueError:
        raise InvalidRequest.field("release", "must be the id of a release") from None


async def _slugs(request: PageRequest) -> list[str]:
    page = await request.api.services.studies.page(MOST_STUDIES, None, request.principal)
    return [study.definition.slug for study in page.items]


ROUTES = (
    PageRoute("/dashboard/ledger", show_releases, roles=ADMIN),
    PageRoute("/dashboard/ledger/charges", show_charges, roles=ADMIN),
    PageRoute("/dashboard/ledger/export", export, roles=ADMIN),
    PageRoute("/dashboard/export/{list}", export_list, roles=ADMIN),
)
