"""Figures over everybody, for admins: made in one pass in the background, and shown with their time.

Whoever looks at figures that have aged starts the next pass and waits for it only briefly. So a small
installation always shows this moment, and a large one answers at once with what it has.
"""

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

from app.core.clock import Clock
from app.core.epsilon import share_of
from app.core.errors import Unavailable
from app.core.study import Trust
from app.services.distributions import Distribution, bins_up_to, distribution, epsilon_edges
from app.services.paging import Page, decode_cursor, page_of
from app.store import figures as store
from app.store.database import Connection, Database
from app.store.figures import PERCENTS, Figure

Row = TypeVar("Row")

FRESH_SECONDS = 1.0
"""Figures that are younger than this are not made again."""

FRESH_COST = 20
"""Figures whose pass took t seconds are kept for at least this many times t."""

PATIENCE_SECONDS = 0.15
"""How long a request waits for a pass while there are figures to show."""

FIRST_PATIENCE_SECONDS = 10.0
"""How long a request waits for the very first pass."""

NEAR_PERCENT = 90
"""Somebody who has reserved this part of their lifetime budget is near exhaustion."""

DRY_PERCENT = 25
"""A study runs dry when fewer of its central people than this can still pay the default share."""

MOST_EXAMPLES = 20
DAYS = 366
EVERYBODY = "everybody"
"""Name of the figures over all studies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Documents of one pass.

    Attributes:
        at: The moment that they show.
        documents: By study slug, or `EVERYBODY`; without those that nobody contributed to.
        renewing: Whether newer ones are being made.
    """

    at: datetime
    documents: Mapping[str, Mapping[str, Any]]
    renewing: bool


class Figures:
    """The figures of one installation."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._making: asyncio.Task[None] | None = None

    async def read(self, kind: str, names: Sequence[str] = (EVERYBODY,)) -> Taken:
        """The figures of a kind, as new as can be had without waiting long.

        Args:
            kind: overview, budgets, epsilons or days.
            names: Slugs, or `EVERYBODY`.

        Raises:
            Unavailable: there are none yet.
        """
        found = await self._read(kind, names)
        if self._is_fresh(found):
            return self._taken(found, kind)
        making = self._renew()
        patience = PATIENCE_SECONDS if found else FIRST_PATIENCE_SECONDS
        done, _ = await asyncio.wait({making}, timeout=patience)
        if done and (error := making.exception()) is not None and not found:
            raise error
        found = await self._read(kind, names)
        if not found:
            raise Unavailable("The figures are being made; ask again in a moment.")
        return self._taken(found, kind)

    async def days(self, limit: int, cursor: str | None, study: str | None) -> tuple[datetime, Page[Any]]:
        """New contributions and releases a day, newest first, and the moment that they show."""
        before = decode_cursor(cursor, date.fromisoformat, date.max).isoformat()
        name = study or EVERYBODY
        taken = await self.read("days", (name,))
        rows = [row for row in taken.documents.get(name, {}).get("days", ()) if row["day"] < before]
        return taken.at, page_of(rows[: limit + 1], limit, lambda row: str(row["day"]))

    async def close(self) -> None:
        """Give up a pass that is under way."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait({self._making})

    async def make(self) -> None:
        """Make all figures now, unless another process is at it."""

        async def body(connection: Connection) -> None:
            if await store.claim_pass(connection):
                await _pass(connection, self._clock)

        await self._database.run_tx("figures.make", body, isolation_level="REPEATABLE READ")

    def _renew(self) -> "asyncio.Task[None]":
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self.make())
            self._making.add_done_callback(_note_failure)
        return self._making

    async def _read(self, kind: str, names: Sequence[str]) -> dict[str, Figure]:
        return await store.read(
            self._database, [key(kind, name) for name in dict.fromkeys((EVERYBODY, *names))]
        )

    def _is_fresh(self, found: Mapping[str, Figure]) -> bool:
        if not found:
            return False
        one = next(iter(found.values()))
        age = (self._clock.now() - one.taken_at).total_seconds()
        return age < max(FRESH_SECONDS, FRESH_COST * one.seconds)

    def _taken(self, found: Mapping[str, Figure], kind: str) -> Taken:
        at = max(figure.taken_at for figure in found.values())
        documents = {
            name.removeprefix(f"{kind}/"): figure.document
            for name, figure in found.items()
            if figure.taken_at == at
        }
        renewing = self._making is not None and not self._making.done()
        return Taken(at=at, documents=documents, renewing=renewing)


def key(kind: str, name: str) -> str:
    """The name under which a document is kept."""
    return f"{kind}/{name}"


def _note_failure(making: "asyncio.Task[None]") -> None:
    """Whoever waits gets its error; that nobody may wait is no fault."""
    if not making.cancelled():
        making.exception()


async def _pass(connection: Connection, clock: Clock) -> None:
    """Read everybody once, and keep every document."""
    started, taken_at = time.monotonic(), clock.now()
    studies = await store.read_studies(connection)
    people = await store.read_subjects(connection, near_percent=NEAR_PERCENT)
    nearest = await store.read_nearest(connection, near_percent=NEAR_PERCENT, limit=MOST_EXAMPLES)
    width, bins = bins_up_to(int(people["most_reserved"]))
    balances = await store.read_balances(connection, width=width, bins=bins)
    holdings = await store.read_holdings(connection)
    days = await store.read_days(connection, taken_at.date() - timedelta(days=DAYS))
    documents = await asyncio.to_thread(
        _documents, studies, people, nearest, balances, holdings, days, width=width, bins=bins
    )
    await store.keep(connection, documents, taken_at=taken_at, seconds=time.monotonic() - started)


