"""What this is, for people who open the address of the service."""

from starlette.responses import Response

from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import PageRoute


async def show(request: PageRequest) -> Response:
    """The page."""
    return render(request, "front.html")


ROUTES = (PageRoute("/", show),)
