r"""Epochs and cohorts: sealing, folding, reading.

`seal` holds contributions up only while the epoch is bumped; `fold` reads each new row once.

*Epochs share cohorts.* A fold makes one cohort for each key of all the epochs that it folds, and people whose
key has a cohort that has *paid for nothing* join that one: central people one with spent = carried, reports
any, since a report has cost its whole epsilon on arrival. Public people join none of before: a round of
K-means tells them apart by epoch. `lineage` keeps in which cohort the people of an epoch are, so
contributions are never written again. Thus a study has as many rows for reports as they have epsilons,
however many epochs it has.

*Cohorts that were charged alike become one*: a fold unites the central cohorts that have the same key and
have spent the same, most of all those who have spent everything, so that there is a row for each key and
amount spent. Such a row begins with what its people had spent `before`, and takes in people until it is
charged itself; `lineage.former` keeps the cohorts that they were in, with the charges that they paid there.
Studies that keep pieces are left out: these name the cohorts that they were drawn for, and epochs that were
charged one after the other are in different ones. So are studies with an open session, whose rounds know
their people by what cohorts were charged.

Why that is exact: members of a cohort have the same trust, segment, offer and spent, before and after;
answers, prices and limits depend on groups of equal offers and on their sums, which add up. Every charge of a
cohort came after its youngest lineage, and a former one, which has no people left, is never charged again. So
what a person was charged is what the person's cohort and the former ones were, and the audit recomputes it
(`app.store.ledger`). A lineage keeps the reach that its reports were summed with, so who leaves takes out
what they put in.

Why it is private: an answer must be made from the people it charges. A fold holds the lock of the study's
cohorts alone, and notes its epoch in every cohort that it lets people into, also in those that it unites;
`app.store.releases.CHARGE` refuses a draft that has not seen that epoch, as it refuses one whose cohort has
lost a member. What a step refines is made of cohorts that were charged (`piece.charged` is above 0), so no
person joins them: that the count of a cohort in a piece is unchanged still means that the people are. All
this holds for both relations; in add_remove_one studies cohorts are shown to admins alone, and answers see
groups as before.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dither.device.randomizers import randomizer

from app.core.cohort import Cohort, Cohorts, report_reach
from app.core.errors import Unavailable
from app.core.grid import GRID_SIZE
from app.core.records import CohortLine
from app.core.study import LocalMechanism, Trust
from app.store.contributions import EPOCH_LOCK, FOLD_LOCK
from app.store.membership import key_columns, sum_of_squares, summand
from app.store.sql import Connection, Sql

LOCK_EXCLUSIVE = Sql("SELECT pg_advisory_xact_lock(:lock, :study_id)")

# The newest epoch is read off the end of an index. Asked whether a row of the current epoch exists, the
# planner would sometimes rather scan the whole study.
SEAL = Sql("""
    UPDATE study SET epoch = epoch + 1
    WHERE id = :study_id
      AND epoch = (SELECT max(c.epoch) FROM contribution c WHERE c.study_id = :study_id)
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """Where a study stands.

    Attributes:
        sealed, folded: The last sealed and the last folded epoch.
        local_mechanism: What its reports are made with.
    """

    sealed: int
    folded: int
    local_mechanism: LocalMechanism


