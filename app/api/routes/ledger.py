"""The ledger, for admins."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.access import allow
from app.api.requests import ApiRequest
from app.api.routing import StrictRoute
from app.api.wire.ledger import LedgerLineOut
from app.api.wire.lists import Limit, NumbersCursor, PageOut
from app.api.wire.types import SLUG_PATTERN
from app.core.epsilon import delta_to_json, epsilon_to_json
from app.core.principal import Role

router = APIRouter(prefix="/v1/admin/ledger", tags=["ledger"], route_class=StrictRoute)


@router.get("")
@allow(Role.ADMIN)
async def list_charges(
    request: ApiRequest,
    limit: Limit = 50,
    cursor: NumbersCursor | None = None,
    study: Annotated[str | None, Query(pattern=SLUG_PATTERN, description="Slug of one study.")] = None,
) -> PageOut[LedgerLineOut]:
    """Charges, newest first: what each release cost each member of each cohort."""
    page = await request.api.services.ledger.page(limit, cursor, study)
    items = [
        LedgerLineOut(
            number=row["number"],
            release=str(row["release"]),
            study=row["study"],
            estimator=row["estimator"],
            cohort_id=row["cohort_id"],
            epoch=row["epoch"],
            trust=row["trust"],
            offered=epsilon_to_json(row["offered"]),
            people=row["people"],
            epsilon=epsilon_to_json(row["epsilon"]),
            delta=delta_to_json(row["delta"]),
            created_at=row["created_at"],
        )
        for row in page.items
    ]
    return PageOut(items=items, next_cursor=page.next_cursor)
