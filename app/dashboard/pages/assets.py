"""The style sheet, the script and the picture; and how a page serves files."""

from collections.abc import Callable
from functools import cache

from starlette.responses import Response

from app.core.errors import NotFound
from app.dashboard.rendering import HERE
from app.dashboard.requests import PageRequest
from app.dashboard.routing import Page, PageRoute

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def file_page(read: Callable[[str], bytes | None]) -> Page:
    """The page that serves what `read` returns for the name in the path; None where there is no such file."""

    async def show(request: PageRequest) -> Response:
        name = request.path_params["name"]
        content = read(name)
        if content is None:
            raise NotFound("There is no such file.")
        media_type = TYPES[name[name.rindex(".") :]]
        return Response(content, media_type=media_type, headers={"Cache-Control": "public, max-age=3600"})

    return show


@cache
def files() -> dict[str, bytes]:
    """Every file by its name."""
    return {path.name: path.read_bytes() for path in (HERE / "static").iterdir() if path.suffix in TYPES}


ROUTES = (PageRoute("/dashboard/static/{name}", file_page(lambda name: files().get(name))),)
