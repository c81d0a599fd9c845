"""Questions and their answers. Answers are the stored bytes."""

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.responses import Response

from app.api.access import allow
from app.api.routing import CONFLICTS, OPEN_QUERY, StrictRoute
from app.core.errors import NotFound
from app.core.principal import Role
from app.core.question import STATISTICS
from app.core.release import StoredRelease
from app.estimators.confidence import LEVEL
from app.services.shapes.shown import shown_off
from app.services.statistics.reading import Reading
from app.services.work import run
from app.web import documents_out, idempotency, question_params
from app.web.documents.lists import Limit, PageOut, UuidCursor
from app.web.documents.paths import IdPath, LevelQuery, StatisticPath, StudyPath
from app.web.documents.plan import PlanOut
from app.web.documents.plans import PlansOut
from app.web.documents.release import (
    ClusterReleaseOut,
    CurrentReleaseOut,
    ReleaseOut,
    ReleaseWithChargesOut,
    page_bytes,
    with_charges,
    with_field,
)
from app.web.documents.series import SERIES, SeriesOut
from app.web.documents.shape import Shape
from app.web.request import JSON, ApiRequest, uuid_of
from app.web.tables import RESPONSES, answered

SHOWN = ReleaseWithChargesOut | ClusterReleaseOut | Shape
"""Whatever a release may be, as it is shown."""

router = APIRouter(prefix="/v1", tags=["releases"], route_class=StrictRoute)


@router.get(
    "/studies/{study}/plan",
    responses={200: {"model": PlanOut}},
    openapi_extra={OPEN_QUERY: True, "parameters": question_params.query_parameters(plan=True)},
)
@allow(Role.ANALYSE)
async def plan(request: ApiRequest, study: StudyPath) -> Response:
    """What stands, what more would give and cost, by estimators. Nothing is spent."""
    return await answer_plan(request, study)


@router.post(
    "/studies/{study}/plan",
    responses={200: {"model": PlansOut}},
    openapi_extra={"requestBody": question_params.plans_body()},
)
@allow(Role.ANALYSE)
async def plan_several(request: ApiRequest, study: StudyPath) -> Response:
    """What several questions would give and cost, each alone, and all of them together. Nothing is spent.

    Each is planned as if it alone were asked now. What is read off one answer is paid once.
    """
    found = await request.study(study, fresh=True)
    asks = question_params.read_plans(await request.read_object())
    async with request.work():
        document = await documents_out.plans(request.api.services, found, asks)
    return Response(document.model_dump_json(), media_type=JSON)


async def answer_plan(request: ApiRequest, study: str) -> Response:
    """The plan of the question in the query."""
    found = await request.study(study, fresh=True)
    ask, fresh = question_params.read_plan(question_params.query_of(request))
    async with request.work():
        document = await documents_out.plan(request.api.services, found, ask, fresh=fresh)
    return Response(document.model_dump_json(), media_type=JSON)


@router.get(
    "/studies/{study}/statistics/{statistic}",
    responses={200: {"model": CurrentReleaseOut | Shape | SeriesOut, "content": RESPONSES}},
    openapi_extra={
        CONFLICTS: True,
        OPEN_QUERY: True,
        "parameters": question_params.query_parameters(plan=False),
    },
)
@allow(Role.ANALYSE)
async def current_statistic(request: ApiRequest, study: StudyPath, statistic: StatisticPath) -> Response:
    """The best answer to this question so far. Made, and paid for, the first time; free afterwards.

    A mean or a sum without estimator, share and epsilon is read from all means of the study that are
    published, those of descriptions too, combined at no price; `combines` has their ids.

    Mean, sum, variance and sd are read off one release: after one of them the others are free. Of values of
    several coordinates they have one answer for each of these. Where the
    number of people is secret, variance and sd share a release of their own, and there is no sum. A histogram
    and the distribution function share one, and so do a median and the quantile 0.5. Shares are
    for studies of choices, which have no other statistic. A mean over a range that
    is found first (`range=found`) has one of its own. A difference, and a mean that is standardized, are read
    off the answer by labels. A change and a trend are read off the published means of this study and those
    before it in its series, and cost nothing.
    """
    found = await request.study(study, fresh=True)
    if statistic not in (*STATISTICS, *SERIES):
        raise NotFound(f"There is no such statistic; there are {', '.join((*STATISTICS, *SERIES))}.")
    ask = question_params.read_question(question_params.query_of(request), statistic=statistic)
    if statistic in SERIES:
        async with request.work():
            read = await documents_out.series(request.api.services, request.principal, found, statistic, ask)
        return Response(read.model_dump_json(), media_type=JSON)
    reading = Reading.of(found.definition, ask)
    services, asker = request.api.services, request.principal.token_id
    async with request.work():
        answer = await services.answering(found, reading.ask).current(found, reading.ask, asker=asker)
        stands = await services.releases.read_at(answer.release, reading.level)
        body = await run(shown_off, stands.body, reading, found.definition)
        if answer.new_contributions is not None:
            body = with_field(body, "new_contributions", answer.new_contributions)
        return await answered(request, [body], body)


