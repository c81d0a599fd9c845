"""Fixing where devices of local people report, and checking that it is what the searches say."""

import json
from collections.abc import Sequence
from uuid import UUID

from app.core.errors import FieldError, InvalidRequest, ServiceError
from app.core.reporting_range import ReportingRange
from app.core.session import SessionProtocol
from app.sessions.documents import from_document
from app.sessions.found_reporting import found, refuse_unordered
from app.sessions.search import Search
from app.store import sessions, studies
from app.store.sql import Connection

SAME = 1e-9
"""How far a part of people may be off that is computed again."""


async def read_found(connection: Connection, study_id: int, searches: Sequence[UUID]) -> ReportingRange:
    """The reporting range between two finished searches of a study.

    Args:
        connection: In a transaction.
        study_id: Whose searches.
        searches: The one for its lower end, and the one for its upper end.

    Raises:
        InvalidRequest: one of them is no finished search for a quantile, the one for the upper end looked for
            no higher one, or they found no smaller range.
    """
    read = await _read(connection, study_id, searches)
    refuse_unordered(read)
    return found(read, searches)


async def _read(connection: Connection, study_id: int, searches: Sequence[UUID]) -> list[Search]:
    records = await sessions.read_finished(connection, study_id, SessionProtocol.QUANTILE)
    by_id = {record.definition.id: record for record in records}
    unknown = [
        FieldError(name, "is no finished search for a quantile of this study")
        for name, one in zip(("lower", "upper"), searches, strict=True)
        if one not in by_id
    ]
    if unknown:
        raise InvalidRequest.naming(unknown)
    return [from_document(Search, json.loads(by_id[one].document)) for one in searches]


async def broken(connection: Connection) -> list[dict[str, object]]:
    """The studies whose reporting range is not what its searches say.

    Which quantiles these looked for does not matter here: a range was fixed before that was checked.
    """
    wrong: list[dict[str, object]] = []
    for study in await studies.read_narrowed(connection):
        kept = study.definition.reporting_range
        assert kept is not None
        try:
            searches = [UUID(one) for one in kept.searches]
            due = found(await _read(connection, study.id, searches), searches)
            holds = due.where == kept.where and abs(due.outside - kept.outside) <= SAME
        except (ServiceError, ValueError):
            holds = False
        if not holds or not study.definition.may_narrow:
            wrong.append({"study": study.definition.slug, "reporting_range": kept.text})
    return wrong
