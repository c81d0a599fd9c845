"""Studies: make, find, edit, close, archive, retire."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.access import STUDY_ROLES, allow
from app.api.routing import CONFLICTS, StrictRoute
from app.core.epsilon import epsilon_to_json
from app.core.principal import Role
from app.web.documents.lists import Limit, PageOut, SlugCursor
from app.web.documents.paths import StudyPath
from app.web.documents.study import StudyIn
from app.web.documents.study_change import ArchiveIn, ReportingRangeIn, StudyEditIn
from app.web.documents.study_out import SaturationOut, StudyMadeOut, StudyOut
from app.web.patterns import SLUG_PATTERN
from app.web.request import ApiRequest

Series = Annotated[str | None, Query(pattern=SLUG_PATTERN, description="Only studies of this series.")]

router = APIRouter(prefix="/v1/studies", tags=["studies"], route_class=StrictRoute)


@router.post(
    "",
    status_code=201,
    responses={200: {"model": StudyMadeOut, "description": "The very same study existed already"}},
    openapi_extra={CONFLICTS: True},
    response_model_exclude_unset=True,
)
@allow(Role.ADMIN)
async def create_study(request: ApiRequest, response: Response, document: StudyIn) -> StudyMadeOut:
    """Make a study. Sending the same definition again changes nothing."""
    services = request.api.services
    study, created = await services.studies.create(
        document.definition(),
        request.principal,
        {code: said.model_dump() for code, said in document.texts.items()},
    )
    response.status_code = 201 if created else 200
    made = dict(StudyOut.model_validate(study))
    if warnings := await services.budgets.warnings(study.definition):
        made["warnings"] = warnings
    return StudyMadeOut.model_validate(made)


@router.get("")
@allow(*STUDY_ROLES)
async def list_studies(
    request: ApiRequest, limit: Limit = 50, cursor: SlugCursor | None = None, series: Series = None
) -> PageOut[StudyOut]:
    """The studies that the token may see, by slug."""
    page = await request.api.services.studies.page(limit, cursor, request.principal, series)
    return PageOut[StudyOut].model_validate(page)


@router.get("/{study}")
@allow(*STUDY_ROLES)
async def read_study(request: ApiRequest, study: StudyPath) -> StudyOut:
    """One study."""
    return StudyOut.model_validate(await request.study(study, fresh=True))


@router.patch("/{study}")
@allow(Role.ADMIN)
async def edit_study(request: ApiRequest, study: StudyPath, document: StudyEditIn) -> StudyOut:
    """Change what is said of a study. What answers depend on is fixed when it is made."""
    found = await request.study(study)
    studies, slug = request.api.services.studies, found.definition.slug
    return StudyOut.model_validate(await studies.edit(slug, request.principal, **document.model_dump()))


@router.post("/{study}/close")
@allow(Role.ADMIN)
async def close_study(request: ApiRequest, study: StudyPath) -> StudyOut:
    """Take no more contributions. Questions are still answered; doing it again changes nothing."""
    found = await request.study(study)
    return StudyOut.model_validate(
        await request.api.services.studies.close(found.definition.slug, request.principal)
    )


@router.post("/{study}/reporting-range", openapi_extra={CONFLICTS: True})
@allow(Role.ADMIN)
async def narrow_study(request: ApiRequest, study: StudyPath, document: ReportingRangeIn) -> StudyOut:
    """Fix where devices of local people report: the smallest range between what two searches found.

    It costs nothing, as the searches are published, and is for good; the same again changes nothing. Reports
    that do not state it are of the whole range, as before.
    """
    found = await request.study(study)
    studies, slug = request.api.services.studies, found.definition.slug
    searches = (document.lower, document.upper)
    return StudyOut.model_validate(await studies.narrow(slug, request.principal, searches))


@router.post("/{study}/archive", openapi_extra={CONFLICTS: True})
@allow(Role.ADMIN)
async def archive_study(request: ApiRequest, study: StudyPath, document: ArchiveIn) -> StudyOut:
    """End a study for good: no contribution, no new question, no session. Stored answers are still given.

    What people reserved in the study and have not spent is free again. Doing it again changes nothing.
    """
    found = await request.study(study)
    return StudyOut.model_validate(
        await request.api.services.studies.archive(found.definition.slug, request.principal, document.reason)
    )


@router.post("/{study}/retire", openapi_extra={CONFLICTS: True})
@allow(Role.ADMIN)
async def retire_study(request: ApiRequest, study: StudyPath) -> StudyOut:
    """Give stored answers only: no contribution, no new question, no session. Cannot be undone.

    What people reserved in the study stays reserved, also if they withdraw. Doing it again changes nothing.
    """
    found = await request.study(study)
    return StudyOut.model_validate(
        await request.api.services.studies.retire(found.definition.slug, request.principal)
    )


@router.get("/{study}/saturation")
@allow(*STUDY_ROLES)
async def read_saturation(request: ApiRequest, study: StudyPath) -> SaturationOut:
    """Privacy for free: what a person offers beyond this epsilon is not charged.

    Null where everything that is offered is used.
    """
    point = await request.api.services.releases.saturation(await request.study(study))
    return SaturationOut(epsilon=None if point is None else epsilon_to_json(point))
