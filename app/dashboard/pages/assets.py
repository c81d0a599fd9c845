"""Style sheets, scripts and pictures; and how a page serves files."""

import hashlib
from collections.abc import Callable
from functools import cache

from starlette.responses import Response

from app.core.errors import NotFound
from app.dashboard.rendering import HERE
from app.dashboard.requests import PageRequest
from app.dashboard.routing import Page, PageRoute

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


HOUR = "public, max-age=3600"
FOREVER = "public, max-age=31536000, immutable"


def file_page(read: Callable[[str], bytes | None], cached: str = HOUR) -> Page:
    """The page that serves what `read` returns for what the path varies; None where there is no such file."""

    async def show(request: PageRequest) -> Response:
        name = "/".join(request.path_params.values())
        content = read(name)
        if content is None:
            raise NotFound("There is no such file.")
        media_type = TYPES[name[name.rindex(".") :]]
        return Response(content, media_type=media_type, headers={"Cache-Control": cached})

    return show


@cache
def files() -> dict[str, bytes]:
    """Every file by its name."""
    return {path.name: path.read_bytes() for path in (HERE / "static").iterdir() if path.suffix in TYPES}


@cache
def device_files() -> dict[str, bytes]:
    """The modules that add noise on a person's own device, built from `client/js`, by their addresses.

    An address holds the digest of all of them, so that no browser ever mixes two versions.
    """
    folder = HERE / "static" / "device"
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.js"))}
    digest = hashlib.sha256(b"\0".join(part for name in found for part in (name.encode(), found[name])))
    return {f"{digest.hexdigest()[:32]}/{name}": content for name, content in found.items()}


def device_script() -> str:
    """The address of the module that a page loads, below those of all static files."""
    return "device/" + next(name for name in device_files() if name.endswith("/page/answer.js"))


ROUTES = (
    PageRoute(
        "/dashboard/static/device/{version}/{part}/{module}",
        file_page(lambda name: device_files().get(name), FOREVER),
    ),
    PageRoute("/dashboard/static/{name}", file_page(lambda name: files().get(name))),
)
