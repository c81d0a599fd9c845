"""Releases: charges, the noisy answer and the link in the chain are written in one transaction."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.core.errors import Conflict, InternalFault, StudyArchived, StudyRetired
from app.core.release import (
    AllUsed,
    Asked,
    Charges,
    Draft,
    NoisyCount,
    NoisyLabels,
    StoredRelease,
    chain_hash,
)
from app.core.study import StudyState
from app.core.webhook import EventType
from app.store import outbox
from app.store.arrays import array_literal
from app.store.contributions import FOLD_LOCK, LOCK_SHARED
from app.store.sql import Connection, Sql

MOST_COUNTED = 100
"""Noisy counts that are looked at, the newest first: older ones are of other people."""

NO_CAP = 2**62
"""Stands for no cap where caps are compared [micro-epsilon]."""

LOCK_CHAIN = Sql("SELECT number, hash FROM chain WHERE id = 1 FOR UPDATE")

COLUMNS = """release.id, release.study_id, study.slug AS study, release.epoch, release.body,
    release.noisy_count, release.variance, release.created_at"""

STORED = f"SELECT {COLUMNS} FROM release JOIN study ON study.id = release.study_id"


LATEST = Sql.of(StoredRelease)(f"""
    SELECT {COLUMNS}, true AS replayed, false AS stands
    FROM release JOIN study ON study.id = release.study_id
    WHERE release.study_id = :study_id AND release.question = :question
    ORDER BY release.sequence DESC LIMIT 1
""")

NEWEST = Sql.of(StoredRelease)(f"""
    {STORED} WHERE release.study_id = :study_id AND release.family = :family
    ORDER BY release.number DESC LIMIT 1
""")


def _width(people: str) -> str:
    """Width of a release's interval for the mean of other people, see `app.services.statistics.gain`."""
    return f"""least(CAST(:range AS float8), width + CAST(:range AS float8) * greatest(
                     1.96 * sqrt(abs(1 / greatest(people, 1.0) - 1 / greatest({people}, 1.0))),
                     2 * (1 - {people} / greatest(people, 1.0))))"""


BEST_WIDTH = Sql.of(float)(f"""
    SELECT min({_width("CAST(:people AS bigint)")}) AS width FROM release
    WHERE study_id = :study_id AND family = :family
""")

# The people of the newest answer stand for those of today: to count these would be to read all of the study.
STANDING = Sql.of(StoredRelease)(f"""
    WITH newest AS (SELECT people FROM release WHERE study_id = :study_id AND family = ANY(:families)
                    ORDER BY number DESC LIMIT 1),
         past AS (SELECT number, share, cap, {_width("(SELECT people FROM newest)")} AS width
                  FROM release WHERE study_id = :study_id AND family = ANY(:families))
    SELECT {COLUMNS}, true AS replayed FROM release JOIN study ON study.id = release.study_id
    WHERE release.number = (
        SELECT max(number) FROM past WHERE width <= CAST(:as_good AS float8) * (SELECT min(width) FROM past)
    ) AND EXISTS (SELECT FROM past WHERE share >= :share AND coalesce(cap, :no_cap) >= :cap)
""")

# Folds let people into a cohort and note their epoch; apart from that its count only ever falls. So a count
# that is unchanged, and an epoch that the answer has seen, mean unchanged sums. A cohort takes part with its
# whole offer, so that much must be left, even if it is charged less: releases that race end as if they had
# come one after the other. A charge is noted of a cohort that paid it. NULL: there is none.
CHARGE = Sql.of(int)("""
    WITH cost AS MATERIALIZED (
        SELECT id, count, offer, epsilon
        FROM unnest(CAST(CAST(:cohorts AS text) AS bigint[]), CAST(CAST(:counts AS text) AS bigint[]),
                    CAST(CAST(:offers AS text) AS bigint[]), CAST(CAST(:epsilons AS text) AS bigint[]))
            AS cost (id, count, offer, epsilon)
    ),
    paid AS (
        UPDATE cohort SET spent = spent + coalesce(cost.epsilon, 0) FROM cost
        WHERE cohort.id = cost.id AND cohort.count = cost.count AND cohort.epoch <= :epoch
          AND cohort.spent + greatest(cost.offer, cost.epsilon, 0) <= cohort.epsilon
        RETURNING cohort.id, cost.epsilon
    ),
    noted AS (
        INSERT INTO charge_block (release_id, cohorts, amounts)
        SELECT CAST(:release_id AS uuid), array_agg(id ORDER BY id), array_agg(epsilon ORDER BY id)
        FROM paid WHERE epsilon IS NOT NULL HAVING count(*) > 0
    )
    SELECT count(*) FROM paid
""")

