"""Sessions: interactive local protocols with rounds. Answering is a busy route and reads its own document."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.api.access import STUDY_ROLES, allow
from app.api.missing_budget import explained_enrolment
from app.api.routing import CONFLICTS, StrictRoute
from app.core.errors import BudgetExhausted
from app.core.principal import Role
from app.core.session import AnswerOutcome
from app.core.study import Study
from app.services.sessions.session_cache import Session
from app.web import idempotency
from app.web.documents.lists import Limit, PageOut, UuidCursor
from app.web.documents.paths import IdPath, StudyPath
from app.web.documents.release import page_bytes
from app.web.documents.session import (
    RoundOut,
    SessionAnswerOut,
    SessionOut,
    answer_bytes,
    round_bytes,
    session_bytes,
)
from app.web.documents.session_in import ANSWER_EXAMPLE, ANSWER_SCHEMA, RoundCloseIn, SessionIn
from app.web.request import JSON, ApiRequest, uuid_of

MAX_WAIT_SECONDS = 30

router = APIRouter(prefix="/v1", tags=["sessions"], route_class=StrictRoute)


@router.post(
    "/studies/{study}/sessions",
    status_code=201,
    responses={201: {"model": SessionOut, "description": "Started; its first round is open"}},
    openapi_extra={CONFLICTS: True, "parameters": [idempotency.PARAMETER]},
)
@allow(Role.ADMIN)
async def create_session(request: ApiRequest, study: StudyPath, document: SessionIn) -> Response:
    """Start a session. Taking part is up to each person, and costs at most the epsilon given here."""
    found = await request.study(study, fresh=True)
    body = await request.api.services.sessions.create(
        found,
        document.spec(),
        document.schedule(),
        request.principal,
        render=lambda session: session_bytes(session, found),
        idempotency=await idempotency.idempotency(request),
    )
    return Response(body, status_code=201, media_type=JSON)


@router.get("/studies/{study}/sessions", responses={200: {"model": PageOut[SessionOut]}})
@allow(*STUDY_ROLES)
async def list_sessions(
    request: ApiRequest, study: StudyPath, limit: Limit = 50, cursor: UuidCursor | None = None
) -> Response:
    """A study's sessions, newest first."""
    found = await request.study(study)
    page = await request.api.services.sessions.page(found, limit, cursor)
    items = [session_bytes(session, found) for session in page.items]
    return Response(page_bytes(items, page.next_cursor), media_type=JSON)


@router.get("/sessions/{session}", responses={200: {"model": SessionOut}})
@allow(*STUDY_ROLES)
async def read_session(request: ApiRequest, session: IdPath) -> Response:
    """One session with its closed rounds; once it has finished, with its estimate."""
    found = await request.api.services.sessions.get(uuid_of(session, "session"))
    return await _shown(request, found)


@router.get("/sessions/{session}/round", responses={200: {"model": RoundOut}})
@allow(*STUDY_ROLES)
async def read_round(
    request: ApiRequest,
    session: IdPath,
    after: Annotated[int, Query(ge=0, le=1_000, description="The last round that you know of.")] = 0,
    wait: Annotated[
        float,
        Query(
            ge=0,
            le=MAX_WAIT_SECONDS,
            allow_inf_nan=False,
            description="Seconds to wait for a later round than `after`, or for the end.",
        ),
    ] = 0,
) -> Response:
    """What is asked now. With `wait`, as soon as the open round is later than `after` or there is none."""
    session_id = uuid_of(session, "session")
    study = await _study_of(request, await request.api.services.sessions.find(session_id))
    found = await request.api.services.sessions.wait(session_id, after, wait)
    return Response(round_bytes(found, study), media_type=JSON)


@router.post(
    "/sessions/{session}/answers",
    status_code=201,
    responses={
        201: {"model": SessionAnswerOut, "description": "Stored, and its epsilon spent"},
        200: {"model": SessionAnswerOut, "description": "This token sent the very same one before"},
    },
    openapi_extra={
        CONFLICTS: True,
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": ANSWER_SCHEMA, "example": ANSWER_EXAMPLE}},
        },
    },
)
@allow(Role.CONTRIBUTE)
async def give_answer(request: ApiRequest, session: IdPath) -> Response:
    """Answer a round. A person's first answer enrols them and reserves what taking part costs.

    The same again with the same token is answered 200; another answer to the same round, and whatever
    another token sends, 409.
    """
    services = request.api.services
    found = await services.sessions.find(uuid_of(session, "session"))
    request.refuse_other_studies(found.definition.study)
    record = await request.read_object()
    answer = services.answers.read(found, record, request.principal.token_id)
    request.refuse_other_subjects(answer.subject)
    try:
        given = await services.answers.take(found, answer)
    except BudgetExhausted as refusal:
        raise await explained_enrolment(refusal, request, found.terms.epsilon_total, answer.subject) from None
    body = answer_bytes(found, str(record["subject"]), answer.round, given)
    created = given.outcome is AnswerOutcome.CREATED
    return Response(body, status_code=201 if created else 200, media_type=JSON)


@router.post(
    "/sessions/{session}/close-round",
    responses={200: {"model": SessionOut}},
    openapi_extra={CONFLICTS: True},
)
@allow(Role.ADMIN, of_a_study=True)
async def close_round(request: ApiRequest, session: IdPath, document: RoundCloseIn) -> Response:
    """Close a round with the answers that it has. A round that was closed before stays as it is."""
    session_id = await _own_session(request, session)
    found = await request.api.services.sessions.close_round(session_id, document.round, request.principal)
    return await _shown(request, found)


@router.post("/sessions/{session}/finish", responses={200: {"model": SessionOut}})
@allow(Role.ADMIN, of_a_study=True)
async def finish_session(request: ApiRequest, session: IdPath) -> Response:
    """End a session now, with what there is. What people reserved and did not spend is free again."""
    session_id = await _own_session(request, session)
    found = await request.api.services.sessions.finish(session_id, request.principal)
    return await _shown(request, found)


async def _own_session(request: ApiRequest, text: str) -> UUID:
    """The id of a session, which is not of a study that the token is not for."""
    session_id = uuid_of(text, "session")
    found = await request.api.services.sessions.find(session_id)
    request.refuse_other_studies(found.definition.study)
    return session_id


async def _study_of(request: ApiRequest, session: Session) -> Study:
    request.refuse_other_studies(session.definition.study)
    return await request.study(session.definition.study)


async def _shown(request: ApiRequest, session: Session) -> Response:
    study = await _study_of(request, session)
    return Response(session_bytes(session, study), media_type=JSON)