@router.post(
    "/studies/{study}/releases",
    status_code=201,
    responses={
        200: {
            "model": ReleaseOut | Shape,
            "content": RESPONSES,
            "description": "The answer that stands: all people have given this share",
        },
        201: {
            "model": ReleaseOut | Shape,
            "content": RESPONSES,
            "description": "A new release, or the one of the first request",
        },
    },
    openapi_extra={
        CONFLICTS: True,
        OPEN_QUERY: True,
        "parameters": [idempotency.PARAMETER],
        "requestBody": question_params.request_body(),
    },
)
@allow(Role.ANALYSE)
async def make_release(request: ApiRequest, study: StudyPath) -> Response:
    """A new release for a question, given in the document or in the query.

    A question's share is what it takes of each epsilon in all: a larger one sharpens the answer, and
    charges the difference; without one it rises by the study's default. People who came since the last answer
    are charged for themselves. Where all people have given that share the answer stands, for nothing.
    `fresh` asks for independent noise, at the full price of its share; add_remove_one studies know no other.
    In replace_one studies it is refused, and costs nothing, where it is no gain, and everywhere where it is
    predicted to say nothing: `allow_worse` makes it.
    """
    found = await request.study(study, fresh=True)
    document = dict(await request.read_object(required=False))
    allow_worse = question_params.take_flag(document, "allow_worse")
    fresh = question_params.take_flag(document, "fresh")
    ask = question_params.read_question(
        question_params.query_of(request), document, beside=question_params.FLAGS
    )
    key = await idempotency.idempotency(request)
    reading = Reading.of(found.definition, ask)
    services, asker = request.api.services, request.principal.token_id
    async with request.work():
        release = await services.answering(found, reading.ask).release(
            found, reading.ask, key, asker=asker, allow_worse=allow_worse, fresh=fresh
        )
        read = await services.releases.read_at(release, reading.level)
        body = await run(shown_off, read.body, reading, found.definition)
        return await answered(request, [body], body, 200 if release.stands else 201)


@router.get(
    "/studies/{study}/releases",
    responses={200: {"model": PageOut[SHOWN], "content": RESPONSES}},
)
@allow(Role.ANALYSE, Role.ADMIN)
async def list_releases(
    request: ApiRequest, study: StudyPath, limit: Limit = 50, cursor: UuidCursor | None = None
) -> Response:
    """A study's releases, newest first; a page ends, with `next_cursor`, before it is over 8 MiB."""
    found = await request.study(study)
    admin = Role.ADMIN in request.principal.roles
    async with request.work():
        page = await request.api.services.releases.page(found, limit, cursor, charges=admin)
        shown = await _shown(request, page.items)
        link = None if page.next_cursor is None else f"?limit={limit}&cursor={page.next_cursor}"
        return await answered(request, shown, page_bytes(shown, page.next_cursor), link=link)


@router.get(
    "/releases/{release}",
    responses={200: {"model": SHOWN, "content": RESPONSES}},
    openapi_extra={CONFLICTS: True},
)
@allow(Role.ANALYSE, Role.ADMIN)
async def read_release(request: ApiRequest, release: IdPath, level: LevelQuery = LEVEL) -> Response:
    """One release, its intervals at a level."""
    async with request.work():
        found = await request.api.services.releases.get(uuid_of(release, "release"))
        request.refuse_other_studies(found.study)
        found = await request.api.services.releases.read_at(found, level)
        (shown,) = await _shown(request, [found])
        return await answered(request, [shown], shown)


async def _shown(request: ApiRequest, releases: Sequence[StoredRelease]) -> list[bytes]:
    if Role.ADMIN not in request.principal.roles:
        return [release.body for release in releases]
    charges = await request.api.services.releases.charges(releases)
    pairs = zip(releases, charges, strict=True)
    return [await run(with_charges, release.body, its) for release, its in pairs]
