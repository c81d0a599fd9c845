"""Figures over all people, for admins: made in one pass in the background, and shown with their time.

A request for figures that have aged starts the next pass and waits for it only briefly. So a small
installation always shows this moment, and a large one answers at once with what it has.
"""

import asyncio
import itertools
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Generic, TypeVar

from app.core.clock import Clock
from app.core.epsilon import epsilon_of, share_of
from app.core.errors import Unavailable
from app.core.figures import (
    Attention,
    BudgetFigures,
    Daily,
    Day,
    DayFigures,
    Distribution,
    EpsilonBin,
    EpsilonFigures,
    Figure,
    HeldGroup,
    ListedStudy,
    NearlyExhausted,
    Overview,
    Percentile,
    Spread,
    StudySummary,
)
from app.core.records import Balance
from app.core.study import Trust
from app.services.admin.distributions import bins_up_to, distribution, epsilon_edges
from app.services.paging import Page, decode_cursor, page_of
from app.store import figures as store
from app.store.database import Connection, Database
from app.store.figures import PERCENTS, Kept

Row = TypeVar("Row", HeldGroup, Daily)
Kind = TypeVar("Kind", Overview, StudySummary, BudgetFigures, EpsilonFigures, DayFigures)

KINDS: Mapping[type[Figure], str] = {
    Overview: "overview",
    StudySummary: "overview",
    BudgetFigures: "budgets",
    EpsilonFigures: "epsilons",
    DayFigures: "days",
}
"""What the key of a figure begins with."""

FRESH_SECONDS = 1.0
"""Figures that are younger than this are not made again."""

FRESH_COST = 20
"""Figures whose pass took t seconds are kept for at least this many times t."""

PATIENCE_SECONDS = 0.15
"""How long a request waits for a pass while there are figures to show."""

FIRST_PATIENCE_SECONDS = 10.0
"""How long a request waits for the very first pass."""

NEAR_PERCENT = 90
"""A person who has reserved this part of their lifetime budget is near exhaustion."""

DRY_PERCENT = 25
"""A study runs dry when fewer of its central people than this can still pay the default share."""

MOST_EXAMPLES = 20
DAYS = 366
NO_BUDGETS = BudgetFigures(people=0, reserved=Distribution(), spent=Distribution())
"""Of a study without contributions."""

ALL_STUDIES = "*"
"""Name of the figures over all studies: no slug, so that no study can have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Generic[Kind]):
    """Figures of one kind, of one pass.

    Attributes:
        at: The moment that they show.
        figures: By study slug, or `ALL_STUDIES`; without those of studies without contributions.
    """

    at: datetime
    figures: Mapping[str, Kind]


class Figures:
    """The figures of one installation."""

    def __init__(self, database: Database, clock: Clock, delta: int) -> None:
        self._database = database
        self._clock = clock
        self._delta = delta
        self._making: asyncio.Task[None] | None = None

    async def overview(self) -> tuple[datetime, Overview]:
        """The installation at a glance, and the moment that it shows."""
        snapshot = await self._read(Overview, ())
        return snapshot.at, snapshot.figures[ALL_STUDIES]

    async def summaries(self, slugs: Sequence[str]) -> Snapshot[StudySummary]:
        """How much of these studies is there and left."""
        return await self._read(StudySummary, slugs)

    async def budgets(self, study: str | None) -> tuple[datetime, BudgetFigures]:
        """What people have reserved and spent, in one study or in all; and the moment that it shows."""
        snapshot = await self._read(BudgetFigures, (study or ALL_STUDIES,))
        return snapshot.at, snapshot.figures.get(study or ALL_STUDIES, NO_BUDGETS)

    async def epsilons(self, study: str | None) -> tuple[datetime, EpsilonFigures]:
        """Who chose which epsilon, in one study or in all; and the moment that it shows."""
        snapshot = await self._read(EpsilonFigures, (study or ALL_STUDIES,))
        return snapshot.at, snapshot.figures.get(study or ALL_STUDIES, EpsilonFigures(bins=()))

    async def days(self, limit: int, cursor: str | None, study: str | None) -> tuple[datetime, Page[Day]]:
        """New contributions and releases a day, newest first, and the moment that they show."""
        before = decode_cursor(cursor, date.fromisoformat, date.max)
        snapshot = await self._read(DayFigures, (study or ALL_STUDIES,))
        found = snapshot.figures.get(study or ALL_STUDIES, DayFigures(days=()))
        days = [one for one in found.days if one.day < before]
        return snapshot.at, page_of(days[: limit + 1], limit, lambda one: one.day.isoformat())

    async def _read(self, kind: type[Kind], names: Sequence[str]) -> Snapshot[Kind]:
        """The figures of a kind, as new as can be had without waiting long.

        Raises:
            Unavailable: there are none yet.
        """
        found = await self._kept(kind, names)
        if self._is_fresh(found):
            return _newest(found, kind)
        making = self._renew()
        patience = PATIENCE_SECONDS if found else FIRST_PATIENCE_SECONDS
        done, _ = await asyncio.wait({making}, timeout=patience)
        if done and (error := making.exception()) is not None and not found:
            raise error
        found = await self._kept(kind, names)
        if not found:
            raise Unavailable("The figures are being made; ask again in a moment.")
        return _newest(found, kind)

    async def close(self) -> None:
        """Give up a pass that is under way."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait({self._making})

    async def make(self) -> None:
        """Make all figures now, unless another process is at it."""

        async def body(connection: Connection) -> None:
            if await store.claim_pass(connection):
                await _pass(connection, self._clock, self._delta)

        await self._database.run_tx("figures.make", body, isolation_level="REPEATABLE READ")

    def _renew(self) -> "asyncio.Task[None]":
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self.make())
            self._making.add_done_callback(_note_failure)
        return self._making

    async def _kept(self, kind: type[Figure], names: Sequence[str]) -> dict[str, Kept]:
        """What is kept of a kind, by the names of studies. The whole installation tells that there is any."""
        wanted = {key(KINDS[kind], name): name for name in (ALL_STUDIES, *names)}
        found = await store.read(self._database, list(wanted))
        return {wanted[name]: kept for name, kept in found.items()}

    def _is_fresh(self, found: Mapping[str, Kept]) -> bool:
        if not found:
            return False
        one = next(iter(found.values()))
        age = (self._clock.now() - one.taken_at).total_seconds()
        return age < max(FRESH_SECONDS, FRESH_COST * one.seconds)