def _documents(
    studies: Sequence[Any],
    people: Mapping[str, Any],
    nearest: Sequence[Mapping[str, object]],
    balances: Mapping[str, Any],
    holdings: Sequence[Any],
    days: tuple[list[tuple[int, date, int]], list[tuple[int, date, int]]],
    *,
    width: int,
    bins: int,
) -> dict[str, object]:
    by_study = _grouped(holdings, lambda row: row.study_id)
    contributed, released = (_grouped(part, lambda row: row[0]) for part in days)
    documents: dict[str, object] = {
        key("budgets", EVERYBODY): {
            "people": people["subjects"],
            "reserved": _from_bins(
                balances["reserved_bins"],
                balances["reserved_percentiles"],
                int(people["reserved"]),
                width=width,
                bins=bins,
            ).to_json(),
            "spent": _from_bins(
                balances["spent_bins"],
                balances["spent_percentiles"],
                int(balances["spent"]),
                width=width,
                bins=bins,
            ).to_json(),
        },
        key("epsilons", EVERYBODY): {"bins": _by_epsilon(holdings)},
        key("days", EVERYBODY): {"days": _by_day(*days)},
    }
    dry = []
    for study in studies:
        rows = by_study[study.id]
        summary = _summary(study, rows)
        documents[key("overview", study.slug)] = summary
        documents[key("budgets", study.slug)] = _study_budgets(rows)
        documents[key("epsilons", study.slug)] = {"bins": _by_epsilon(rows)}
        documents[key("days", study.slug)] = {"days": _by_day(contributed[study.id], released[study.id])}
        if study.state == "open" and summary["can_pay_percent"] is not None:
            dry += [summary] if summary["can_pay_percent"] < DRY_PERCENT else []
    states = [study.state for study in studies]
    documents[key("overview", EVERYBODY)] = {
        "subjects": people["subjects"],
        "contributions": sum(row.people for row in holdings),
        "studies": {"open": states.count("open"), "closed": len(states) - states.count("open")},
        "budget": int(people["budget"]),
        "reserved": int(people["reserved"]),
        "spent": int(balances["spent"]),
        "near": {"subjects": people["near"], "examples": list(nearest)},
        "dry": {
            "studies": len(dry),
            "examples": sorted(dry, key=lambda one: one["can_pay_percent"])[:MOST_EXAMPLES],
        },
    }
    return documents


def _grouped(rows: Iterable[Row], of: Callable[[Row], int]) -> dict[int, list[Row]]:
    groups: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        groups[of(row)].append(row)
    return groups


def _from_bins(
    counted: Sequence[Sequence[int]] | None,
    percentiles: Sequence[int] | None,
    total: int,
    *,
    width: int,
    bins: int,
) -> Distribution:
    counts = [0] * bins
    for index, number in counted or ():
        counts[index] = number
    return Distribution(
        width=width,
        counts=tuple(counts),
        percentiles=dict(zip(PERCENTS, percentiles, strict=True)) if percentiles else {},
        total=total,
    )


def _study_budgets(rows: Sequence[Any]) -> dict[str, object]:
    largest = max((row.epsilon for row in rows), default=0)
    return {
        "people": sum(row.people for row in rows),
        "reserved": distribution(
            ((row.epsilon, row.people) for row in rows), PERCENTS, largest=largest
        ).to_json(),
        "spent": distribution(((row.spent, row.people) for row in rows), PERCENTS, largest=largest).to_json(),
    }


def _summary(study: Any, rows: Sequence[Any]) -> dict[str, Any]:
    """How much of a study is there and left. Central people can pay while their rest covers the share."""
    central = [row for row in rows if row.trust == Trust.CENTRAL]
    number = sum(row.people for row in central)
    able = sum(
        row.people
        for row in central
        if 0 < share_of(row.epsilon, study.default_share) <= row.epsilon - row.spent
    )
    return {
        "study": study.slug,
        "people": sum(row.people for row in rows),
        "reserved": sum(row.epsilon * row.people for row in rows),
        "spent": sum(row.spent * row.people for row in rows),
        "can_pay_percent": round(100 * able / number, 1) if number else None,
    }


def _by_epsilon(rows: Sequence[Any]) -> list[dict[str, int]]:
    """People, and what they have reserved and spent, by the personal epsilon that they chose."""
    private = [row for row in rows if row.trust != Trust.PUBLIC]
    bins: list[dict[str, int]] = []
    if private:
        edges = epsilon_edges(min(row.epsilon for row in private), max(row.epsilon for row in private))
        bins = [
            {"lower": lower, "upper": upper, "central": 0, "local": 0, "public": 0, "reserved": 0, "spent": 0}
            for lower, upper in itertools.pairwise(edges)
        ]
        for row in private:
            one = next(one for one in bins if row.epsilon < one["upper"])
            one[row.trust] += row.people
            one["reserved"] += row.epsilon * row.people
            one["spent"] += row.spent * row.people
    known = sum(row.people for row in rows if row.trust == Trust.PUBLIC)
    if known:
        zeros = {"lower": 0, "upper": 0, "central": 0, "local": 0, "reserved": 0, "spent": 0}
        bins.append({**zeros, "public": known})
    return bins


def _by_day(
    contributions: Sequence[tuple[int, date, int]], releases: Sequence[tuple[int, date, int]]
) -> list[dict[str, object]]:
    """One row a day on which anything happened, newest first."""
    found: dict[date, list[int]] = defaultdict(lambda: [0, 0])
    for place, rows in enumerate((contributions, releases)):
        for _, day, number in rows:
            found[day][place] += number
    return [
        {"day": day.isoformat(), "contributions": numbers[0], "releases": numbers[1]}
        for day, numbers in sorted(found.items(), reverse=True)
    ]