INSERT_RELEASE = Sql("""
    WITH moved AS (UPDATE chain SET number = :number, hash = :hash WHERE id = 1)
    INSERT INTO release (id, number, study_id, question, sequence, epoch, estimator, estimator_version,
                         noise, body, kept_ends, estimate, standard_error, noisy_count, variance,
                         epsilon_max, family, share, share_before, cap, people, people_left_out, width,
                         previous_hash, hash, created_at)
    VALUES (:id, :number, :study_id, :question, :sequence, :epoch, :estimator, :estimator_version,
            CAST(:noise AS jsonb), :body, :kept_ends, :estimate, :standard_error, :noisy_count, :variance,
            :epsilon_max, :family, :share, :share_before, :cap, :people, :people_left_out, :width,
            :previous_hash, :hash, :created_at)
""")

READ_KEPT_ENDS = Sql.of(bytes)("SELECT kept_ends FROM release WHERE id = :id")

READ_RELEASE = Sql.of(StoredRelease)(f"{STORED} WHERE release.id = :id")

OVER_RANGE = "release.standard_error IS NOT NULL AND release.estimator <> 'found_range'"

SAID = "CAST(convert_from(release.body, 'UTF8') AS jsonb)"
"""What a release says."""

WHOLE_MEAN = f"{OVER_RANGE} AND {SAID}->'where' IS NULL"

_OF_ALL = f"{OVER_RANGE} AND said->'where' IS NULL"


def _last(which: str) -> Sql[StoredRelease]:
    """Reads the newest release of a study, and of one measure, for which a condition holds."""
    # Without the offset a document is read once for each part of the condition.
    return Sql.of(StoredRelease)(f"""
        {STORED} CROSS JOIN LATERAL (
            SELECT CAST(convert_from(release.body, 'UTF8') AS jsonb) AS said OFFSET 0
        ) AS document WHERE release.study_id = :study_id AND {which}
          AND coalesce(said->>'measure', '') = CAST(:measure AS text)
        ORDER BY release.number DESC LIMIT 1
    """)


READ_LAST_MEAN = _last(_OF_ALL)

# No answer has a variance without that of a population.
READ_LAST_SPREAD = _last(f"release.variance IS NOT NULL AND {_OF_ALL}")

READ_LAST_RANGE = _last("release.estimator = 'found_range'")

# A combination has a mean of the counts of its answers: no news. A round of K-means counts those who can pay
# for the rest of its session, which may be none. An answer without a count of its own has one of `offered`.
READ_NOISY_COUNTS = Sql.of(NoisyCount)("""
    SELECT DISTINCT ON (least, most, of_all)
           least, most, counted AS count, said->'where' IS NULL AS of_all,
           CASE WHEN first THEN share END AS share, CASE WHEN first THEN cap END AS cap, number
    FROM (SELECT * FROM release WHERE study_id = :study_id
                 AND (noisy_count IS NOT NULL AND estimator <> 'kmeans' OR estimator = 'count')
          ORDER BY number DESC LIMIT :most) AS release, CAST(convert_from(body, 'UTF8') AS jsonb) AS said,
         LATERAL (SELECT CAST(said->>'least_epsilon' AS float8), CAST(said->>'most_epsilon' AS float8),
                         coalesce(noisy_count, estimate), 1, coalesce(noisy_count, estimate) IN (
                             SELECT CAST(one->>'noisy_count' AS float8)
                             FROM jsonb_array_elements(said->'offered') AS one)
                  UNION ALL
                  SELECT CAST(one->>'least_epsilon' AS float8), CAST(one->>'least_epsilon' AS float8),
                         CAST(one->>'noisy_count' AS float8), 2, true
                  FROM jsonb_array_elements(said->'offered') AS one
                 ) AS told (least, most, counted, place, first)
    WHERE said->'weights' IS NULL AND (said->'where' IS NULL OR said->'where' = CAST(:where AS jsonb))
    ORDER BY least, most, of_all, number DESC, place
""")

