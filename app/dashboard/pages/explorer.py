"""The API explorer: Swagger UI, from a package and not from elsewhere, on the document of this service."""

from functools import cache
from importlib.resources import files

from starlette.responses import Response

from app.core.errors import NotFound
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import POLICY, PageRoute

TYPES = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
"""What the page needs of the package."""

EXPLORER_POLICY = POLICY.replace("img-src 'self'", "img-src 'self' data:")
"""Swagger UI's style sheet holds its arrows as data."""


async def show(request: PageRequest) -> Response:
    """The page."""
    return render(request, "explorer.html")


@cache
def _content(name: str) -> bytes:
    return files("fastapi_swagger").joinpath("resources", name).read_bytes()


async def show_file(request: PageRequest) -> Response:
    """One file of Swagger UI."""
    name = request.path_params["name"]
    if name not in TYPES:
        raise NotFound("There is no such file.")
    headers = {"Cache-Control": "public, max-age=3600"}
    return Response(_content(name), media_type=TYPES[name], headers=headers)


ROUTES = (
    PageRoute("/docs", show, policy=EXPLORER_POLICY),
    PageRoute("/docs/{name}", show_file, cached=True),
)
