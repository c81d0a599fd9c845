"""Schedules: have a question asked every day, week or month."""

from fastapi import APIRouter, Response

from app.api.access import allow
from app.api.routing import CONFLICTS, StrictRoute
from app.core.principal import Role
from app.web.documents.lists import Limit, PageOut, UuidCursor
from app.web.documents.paths import IdPath, StudyPath
from app.web.documents.schedule import ScheduleIn, ScheduleOut
from app.web.request import ApiRequest, uuid_of
from app.web.schedules import make

router = APIRouter(prefix="/v1/studies/{study}/schedules", tags=["schedules"], route_class=StrictRoute)


@router.post("", status_code=201, openapi_extra={CONFLICTS: True})
@allow(Role.ADMIN)
async def create_schedule(request: ApiRequest, study: StudyPath, document: ScheduleIn) -> ScheduleOut:
    """Have a question asked by itself, from now on or later, within a quota of its own.

    Each time has one answer, however many processes serve. One that is refused charges no one, reaches
    webhooks as `schedule_refused`, and is asked again at its next time.
    """
    found = await request.study(study, fresh=True)
    services = request.api.services
    made = await make(services, found, request.principal, document.question, document.times())
    return ScheduleOut.of(made)


@router.get("")
@allow(Role.ANALYSE, Role.ADMIN)
async def list_schedules(
    request: ApiRequest, study: StudyPath, limit: Limit = 50, cursor: UuidCursor | None = None
) -> PageOut[ScheduleOut]:
    """The schedules of a study."""
    found = await request.study(study)
    page = await request.api.services.schedules.page(found, limit, cursor)
    items = [ScheduleOut.of(one) for one in page.items]
    return PageOut[ScheduleOut](items=items, next_cursor=page.next_cursor)


@router.get("/{schedule}")
@allow(Role.ANALYSE, Role.ADMIN)
async def read_schedule(request: ApiRequest, study: StudyPath, schedule: IdPath) -> ScheduleOut:
    """One schedule: when it is asked next, and what came of the last time."""
    found = await request.study(study)
    one = await request.api.services.schedules.get(found, uuid_of(schedule, "schedule"))
    return ScheduleOut.of(one)


@router.delete("/{schedule}", status_code=204, response_class=Response)
@allow(Role.ADMIN)
async def delete_schedule(request: ApiRequest, study: StudyPath, schedule: IdPath) -> Response:
    """Ask no more by a schedule. Its answers stay."""
    found = await request.study(study)
    schedule_id = uuid_of(schedule, "schedule")
    await request.api.services.schedules.delete(found, schedule_id, request.principal)
    return Response(status_code=204)
