"""The noisy sums of the same values, whichever questions paid for them, which one answer combines."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.core.piece import Piece
from app.core.release import Draft
from app.store.pieces import COLUMNS, PieceColumns, piece_of
from app.store.releases import SAID, WHOLE_MEAN, CohortsChanged
from app.store.sql import Connection, Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What there is to be combined.

    Attributes:
        releases: The newest answer of each chain of steps, and every answer with noise of its own; by their
            places in the hash chain.
        pieces: Their noisy sums.
        newest: Number of the newest release that left one of them.
        noises: Of answers with noise of their own: what their release says of it.
        charged: What these releases say that they charged one person at most [the study's currency].
    """

    releases: tuple[UUID, ...]
    pieces: tuple[Piece, ...]
    newest: int
    noises: tuple[Mapping[str, Any], ...]
    charged: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    release: UUID
    at: int
    family: bytes
    number: int
    noise: Mapping[str, Any] | None
    most: int
    columns: PieceColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class _News:
    newest: int | None
    means: bool
    others: bool
    combined: int
    ended: bool


# Of an answer with noise of its own there are sums only if they are of all people: see
# `app.services.statistics.kept_sums`. Of a study of one value no document is read for what they are sums of.
OF_VALUES = f"""(release.share_before IS NULL OR {WHOLE_MEAN} AND {SAID}->'by' IS NULL)
      AND (CAST(:measure AS text) = '' OR {SAID}->>'measure' = CAST(:measure AS text))"""

READ_SOURCES = Sql.of(_Row)(f"""
    SELECT release.id AS release, release.number AS at, piece.family, piece.number, {COLUMNS},
           CASE WHEN release.share_before IS NULL THEN release.noise - 'measured' END AS noise,
           release.epsilon_max AS most
    FROM piece JOIN release ON release.id = piece.release_id
    WHERE piece.study_id = :study_id AND {OF_VALUES}
    ORDER BY release.number, piece.number
""")

READ_NEWS = Sql.of(_News)(f"""
    SELECT max(release.number) AS newest,
           coalesce(bool_or(release.estimator <> 'describe'), false) AS means,
           coalesce(count(DISTINCT piece.family) > 1
                    OR bool_or(release.family <> :family OR release.question <> :question), false) AS others,
           (SELECT coalesce(max(number), 0) FROM release
            WHERE study_id = :study_id AND family = :combined) AS combined,
           (SELECT state IN ('archived', 'retired') FROM study WHERE id = :study_id) AS ended
    FROM piece JOIN release ON release.id = piece.release_id
    WHERE piece.study_id = :study_id AND {OF_VALUES}
""")


# Of an answer where it is secret who is there no cohorts are kept.
READ_THERE = Sql.of(bool)(f"""
    SELECT EXISTS (
        SELECT FROM piece JOIN release ON release.id = piece.release_id
        WHERE piece.study_id = :study_id AND {OF_VALUES}
          AND (piece.cohorts = '{{}}' OR EXISTS (
              SELECT FROM cohort
              WHERE cohort.study_id = :study_id AND cohort.id = ANY(piece.cohorts) AND cohort.count > 0))
    )
""")


async def has_news(
    connection: Connection,
    study_id: int,
    measure: str,
    family: bytes,
    combined: bytes,
    question: bytes | None = None,
) -> bool:
    """Whether answers came after the last combination, and there is more than one answer to the question.

    Not where all have left who are in one: then there is no answer without asking others. Nor where only
    descriptions paid: the first mean is as accurate as its own share makes it, not as a part of theirs does.

    Args:
        connection: In a transaction.
        study_id: The study; one that has ended has no news.
        measure: Of several the one that the question is about; empty in a study of one value.
        family: The question.
        combined: What its combinations are kept under.
        question: Its digest, where answers that took other shares do not stand for it.
    """
    news = await READ_NEWS.one(
        connection, study_id=study_id, measure=measure, family=family, combined=combined, question=question
    )
    if news.newest is None or not (news.means and news.others) or news.ended or news.newest <= news.combined:
        return False
    return await READ_THERE.one(connection, study_id=study_id, measure=measure)


async def read_sources(connection: Connection, study_id: int, measure: str) -> Sources:
    """All that there is to be combined; of a study of several measures, about the one given."""
    rows = await READ_SOURCES.all(connection, study_id=study_id, measure=measure)
    last = {row.family: row.release for row in rows}
    return Sources(
        releases=tuple(last.values()),
        pieces=tuple(piece_of(row.number, row.columns) for row in rows),
        newest=max((row.at for row in rows), default=0),
        noises=tuple(row.noise for row in rows if row.noise is not None),
        charged=tuple(row.most for row in rows if row.noise is not None),
    )


async def check_newest(connection: Connection, draft: Draft, measure: str) -> None:
    """Make sure that nothing more about a measure is there to be combined. Call with the chain locked.

    Raises:
        CohortsChanged: another answer was quicker: plan again.
    """
    if draft.newest is None:
        return
    kept = b"" if draft.asked is None else draft.asked.family
    news = await READ_NEWS.one(
        connection, study_id=draft.study_id, measure=measure, family=kept, combined=kept, question=None
    )
    if news.newest != draft.newest:
        raise CohortsChanged
