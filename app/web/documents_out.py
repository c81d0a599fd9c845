"""What admins look at, as documents. The JSON endpoints answer with them and the dashboard draws them."""

import csv
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from types import UnionType
from typing import Any, get_args
from uuid import UUID

from app.core.errors import InvalidRequest, NotFound
from app.core.figures import StudySummary
from app.core.principal import Principal
from app.core.release import StoredRelease
from app.core.study import Study, StudyState
from app.estimators.interface import NotApplicable
from app.services import Services
from app.services.admin.figures import DRY_PERCENT, NEAR_PERCENT
from app.services.paging import Page
from app.services.statistics.drafting import Planned
from app.services.statistics.questions import Ask
from app.services.statistics.reading import Reading
from app.services.work import run
from app.web.documents.budget import AccountOut, PersonalChargeOut
from app.web.documents.figures import (
    ChainOut,
    DaysOut,
    EpsilonsOut,
    HistogramOut,
    LedgerReleaseOut,
    OverviewOut,
    StudiesFiguresOut,
    StudyFiguresOut,
)
from app.web.documents.ledger import LedgerLineOut, TrailLineOut
from app.web.documents.lists import PageOut
from app.web.documents.plan import PlanOut
from app.web.documents.plans import PlansOut
from app.web.documents.series import SeriesOut, check_asked
from app.web.documents.study_out import StudyOut
from app.web.documents.types import WireOut

MOST_WAVES = 500
"""How many studies of a series are read at most, the newest ones."""

EXPORT_ROWS = 1000
"""Charges that an export reads at a time."""


async def overview(services: Services) -> OverviewOut:
    """The installation at a glance."""
    taken_at, found = await services.figures.overview()
    _, days = await services.figures.days(1, None, None)
    today = datetime.now(UTC).date()
    chained = await chain(services)
    near, dry = found.near, found.dry
    return OverviewOut.made_of(
        found,
        taken_at=taken_at,
        studies={"open": found.states.get("open", 0), "closed": found.states.get("closed", 0)},
        releases={
            "total": chained.number,
            "today": sum(one.releases for one in days.items if one.day == today),
        },
        near_exhaustion={"percent": NEAR_PERCENT, "subjects": near.number, "examples": near.people},
        dry={"percent": DRY_PERCENT, "studies": dry.number, "examples": dry.studies},
        chain=chained,
    )


async def chain(services: Services) -> ChainOut:
    """The head of the hash chain, and the audit that was recorded last."""
    return ChainOut.model_validate(await services.ledger.head())


async def days(services: Services, limit: int, cursor: str | None, study: str | None) -> DaysOut:
    """New contributions and releases a day, newest first."""
    taken_at, page = await services.figures.days(limit, cursor, study)
    return DaysOut.made_of(page, taken_at=taken_at)


async def histogram(services: Services, study: str | None) -> HistogramOut:
    """What people have reserved and spent."""
    taken_at, found = await services.figures.budgets(study)
    return HistogramOut.made_of(found, taken_at=taken_at, study=study)


async def epsilons(services: Services, study: str | None) -> EpsilonsOut:
    """Who chose which epsilon and trusts whom."""
    taken_at, found = await services.figures.epsilons(study)
    return EpsilonsOut.made_of(found, taken_at=taken_at, study=study)


async def studies(
    services: Services, limit: int, cursor: str | None, principal: Principal
) -> StudiesFiguresOut:
    """Studies with how much of them is there and left, by slug."""
    return await with_figures(services, await services.studies.page(limit, cursor, principal))


async def with_figures(services: Services, page: Page[Study]) -> StudiesFiguresOut:
    """A page of studies with how much of them is there and left."""
    slugs = [study.definition.slug for study in page.items]
    snapshot = await services.figures.summaries(slugs)
    return StudiesFiguresOut(
        taken_at=snapshot.at,
        items=[
            StudyFiguresOut.with_figures(
                StudyOut.model_validate(study), snapshot.figures.get(slug) or StudySummary(study=slug)
            )
            for slug, study in zip(slugs, page.items, strict=True)
        ],
        next_cursor=page.next_cursor,
    )


async def plan(services: Services, study: Study, ask: Ask, *, fresh: bool = False) -> PlanOut:
    """Price and accuracy of every estimator that applies; nothing is spent."""
    _, shown = await _planned(services, study, ask, fresh=fresh)
    return shown


async def plans(services: Services, study: Study, asks: Sequence[tuple[Ask, bool]]) -> PlansOut:
    """The plans of several questions, each of which may be `fresh`, and what they take together.

    Raises:
        InvalidRequest: one is not admissible for this study.
    """
    planned = []
    for place, (ask, fresh) in enumerate(asks):
        try:
            planned.append(await _planned(services, study, ask, fresh=fresh))
        except InvalidRequest as refusal:
            raise refusal.within(f"questions.{place}") from None
    return PlansOut.of(planned, study)


async def _planned(services: Services, study: Study, ask: Ask, *, fresh: bool) -> tuple[Planned, PlanOut]:
    reading = Reading.of(study.definition, ask)
    planned = await services.answering(study, reading.ask).plan(study, ask, fresh=fresh)
    ended = study.state in (StudyState.ARCHIVED, StudyState.RETIRED)
    if ended:
        planned = replace(planned, estimators=(), newcomers=None, refusal=None)
    state = study.state if ended else None
    return planned, await run(PlanOut.of, planned, reading, study.definition, ended=state)


