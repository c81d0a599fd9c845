"""What admins look at, as documents. The JSON endpoints answer with them and the dashboard draws them."""

import csv
import io
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.core.epsilon import epsilon_to_json
from app.core.errors import NotFound
from app.core.principal import Principal
from app.core.study import Study
from app.services import Services
from app.services.figures import DRY_PERCENT, EVERYBODY, NEAR_PERCENT
from app.services.questions import Ask
from app.web.documents.budget import PersonalChargeOut
from app.web.documents.figures import (
    ChainOut,
    DayOut,
    DaysOut,
    DistributionOut,
    DryOut,
    DryStudyOut,
    EpsilonBinOut,
    EpsilonsOut,
    HistogramOut,
    LedgerReleaseOut,
    NearExhaustionOut,
    NearOut,
    OverviewOut,
    ReleaseCountsOut,
    StudiesFiguresOut,
    StudyCountsOut,
    StudyFiguresOut,
    TotalsOut,
)
from app.web.documents.ledger import LedgerLineOut
from app.web.documents.lists import PageOut
from app.web.documents.release import PlanOut
from app.web.documents.study import StudyOut

EXPORT_ROWS = 1000
"""Charges that an export reads at a time."""


async def overview(services: Services) -> OverviewOut:
    """The installation at a glance."""
    taken = await services.figures.read("overview")
    found = taken.documents[EVERYBODY]
    _, days = await services.figures.days(1, None, None)
    today = datetime.now(UTC).date().isoformat()
    chained = await chain(services)
    return OverviewOut(
        taken_at=taken.at,
        subjects=found["subjects"],
        contributions=found["contributions"],
        studies=StudyCountsOut(**found["studies"]),
        releases=ReleaseCountsOut(
            total=chained.number,
            today=sum(row["releases"] for row in days.items if row["day"] == today),
        ),
        epsilon=TotalsOut(
            total=epsilon_to_json(found["budget"]),
            reserved=epsilon_to_json(found["reserved"]),
            spent=epsilon_to_json(found["spent"]),
            remaining=epsilon_to_json(found["budget"] - found["reserved"]),
        ),
        near_exhaustion=NearExhaustionOut(
            percent=NEAR_PERCENT,
            subjects=found["near"]["subjects"],
            examples=[
                NearOut(
                    subject=one["subject"],
                    total=epsilon_to_json(one["budget"]),
                    reserved=epsilon_to_json(one["reserved"]),
                )
                for one in found["near"]["examples"]
            ],
        ),
        dry=DryOut(
            percent=DRY_PERCENT,
            studies=found["dry"]["studies"],
            examples=[
                DryStudyOut(study=one["study"], can_pay_percent=one["can_pay_percent"])
                for one in found["dry"]["examples"]
            ],
        ),
        chain=chained,
    )


async def chain(services: Services) -> ChainOut:
    """The head of the hash chain, and the audit that was recorded last."""
    return ChainOut.model_validate(await services.ledger.head())


async def days(services: Services, limit: int, cursor: str | None, study: str | None) -> DaysOut:
    """New contributions and releases a day, newest first."""
    taken_at, page = await services.figures.days(limit, cursor, study)
    return DaysOut(
        taken_at=taken_at,
        items=[DayOut.model_validate(row) for row in page.items],
        next_cursor=page.next_cursor,
    )


async def histogram(services: Services, study: str | None) -> HistogramOut:
    """What people have reserved and spent."""
    name = study or EVERYBODY
    taken = await services.figures.read("budgets", (name,))
    found: Mapping[str, Any] = taken.documents.get(name, {})
    return HistogramOut(
        taken_at=taken.at,
        study=study,
        people=found.get("people", 0),
        reserved=DistributionOut.of(found.get("reserved")),
        spent=DistributionOut.of(found.get("spent")),
    )


async def epsilons(services: Services, study: str | None) -> EpsilonsOut:
    """Who chose which epsilon and trusts whom."""
    name = study or EVERYBODY
    taken = await services.figures.read("epsilons", (name,))
    bins = taken.documents.get(name, {}).get("bins", ())
    return EpsilonsOut(taken_at=taken.at, study=study, bins=[EpsilonBinOut.of(one) for one in bins])


async def studies(
    services: Services, limit: int, cursor: str | None, principal: Principal
) -> StudiesFiguresOut:
    """Studies with how much of them is there and left, by slug."""
    page = await services.studies.page(limit, cursor, principal)
    taken = await services.figures.read("overview", [study.definition.slug for study in page.items])
    return StudiesFiguresOut(
        taken_at=taken.at,
        items=[
            StudyFiguresOut.with_figures(StudyOut.of(study), taken.documents.get(study.definition.slug))
            for study in page.items
        ],
        next_cursor=page.next_cursor,
    )


async def plan(services: Services, study: Study, ask: Ask) -> PlanOut:
    """Price and accuracy of every estimator that applies; nothing is spent."""
    return PlanOut.model_validate({"estimators": await services.releases.plan(study, ask)})


async def ledger_releases(
    services: Services, limit: int, cursor: str | None, study: str | None
) -> PageOut[LedgerReleaseOut]:
    """Releases of all studies, newest first, or of one."""
    page = await services.ledger.releases(limit, cursor, await _study_id(services, study))
    return PageOut[LedgerReleaseOut].of(page)


async def charges(
    services: Services, limit: int, cursor: str | None, study: str | None, release: UUID | None
) -> PageOut[LedgerLineOut]:
    """Charges, newest first: what each release cost each member of each cohort."""
    page = await services.ledger.page(limit, cursor, await _study_id(services, study), release)
    return PageOut[LedgerLineOut].of(page)


async def personal_charges(
    services: Services, subject: bytes, limit: int, cursor: str | None, principal: Principal
) -> PageOut[PersonalChargeOut]:
    """What releases cost one person, newest first."""
    page = await services.budgets.charges(subject, limit, cursor, principal.studies)
    return PageOut[PersonalChargeOut].of(page)


async def charges_csv(services: Services, study: str | None, release: UUID | None) -> AsyncIterator[str]:
    """All charges as CSV with a header, newest first, a few at a time."""
    yield _line(list(LedgerLineOut.model_fields))
    cursor: str | None = None
    while True:
        page = await charges(services, EXPORT_ROWS, cursor, study, release)
        yield "".join(_line(list(one.model_dump(mode="json").values())) for one in page.items)
        cursor = page.next_cursor
        if cursor is None:
            return


NO_STUDY = 0
"""Number of no study: a list that is narrowed down to it is empty."""


async def _study_id(services: Services, study: str | None) -> int | None:
    """The number of a study to narrow a list down to; None for all."""
    if study is None:
        return None
    try:
        return (await services.studies.get(study)).id
    except NotFound:
        return NO_STUDY


def _line(cells: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()
