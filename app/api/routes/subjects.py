"""What a person has given, what it cost them, what is left."""

from fastapi import APIRouter

from app.api.access import allow
from app.api.requests import ApiRequest
from app.api.routing import CONFLICTS, StrictRoute
from app.api.subjects import subject_digest
from app.api.wire.budget import AccountOut, BudgetOut, LifetimeIn
from app.api.wire.lists import DigestCursor, Limit, PageOut
from app.api.wire.paths import SubjectPath
from app.core.principal import Role

router = APIRouter(prefix="/v1", tags=["budgets"], route_class=StrictRoute)


@router.get("/subjects/{subject:path}/budget")
@allow(Role.CONTRIBUTE, Role.ADMIN)
async def read_budget(request: ApiRequest, subject: SubjectPath) -> BudgetOut:
    """One person's statement. Somebody never seen has the budget of a new person."""
    digest = subject_digest(request, subject)
    statement = await request.api.services.budgets.statement(digest, request.principal.studies)
    return BudgetOut.of(subject, statement.account, statement.studies, statement.sessions)


@router.put("/admin/subjects/{subject:path}/budget", openapi_extra={CONFLICTS: True})
@allow(Role.ADMIN)
async def set_budget(request: ApiRequest, subject: SubjectPath, document: LifetimeIn) -> BudgetOut:
    """Set a lifetime budget; never below what is reserved."""
    statement = await request.api.services.budgets.set_lifetime(
        subject_digest(request, subject),
        epsilon=document.epsilon,
        delta=document.delta,
        reason=document.reason,
        principal=request.principal,
    )
    return BudgetOut.of(subject, statement.account, statement.studies, statement.sessions)


@router.get("/admin/budgets")
@allow(Role.ADMIN)
async def list_budgets(
    request: ApiRequest, limit: Limit = 50, cursor: DigestCursor | None = None
) -> PageOut[AccountOut]:
    """All accounts. People are known by digests only."""
    page = await request.api.services.budgets.page(limit, cursor)
    items = [AccountOut.of(account) for account in page.items]
    return PageOut(items=items, next_cursor=page.next_cursor)