READ_EPOCHS = Sql.of(Epochs)("""
    SELECT epoch - 1 AS sealed, folded_epoch AS folded, local_mechanism FROM study WHERE id = :study_id
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A cohort that is not folded yet: the live rows of one epoch that share a key. Its id is 0.

    Attributes:
        epoch: Of the rows.
        least, largest: Of their values.
        cohort: What the rows add up to.
    """

    epoch: int
    least: int
    largest: int
    cohort: Cohort


# The scan groups by plain columns, which is quick; of its few rows the keys of the cohorts are made. Rows of
# one key are added up when they are inserted. That is done apart: PostgreSQL scans in parallel only outside
# INSERT ... SELECT. Their order is fixed, since plans round by the order of groups.
READ_EPOCH_ROWS = Sql.of(Fresh)(f"""
    SELECT CAST(:epoch AS int) AS epoch, least, largest, 0 AS id, trust, epsilon, carried,
           CASE WHEN trust = 'local' THEN epsilon ELSE carried END AS spent,
           count, total, total_squares, CAST(NULL AS bigint) AS reach, segment, 0 AS silent,
           0 AS reported
    FROM (
        SELECT trust, segment, {key_columns("c")}, count, total, total_squares, least, largest
        FROM (
            SELECT trust, segment, epsilon, carried, count(*) AS count, sum(value) AS total,
                   {sum_of_squares("contribution", "value")} AS total_squares, min(value) AS least,
                   max(value) AS largest
            FROM contribution
            WHERE study_id = :study_id AND epoch = :epoch AND value IS NOT NULL
            GROUP BY trust, epsilon, carried, segment
        ) AS c
    ) AS keyed
    ORDER BY trust, epsilon, carried, segment
""")

# Of a few cohorts at most, whose outermost reports count less than they are.
READ_WITHIN_REACH = Sql(f"""
    SELECT part.place, sum({summand("part")}) AS total,
           {sum_of_squares("c", summand("part"))} AS total_squares
    FROM unnest(CAST(:epochs AS int[]), CAST(:epsilons AS bigint[]), CAST(:carried AS bigint[]),
                CAST(:reaches AS bigint[]), CAST(:segments AS smallint[]))
        WITH ORDINALITY AS part (epoch, epsilon, carried, reach, segment, place)
    JOIN contribution c ON c.study_id = :study_id AND c.value IS NOT NULL AND c.trust = 'local'
     AND (c.epoch, c.epsilon, c.carried, c.segment)
       = (part.epoch, part.epsilon, part.carried, part.segment)
    GROUP BY part.place ORDER BY part.place
""")

COUNT_REPORTS = Sql.of(int)("""
    SELECT coalesce(sum(count), 0) FROM cohort WHERE study_id = :study_id AND trust = 'local' AND count > 0
""")

# Of several cohorts that people could join, which there may be from before cohorts were shared, the newest.
FOLD = Sql("""
    WITH fresh AS MATERIALIZED (
        SELECT epoch, CAST(trust AS trust) AS trust, segment, epsilon, carried, sum(count) AS count,
               sum(total) AS total, sum(total_squares) AS total_squares, max(reach) AS reach
        FROM unnest(CAST(:epochs AS int[]), CAST(:trusts AS text[]), CAST(:epsilons AS bigint[]),
                    CAST(:carried AS bigint[]), CAST(:counts AS bigint[]), CAST(:totals AS numeric[]),
                    CAST(:squares AS numeric[]), CAST(:reaches AS bigint[]), CAST(:segments AS smallint[]))
            AS fresh (epoch, trust, epsilon, carried, count, total, total_squares, reach, segment)
        GROUP BY 1, 2, 3, 4, 5
    ),
    keyed AS MATERIALIZED (
        SELECT trust, segment, epsilon, carried, max(epoch) AS epoch, sum(count) AS count,
               sum(total) AS total, sum(total_squares) AS total_squares, max(reach) AS reach
        FROM fresh GROUP BY 1, 2, 3, 4
    ),
    open AS (
        SELECT max(id) AS id, trust, segment, epsilon, carried FROM cohort
        WHERE study_id = :study_id AND (trust = 'local' OR trust = 'central' AND spent = carried)
          AND count > 0
        GROUP BY 2, 3, 4, 5
    ),
    joined AS (
        UPDATE cohort
        SET epoch = keyed.epoch, count = cohort.count + keyed.count, total = cohort.total + keyed.total,
            total_squares = cohort.total_squares + keyed.total_squares,
            reach = greatest(cohort.reach, keyed.reach)
        FROM open JOIN keyed USING (trust, segment, epsilon, carried) WHERE cohort.id = open.id
        RETURNING cohort.id, cohort.trust, cohort.segment, cohort.epsilon, cohort.carried
    ),
    made AS (
        INSERT INTO cohort
            (study_id, epoch, trust, segment, epsilon, carried, before, count, total, total_squares, reach,
             spent)
        SELECT :study_id, epoch, trust, segment, epsilon, carried, carried, count, total, total_squares,
               reach, CASE WHEN trust = 'local' THEN epsilon ELSE carried END AS spent
        FROM keyed LEFT JOIN open USING (trust, segment, epsilon, carried) WHERE open.id IS NULL
        ORDER BY epoch, trust, epsilon, carried, segment
        RETURNING id, trust, segment, epsilon, carried
    )
    INSERT INTO lineage (study_id, epoch, trust, segment, epsilon, carried, cohort_id, reach)
    SELECT :study_id, fresh.epoch, trust, segment, epsilon, carried, known.id, fresh.reach
    FROM fresh JOIN (SELECT * FROM joined UNION ALL SELECT * FROM made) AS known
        USING (trust, segment, epsilon, carried)
""")

# People whose cohort has paid join the one of their key and amount that has not paid since people came in.
UNITE = Sql("""
    WITH alike AS MATERIALIZED (
        SELECT segment, epsilon, carried, spent, max(id) FILTER (WHERE spent = before) AS united
        FROM cohort
        WHERE study_id = :study_id AND count > 0 AND trust = 'central' AND spent > carried
          AND NOT EXISTS (SELECT FROM piece WHERE study_id = :study_id AND cohorts <> '{}')
          AND NOT EXISTS (SELECT FROM session WHERE study_id = :study_id AND state = 'open')
        GROUP BY 1, 2, 3, 4 HAVING count(*) > 1
    ),
    leaving AS MATERIALIZED (
        SELECT cohort.id, segment, epsilon, carried, spent, united, count, total, total_squares
        FROM cohort JOIN alike USING (segment, epsilon, carried, spent)
        WHERE study_id = :study_id AND count > 0 AND trust = 'central' AND id IS DISTINCT FROM united
    ),
    coming AS MATERIALIZED (
        SELECT segment, epsilon, carried, spent, united, sum(count) AS count, sum(total) AS total,
               sum(total_squares) AS total_squares
        FROM leaving GROUP BY 1, 2, 3, 4, 5
    ),
    joined AS (
        UPDATE cohort
        SET epoch = :epoch, count = cohort.count + coming.count, total = cohort.total + coming.total,
            total_squares = cohort.total_squares + coming.total_squares
        FROM coming WHERE cohort.id = coming.united
        RETURNING cohort.id, cohort.segment, cohort.epsilon, cohort.carried, cohort.spent
    ),
    made AS (
        INSERT INTO cohort (study_id, epoch, trust, segment, epsilon, carried, before, spent, count, total,
                            total_squares)
        SELECT :study_id, :epoch, 'central', segment, epsilon, carried, spent, spent, count, total,
               total_squares
        FROM coming WHERE united IS NULL ORDER BY epsilon, carried, spent, segment
        RETURNING id, segment, epsilon, carried, spent
    ),
    emptied AS (
        UPDATE cohort SET count = 0, total = 0, total_squares = 0 FROM leaving WHERE cohort.id = leaving.id
    )
    UPDATE lineage SET former = lineage.former || lineage.cohort_id, cohort_id = known.id
    FROM leaving JOIN (SELECT * FROM joined UNION ALL SELECT * FROM made) AS known
        USING (segment, epsilon, carried, spent)
    WHERE lineage.cohort_id = leaving.id
""")

READ_TALLY = Sql.of(int)("""
    SELECT CAST(coalesce(sum(count), 0) AS bigint) FROM tally
    WHERE study_id = :study_id AND epoch <= :sealed
""")

CLEAR_TALLY = Sql("DELETE FROM tally WHERE study_id = :study_id AND epoch <= :sealed")

MARK_FOLDED = Sql("UPDATE study SET folded_epoch = :sealed WHERE id = :study_id")

TRUSTS = {trust.value: trust for trust in Trust}

# A column comes as one array, sums of any size as JSON: the driver reads tens of thousands of cohorts so in a
# fourth of the time that it takes for rows.
READ_COHORTS = Sql("""
    SELECT array_agg(id ORDER BY id) AS id, array_agg(CAST(trust AS text) ORDER BY id) AS trust,
           array_agg(epsilon ORDER BY id) AS epsilon, array_agg(carried ORDER BY id) AS carried,
           array_agg(spent ORDER BY id) AS spent, array_agg(count ORDER BY id) AS count,
           CAST(json_agg(total ORDER BY id) AS text) AS total,
           CAST(json_agg(total_squares ORDER BY id) AS text) AS total_squares,
           array_agg(reach ORDER BY id) AS reach, array_agg(segment ORDER BY id) AS segment
    FROM cohort WHERE study_id = :study_id AND count > 0
""")

PAGE_COHORTS = Sql.of(CohortLine)("""
    SELECT cohort.id, cohort.trust, cohort.epsilon AS amount, cohort.spent AS amount_spent,
           cohort.count AS people, study.delta, study.attributes AS declared, cohort.segment
    FROM cohort JOIN study ON study.id = cohort.study_id
    WHERE study_id = :study_id AND cohort.id > :after AND count > 0 ORDER BY cohort.id LIMIT :limit
""")

NEWEST_EPOCH = Sql.of(int)("SELECT coalesce(max(epoch), 0) FROM contribution WHERE study_id = :study_id")


async def seal(connection: Connection, study_id: int) -> Epochs:
    """Close the current epoch unless it is empty, after every contribution in flight has committed."""
    await LOCK_EXCLUSIVE.run(connection, lock=EPOCH_LOCK, study_id=study_id)
    await SEAL.run(connection, study_id=study_id)
    return await read_epochs(connection, study_id)


async def read_epochs(connection: Connection, study_id: int) -> Epochs:
    """The last sealed and the last folded epoch of a study."""
    return await READ_EPOCHS.one(connection, study_id=study_id)


async def hold(connection: Connection, study_id: int) -> None:
    """Keep a study's cohorts as they are for everyone but this transaction, until it ends.

    Who would leave a cohort waits, and so does whatever else folds or publishes.
    """
    await LOCK_EXCLUSIVE.run(connection, lock=FOLD_LOCK, study_id=study_id)


async def fold(connection: Connection, study_id: int) -> None:
    """Fold every sealed epoch that is not folded yet into cohort rows.

    Raises:
        Unavailable: a node of the database is recovering, and not everything that was acknowledged is to be
            seen yet.
    """
    await hold(connection, study_id)
    epochs = await read_epochs(connection, study_id)
    if epochs.sealed == epochs.folded:
        return
    # Nothing is added to a sealed epoch, and those who leave one hold the fold lock, shared.
    acknowledged = await READ_TALLY.one(connection, study_id=study_id, sealed=epochs.sealed)
    rows = await _aggregate(connection, study_id, epochs, last=epochs.sealed)
    if sum(row.cohort.count for row in rows) != acknowledged:
        raise Unavailable("a node of the database is recovering; ask again")
    await CLEAR_TALLY.run(connection, study_id=study_id, sealed=epochs.sealed)
    if rows:
        await FOLD.run(
            connection,
            study_id=study_id,
            epochs=[row.epoch for row in rows],
            trusts=[row.cohort.trust.value for row in rows],
            epsilons=[row.cohort.epsilon for row in rows],
            carried=[row.cohort.carried for row in rows],
            counts=[row.cohort.count for row in rows],
            totals=[row.cohort.total for row in rows],
            squares=[row.cohort.total_squares for row in rows],
            reaches=[row.cohort.reach for row in rows],
            segments=[row.cohort.segment for row in rows],
        )
    await UNITE.run(connection, study_id=study_id, epoch=epochs.sealed)
    await MARK_FOLDED.run(connection, study_id=study_id, sealed=epochs.sealed)


async def _aggregate(connection: Connection, study_id: int, epochs: Epochs, *, last: int) -> list[Fresh]:
    """The rows that are not folded by cohort, up to the last epoch given, an epoch at a time.

    Reports count as far as `report_reach` says. Hardly ever does one lie further out, so the sums are made
    again only for cohorts with such a report.
    """
    fresh: list[Fresh] = []
    for epoch in range(epochs.folded + 1, last + 1):
        fresh += await READ_EPOCH_ROWS.all(connection, study_id=study_id, epoch=epoch)
    reports = sum(row.cohort.count for row in fresh if row.cohort.trust is Trust.LOCAL)
    if not reports:
        return fresh
    reports += await COUNT_REPORTS.one(connection, study_id=study_id)
    made_with = randomizer(epochs.local_mechanism.value)
    outside: list[int] = []
    for place, row in enumerate(fresh):
        if row.cohort.trust is Trust.LOCAL:
            reach = report_reach(made_with, row.cohort.epsilon - row.cohort.carried, reports)
            if reach is not None and not (-reach <= row.least and row.largest <= GRID_SIZE + reach):
                outside.append(place)
            fresh[place] = replace(row, cohort=replace(row.cohort, reach=reach))
    if outside:
        parts = [fresh[place] for place in outside]
        sums = await READ_WITHIN_REACH.all(
            connection,
            study_id=study_id,
            epochs=[part.epoch for part in parts],
            epsilons=[part.cohort.epsilon for part in parts],
            carried=[part.cohort.carried for part in parts],
            reaches=[part.cohort.reach for part in parts],
            segments=[part.cohort.segment for part in parts],
        )
        for number, total, total_squares in sums:
            part = parts[number - 1]
            cohort = replace(part.cohort, total=total, total_squares=total_squares)
            fresh[outside[number - 1]] = replace(part, cohort=cohort)
    return fresh


async def read_cohorts(connection: Connection, study_id: int) -> Cohorts:
    """All folded cohorts with at least one live member, in the order of their ids."""
    found = dict((await READ_COHORTS.one(connection, study_id=study_id)).items())
    if found["id"] is None:
        return Cohorts.of([])
    sums = {name: json.loads(found[name]) for name in ("total", "total_squares")}
    trusts = list(map(TRUSTS.__getitem__, found["trust"]))
    return Cohorts({**found, **sums, "trust": trusts}, len(trusts))


async def page_cohorts(connection: Connection, study_id: int, *, after: int, limit: int) -> list[CohortLine]:
    """Folded cohorts with at least one live member, in the order of their ids, after an id."""
    return await PAGE_COHORTS.all(connection, study_id=study_id, after=after, limit=limit)


async def read_profile(connection: Connection, study_id: int) -> Sequence[Cohort]:
    """Folded cohorts and, as if they were folded, the rows that are not; changes nothing.

    The cohorts of unfolded rows have id 0.
    """
    epochs = await read_epochs(connection, study_id)
    fresh = await _aggregate(connection, study_id, epochs, last=epochs.sealed + 1)
    return [*await read_cohorts(connection, study_id), *(row.cohort for row in fresh)]


async def has_new_rows(connection: Connection, study_id: int, epoch: int) -> bool:
    """Whether any person contributed after this epoch, even if they have withdrawn since."""
    return await NEWEST_EPOCH.one(connection, study_id=study_id) > epoch
