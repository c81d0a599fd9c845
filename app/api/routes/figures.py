"""Figures over all people, for admins. The dashboard draws the same documents."""

from fastapi import APIRouter
from starlette.responses import Response

from app.api.access import allow
from app.api.routes.releases import answer_plan
from app.api.routing import OPEN_QUERY, StrictRoute
from app.core.principal import Role
from app.web import documents_out, question_params
from app.web.documents.figures import (
    ChainOut,
    CohortOut,
    DaysOut,
    EpsilonsOut,
    HistogramOut,
    OverviewOut,
    StudiesFiguresOut,
)
from app.web.documents.lists import DayCursor, Limit, NumberCursor, PageOut, SlugCursor
from app.web.documents.paths import OneStudy, StudyPath
from app.web.documents.plan import PlanOut
from app.web.request import ApiRequest

router = APIRouter(prefix="/v1/admin", tags=["figures"], route_class=StrictRoute)


@router.get("/overview")
@allow(Role.ADMIN)
async def read_overview(request: ApiRequest) -> OverviewOut:
    """The installation at a glance: how much there is, how much is left, and what needs attention."""
    return await documents_out.overview(request.api.services)


@router.get("/chain")
@allow(Role.ADMIN)
async def read_chain(request: ApiRequest) -> ChainOut:
    """The head of the hash chain, and what the last `dither audit` found."""
    return await documents_out.chain(request.api.services)


@router.get("/contributions/daily")
@allow(Role.ADMIN)
async def list_days(
    request: ApiRequest, limit: Limit = 50, cursor: DayCursor | None = None, study: OneStudy = None
) -> DaysOut:
    """New contributions and releases a day (UTC), newest first, for a year. Days without any are left out."""
    return await documents_out.days(request.api.services, limit, cursor, study)


@router.get("/budgets/histogram")
@allow(Role.ADMIN)
async def read_histogram(request: ApiRequest, study: OneStudy = None) -> HistogramOut:
    """Histograms and percentiles of what people have reserved and spent, over all studies or in one."""
    return await documents_out.histogram(request.api.services, study)


@router.get("/budgets/epsilons")
@allow(Role.ADMIN)
async def read_epsilons(request: ApiRequest, study: OneStudy = None) -> EpsilonsOut:
    """What was reserved and spent by the personal epsilon that people chose, over all contributions."""
    return await documents_out.epsilons(request.api.services, study)


@router.get("/studies")
@allow(Role.ADMIN)
async def list_studies_with_figures(
    request: ApiRequest, limit: Limit = 50, cursor: SlugCursor | None = None
) -> StudiesFiguresOut:
    """Studies with how many people are in them, what they have reserved and spent, and who can still pay."""
    return await documents_out.studies(request.api.services, limit, cursor, request.principal)


@router.get("/studies/{study}/profile")
@allow(Role.ADMIN)
async def read_profile(request: ApiRequest, study: StudyPath) -> EpsilonsOut:
    """The epsilons and trust tags of those who take part in a study."""
    found = await request.study(study)
    return await documents_out.epsilons(request.api.services, found.definition.slug)


@router.get("/studies/{study}/cohorts")
@allow(Role.ADMIN)
async def list_cohorts(
    request: ApiRequest, study: StudyPath, limit: Limit = 50, cursor: NumberCursor | None = None
) -> PageOut[CohortOut]:
    """The cohorts of a study as the ledger charges them, without contributions since the last release."""
    page = await request.api.services.studies.cohorts(await request.study(study), limit, cursor)
    return PageOut[CohortOut].model_validate(page)


@router.get(
    "/studies/{study}/plan",
    responses={200: {"model": PlanOut}},
    openapi_extra={OPEN_QUERY: True, "parameters": question_params.query_parameters(plan=True)},
)
@allow(Role.ADMIN)
async def read_plan(request: ApiRequest, study: StudyPath) -> Response:
    """The plan as analysts see it. Nothing is spent."""
    return await answer_plan(request, study)
