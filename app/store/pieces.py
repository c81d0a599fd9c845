"""Pieces of questions: read to plan a step, written with the release that takes it.

What is kept beside a release is the noisy sum, which is an output of the mechanism, and public weights. The
noise itself is never stored; it is the difference to sums that lose a person's part when they withdraw.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from uuid import UUID

from app.core.piece import LastStep, Members, Piece, Taken, family_apart
from app.core.release import Draft
from app.core.study import Currency
from app.store.arrays import array_literal
from app.store.releases import CohortsChanged
from app.store.sql import Connection, Sql

READ_LAST_STEP = Sql.of(LastStep)("""
    SELECT id AS release, share, epoch, count(*) OVER () AS steps FROM release
    WHERE study_id = :study_id AND family = :family AND share_before IS NOT NULL
    ORDER BY number DESC LIMIT 1
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A piece, and what the newest release that changed it says of it.

    Attributes:
        release: That release, or the one that the piece names.
        number: The piece's.
        said: Its digest by the release; None where no release names it.
        kept: Its digest as it is stored; None where it is missing, or names another release.
        piece: As it is stored.
        estimator: Of the release.
        apart: Whether the sums of an answer with noise of its own are kept, which is priced by that answer.
        currency: Of its study.
    """

    release: UUID
    number: int
    said: str | None
    kept: str | None
    piece: Piece | None
    estimator: str
    apart: bool
    currency: Currency


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceColumns:
    """A piece apart from its number, its members as arrays."""

    unit: float
    now: int
    base: int
    scale: float
    sums: tuple[int, ...]
    refinable: bool
    cohorts: Sequence[int]
    weights: Sequence[int]
    counts: Sequence[int]
    charged: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptRow:
    step: LastStep
    number: int | None
    start: int | None
    columns: PieceColumns | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SealedRow:
    release: UUID
    number: int
    said: str | None
    estimator: str
    apart: bool
    delta: int
    columns: PieceColumns | None


# An answer with noise of its own keeps its sums apart, see `app.core.piece.family_apart`.
KEPT_UNDER = """CASE WHEN release.share_before IS NULL
               THEN sha256(uuid_send(release.id)) ELSE release.family END"""

MEMBERS = """piece CROSS JOIN unnest(cohorts, weights, counts, charged)
            AS member (cohort_id, weight, count, charged)"""
"""Every cohort of every piece, a row each."""

COLUMNS = """piece.unit, piece.share AS now, piece.base, piece.scale, piece.sums, piece.refinable,
           piece.cohorts, piece.weights, piece.counts, piece.charged"""

# One statement, so that pieces are those of the step that is read with them. New pieces get the next numbers:
# steps are looked at from the first one on, until all pieces have been drawn.
READ_KEPT = Sql.of(_KeptRow)(f"""
    WITH RECURSIVE looked AS (
        SELECT CAST(0 AS bigint) AS step, 0 AS drawn
        UNION ALL
        SELECT next.step, greatest(looked.drawn, next.drawn)
        FROM looked CROSS JOIN LATERAL (
            SELECT number AS step,
                   (SELECT max(said.number) FROM jsonb_to_recordset(noise->'pieces') AS said (number int))
                       AS drawn
            FROM release WHERE study_id = :study_id AND family = :family AND share_before IS NOT NULL
              AND release.number > looked.step
            ORDER BY release.number LIMIT 1
        ) AS next
        WHERE looked.drawn < (SELECT max(number) FROM piece WHERE study_id = :study_id AND family = :family)
    )
    SELECT last.release, last.share, last.epoch, last.steps, piece.number, drawn.start, {COLUMNS}
    FROM (SELECT id AS release, share, epoch, count(*) OVER () AS steps FROM release
          WHERE study_id = :study_id AND family = :family AND share_before IS NOT NULL
          ORDER BY number DESC LIMIT 1) AS last
    LEFT JOIN piece ON piece.study_id = :study_id AND piece.family = :family
    LEFT JOIN (SELECT said.number, min(said.share) AS start
               FROM looked JOIN release ON release.number = looked.step
               CROSS JOIN jsonb_to_recordset(release.noise->'pieces') AS said (number int, share int)
               GROUP BY said.number) AS drawn ON drawn.number = piece.number
    ORDER BY piece.number
""")

# The newest release that changed a piece says what it is. Pieces of which no release says anything come too.
# Sums that are kept apart are lost where an older version has dropped the table: nothing is drawn given them.
READ_SEALED = Sql.of(_SealedRow)(f"""
    SELECT coalesce(said.release, kept.release_id) AS release, coalesce(said.number, kept.number) AS number,
           said.digest AS said, of.estimator, of.share_before IS NULL AS apart, study.delta,
           kept.unit, kept.share AS now, kept.base, kept.scale, kept.sums, kept.refinable,
           kept.cohorts, kept.weights, kept.counts, kept.charged
    FROM (
        SELECT DISTINCT ON (release.study_id, 2, place.number)
               release.study_id, {KEPT_UNDER} AS family, place.number, place.digest, release.id AS release,
               release.share_before IS NULL AS apart
        FROM release CROSS JOIN jsonb_to_recordset(
            release.noise->CASE WHEN release.share_before IS NULL THEN 'apart' ELSE 'pieces' END
        ) AS place (number int, digest text)
        ORDER BY release.study_id, 2, place.number, release.number DESC
    ) said FULL JOIN piece kept ON (kept.study_id, kept.family, kept.number, kept.release_id)
            = (said.study_id, said.family, said.number, said.release)
    JOIN release of ON of.id = coalesce(said.release, kept.release_id) JOIN study ON study.id = of.study_id
    WHERE kept.number IS NOT NULL OR NOT said.apart