def _newest(found: Mapping[str, Kept], kind: type[Kind]) -> Snapshot[Kind]:
    """The newest pass only: a study without contributions keeps none of it."""
    at = max(kept.taken_at for kept in found.values())
    figures = {
        name: kept.figure
        for name, kept in found.items()
        if kept.taken_at == at and isinstance(kept.figure, kind)
    }
    return Snapshot(at=at, figures=figures)


def key(kind: str, name: str) -> str:
    """The name under which a document is kept."""
    return f"{kind}/{name}"


def _note_failure(making: "asyncio.Task[None]") -> None:
    """A waiting request gets its error; a pass for which no request waits may fail quietly."""
    if not making.cancelled():
        making.exception()


async def _pass(connection: Connection, clock: Clock, delta: int) -> None:
    """Read all people once, and keep every document; mu^2 is read at the delta [1e-12]."""
    started, taken_at = time.monotonic(), clock.now()
    studies = await store.read_studies(connection)
    totals = await store.read_totals(connection, near_percent=NEAR_PERCENT)
    nearest = await store.read_nearest(
        connection, near_percent=NEAR_PERCENT, limit=MOST_EXAMPLES, delta=delta
    )
    width, bins = bins_up_to(totals.most_reserved)
    reserved, spent = await store.read_balances(connection, width=width, bins=bins)
    holdings = await store.read_holdings(connection)
    days = await store.read_days(connection, taken_at.date() - timedelta(days=DAYS))
    budgets = BudgetFigures(
        people=totals.subjects,
        reserved=_from_bins(reserved, width=width, bins=bins),
        spent=_from_bins(spent, width=width, bins=bins),
    )
    near = Attention(number=totals.near, people=tuple(map(_read, nearest)))
    balances = (
        Balance(total=totals.budget, reserved=totals.reserved, spent=spent.total),
        Balance(
            total=totals.gaussian_budget,
            reserved=totals.gaussian_reserved,
            spent=await store.read_spent_mu2(connection),
        ),
    )
    figures = await asyncio.to_thread(
        _figures, studies, totals.subjects, balances, near, budgets, holdings, *days
    )
    await store.keep(connection, figures, taken_at=taken_at, seconds=time.monotonic() - started)


def _read(person: NearlyExhausted) -> NearlyExhausted:
    """With amounts as epsilons."""
    return replace(
        person,
        total=epsilon_of(person.total, person.delta),
        reserved=epsilon_of(person.reserved, person.delta),
    )


