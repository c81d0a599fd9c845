"""Publishing answers: from the study's page to an address that everyone may read."""

from starlette.responses import Response

from app.core.errors import ServiceError
from app.core.publication import PublicationState
from app.dashboard.compared import newest_of
from app.dashboard.pages import studies
from app.dashboard.rendering import render, status_of
from app.dashboard.requests import PageRequest
from app.dashboard.routing import BOTH, PageRoute, redirect
from app.web.documents.fields import read
from app.web.documents.publication import PUBLIC_PATH, PublicationChangeIn, PublicationIn, PublicationOut


async def publish(request: PageRequest) -> Response:
    """Publish one answer or several."""
    study = await request.study(request.path_params["study"])
    services = request.api.services
    try:
        document = read(PublicationIn, request.fields)
        made = await services.publications.publish(study, request.principal, document.wish(), document.slug)
    except ServiceError as refusal:
        return await studies.page(request, {}, publishing=refusal)
    return redirect(request, f"/studies/{study.definition.slug}/publications/{made.slug}")


async def show(request: PageRequest) -> Response:
    """A publication: its address, what it shows, and the forms to change and to withdraw it."""
    return await _page(request)


async def change(request: PageRequest) -> Response:
    """Put something else at its address."""
    study = await request.study(request.path_params["study"])
    slug = request.path_params["publication"]
    try:
        document = read(PublicationChangeIn, request.fields)
        await request.api.services.publications.change(study, slug, request.principal, document.wish())
    except ServiceError as refusal:
        return await _page(request, refusal)
    return redirect(request, f"/studies/{study.definition.slug}/publications/{slug}")


async def withdraw(request: PageRequest) -> Response:
    """Take it back."""
    study = await request.study(request.path_params["study"])
    slug = request.path_params["publication"]
    await request.api.services.publications.withdraw(study, slug, request.principal)
    return redirect(request, f"/studies/{study.definition.slug}#publish")


async def _page(request: PageRequest, refusal: ServiceError | None = None) -> Response:
    study = await request.study(request.path_params["study"])
    publications = request.api.services.publications
    found = await publications.get(study, request.path_params["publication"])
    state = publications.state(found)
    base = request.known_url or request.scope.get("root_path", "")
    fields = request.fields or {
        "title": found.title,
        "releases": "\n".join(map(str, found.releases)),
        "frames": "\n".join(found.frames),
        "expires_at": "" if found.expires_at is None else found.expires_at.strftime("%Y-%m-%dT%H:%M"),
    }
    return render(
        request,
        "publication.html",
        status=status_of(refusal),
        study=study.definition,
        one=PublicationOut.of(found, state, request.known_url),
        shown=state is PublicationState.SHOWN,
        withdrawn=state is PublicationState.WITHDRAWN,
        address=f"{base}{PUBLIC_PATH}{found.slug}",
        fields=fields,
        newest=await newest_of(request, study),
        refusal=refusal,
    )


RELEASES = frozenset({"releases"})

PUBLICATIONS = "/dashboard/studies/{study}/publications"

ROUTES = (
    PageRoute(PUBLICATIONS, publish, roles=BOTH, post=True, several=RELEASES),
    PageRoute(f"{PUBLICATIONS}/{{publication}}", show, roles=BOTH),
    PageRoute(f"{PUBLICATIONS}/{{publication}}/change", change, roles=BOTH, post=True, several=RELEASES),
    PageRoute(f"{PUBLICATIONS}/{{publication}}/withdraw", withdraw, roles=BOTH, post=True),
)
