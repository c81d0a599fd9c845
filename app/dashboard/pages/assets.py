"""The style sheet, the script and the picture."""

from functools import cache

from starlette.responses import Response

from app.core.errors import NotFound
from app.dashboard.rendering import HERE
from app.dashboard.requests import PageRequest
from app.dashboard.routing import PageRoute

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@cache
def files() -> dict[str, bytes]:
    """Every file by its name."""
    return {path.name: path.read_bytes() for path in (HERE / "static").iterdir() if path.suffix in TYPES}


async def show(request: PageRequest) -> Response:
    """One file."""
    name = request.path_params["name"]
    content = files().get(name)
    if content is None:
        raise NotFound("There is no such file.")
    media_type = TYPES[name[name.rindex(".") :]]
    return Response(content, media_type=media_type, headers={"Cache-Control": "public, max-age=3600"})


ROUTES = (PageRoute("/dashboard/static/{name}", show, cached=True),)
