"""What everyone may read: a publication as a page, in a frame, as JSON and as CSV. No token, no script."""

from collections.abc import Mapping
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import Gone, NotFound, ServiceError
from app.core.publication import Publication
from app.dashboard import forms, label_plots, shape_plots
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import NO_FRAMES, POLICY, PageRoute
from app.estimators.confidence import LEVEL, LEVELS
from app.formats.strict_json import decode_foreign
from app.services.work import run
from app.web.documents.publication import KEYS_PATH, PUBLIC_PATH
from app.web.documents.release import ReleaseOut
from app.web.documents.shape import (
    Published,
    published_of,
)
from app.web.problems import kind_of
from app.web.rate import RateLimited
from app.web.request import JSON, stored
from app.web.tables import CSV, rows_of, written

ROWS = 50
"""Labels, bins, choices or coordinates of an answer on the page; the files have all of them."""

LABELS = 20
"""Labels on the page, of an answer that has several numbers for each."""

HTML = "text/html"

FRAMES = "dither.frames"
"""Key of the ASGI scope: the origins whose pages may frame the response."""

COLUMNS = ("release", "study", "statistic", "measure", "of", "estimate", "lower", "upper", "level", "people")

ONE_NUMBER = ReleaseOut | label_plots.OfOneNumber
"""Answers of one number, also for each label."""

Model = TypeVar("Model", bound=BaseModel)

READERS = UUID(int=0)
"""Whose places among heavy work readers have: no token has this id."""

SAYS: Mapping[type[ServiceError], tuple[str, str]] = {
    Gone: (
        "This is no longer published",
        "It has expired, or those who published it took it back.",
    ),
    NotFound: ("There is nothing here", "The address is not complete, or nothing was published at it."),
    RateLimited: ("Too many pages at once", "Wait a minute, and load the page again."),
}


class PublishedRoute(PageRoute):
    """A page for everyone: no cookie, and no more a minute than one address reads."""

    async def _admit(self, call: PageRequest) -> None:
        call.refuse_malformed_address()
        call.single_query()
        call.api.visitors.take_reader(call.client.host if call.client else "")

    async def _handle(self, request: Request) -> Response:
        response = await super()._handle(request)
        frames = request.scope.get(FRAMES)
        if frames:
            allowed = f"frame-ancestors {' '.join(frames)}"
            response.headers["Content-Security-Policy"] = POLICY.replace(NO_FRAMES, allowed)
        return response

    async def _answer(self, call: PageRequest) -> Response:
        """The page; all readers together have the places of one token among heavy work."""
        async with call.api.work.turn(READERS, None):
            return await super()._answer(call)

    def _refusal(self, call: PageRequest, error: ServiceError) -> Response:
        title, advice = next(
            (SAYS[kind] for kind in type(error).__mro__ if kind in SAYS), (kind_of(error).title, error.detail)
        )
        status = kind_of(error).status
        return render(call, "published_base.html", status=status, title=title, advice=advice)


async def show(request: PageRequest) -> Response:
    """A publication: a page for people, and for programs JSON or CSV, by the address or by `Accept`."""
    level = _level(request)
    slug, kind = request.path_params["slug"], request.wanted(HTML, JSON, CSV)
    for ending, named in ((".json", JSON), (".csv", CSV)):
        if slug.endswith(ending):
            slug, kind = slug.removesuffix(ending), named
    publication, file = await request.api.services.publications.shown(slug, level)
    if kind == JSON:
        response = stored(file)
    elif kind == CSV:
        response = Response(await run(table, file), media_type=CSV)
        response.headers["Content-Disposition"] = f'inline; filename="{slug}.csv"'
    else:
        response = await _page(request, publication, file, level, framed=False)
    response.headers["Vary"] = "Accept"
    return response


async def embed(request: PageRequest) -> Response:
    """The answers of a publication alone, for the frame of a page that may show it."""
    level = _level(request)
    publication, file = await request.api.services.publications.shown(request.path_params["slug"], level)
    request.scope[FRAMES] = tuple(publication.frames)
    return await _page(request, publication, file, level, framed=True)


def _level(request: PageRequest) -> float:
    return float(forms.chosen(request, "level", map(str, LEVELS)) or LEVEL)


async def _page(
    request: PageRequest, publication: Publication, file: bytes, level: float, *, framed: bool
) -> Response:
    document, answers = await run(_read, file)
    base = request.known_url or request.scope.get("root_path", "")

    def drawn() -> dict[str, Any]:
        return {"answers": [(_shortened(one), _plots(_shortened(one))) for one in answers]}

    return render(
        request,
        "published.html",
        publication=publication,
        said=document,
        address=f"{base}{PUBLIC_PATH}{publication.slug}",
        keys=f"{base}{KEYS_PATH}",
        framed=framed,
        level=level,
        levels=LEVELS,
        at_level="" if level == LEVEL else f"?level={level}",
        rows=ROWS,
        cut=any(_shortened(one) is not one for one in answers),
        drawn=drawn,
    )


def _read(file: bytes) -> tuple[dict[str, Any], list[Published]]:
    document = decode_foreign(file, len(file))
    return document, [published_of(one["answer"]) for one in document["answers"]]


def _shortened(answer: Model) -> Model:
    """An answer whose lists, and those of its labels, have at most `ROWS` entries; itself where they have."""
    cut: dict[str, Any] = {}
    for name in ("bins", "cumulative", "choices", "cells", "coordinates"):
        found = getattr(answer, name, None) or ()
        if len(found) > ROWS:
            cut[name] = found[:ROWS]
    groups = getattr(answer, "groups", None) or ()
    few = [_shortened(one) for one in groups[: ROWS if isinstance(answer, ONE_NUMBER) else LABELS]]
    if len(few) < len(groups) or any(one is not own for one, own in zip(few, groups, strict=False)):
        cut["groups"] = few
    return answer.model_copy(update=cut) if cut else answer


def _plots(answer: Published) -> dict[str, Any]:
    """The plots of an answer, for all people and for each label."""
    drawn = shape_plots.drawn(answer)
    if isinstance(answer, ONE_NUMBER) and answer.groups:
        drawn["labels_plot"] = label_plots.labels(answer)
    return {"labels_plot": None, **drawn}


def table(file: bytes) -> str:
    """The answers of a file as CSV: a row for each number that has an interval."""
    answers = decode_foreign(file, len(file))["answers"]
    return written(COLUMNS, (row for one in answers for row in rows_of(one["answer"])))


ROUTES = (
    PublishedRoute(f"{PUBLIC_PATH}{{slug}}", show),
    PublishedRoute(f"{PUBLIC_PATH}{{slug}}/embed", embed),
)