def _figures(
    studies: Sequence[ListedStudy],
    subjects: int,
    balances: tuple[Balance, Balance],
    near: Attention,
    budgets: BudgetFigures,
    holdings: Sequence[HeldGroup],
    contributions: Sequence[Daily],
    releases: Sequence[Daily],
) -> dict[str, Figure]:
    """Every figure to keep, by its key."""
    by_study = _by_study(holdings)
    contributed, released = _by_study(contributions), _by_study(releases)
    figures: dict[str, Figure] = {}

    def add(name: str, *parts: Figure) -> None:
        figures.update({key(KINDS[type(part)], name): part for part in parts})

    dry = []
    for study in studies:
        rows = by_study[study.id]
        summary = _summary(study, rows)
        add(
            study.slug,
            summary,
            _study_budgets(rows),
            _by_epsilon(rows),
            _by_day(contributed[study.id], released[study.id]),
        )
        if (
            study.state == "open"
            and summary.can_pay_percent is not None
            and summary.can_pay_percent < DRY_PERCENT
        ):
            dry.append(summary)
    driest = sorted(dry, key=lambda one: one.can_pay_percent or 0)[:MOST_EXAMPLES]
    overview = Overview(
        subjects=subjects,
        contributions=sum(row.people for row in holdings),
        states=Counter(study.state for study in studies),
        epsilon=balances[0],
        mu2=balances[1],
        near=near,
        dry=Attention(number=len(dry), studies=tuple(driest)),
    )
    add(ALL_STUDIES, overview, budgets, _by_epsilon(holdings), _by_day(contributions, releases))
    return figures


def _by_study(rows: Iterable[Row]) -> dict[int, list[Row]]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.study_id].append(row)
    return groups


def _from_bins(spread: Spread, *, width: int, bins: int) -> Distribution:
    return Distribution(
        width=width,
        counts=tuple(spread.bins.get(place, 0) for place in range(bins)),
        percentiles=tuple(
            Percentile(percent=percent, epsilon=amount)
            for percent, amount in zip(PERCENTS, spread.percentiles, strict=False)
        ),
        total=spread.total,
    )


def _study_budgets(rows: Sequence[HeldGroup]) -> BudgetFigures:
    largest = max((row.epsilon for row in rows), default=0)
    return BudgetFigures(
        people=sum(row.people for row in rows),
        reserved=distribution(((row.reserved, row.people) for row in rows), PERCENTS, largest=largest),
        spent=distribution(((row.spent, row.people) for row in rows), PERCENTS, largest=largest),
    )


def _summary(study: ListedStudy, rows: Sequence[HeldGroup]) -> StudySummary:
    """How much of a study is there and left. Central people can pay while their rest covers the share."""
    central = [row for row in rows if row.trust == Trust.CENTRAL]
    number = sum(row.people for row in central)
    able = sum(
        row.people
        for row in central
        if 0 < share_of(row.amount, study.default_share) <= row.amount_reserved - row.amount_spent
    )
    return StudySummary(
        study=study.slug,
        people=sum(row.people for row in rows),
        reserved=sum(row.reserved * row.people for row in rows),
        spent=sum(row.spent * row.people for row in rows),
        can_pay_percent=round(100 * able / number, 1) if number else None,
    )


def _by_epsilon(rows: Sequence[HeldGroup]) -> EpsilonFigures:
    """People, and what they have reserved and spent, by the personal epsilon that they chose."""
    private = [row for row in rows if row.trust != Trust.PUBLIC]
    bins: list[EpsilonBin] = []
    if private:
        edges = epsilon_edges(min(row.epsilon for row in private), max(row.epsilon for row in private))
        held: list[list[HeldGroup]] = [[] for _ in edges[1:]]
        for row in private:
            held[bisect_right(edges, row.epsilon) - 1].append(row)
        bins = [
            EpsilonBin(
                lower=lower,
                upper=upper,
                central=sum(row.people for row in rows if row.trust == Trust.CENTRAL),
                local=sum(row.people for row in rows if row.trust == Trust.LOCAL),
                reserved=sum(row.reserved * row.people for row in rows),
                spent=sum(row.spent * row.people for row in rows),
            )
            for (lower, upper), rows in zip(itertools.pairwise(edges), held, strict=True)
        ]
    known = sum(row.people for row in rows if row.trust == Trust.PUBLIC)
    if known:
        bins.append(EpsilonBin(lower=0, upper=0, public=known))
    return EpsilonFigures(bins=tuple(bins))


def _by_day(contributions: Sequence[Daily], releases: Sequence[Daily]) -> DayFigures:
    """One entry for each day on which something happened, newest first."""
    contributed, released = Counter[date](), Counter[date]()
    for row in contributions:
        contributed[row.day] += row.number
    for row in releases:
        released[row.day] += row.number
    return DayFigures(
        days=tuple(
            Day(day=day, contributions=contributed[day], releases=released[day])
            for day in sorted({*contributed, *released}, reverse=True)
        )
    )
