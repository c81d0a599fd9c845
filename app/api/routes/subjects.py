"""What a person has given, what it cost them, what is left."""

from fastapi import APIRouter

from app.api.access import allow
from app.api.routing import CONFLICTS, StrictRoute
from app.core.principal import Role
from app.web import documents_out, idempotency
from app.web.documents.budget import (
    AccountOut,
    BudgetOut,
    LifetimeIn,
    LinkOut,
    PersonalChargeOut,
    RaiseIn,
    RaiseOut,
)
from app.web.documents.lists import DigestCursor, Limit, PageOut, UuidCursor
from app.web.documents.paths import SubjectPath
from app.web.request import LINK_PATH, ApiRequest

router = APIRouter(prefix="/v1", tags=["budgets"], route_class=StrictRoute)


@router.get("/subjects/{subject:anything}/budget")
@allow(Role.CONTRIBUTE, Role.ADMIN)
async def read_budget(request: ApiRequest, subject: SubjectPath) -> BudgetOut:
    """One person's statement. A person never seen has the budget of a new person."""
    digest = request.subject_digest(subject)
    statement = await request.api.services.budgets.statement(digest, request.principal.studies)
    return BudgetOut.of(subject, statement)


@router.get("/subjects/{subject:anything}/charges")
@allow(Role.CONTRIBUTE, Role.ADMIN)
async def list_personal_charges(
    request: ApiRequest, subject: SubjectPath, limit: Limit = 50, cursor: UuidCursor | None = None
) -> PageOut[PersonalChargeOut]:
    """What each release cost one person, newest first, for the values that are there now."""
    digest = request.subject_digest(subject)
    return await documents_out.personal_charges(
        request.api.services, digest, limit, cursor, request.principal
    )


@router.post("/subjects/{subject:anything}/links", status_code=201)
@allow(Role.CONTRIBUTE, Role.ADMIN)
async def make_link(request: ApiRequest, subject: SubjectPath) -> LinkOut:
    """A link that opens the person's own page once: what they gave, what it cost, what is left, withdraw."""
    digest, start = request.subject_digest(subject), request.public_url + LINK_PATH
    secret, expires_at = await request.api.services.logins.make_link(digest, request.principal)
    return LinkOut(url=start + secret, expires_at=expires_at)


@router.put("/admin/subjects/{subject:anything}/budget", openapi_extra={CONFLICTS: True})
@allow(Role.ADMIN)
async def set_budget(request: ApiRequest, subject: SubjectPath, document: LifetimeIn) -> BudgetOut:
    """Set a lifetime budget; never below what is reserved."""
    statement = await request.api.services.budgets.set_lifetime(
        request.subject_digest(subject),
        epsilon=document.epsilon,
        gaussian=None if document.gaussian is None else document.gaussian.pair,
        reason=document.reason,
        principal=request.principal,
    )
    return BudgetOut.of(subject, statement)


@router.post("/admin/budgets/raise", openapi_extra={CONFLICTS: True, "parameters": [idempotency.PARAMETER]})
@allow(Role.ADMIN)
async def raise_budgets(request: ApiRequest, document: RaiseIn) -> RaiseOut:
    """Add to every lifetime budget; people who are new start with the raised one. Cannot be undone."""
    made = await request.api.services.budgets.raise_all(
        **dict(document),
        principal=request.principal,
        idempotency=await idempotency.idempotency(request),
    )
    return RaiseOut.model_validate(made)


@router.get("/admin/budgets")
@allow(Role.ADMIN)
async def list_budgets(
    request: ApiRequest, limit: Limit = 50, cursor: DigestCursor | None = None
) -> PageOut[AccountOut]:
    """All accounts. People are known by digests only."""
    page = await request.api.services.budgets.page(limit, cursor)
    return PageOut[AccountOut].model_validate(page)
