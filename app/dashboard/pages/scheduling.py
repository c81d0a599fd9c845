"""Schedules, from the study's page: have its question asked by itself, or no more."""

from starlette.responses import Response

from app.core.errors import ServiceError
from app.dashboard import forms
from app.dashboard.pages import studies
from app.dashboard.questions import QUESTION, completed, statistics
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, PageRoute, redirect
from app.web.documents.fields import read
from app.web.documents.schedule import ScheduleIn
from app.web.request import uuid_of
from app.web.schedules import make


async def schedule(request: PageRequest) -> Response:
    """Have the question of the form asked from now on."""
    study = await request.study(request.path_params["study"], fresh=True)
    # Of a schedule `until` is a share, of a question an interval.
    names = [name for name in QUESTION if name != "until"]
    question = completed(study.definition, forms.given(request.fields, *names))
    asked = {"statistic": statistics(study.definition)[0], **question}
    try:
        document = read(ScheduleIn, request.fields, question=asked)
        await make(request.api.services, study, request.principal, document.question, document.times())
    except ServiceError as refusal:
        return await studies.page(request, question, scheduling=refusal)
    return redirect(request, f"/studies/{study.definition.slug}#schedule")


async def delete(request: PageRequest) -> Response:
    """Ask no more by a schedule."""
    study = await request.study(request.path_params["study"])
    schedule_id = uuid_of(request.path_params["schedule"], "schedule")
    await request.api.services.schedules.delete(study, schedule_id, request.principal)
    return redirect(request, f"/studies/{study.definition.slug}#schedule")


SCHEDULES = "/dashboard/studies/{study}/schedules"

ROUTES = (
    PageRoute(SCHEDULES, schedule, roles=ADMIN, post=True),
    PageRoute(f"{SCHEDULES}/{{schedule}}/delete", delete, roles=ADMIN, post=True),
)
