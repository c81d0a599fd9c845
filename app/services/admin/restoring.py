"""After a restore: what an export of the ledger knows and the database does not.

A release that was published after the backup was made is known to the world, and its charges are forgotten.
So is the price of an answer to a session. Who took part is not in an export, so the ledger cannot be mended
person by person: the study is retired instead. Then no one can be asked again there, and all that people
reserved there counts as spent, which is at least what they have spent. Roots of the tree of releases may have
been signed with what is lost, so that tree is not continued: what is published next begins another one.
"""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import partial
from operator import itemgetter
from typing import Any
from uuid import UUID

from app.core.clock import Clock
from app.core.epsilon import epsilon_to_json
from app.core.study import StudyState
from app.services.admin.ending import end
from app.store import exports as store
from app.store import journal, studies, tree
from app.store.database import Connection, Database

RELEASES_AT_ONCE = 500

ACTOR = "command line"
"""Who checks, in the trail of what admins did."""

CSV_START = "number,release,study,"
"""How the ledger's CSV over HTTP begins."""


class UnreadableExport(Exception):
    """The file is no export; the message says where."""


class RetireOutcome(StrEnum):
    """What became of a study of which something was lost."""

    RETIRED = "retired"
    RETIRED_BEFORE = "retired before"
    ARCHIVED_BEFORE = "archived before"
    """What people had reserved was freed before anything was known to be lost."""
    UNKNOWN = "unknown"
    """The token was made after the backup, so there is nothing to retire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of a list over HTTP, the newest release first.

    Attributes:
        last: The release at its end.
        oldest, newest: When its releases were made.
        goes_on: Whether more releases follow on another page.
    """

    last: UUID
    oldest: datetime
    newest: datetime
    goes_on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """What was published and answered.

    Attributes:
        releases: The study of each release.
        answers: The study of each session, and how many answers it had.
        pages: Of lists over HTTP.
    """

    releases: Mapping[UUID, str]
    answers: Mapping[UUID, tuple[str, int]]
    pages: Sequence[Page] = ()

    @classmethod
    def together(cls, exports: Sequence["Export"]) -> "Export":
        """What several exports hold, in any order; of a session the most answers, which only become more."""
        answers: dict[UUID, tuple[str, int]] = {}
        for one in exports:
            for session, (study, count) in one.answers.items():
                answers[session] = max(
                    answers.get(session, (study, count)), (study, count), key=itemgetter(1)
                )
        return cls(
            releases={release: study for one in exports for release, study in one.releases.items()},
            answers=answers,
            pages=[page for one in exports for page in one.pages],
        )

    def is_cut(self, lost: Mapping[str, "Lost"]) -> bool:
        """Whether a page ends with a lost release and what follows it is missing: more may be lost there."""
        gone = {release for found in lost.values() for release in found.releases}
        return any(
            page.goes_on
            and page.last in gone
            and not any(other.newest <= page.oldest for other in self.pages if other is not page)
            for page in self.pages
        )


@dataclass(slots=True, kw_only=True)
class Lost:
    """What the database has forgotten of one study.

    Attributes:
        releases: Releases that it does not hold.
        sessions: Sessions that it does not hold, or with fewer answers.
        outcome: What became of the study.
    """

    releases: list[UUID] = field(default_factory=list)
    sessions: list[UUID] = field(default_factory=list)
    outcome: RetireOutcome = RetireOutcome.UNKNOWN

    def to_json(self) -> dict[str, object]:
        """For the audit trail and for scripts."""
        return {
            "releases": [str(one) for one in self.releases],
            "sessions": [str(one) for one in self.sessions],
            "outcome": self.outcome.value,
        }


async def export_lines(database: Database, after: int) -> AsyncIterator[str]:
    """Every release after a number, and all sessions, each a line of JSON for `read_export`."""
    while True:
        page = partial(store.page_releases, after=after, limit=RELEASES_AT_ONCE)
        rows = await database.run_tx("export.releases", page)
        for row in rows:
            shown = {name: value for name, value in asdict(row).items() if name not in ("cost", "delta")}
            yield _line(
                shown
                | {
                    "epsilon": epsilon_to_json(row.epsilon),
                    "mu2": None if row.mu2 is None else epsilon_to_json(row.mu2),
                }
            )
        if len(rows) < RELEASES_AT_ONCE:
            break
        after = rows[-1].number
    for session in await database.run_tx("export.sessions", store.read_answers):
        yield _line(asdict(session))


