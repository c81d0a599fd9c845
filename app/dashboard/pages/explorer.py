"""The API explorer: Swagger UI, from a package and not from elsewhere, on the document of this service."""

from functools import cache
from importlib.resources import files

from starlette.responses import Response

from app.dashboard.pages.assets import file_page
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import POLICY, PageRoute

FILES = ("swagger-ui.css", "swagger-ui-bundle.js")
"""What the page needs of the package."""

EXPLORER_POLICY = POLICY.replace("img-src 'self'", "img-src 'self' data:")
"""Swagger UI's style sheet holds its arrows as data."""


async def show(request: PageRequest) -> Response:
    """The page."""
    return render(request, "explorer.html")


@cache
def _content(name: str) -> bytes | None:
    """One file of Swagger UI."""
    if name not in FILES:
        return None
    return files("fastapi_swagger").joinpath("resources", name).read_bytes()


ROUTES = (
    PageRoute("/docs", show, policy=EXPLORER_POLICY),
    PageRoute("/docs/{name}", file_page(_content)),
)
