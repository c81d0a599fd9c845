"""Whether the service lives, whether it can answer, how busy it is, and what it says of itself."""

from contextlib import suppress
from typing import Any, Literal

from fastapi import APIRouter
from starlette.responses import Response

from app.api.access import public
from app.api.openapi import problem_response
from app.api.routing import StrictRoute
from app.core.errors import Unavailable
from app.core.principal import Role
from app.web import reference
from app.web.authentication import identify
from app.web.documents.types import WireOut
from app.web.metrics import CONTENT_TYPE
from app.web.request import ApiRequest

OBSERVERS = frozenset({Role.OBSERVE, Role.ADMIN})
"""Roles that see every metric, with a token that is not limited to studies."""

TEXT = {"schema": {"type": "string"}}


class HealthOut(WireOut):
    """How the service is."""

    status: Literal["live", "ready"]


router = APIRouter(tags=["operations"], route_class=StrictRoute)


@router.get("/health/live")
@public
async def live(request: ApiRequest) -> HealthOut:
    """The process runs."""
    return HealthOut(status="live")


@router.get("/health/ready")
@public
async def ready(request: ApiRequest) -> HealthOut:
    """The database answers, has room, keeps what it commits and has this version's schema; 503 otherwise."""
    await request.api.check_ready()
    return HealthOut(status="ready")


@router.get(
    "/metrics",
    responses={
        200: {"description": "Prometheus text format", "content": {"text/plain": TEXT}},
        **{status: problem_response(status) for status in (401, 403)},
    },
    openapi_extra={"security": [{}, {"bearer": []}]},
    response_class=Response,
)
@public
async def metrics(request: ApiRequest) -> Response:
    """Requests and latencies with a token for it; without one, only whether the service is up."""
    metrics = request.api.metrics
    ready, private = True, False
    try:
        await request.api.check_ready()
    except Unavailable:
        ready = False
    if ready and request.header(b"authorization") is not None:
        principal = request.principal = await identify(request)
        private = bool(principal.roles & OBSERVERS) and principal.studies is None
    if private:
        with suppress(Unavailable):
            metrics.count_sessions(await request.api.services.sessions.states())
    metrics.set_up(ready)
    return Response(metrics.exposition(private=private), media_type=CONTENT_TYPE)


READ: dict[int | str, dict[str, Any]] = {200: {"description": "Markdown", "content": {"text/plain": TEXT}}}


@router.get(reference.LIST, responses=READ, response_class=Response)
@public
async def read_list(request: ApiRequest) -> Response:
    """What there is to read of this service, for language models."""
    return Response(reference.listed(request.app.openapi()), media_type="text/plain")


@router.get(reference.WHOLE, responses=READ, response_class=Response)
@public
async def read_reference(request: ApiRequest) -> Response:
    """Every route and every field of a question, for language models."""
    return Response(request.app.state.reference(), media_type="text/plain")