def read_export(text: str) -> Export:
    """Read lines of `export_lines`, lists of releases as the HTTP API gives them, or the ledger's CSV.

    Raises:
        UnreadableExport: it is none of them, or it is empty.
    """
    releases: dict[UUID, str] = {}
    answers: dict[UUID, tuple[str, int]] = {}
    pages: list[Page] = []
    for number, entry in enumerate(_entries(text, pages), start=1):
        match entry:
            case {"session": str(session), "study": str(study), "answers": int(count)}:
                known = _id(session, number)
                # Exports are put together in any order, and answers only become more.
                count = max(count, answers[known][1]) if known in answers else count
                answers[known] = (_slug(study, number), count)
            case {"release": str(release), "study": str(study)}:
                releases[_id(release, number)] = _slug(study, number)
            case {"id": str(release), "study": str(study), "statistic": _}:
                releases[_id(release, number)] = _slug(study, number)
            case _:
                raise UnreadableExport(f"entry {number} is neither a release nor a session")
    if not releases and not answers:
        raise UnreadableExport("it holds no release and no session")
    return Export(releases=releases, answers=answers, pages=pages)


async def check(database: Database, clock: Clock, export: Export) -> dict[str, Lost]:
    """Retire every study of which the database has forgotten something; doing it again changes nothing.

    Returns:
        What is lost, by study; empty where the database knows the whole export.
    """
    lost = await database.run_tx("restore.compare", lambda c: _compare(c, export))
    for slug, found in lost.items():
        affected = partial(_retire, clock=clock, slug=slug, lost=found)
        found.outcome = await database.run_tx("restore.retire", affected)
    if any(found.releases for found in lost.values()):
        await database.run_tx("restore.tree", tree.forget)
    detail = {
        "releases": len(export.releases),
        "sessions": len(export.answers),
        "lost": {slug: found.to_json() for slug, found in lost.items()},
    }
    await database.run_tx(
        "restore.note",
        lambda c: journal.record(c, clock.now(), ACTOR, "restore.check", "ledger", **detail),
    )
    return lost


async def _compare(connection: Connection, export: Export) -> dict[str, Lost]:
    known = await store.known_releases(connection, export.releases.keys())
    answers = {row.session: row.answers for row in await store.read_answers(connection)}
    lost: dict[str, Lost] = {}
    for release, study in export.releases.items():
        if release not in known:
            lost.setdefault(study, Lost()).releases.append(release)
    for session, (study, count) in export.answers.items():
        if answers.get(session, -1) < count:
            lost.setdefault(study, Lost()).sessions.append(session)
    return lost


async def _retire(connection: Connection, *, clock: Clock, slug: str, lost: Lost) -> RetireOutcome:
    study = await studies.read_study(connection, slug)
    if study is None:
        return RetireOutcome.UNKNOWN
    detail = {"reason": "restore-check", **lost.to_json()}
    if await end(connection, study, StudyState.RETIRED, clock=clock, actor=ACTOR, detail=detail):
        return RetireOutcome.RETIRED
    archived = study.state is StudyState.ARCHIVED
    return RetireOutcome.ARCHIVED_BEFORE if archived else RetireOutcome.RETIRED_BEFORE


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(dict(row), default=str) + "\n"


def _entries(text: str, pages: list[Page]) -> Iterator[object]:
    """Each entry of an export; pages of lists are added to `pages`."""
    if text.startswith(CSV_START):
        yield from csv.DictReader(io.StringIO(text))
        return
    for document in _documents(text):
        match document:
            case {"items": list(items), "next_cursor": cursor}:
                yield from items
                if items:
                    pages.append(_page(items, goes_on=cursor is not None))
            case {"items": list(items)} | list(items):
                yield from items
            case _:
                yield document


def _documents(text: str) -> Iterator[object]:
    """One JSON document, or one in each line."""
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                yield json.loads(line)
        except (ValueError, RecursionError):
            # What wrote it was stopped: its release may be lost, and only a person can find it elsewhere.
            torn = 1 < number == len(lines) and not text.endswith("\n")
            hint = (
                ", and the file breaks off there: look for what it was in another export, and remove it here"
            )
            raise UnreadableExport(f"line {number} is not JSON{hint if torn else ''}") from None


def _page(items: Sequence[Any], *, goes_on: bool) -> Page:
    """A page whose items were found to be releases."""
    try:
        made = [datetime.fromisoformat(item["created_at"]) for item in items]
    except (KeyError, TypeError, ValueError):
        raise UnreadableExport("a list has a release without the time when it was made") from None
    last = items[-1].get("release", items[-1].get("id"))
    return Page(last=_id(last, len(items)), oldest=min(made), newest=max(made), goes_on=goes_on)


def _id(text: str, number: int) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise UnreadableExport(f"entry {number} has no id of a release or session") from None


def _slug(study: str, number: int) -> str:
    if not (study.isascii() and study.isprintable()):
        raise UnreadableExport(f"entry {number} names no study")
    return study
