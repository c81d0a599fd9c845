"""What a browser gets where no page is: a page that says so, not a document for programs."""

from contextlib import suppress
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from app.core.errors import NotFound, Unauthenticated
from app.dashboard.pages.published import PublishedRoute
from app.dashboard.pages.take import TakeRoute
from app.dashboard.requests import PageRequest
from app.dashboard.routing import PageRoute


async def show(request: PageRequest) -> Response:
    """Say that there is no page; who is logged in can go on from it."""
    with suppress(Unauthenticated):
        request.login = await request.find_login(person=False)
    raise NotFound("There is no page at this address. It may be one that a form was sent to.")


async def take_none(request: PageRequest) -> Response:
    """Say that no page takes this form; who is logged in can go on from it."""
    request.refuse_other_sites()
    with suppress(Unauthenticated):
        request.login = await request.find_login(person=False)
    raise NotFound("No page at this address takes a form. Nothing was changed.")


async def missing(request: PageRequest) -> Response:
    """Say to people that their link or address leads nowhere, as where a code is wrong."""
    if request.method == "POST":
        request.refuse_other_sites()
    raise NotFound("There is no page at this address.")


async def go_on(request: PageRequest) -> Response:
    """Go to the page whose address this is but for a slash at the end; none has letters to be escaped."""
    path = request.url.path.rstrip("/")
    if quote(path) != path:
        raise NotFound("There is no page at this address.")
    return RedirectResponse(f"{path}?{request.url.query}" if request.url.query else path)


def _no_form(route: PageRoute) -> PageRoute:
    """Where a form is sent to, and no page takes one: one that an older version had, or a mistyped one.

    Nothing of the form is read.
    """
    route.methods = {"POST"}
    return route


def _below(root: str) -> tuple[str, str]:
    """The address of a root, where no page is, and all below it."""
    return f"/{root}", f"/{root}/{{path:path}}"


ROUTES = (
    *(PageRoute(f"/{root}/{{path:path}}/", go_on) for root in ("dashboard", "take", "p")),
    PageRoute("/dashboard/{path:path}", show),
    _no_form(PageRoute("/dashboard/{path:path}", take_none)),
    *(TakeRoute(path, missing, post=post) for path in _below("take") for post in (False, True)),
    *(PublishedRoute(path, missing) for path in _below("p")),
    *(_no_form(PublishedRoute(path, missing)) for path in _below("p")),
)
"""Of all routes the last ones."""
