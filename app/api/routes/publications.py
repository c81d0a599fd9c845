"""Publications: answers that everyone may read, and the keys that their files are signed by."""

from fastapi import APIRouter, Response

from app.api.access import allow, public
from app.api.routing import CONFLICTS, StrictRoute
from app.core.principal import Role
from app.core.publication import Publication
from app.web.documents.lists import Limit, PageOut, SlugCursor
from app.web.documents.paths import PublicationPath, StudyPath
from app.web.documents.publication import (
    KEYS_PATH,
    KeyOut,
    KeysOut,
    PublicationChangeIn,
    PublicationIn,
    PublicationOut,
)
from app.web.request import ApiRequest

router = APIRouter(tags=["publications"], route_class=StrictRoute)

PATH = "/v1/studies/{study}/publications"
ONE = f"{PATH}/{{publication}}"


@router.post(PATH, status_code=201, openapi_extra={CONFLICTS: True})
@allow(Role.ANALYSE, Role.ADMIN)
async def publish(request: ApiRequest, study: StudyPath, document: PublicationIn) -> PublicationOut:
    """Publish answers of a study: from now on everyone can read them at the address that comes back.

    Nothing is charged: these answers were paid when they were made. What analysts cannot see is not in it.
    """
    found = await request.study(study)
    publications = request.api.services.publications
    async with request.work():
        made = await publications.publish(found, request.principal, document.wish(), document.slug)
    return _out(request, made)


@router.get(PATH)
@allow(Role.ANALYSE, Role.ADMIN)
async def list_publications(
    request: ApiRequest, study: StudyPath, limit: Limit = 50, cursor: SlugCursor | None = None
) -> PageOut[PublicationOut]:
    """The publications of a study, by their slugs."""
    found = await request.study(study)
    page = await request.api.services.publications.page(found, limit, cursor)
    items = [_out(request, one) for one in page.items]
    return PageOut[PublicationOut](items=items, next_cursor=page.next_cursor)


@router.get(ONE)
@allow(Role.ANALYSE, Role.ADMIN)
async def read_publication(
    request: ApiRequest, study: StudyPath, publication: PublicationPath
) -> PublicationOut:
    """One publication."""
    found = await request.study(study)
    return _out(request, await request.api.services.publications.get(found, publication))


@router.put(ONE, openapi_extra={CONFLICTS: True})
@allow(Role.ANALYSE, Role.ADMIN)
async def change_publication(
    request: ApiRequest, study: StudyPath, publication: PublicationPath, document: PublicationChangeIn
) -> PublicationOut:
    """Put something else at the address of a publication: other answers, another title, another end."""
    found = await request.study(study)
    publications = request.api.services.publications
    async with request.work():
        changed = await publications.change(found, publication, request.principal, document.wish())
    return _out(request, changed)


@router.delete(ONE, status_code=204, response_class=Response)
@allow(Role.ANALYSE, Role.ADMIN)
async def withdraw_publication(
    request: ApiRequest, study: StudyPath, publication: PublicationPath
) -> Response:
    """Take a publication back: its address answers 410, for good. Copies that people made stay with them."""
    found = await request.study(study)
    await request.api.services.publications.withdraw(found, publication, request.principal)
    return Response(status_code=204)


@router.get(KEYS_PATH)
@public
async def read_keys(request: ApiRequest) -> KeysOut:
    """The public keys that hold what is published here, former ones too: for `dither verify`."""
    return KeysOut(keys=[KeyOut.of(one) for one in await request.api.services.publications.keys()])


def _out(request: ApiRequest, one: Publication) -> PublicationOut:
    return PublicationOut.of(one, request.api.services.publications.state(one), request.known_url)
