"""Contributions, one by one. The busiest routes: they read and write their documents themselves."""

from fastapi import APIRouter
from starlette.responses import Response

from app.api.access import allow
from app.api.missing_budget import explained
from app.api.routing import CONFLICTS, StrictRoute
from app.core.contribution import Offer
from app.core.errors import BudgetExhausted
from app.core.principal import Role
from app.core.study import Study
from app.services.contributing.contributions import Accepted
from app.web import idempotency
from app.web.documents.contribution import EXAMPLES, ContributionOut, contribution_bytes, contribution_schema
from app.web.documents.paths import StudyPath, SubjectPath
from app.web.request import JSON, ApiRequest

router = APIRouter(
    prefix="/v1/studies/{study}/contributions", tags=["contributions"], route_class=StrictRoute
)


@router.post(
    "",
    status_code=201,
    responses={
        201: {"model": ContributionOut, "description": "Stored, and its epsilon reserved"},
        200: {
            "model": ContributionOut,
            "description": "This token sent the very same one before",
        },
    },
    openapi_extra={
        CONFLICTS: True,
        "parameters": [idempotency.PARAMETER],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": contribution_schema(subject=True), "examples": EXAMPLES}},
        },
    },
)
@allow(Role.CONTRIBUTE)
async def contribute(request: ApiRequest, study: StudyPath) -> Response:
    """Contribute one value and reserve its epsilon.

    The same again with the same token is answered 200; another value, and whatever another token sends, 409.
    """
    found = await request.study(study)
    record = await request.read_object()
    found = await request.reported_to(found, record)
    offer = request.api.intake(found).offer(record, request.principal.token_id)
    request.refuse_other_subjects(offer.subject)
    contributions = request.api.services.contributions
    key = await idempotency.idempotency(request, offer.subject)
    try:
        if key is None:
            accepted = await contributions.contribute(found, offer)
        else:
            accepted = await contributions.contribute_once(found, offer, key)
    except BudgetExhausted as refusal:
        raise await explained(refusal, request, found, offer) from None
    status, body = _reply(found, str(record["subject"]), offer, accepted)
    return Response(body, status_code=status, media_type=JSON)


@router.put(
    "/{subject:anything}",
    responses={200: {"model": ContributionOut, "description": "Replaced, or the same as before"}},
    openapi_extra={
        CONFLICTS: True,
        "requestBody": {
            "required": True,
            "content": {
                JSON: {
                    "schema": contribution_schema(subject=False),
                    "example": {"value": 40, "epsilon": 2, "trust": "central"},
                }
            },
        },
    },
)
@allow(Role.CONTRIBUTE)
async def replace_contribution(request: ApiRequest, study: StudyPath, subject: SubjectPath) -> Response:
    """Put another value in the place of a live one. What was spent stays spent."""
    found = await request.study(study)
    request.subject_digest(subject)
    record = await request.read_object()
    found = await request.reported_to(found, record)
    offer = request.api.intake(found).offer(record, request.principal.token_id, subject)
    try:
        accepted = await request.api.services.contributions.replace(found, offer)
    except BudgetExhausted as refusal:
        raise await explained(refusal, request, found, offer) from None
    _, body = _reply(found, subject, offer, accepted)
    return Response(body, media_type=JSON)


@router.delete("/{subject:anything}", status_code=204, response_class=Response)
@allow(Role.CONTRIBUTE)
async def withdraw_contribution(request: ApiRequest, study: StudyPath, subject: SubjectPath) -> Response:
    """Delete a value and free what was not spent. Doing it again changes nothing."""
    found = await request.study(study)
    await request.api.services.contributions.withdraw(found, request.subject_digest(subject))
    return Response(status_code=204)


def _reply(study: Study, subject: str, offer: Offer, accepted: Accepted) -> tuple[int, bytes]:
    body = contribution_bytes(
        study=study.definition.slug,
        subject=subject,
        trust=offer.trust,
        epsilon=accepted.epsilon,
        mu2=accepted.mu2,
        epsilon_used_at_most=accepted.epsilon_used_at_most,
    )
    return 201 if accepted.created else 200, body