async def series(
    services: Services, principal: Principal, study: Study, statistic: str, ask: Ask
) -> SeriesOut:
    """What the published means of a study and those before it in its series say together; nothing is spent.

    Raises:
        InvalidRequest: the question is not admissible for this study.
        NotApplicable: it is in no series, or there are too few answers.
    """
    asked = check_asked(statistic, ask)
    name = study.definition.series
    if name is None:
        raise NotApplicable(f"This study is in no series, and a {statistic} is one of a series.")
    # Refused for what this study has no answer to; others of the series are left out for that.
    Reading.of(study.definition, asked)
    await services.releases.published(study, asked)
    waves: list[Study] = []
    cursor: str | None = None
    while True:
        page = await services.studies.page(EXPORT_ROWS, cursor, principal, name)
        waves += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    order = sorted(waves, key=lambda one: (one.created_at, one.id))
    before = [one for one in order if (one.created_at, one.id) <= (study.created_at, study.id)][-MOST_WAVES:]
    found: list[tuple[Study, StoredRelease | None]] = []
    for one in before:
        try:
            release = await services.releases.published(one, asked)
            with suppress(NotApplicable):
                # What keeps no other level says its own, and what its error is made of says every one.
                release = release and await services.releases.read_at(release, asked.level)
            found.append((one, release))
        except InvalidRequest:
            found.append((one, None))
    return await run(SeriesOut.of_waves, statistic, study, asked, found)


async def ledger_releases(
    services: Services, limit: int, cursor: str | None, study: str | None
) -> PageOut[LedgerReleaseOut]:
    """Releases of all studies, newest first, or of one."""
    page = await services.ledger.releases(limit, cursor, await _study_id(services, study))
    return PageOut[LedgerReleaseOut].model_validate(page)


async def trail(
    services: Services, limit: int, cursor: str | None, action: str | None, target: str | None
) -> PageOut[TrailLineOut]:
    """What admins did, newest first."""
    return PageOut[TrailLineOut].model_validate(await services.ledger.trail(limit, cursor, action, target))


async def charges(
    services: Services, limit: int, cursor: str | None, study: str | None, release: UUID | None
) -> PageOut[LedgerLineOut]:
    """Charges, newest first: what each release cost each member of each cohort."""
    page = await services.ledger.page(limit, cursor, await _study_id(services, study), release)
    return PageOut[LedgerLineOut].model_validate(page)


async def personal_charges(
    services: Services, subject: bytes, limit: int, cursor: str | None, principal: Principal
) -> PageOut[PersonalChargeOut]:
    """What releases cost one person, newest first."""
    page = await services.budgets.charges(subject, limit, cursor, principal.studies)
    return PageOut[PersonalChargeOut].model_validate(page)


def charges_csv(services: Services, study: str | None, release: UUID | None) -> AsyncIterator[str]:
    """All charges as CSV with a header, newest first."""
    return _csv(LedgerLineOut, lambda cursor: charges(services, EXPORT_ROWS, cursor, study, release))


def releases_csv(services: Services, study: str | None) -> AsyncIterator[str]:
    """All releases as CSV with a header, newest first."""
    return _csv(LedgerReleaseOut, lambda cursor: ledger_releases(services, EXPORT_ROWS, cursor, study))


def studies_csv(services: Services, principal: Principal) -> AsyncIterator[str]:
    """The studies that a token may see as CSV with a header, by slug."""

    async def read(cursor: str | None) -> PageOut[StudyOut]:
        page = await services.studies.page(EXPORT_ROWS, cursor, principal)
        return PageOut[StudyOut].model_validate(page)

    return _csv(StudyOut, read)


def budgets_csv(services: Services) -> AsyncIterator[str]:
    """The account of every person as CSV with a header, by the digest of their external id."""

    async def read(cursor: str | None) -> PageOut[AccountOut]:
        return PageOut[AccountOut].model_validate(await services.budgets.page(EXPORT_ROWS, cursor))

    return _csv(AccountOut, read)


async def _csv(
    model: type[WireOut], read: Callable[[str | None], Awaitable[PageOut[Any]]]
) -> AsyncIterator[str]:
    """The pages of a list as CSV, one at a time; a document within a line becomes columns of its own."""
    yield _line(
        [
            name if part is None else f"{name}.{part}"
            for name, field in model.model_fields.items()
            for part in _parts(field.annotation)
        ]
    )
    cursor: str | None = None
    while True:
        page = await read(cursor)
        yield "".join(_line(_cells(model, one.model_dump(mode="json"))) for one in page.items)
        cursor = page.next_cursor
        if cursor is None:
            return


def _parts(kind: object) -> Iterable[str | None]:
    for one in get_args(kind) if isinstance(kind, UnionType) else (kind,):
        if isinstance(one, type) and issubclass(one, WireOut):
            return one.model_fields
    return (None,)


def _cells(model: type[WireOut], document: Mapping[str, Any]) -> list[Any]:
    cells: list[Any] = []
    for name, field in model.model_fields.items():
        for part in _parts(field.annotation):
            value = document[name]
            if part is not None and value is not None:
                value = value[part]
            if isinstance(value, dict):
                value = json.dumps(value, ensure_ascii=False)
            # No label and no number holds a semicolon; labels may hold spaces.
            cells.append(";".join(map(str, value)) if isinstance(value, list) else value)
    return cells


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