READ_NOISY_LABELS = Sql.of(NoisyLabels)("""
    SELECT CAST(said->>'least_epsilon' AS float8) AS least, CAST(said->>'most_epsilon' AS float8) AS most,
           noisy_count AS whole, said->'groups' AS groups
    FROM release, CAST(convert_from(body, 'UTF8') AS jsonb) AS said
    WHERE study_id = :study_id AND noisy_count IS NOT NULL AND said->>'by' = CAST(:by AS text)
      AND said->'where' IS NULL AND said->'groups'->0->'noisy_count' IS NOT NULL
    ORDER BY number DESC LIMIT 1
""")


READ_STATE = Sql.of(StudyState)("SELECT state FROM study WHERE id = :study_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    state: StudyState
    sequence: int


READ_TURN = Sql.of(_Turn)("""
    SELECT state, 1 + (SELECT coalesce(max(sequence), 0) FROM release
                       WHERE study_id = :study_id AND question = :question) AS sequence
    FROM study WHERE id = :study_id
""")

ENDED: Mapping[StudyState, type[Conflict]] = {
    StudyState.ARCHIVED: StudyArchived,
    StudyState.RETIRED: StudyRetired,
}
"""States in which a study makes no new answer, and how it refuses."""


class CohortsChanged(Exception):
    """A person withdrew, or another release was quicker: nothing was charged, plan again."""


async def lock_cohorts(connection: Connection, study_id: int) -> None:
    """Wait until no other transaction holds the study's cohorts, and let none do so until this one ends."""
    await LOCK_SHARED.run(connection, locks=(FOLD_LOCK,), study_id=study_id)


async def lock_chain(connection: Connection, study_id: int) -> tuple[int, bytes]:
    """Wait for the turn to publish a release of a study; returns number and hash of the last link."""
    await lock_cohorts(connection, study_id)
    number, link = await LOCK_CHAIN.one(connection)
    return number, link


async def refuse_ended(connection: Connection, study_id: int) -> None:
    """Make no new answer in a study that has ended.

    Raises:
        StudyArchived, StudyRetired: it has.
    """
    _refuse(await READ_STATE.one(connection, study_id=study_id))


def _refuse(state: StudyState) -> None:
    if state in ENDED:
        raise ENDED[state](
            f"the study is {state}: it gives only the answers that are stored, each to the question that "
            "it was asked with, its estimator included; the study's releases list them"
        )


async def latest(connection: Connection, study_id: int, question: bytes) -> StoredRelease | None:
    """The newest release for a question, or None."""
    return await LATEST.maybe(connection, study_id=study_id, question=question)


async def newest(connection: Connection, study_id: int, asked: Asked) -> StoredRelease | None:
    """The newest release for a question, share and cap aside, or None."""
    return await NEWEST.maybe(connection, study_id=study_id, family=asked.family)


async def standing(
    connection: Connection,
    study_id: int,
    asked: Asked,
    *,
    beside: Sequence[bytes] = (),
    width: float,
    at_least: bool,
    as_good: float,
) -> StoredRelease | None:
    """The newest of the best answers to a question of a replace_one study, share and cap aside.

    Args:
        connection: In a transaction.
        study_id: The study.
        asked: The question.
        beside: What other answers to it are kept under.
        width: Of the study's range.
        at_least: Whether an answer must exist that took at least the question's share and cap.
        as_good: How many times as wide as the best one an interval may be and count as good as that.
    """
    return await STANDING.maybe(
        connection,
        study_id=study_id,
        families=[asked.family, *beside],
        range=width,
        as_good=as_good,
        no_cap=NO_CAP,
        share=asked.share if at_least else 0,
        cap=(NO_CAP if asked.cap is None else asked.cap) if at_least else 0,
    )


async def best_width(
    connection: Connection, study_id: int, family: bytes, *, people: int, width: float
) -> float | None:
    """The smallest width that an answer's interval has for the mean of `people` people; None: no answer."""
    # The smallest of no widths is NULL.
    best: float | None = await BEST_WIDTH.one(
        connection, study_id=study_id, family=family, people=people, range=width
    )
    return best


async def publish(connection: Connection, draft: Draft, *, head: tuple[int, bytes]) -> None:
    """Charge every cohort and store the answer. Call with the chain locked, whose head is given.

    Raises:
        CohortsChanged: a cohort no longer has the members that were counted, or cannot pay.
        StudyArchived, StudyRetired: the study has ended meanwhile.
    """
    turn = await READ_TURN.one(connection, study_id=draft.study_id, question=draft.question)
    _refuse(turn.state)
    number, previous = head[0] + 1, head[1]
    link = chain_hash(
        previous,
        number=number,
        release_id=draft.id,
        study_id=draft.study_id,
        question=draft.question,
        sequence=turn.sequence,
        epoch=draft.epoch,
        estimator=draft.estimator,
        estimator_version=draft.estimator_version,
        noise=draft.noise,
        body=draft.body,
        charges=draft.charges,
    )
    await INSERT_RELEASE.run(
        connection,
        draft,
        draft.facts,
        number=number,
        sequence=turn.sequence,
        family=draft.asked and draft.asked.family,
        share=draft.asked and draft.asked.share,
        share_before=draft.taken and draft.taken.share_before,
        cap=draft.asked and draft.asked.cap,
        previous_hash=previous,
        hash=link,
    )
    await _charge(connection, draft)
    await outbox.emit(connection, EventType.RELEASED, draft.study_id, {"release": str(draft.id)})


async def _charge(connection: Connection, draft: Draft) -> None:
    """Charge the cohorts of a draft, each once, and note it; the same statement checks that they can pay."""
    costs = dict(Charges.of(draft.charges).rows("cohort_id", "epsilon"))
    used = AllUsed.of(draft.used)
    epsilons = list(map(costs.get, used.column("cohort_id")))
    if len(epsilons) - epsilons.count(None) < len(costs):
        raise InternalFault("A release charges people who are not in it.")
    if not draft.used:
        return
    paid = await CHARGE.one(
        connection,
        release_id=draft.id,
        epoch=draft.epoch,
        cohorts=array_literal(used.column("cohort_id")),
        counts=array_literal(used.column("count")),
        offers=array_literal(used.column("offer")),
        epsilons=array_literal(epsilons),
    )
    if paid != len(draft.used):
        raise CohortsChanged


async def read_release(connection: Connection, release_id: UUID) -> StoredRelease | None:
    """One release, or None."""
    return await READ_RELEASE.maybe(connection, id=release_id)


async def read_kept_ends(connection: Connection, release_id: UUID) -> bytes | None:
    """The ends of a release's intervals at other levels; None where they are not kept."""
    return await READ_KEPT_ENDS.maybe(connection, id=release_id)


async def read_last_mean(connection: Connection, study_id: int, measure: str) -> StoredRelease | None:
    """The newest mean of a study over its range and all people: no other statistic has a standard error.

    In a study of several measures that of the one given; empty in others.
    """
    return await READ_LAST_MEAN.maybe(connection, study_id=study_id, measure=measure)


async def read_last_spread(connection: Connection, study_id: int, measure: str) -> StoredRelease | None:
    """The newest of the same that has a variance."""
    return await READ_LAST_SPREAD.maybe(connection, study_id=study_id, measure=measure)


async def read_last_range(connection: Connection, study_id: int, measure: str) -> StoredRelease | None:
    """The newest mean over a found range; in a study of several measures of the one given."""
    return await READ_LAST_RANGE.maybe(connection, study_id=study_id, measure=measure)


async def read_noisy_counts(
    connection: Connection, study_id: int, where: Mapping[str, str]
) -> list[NoisyCount]:
    """Noisy counts of the people of a study where their number is secret, the newest first.

    The newest one about the same people by what they offered, of all and of those of whom a question asks.
    """
    asked = json.dumps(dict(where)) if where else None
    rows = await READ_NOISY_COUNTS.all(connection, study_id=study_id, where=asked, most=MOST_COUNTED)
    return sorted(rows, key=lambda row: -row.number)


async def read_noisy_labels(connection: Connection, study_id: int, by: str) -> NoisyLabels | None:
    """The newest noisy counts of all labels of an attribute."""
    return await READ_NOISY_LABELS.maybe(connection, study_id=study_id, by=by)