""")

PIECES_AT_ONCE = 100

# What is cast of text is cast once, not for each piece.
WRITE_PIECES = Sql("""
    WITH member AS MATERIALIZED (
        SELECT CAST(CAST(:cohorts AS text) AS bigint[]) AS cohorts,
               CAST(CAST(:weights AS text) AS bigint[]) AS weights,
               CAST(CAST(:counts AS text) AS bigint[]) AS counts,
               CAST(CAST(:charged AS text) AS bigint[]) AS charged
    )
    INSERT INTO piece (study_id, family, number, unit, share, base, scale, sums, refinable, release_id,
                       cohorts, weights, counts, charged)
    SELECT :study_id, :family, number, unit, share, base, scale,
           (CAST(:sums AS numeric[]))[(place - 1) * CAST(:each AS int) + 1 : place * CAST(:each AS int)],
           refinable, :release_id,
           cohorts[start : stop], weights[start : stop], counts[start : stop], charged[start : stop]
    FROM unnest(CAST(:numbers AS int[]), CAST(:units AS float8[]), CAST(:shares AS int[]),
                CAST(:bases AS int[]), CAST(:scales AS float8[]), CAST(:refinable AS boolean[]),
                CAST(:starts AS int[]), CAST(:stops AS int[]))
        WITH ORDINALITY AS changed (number, unit, share, base, scale, refinable, start, stop, place)
         CROSS JOIN member
    ON CONFLICT (study_id, family, number) DO UPDATE
    SET share = excluded.share, scale = excluded.scale, sums = excluded.sums,
        refinable = excluded.refinable, release_id = excluded.release_id, charged = excluded.charged
""")


async def last_step(connection: Connection, study_id: int, family: bytes) -> LastStep | None:
    """The newest step of a question's shares; None before the first one."""
    return await READ_LAST_STEP.maybe(connection, study_id=study_id, family=family)


async def read_kept(
    connection: Connection, study_id: int, family: bytes
) -> tuple[LastStep | None, list[Piece]]:
    """The newest step of a question's shares, and every piece of the question as that left it, by number."""
    rows = await READ_KEPT.all(connection, study_id=study_id, family=family)
    pieces = [
        replace(piece_of(row.number, row.columns), start=row.start or row.columns.now)
        for row in rows
        if row.number is not None and row.columns is not None
    ]
    return (rows[0].step if rows else None), pieces


async def sealed(connection: Connection) -> AsyncIterator[Sealed]:
    """Every piece of every question, and each that a release names and that is not there."""
    async for part in READ_SEALED.parts(connection, PIECES_AT_ONCE):
        for row in part:
            piece = None if row.columns is None else piece_of(row.number, row.columns)
            yield Sealed(
                release=row.release,
                number=row.number,
                said=row.said,
                kept=None if piece is None else piece.digest(),
                piece=piece,
                estimator=row.estimator,
                apart=row.apart,
                currency=Currency.at(row.delta),
            )


def piece_of(number: int, columns: PieceColumns) -> Piece:
    """A piece as it is stored."""
    members = {
        "cohort_id": columns.cohorts,
        "weight": columns.weights,
        "count": columns.counts,
        "charged": columns.charged,
    }
    return Piece(
        number=number,
        unit=columns.unit,
        share=columns.now,
        base=columns.base,
        scale=columns.scale,
        sums=columns.sums,
        refinable=columns.refinable,
        members=Members(members, len(columns.cohorts)),
    )


async def check_last(connection: Connection, draft: Draft, taken: Taken) -> None:
    """Make sure that a step is the next one. Call with the chain locked.

    Raises:
        CohortsChanged: another step was quicker: plan again. Its noise must be drawn given the newest draw.
    """
    family = b"" if draft.asked is None else draft.asked.family
    if await last_step(connection, draft.study_id, family) != taken.before:
        raise CohortsChanged


async def write(connection: Connection, draft: Draft) -> None:
    """Store the sums that an answer leaves, in the transaction that publishes it."""
    if draft.apart is not None:
        await _write(connection, draft, family_apart(draft.id), [draft.apart])
    if draft.taken is not None and draft.asked is not None and draft.taken.changed:
        await _write(connection, draft, draft.asked.family, draft.taken.changed)


async def _write(connection: Connection, draft: Draft, family: bytes, changed: Sequence[Piece]) -> None:
    # Members of all pieces come one after the other; those of a piece are from a start to a stop. Of sums
    # each piece of a question has equally many.
    stops = list(accumulate(len(piece.members) for piece in changed))
    await WRITE_PIECES.run(
        connection,
        study_id=draft.study_id,
        family=family,
        release_id=draft.id,
        numbers=[piece.number for piece in changed],
        units=[piece.unit for piece in changed],
        shares=[piece.share for piece in changed],
        bases=[piece.base for piece in changed],
        scales=[piece.scale for piece in changed],
        sums=[one for piece in changed for one in piece.sums],
        each=len(changed[0].sums),
        refinable=[piece.refinable for piece in changed],
        starts=[1, *(stop + 1 for stop in stops[:-1])],
        stops=stops,
        cohorts=array_literal(one for piece in changed for one in piece.column("cohort_id")),
        weights=array_literal(one for piece in changed for one in piece.column("weight")),
        counts=array_literal(one for piece in changed for one in piece.column("count")),
        charged=array_literal(one for piece in changed for one in piece.column("charged")),
    )
